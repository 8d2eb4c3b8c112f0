//! The HT block coder (ITU-T T.814, clause 7): cleanup pass only.
//!
//! A block is encoded by *quads* of 2×2 samples, two quads at a time, rows of quads from the top. Three
//! bit streams share a block: MagSgn (magnitudes and signs) grows from its start, MEL (an adaptive
//! run-length code of rare events) follows, and VLC (significance and exponents) grows backwards
//! from its end.
//!
//! Samples lie in *quad order*: a row of quads after another, each quad as upper left, lower left,
//! upper right, lower right.

pub(crate) mod codes;
pub(crate) mod decode;
pub(crate) mod encode;

/// Maximum number of quads in a row of a block: 1024 samples.
const MAX_QUADS: usize = 512;
/// Exponents of the run lengths of MEL's thirteen states (ITU-T T.814).
const MEL_EXPONENTS: [u8; 13] = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5];

/// Number of bits that a value needs, without leading zeros.
fn bit_length(value: u32) -> u32 {
    32 - value.leading_zeros()
}

/// Whether any byte is 0xff.
fn has_ff(word: u32) -> bool {
    let inverted = !word;
    inverted.wrapping_sub(0x0101_0101) & word & 0x8080_8080 != 0
}

/// Whether the low seven bits of any byte are all set.
fn has_7f(word: u32) -> bool {
    ((word & 0x7f7f_7f7f) + 0x0101_0101) & 0x8080_8080 != 0
}

#[cfg(test)]
mod tests {
    use super::decode::BlockDecoder;
    use super::encode::BlockEncoder;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_that_ask_for_stuffing_are_seen_in_any_place() {
        for at in [0, 8, 16, 24] {
            assert!(has_ff(0xff << at) && has_ff(0x8000_0001 | 0xff << at));
            assert!(!has_ff(0xfe << at) && !has_ff(!(0x1 << at) & 0x7f7f_7f7f));
            assert!(has_7f(0x7f << at) && has_7f(0xff << at) && !has_7f(0x8f << at));
        }
        assert!(!has_ff(0x0001_0000) && !has_ff(0x0100_fe01));
    }

    proptest! {
        #[test]
        fn samples_come_back(
            (across, samples) in (1usize..20, 1usize..20).prop_flat_map(|(a, d)| {
                let sample = prop_oneof![4 => Just(0i32), 3 => -2i32..3, 2 => -40i32..40, 1 => -60000i32..60000];
                (Just(a), proptest::collection::vec(sample, 4 * a * d))
            }),
        ) {
            let coded: Vec<u32> = samples
                .iter()
                .map(|v| v.unsigned_abs() << 1 | u32::from(*v < 0))
                .collect();
            let mut bytes = Vec::new();
            BlockEncoder::default().encode(&coded, across, &mut bytes);
            let mut back = vec![0; samples.len()];
            BlockDecoder::default().decode(&bytes, 17, across, &mut back).expect("our own bytes");
            let halves: Vec<i32> =
                samples.iter().map(|&v| 2 * v + v.signum()).collect();
            prop_assert_eq!(back, halves);
        }

        #[test]
        fn any_bytes_decode_or_fail_without_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            across in 1usize..20, down in 1usize..20, missing in 0u32..30,
        ) {
            let mut back = vec![0; 4 * across * down];
            let _ = BlockDecoder::default().decode(&bytes, missing, across, &mut back);
        }
    }
}
