//! The codec of anchors' pictures.
//!
//! What is encoded is a plane of luma detail: of a whole picture, `HR_Y − Lanczos(LR_Y)`, or the mosaic of
//! its chosen tiles ([`windlass_types::tiles`]). Every bit is spent on detail. An empty anchor, from the coarsest
//! quantiser, falls back to the Lanczos picture. Chroma is that of the low layer, unless [colour](super::colour) comes
//! with the anchor.
//!
//! There is one codec, [`Htj2k`] (`docs/anchor-codecs.md`). `lab/notes/anchor-codecs.md` has what it costs and keeps.
//! The header of an anchor has the codec's id, so that another codec can be added.

mod htj2k;
mod rate;

pub use htj2k::Htj2k;
pub use rate::Strength;

use windlass_types::Size;
use windlass_types::message::HTJ2K;
use windlass_vp9::Samples;
use windlass_vp9::simd::Isa;

use crate::detail::{Detail, ONE};
use crate::resample::{Scratch, lanczos};

/// Maximum side of an HR picture that is decoded, in samples.
pub const MAX_SIDE: u16 = 8192;
/// Maximum area of an HR picture that is decoded, in samples: four times that of the largest low picture.
pub const MAX_AREA: u32 = 4 * windlass_vp9::MAX_WIDTH * windlass_vp9::MAX_HEIGHT;

/// Why an anchor's picture could not be encoded or its payload not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnchorCodecError {
    /// The codec id is not one that this build knows.
    #[error("anchor codec {0} is not known")]
    UnknownCodec(u8),
    /// The picture is empty or too large.
    #[error("an anchor of {0} is refused: it is empty or too large")]
    Size(Size),
    /// The payload is not what the codec writes.
    #[error("the anchor's payload is malformed")]
    Malformed,
    /// The payload holds a picture of another size than its header says.
    #[error("the anchor's payload has another size than its header")]
    WrongSize,
    /// The encoder failed.
    #[error("the anchor could not be encoded")]
    Encode,
    /// Even at the coarsest quality the code is longer than the budget.
    #[error("no quality of the codec fits {budget} bytes")]
    Budget {
        /// Maximum length of the payload, in bytes.
        budget: usize,
    },
}

/// Decodes a payload by the codec that its header names.
///
/// # Errors
///
/// Fails if the codec is not known, or the payload is not one of a picture of this size.
pub fn decode(codec: u8, payload: &[u8], size: Size) -> Result<Detail, AnchorCodecError> {
    if codec != HTJ2K {
        return Err(AnchorCodecError::UnknownCodec(codec));
    }
    Htj2k::decode(payload, size)
}

/// The detail `HR_Y − lanczos(LR_Y)`. The sizes must differ by a factor of exactly `scale`.
///
/// # Errors
///
/// Fails if the high picture is not exactly `scale` times as wide and high as the low one.
///
/// # Panics
///
/// Panics if the scale is not 2, 3 or 4.
pub fn detail_of<'a>(
    high: impl Into<Samples<'a>>,
    low: impl Into<Samples<'a>>,
    scale: usize,
) -> Result<Detail, AnchorCodecError> {
    let (high, low) = (high.into(), low.into());
    if (high.width, high.height) != (scale * low.width, scale * low.height) {
        return Err(AnchorCodecError::WrongSize);
    }
    let mut detail = Detail::zero(high.width, high.height);
    let rows = 0..low.height;
    lanczos(Isa::detect(), low, scale, rows, detail.samples_mut(), &mut Scratch::default());
    for y in 0..high.height {
        for (d, &h) in detail.row_mut(y).iter_mut().zip(high.row(y)) {
            *d = i16::from(h) * ONE - *d;
        }
    }
    Ok(detail)
}

fn check_size(size: Size) -> Result<(), AnchorCodecError> {
    let area = size.pixels();
    if area == 0 || size.width.max(size.height) > MAX_SIDE || area > MAX_AREA {
        return Err(AnchorCodecError::Size(size));
    }
    Ok(())
}

