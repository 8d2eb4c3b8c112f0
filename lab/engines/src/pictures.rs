//! Pictures that a VP9 decoder made, at any size.
//!
//! Source: `hybrid/vp9/tests/fixtures/realtime.ivf`, a stream as a browser codes a call. Its pictures are small: beyond
//! their edges they go on mirrored, so that larger ones have the same texture and artefacts instead of a smooth
//! enlargement.

use anyhow::{Context, Result, ensure};
use windlass_vp9::Decoder;

use crate::args::Size;

/// The stream as an IVF file.
static STREAM: &[u8] = include_bytes!("../../../hybrid/vp9/tests/fixtures/realtime.ivf");
/// Length of an IVF file's header, in bytes.
const FILE_HEADER: usize = 32;
/// Length of a frame's header in an IVF file, in bytes.
const FRAME_HEADER: usize = 12;

/// The luma of `count` decoded pictures, of which no two follow each other directly.
pub(crate) fn pictures(size: Size, count: usize) -> Result<Vec<Vec<u8>>> {
    let (mut decoder, mut rest) = (Decoder::new(), STREAM.get(FILE_HEADER..).unwrap_or_default());
    let mut pictures = Vec::new();
    for frame in 0.. {
        if pictures.len() == count {
            break;
        }
        let header = rest.get(..FRAME_HEADER).context("the stream has too few pictures")?;
        let len = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let chunk = rest.get(FRAME_HEADER..FRAME_HEADER + len).context("the stream is cut off")?;
        rest = &rest[FRAME_HEADER + len..];
        let frames = decoder.decode(chunk)?;
        if frame % 3 != 0 {
            continue;
        }
        let luma = &frames.last().context("a chunk without a picture")?.picture.planes()[0];
        let (width, height) = (luma.width(), luma.height());
        ensure!(width > 0 && height > 0, "an empty picture");
        let mut picture = Vec::with_capacity(size.area());
        for y in 0..size.height {
            let row = luma.row(mirrored(y, height));
            picture.extend((0..size.width).map(|x| row[mirrored(x, width)]));
        }
        pictures.push(picture);
    }
    Ok(pictures)
}

/// The index in a row of `len` samples that place `at` shows, where the row goes on mirrored.
fn mirrored(at: usize, len: usize) -> usize {
    let at = at % (2 * len);
    if at < len { at } else { 2 * len - 1 - at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_differ_and_go_on_mirrored() {
        let size = Size { width: 200, height: 100 };
        let pictures = pictures(size, 3).unwrap();
        assert!(pictures[0] != pictures[1] && pictures[1] != pictures[2]);
        for picture in pictures {
            assert_eq!(picture.len(), size.area());
            assert_eq!(picture[160], picture[161], "161 samples, then back again");
        }
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|at| mirrored(at, 3)), [0, 1, 2, 2, 1, 0, 0]);
    }
}
