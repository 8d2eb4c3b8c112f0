//! How an anchor's picture is coded.
//!
//! What is coded is a plane of luma detail: of a whole picture, `HR_Y − Lanczos(LR_Y)`, or the mosaic of
//! its chosen tiles ([`super::tiles`]). Every bit is spent on detail, and however coarse the quantiser,
//! nothing is the worst that can come out of it: the Lanczos picture. Chroma is always that of the low
//! layer.
//!
//! Codecs 1 ([`ResidualJpeg`]) and 2 ([`Htj2k`]) code each anchor by itself; what they cost and keep
//! stands in `docs/anchor-codecs.md`. Others join as further [`AnchorCodec`]s with ids of their own.

mod htj2k;
mod jpeg;
mod rate;

pub use htj2k::Htj2k;
pub use jpeg::ResidualJpeg;
pub use rate::Strength;

use crate::detail::{Detail, ONE};
#[cfg(feature = "encode")]
use crate::picture::Plane;
use crate::resample::{Samples, Scratch, lanczos};
use crate::simd::Isa;

/// Codec id of [`ResidualJpeg`].
pub const RESIDUAL_JPEG: u8 = 1;
/// Codec id of [`Htj2k`].
pub const HTJ2K: u8 = 2;
/// The quality that keeps most of an enhanced anchor's gain for 2 to 4 kB at 640×360, measured in
/// `docs/reconstruction.md`.
pub const DEFAULT_QUALITY: u8 = 75;
/// Largest HR side that is decoded.
pub const MAX_SIDE: u16 = 8192;
/// Largest HR area that is decoded: four times the largest low picture.
pub const MAX_AREA: u32 = 4 * crate::vp9::MAX_WIDTH * crate::vp9::MAX_HEIGHT;

/// Why an anchor's payload could not be coded or decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnchorCodecError {
    /// A codec id that this build does not know.
    #[error("anchor codec {0} is not known")]
    UnknownCodec(u8),
    /// An empty or oversized picture.
    #[error("an anchor of {width}x{height} is refused")]
    Size {
        /// Width asked for.
        width: u16,
        /// Height asked for.
        height: u16,
    },
    /// The payload is not what the codec writes.
    #[error("the anchor's payload is malformed")]
    Malformed,
    /// The payload holds a picture of another size than its header says.
    #[error("the anchor's payload has another size than its header")]
    WrongSize,
    /// The payload is predicted from anchors that are not here: a key anchor must come first.
    #[error("the anchor's payload needs a key anchor")]
    NeedsKey,
    /// The encoder failed.
    #[error("the anchor could not be encoded")]
    Encode,
    /// Even the coarsest quality is larger than the budget.
    #[error("no quality of the codec fits {budget} bytes")]
    Budget {
        /// Bytes asked for.
        budget: usize,
    },
}

/// One way to code the detail of an anchor.
pub trait AnchorCodec: Sync {
    /// The id in the message header.
    fn id(&self) -> u8;

    /// The name in configurations and tables.
    fn name(&self) -> &'static str;

    /// The detail in `payload`, which comes from the network. `width` and `height` are those of
    /// the picture that is coded, in HR samples.
    fn decode(&self, payload: &[u8], width: u16, height: u16) -> Result<Detail, AnchorCodecError>;

    /// Codes detail at a quality of 1 to 100. The same quality means about the same error in all
    /// codecs.
    #[cfg(feature = "encode")]
    fn encode(&self, detail: &Detail, quality: u8) -> Result<Vec<u8>, AnchorCodecError>;

    /// Codes detail in at most `budget` bytes, and in at least 95 % of them unless the finest
    /// quality needs less. Pictures of a few blocks have too few codes for the lower bound.
    #[cfg(feature = "encode")]
    fn encode_within(&self, detail: &Detail, budget: usize) -> Result<Vec<u8>, AnchorCodecError>;
}

/// All codecs, the oldest first.
pub const ALL: [&dyn AnchorCodec; 2] = [&ResidualJpeg, &Htj2k];

