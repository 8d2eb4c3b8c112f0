//! Codec 1, *residual JPEG*: a greyscale baseline JPEG of the detail around 128, in whole grey levels.
//!
//! Fast at both ends, and a browser decodes it by itself; what exceeds ±128 grey levels is cut.

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::{AnchorCodec, AnchorCodecError, RESIDUAL_JPEG, check_size};
use crate::detail::{Detail, ONE};

/// Codec 1: see the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResidualJpeg;

impl AnchorCodec for ResidualJpeg {
    fn id(&self) -> u8 {
        RESIDUAL_JPEG
    }

    fn name(&self) -> &'static str {
        "jpeg"
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
        Grey::new(detail)?.encode(super::step_of(quality).round())
    }

    #[cfg(feature = "encode")]
    fn encode_within(&self, detail: &Detail, budget: usize) -> Result<Vec<u8>, AnchorCodecError> {
        let grey = Grey::new(detail)?;
        super::rate::encode_within(detail.into(), budget, MODEL, (1.0, 255.0), |step| {
            grey.encode(step)
        })
    }
}

/// An empty block costs two bits.
#[cfg(feature = "encode")]
const MODEL: super::rate::Model =
    super::rate::Model { floor: (160.0, 1.0 / 256.0), offset: 0.0, power: 0.6 };

/// Detail as a JPEG encoder takes it.
#[cfg(feature = "encode")]
struct Grey {
    size: (u16, u16),
    samples: Vec<u8>,
}

#[cfg(feature = "encode")]
impl Grey {
    fn new(detail: &Detail) -> Result<Self, AnchorCodecError> {
        let size = super::size_of(detail)?;
        let grey = |&d: &i16| (d.saturating_add(ONE / 2 + 128 * ONE) >> 4).clamp(0, 255) as u8;
        Ok(Self { size, samples: detail.samples().iter().map(grey).collect() })
    }

    fn encode(&self, step: f32) -> Result<Vec<u8>, AnchorCodecError> {
        use jpeg_encoder::{ColorType, Encoder, QuantizationTableType};

        let mut out = Vec::with_capacity(self.samples.len() / 8);
        let mut encoder = Encoder::new(&mut out, 100);
        let table = Box::new(quantisers(step));
        encoder.set_quantization_tables(
            QuantizationTableType::Custom(table.clone()),
            QuantizationTableType::Custom(table),
        );
        encoder.set_optimized_huffman_tables(true);
        encoder
            .encode(&self.samples, self.size.0, self.size.1, ColorType::Luma)
            .map_err(|_| AnchorCodecError::Encode)?;
        Ok(out)
    }
}

/// A flat table. Where the step lies between whole numbers, its fraction is the share of
/// frequencies, the highest first, that take the next one: rate control needs steps so fine.
#[cfg(feature = "encode")]
fn quantisers(step: f32) -> [u16; 64] {
    let sixty_fourths = (step.clamp(1.0, 255.0) * 64.0).round() as u16;
    let (whole, coarser) = (sixty_fourths / 64, usize::from(sixty_fourths % 64));
    let mut order: [usize; 64] = std::array::from_fn(|i| i);
    order.sort_by_key(|i| (i / 8 + i % 8, *i));
    let mut table = [whole; 64];
    for &i in &order[64 - coarser..] {
        table[i] += 1;
    }
    table
}

#[cfg(all(test, feature = "encode"))]
mod tests {
    use super::*;

    #[test]
    fn tables_grow_by_the_finest_of_steps() {
        assert_eq!(quantisers(0.0), [1; 64]);
        assert_eq!(quantisers(300.0), [255; 64]);
        let sums = (64..255 * 64).map(|i| quantisers(i as f32 / 64.0).iter().sum::<u16>());
        assert!(sums.zip(64..).all(|(sum, wanted)| sum == wanted));
        assert_eq!(quantisers(7.5)[0], 7);
        assert_eq!(quantisers(7.5)[63], 8);
    }
}
