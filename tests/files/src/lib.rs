//! Files that tests and measurements read: clips, streams in IVF files, and files of this repository that the code's
//! own declarations make.
//!
//! The clips are not in the repository: `docs/CONTRIBUTING.md`, *Clips*. `clipsFolder` of `tests/e2e/support/scene.mjs`
//! and `clips_folder` of `models/pairs.py` name the same folder.

pub mod ivf;

use std::path::{Path, PathBuf};

/// The folder of the clips: the one that `WINDLASS_CLIPS` names, by default the one beside the checkout. It need not be
/// there.
pub fn clips() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/clips");
    std::env::var_os("WINDLASS_CLIPS").map_or_else(beside, PathBuf::from)
}

/// The path of a clip. It need not be there.
pub fn clip(file: &str) -> PathBuf {
    clips().join(file)
}

/// Holds a file of the repository against what it is made of. With `UPDATE_EXPECT` set, it is written.
///
/// # Panics
///
/// Where the file is another one than it should be, or cannot be written.
#[track_caller]
pub fn hold(file: impl AsRef<Path>, made: impl AsRef<[u8]>) {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    if let Err(why) = held(file.as_ref(), made.as_ref(), update) {
        let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
        panic!("{why}; UPDATE_EXPECT=1 cargo test -p {package} writes it");
    }
}

fn held(file: &Path, made: &[u8], update: bool) -> Result<(), String> {
    if update {
        std::fs::write(file, made).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    // A file that is not there is stale as well.
    let written = std::fs::read(file).unwrap_or_default();
    if written == made { Ok(()) } else { Err(format!("{} is stale", file.display())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_held_against_what_it_is_made_of_and_written_when_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("table.md");
        let stale = format!("{} is stale", file.display());
        assert_eq!(held(&file, b"1", false), Err(stale.clone()));
        assert!(!file.exists());
        assert_eq!(held(&file, b"1", true), Ok(()));
        assert_eq!(held(&file, b"1", false), Ok(()));
        assert_eq!(held(&file, b"2", false), Err(stale));
    }

    #[test]
    fn a_clip_is_in_the_folder_of_clips() {
        assert!(clip("a.mp4").starts_with(clips()));
    }
}