/// The codec of an id.
pub fn by_id(id: u8) -> Result<&'static dyn AnchorCodec, AnchorCodecError> {
    ALL.into_iter().find(|codec| codec.id() == id).ok_or(AnchorCodecError::UnknownCodec(id))
}

/// The codec of a name.
pub fn by_name(name: &str) -> Option<&'static dyn AnchorCodec> {
    ALL.into_iter().find(|codec| codec.name() == name)
}

/// Decodes a payload by the codec of its header.
pub fn decode(
    codec: u8,
    payload: &[u8],
    width: u16,
    height: u16,
) -> Result<Detail, AnchorCodecError> {
    by_id(codec)?.decode(payload, width, height)
}

/// Codes the detail of an HR luma plane over its low one, as residual JPEG.
#[cfg(feature = "encode")]
pub fn encode(high: &Plane, low: &Plane, quality: u8) -> Result<Vec<u8>, AnchorCodecError> {
    ResidualJpeg.encode(&detail_of(high, low, 2)?, quality)
}

/// `HR_Y − lanczos(LR_Y)`; the sizes must differ by a factor of exactly `scale`.
///
/// # Panics
///
/// Where the scale is not 2, 3 or 4.
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

fn check_size(width: u16, height: u16) -> Result<(), AnchorCodecError> {
    let area = u32::from(width) * u32::from(height);
    if area == 0 || width.max(height) > MAX_SIDE || area > MAX_AREA {
        return Err(AnchorCodecError::Size { width, height });
    }
    Ok(())
}

/// The size of detail that may be coded.
#[cfg(feature = "encode")]
fn size_of(detail: &Detail) -> Result<(u16, u16), AnchorCodecError> {
    checked_size(detail.width(), detail.height())
}

fn checked_size(width: usize, height: usize) -> Result<(u16, u16), AnchorCodecError> {
    let width = u16::try_from(width).unwrap_or(u16::MAX);
    let height = u16::try_from(height).unwrap_or(u16::MAX);
    check_size(width, height).map(|()| (width, height))
}

