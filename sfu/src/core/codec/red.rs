//! Opus with redundancy (RED, RFC 2198): a packet repeats the blocks of earlier packets, each with a header.
//!
//! Block headers contain payload types, which are local to a connection. So they are renamed for subscribers with other
//! types. Subscribers without RED get the newest block alone.

/// Maximum number of blocks in a packet. Senders repeat one to three.
const MAX_BLOCKS: usize = 8;

/// A parsed packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Red<'a> {
    /// The payload.
    payload: &'a [u8],
    /// Bytes of the block headers.
    headers: usize,
    /// Offset of the newest block.
    primary: usize,
}

impl<'a> Red<'a> {
    /// Parses a payload whose blocks all have type `pt`; `None` if it is malformed or has other types (RFC 2198 permits
    /// them; browsers do not send them).
    pub(crate) fn parse(payload: &'a [u8], pt: u8) -> Option<Red<'a>> {
        let (mut at, mut repeated) = (0, 0);
        for _ in 0..MAX_BLOCKS {
            let &first = payload.get(at)?;
            if first & 0x7f != pt {
                return None;
            }
            if first & 0x80 == 0 {
                let headers = at + 1;
                let primary = headers + repeated;
                return (primary <= payload.len()).then_some(Red { payload, headers, primary });
            }
            let header = payload.get(at..at + 4)?;
            repeated += usize::from(header[2] & 0x03) << 8 | usize::from(header[3]);
            at += 4;
        }
        None
    }

    /// All blocks, the oldest first. Each has its age in RTP ticks, counted back from the packet, and its bytes.
    pub(crate) fn blocks(self) -> impl Iterator<Item = (u32, &'a [u8])> {
        let mut at = self.headers;
        let repeated = (0..self.headers - 1).step_by(4).map(move |header| {
            let header = &self.payload[header..header + 4];
            let ticks = u32::from(header[1]) << 6 | u32::from(header[2] >> 2);
            let len = usize::from(header[2] & 0x03) << 8 | usize::from(header[3]);
            let block = &self.payload[at..at + len];
            at += len;
            (ticks, block)
        });
        repeated.chain([(0, self.primary())])
    }

    /// The newest block: the packet without redundancy.
    pub(crate) fn primary(self) -> &'a [u8] {
        &self.payload[self.primary..]
    }

    /// The payload with blocks of type `pt`.
    pub(crate) fn renamed(self, pt: u8) -> Vec<u8> {
        let mut renamed = self.payload.to_vec();
        for at in (0..self.headers).step_by(4) {
            renamed[at] = renamed[at] & 0x80 | pt & 0x7f;
        }
        renamed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// More blocks follow that with such a header.
    const MORE: u8 = 0x80;
    /// One block of three bytes repeated from 960 ticks ago, and one of two.
    const TWO: [u8; 10] = [MORE + 111, 0x0f, 0x00, 3, 111, 1, 2, 3, 8, 9];

    #[test]
    fn the_newest_block_is_the_last() {
        assert_eq!(Red::parse(&TWO, 111).expect("sound").primary(), [8, 9]);
        assert_eq!(Red::parse(&[111, 5], 111).expect("no repetition").primary(), [5]);
        assert_eq!(Red::parse(&[111], 111).expect("silence").primary(), [0_u8; 0]);
    }

    #[test]
    fn repeated_blocks_are_older_by_their_ticks() {
        let blocks: Vec<_> = Red::parse(&TWO, 111).expect("sound").blocks().collect();
        assert_eq!(blocks, [(960, &[1, 2, 3][..]), (0, &[8, 9][..])]);
    }

    #[test]
    fn blocks_are_renamed_and_nothing_else() {
        let renamed = Red::parse(&TWO, 111).expect("sound").renamed(109);
        assert_eq!(renamed, [MORE + 109, 0x0f, 0x00, 3, 109, 1, 2, 3, 8, 9]);
        assert_eq!(Red::parse(&renamed, 109).expect("sound").renamed(111), TWO);
    }

    #[test]
    fn what_is_cut_short_mixed_or_endless_is_none() {
        for cut in 0..8 {
            assert_eq!(Red::parse(&TWO[..cut], 111), None, "{cut}");
        }
        assert_eq!(Red::parse(&TWO, 110), None);
        assert_eq!(Red::parse(&[MORE + 111, 0, 0, 0].repeat(9), 111), None);
    }

    proptest! {
        #[test]
        fn no_bytes_end_the_parser(payload in prop::collection::vec(any::<u8>(), 0..64), pt in 0u8..128) {
            if let Some(red) = Red::parse(&payload, pt) {
                prop_assert!(red.primary().len() < payload.len());
                prop_assert_eq!(red.renamed(pt), payload.clone());
                let bytes: usize = red.blocks().map(|(_, block)| block.len()).sum();
                prop_assert_eq!(bytes + red.headers, payload.len());
            }
        }
    }
}
