//! Reads the anchors of a file, as [`crate::anchors`] writes them. A file that was cut off or damaged ends there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use windlass_types::Size;
use windlass_types::message::{
    AnchorHeader, HEADER_BYTES, MAX_CHUNK, ReassembledAnchor, Reassembler,
};

/// Maximum number of messages that are read. Their places are kept in memory.
const MAX_MESSAGES: usize = 4 << 20;
/// Maximum number of messages of a frame; what comes later is left out.
const MAX_OF_FRAME: usize = 1024;

/// Place of a message in the file.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: u64,
    len: u32,
}

/// The anchors of a file, by the number of their frame.
pub(crate) struct AnchorFile {
    file: File,
    places: BTreeMap<u32, Vec<Place>>,
    /// Sizes of the anchors, with the numbers of their frames.
    sizes: Vec<(u32, Size)>,
}

impl AnchorFile {
    /// Opens a file, and finds its messages.
    pub(crate) fn open(path: &Path) -> io::Result<AnchorFile> {
        let file = File::open(path)?;
        let mut input = BufReader::new(&file);
        let (mut places, mut sizes) = (BTreeMap::<u32, Vec<Place>>::new(), Vec::new());
        let (mut at, mut len) = (0_u64, [0; 4]);
        let mut message = Vec::new();
        for _ in 0..MAX_MESSAGES {
            if input.read_exact(&mut len).is_err() {
                break;
            }
            at += len.len() as u64;
            let len = u32::from_be_bytes(len);
            if len as usize > HEADER_BYTES + MAX_CHUNK {
                break;
            }
            message.resize(len as usize, 0);
            if input.read_exact(&mut message).is_err() {
                break;
            }
            let Ok((header, _)) = AnchorHeader::parse(&message) else { break };
            places.entry(header.rtp_timestamp).or_default().push(Place { at, len });
            if header.chunk_index == 0 {
                sizes.push((header.rtp_timestamp, header.size));
            }
            at += u64::from(len);
        }
        drop(input);
        Ok(AnchorFile { file, places, sizes })
    }

    /// Sizes of the anchors, with the numbers of their frames.
    pub(crate) fn sizes(&self) -> &[(u32, Size)] {
        &self.sizes
    }

    /// The complete anchors of a frame.
    pub(crate) fn of_frame(&mut self, number: u32) -> io::Result<Vec<ReassembledAnchor>> {
        let (mut anchors, mut reassembler) = (Vec::new(), Reassembler::new());
        let places = self.places.remove(&number).unwrap_or_default();
        for Place { at, len } in places.into_iter().take(MAX_OF_FRAME) {
            let mut message = vec![0; len as usize];
            self.file.seek(SeekFrom::Start(at))?;
            self.file.read_exact(&mut message)?;
            anchors.extend(reassembler.push(&message).ok().flatten());
        }
        Ok(anchors)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windlass_types::AnchorSource;
    use windlass_types::message::HTJ2K;

    use super::*;
    use crate::anchors::framed;

    const HIGH: Size = Size::new(640, 360);

    fn written(anchors: &[(u32, usize)]) -> Vec<u8> {
        let header = |number| AnchorHeader::new(HTJ2K, AnchorSource::Enhanced, number, HIGH);
        let framed = anchors.iter().map(|&(n, len)| framed(&header(n), &vec![5; len]).unwrap());
        framed.flatten().collect()
    }

    fn open(bytes: &[u8]) -> AnchorFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        AnchorFile::open(file.path()).unwrap()
    }

    #[test]
    fn anchors_are_found_by_their_frame_in_any_order() {
        let mut file = open(&written(&[(5, 40_000), (2, 10)]));
        assert_eq!(file.sizes(), [(5, HIGH), (2, HIGH)]);
        assert_eq!(file.of_frame(2).unwrap()[0].payload.len(), 10);
        assert!(file.of_frame(3).unwrap().is_empty());
        assert_eq!(file.of_frame(5).unwrap()[0].payload.len(), 40_000);
    }

    #[test]
    fn a_file_that_is_cut_off_has_its_whole_anchors() {
        let bytes = written(&[(1, 100), (2, 40_000)]);
        let mut file = open(&bytes[..bytes.len() - 1]);
        assert_eq!(file.of_frame(1).unwrap().len(), 1);
        assert!(file.of_frame(2).unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..400), at in 0usize..400, byte: u8) {
            open(&bytes);
            let mut damaged = written(&[(1, 100), (1, 200)]);
            let at = at % damaged.len();
            damaged[at] = byte;
            let mut file = open(&damaged);
            for (number, _) in file.sizes().to_vec() {
                file.of_frame(number).unwrap();
            }
        }
    }
}
