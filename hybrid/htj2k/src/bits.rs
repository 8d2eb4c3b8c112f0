//! Bits of packet headers (ITU-T T.800, B.10.1): high bits first; after a byte of 0xff come seven.

use crate::Error;

/// Writes the bits of a packet header.
#[derive(Debug)]
pub(crate) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    pending: u32,
    free: u32,
}

impl<'a> BitWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, pending: 0, free: 8 }
    }

    pub(crate) fn put(&mut self, bit: bool) {
        self.free -= 1;
        self.pending |= u32::from(bit) << self.free;
        if self.free == 0 {
            self.out.push(self.pending as u8);
            self.free = if self.pending == 0xff { 7 } else { 8 };
            self.pending = 0;
        }
    }

    pub(crate) fn put_bits(&mut self, value: u32, length: u32) {
        for bit in (0..length).rev() {
            self.put(value >> bit & 1 == 1);
        }
    }

    /// Fills the last byte with zeros; a header never ends in 0xff.
    pub(crate) fn finish(self) {
        if self.free < 8 {
            self.out.push(self.pending as u8);
        }
    }
}

/// Reads the bits of a packet header.
#[derive(Debug)]
pub(crate) struct BitReader<'a> {
    data: &'a [u8],
    value: u8,
    left: u32,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self { data, value: 0, left: 0 }
    }

    pub(crate) fn get(&mut self) -> Result<bool, Error> {
        if self.left == 0 {
            let (&byte, rest) = self.data.split_first().ok_or(Error::Truncated("a packet"))?;
            self.left = if self.value == 0xff { 7 } else { 8 };
            self.value = byte;
            self.data = rest;
        }
        self.left -= 1;
        Ok(self.value >> self.left & 1 == 1)
    }

    /// Reads `length` bits, at most 32, the highest first.
    pub(crate) fn get_bits(&mut self, length: u32) -> Result<u32, Error> {
        (0..length).try_fold(0, |value, _| Ok(value << 1 | u32::from(self.get()?)))
    }

    /// The bytes behind the header.
    pub(crate) fn finish(self) -> &'a [u8] {
        if self.value == 0xff { self.data.get(1..).unwrap_or_default() } else { self.data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_come_back_and_what_follows_is_found(
            words in proptest::collection::vec((any::<u32>(), 1u32..33), 0..40),
        ) {
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            for &(word, length) in &words {
                writer.put_bits(word, length);
            }
            writer.finish();
            prop_assert!(bytes.windows(2).all(|w| w[0] != 0xff || w[1] < 0x80));
            prop_assert!(bytes.last() != Some(&0xff));
            bytes.push(0xab);
            let mut reader = BitReader::new(&bytes);
            for &(word, length) in &words {
                prop_assert_eq!(reader.get_bits(length), Ok(word & (u32::MAX >> (32 - length))));
            }
            prop_assert_eq!(reader.finish(), &[0xab][..]);
        }
    }
}
