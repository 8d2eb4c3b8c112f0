//! The safetensors file of a network's weights.
//!
//! A safetensors file of 32-bit floats:
//!
//! - `conv{n}.weight [out, in, 3, 3]` and `conv{n}.bias [out]`, numbered from 0: a chain of 3×3 convolutions with zero
//!   padding 1 at the size of the low picture, ReLU after each but the last.
//! - `conv{n}.range [out]` of each but the last: the largest usual value of each channel after ReLU; 0 for one that is
//!   always zero. Integers are scaled by it.
//! - Metadata: `arch` is `chain`, `inputs` is `luma+twin`, `base` is `twin`, `scale` is 2, 3 or 4.
//!
//! Inputs: `Y/255 − 0.5`, then `T/255 − 0.5` folded by pixel unshuffle (channel `1 + scale·dy + dx`). Outputs: `scale²`
//! channels of residual in grey levels (channel `scale·dy + dx`), which is added to `T`.

use std::collections::HashMap;

use safetensors::{Dtype, SafeTensors};
use thiserror::Error;

use crate::size::{MAX_CONVS, Size, SizeError};

/// Maximum magnitude of a weight.
const MAX_WEIGHT: f32 = 1e6;

/// Why a file of weights is refused.
#[derive(Debug, Error)]
pub enum FileError {
    /// The bytes are no safetensors file, or a tensor is missing.
    #[error("not a safetensors file: {0}")]
    Format(#[from] safetensors::SafeTensorError),
    /// The metadata name an architecture that this crate does not run.
    #[error("the file's {key} is {value:?}: {expected} is needed")]
    Metadata {
        /// The key of the metadata.
        key: &'static str,
        /// The value of the key; empty where it is missing.
        value: String,
        /// The values that the key may have, for the message.
        expected: &'static str,
    },
    /// The network has a size that is not run.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// A tensor is of another type or shape.
    #[error("tensor {name} is {dtype:?} {shape:?}, not F32 {expected:?}")]
    Shape {
        /// Name of the tensor.
        name: String,
        /// The tensor's type.
        dtype: Dtype,
        /// The tensor's shape.
        shape: Vec<usize>,
        /// The shape that the tensor must have.
        expected: Vec<usize>,
    },
    /// A number is not finite or far too large, or a range is below 0.
    #[error(
        "tensor {0} holds a number that is not finite, beyond {MAX_WEIGHT}, or a range below 0"
    )]
    Number(String),
    /// There are tensors besides those of the convolutions.
    #[error("the file has {0} tensors, not {1}")]
    Tensors(usize, usize),
}

/// A network as its file has it: in floats, and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    size: Size,
    convs: Vec<Conv>,
}

/// A convolution in floats.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Conv {
    /// The weights `[out, in, 3, 3]`, row-major.
    pub weights: Vec<f32>,
    pub bias: Vec<f32>,
    /// The largest usual value of each output channel; empty for the last convolution.
    pub range: Vec<f32>,
}

impl Weights {
    /// Reads and checks a file. Foreign bytes never panic, and nothing is allocated beyond what the file holds.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are no such file, or are of a network that is not run here.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self, FileError> {
        let (_, metadata) = SafeTensors::read_metadata(bytes)?;
        let fields = metadata.metadata().clone().unwrap_or_default();
        expect(&fields, "arch", &["chain"], "chain")?;
        expect(&fields, "inputs", &["luma+twin"], "luma+twin")?;
        expect(&fields, "base", &["twin"], "twin")?;
        let scale = expect(&fields, "scale", &["2", "3", "4"], "2, 3 or 4")? + 2;
        let file = SafeTensors::deserialize(bytes)?;
        let weight = |n: usize| file.tensor(&format!("conv{n}.weight"));
        let convs = (0..=MAX_CONVS).take_while(|n| weight(*n).is_ok()).count();
        let channels = weight(0)?.shape().first().copied().unwrap_or(0);
        let size = Size::new(scale, channels, convs)?;
        let expected = 3 * convs - 1;
        if file.len() != expected {
            return Err(FileError::Tensors(file.len(), expected));
        }
        let read = |n: usize| {
            let (inputs, outputs) = size.shape(n);
            let tensor = |name: &str, shape: &[usize]| tensor(&file, n, name, shape);
            let range = if size.is_last(n) { Vec::new() } else { tensor("range", &[outputs])? };
            if range.iter().any(|&r| r < 0.0) {
                return Err(FileError::Number(format!("conv{n}.range")));
            }
            Ok(Conv {
                weights: tensor("weight", &[outputs, inputs, 3, 3])?,
                bias: tensor("bias", &[outputs])?,
                range,
            })
        };
        Ok(Self { size, convs: (0..convs).map(read).collect::<Result<_, FileError>>()? })
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    pub(crate) fn convs(&self) -> &[Conv] {
        &self.convs
    }
}

