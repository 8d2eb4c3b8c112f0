//! The ranges of a network's values over some pictures: what 8 bits must span.
//!
//! Source: the least and greatest value, the default of onnxruntime's static quantisation.

use crate::onnx::{Steps, take};
use anyhow::Result;
use candle_core::Tensor;
use windlass_sr::Model;

use crate::args::Size;
use crate::engines::candle::{Layers, tensor};
use crate::engines::unit;

/// A range of values, from the least to the greatest, with zero in it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Range {
    least: f32,
    greatest: f32,
}

impl Range {
    /// Extends the range to these values.
    fn extend(&mut self, values: &[f32]) {
        for value in values {
            self.least = self.least.min(*value);
            self.greatest = self.greatest.max(*value);
        }
    }

    /// The scale and the zero point of unsigned bytes that span the range.
    pub(crate) fn to_bytes(self) -> (f32, u8) {
        let scale = ((self.greatest - self.least) / 255.0).max(1e-9);
        (scale, (-self.least / scale).round().clamp(0.0, 255.0) as u8)
    }
}

/// The ranges of a network's input and of every step, in order, over the pictures.
pub(crate) fn ranges(model: &Model, size: Size, pictures: &[Vec<u8>]) -> Result<Vec<Range>> {
    let mut ranges = Vec::new();
    for picture in pictures {
        let mut samples = Vec::new();
        unit(picture, &mut samples);
        let mut noting = Noting { layers: Layers::new(model)?, ranges: &mut ranges, at: 0 };
        let input = tensor(&samples, size)?;
        noting.note(&input)?;
        take(model.architecture(), &mut noting, &input)?;
    }
    Ok(ranges)
}

/// Runs steps, and notes the range of each result.
struct Noting<'a> {
    layers: Layers,
    ranges: &'a mut Vec<Range>,
    at: usize,
}

impl Noting<'_> {
    fn note(&mut self, value: &Tensor) -> Result<()> {
        let values = value.flatten_all()?.to_vec1::<f32>()?;
        if self.at == self.ranges.len() {
            self.ranges.push(Range::default());
        }
        self.ranges[self.at].extend(&values);
        self.at += 1;
        Ok(())
    }
}

impl Steps for Noting<'_> {
    type Value = Tensor;
    type Error = anyhow::Error;

    fn conv(&mut self, n: usize, x: &Tensor, relu: bool) -> Result<Tensor> {
        let value = self.layers.conv(n, x, relu)?;
        self.note(&value)?;
        Ok(value)
    }

    fn add(&mut self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let value = self.layers.add(a, b)?;
        self.note(&value)?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_span_the_range_and_hold_zero() {
        let mut range = Range::default();
        range.extend(&[-1.0, 0.5, 4.1]);
        let (scale, zero) = range.to_bytes();
        assert!((scale - 0.02).abs() < 1e-6 && zero == 50, "{scale} {zero}");
        let mut positive = Range::default();
        positive.extend(&[1.0, 2.0]);
        assert_eq!(positive.to_bytes().1, 0);
        assert!(Range::default().to_bytes().0 > 0.0);
    }
}
