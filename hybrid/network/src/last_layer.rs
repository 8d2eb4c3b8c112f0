//! The last convolution of a network, which a publisher's stream may have of its own.
//!
//! The convolutions before it make features; what the last one answers is linear in them. So it alone can be learned
//! anew from a few pictures, and its difference to the built-in one is small.

use thiserror::Error;

use crate::Network;
use crate::integers::Layer;

/// Max sum of an output's weights above zero, and magnitude of the sum of those below: features are not below zero, and
/// 2¹⁵ times either fits in 32 bits.
const MAX_SUM: i32 = 65_535;
/// Max magnitude of a bias.
const MAX_BIAS: u32 = 1 << 30;

/// Weights and biases of a network's last convolution, in its integers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastLayer {
    /// `[out, in, 3, 3]`, row by row.
    pub weights: Vec<i16>,
    /// By output, with half a unit for rounding.
    pub bias: Vec<i32>,
}

/// Why a last convolution is not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LastLayerError {
    /// It has another number of weights or biases than the network's.
    #[error("a last convolution of another size")]
    Size,
    /// The weights of an output, by its number, are too large together.
    #[error("the weights of output {0} are too large")]
    Weights(usize),
    /// The bias of an output, by its number, is too large.
    #[error("the bias of output {0} is too large")]
    Bias(usize),
}

impl LastLayer {
    /// A number that differs where weights or biases do: FNV-1a over their bytes.
    pub fn hash(&self) -> u32 {
        let weights = self.weights.iter().flat_map(|w| w.to_le_bytes());
        let bytes = weights.chain(self.bias.iter().flat_map(|b| b.to_le_bytes()));
        bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }

    /// Refuses what is too large for sums of 32 bits.
    fn check(&self, outputs: usize) -> Result<(), LastLayerError> {
        let by_output = self.weights.chunks_exact(self.weights.len() / outputs);
        for (output, weights) in by_output.enumerate() {
            let sum =
                |sign: i32| weights.iter().map(|&w| (sign * i32::from(w)).max(0)).sum::<i32>();
            if sum(1) > MAX_SUM || sum(-1) > MAX_SUM {
                return Err(LastLayerError::Weights(output));
            }
        }
        match self.bias.iter().position(|b| b.unsigned_abs() > MAX_BIAS) {
            Some(output) => Err(LastLayerError::Bias(output)),
            None => Ok(()),
        }
    }
}

impl Network {
    /// Its last convolution.
    pub fn last_layer(&self) -> LastLayer {
        let (inputs, outputs) = self.last_shape();
        let layer = self.last();
        let places = (0..outputs).flat_map(|o| (0..inputs).map(move |i| (o, i)));
        let weights = places.flat_map(|(o, i)| (0..9).map(move |at| layer.place(o, i, at)));
        LastLayer {
            weights: weights.map(|place| layer.weights[place]).collect(),
            bias: layer.bias[..outputs].to_vec(),
        }
    }

    /// What 1 of its answer, a grey level, is in a bias; a weight is divided by as much.
    pub fn last_unit(&self) -> u32 {
        1 << self.last().shift
    }

    /// The same network with this last convolution.
    ///
    /// # Errors
    ///
    /// Where it does not fit, or its numbers are too large.
    pub fn with_last_layer(&self, last: &LastLayer) -> Result<Self, LastLayerError> {
        let (inputs, outputs) = self.last_shape();
        if (last.weights.len(), last.bias.len()) != (9 * inputs * outputs, outputs) {
            return Err(LastLayerError::Size);
        }
        last.check(outputs)?;
        let (size, shift) = (self.size(), self.last().shift);
        Ok(self.ending_in(Layer::new(size, size.convs() - 1, &last.weights, &last.bias, shift)))
    }

    /// Inputs and outputs of its last convolution.
    fn last_shape(&self) -> (usize, usize) {
        self.size().shape(self.size().convs() - 1)
    }

    fn last(&self) -> &Layer {
        &self.layers()[self.size().convs() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tier;

    #[test]
    fn a_network_with_its_own_last_layer_is_itself() {
        for network in Tier::ALL.into_iter().flat_map(Tier::networks) {
            let last = network.last_layer();
            assert_eq!(network.with_last_layer(&last).as_ref(), Ok(&**network));
            assert_eq!(last.bias.len(), network.scale() * network.scale());
        }
    }

    #[test]
    fn another_size_and_numbers_that_overflow_are_refused() {
        let network = &Tier::Xxs.networks()[0];
        let last = network.last_layer();
        let refused = |change: &dyn Fn(&mut LastLayer)| {
            let mut last = last.clone();
            change(&mut last);
            network.with_last_layer(&last).unwrap_err()
        };
        assert_eq!(refused(&|l| _ = l.weights.pop()), LastLayerError::Size);
        assert_eq!(refused(&|l| l.bias.push(0)), LastLayerError::Size);
        assert_eq!(refused(&|l| l.weights[72..].fill(i16::MIN)), LastLayerError::Weights(1));
        assert_eq!(refused(&|l| l.bias[3] = i32::MIN), LastLayerError::Bias(3));
    }

    #[test]
    fn any_change_changes_the_hash() {
        let last = Tier::Xs.networks()[0].last_layer();
        let mut other = last.clone();
        other.weights[17] += 1;
        assert_ne!(last.hash(), other.hash());
        other = last.clone();
        other.bias[0] -= 1;
        assert_ne!(last.hash(), other.hash());
    }
}
