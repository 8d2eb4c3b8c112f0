//! Weights of the network, validated on loading.
//!
//! The network (`models/`, "xs"): five 3×3 convolutions with zero padding, 1 → 16 → 16 → 16 → 16 → 4
//! channels, ReLU after the first four, pixel shuffle by 2. Input `Y/255 − 0.5`, output in grey
//! levels. Stored as safetensors, f32, `conv{n}.weight [out, in, 3, 3]` and `conv{n}.bias [out]`.
//!
//! Loading re-orders the weights for the kernels: output channels innermost, padded to 16 lanes.

use std::sync::Arc;

use safetensors::{Dtype, SafeTensors};
use thiserror::Error;

use super::kernel::LANES;

/// Channels between layers.
const CHANNELS: usize = LANES;
/// Output channels of the last layer: scale².
const OUTPUTS: usize = 4;
/// Weights beyond this are no trained network, and their sums could overflow.
const GREATEST: f32 = 1e6;

/// The network of this build: trained, and compiled into the binary.
static EMBEDDED: &[u8] = include_bytes!("../../../models/xs-x2.safetensors");

/// Why weights were refused.
#[derive(Debug, Error)]
pub enum ModelError {
    /// Not a safetensors file.
    #[error("not a safetensors file: {0}")]
    Format(#[from] safetensors::SafeTensorError),
    /// A tensor is of another type or shape than the network's.
    #[error("tensor {name} is {dtype:?} {shape:?}, not F32 {expected:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// Its type.
        dtype: Dtype,
        /// Its shape.
        shape: Vec<usize>,
        /// The shape it must have.
        expected: Vec<usize>,
    },
    /// A weight is not a number, or far too great.
    #[error("tensor {name} holds a weight that is not finite or beyond {GREATEST}")]
    Weight {
        /// The tensor.
        name: String,
    },
    /// The file says that it is for another scale.
    #[error("the model is for scale {0}, not 2")]
    Scale(String),
}

/// One vector of weights for all output channels.
pub(super) type Lanes = [f32; LANES];

/// Weights in the order in which the kernels read them.
#[derive(Debug, Clone)]
pub struct Model {
    /// 9 taps (row by row), one input channel.
    pub(super) head: Vec<Lanes>,
    pub(super) head_bias: Lanes,
    /// For each of the three layers: 9 taps × 16 input channels.
    pub(super) body: [Vec<Lanes>; 3],
    pub(super) body_bias: [Lanes; 3],
    /// 3 rows × 16 input channels; lane `4 × column + output` holds that column's tap.
    pub(super) tail: Vec<Lanes>,
    pub(super) tail_bias: [f32; OUTPUTS],
}

/// The trained network that this build carries.
pub fn embedded_model() -> Result<Arc<Model>, ModelError> {
    Model::from_safetensors(EMBEDDED).map(Arc::new)
}

impl Model {
    /// Reads and validates weights. Refuses other shapes, other scales and weights that are not
    /// finite; never panics on foreign bytes.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self, ModelError> {
        let (_, metadata) = SafeTensors::read_metadata(bytes)?;
        if let Some(scale) = metadata.metadata().as_ref().and_then(|m| m.get("scale"))
            && scale != "2"
        {
            return Err(ModelError::Scale(scale.clone()));
        }
        let file = SafeTensors::deserialize(bytes)?;
        let mut body = [Vec::new(), Vec::new(), Vec::new()];
        let mut body_bias = [[0.0; LANES]; 3];
        for (n, (weights, bias)) in body.iter_mut().zip(&mut body_bias).enumerate() {
            let layer = n + 1;
            *weights = conv(&file, layer, CHANNELS, CHANNELS)?;
            *bias = lanes(&tensor(&file, &format!("conv{layer}.bias"), &[CHANNELS])?);
        }
        let last = conv(&file, 4, OUTPUTS, CHANNELS)?;
        let tail_bias = tensor(&file, "conv4.bias", &[OUTPUTS])?;
        Ok(Model {
            head: conv(&file, 0, CHANNELS, 1)?,
            head_bias: lanes(&tensor(&file, "conv0.bias", &[CHANNELS])?),
            body,
            body_bias,
            tail: columns_to_lanes(&last),
            tail_bias: [tail_bias[0], tail_bias[1], tail_bias[2], tail_bias[3]],
        })
    }
}