/// The index in `allowed` of the value that the metadata have for `key`.
fn expect(
    fields: &HashMap<String, String>,
    key: &'static str,
    allowed: &[&str],
    expected: &'static str,
) -> Result<usize, FileError> {
    let value = fields.get(key).map_or("", String::as_str);
    allowed.iter().position(|&a| a == value).ok_or_else(|| FileError::Metadata {
        key,
        value: value.to_owned(),
        expected,
    })
}

fn tensor(
    file: &SafeTensors<'_>,
    n: usize,
    name: &str,
    expected: &[usize],
) -> Result<Vec<f32>, FileError> {
    let name = format!("conv{n}.{name}");
    let view = file.tensor(&name)?;
    if view.dtype() != Dtype::F32 || view.shape() != expected {
        let (dtype, shape) = (view.dtype(), view.shape().to_vec());
        return Err(FileError::Shape { name, dtype, shape, expected: expected.to_vec() });
    }
    let (numbers, _) = view.data().as_chunks::<4>();
    let numbers: Vec<f32> = numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    if numbers.iter().any(|v| !v.is_finite() || v.abs() > MAX_WEIGHT) {
        return Err(FileError::Number(name));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rounding::tests::{Tensors, random, run};

    #[test]
    fn a_file_of_a_network_is_read() {
        let weights = random(3, 16, 4, 1);
        assert_eq!((weights.size(), weights.convs().len()), (Size::new(3, 16, 4).unwrap(), 4));
    }

    #[test]
    fn what_is_not_run_here_is_refused() {
        let error = |change: &dyn Fn(&mut Tensors)| {
            let mut tensors = Tensors::random(2, 8, 3, 1);
            change(&mut tensors);
            Weights::from_safetensors(&tensors.file()).unwrap_err().to_string()
        };
        for (change, expected) in [
            (&(|t: &mut Tensors| t.set("scale", "5")) as &dyn Fn(&mut Tensors), "2, 3 or 4"),
            (&|t| t.set("base", "lanczos3"), "twin is needed"),
            (&|t| t.set("arch", "blocks"), "chain is needed"),
            (&|t| t.put("conv1.weight", &[8, 4, 3, 3], 0.0), "not F32 [8, 8, 3, 3]"),
            (&|t| t.put("conv1.bias", &[8], f32::NAN), "not finite"),
            (&|t| t.put("conv0.range", &[8], -1.0), "a range below 0"),
            (&|t| t.put("more", &[1], 0.0), "9 tensors, not 8"),
            (&|t| t.put("conv0.weight", &[9, 5, 3, 3], 0.0), "3 convolutions of 9 channels"),
            (&|t| t.remove("conv1.range"), "7 tensors, not 8"),
        ] {
            let error = error(change);
            assert!(error.contains(expected), "{error}");
        }
    }

    proptest! {
        #[test]
        fn foreign_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Weights::from_safetensors(&bytes).is_err());
        }

        #[test]
        fn a_damaged_file_is_refused_or_read(at in 0usize..1 << 14, bit in 0u8..8) {
            let mut file = Tensors::random(2, 8, 2, 1).file();
            let at = at % file.len();
            file[at] ^= 1 << bit;
            if let Ok(weights) = Weights::from_safetensors(&file)
                && let Ok(network) = crate::Network::new(&weights)
            {
                run(&network);
            }
        }
    }
}
