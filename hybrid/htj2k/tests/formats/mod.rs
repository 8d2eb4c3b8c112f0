//! Formats of pictures, for properties.

use proptest::prelude::*;
use windlass_htj2k::Format;

/// Sizes and depths of samples.
pub(crate) fn formats() -> impl Strategy<Value = Format> {
    let bits = prop_oneof![(1u8..=16, Just(true)), (1u8..=15, Just(false))];
    (1u32..200, 1u32..150, bits).prop_map(|(width, height, (bits, signed))| Format {
        width,
        height,
        bits,
        signed,
    })
}
