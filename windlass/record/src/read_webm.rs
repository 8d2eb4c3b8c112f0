//! Reads the WebM files that [`crate::webm`] writes, block by block. Other elements are skipped. A file may be damaged,
//! or made by others: it is then refused with an error, or ends where it is cut off.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::webm::{CLUSTER, EPOCH_2001, INFO, SEGMENT, Slot, TRACKS};

/// Maximum size of a block, in bytes.
const MAX_BLOCK: u64 = 16 << 20;
/// Maximum size of the description of the file and of its tracks, in bytes each.
const MAX_HEAD: u64 = 64 << 10;

/// Error of a file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The disk.
    #[error("{0}")]
    Disk(#[from] io::Error),
    /// Not such a file.
    #[error(
        "it is damaged, or another program wrote it: change no file before its enhanced picture is made"
    )]
    Damaged,
}

/// A frame or packet of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) slot: Slot,
    /// Time in the file.
    pub(crate) at: Duration,
    pub(crate) key: bool,
    pub(crate) data: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Cluster {
    end: u64,
    begins_ms: u64,
}

/// Reads a file.
pub(crate) struct Reader<R> {
    input: BufReader<R>,
    /// Place in the file.
    at: u64,
    len: u64,
    /// Time at which the file's first frame was made.
    began: SystemTime,
    audio: bool,
    cluster: Option<Cluster>,
}

impl<R: Read + Seek> Reader<R> {
    /// Reads the head of a file.
    pub(crate) fn new(mut input: R) -> Result<Reader<R>, ReadError> {
        let len = input.seek(SeekFrom::End(0))?;
        input.seek(SeekFrom::Start(0))?;
        let input = BufReader::with_capacity(256 << 10, input);
        let mut reader =
            Reader { input, at: 0, len, began: UNIX_EPOCH, audio: false, cluster: None };
        if reader.element()?.is_none_or(|(id, size)| id != 0x1a45_dfa3 || !reader.skip(size)) {
            return Err(ReadError::Damaged);
        }
        loop {
            let (id, size) = reader.element()?.ok_or(ReadError::Damaged)?;
            match id {
                SEGMENT => {}
                INFO => reader.began = began(&reader.bytes(size, MAX_HEAD)?),
                TRACKS => {
                    let tracks = reader.bytes(size, MAX_HEAD)?;
                    reader.audio = tracks.windows(6).any(|text| text == b"A_OPUS");
                    return Ok(reader);
                }
                _ if reader.skip(size) => {}
                _ => return Err(ReadError::Damaged),
            }
        }
    }

    /// Time at which the file's first frame was made.
    pub(crate) fn began(&self) -> SystemTime {
        self.began
    }

    /// Whether the file has an audio track.
    pub(crate) fn has_audio(&self) -> bool {
        self.audio
    }

    /// The next frame or packet; `None` at the end of the file, and where it is cut off.
    pub(crate) fn next(&mut self) -> Result<Option<Block>, ReadError> {
        loop {
            let within = self.cluster.filter(|cluster| self.at < cluster.end);
            let Some((id, size)) = self.element()? else { return Ok(None) };
            let end = self.at.saturating_add(size);
            match (id, within) {
                (CLUSTER, None) => self.cluster = Some(Cluster { end, begins_ms: 0 }),
                (0xe7, Some(cluster)) => {
                    let ms = self.bytes(size, 8)?;
                    let begins_ms = ms.iter().fold(0, |ms, &byte| ms << 8 | u64::from(byte));
                    self.cluster = Some(Cluster { begins_ms, ..cluster });
                }
                (0xa3, Some(_)) if end > self.len => return Ok(None),
                (0xa3, Some(cluster)) if end <= cluster.end => {
                    let block = self.bytes(size, MAX_BLOCK)?;
                    if let Some(block) = block_of(cluster, &block) {
                        return Ok(Some(block));
                    }
                }
                _ if self.skip(size) => {}
                _ => return Ok(None),
            }
        }
    }