/// The quantiser step of a quality, in grey levels of an orthonormal transform: 16 at quality 50,
/// scaled as libjpeg scales its tables. It is the same for all frequencies, because the low layer
/// already carries what the eye and the usual tables weigh most.
pub fn step_of(quality: u8) -> f32 {
    let quality = f32::from(quality.clamp(1, 100));
    let scale = if quality < 50.0 { 5000.0 / quality } else { 200.0 - 2.0 * quality };
    16.0 * scale.max(1.0) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use windlass_vp9::Plane;

    fn textured(width: usize, height: usize) -> Detail {
        let samples = (0..width * height)
            .map(|i| (((i % width) as f64 * 0.9).sin() * 200.0 + (i / width) as f64) as i16)
            .collect();
        Detail::from_samples(width, height, samples).expect("the count is right")
    }

    /// Detail as super-resolution makes it: edges and patches of texture on nothing much.
    fn realistic(width: usize, height: usize, strength: f64, seed: u32) -> Detail {
        let mut state = seed;
        let samples = (0..width * height)
            .map(|i| {
                let (x, y) = ((i % width) as f64, (i / width) as f64);
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let noise = f64::from(state >> 16) / 32768.0 - 1.0;
                let turn = f64::from(seed % 628) / 100.0;
                let patch = ((x / 41.0 + turn).sin() * (y / 29.0).cos()).max(0.0).powi(3);
                let edge = (x * turn.cos() + y * turn.sin()).rem_euclid(83.0) - 41.0;
                let ring = (edge * 1.3).sin() * (-edge.abs() / 4.0).exp();
                ((patch * noise + ring + 0.05 * noise) * strength * f64::from(ONE)) as i16
            })
            .collect();
        Detail::from_samples(width, height, samples).expect("the count is right")
    }

    #[test]
    fn fine_quality_keeps_detail_within_a_grey_level_or_so() {
        let detail = textured(50, 38);
        let bytes = Htj2k::encode(&detail, 98).expect("a legal size");
        let back = decode(HTJ2K, &bytes, Size::new(50, 38)).expect("our own bytes");
        for (a, b) in detail.samples().iter().zip(back.samples()) {
            assert!((a - b).abs() <= 3 * ONE);
        }
    }

    #[test]
    fn another_size_than_the_header_says_is_refused() {
        let bytes = Htj2k::encode(&textured(32, 16), 50).expect("a legal size");
        for (w, h) in [(16, 32), (64, 16), (31, 16), (8192, 4096)] {
            assert!(Htj2k::decode(&bytes, Size::new(w, h)).is_err());
        }
        let zero = Htj2k::decode(&bytes, Size::new(0, 16));
        assert_eq!(zero, Err(AnchorCodecError::Size(Size::new(0, 16))));
        let none = Htj2k::encode(&Detail::zero(0, 9), 50);
        assert_eq!(none, Err(AnchorCodecError::Size(Size::new(0, 9))));
    }

    #[test]
    fn an_unknown_codec_is_refused() {
        assert_eq!(decode(9, &[], Size::new(8, 8)), Err(AnchorCodecError::UnknownCodec(9)));
    }

    #[test]
    fn detail_is_the_difference_to_the_upsampled_picture_of_the_right_size() {
        let (low, high) = (Plane::filled(40, 30, 128), Plane::filled(80, 60, 128));
        let same = detail_of(&high, &low, 2).expect("twice the size");
        assert!(same.samples().iter().all(|&d| d == 0));
        assert_eq!(detail_of(&high, &low, 3), Err(AnchorCodecError::WrongSize));
    }

    #[test]
    fn a_budget_below_the_coarsest_code_is_refused_and_one_above_the_finest_is_not_filled() {
        let detail = realistic(320, 180, 20.0, 7);
        let within = |budget| Htj2k::fill(&detail, None, budget);
        assert_eq!(within(90), Err(AnchorCodecError::Budget { budget: 90 }));
        let finest = within(1 << 20).expect("the finest fits");
        assert!(finest.len() >= Htj2k::encode(&detail, 97).expect("a legal size").len());
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = Htj2k::decode(&bytes, Size::new(16, 16));
        }

        #[test]
        fn damaged_payloads_decode_or_fail_without_panic(
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
            keep in any::<prop::sample::Index>(),
            cut: bool,
        ) {
            let mut bytes = Htj2k::encode(&textured(40, 24), 60).expect("a legal size");
            for (at, value) in &edits {
                *at.get_mut(&mut bytes) = *value;
            }
            if cut {
                bytes.truncate(keep.index(bytes.len()));
            }
            if let Ok(detail) = Htj2k::decode(&bytes, Size::new(40, 24)) {
                prop_assert_eq!(detail.samples().len(), 40 * 24);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_code_lands_within_five_percent_below_its_budget(
            (width, height) in (256usize..700, 192usize..400),
            strength in 4.0f64..60.0, seed: u32, share in 0.0f64..1.0,
        ) {
            let detail = realistic(width, height, strength, seed);
            // Budgets from twice the coarsest code on, which tell of detail, to the finest.
            let coarse = Htj2k::encode(&detail, 1).expect("a legal size").len() as f64;
            let finest = Htj2k::fill(&detail, None, 1 << 24).expect("it fits").len() as f64;
            let least = (2.0 * coarse).min(finest);
            let budget = (least * (finest / least).powf(share)) as usize;
            let code = Htj2k::fill(&detail, None, budget).expect("the coarsest fits");
            prop_assert!(
                code.len() <= budget && code.len() >= budget * 95 / 100,
                "{} of {}", code.len(), budget,
            );
            let back = Htj2k::decode(&code, Size::saturating(width, height));
            prop_assert_eq!(back.map(|d| d.width()), Ok(width));
        }
    }
}
