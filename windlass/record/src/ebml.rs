//! Writes elements of EBML (RFC 8794), the format of Matroska and WebM: an identifier, a size, and data.

/// Bytes of an unknown size. The element ends at the end of the file, or where another of its kind begins.
pub(crate) const UNKNOWN_SIZE: [u8; 8] = [0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

/// Elements, written one after the other.
#[derive(Debug, Default)]
pub(crate) struct Elements(Vec<u8>);

impl Elements {
    pub(crate) fn new() -> Elements {
        Elements::default()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes an element with the given bytes.
    pub(crate) fn bytes(&mut self, id: u32, data: &[u8]) -> &mut Elements {
        self.id(id);
        self.size(data.len() as u64);
        self.0.extend_from_slice(data);
        self
    }

    /// Writes an element with the given child elements.
    pub(crate) fn of(&mut self, id: u32, children: &Elements) -> &mut Elements {
        self.bytes(id, &children.0)
    }

    /// Writes an unsigned integer, in as few bytes as it needs.
    pub(crate) fn uint(&mut self, id: u32, value: u64) -> &mut Elements {
        let zeros = (value.leading_zeros() / 8).min(7) as usize;
        self.bytes(id, &value.to_be_bytes()[zeros..])
    }

    /// Writes a signed integer of eight bytes.
    pub(crate) fn int(&mut self, id: u32, value: i64) -> &mut Elements {
        self.bytes(id, &value.to_be_bytes())
    }

    /// Writes a float of eight bytes.
    pub(crate) fn float(&mut self, id: u32, value: f64) -> &mut Elements {
        self.bytes(id, &value.to_be_bytes())
    }

    /// Writes a text.
    pub(crate) fn text(&mut self, id: u32, value: &str) -> &mut Elements {
        self.bytes(id, value.as_bytes())
    }

    /// Begins an element whose size is filled in later, or stays unknown.
    pub(crate) fn open(&mut self, id: u32) -> &mut Elements {
        self.id(id);
        self.0.extend_from_slice(&UNKNOWN_SIZE);
        self
    }

    /// Writes a Void element of `len` bytes in all, 2 to 129.
    pub(crate) fn void(&mut self, len: usize) -> &mut Elements {
        self.bytes(0xec, &vec![0; len.saturating_sub(2)])
    }

    /// Writes an identifier, which includes its marker bits.
    fn id(&mut self, id: u32) {
        let zeros = (id.leading_zeros() / 8).min(3) as usize;
        self.0.extend_from_slice(&id.to_be_bytes()[zeros..]);
    }

    fn size(&mut self, size: u64) {
        // All ones stand for an unknown size.
        let len = (1..8).find(|len| size < (1 << (7 * len)) - 1).unwrap_or(8);
        let marked = size | 1 << (7 * len);
        self.0.extend_from_slice(&marked.to_be_bytes()[8 - len..]);
    }
}

/// A size in eight bytes, to be written over [`UNKNOWN_SIZE`].
pub(crate) fn long_size(size: u64) -> [u8; 8] {
    (size | 1 << 56).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_as_few_bytes_as_they_need_and_are_never_all_ones() {
        let size = |size| {
            let mut elements = Elements::new();
            elements.size(size);
            elements.into_bytes()
        };
        assert_eq!(size(0), [0x80]);
        assert_eq!(size(126), [0xfe]);
        assert_eq!(size(127), [0x40, 0x7f]);
        assert_eq!(size(16_383), [0x20, 0x3f, 0xff]);
        assert_eq!(long_size(5), [0x01, 0, 0, 0, 0, 0, 0, 5]);
    }

    #[test]
    fn elements_have_their_identifier_as_it_is_written() {
        let mut elements = Elements::new();
        elements.uint(0xd7, 1).uint(0x002a_d7b1, 0x01_0000).void(4);
        let bytes = [0xd7, 0x81, 1, 0x2a, 0xd7, 0xb1, 0x83, 1, 0, 0, 0xec, 0x82, 0, 0];
        assert_eq!(elements.into_bytes(), bytes);
    }
}