/// A tensor's values, if its shape is the expected one.
fn tensor(file: &SafeTensors<'_>, name: &str, expected: &[usize]) -> Result<Vec<f32>, ModelError> {
    let view = file.tensor(name)?;
    if view.dtype() != Dtype::F32 || view.shape() != expected {
        return Err(ModelError::Shape {
            name: name.to_owned(),
            dtype: view.dtype(),
            shape: view.shape().to_vec(),
            expected: expected.to_vec(),
        });
    }
    let (words, _) = view.data().as_chunks::<4>();
    let values: Vec<f32> = words.iter().map(|w| f32::from_le_bytes(*w)).collect();
    if values.iter().any(|v| !v.is_finite() || v.abs() > GREATEST) {
        return Err(ModelError::Weight { name: name.to_owned() });
    }
    Ok(values)
}

/// `[out, in, 3, 3]` as one vector of outputs per (tap, input).
fn conv(
    file: &SafeTensors<'_>,
    layer: usize,
    outputs: usize,
    inputs: usize,
) -> Result<Vec<Lanes>, ModelError> {
    let flat = tensor(file, &format!("conv{layer}.weight"), &[outputs, inputs, 3, 3])?;
    let mut taps = vec![[0.0; LANES]; 9 * inputs];
    for (index, value) in flat.iter().enumerate() {
        let (tap, input, output) = (index % 9, index / 9 % inputs, index / 9 / inputs);
        taps[tap * inputs + input][output] = *value;
    }
    Ok(taps)
}

/// Packs the three columns of a convolution with four outputs into the lanes of one vector.
fn columns_to_lanes(taps: &[Lanes]) -> Vec<Lanes> {
    let mut packed = vec![[0.0; LANES]; 3 * CHANNELS];
    for (at, outputs) in taps.iter().enumerate() {
        let (row, column, input) = (at / CHANNELS / 3, at / CHANNELS % 3, at % CHANNELS);
        let lanes = &mut packed[row * CHANNELS + input];
        lanes[OUTPUTS * column..][..OUTPUTS].copy_from_slice(&outputs[..OUTPUTS]);
    }
    packed
}

fn lanes(values: &[f32]) -> Lanes {
    let mut out = [0.0; LANES];
    out.iter_mut().zip(values).for_each(|(o, v)| *o = *v);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::tests::Weights;

    #[test]
    fn the_embedded_model_loads() {
        embedded_model().unwrap();
    }

    #[test]
    fn bytes_that_are_no_model_are_refused() {
        assert!(matches!(Model::from_safetensors(b"nonsense"), Err(ModelError::Format(_))));
        assert!(matches!(Model::from_safetensors(&[]), Err(ModelError::Format(_))));
        let whole = Weights::random(1).to_bytes();
        for end in 0..whole.len().min(2_000) {
            assert!(Model::from_safetensors(&whole[..end]).is_err());
        }
    }

    #[test]
    fn a_missing_tensor_and_another_shape_are_refused() {
        let mut weights = Weights::random(1);
        let (_, shape, _) = weights.tensors.iter_mut().find(|t| t.0 == "conv1.bias").unwrap();
        *shape = vec![4, 4];
        let refused = Model::from_safetensors(&weights.to_bytes());
        assert!(matches!(refused, Err(ModelError::Shape { name, .. }) if name == "conv1.bias"));
        weights.tensors.retain(|t| t.0 != "conv1.bias");
        assert!(matches!(
            Model::from_safetensors(&weights.to_bytes()),
            Err(ModelError::Format(safetensors::SafeTensorError::TensorNotFound(_)))
        ));
    }

    #[test]
    fn weights_that_are_not_finite_are_refused() {
        for bad in [f32::NAN, f32::INFINITY, 1e30] {
            let mut weights = Weights::random(1);
            weights.tensors[3].2[0] = bad;
            assert!(matches!(
                Model::from_safetensors(&weights.to_bytes()),
                Err(ModelError::Weight { .. })
            ));
        }
    }

    #[test]
    fn a_model_for_another_scale_is_refused() {
        let mut weights = Weights::random(1);
        weights.scale = "3".to_owned();
        assert!(matches!(
            Model::from_safetensors(&weights.to_bytes()),
            Err(ModelError::Scale(s)) if s == "3"
        ));
    }
}
