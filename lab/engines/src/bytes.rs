//! Networks as ONNX files in 8 bits, in the form that onnxruntime's own static quantisation writes (QDQ): every value
//! is rounded to unsigned bytes by a scale and a zero point and taken back at once, weights are bytes with sign, scaled
//! by output. What runs it recognises a convolution or sum between those and computes in bytes.

use crate::onnx::wire::{Number, node, with_int};
use crate::onnx::{Graph, LOW, Steps, take};
use anyhow::{Context, Result, ensure};
use windlass_sr::Model;

use crate::args::Size;
use crate::calibrate::Range;

/// The file of a network, quantised by the ranges of its input and of every step in order.
pub(crate) fn file(model: &Model, size: Size, ranges: &[Range]) -> Result<Vec<u8>> {
    let mut steps = Bytes::new(model, ranges);
    let input = steps.rounded(LOW)?;
    let channels = take(model.architecture(), &mut steps, &input)?;
    ensure!(steps.is_done(), "more ranges than steps");
    Ok(steps.graph.file(model.architecture(), (size.width, size.height), &channels.name))
}

/// Writes the steps of a quantised network.
struct Bytes<'a> {
    model: &'a Model,
    graph: Graph,
    /// The ranges of the values that are not written yet, in order.
    ranges: std::slice::Iter<'a, Range>,
}

/// A value that was rounded to bytes and taken back.
#[derive(Debug, Clone)]
struct Rounded {
    name: String,
    scale: f32,
}

impl<'a> Bytes<'a> {
    fn new(model: &'a Model, ranges: &'a [Range]) -> Self {
        Bytes { model, graph: Graph::default(), ranges: ranges.iter() }
    }

    /// Whether all ranges were used.
    fn is_done(&self) -> bool {
        self.ranges.len() == 0
    }

    /// Rounds a value to bytes of the next range, and takes it back.
    fn rounded(&mut self, value: &str) -> Result<Rounded> {
        let range = self.ranges.next().context("fewer ranges than steps")?;
        let (scale, zero) = range.to_bytes();
        let number = [scale.to_le_bytes()];
        let scale_name = self.graph.constant(format!("{value}_scale"), Number::Float, &[], number);
        let zero_name = self.graph.constant(format!("{value}_zero"), Number::Uint8, &[], [[zero]]);
        let (coded, name) = (format!("{value}_bytes"), format!("{value}_rounded"));
        self.graph.add(&node("QuantizeLinear", &[value, &scale_name, &zero_name], &coded));
        self.graph.add(&node("DequantizeLinear", &[&coded, &scale_name, &zero_name], &name));
        Ok(Rounded { name, scale })
    }

    /// Adds constants as bytes with a scale for each output, taken back to floats.
    fn scaled<const N: usize>(
        &mut self,
        name: &str,
        number: Number,
        shape: &[usize],
        values: impl IntoIterator<Item = [u8; N]>,
        scales: &[f32],
    ) -> String {
        let bytes = scales.iter().map(|scale| scale.to_le_bytes());
        let each = [scales.len()];
        let scale = self.graph.constant(format!("{name}_scale"), Number::Float, &each, bytes);
        let none = scales.iter().map(|_| [0; N]);
        let zero = self.graph.constant(format!("{name}_zero"), number, &each, none);
        let coded = self.graph.constant(format!("{name}_coded"), number, shape, values);
        let taken = node("DequantizeLinear", &[&coded, &scale, &zero], name);
        self.graph.add(&with_int(taken, "axis", 0));
        name.to_owned()
    }
}

impl Steps for Bytes<'_> {
    type Value = Rounded;
    type Error = anyhow::Error;

    /// Adds a convolution. ReLU is no step of its own: the range of the next value begins at zero, and bytes cannot
    /// be below that.
    fn conv(&mut self, n: usize, x: &Rounded, _relu: bool) -> Result<Rounded> {
        let (outputs, inputs) = self.model.architecture().shape(n);
        let conv = &self.model.convs()[n];
        let rows = || conv.weights.chunks_exact(9 * inputs);
        let greatest = |row: &[f32]| row.iter().fold(1e-9, |most: f32, w| most.max(w.abs()));
        let scales: Vec<f32> = rows().map(|row| greatest(row) / 127.0).collect();
        let weights = rows().zip(&scales).flat_map(|(row, scale)| {
            row.iter().map(move |w| ((w / scale).round().clamp(-127.0, 127.0) as i8).to_le_bytes())
        });
        let shape = [outputs, inputs, 3, 3];
        let weights = self.scaled(&format!("w{n}"), Number::Int8, &shape, weights, &scales);
        // Sums have both scales multiplied as their unit, and so must what is added to them.
        let scales: Vec<f32> = scales.iter().map(|scale| scale * x.scale).collect();
        let bias = conv.bias.iter().zip(&scales);
        let bias = bias.map(|(b, scale)| ((b / scale).round() as i32).to_le_bytes());
        let bias = self.scaled(&format!("b{n}"), Number::Int32, &[outputs], bias, &scales);
        let output = format!("conv{n}");
        self.graph.conv(&x.name, &weights, &bias, &output);
        self.rounded(&output)
    }

    fn add(&mut self, a: &Rounded, b: &Rounded) -> Result<Rounded> {
        let output = format!("sum{}", self.ranges.len());
        self.graph.add(&node("Add", &[&a.name, &b.name], &output));
        self.rounded(&output)
    }
}
