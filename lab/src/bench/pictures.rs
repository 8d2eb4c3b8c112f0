//! Pictures for networks whose speed is measured.

use anyhow::Result;
use windlass_sr::{Architecture, Input, Luma};

use crate::eval::frames::Size;

/// Number of different pictures, so that caches do not hold all of the data that is used again and again.
const PICTURES: usize = 8;

/// Pictures of one size, with noise.
pub(super) struct Pictures {
    low: Vec<Vec<u8>>,
    twin: Vec<Vec<u8>>,
    size: Size,
    network: Architecture,
}

impl Pictures {
    pub(super) fn new(network: Architecture, size: Size) -> Self {
        let mut state = 1u32;
        let mut plane = |count: usize| {
            let mut next = |n: usize| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ((n / 7 % 160) as u32 + (state >> 26)) as u8
            };
            (0..count).map(&mut next).collect::<Vec<u8>>()
        };
        let count = size.area();
        let high = if network.has_twin() { network.scale * network.scale * count } else { 0 };
        Pictures {
            low: (0..PICTURES).map(|_| plane(count)).collect(),
            twin: (0..PICTURES).map(|_| plane(high)).collect(),
            size,
            network,
        }
    }

    /// `count` inputs, the pictures by turns.
    pub(super) fn inputs(&self, count: usize) -> Result<Vec<Input<'_>>> {
        let (Size { width, height }, scale) = (self.size, self.network.scale);
        let input = |n: usize| {
            let twin = || Luma::packed(&self.twin[n % PICTURES], scale * width, scale * height);
            Ok(Input {
                low: Luma::packed(&self.low[n % PICTURES], width, height)?,
                twin: self.network.has_twin().then(twin).transpose()?,
            })
        };
        (0..count).map(input).collect()
    }
}
