//! The graph in single precision: convolutions, ReLU and sums as ONNX names them. Libraries fuse what they can.

use std::convert::Infallible;

use super::wire::{Number, node};
use super::{Graph, Steps};
use windlass_sr::Model;

/// Writes the steps of a network in single precision.
pub(crate) struct Single<'a> {
    model: &'a Model,
    pub(crate) graph: Graph,
    sums: usize,
}

impl<'a> Single<'a> {
    pub(crate) fn new(model: &'a Model) -> Self {
        Single { model, graph: Graph::default(), sums: 0 }
    }
}

impl Steps for Single<'_> {
    /// The name of a value in the graph.
    type Value = String;
    type Error = Infallible;

    fn conv(&mut self, n: usize, x: &String, relu: bool) -> Result<String, Infallible> {
        let (outputs, inputs) = self.model.architecture().shape(n);
        let conv = &self.model.convs()[n];
        let weights = conv.weights.iter().map(|value| value.to_le_bytes());
        let shape = [outputs, inputs, 3, 3];
        let weights = self.graph.constant(format!("w{n}"), Number::Float, &shape, weights);
        let bias = conv.bias.iter().map(|value| value.to_le_bytes());
        let bias = self.graph.constant(format!("b{n}"), Number::Float, &[outputs], bias);
        let output = format!("conv{n}");
        self.graph.conv(x, &weights, &bias, &output);
        if !relu {
            return Ok(output);
        }
        let positive = format!("relu{n}");
        self.graph.add(&node("Relu", &[&output], &positive));
        Ok(positive)
    }

    fn add(&mut self, a: &String, b: &String) -> Result<String, Infallible> {
        let output = format!("sum{}", self.sums);
        self.sums += 1;
        self.graph.add(&node("Add", &[a, b], &output));
        Ok(output)
    }
}
