//! Stores long runs of pictures in a temporary file, so that memory stays small.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use tempfile::NamedTempFile;

use windlass_vp9::Picture;

/// Width and height of a picture in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
}

impl Size {
    /// The size with these sides.
    pub(crate) const fn new(width: usize, height: usize) -> Size {
        Size { width, height }
    }

    /// Number of luma samples of a picture.
    pub(crate) fn area(self) -> usize {
        self.width * self.height
    }

    /// The size of a picture.
    pub(crate) fn of(picture: &Picture) -> Size {
        Size { width: picture.width(), height: picture.height() }
    }

    /// Length of a picture as I420, in bytes.
    pub(crate) fn bytes(self) -> usize {
        self.width * self.height + 2 * self.width.div_ceil(2) * self.height.div_ceil(2)
    }
}

/// As messages and the enhancer have it.
impl From<Size> for windlass_types::Size {
    fn from(size: Size) -> windlass_types::Size {
        windlass_types::Size::saturating(size.width, size.height)
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// Many pictures of one size, in a temporary file that is removed with the store.
#[derive(Debug)]
pub(crate) struct FrameStore {
    file: NamedTempFile,
    size: Size,
    count: usize,
}

impl FrameStore {
    /// The size of the store's pictures.
    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// The number of the store's pictures.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The file with the packed pictures, one after the other.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The pictures in order.
    pub(crate) fn frames(&self) -> Result<impl Iterator<Item = Result<Picture>> + use<>> {
        let mut reader = BufReader::with_capacity(
            1 << 20,
            File::open(self.path()).context("reading stored pictures")?,
        );
        let size = self.size;
        let mut bytes = vec![0; size.bytes()];
        Ok((0..self.count).map(move |_| {
            reader.read_exact(&mut bytes).context("reading stored pictures")?;
            Picture::from_i420(size.width, size.height, &bytes).context("reading stored pictures")
        }))
    }
}

/// Fills a [`FrameStore`].
#[derive(Debug)]
pub(crate) struct FrameWriter {
    file: BufWriter<NamedTempFile>,
    size: Size,
    count: usize,
}

impl FrameWriter {
    /// An empty store for pictures of `size`.
    pub(crate) fn new(size: Size) -> Result<FrameWriter> {
        let file = NamedTempFile::with_prefix("windlass-eval-")
            .context("making a temporary file for pictures")?;
        Ok(FrameWriter { file: BufWriter::with_capacity(1 << 20, file), size, count: 0 })
    }

    /// Adds a picture.
    pub(crate) fn push(&mut self, picture: &Picture) -> Result<()> {
        let size = Size::of(picture);
        ensure!(size == self.size, "a {size} picture among {} ones", self.size);
        write_i420(&mut self.file, picture).context(
            "storing pictures in the temporary folder (set TMPDIR to one with more space)",
        )?;
        self.count += 1;
        Ok(())
    }

    /// The store with all pictures.
    pub(crate) fn finish(self) -> Result<FrameStore> {
        let mut file = self.file.into_inner().context("storing pictures")?;
        file.rewind().context("storing pictures")?;
        Ok(FrameStore { file, size: self.size, count: self.count })
    }
}

/// Writes the planes of a picture, one after the other.
pub(crate) fn write_i420(to: &mut impl Write, picture: &Picture) -> std::io::Result<()> {
    picture.planes().into_iter().try_for_each(|plane| to.write_all(plane.samples()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_sizes_round_chroma_up() {
        assert_eq!(Size { width: 5, height: 3 }.bytes(), 15 + 2 * 6);
    }

    #[test]
    fn stored_pictures_come_back_in_order() {
        let size = Size { width: 4, height: 2 };
        let mut writer = FrameWriter::new(size).unwrap();
        let pictures: Vec<Picture> =
            (0..3).map(|n| Picture::from_i420(4, 2, &vec![n; size.bytes()]).unwrap()).collect();
        for picture in &pictures {
            writer.push(picture).unwrap();
        }
        let store = writer.finish().unwrap();
        assert_eq!(store.frames().unwrap().collect::<Result<Vec<_>>>().unwrap(), pictures);
        assert_eq!(store.frames().unwrap().count(), 3);
    }

    #[test]
    fn a_picture_of_another_size_is_refused() {
        let mut writer = FrameWriter::new(Size { width: 4, height: 2 }).unwrap();
        assert!(writer.push(&Picture::grey(2, 2)).is_err());
    }
}
