//! A network's integers as bytes: what is built in.
//!
//! Little-endian: version (1), scale, channels between convolutions, number of convolutions, a byte each; then by
//! convolution its shift (a byte), biases `[out]` of 32 bits and weights `[out, in, 3, 3]` of 16.

use thiserror::Error;

use crate::integers::{Layer, MAX_SHIFT, Network};
use crate::size::{Size, SizeError};

/// Version of the packed form, its first byte.
const VERSION: u8 = 1;

/// Why bytes are no packed network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PackedError {
    /// The first byte is another version, or there are no bytes.
    #[error("a network's bytes begin with {VERSION}, not {0}")]
    Version(u8),
    /// The network has a size that is not run.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// There are more or fewer bytes than the network has.
    #[error("a network of this size has another number of bytes")]
    Length,
    /// A convolution has a shift that is not supported.
    #[error("a shift of {0} is not from 1 to {MAX_SHIFT}")]
    Shift(u8),
}

impl Network {
    /// Reads a network. Foreign bytes never panic, and nothing is allocated beyond a few times their number.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are no network, or one of a size that is not run.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PackedError> {
        let Some((&[version, scale, channels, convs], mut rest)) = bytes.split_first_chunk() else {
            return Err(PackedError::Length);
        };
        if version != VERSION {
            return Err(PackedError::Version(version));
        }
        let size = Size::new(scale.into(), channels.into(), convs.into())?;
        let bytes: usize =
            (0..size.convs()).map(|n| 1 + 4 * size.shape(n).1 + 2 * size.count(n)).sum();
        if rest.len() != bytes {
            return Err(PackedError::Length);
        }
        let mut layers = Vec::with_capacity(size.convs());
        for n in 0..size.convs() {
            let (_, outputs) = size.shape(n);
            let (shift, after) = rest.split_at(1);
            let (bias, after) = after.split_at(4 * outputs);
            let (weights, after) = after.split_at(2 * size.count(n));
            rest = after;
            let shift = shift[0];
            if !(1..=MAX_SHIFT).contains(&shift.into()) {
                return Err(PackedError::Shift(shift));
            }
            let bias: Vec<i32> =
                bias.as_chunks().0.iter().map(|&b| i32::from_le_bytes(b)).collect();
            let weights: Vec<i16> =
                weights.as_chunks().0.iter().map(|&b| i16::from_le_bytes(b)).collect();
            layers.push(Layer::new(size, n, &weights, &bias, shift.into()));
        }
        Ok(Self::of(size, layers))
    }

    /// The network's bytes, as [`from_bytes`](Self::from_bytes) reads them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let size = self.size();
        let mut out = vec![VERSION, size.scale() as u8, size.channels() as u8, size.convs() as u8];
        for (n, layer) in self.layers().iter().enumerate() {
            let (inputs, outputs) = size.shape(n);
            out.push(layer.shift as u8);
            out.extend(layer.bias[..outputs].iter().flat_map(|b| b.to_le_bytes()));
            let places = (0..outputs).flat_map(|o| (0..inputs).map(move |i| (o, i)));
            for (o, i) in places {
                out.extend(
                    (0..9).flat_map(|at| layer.weights[layer.place(o, i, at)].to_le_bytes()),
                );
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rounding::tests::{random, run};

    #[test]
    fn bytes_are_read_as_they_were_written() {
        for (scale, channels, convs) in [(2, 8, 4), (3, 16, 2), (4, 24, 5)] {
            let network = Network::new(&random(scale, channels, convs, 4)).unwrap();
            assert_eq!(Network::from_bytes(&network.to_bytes()).as_ref(), Ok(&network));
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let bytes = Network::new(&random(2, 8, 3, 4)).unwrap().to_bytes();
        let error = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = bytes.clone();
            change(&mut bytes);
            Network::from_bytes(&bytes).unwrap_err()
        };
        assert_eq!(error(&|b| b[0] = 2), PackedError::Version(2));
        assert_eq!(error(&|b| b.truncate(3)), PackedError::Length);
        assert_eq!(error(&|b| b.push(0)), PackedError::Length);
        assert_eq!(error(&|b| b[4] = 0), PackedError::Shift(0));
        assert_eq!(error(&|b| b[4] = 31), PackedError::Shift(31));
        assert!(matches!(error(&|b| b[1] = 5), PackedError::Size(_)));
        assert!(matches!(error(&|b| b[2] = 9), PackedError::Size(_)));
        assert!(matches!(error(&|b| b[3] = 200), PackedError::Size(_)));
    }

    proptest! {
        #[test]
        fn foreign_bytes_are_refused_or_run(
            head in prop_oneof![Just(1u8), any::<u8>()], scale in 0u8..6, channels in 0u8..20, convs in 0u8..5,
            body in proptest::collection::vec(any::<u8>(), 0..64), fill in any::<u8>(),
        ) {
            let mut bytes = vec![head, scale, channels, convs];
            bytes.extend(&body);
            prop_assert!(Network::from_bytes(&bytes).is_err());
            // Of the right length, whatever they say.
            if let Ok(size) = Size::new(scale.into(), channels.into(), convs.into()) {
                let length: usize = (0..size.convs()).map(|n| 1 + 4 * size.shape(n).1 + 2 * size.count(n)).sum();
                let mut bytes = vec![1, scale, channels, convs];
                bytes.extend(body.iter().copied().chain(std::iter::repeat(fill)).take(length));
                if let Ok(network) = Network::from_bytes(&bytes) {
                    run(&network);
                }
            }
        }
    }
}
