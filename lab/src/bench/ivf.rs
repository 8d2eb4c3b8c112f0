//! IVF files of VP9: a 32-byte header, then chunks with 12 bytes before each (size u32, time u64), all little endian.

use anyhow::{Context, Result, ensure};

/// The contents of an IVF file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ivf {
    /// The chunks: frames or superframes.
    pub chunks: Vec<Vec<u8>>,
    /// Chunks per second by the file's clock.
    pub fps: f64,
}

/// Reads a file. The error says why it is not an IVF file of VP9.
pub(crate) fn read(bytes: &[u8]) -> Result<Ivf> {
    ensure!(
        bytes.starts_with(b"DKIF") && bytes.get(8..12) == Some(b"VP90"),
        "this is not an IVF file of VP9"
    );
    let number = |at: usize, size: usize| -> Option<u64> {
        let field = bytes.get(at..at.checked_add(size)?)?;
        Some(field.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    };
    let header = || Some((number(6, 2)?, number(16, 4)?, number(20, 4)?));
    let (mut at, ticks, per) = header()
        .map(|(at, ticks, per)| (at as usize, ticks as f64, per.max(1) as f64))
        .context("the header is truncated")?;
    let (mut chunks, mut times) = (Vec::new(), Vec::new());
    while let (Some(size), Some(time)) = (number(at, 4), number(at + 4, 8)) {
        let data = bytes.get(at + 12..at + 12 + size as usize);
        chunks.push(data.with_context(|| format!("frame {} is truncated", chunks.len()))?.to_vec());
        times.push(time as f64);
        at += 12 + size as usize;
    }
    ensure!(!chunks.is_empty(), "there are no frames in it");
    let span = times[times.len() - 1] - times[0];
    let fps = if span > 0.0 { (times.len() - 1) as f64 * ticks / per / span } else { ticks / per };
    Ok(Ivf { chunks, fps })
}

/// Writes an IVF file of chunks at `fps` frames per second.
pub(crate) fn write(chunks: &[Vec<u8>], width: usize, height: usize, fps: u32) -> Vec<u8> {
    let mut out = b"DKIF\0\0\x20\0VP90".to_vec();
    out.extend((width as u16).to_le_bytes());
    out.extend((height as u16).to_le_bytes());
    for n in [fps, 1, chunks.len() as u32, 0] {
        out.extend(n.to_le_bytes());
    }
    for (time, chunk) in chunks.iter().enumerate() {
        out.extend((chunk.len() as u32).to_le_bytes());
        out.extend((time as u64).to_le_bytes());
        out.extend(chunk);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_reads_back() {
        let chunks = vec![vec![1, 2, 3], vec![4], vec![]];
        let file = write(&chunks, 8, 8, 25);
        assert_eq!(read(&file).unwrap(), Ivf { chunks, fps: 25.0 });
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let file = write(&[vec![1], vec![2, 3]], 8, 8, 30);
        let error = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert!(error(&file[..file.len() - 1]).contains("frame 1"));
        assert!(error(&file[..20]).contains("header"));
        assert!(error(&file[..32]).contains("no frames"));
        assert!(error(b"RIFF").contains("not an IVF"));
    }
}
