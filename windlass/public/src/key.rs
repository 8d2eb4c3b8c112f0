//! Makes the secret key with which access tokens are signed.

use std::io::{Error, Result};
use std::path::Path;

use rand::TryRngCore;
use rand::rngs::OsRng;

use crate::state;

/// Makes a key in a file that only its owner can read, unless the file exists. Returns whether the key was made.
///
/// # Errors
///
/// Fails if the file or its folder cannot be written.
pub fn make_key(file: &Path) -> Result<bool> {
    let mut secret = [0; 32];
    OsRng.try_fill_bytes(&mut secret).map_err(Error::other)?;
    let text = secret.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    state::write(file, format!("{text}\n").as_bytes(), true)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("k1");
        assert!(make_key(&file).unwrap());
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.trim_end().len(), 64);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!make_key(&file).unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
        assert!(make_key(&dir.path().join("k2")).unwrap());
        assert_ne!(fs::read_to_string(dir.path().join("k2")).unwrap(), text);
    }
}
