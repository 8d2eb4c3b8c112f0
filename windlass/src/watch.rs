//! Files that others replace while the server runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Sees that a file has changed, once nobody has written to it between two looks.
#[derive(Debug)]
pub(crate) struct Watch {
    path: PathBuf,
    known: Option<State>,
    seen: Option<State>,
}

/// What tells one version of a file from another.
type State = (SystemTime, u64, u64);

impl Watch {
    /// Takes the file as it is now for known.
    pub(crate) fn new(path: &Path) -> Watch {
        let known = state(path);
        Watch { path: path.to_owned(), known, seen: known }
    }

    /// Whether the file is another one than when this was true last, and the same as at the last look. A file that is
    /// not there is being replaced.
    pub(crate) fn settled(&mut self) -> bool {
        let now = state(&self.path);
        let quiet = now == std::mem::replace(&mut self.seen, now);
        if now.is_none() || now == self.known || !quiet {
            return false;
        }
        self.known = now;
        true
    }
}

fn state(path: &Path) -> Option<State> {
    let data = std::fs::metadata(path).ok()?;
    Some((data.modified().ok()?, data.len(), data.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_once_and_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("windlass.yaml");
        std::fs::write(&path, "a").unwrap();
        let mut watch = Watch::new(&path);
        assert!(!watch.settled() && !watch.settled());
        std::fs::write(&path, "ab").unwrap();
        assert!(!watch.settled(), "it may still be written to");
        std::fs::write(&path, "abc").unwrap();
        assert!(!watch.settled());
        assert!(watch.settled());
        assert!(!watch.settled());
        std::fs::remove_file(&path).unwrap();
        assert!(!watch.settled() && !watch.settled());
        std::fs::write(&path, "abcd").unwrap();
        assert!(!watch.settled());
        assert!(watch.settled());
    }
}
