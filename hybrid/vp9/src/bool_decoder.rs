//! The arithmetic decoder (specification §9.2).
//!
//! The specification takes one bit at a time into an 8-bit `BoolValue`. Here `BoolValue` is a
//! fixed-point number: the bits to come are its fraction, 7 bytes at a time. Comparing and
//! subtracting the split at that scale gives the same bools, and a doubling of `BoolRange` only
//! moves the point.

/// Number of bytes that a refill takes: with the 8 bits of `BoolValue` they fill 64 bits.
const REFILL_BYTES: usize = 7;
/// Number of bits that a refill takes.
const REFILL_BITS: i32 = 8 * REFILL_BYTES as i32;
/// Maximum number of padding bits in `BoolValue` with which a partition does not count as truncated.
const MAX_PADDING: i64 = 8;

/// Decodes the bools of one partition. Past the end of the data it reads zeros.
#[derive(Debug, Clone, Default)]
pub(crate) struct BoolDecoder<'a> {
    /// `BoolValue` and its fraction. The number is less than `range` at the same scale.
    value: u64,
    /// The specification's `BoolRange`, 128 to 255.
    range: u32,
    /// Number of bits of the fraction; negative where `value` lacks bits of `BoolValue`.
    fraction: i32,
    /// Number of zero bits that were taken after the end of the data.
    padding: i64,
    /// The bytes that are not in `value` yet.
    data: &'a [u8],
}

impl<'a> BoolDecoder<'a> {
    /// Begins a partition (`init_bool`, §9.2.1). `None` when there is no data or the marker bit is set.
    pub(crate) fn new(data: &'a [u8]) -> Option<Self> {
        let (&first, data) = data.split_first()?;
        let mut decoder =
            Self { value: u64::from(first), range: 255, fraction: 0, padding: 0, data };
        let marker = decoder.read_bool(128);
        (!marker).then_some(decoder)
    }

    /// Reads one bool, which is false with a probability of `p / 256` (`read_bool`, §9.2.2, `B(p)`).
    #[inline(always)]
    pub(crate) fn read_bool(&mut self, p: u8) -> bool {
        if self.fraction < 0 {
            self.refill();
        }
        let split = 1 + (((self.range - 1) * u32::from(p)) >> 8);
        let bound = u64::from(split) << self.fraction;
        // Each arm normalises by itself: the predicted one need not wait for the comparison.
        if self.value < bound {
            self.normalise(split);
            false
        } else {
            self.value -= bound;
            self.normalise(self.range - split);
            true
        }
    }

    /// Sets the range to `range` (1 to 255), doubled until it is at least 128. Each doubling moves one bit from the
    /// fraction to `BoolValue`.
    #[inline(always)]
    fn normalise(&mut self, range: u32) {
        let doublings = (range as u8).leading_zeros();
        self.range = range << doublings;
        self.fraction -= doublings as i32;
    }

    /// Appends bytes to a fraction of -7 to -1 bits.
    #[inline(always)]
    fn refill(&mut self) {
        let bytes = if let Some(&next) = self.data.first_chunk() {
            self.data = &self.data[REFILL_BYTES..];
            u64::from_be_bytes(next) >> (64 - REFILL_BITS)
        } else {
            let (bytes, padding) = last_bytes(self.data);
            self.data = &[];
            self.padding += padding;
            bytes
        };
        self.value = self.value << REFILL_BITS | bytes;
        self.fraction += REFILL_BITS;
    }

    /// Reads one bool that is false with a probability of one half (`L(1)`).
    #[inline(always)]
    pub(crate) fn read_bit(&mut self) -> bool {
        self.read_bool(128)
    }

    /// Reads `n` bools of `L(1)` as a number, most significant first (`L(n)`).
    #[inline]
    pub(crate) fn read_literal(&mut self, n: u32) -> u32 {
        (0..n).fold(0, |x, _| x << 1 | u32::from(self.read_bit()))
    }