/// The quantiser step of a quality, in grey levels of an orthonormal transform: 16 at quality 50,
/// scaled as libjpeg scales its tables. It is the same for all frequencies, because the low layer
/// already carries what the eye and the usual tables weigh most.
#[cfg(feature = "encode")]
pub fn step_of(quality: u8) -> f32 {
    let quality = f32::from(quality.clamp(1, 100));
    let scale = if quality < 50.0 { 5000.0 / quality } else { 200.0 - 2.0 * quality };
    16.0 * scale.max(1.0) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn textured(width: usize, height: usize) -> Detail {
        let samples = (0..width * height)
            .map(|i| (((i % width) as f64 * 0.9).sin() * 200.0 + (i / width) as f64) as i16)
            .collect();
        Detail::from_samples(width, height, samples).expect("the count is right")
    }

    /// Detail as super-resolution makes it: edges and patches of texture on nothing much.
    #[cfg(feature = "encode")]
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

    #[cfg(feature = "encode")]
    #[test]
    fn fine_quality_keeps_detail_within_a_grey_level_or_so() {
        let detail = textured(50, 38);
        for codec in ALL {
            let bytes = codec.encode(&detail, 98).expect("a legal size");
            let back = decode(codec.id(), &bytes, 50, 38).expect("our own bytes");
            for (a, b) in detail.samples().iter().zip(back.samples()) {
                assert!((a - b).abs() <= 3 * ONE, "{}", codec.name());
            }
        }
    }

    #[cfg(feature = "encode")]
    #[test]
    fn another_size_than_the_header_says_is_refused() {
        for codec in ALL {
            let bytes = codec.encode(&textured(32, 16), 50).expect("a legal size");
            for (w, h) in [(16, 32), (64, 16), (31, 16), (8192, 4096)] {
                assert!(codec.decode(&bytes, w, h).is_err());
            }
            let zero = codec.decode(&bytes, 0, 16);
            assert_eq!(zero, Err(AnchorCodecError::Size { width: 0, height: 16 }));
            let none = codec.encode(&Detail::zero(0, 9), 50);
            assert_eq!(none, Err(AnchorCodecError::Size { width: 0, height: 9 }));
        }
    }

    #[test]
    fn an_unknown_codec_is_refused() {
        assert_eq!(decode(9, &[], 8, 8), Err(AnchorCodecError::UnknownCodec(9)));
        assert!(by_name("png").is_none());
        assert!(detail_of(&Plane::filled(3, 3, 0), &Plane::filled(1, 1, 0), 2).is_err());
    }

    #[test]
    fn detail_is_the_difference_to_the_upsampled_picture_of_the_right_size() {
        let (low, high) = (Plane::filled(40, 30, 128), Plane::filled(80, 60, 128));
        let same = detail_of(&high, &low, 2).expect("twice the size");
        assert!(same.samples().iter().all(|&d| d == 0));
        assert_eq!(detail_of(&high, &low, 3), Err(AnchorCodecError::WrongSize));
    }

    #[test]
    fn ids_and_names_find_their_codec() {
        for (id, name) in [(RESIDUAL_JPEG, "jpeg"), (HTJ2K, "htj2k")] {
            assert_eq!(by_id(id).map(AnchorCodec::name), Ok(name));
            assert_eq!(by_name(name).map(AnchorCodec::id), Some(id));
        }
    }

    #[cfg(feature = "encode")]
    #[test]
    fn a_budget_below_the_coarsest_code_is_refused_and_one_above_the_finest_is_not_filled() {
        let detail = realistic(320, 180, 20.0, 7);
        for codec in ALL {
            assert_eq!(
                codec.encode_within(&detail, 90),
                Err(AnchorCodecError::Budget { budget: 90 })
            );
            let finest = codec.encode_within(&detail, 1 << 20).expect("the finest fits");
            assert!(finest.len() >= codec.encode(&detail, 97).expect("a legal size").len());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            for codec in ALL {
                let _ = codec.decode(&bytes, 16, 16);
            }
        }

        #[cfg(feature = "encode")]
        #[test]
        fn damaged_payloads_decode_or_fail_without_panic(
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
            keep in any::<prop::sample::Index>(),
            cut: bool,
        ) {
            for codec in ALL {
                let mut bytes = codec.encode(&textured(40, 24), 60).expect("a legal size");
                for (at, value) in &edits {
                    *at.get_mut(&mut bytes) = *value;
                }
                if cut {
                    bytes.truncate(keep.index(bytes.len()));
                }
                if let Ok(detail) = codec.decode(&bytes, 40, 24) {
                    prop_assert_eq!(detail.samples().len(), 40 * 24);
                }
            }
        }
    }

    #[cfg(feature = "encode")]
    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_code_lands_within_five_percent_below_its_budget(
            (width, height) in (256usize..700, 192usize..400),
            strength in 4.0f64..60.0, seed: u32, share in 0.0f64..1.0,
        ) {
            let detail = realistic(width, height, strength, seed);
            for codec in ALL {
                // Budgets from twice the coarsest code on, which tell of detail, to the finest.
                let coarse = codec.encode(&detail, 1).expect("a legal size").len() as f64;
                let finest = codec.encode_within(&detail, 1 << 24).expect("it fits").len() as f64;
                let least = (2.0 * coarse).min(finest);
                let budget = (least * (finest / least).powf(share)) as usize;
                let code = codec.encode_within(&detail, budget).expect("the coarsest fits");
                prop_assert!(
                    code.len() <= budget && code.len() >= budget * 95 / 100,
                    "{}: {} of {}", codec.name(), code.len(), budget,
                );
                let back = codec.decode(&code, width as u16, height as u16);
                prop_assert_eq!(back.map(|d| d.width()), Ok(width));
            }
        }
    }
}
