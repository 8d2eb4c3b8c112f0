//! Networks as ONNX files, for the libraries that read them, in single precision.
//!
//! One input [`LOW`] of `[1, 1, height, width]`, samples as the networks were trained with them (over 255, less a
//! half); one output [`RESIDUAL`] of `[1, 1, scale·height, scale·width]` in grey levels. Networks that look at the twin
//! have two more inputs of the output's size: its samples ([`TWIN`], as those of the low picture) and what it is above
//! the Lanczos-upsampled picture in grey levels ([`ABOVE`]). Sizes are fixed: no library is slower for it.

mod single;
mod steps;
pub(crate) mod wire;

use std::convert::Infallible;

pub(crate) use steps::{Steps, take};
use wire::{Message, Number, node, shaped, tensor, with_int, with_ints, with_text};

use windlass_sr::{Architecture, Model};

/// Name of the input with the low picture's samples.
pub(crate) const LOW: &str = "x";
/// Name of the input with the twin's samples.
pub(crate) const TWIN: &str = "t";
/// Name of the input with the difference of the twin from the Lanczos-upsampled picture, in grey levels.
pub(crate) const ABOVE: &str = "d";
/// Name of the output: the residual, in grey levels.
pub(crate) const RESIDUAL: &str = "y";

/// The ONNX file of a network, for pictures of `size`: low samples in a row, and rows.
pub(crate) fn file(model: &Model, size: (usize, usize)) -> Vec<u8> {
    let architecture = model.architecture();
    let mut steps = single::Single::new(model);
    let input = steps.graph.input(architecture);
    let channels: Result<String, Infallible> = take(architecture, &mut steps, &input);
    match channels {
        Ok(channels) => steps.graph.file(architecture, size, &channels),
        Err(never) => match never {},
    }
}

/// Nodes and constants so far, as the fields of a `GraphProto`.
#[derive(Debug, Default)]
pub(crate) struct Graph(Message);

impl Graph {
    /// Adds a node to the graph.
    pub(crate) fn add(&mut self, node: &Message) {
        self.0 = std::mem::take(&mut self.0).message(1, node);
    }

    /// Adds a constant, and returns its name.
    pub(crate) fn constant<const N: usize>(
        &mut self,
        name: String,
        number: Number,
        shape: &[usize],
        values: impl IntoIterator<Item = [u8; N]>,
    ) -> String {
        let raw: Vec<u8> = values.into_iter().flatten().collect();
        self.0 = std::mem::take(&mut self.0).message(5, &tensor(&name, number, shape, &raw));
        name
    }

    /// Adds a 3×3 convolution with a margin of zeros.
    pub(crate) fn conv(&mut self, input: &str, weights: &str, bias: &str, output: &str) {
        let conv = node("Conv", &[input, weights, bias], output);
        let conv = with_ints(conv, "kernel_shape", &[3, 3]);
        self.add(&with_ints(conv, "pads", &[1, 1, 1, 1]));
    }

    /// Adds the input of the first convolution: the low picture, and as channels the twin's samples over each low
    /// one.
    fn input(&mut self, architecture: Architecture) -> String {
        if !architecture.has_twin() {
            return LOW.to_owned();
        }
        let folded = node("SpaceToDepth", &[TWIN], "folded");
        self.add(&with_int(folded, "blocksize", architecture.scale as i64));
        self.add(&with_int(node("Concat", &[LOW, "folded"], "inputs"), "axis", 1));
        "inputs".to_owned()
    }

    /// Adds pixel shuffle: the channels of a low sample become samples over it, from channel scale·dy + dx (mode
    /// CRD).
    fn unfold(&mut self, channels: &str, scale: usize, output: &str) {
        let shuffle = with_text(node("DepthToSpace", &[channels], output), "mode", "CRD");
        self.add(&with_int(shuffle, "blocksize", scale as i64));
    }

    /// The whole file, a `ModelProto`. The channels are unfolded and, with a twin, its part is weighed by the gate.
    pub(crate) fn file(
        mut self,
        architecture: Architecture,
        (width, height): (usize, usize),
        channels: &str,
    ) -> Vec<u8> {
        let scale = architecture.scale;
        let (low, high) = ([1, 1, height, width], [1, 1, scale * height, scale * width]);
        let mut inputs = vec![shaped(LOW, &low)];
        if architecture.has_twin() {
            let halves = node("Split", &[channels], "own").text(2, "gates");
            self.add(&with_int(halves, "axis", 1));
            self.unfold("own", scale, "residual");
            self.unfold("gates", scale, "gate");
            self.add(&node("Sigmoid", &["gate"], "share"));
            self.add(&node("Mul", &["share", ABOVE], "part"));
            self.add(&node("Add", &["residual", "part"], RESIDUAL));
            inputs.extend([shaped(TWIN, &high), shaped(ABOVE, &high)]);
        } else {
            self.unfold(channels, scale, RESIDUAL);
        }
        let graph = inputs.iter().fold(self.0.text(2, "network"), |m, input| m.message(11, input));
        let graph = graph.message(12, &shaped(RESIDUAL, &high));
        let operators = Message::default().text(1, "").int(2, 17);
        Message::default().int(1, 8).message(7, &graph).message(8, &operators).into_bytes()
    }
}
