//! A last convolution as bytes: its difference to the built-in one of the same network.
//!
//! A byte `step`, a byte `k`, then a bit for each bit: the differences by `2^step`, first all weights, then all biases,
//! in Rice's code. Of the difference `d`, as `2d` or `−2d − 1`, comes first what is beyond `k` bits, as so many ones
//! and a zero, then the `k` bits. [`ESCAPE`] ones come before 28 plain bits in their place. Bits that fill the last
//! byte are zero.
//!
//! Differences are always to the built-in network, never to what was sent before: whoever has the newest has all.

use thiserror::Error;

use crate::{LastLayer, LastLayerError, Network};

/// Ones that say that plain bits follow.
const ESCAPE: u32 = 16;
/// Plain bits of such a number.
const PLAIN: u32 = 28;
/// Max step and `k`.
const MAX_STEP: u8 = 15;

/// Why bytes are no difference to a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DifferenceError {
    /// They end too early, go on behind the end, or have a step that there is not.
    #[error("the bytes are no difference to this network")]
    Malformed,
    /// The network with this difference is not run.
    #[error(transparent)]
    LastLayer(#[from] LastLayerError),
}

/// The bytes of the last convolution that is nearest to `own` in steps of `2^step`, to be read by [`read`]. `None`
/// where `own` is of another size, the step larger than there is, or a difference too large.
pub fn write(built_in: &Network, own: &LastLayer, step: u8) -> Option<Vec<u8>> {
    let base = built_in.last_layer();
    if step > MAX_STEP
        || (own.weights.len(), own.bias.len()) != (base.weights.len(), base.bias.len())
    {
        return None;
    }
    let weights = own.weights.iter().zip(&base.weights).map(|(&a, &b)| i64::from(a) - i64::from(b));
    let biases = own.bias.iter().zip(&base.bias).map(|(&a, &b)| i64::from(a) - i64::from(b));
    let half = (1i64 << step) >> 1;
    let folded = weights.chain(biases).map(|d| fold((d + half) >> step));
    let folded: Vec<u32> = folded.collect::<Option<_>>()?;
    let bits = |k: u32| folded.iter().map(|&v| u64::from(length(v, k))).sum::<u64>();
    let k = (0..u32::from(MAX_STEP)).min_by_key(|&k| bits(k))?;
    let mut out = Bits { bytes: vec![step, k as u8], free: 0 };
    for value in folded {
        out.push(value, k);
    }
    Some(out.bytes)
}

/// The network with the difference that [`write`] has written. Foreign bytes never panic; they take the time and memory
/// of a sound difference at most.
///
/// # Errors
///
/// Where they are no difference to the network, or one that is not run.
pub fn read(built_in: &Network, bytes: &[u8]) -> Result<Network, DifferenceError> {
    let [step, k, rest @ ..] = bytes else { return Err(DifferenceError::Malformed) };
    if *step > MAX_STEP || *k > MAX_STEP {
        return Err(DifferenceError::Malformed);
    }
    let mut last = built_in.last_layer();
    let mut rest = Reader { bytes: rest, at: 0 };
    let mut next = || {
        let difference = i64::from(rest.next((*k).into()).ok_or(DifferenceError::Malformed)?);
        Ok::<_, DifferenceError>(difference << step)
    };
    let each = last.weights.len() / last.bias.len();
    for (at, weight) in last.weights.iter_mut().enumerate() {
        let sum = i64::from(*weight) + next()?;
        *weight = i16::try_from(sum).map_err(|_| LastLayerError::Weights(at / each))?;
    }
    for (output, bias) in last.bias.iter_mut().enumerate() {
        let sum = i64::from(*bias) + next()?;
        *bias = i32::try_from(sum).map_err(|_| LastLayerError::Bias(output))?;
    }
    if !rest.is_at_end() {
        return Err(DifferenceError::Malformed);
    }
    Ok(built_in.with_last_layer(&last)?)
}

/// A number without a sign, small where the number is; `None` beyond [`PLAIN`] bits.
fn fold(d: i64) -> Option<u32> {
    let folded = if d < 0 { -2 * d - 1 } else { 2 * d };
    u32::try_from(folded).ok().filter(|&v| v < 1 << PLAIN)
}

fn unfold(v: u32) -> i32 {
    let half = (v / 2) as i32;
    if v % 2 == 0 { half } else { -half - 1 }
}

/// Bits of a number's code.
fn length(v: u32, k: u32) -> u32 {
    if v >> k < ESCAPE { (v >> k) + 1 + k } else { ESCAPE + PLAIN }
}

/// Bits, the highest of each byte first.
struct Bits {
    bytes: Vec<u8>,
    /// Bits of the last byte that are not taken.
    free: u32,
}

