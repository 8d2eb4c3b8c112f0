//! IVF files: a 32-byte header, then chunks with 12 bytes before each (size u32, time u64, little endian).

use super::Stream;

/// The chunks of an IVF file. The error says why it is none.
///
/// # Errors
///
/// Fails if the bytes are not an IVF file of VP9, or it is truncated.
pub fn read(name: impl Into<String>, bytes: &[u8]) -> Result<Stream, String> {
    let number = |at: usize, size: usize| -> Option<usize> {
        let field = bytes.get(at..at + size)?;
        Some(field.iter().rev().fold(0, |n, &b| n << 8 | usize::from(b)))
    };
    if !bytes.starts_with(b"DKIF") || bytes.get(8..12) != Some(b"VP90") {
        return Err("not an IVF file of VP9".into());
    }
    let mut at = number(6, 2).ok_or("truncated header")?;
    let mut chunks = Vec::new();
    while let Some(size) = number(at, 4) {
        let data = bytes.get(at + 12..at + 12 + size);
        chunks.push(data.ok_or_else(|| format!("chunk {} is truncated", chunks.len()))?.to_vec());
        at += 12 + size;
    }
    Ok(Stream { name: name.into(), chunks })
}

/// An IVF file of the chunks at 30 pictures per second; the size in its header is only informative.
pub fn write(stream: &Stream, width: u16, height: u16) -> Vec<u8> {
    let mut out = b"DKIF\0\0\x20\0VP90".to_vec();
    out.extend(width.to_le_bytes());
    out.extend(height.to_le_bytes());
    for n in [30, 1, stream.chunks.len() as u32, 0] {
        out.extend(n.to_le_bytes());
    }
    for (time, chunk) in stream.chunks.iter().enumerate() {
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
        let stream = Stream { name: "a".into(), chunks: vec![vec![1, 2, 3], vec![4]] };
        let file = write(&stream, 8, 8);
        assert_eq!(read("b", &file).unwrap().chunks, stream.chunks);
        assert!(read("b", &file[..file.len() - 1]).unwrap_err().contains("chunk 1"));
        assert!(read("b", b"RIFF").is_err());
    }
}