    /// Reads a symbol of a tree (§9.3.1): positive entries lead on, others are the negated symbols.
    #[inline]
    pub(crate) fn read_tree(&mut self, tree: &[i8], probabilities: &[u8]) -> u8 {
        let mut node = 0usize;
        loop {
            let bit = self.read_bool(probabilities[node >> 1]);
            let next = tree[node + usize::from(bit)];
            if next <= 0 {
                return next.unsigned_abs();
            }
            node = next as usize;
        }
    }

    /// Whether bools were decoded from beyond the end of the data, so that the partition is truncated. The rest of
    /// the data (`exit_bool`, §9.2.3) is not checked.
    pub(crate) fn overrun(&self) -> bool {
        self.padding - i64::from(self.fraction) > MAX_PADDING
    }
}

/// A refill from the last bytes, at most [`REFILL_BYTES`], with zeros after them, and the number of those zero bits.
#[cold]
fn last_bytes(data: &[u8]) -> (u64, i64) {
    let byte = |i| u64::from(data.get(i).copied().unwrap_or(0));
    let bytes = (0..REFILL_BYTES).fold(0, |bytes, i| bytes << 8 | byte(i));
    (bytes, 8 * REFILL_BYTES.saturating_sub(data.len()) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The procedures of §9.2, word for word.
    struct Specification<'a> {
        data: &'a [u8],
        position: usize,
        bool_value: u32,
        bool_range: u32,
        bool_max_bits: usize,
        /// How often there was no bit for `newBit`.
        padding: usize,
    }

    impl<'a> Specification<'a> {
        fn init_bool(data: &'a [u8]) -> Self {
            let mut s = Self {
                data,
                position: 0,
                bool_value: 0,
                bool_range: 255,
                bool_max_bits: 8 * data.len() - 8,
                padding: 0,
            };
            s.bool_value = (0..8).fold(0, |value, _| value << 1 | s.f1());
            s
        }

        fn f1(&mut self) -> u32 {
            let bit = self.data[self.position / 8] >> (7 - self.position % 8) & 1;
            self.position += 1;
            u32::from(bit)
        }

        fn read_bool(&mut self, p: u8) -> bool {
            let split = 1 + (((self.bool_range - 1) * u32::from(p)) >> 8);
            let bool = if self.bool_value < split {
                self.bool_range = split;
                false
            } else {
                self.bool_range -= split;
                self.bool_value -= split;
                true
            };
            while self.bool_range < 128 {
                let new_bit = if self.bool_max_bits > 0 {
                    self.bool_max_bits -= 1;
                    self.f1()
                } else {
                    self.padding += 1;
                    0
                };
                self.bool_range *= 2;
                self.bool_value = (self.bool_value << 1) + new_bit;
            }
            bool
        }
    }

    proptest! {
        #[test]
        fn every_bool_equals_the_specification(
            mut data in proptest::collection::vec(any::<u8>(), 1..200),
            probabilities in proptest::collection::vec(prop_oneof![1u8.., Just(1u8), Just(255u8)], 1..1500),
        ) {
            data[0] &= 0x7f;
            let mut fast = BoolDecoder::new(&data).expect("the marker is clear");
            let mut slow = Specification::init_bool(&data);
            prop_assert!(!slow.read_bool(128));
            for p in probabilities {
                prop_assert_eq!(fast.read_bool(p), slow.read_bool(p));
                prop_assert_eq!(fast.overrun(), slow.padding > 8);
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
            d.read_bool(128);
        }
        assert!(d.overrun());
    }

    #[test]
    fn a_tree_is_walked_by_its_bools() {
        // Only zeros: every bool is false.
        let mut d = BoolDecoder::new(&[0; 4]).expect("the marker is clear");
        assert_eq!(d.read_tree(&[2, -9, -4, -5], &[128, 128]), 4);
    }
}
