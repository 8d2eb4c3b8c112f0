//! Watches files that others replace while the server runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Notices that a file has changed, once it is the same in two looks.
#[derive(Debug)]
pub(crate) struct Watch {
    path: PathBuf,
    known: Option<State>,
    seen: Option<State>,
}

/// State that tells versions of a file apart: time of modification, length and inode.
type State = (SystemTime, u64, u64);

impl Watch {
    /// Creates a watch that counts the present file as known.
    pub(crate) fn new(path: &Path) -> Watch {
        let known = state(path);
        Watch { path: path.to_owned(), known, seen: known }
    }

    /// Whether the file differs from the last time that this was true, and has not changed since the last look. A
    /// missing file counts as being replaced.
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
