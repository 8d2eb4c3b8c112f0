//! How an anchor's picture is coded.
//!
//! Codec 1, *residual JPEG*: a greyscale baseline JPEG of the detail over the Lanczos base,
//! `v = clamp(round(HR_Y − lanczos2x(LR_Y)) + 128, 0, 255)`. Chroma is always that of the low
//! layer. Every bit is spent on detail, and however coarse the quantiser, a flat 128 is the worst
//! that can come out of it: the Lanczos picture.
//!
//! Other codecs (HTJ2K, full pictures) join as further [`AnchorCodec`]s with ids of their own.

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use crate::detail::{Detail, ONE};
use crate::picture::Plane;
use crate::resample::lanczos2x_q4;

/// Codec id of [`ResidualJpeg`].
pub const RESIDUAL_JPEG: u8 = 1;
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
    /// The encoder failed.
    #[error("the anchor could not be encoded")]
    Encode,
}

/// One way to code the detail of an anchor.
pub trait AnchorCodec {
    /// The id in the message header.
    fn id(&self) -> u8;

    /// The detail in `payload`, which comes from the network. `width` and `height` are those of
    /// the header, in HR samples.
    fn decode(&self, payload: &[u8], width: u16, height: u16) -> Result<Detail, AnchorCodecError>;

    /// Codes detail at a quality of 1 to 100.
    #[cfg(feature = "encode")]
    fn encode(&self, detail: &Detail, quality: u8) -> Result<Vec<u8>, AnchorCodecError>;
}

/// The codec of an id.
pub fn by_id(id: u8) -> Result<&'static dyn AnchorCodec, AnchorCodecError> {
    match id {
        RESIDUAL_JPEG => Ok(&ResidualJpeg),
        other => Err(AnchorCodecError::UnknownCodec(other)),
    }
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
    ResidualJpeg.encode(&detail_of(high, low)?, quality)
}

/// `HR_Y − lanczos2x(LR_Y)`; the sizes must differ by a factor of exactly two.
pub fn detail_of(high: &Plane, low: &Plane) -> Result<Detail, AnchorCodecError> {
    let mut detail = lanczos2x_q4(low);
    if (high.width(), high.height()) != (detail.width(), detail.height()) {
        return Err(AnchorCodecError::WrongSize);
    }
    for (d, &h) in detail.samples_mut().iter_mut().zip(high.samples()) {
        *d = i16::from(h) * ONE - *d;
    }
    Ok(detail)
}

/// Codec 1: see the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResidualJpeg;

impl AnchorCodec for ResidualJpeg {
    fn id(&self) -> u8 {
        RESIDUAL_JPEG
    }

    fn decode(&self, payload: &[u8], width: u16, height: u16) -> Result<Detail, AnchorCodecError> {
        check_size(width, height)?;
        // The SIMD forms of the JPEG decoder are left out: browser and server must agree bit for
        // bit, and only its portable form is the same on both.
        let options = DecoderOptions::default()
            .set_use_unsafe(false)
            .set_strict_mode(true)
            .set_max_width(usize::from(width))
            .set_max_height(usize::from(height))
            .jpeg_set_max_scans(1)
            .jpeg_set_out_colorspace(ColorSpace::Luma);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(payload), options);
        decoder.decode_headers().map_err(|_| AnchorCodecError::Malformed)?;
        let size = (usize::from(width), usize::from(height));
        if decoder.dimensions() != Some(size) {
            return Err(AnchorCodecError::WrongSize);
        }
        if decoder.input_colorspace() != Some(ColorSpace::Luma) {
            return Err(AnchorCodecError::Malformed);
        }
        let samples = decoder.decode().map_err(|_| AnchorCodecError::Malformed)?;
        let detail = samples.iter().map(|&v| (i16::from(v) - 128) * ONE).collect();
        Detail::from_samples(size.0, size.1, detail).ok_or(AnchorCodecError::Malformed)
    }

    #[cfg(feature = "encode")]
    fn encode(&self, detail: &Detail, quality: u8) -> Result<Vec<u8>, AnchorCodecError> {
        use jpeg_encoder::{ColorType, Encoder, QuantizationTableType};

        let (width, height) = (
            u16::try_from(detail.width()).unwrap_or(u16::MAX),
            u16::try_from(detail.height()).unwrap_or(u16::MAX),
        );
        check_size(width, height)?;
        let grey: Vec<u8> = detail
            .samples()
            .iter()
            .map(|&d| (d.saturating_add(ONE / 2 + 128 * ONE) >> 4).clamp(0, 255) as u8)
            .collect();
        let mut out = Vec::with_capacity(grey.len() / 8);
        let mut encoder = Encoder::new(&mut out, quality.clamp(1, 100));
        let table = quantisers(quality);
        encoder.set_quantization_tables(
            QuantizationTableType::Custom(Box::new(table)),
            QuantizationTableType::Custom(Box::new(table)),
        );
        encoder.set_optimized_huffman_tables(true);
        encoder
            .encode(&grey, width, height, ColorType::Luma)
            .map_err(|_| AnchorCodecError::Encode)?;
        Ok(out)
    }
}

