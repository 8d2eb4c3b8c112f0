//! Decoders side by side: every shown picture of libvpx against another decoder's.

use std::fmt;

use super::{FrameDecoder, Libvpx, Stream};

/// What a comparison went through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Streams compared.
    pub streams: usize,
    /// Pictures compared, with each decoder.
    pub pictures: usize,
}

impl Tally {
    /// Adds another's counts.
    pub fn add(&mut self, other: Tally) {
        self.streams += other.streams;
        self.pictures += other.pictures;
    }
}

/// A decoder that departs from libvpx.
#[derive(Debug, Clone)]
pub struct Mismatch {
    /// The stream's name.
    pub stream: String,
    /// The decoder's name.
    pub decoder: &'static str,
    /// The chunk, from 0.
    pub chunk: usize,
    /// The shown picture in that chunk, counted from 0 over the stream.
    pub picture: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { stream, decoder, chunk, picture, what } = self;
        write!(f, "{stream}: {decoder}: chunk {chunk}, picture {picture}: {what}")
    }
}

/// Decodes a stream with libvpx and each of `decoders`; the first departure ends it.
///
/// A stream that libvpx itself refuses is an error as well (with `decoder` "libvpx"): the
/// conformance streams are all sound.
///
/// # Errors
///
/// Fails at the first picture that differs, or chunk that is refused.
pub fn stream(
    stream: &Stream,
    decoders: &mut [Box<dyn FrameDecoder + '_>],
) -> Result<Tally, Box<Mismatch>> {
    let mut libvpx = Libvpx::new();
    let mut pictures = 0;
    for (n, chunk) in stream.chunks.iter().enumerate() {
        let mismatch = |decoder: &'static str, what: String| {
            Box::new(Mismatch {
                stream: stream.name.clone(),
                decoder,
                chunk: n,
                picture: pictures,
                what,
            })
        };
        let expected =
            libvpx.decode(chunk).map_err(|e| mismatch("libvpx", format!("refused: {e}")))?;
        for decoder in &mut *decoders {
            let name = decoder.name();
            let found =
                decoder.decode(chunk).map_err(|e| mismatch(name, format!("refused: {e}")))?;
            if found.len() != expected.len() {
                let what = format!("{} pictures instead of {}", found.len(), expected.len());
                return Err(mismatch(name, what));
            }
            for (expected, found) in expected.iter().zip(&found) {
                if let Some(difference) = expected.difference(found) {
                    return Err(mismatch(name, difference.to_string()));
                }
            }
        }
        pictures += expected.len();
    }
    Ok(Tally { streams: 1, pictures })
}

#[cfg(test)]
mod tests {
    use super::super::{Encoding, I420};
    use super::*;

    /// libvpx with one sample changed in its third picture.
    struct Wrong(Libvpx, usize);

    impl FrameDecoder for Wrong {
        fn name(&self) -> &'static str {
            "wrong"
        }

        fn decode(&mut self, chunk: &[u8]) -> Result<Vec<I420>, String> {
            let mut pictures = self.0.decode(chunk)?;
            if self.1 == 2 {
                pictures[0].plane_mut(1)[6 * 8 + 2] ^= 1;
            }
            self.1 += 1;
            Ok(pictures)
        }
    }

    #[test]
    fn one_wrong_sample_is_found_and_its_place_is_told() {
        let made = Encoding::new(16, 16, 4).encode("small").unwrap();
        let wrong = stream(&made, &mut [Box::new(Wrong(Libvpx::new(), 0))]).unwrap_err();
        assert_eq!((wrong.chunk, wrong.picture), (2, 2));
        assert!(wrong.to_string().contains("plane U of 8x8 from x 2, y 6"), "{wrong}");
    }

    #[test]
    fn a_decoder_equals_itself() {
        let made = Encoding::new(16, 16, 4).encode("small").unwrap();
        let tally = stream(&made, &mut [Box::new(Libvpx::new())]).unwrap();
        assert_eq!(tally, Tally { streams: 1, pictures: 4 });
    }
}
