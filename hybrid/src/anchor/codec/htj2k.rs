//! Codec 2, HTJ2K: JPEG 2000 Part 15 of the detail itself, in sixteenths of a grey level, by the
//! 9/7 wavelet ([`windlass_htj2k`]).
//!
//! A payload is a bare codestream of signed samples of 13 bits. Ours reads in other people's
//! decoders, and theirs in ours as long as they have one tile, one layer and cleanup passes alone.

use windlass_htj2k::{Encoder, Error, Format, Limits};
use windlass_types::Size;

use super::Strength;
use super::{AnchorCodecError, check_size};
use crate::detail::Detail;

/// Codec 2: HTJ2K of the detail itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Htj2k;

/// How the length of an HTJ2K codestream follows from the quantiser step, fitted to the detail of anchors.
const MODEL: super::rate::Model = super::rate::Model { floor: 130.0, offset: -2.7, power: 1.0 };

/// The format of a plane of detail: ±255 grey levels in sixteenths, so 13 bits with sign.
fn format(size: Size) -> Format {
    Format { width: size.width.into(), height: size.height.into(), bits: 13, signed: true }
}

impl Htj2k {
    /// Number of levels of the wavelet transform. With three, pictures lose up to 0.8 dB at 5 kB; more than five have
    /// nothing to gather.
    pub const LEVELS: u8 = 5;

    /// The HTJ2K format of detail.
    ///
    /// # Errors
    ///
    /// Fails if the picture is empty, or larger than [`MAX_SIDE`](super::MAX_SIDE) or [`MAX_AREA`](super::MAX_AREA)
    /// allow.
    pub fn format(detail: &Detail) -> Result<Format, AnchorCodecError> {
        Htj2k::format_of(Size::saturating(detail.width(), detail.height()))
    }

    /// The HTJ2K format of detail of this size.
    ///
    /// # Errors
    ///
    /// Fails if the picture is empty, or larger than [`MAX_SIDE`](super::MAX_SIDE) or [`MAX_AREA`](super::MAX_AREA)
    /// allow.
    pub fn format_of(size: Size) -> Result<Format, AnchorCodecError> {
        check_size(size)?;
        Ok(format(size))
    }

    /// The detail in `payload`, which comes from the network. `size` is that of the encoded picture, in HR samples.
    ///
    /// # Errors
    ///
    /// Fails if the size is empty or too large, or the payload is not a whole codestream of exactly this size.
    pub fn decode(payload: &[u8], size: Size) -> Result<Detail, AnchorCodecError> {
        check_size(size)?;
        let limits =
            Limits { max_side: size.width.max(size.height).into(), max_area: size.pixels() };
        let picture = windlass_htj2k::decode(payload, limits).map_err(|error| match error {
            Error::TooLarge { .. } => AnchorCodecError::WrongSize,
            _ => AnchorCodecError::Malformed,
        })?;
        if picture.format != format(size) {
            return Err(AnchorCodecError::WrongSize);
        }
        Detail::from_samples(size.width.into(), size.height.into(), picture.samples)
            .ok_or(AnchorCodecError::Malformed)
    }

    /// Encodes detail at a quality of 1 to 100.
    ///
    /// # Errors
    ///
    /// Fails if the picture is empty or too large to be decoded.
    pub fn encode(detail: &Detail, quality: u8) -> Result<Vec<u8>, AnchorCodecError> {
        with_encoder(detail, |encoder| Ok(encoder.encode(Htj2k::step(quality))))
    }

    /// Encodes detail, and behind it [colour](crate::anchor::colour) where there is any. Both have the same quantiser
    /// step. The code has at most `budget` bytes, and at least 95 % of them unless the finest step needs less.
    ///
    /// # Errors
    ///
    /// Fails if a picture is empty or too large to be decoded, or even the coarsest step needs more than `budget`
    /// bytes.
    pub fn fill(
        detail: &Detail,
        colour: Option<&Detail>,
        budget: usize,
    ) -> Result<Vec<u8>, AnchorCodecError> {
        with_encoders(detail, colour, |code| {
            Htj2k::encode_within_by(detail.into(), budget, |step| Ok(code(step)))
        })
    }

    /// Encodes detail, and behind it colour, at a quality of 1 to 100.
    ///
    /// # Errors
    ///
    /// Fails if a picture is empty or too large to be decoded.
    pub fn encode_in_colour(
        detail: &Detail,
        colour: &Detail,
        quality: u8,
    ) -> Result<Vec<u8>, AnchorCodecError> {
        with_encoders(detail, Some(colour), |code| Ok(code(Htj2k::step(quality))))
    }

    /// Length of the codestream that `code` begins with, in bytes; `None` where there is none.
    pub fn length(code: &[u8]) -> Option<usize> {
        windlass_htj2k::length(code).ok()
    }

    /// The quantiser step of a quality, in sixteenths of a grey level.
    pub fn step(quality: u8) -> f32 {
        super::step_of(quality) * f32::from(crate::detail::ONE)
    }

    /// Does what [`fill`](Htj2k::fill) does, by another coder: `code` makes a codestream of the detail at a step.
    ///
    /// # Errors
    ///
    /// Fails if `code` fails, or even its code at the coarsest step has more than `budget` bytes.
    pub fn encode_within_by(
        strength: Strength,
        budget: usize,
        mut code: impl FnMut(f32) -> Result<Vec<u8>, AnchorCodecError>,
    ) -> Result<Vec<u8>, AnchorCodecError> {
        super::rate::encode_within(strength, budget, MODEL, 1.0 / 16.0..=1024.0, |step| {
            code(step * f32::from(crate::detail::ONE))
        })
    }
}

thread_local! {
    /// Memory of this thread for the transform of a picture, kept from the last picture.
    static MEMORY: std::cell::Cell<Vec<f32>> = const { std::cell::Cell::new(Vec::new()) };
}

/// An encoder with the picture transformed in `memory`.
fn encoder(detail: &Detail, memory: Vec<f32>) -> Result<Encoder, AnchorCodecError> {
    let format = Htj2k::format(detail)?;
    Encoder::with_memory(memory, detail.samples(), format, Htj2k::LEVELS)
        .map_err(|_| AnchorCodecError::Encode)
}

/// Transforms detail and colour, and lets `code` encode both with one step.
fn with_encoders<T>(
    detail: &Detail,
    colour: Option<&Detail>,
    code: impl FnOnce(&dyn Fn(f32) -> Vec<u8>) -> Result<T, AnchorCodecError>,
) -> Result<T, AnchorCodecError> {
    let colour = colour.map(|colour| encoder(colour, Vec::new())).transpose()?;
    with_encoder(detail, |encoder| {
        code(&|step| {
            let mut both = encoder.encode(step);
            both.extend(colour.iter().flat_map(|colour| colour.encode(step)));
            both
        })
    })
}

/// Transforms a picture and lets `code` encode it.
fn with_encoder<T>(
    detail: &Detail,
    code: impl FnOnce(&Encoder) -> Result<T, AnchorCodecError>,
) -> Result<T, AnchorCodecError> {
    let encoder = encoder(detail, MEMORY.take())?;
    let coded = code(&encoder);
    MEMORY.set(encoder.into_memory());
    coded
}
