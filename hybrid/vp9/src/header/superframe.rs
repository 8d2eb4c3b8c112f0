//! Superframes: several frames in one chunk (specification Annex B).

/// The frames of a chunk, in order; a chunk without an index is one frame.
#[derive(Debug, Clone)]
pub(crate) struct Superframe<'a> {
    data: &'a [u8],
    sizes: [u32; 8],
    next: usize,
    count: usize,
}

impl<'a> Superframe<'a> {
    /// Splits a chunk by the index at its end, if there is one. `None` when the index claims more bytes than there
    /// are.
    pub(crate) fn new(chunk: &'a [u8]) -> Option<Self> {
        let whole = Self {
            data: chunk,
            sizes: [chunk.len() as u32, 0, 0, 0, 0, 0, 0, 0],
            next: 0,
            count: 1,
        };
        let Some(&marker) = chunk.last() else { return Some(whole) };
        if marker & 0xe0 != 0xc0 {
            return Some(whole);
        }
        let count = usize::from(marker & 7) + 1;
        let bytes = usize::from(marker >> 3 & 3) + 1;
        let index = 2 + count * bytes;
        if chunk.len() < index || chunk[chunk.len() - index] != marker {
            return Some(whole);
        }
        let (data, index) = chunk.split_at(chunk.len() - index);
        let mut sizes = [0u32; 8];
        let mut total = 0u64;
        for (size, field) in sizes.iter_mut().zip(index[1..].chunks_exact(bytes)).take(count) {
            *size = field.iter().rev().fold(0, |v, &b| v << 8 | u32::from(b));
            total += u64::from(*size);
        }
        (total <= data.len() as u64).then_some(Self { data, sizes, next: 0, count })
    }
}

impl<'a> Iterator for Superframe<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.next == self.count {
            return None;
        }
        let (frame, rest) = self.data.split_at(self.sizes[self.next] as usize);
        self.data = rest;
        self.next += 1;
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_chunk_without_an_index_is_one_frame() {
        let frames: Vec<_> = Superframe::new(&[1, 2, 3]).expect("plain").collect();
        assert_eq!(frames, [&[1u8, 2, 3][..]]);
    }

    #[test]
    fn an_index_splits_the_chunk() {
        let chunk = [7, 8, 9, 0b1100_0001, 1, 2, 0b1100_0001];
        let frames: Vec<_> = Superframe::new(&chunk).expect("two frames").collect();
        assert_eq!(frames, [&[7u8][..], &[8, 9]]);
    }

    #[test]
    fn an_index_that_claims_too_much_is_refused() {
        assert!(Superframe::new(&[7, 8, 9, 0b1100_0001, 1, 3, 0b1100_0001]).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_give_frames_that_lie_inside(chunk in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Some(frames) = Superframe::new(&chunk) {
                let total: usize = frames.map(<[u8]>::len).sum();
                prop_assert!(total <= chunk.len());
            }
        }
    }
}
