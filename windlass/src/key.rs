//! `windlass key`: makes a token key, once.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use rand::TryRngCore;
use rand::rngs::OsRng;
use windlass_signaling::access::TokenKey;

/// Arguments of `windlass key`.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// Where the key is kept; one that is there stays as it is
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Sees to it that there is a key in the file, and says how it is used.
pub(crate) fn run(args: &KeyArgs) -> Result<()> {
    let file = &args.file;
    let made = make(file).with_context(|| format!("cannot make a key in {}", file.display()))?;
    let key = format!("k1=@{}", file.display());
    key.parse::<TokenKey>().with_context(|| format!("{} is no token key", file.display()))?;
    println!(
        "{} {}.",
        if made { "A token key was made:" } else { "There is a token key:" },
        file.display()
    );
    println!("  windlass serve --token-key {key} …");
    println!("makes rooms need access tokens, and");
    println!("  windlass token --key {key} --room tea-room --identity ana --page https://HOST");
    println!("makes a link that has one.");
    Ok(())
}

/// Whether it had to be made. Of several that make it at a time one does; nobody ever sees half a key.
fn make(file: &Path) -> std::io::Result<bool> {
    if fs::exists(file)? {
        return Ok(false);
    }
    let mut secret = [0; 32];
    OsRng.try_fill_bytes(&mut secret).map_err(std::io::Error::other)?;
    let text = secret.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let mut draft = file.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let _ = fs::remove_file(&draft);
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    new.write_all(format!("{text}\n").as_bytes())?;
    new.sync_all()?;
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
    fn a_key_is_made_once_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("k1");
        assert!(make(&file).unwrap());
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(format!("k1=@{}", file.display()).parse::<TokenKey>().is_ok());
        assert!(!make(&file).unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
        assert!(make(&dir.path().join("k2")).unwrap());
        assert_ne!(fs::read_to_string(dir.path().join("k2")).unwrap(), text);
    }

    #[test]
    fn what_is_no_key_is_neither_replaced_nor_taken_for_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("k1");
        fs::write(&file, "short").unwrap();
        let error = format!("{:#}", run(&KeyArgs { file: file.clone() }).unwrap_err());
        assert!(error.contains("is no token key") && error.contains("32 bytes"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "short");
    }
}
