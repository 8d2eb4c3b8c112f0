//! Networks as ONNX files, for the libraries that read them: in single precision ([`single`]) and in 8 bits ([`bytes`]).
//!
//! One input `x` of `[1, 1, height, width]`, samples as the networks were trained with them; one output `y` of
//! `[1, 1, scale·height, scale·width]`, the residual in grey levels. Sizes are fixed: no library is slower for it.

mod bytes;
mod single;
mod wire;

use anyhow::{Result, ensure};
use windlass_enhancer::engine::{Architecture, Model};

use self::wire::{Message, Number, node, shaped, tensor, with_int, with_ints, with_text};
use crate::args::Size;
use crate::calibrate::Range;
use crate::graph::take;

/// The input's and the output's name.
pub const INPUT: &str = "x";
/// See [`INPUT`].
pub const OUTPUT: &str = "y";

/// The file of a network in single precision.
pub fn single(model: &Model, size: Size) -> Result<Vec<u8>> {
    let mut steps = single::Single::new(model);
    let channels = take(model.architecture(), &mut steps, &INPUT.to_owned())?;
    Ok(steps.graph.file(model.architecture(), size, &channels))
}

/// The file of a network in 8 bits, quantised by the ranges of its input and of every step in order.
pub fn bytes(model: &Model, size: Size, ranges: &[Range]) -> Result<Vec<u8>> {
    let mut steps = bytes::Bytes::new(model, ranges);
    let input = steps.rounded(INPUT)?;
    let channels = take(model.architecture(), &mut steps, &input)?;
    ensure!(steps.is_done(), "more ranges than steps");
    Ok(steps.graph.file(model.architecture(), size, &channels.name))
}

/// Nodes and constants so far: the fields of a `GraphProto`.
#[derive(Debug, Default)]
struct Graph(Message);

impl Graph {
    fn add(&mut self, node: &Message) {
        self.0 = std::mem::take(&mut self.0).message(1, node);
    }

    /// A constant; gives its name.
    fn constant<const N: usize>(
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

    /// A 3×3 convolution with a margin of zeros.
    fn conv(&mut self, input: &str, weights: &str, bias: &str, output: &str) {
        let conv = node("Conv", &[input, weights, bias], output);
        let conv = with_ints(conv, "kernel_shape", &[3, 3]);
        self.add(&with_ints(conv, "pads", &[1, 1, 1, 1]));
    }

    /// The whole file: `ModelProto`, after the channels were unfolded.
    fn file(mut self, architecture: Architecture, size: Size, channels: &str) -> Vec<u8> {
        let scale = architecture.scale;
        // CRD: channel scale·dy + dx, as pixel shuffle has it.
        let shuffle = with_text(node("DepthToSpace", &[channels], OUTPUT), "mode", "CRD");
        self.add(&with_int(shuffle, "blocksize", scale as i64));
        let graph = self
            .0
            .text(2, "network")
            .message(11, &shaped(INPUT, &[1, 1, size.height, size.width]))
            .message(12, &shaped(OUTPUT, &[1, 1, scale * size.height, scale * size.width]));
        let operators = Message::default().text(1, "").int(2, 17);
        Message::default().int(1, 8).message(7, &graph).message(8, &operators).into_bytes()
    }
}