impl Bits {
    fn push(&mut self, v: u32, k: u32) {
        let high = v >> k;
        if high < ESCAPE {
            self.put((1 << (high + 1)) - 2, high + 1);
            self.put(v & ((1 << k) - 1), k);
        } else {
            self.put((1 << ESCAPE) - 1, ESCAPE);
            self.put(v, PLAIN);
        }
    }

    fn put(&mut self, bits: u32, count: u32) {
        for at in (0..count).rev() {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            self.free -= 1;
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((bits >> at & 1) as u8) << self.free;
            }
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    /// Bits that are read.
    at: usize,
}

impl Reader<'_> {
    fn bit(&mut self) -> Option<u32> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Some(bit.into())
    }

    fn bits(&mut self, count: u32) -> Option<u32> {
        (0..count).try_fold(0, |value, _| Some(value << 1 | self.bit()?))
    }

    fn next(&mut self, k: u32) -> Option<i32> {
        let mut high = 0;
        while high < ESCAPE && self.bit()? == 1 {
            high += 1;
        }
        let value = if high < ESCAPE { high << k | self.bits(k)? } else { self.bits(PLAIN)? };
        Some(unfold(value))
    }

    /// Whether nothing is left but zeros that fill the last byte.
    fn is_at_end(&mut self) -> bool {
        self.at.div_ceil(8) == self.bytes.len() && {
            let left = (8 * self.bytes.len() - self.at) as u32;
            self.bits(left) == Some(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Tier;
    use crate::rounding::tests::run;

    #[test]
    fn what_was_written_is_read_and_small_differences_are_few_bytes() {
        for network in Tier::ALL.into_iter().flat_map(Tier::networks) {
            let mut own = network.last_layer();
            for (n, weight) in own.weights.iter_mut().enumerate() {
                *weight += (n % 7) as i16 - 3;
            }
            own.bias[1] += 70_000;
            let bytes = write(network, &own, 0).unwrap();
            assert_eq!(read(network, &bytes).unwrap().last_layer(), own);
            let none = write(network, &network.last_layer(), 0).unwrap();
            assert_eq!(none.len(), 2 + (own.weights.len() + own.bias.len()).div_ceil(8));
            assert!(write(network, &own, 5).unwrap().len() < bytes.len());
        }
    }

    #[test]
    fn another_length_is_refused_and_so_is_what_overflows() {
        let network = &Tier::Xxs.networks()[0];
        let bytes = write(network, &network.last_layer(), 0).unwrap();
        assert_eq!(read(network, &[]), Err(DifferenceError::Malformed));
        assert_eq!(read(network, &bytes[..bytes.len() - 1]), Err(DifferenceError::Malformed));
        let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
        assert_eq!(read(network, &longer), Err(DifferenceError::Malformed));
        let mut wild = vec![15, 15];
        wild.resize(4000, 0x55);
        assert!(matches!(read(network, &wild), Err(DifferenceError::LastLayer(_))));
        assert_eq!(read(network, &[16, 0, 0]), Err(DifferenceError::Malformed));
    }

    proptest! {
        #[test]
        fn any_last_layer_comes_back_within_half_a_step(
            changes in proptest::collection::vec((0usize..292, -400i16..400), 0..60), step in 0u8..6,
        ) {
            let network = &Tier::Xxs.networks()[0];
            let mut own = network.last_layer();
            for (at, by) in changes {
                match own.weights.get_mut(at) {
                    Some(weight) => *weight = weight.saturating_add(by),
                    None => own.bias[at % 4] += 1000 * i32::from(by),
                }
            }
            let bytes = write(network, &own, step).unwrap();
            if let Ok(back) = read(network, &bytes) {
                let near = |a: i32, b: i32| a.abs_diff(b) <= (1 << step) / 2;
                let last = back.last_layer();
                prop_assert!(last.weights.iter().zip(&own.weights).all(|(&a, &b)| near(a.into(), b.into())));
                prop_assert!(last.bias.iter().zip(&own.bias).all(|(&a, &b)| near(a, b)));
            }
        }

        #[test]
        fn foreign_bytes_are_refused_or_run(
            step in 0u8..18, k in 0u8..18, body in proptest::collection::vec(any::<u8>(), 0..64), fill in any::<u8>(),
            length in 0usize..700, scale in 0usize..3,
        ) {
            let networks: Vec<_> = Tier::ALL.into_iter().flat_map(Tier::networks).collect();
            let mut bytes = vec![step, k];
            bytes.extend(body.iter().copied().chain(std::iter::repeat(fill)).take(length));
            if let Ok(network) = read(networks[scale], &bytes) {
                run(&network);
            }
        }
    }
}
