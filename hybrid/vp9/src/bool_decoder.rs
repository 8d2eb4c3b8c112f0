//! The arithmetic decoder (specification §9.2).
//!
//! The specification shifts one bit at a time; this form keeps up to 64 bits of the stream in a
//! register and normalises by the count of leading zeros, with the same results.

/// Added to the count of bits once the data has ended, so that refilling stops.
const ENDLESS: i32 = 0x4000_0000;

/// Doublings that bring a range to at least 128.
static NORMALISE: [u8; 256] = {
    let mut table = [0; 256];
    let mut range = 1;
    while range < 256 {
        table[range] = (range as u8).leading_zeros() as u8;
        range += 1;
    }
    table
};

/// Decodes the bools of one partition. Past the end of the data it reads zeros.
#[derive(Debug, Clone, Default)]
pub(crate) struct BoolDecoder<'a> {
    /// The stream's next bits, the next one on top.
    value: u64,
    /// 128 to 255.
    range: u32,
    /// Bits in `value` below its top byte; negative when a refill is due.
    bits: i32,
    data: &'a [u8],
}

impl<'a> BoolDecoder<'a> {
    /// `init_bool`: `None` when there is no data or the marker bit is set.
    pub(crate) fn new(data: &'a [u8]) -> Option<Self> {
        if data.is_empty() {
            return None;
        }
        let mut decoder = Self { value: 0, range: 255, bits: -8, data };
        decoder.fill();
        (!decoder.bool(128)).then_some(decoder)
    }

    #[inline]
    fn fill(&mut self) {
        // `bits + 8` of the 64 are in use.
        let free = 56 - (self.bits + 8);
        if let Some(next) = self.data.first_chunk::<8>() {
            let take = (free & !7) + 8;
            let next = u64::from_be_bytes(*next) >> (64 - take);
            self.value |= next << (free & 7);
            self.bits += take;
            self.data = &self.data[take as usize / 8..];
        } else {
            self.fill_last();
        }
    }

    #[cold]
    fn fill_last(&mut self) {
        let mut shift = 56 - (self.bits + 8);
        while shift >= 0 {
            let Some((&byte, rest)) = self.data.split_first() else {
                self.bits += ENDLESS;
                return;
            };
            self.value |= u64::from(byte) << shift;
            self.data = rest;
            self.bits += 8;
            shift -= 8;
        }
    }

    /// One bool whose probability of being false is `probability / 256`, `B(p)`.
    #[inline(always)]
    pub(crate) fn bool(&mut self, probability: u8) -> bool {
        let split = 1 + (((self.range - 1) * u32::from(probability)) >> 8);
        if self.bits < 0 {
            self.fill();
        }
        let big = u64::from(split) << 56;
        // Two ways on purpose: the way that is predicted need not wait for the comparison.
        if self.value >= big {
            self.range -= split;
            self.value -= big;
            self.normalise();
            true
        } else {
            self.range = split;
            self.normalise();
            false
        }
    }

    /// Doubles the range until it is at least 128.
    #[inline(always)]
    fn normalise(&mut self) {
        let shift = NORMALISE[usize::from(self.range as u8)];
        self.range <<= shift;
        self.value <<= shift;
        self.bits -= i32::from(shift);
    }

    /// An even bool, `L(1)`.
    #[inline(always)]
    pub(crate) fn bit(&mut self) -> bool {
        self.bool(128)
    }

    /// `n` even bools, most significant first, `L(n)`.
    #[inline]
    pub(crate) fn literal(&mut self, n: u32) -> u32 {
        (0..n).fold(0, |v, _| v << 1 | u32::from(self.bit()))
    }

    /// A symbol of a tree (§9.3.1): positive entries lead on, others are the negated symbols.
    #[inline]
    pub(crate) fn tree(&mut self, tree: &[i8], probabilities: &[u8]) -> u8 {
        let mut i = 0usize;
        loop {
            let bit = self.bool(probabilities[i >> 1]);
            let next = tree[i + usize::from(bit)];
            if next <= 0 {
                return next.unsigned_abs();
            }
            i = next as usize;
        }
    }

    /// Whether bools were decoded from beyond the end of the data: the partition was truncated.
    pub(crate) fn overrun(&self) -> bool {
        self.bits > 64 && self.bits < ENDLESS - 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The decoder as §9.2 writes it, bit by bit.
    struct Literal<'a> {
        data: &'a [u8],
        position: usize,
        value: u32,
        range: u32,
    }

    impl<'a> Literal<'a> {
        fn new(data: &'a [u8]) -> Self {
            let mut d = Self { data, position: 0, value: 0, range: 255 };
            for _ in 0..8 {
                d.value = d.value << 1 | d.next();
            }
            d
        }

        fn next(&mut self) -> u32 {
            let byte = self.data.get(self.position / 8).copied().unwrap_or(0);
            let bit = byte >> (7 - self.position % 8) & 1;
            self.position += 1;
            u32::from(bit)
        }

        fn bool(&mut self, p: u8) -> bool {
            let split = 1 + (((self.range - 1) * u32::from(p)) >> 8);
            let bit = self.value >= split;
            if bit {
                self.range -= split;
                self.value -= split;
            } else {
                self.range = split;
            }
            while self.range < 128 {
                self.range *= 2;
                self.value = self.value << 1 | self.next();
            }
            bit
        }
    }

    proptest! {
        #[test]
        fn every_bool_equals_the_specification(
            mut data in proptest::collection::vec(any::<u8>(), 1..60),
            probabilities in proptest::collection::vec(1u8.., 1..800),
        ) {
            data[0] &= 0x7f;
            let mut fast = BoolDecoder::new(&data).expect("the marker is clear");
            let mut slow = Literal::new(&data);
            prop_assert!(!slow.bool(128));
            for p in probabilities {
                prop_assert_eq!(fast.bool(p), slow.bool(p));
                let beyond = slow.position > data.len() * 8;
                prop_assert!(!fast.overrun() || beyond);
            }
        }
    }

    #[test]
    fn a_set_marker_or_no_data_is_refused() {
        assert!(BoolDecoder::new(&[0xff, 0]).is_none());
        assert!(BoolDecoder::new(&[]).is_none());
    }

    #[test]
    fn reading_far_past_the_end_is_noticed() {
        let mut d = BoolDecoder::new(&[0x12, 0x34]).expect("the marker is clear");
        assert!(!d.overrun());
        for _ in 0..200 {
            d.bool(128);
        }
        assert!(d.overrun());
    }
}
