//! Pictures enlarged by the built-in filters alone, as a receiver shows them without anchors.

use windlass_vp9::simd::Isa;
use windlass_vp9::{FrameBuffer, Plane};

use crate::anchor::colour;
use crate::reconstruct::Rebuilder;
use crate::reconstruct::learned::Learned;

/// Luma and both chroma planes of a picture, `scale` times as large: luma by the built-in filters, chroma bicubic.
///
/// # Panics
///
/// Panics if the scale is not 2, 3 or 4.
pub fn enlarge(picture: &FrameBuffer, scale: usize) -> [Plane; 3] {
    let filters = Learned::with_prior(scale);
    let luma = Rebuilder::new(Isa::detect(), scale).base(picture, &filters, None);
    let [u, v] = colour::upsampled(picture.samples(), scale);
    [luma, u, v]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::tests::{REALTIME, frames};
    use crate::{HybridConfig, HybridDecoder};

    #[test]
    fn an_enlarged_picture_is_what_a_decoder_shows_without_anchors() {
        let first = frames(REALTIME)[0];
        for scale in 2..=4 {
            let config = HybridConfig { scale, ..HybridConfig::default() };
            let mut decoder = HybridDecoder::new(config);
            decoder.push_frame(0, first).expect("a key frame");
            let (low, high) = (decoder.lr().expect("decoded"), decoder.hr().expect("shown"));
            assert_eq!(enlarge(low, scale).each_ref(), high.planes(), "by {scale}");
        }
    }
}
