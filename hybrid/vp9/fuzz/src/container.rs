//! The container of an input: a byte of options, then chunks, each behind its length (u16, little
//! endian). A length beyond the end means "what is left", so that all bytes are some input.

/// The options of an input: the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options(u8);

impl Options {
    /// Whether the scalar decoder has a visitor for residuals.
    pub fn scalar_visits(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the SIMD decoder has a visitor for residuals.
    pub fn simd_visits(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether pictures are held for the whole stream, so that the decoders' pools run dry.
    pub fn holds_pictures(self) -> bool {
        self.0 & 4 != 0
    }
}

/// Splits an input into its options and chunks.
pub fn split(data: &[u8]) -> (Options, Vec<&[u8]>) {
    let (options, mut rest) = data.split_first().map_or((0, data), |(o, rest)| (*o, rest));
    let mut chunks = Vec::new();
    while let Some((size, tail)) = rest.split_first_chunk::<2>() {
        let size = usize::from(u16::from_le_bytes(*size)).min(tail.len());
        let (chunk, next) = tail.split_at(size);
        chunks.push(chunk);
        rest = next;
    }
    (Options(options), chunks)
}

/// Puts an input together. Chunks that are too long are cut; those beyond `max` bytes are left out.
pub fn join<C: AsRef<[u8]>>(options: u8, chunks: &[C], max: usize) -> Vec<u8> {
    let mut out = vec![options];
    for chunk in chunks {
        let chunk = chunk.as_ref();
        let chunk = &chunk[..chunk.len().min(usize::from(u16::MAX))];
        if out.len() + 2 + chunk.len() > max {
            break;
        }
        out.extend((chunk.len() as u16).to_le_bytes());
        out.extend(chunk);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_joined_splits_again() {
        let chunks: [&[u8]; 3] = [&[1, 2, 3], &[], &[4; 300]];
        let input = join(2, &chunks, 4096);
        let (options, split) = split(&input);
        assert!(options.simd_visits() && !options.scalar_visits());
        assert_eq!(split, chunks);
    }

    #[test]
    fn a_length_beyond_the_end_means_what_is_left() {
        assert_eq!(split(&[0, 9, 0, 7, 8]).1, [&[7u8, 8][..]]);
        assert!(split(&[]).1.is_empty());
    }
}
