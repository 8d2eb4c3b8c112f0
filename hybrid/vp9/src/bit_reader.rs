//! Reads plain bits of the uncompressed header (specification §4.9, §9.1), most significant first.

/// Reads bits from a slice; past its end every bit is zero and [`BitReader::overrun`] says so.
pub(crate) struct BitReader<'a> {
    data: &'a [u8],
    position: usize,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self { data, position: 0 }
    }

    /// Reads one bit, `f(1)`.
    pub(crate) fn flag(&mut self) -> bool {
        let byte = self.data.get(self.position / 8).copied().unwrap_or(0);
        let bit = byte >> (7 - self.position % 8) & 1;
        self.position += 1;
        bit == 1
    }

    /// Reads an unsigned number of `n` ≤ 32 bits, `f(n)`.
    pub(crate) fn literal(&mut self, n: u32) -> u32 {
        (0..n).fold(0, |v, _| v << 1 | u32::from(self.flag()))
    }

    /// Reads a signed number: `n` bits of magnitude and a sign, `su(n)`.
    pub(crate) fn signed(&mut self, n: u32) -> i32 {
        let value = self.literal(n) as i32;
        if self.flag() { -value } else { value }
    }

    /// Whether more bits were read than there are.
    pub(crate) fn overrun(&self) -> bool {
        self.position > self.data.len() * 8
    }

    /// Number of whole bytes used so far.
    pub(crate) fn bytes_used(&self) -> usize {
        self.position.div_ceil(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_most_significant_first_and_zero_past_the_end() {
        let mut r = BitReader::new(&[0b1010_0110]);
        assert!(r.flag());
        assert_eq!(r.literal(3), 0b010);
        assert_eq!(r.signed(3), 3);
        assert!(!r.overrun());
        assert_eq!(r.literal(9), 0);
        assert!(r.overrun());
    }

    #[test]
    fn the_sign_follows_the_magnitude() {
        assert_eq!(BitReader::new(&[0b0101_1000]).signed(4), -5);
    }
}
