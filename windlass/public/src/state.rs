//! The folder in which the server keeps what it has made or was given.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Result, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The server's folder: that of systemd (`StateDirectory=`), or the user's folder for the state of programs. `None` if
/// neither is known.
pub fn folder() -> Option<PathBuf> {
    if let Some(folders) = set("STATE_DIRECTORY") {
        // There may be several.
        return std::env::split_paths(&folders).next();
    }
    of_user("XDG_STATE_HOME", ".local/state")
}

/// The program's folder below the user's folder that `variable` names, by default `usual` below the home.
pub fn of_user(variable: &str, usual: &str) -> Option<PathBuf> {
    let all = set(variable).or_else(|| Some(set("HOME")?.join(usual)))?;
    Some(all.join("windlass"))
}

/// A folder that an environment variable names.
fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Writes a file that only its owner can read. Others see the former file or the new one, never a part. With `keep`, an
/// existing file stays. Returns whether the file was written.
pub(crate) fn write(file: &Path, bytes: &[u8], keep: bool) -> Result<bool> {
    if let Some(folder) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    if keep && fs::exists(file)? {
        return Ok(false);
    }
    let mut draft = file.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let _ = fs::remove_file(&draft);
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    new.write_all(bytes)?;
    new.sync_all()?;
    if !keep {
        fs::rename(&draft, file)?;
        return Ok(true);
    }
    // If several processes write the file at once, only one succeeds.
    let linked = fs::hard_link(&draft, file);
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        linked => linked.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_for_its_owner_alone_and_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("acme/calls.example.pem");
        assert!(write(&file, b"first", false).unwrap());
        assert!(write(&file, b"second", false).unwrap());
        assert!(!write(&file, b"third", true).unwrap());
        assert_eq!(fs::read(&file).unwrap(), b"second");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "no draft is left");
    }
}
