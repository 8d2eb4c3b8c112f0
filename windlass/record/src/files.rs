//! What a recording needs of the disk.

use std::io;
use std::path::Path;

use crate::manifest::Manifest;
use crate::webm::Patch;

/// Writes files.
pub(crate) trait Files: Send {
    /// Appends bytes to a file. The first bytes create it.
    fn append(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Writes patches into a file, and renames it to its final name.
    fn complete(&mut self, path: &Path, patches: &[Patch], name: &Path) -> io::Result<()>;
    /// Ends a file that has its final name.
    fn close(&mut self, path: &Path) -> io::Result<()>;
    /// Writes the manifest.
    fn save(&mut self, manifest: &Manifest, folder: &Path) -> io::Result<()>;
}
