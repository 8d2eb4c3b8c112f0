//! Plans how warpgroups run the convolutions between a network's first and last (`wgmma.cu`): how many at once, and on
//! strips of which length.

use super::plan::{Blocks, Shape, SharedMemory};
use super::variant::Variant;
use crate::{Architecture, Kind};

/// Columns of a strip, margins included.
pub(super) const COLUMNS: usize = 64;
/// Rows of features that a warpgroup keeps in its ring.
const RING: usize = 4;
/// Minimum rows of a strip's segment. Shorter ones would be little but margins.
const MIN_ROWS: usize = 4;

/// How warpgroups share the convolutions between a network's first and last, on strips of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strips {
    /// Convolutions of a launch; also the columns and rows on each side of a segment that are not its own.
    pub convs: usize,
    /// Warpgroups of a block of threads; a multiprocessor holds one block.
    pub warpgroups: usize,
    /// Bytes of shared memory of a block.
    pub shared: usize,
}

/// How a launch divides a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Rows of a segment.
    pub rows: usize,
    /// Blocks of the launch, for each picture.
    pub blocks: Blocks,
}

impl Strips {
    /// Plans the strips; `None` for networks and devices that cannot run them.
    pub(super) fn new(
        architecture: &Architecture,
        variant: Variant,
        memory: SharedMemory,
    ) -> Option<Strips> {
        let channels = Shape::of(architecture).channels;
        let known = variant == Variant::Wgmma && matches!(channels, 32 | 48 | 64);
        let between = architecture.convs.saturating_sub(2);
        if !known || between == 0 {
            return None;
        }
        let numbers: &[usize] = match architecture.kind {
            Kind::Blocks => &[2],
            Kind::Chain if between.is_multiple_of(2) => &[2, 1],
            Kind::Chain => &[1],
        };
        numbers.iter().find_map(|&convs| {
            // Sums of a convolution are so many registers of 168 (three warpgroups) or 255 (two); with 96 in all,
            // four warpgroups' 128 suffice.
            let registers = convs * 3 * channels / 2;
            let max = match registers {
                ..=96 if channels == 32 => 4,
                ..=96 => 3,
                _ => 2,
            };
            (1..=max).rev().find_map(|warpgroups| {
                let shared = shared(channels, convs, warpgroups);
                let strips = Strips { convs, warpgroups, shared };
                (shared <= memory.block).then_some(strips)
            })
        })
    }

    /// Cuts pictures of a size for a device with `multiprocessors` multiprocessors, into segments of the length with
    /// which the last block ends first.
    pub(super) fn cut(
        &self,
        width: usize,
        height: usize,
        pictures: usize,
        multiprocessors: usize,
    ) -> Cut {
        let across = width.div_ceil(COLUMNS - 2 * self.convs);
        let down = |rows: usize| height.div_ceil(rows).div_ceil(self.warpgroups);
        let time = |rows: &usize| {
            let rounds = (across * down(*rows) * pictures).div_ceil(multiprocessors.max(1));
            rounds * (rows + 2 * self.convs)
        };
        // The longest of the best.
        let rows = (MIN_ROWS..=height.max(MIN_ROWS)).rev().min_by_key(time);
        let rows = rows.unwrap_or(MIN_ROWS);
        Cut { rows, blocks: Blocks { across, down: down(rows) } }
    }

    /// Multiplications per pixel of long strips.
    pub(super) fn macs(&self, channels: usize) -> f64 {
        (9 * channels * channels * self.convs * COLUMNS) as f64 / self.own_columns()
    }

    /// Bytes of memory traffic per pixel of long strips.
    pub(super) fn bytes(&self, channels: usize) -> f64 {
        (2 * channels) as f64 * (1.0 + COLUMNS as f64 / self.own_columns())
    }

    fn own_columns(&self) -> f64 {
        (COLUMNS - 2 * self.convs) as f64
    }
}

/// Bytes of a convolution's packed weights and biases.
pub(super) fn conv_bytes(channels: usize) -> usize {
    weight_bytes(channels) + 4 * channels
}

/// Bytes of a convolution's packed weights: five rows of taps instead of three, see `wgmma.cu`.
pub(super) fn weight_bytes(channels: usize) -> usize {
    15 * channels * channels * 2
}

/// Bytes of shared memory of a block, as `wgmma.cu` divides it.
fn shared(channels: usize, convs: usize, warpgroups: usize) -> usize {
    let chunks = channels / 8;
    let row = chunks * (COLUMNS + 2) * 16;
    let own = chunks * (RING * COLUMNS + 2) * 16 + usize::from(convs == 2) * row;
    convs * conv_bytes(channels) + warpgroups * own
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOPPER: SharedMemory = SharedMemory { block: 232_448, multiprocessor: 233_472 };

    #[test]
    fn networks_of_32_to_64_channels_run_in_strips() {
        let strips = |architecture, variant| Strips::new(&architecture, variant, HOPPER);
        let large = Architecture::blocks(3, 32, 8);
        let half = strips(large, Variant::Wgmma).expect("strips");
        assert_eq!((half.convs, half.warpgroups), (2, 4));
        assert_eq!(strips(large, Variant::Mma), None);
        // Weights of two convolutions of 64 channels do not fit.
        assert_eq!(strips(Architecture::blocks(2, 64, 4), Variant::Wgmma), None);
        assert_eq!(strips(Architecture::chain(2, 64, 6), Variant::Wgmma).map(|s| s.convs), Some(1));
        assert_eq!(strips(Architecture::chain(2, 48, 6), Variant::Wgmma).map(|s| s.convs), Some(2));
        assert_eq!(strips(Architecture::chain(2, 32, 2), Variant::Wgmma), None);
        assert_eq!(strips(Architecture::blocks(2, 16, 4), Variant::Wgmma), None);
    }

    #[test]
    fn segments_keep_all_multiprocessors_busy_and_cover_the_picture() {
        let strips = Strips { convs: 2, warpgroups: 4, shared: 0 };
        for (width, height, pictures) in [(1280, 720, 1), (640, 360, 1), (640, 360, 16), (7, 3, 1)]
        {
            let Cut { rows, blocks: Blocks { across, down } } =
                strips.cut(width, height, pictures, 132);
            assert!(across * (COLUMNS - 4) >= width && down * 4 * rows >= height);
            assert!((down - 1) * 4 * rows < height, "a block without rows");
        }
        // 22 strips and 6 blocks down: each multiprocessor has one.
        let blocks = Blocks { across: 22, down: 6 };
        assert_eq!(strips.cut(1280, 720, 1, 132), Cut { rows: 30, blocks });
    }
}
