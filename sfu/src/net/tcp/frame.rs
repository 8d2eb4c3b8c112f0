//! Framing of datagrams on TCP: each follows its length in two bytes (RFC 4571 §2).

use thiserror::Error;

/// Longest datagram of a client, in bytes. WebRTC's datagrams fit an Ethernet packet.
pub(super) const MAX_FRAME: usize = 2048;
/// Bytes of a frame's length field.
const LENGTH: usize = 2;

/// A frame is longer than [`MAX_FRAME`] bytes, so the sender is not a WebRTC client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the frame has {0} bytes, more than {MAX_FRAME}: the sender is not a WebRTC client")]
pub(super) struct Oversize(usize);

/// A datagram as a frame; `None` if it is longer than the length field of two bytes can say.
pub(super) fn framed(datagram: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(datagram.len()).ok()?;
    let mut frame = Vec::with_capacity(LENGTH + datagram.len());
    frame.extend(length.to_be_bytes());
    frame.extend(datagram);
    Some(frame)
}

/// Splits a stream into datagrams, with a fixed buffer.
pub(super) struct Deframer {
    room: Box<[u8]>,
    /// Start of the unread bytes in the buffer. Their end is `end`.
    begin: usize,
    end: usize,
}

impl Deframer {
    /// An empty buffer.
    pub(super) fn new() -> Deframer {
        Deframer { room: vec![0; 2 * (LENGTH + MAX_FRAME)].into_boxed_slice(), begin: 0, end: 0 }
    }

    /// Buffer for the next bytes of the stream. Not empty after [`Deframer::next`] has returned `None`.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.begin > 0 {
            self.room.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
        }
        &mut self.room[self.end..]
    }

    /// Marks bytes of [`Deframer::room`] as received.
    pub(super) fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.room.len());
    }

    /// The next complete datagram.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Oversize> {
        let Some((head, rest)) = self.room[self.begin..self.end].split_first_chunk::<LENGTH>()
        else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes(*head));
        if length > MAX_FRAME {
            return Err(Oversize(length));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let at = self.begin + LENGTH;
        self.begin = at + length;
        Ok(Some(&self.room[at..at + length]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What comes of a stream that is read in pieces of these sizes, over and over.
    fn read(stream: &[u8], sizes: &[usize]) -> Result<Vec<Vec<u8>>, Oversize> {
        let (mut deframer, mut frames, mut rest) = (Deframer::new(), Vec::new(), stream);
        let mut sizes = sizes.iter().cycle();
        while !rest.is_empty() {
            let room = deframer.room();
            assert!(!room.is_empty());
            let n = (*sizes.next().expect("size")).clamp(1, room.len().min(rest.len()));
            room[..n].copy_from_slice(&rest[..n]);
            deframer.filled(n);
            rest = &rest[n..];
            while let Some(frame) = deframer.next()? {
                frames.push(frame.to_vec());
            }
        }
        Ok(frames)
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in_whatever_the_pieces(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 0..12),
            sizes in prop::collection::vec(1usize..3000, 1..6),
        ) {
            let stream: Vec<u8> = frames.iter().flat_map(|f| framed(f).expect("short")).collect();
            prop_assert_eq!(read(&stream, &sizes), Ok(frames));
        }

        #[test]
        fn foreign_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..8000), size in 1usize..5000) {
            let _ = read(&bytes, &[size]);
        }
    }

    #[test]
    fn the_longest_frame_passes_byte_by_byte_and_a_longer_one_is_refused_by_its_length_alone() {
        let longest = framed(&[7; MAX_FRAME]).expect("frame");
        assert_eq!(read(&[&longest[..], &longest].concat(), &[1]), Ok(vec![vec![7; MAX_FRAME]; 2]));
        assert_eq!(read(&[0x08, 0x01], &[1]), Err(Oversize(MAX_FRAME + 1)));
        assert_eq!(read(b"GET / HTTP/1.1\r\n", &[16]), Err(Oversize(0x4745)));
        assert_eq!(framed(&vec![0; 65_536]), None);
    }
}