fn check_size(width: u16, height: u16) -> Result<(), AnchorCodecError> {
    let area = u32::from(width) * u32::from(height);
    if area == 0 || width.max(height) > MAX_SIDE || area > MAX_AREA {
        return Err(AnchorCodecError::Size { width, height });
    }
    Ok(())
}

/// The quantiser table of a quality: flat, because the low layer already carries what the eye
/// and the usual tables weigh most; 16 at quality 50, scaled as libjpeg scales its tables.
#[cfg(feature = "encode")]
fn quantisers(quality: u8) -> [u16; 64] {
    let quality = u16::from(quality.clamp(1, 100));
    let scale = if quality < 50 { 5000 / quality } else { 200 - 2 * quality };
    [((16 * scale + 50) / 100).clamp(1, 255); 64]
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

    #[cfg(feature = "encode")]
    #[test]
    fn fine_quality_keeps_detail_within_a_grey_level_or_so() {
        let detail = textured(50, 38);
        let bytes = ResidualJpeg.encode(&detail, 98).expect("a legal size");
        let back = decode(RESIDUAL_JPEG, &bytes, 50, 38).expect("our own bytes");
        for (a, b) in detail.samples().iter().zip(back.samples()) {
            assert!((a - b).abs() <= 3 * ONE);
        }
    }

    #[cfg(feature = "encode")]
    #[test]
    fn another_size_than_the_header_says_is_refused() {
        let bytes = ResidualJpeg.encode(&textured(32, 16), 50).expect("a legal size");
        for (w, h) in [(16, 32), (64, 16), (31, 16), (8192, 4096)] {
            assert!(decode(RESIDUAL_JPEG, &bytes, w, h).is_err());
        }
        let zero = decode(RESIDUAL_JPEG, &bytes, 0, 16);
        assert_eq!(zero, Err(AnchorCodecError::Size { width: 0, height: 16 }));
    }

    #[test]
    fn an_unknown_codec_is_refused() {
        assert_eq!(decode(9, &[], 8, 8), Err(AnchorCodecError::UnknownCodec(9)));
        assert!(detail_of(&Plane::filled(3, 3, 0), &Plane::filled(1, 1, 0)).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode(RESIDUAL_JPEG, &bytes, 16, 16);
        }

        #[cfg(feature = "encode")]
        #[test]
        fn damaged_payloads_decode_or_fail_without_panic(
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
            keep in any::<prop::sample::Index>(),
            cut: bool,
        ) {
            let mut bytes = ResidualJpeg.encode(&textured(40, 24), 60).expect("a legal size");
            for (at, value) in edits {
                *at.get_mut(&mut bytes) = value;
            }
            if cut {
                bytes.truncate(keep.index(bytes.len()));
            }
            if let Ok(detail) = decode(RESIDUAL_JPEG, &bytes, 40, 24) {
                prop_assert_eq!(detail.samples().len(), 40 * 24);
            }
        }
    }
}
