//! IVF files, and windows of a few chunks from which seeds are made.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum length of a seed, in bytes.
pub const MAX_BYTES: usize = 12 * 1024;
/// Number of chunks of a window.
const WINDOW: usize = 10;
/// The chunks at which windows begin.
const STARTS: [usize; 3] = [1, 6, 20];

/// The IVF files among the arguments and in the folders among them.
///
/// # Errors
///
/// Fails if a folder cannot be read.
pub fn files(arguments: impl Iterator<Item = PathBuf>) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in arguments {
        if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                files.push(entry?.path());
            }
        } else {
            files.push(path);
        }
    }
    files.retain(|f| f.extension().is_some_and(|e| e == "ivf"));
    files.sort();
    Ok(files)
}

/// The windows of an IVF file: the index of each one's first chunk, and its chunks behind the stream's first, a key
/// frame.
pub fn windows(bytes: &[u8]) -> Vec<(usize, Vec<&[u8]>)> {
    let stream = ivf(bytes);
    let Some(&key) = stream.first() else { return Vec::new() };
    let window = |start: usize| {
        let rest = stream.get(start..)?;
        // A stream of one chunk is a window too.
        (start == STARTS[0] || !rest.is_empty())
            .then(|| (start, [key].into_iter().chain(rest.iter().copied()).take(WINDOW).collect()))
    };
    STARTS.into_iter().map_while(window).collect()
}

/// The chunks of an IVF file: a header of 32 bytes, then 12 bytes before each chunk.
fn ivf(bytes: &[u8]) -> Vec<&[u8]> {
    let mut chunks = Vec::new();
    let mut rest = bytes.get(32..).unwrap_or_default();
    while let Some((head, tail)) = rest.split_first_chunk::<12>() {
        let size = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let (chunk, next) = tail.split_at(size.min(tail.len()));
        chunks.push(chunk);
        rest = next;
    }
    chunks
}

/// The name of a stream in the names of its seeds.
pub fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