    /// Reads the identifier and size of an element; `None` at the end of the file.
    fn element(&mut self) -> Result<Option<(u32, u64)>, ReadError> {
        let Some(first) = self.byte()? else { return Ok(None) };
        let mut id = u32::from(first);
        let more = first.leading_zeros();
        if more > 3 {
            return Err(ReadError::Damaged);
        }
        for _ in 0..more {
            let Some(byte) = self.byte()? else { return Ok(None) };
            id = id << 8 | u32::from(byte);
        }
        let Some(first) = self.byte()? else { return Ok(None) };
        let more = first.leading_zeros();
        if more > 7 {
            return Err(ReadError::Damaged);
        }
        let mut size = u64::from(first) & !(0x80 >> more);
        for _ in 0..more {
            let Some(byte) = self.byte()? else { return Ok(None) };
            size = size << 8 | u64::from(byte);
        }
        Ok(Some((id, size)))
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        match self.input.read_exact(&mut byte) {
            Ok(()) => {
                self.at += 1;
                Ok(Some(byte[0]))
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn bytes(&mut self, size: u64, max: u64) -> Result<Vec<u8>, ReadError> {
        if size > max || size > self.len.saturating_sub(self.at) {
            return Err(ReadError::Damaged);
        }
        let mut bytes = vec![0; size as usize];
        self.input.read_exact(&mut bytes)?;
        self.at += size;
        Ok(bytes)
    }

    /// Skips the data of an element. Returns `false` if the file ends within it.
    fn skip(&mut self, size: u64) -> bool {
        let there = size <= self.len.saturating_sub(self.at);
        let skipped = there && self.input.seek_relative(size as i64).is_ok();
        self.at += if skipped { size } else { 0 };
        skipped
    }
}

/// The frame or packet of a block of one of our tracks.
fn block_of(cluster: Cluster, block: &[u8]) -> Option<Block> {
    let ([track, high, low, flags], data) = block.split_first_chunk::<4>()?;
    let slot = [Slot::Video, Slot::Audio].into_iter().find(|s| 0x80 | s.number() == *track)?;
    let ms = cluster.begins_ms.saturating_add(u16::from_be_bytes([*high, *low]).into());
    let (at, key) = (Duration::from_millis(ms), flags & 0x80 != 0);
    Some(Block { slot, at, key, data: data.to_vec() })
}

/// The date in the description of a file.
fn began(info: &[u8]) -> SystemTime {
    // DateUTC: an integer of eight bytes, nanoseconds since 2001.
    let date = info.windows(11).find(|bytes| bytes.starts_with(&[0x44, 0x61, 0x88]));
    let ns = date.and_then(|bytes| bytes[3..].try_into().ok()).map_or(0, i64::from_be_bytes);
    let since = Duration::from_nanos(ns.max(0).unsigned_abs());
    UNIX_EPOCH + Duration::from_secs(EPOCH_2001.unsigned_abs()) + since
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;
    use windlass_types::Size;

    use super::*;
    use crate::webm::{Shape, VideoCodec, Webm};

    const BOTH: Shape = Shape { video: Some(Size::new(320, 180)), audio: true };

    fn blocks(bytes: &[u8]) -> Result<Vec<Block>, ReadError> {
        let mut reader = Reader::new(Cursor::new(bytes))?;
        let mut all = Vec::new();
        while let Some(block) = reader.next()? {
            all.push(block);
        }
        Ok(all)
    }

    fn file(frames: &[(bool, bool, u64, usize)], finished: bool) -> (Vec<u8>, Vec<Block>) {
        let began = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let (mut webm, mut bytes) = Webm::new(BOTH, VideoCodec::Vp9, began);
        let (mut at, mut expected) = (Duration::ZERO, Vec::new());
        for &(video, key, step, len) in frames {
            at += Duration::from_millis(step);
            let slot = if video { Slot::Video } else { Slot::Audio };
            let data = vec![7; len];
            bytes.extend(webm.push(slot, at, key, &data).unwrap_or_default());
            expected.push(Block { slot, at, key, data });
        }
        if finished {
            let finish = webm.finish();
            bytes.extend_from_slice(&finish.tail);
            for patch in finish.patches {
                bytes[patch.at as usize..][..patch.bytes.len()].copy_from_slice(&patch.bytes);
            }
        }
        (bytes, expected)
    }

    proptest! {
        #[test]
        fn every_frame_is_read_as_it_was_written(
            frames in prop::collection::vec((any::<bool>(), any::<bool>(), 0u64..3000, 0usize..40), 1..80)
        ) {
            let (bytes, expected) = file(&frames, true);
            prop_assert_eq!(blocks(&bytes).unwrap(), expected);
        }

        #[test]
        fn no_bytes_do_harm(noise in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..2000, byte: u8) {
            let _ = blocks(&noise);
            let (mut bytes, _) = file(&[(true, true, 30, 20); 30], true);
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = blocks(&bytes);
            let _ = blocks(&bytes[..at]);
        }
    }

    #[test]
    fn a_file_of_a_killed_server_has_its_whole_clusters() {
        let frames: Vec<_> = (0..200).map(|n| (true, n % 50 == 0, 33, 99)).collect();
        let (bytes, expected) = file(&frames, false);
        let read = blocks(&bytes).unwrap();
        assert!(read.len() >= 150 && read[..] == expected[..read.len()]);
        let began = Reader::new(Cursor::new(&bytes)).unwrap();
        assert_eq!(began.began(), UNIX_EPOCH + Duration::from_secs(1_800_000_000));
        assert!(began.has_audio());
    }
}
