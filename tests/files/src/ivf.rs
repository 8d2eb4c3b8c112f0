//! IVF files, most of VP9: a header of 32 bytes, then frames with 12 bytes before each (length u32, time u64), all
//! little endian.

use std::fmt;

/// The contents of an IVF file.
#[derive(Debug, Clone, PartialEq)]
pub struct Ivf<'a> {
    /// The frames, or superframes.
    pub frames: Vec<&'a [u8]>,
    /// Width and height, as the header has them.
    pub size: (usize, usize),
    /// Frames per second by the file's clock.
    pub fps: f64,
}

/// Why bytes are no IVF file, or not one of VP9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IvfError {
    /// Another kind of file.
    Other,
    /// The header is truncated.
    Header,
    /// The frame of that number is truncated.
    Frame(usize),
    /// There are no frames.
    Empty,
}

impl fmt::Display for IvfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IvfError::Other => f.write_str("this is not an IVF file of VP9"),
            IvfError::Header => f.write_str("the header is truncated"),
            IvfError::Frame(number) => write!(f, "frame {number} is truncated"),
            IvfError::Empty => f.write_str("there are no frames in it"),
        }
    }
}

impl std::error::Error for IvfError {}

/// Reads a file of VP9.
///
/// # Errors
///
/// Fails if it is no IVF file of VP9, is truncated, or has no frames.
pub fn read(file: &[u8]) -> Result<Ivf<'_>, IvfError> {
    if file.get(8..12) != Some(b"VP90") {
        return Err(IvfError::Other);
    }
    read_any(file)
}

/// Reads a file, of whatever codec.
///
/// # Errors
///
/// Fails if it is no IVF file, is truncated, or has no frames.
pub fn read_any(file: &[u8]) -> Result<Ivf<'_>, IvfError> {
    if !file.starts_with(b"DKIF") {
        return Err(IvfError::Other);
    }
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let field = file.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    };
    let header = || {
        let size = (number(12, 2)? as usize, number(14, 2)? as usize);
        Some((number(6, 2)? as usize, size, number(16, 4)? as f64, number(20, 4)?.max(1) as f64))
    };
    let (mut at, size, ticks, per) = header().ok_or(IvfError::Header)?;
    let (mut frames, mut times) = (Vec::new(), Vec::new());
    while let (Some(length), Some(time)) = (number(at, 4), number(at + 4, 8)) {
        let end = at + 12 + length as usize;
        frames.push(file.get(at + 12..end).ok_or(IvfError::Frame(frames.len()))?);
        times.push(time as f64);
        at = end;
    }
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return Err(IvfError::Empty);
    };
    let span = last - first;
    let fps = if span > 0.0 { (times.len() - 1) as f64 * ticks / per / span } else { ticks / per };
    Ok(Ivf { frames, size, fps })
}

/// The frames of a file that is known to be sound: a fixture, or what an encoder has just made.
///
/// # Panics
///
/// Where [`read`] fails.
#[track_caller]
pub fn frames(file: &[u8]) -> Vec<&[u8]> {
    read(file).unwrap_or_else(|error| panic!("{error}")).frames
}

/// Writes a file of frames, one in each tick of its clock.
pub fn write(frames: &[impl AsRef<[u8]>], (width, height): (usize, usize), fps: u32) -> Vec<u8> {
    let mut file = b"DKIF\0\0\x20\0VP90".to_vec();
    file.extend([width, height].map(|side| (side as u16).to_le_bytes()).concat());
    file.extend([fps, 1, frames.len() as u32, 0].map(u32::to_le_bytes).concat());
    for (time, frame) in frames.iter().map(AsRef::as_ref).enumerate() {
        file.extend((frame.len() as u32).to_le_bytes());
        file.extend((time as u64).to_le_bytes());
        file.extend(frame);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_reads_back() {
        let frames: [&[u8]; 3] = [&[1, 2, 3], &[4], &[]];
        let file = write(&frames, (8, 6), 25);
        assert_eq!(read(&file), Ok(Ivf { frames: frames.to_vec(), size: (8, 6), fps: 25.0 }));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let file = write(&[vec![1], vec![2, 3]], (8, 8), 30);
        assert_eq!(read(&file[..file.len() - 1]), Err(IvfError::Frame(1)));
        assert_eq!(read(&file[..20]), Err(IvfError::Header));
        assert_eq!(read(&file[..32]), Err(IvfError::Empty));
        assert_eq!(read(b"RIFF"), Err(IvfError::Other));
        assert_eq!(read_any(b"RIFF"), Err(IvfError::Other));
    }

    #[test]
    fn a_file_of_another_codec_is_read_where_any_will_do() {
        let mut file = write(&[vec![1]], (8, 8), 30);
        file[8..12].copy_from_slice(b"AV01");
        assert_eq!(read(&file), Err(IvfError::Other));
        assert_eq!(read_any(&file).map(|ivf| ivf.frames.len()), Ok(1));
    }
}
