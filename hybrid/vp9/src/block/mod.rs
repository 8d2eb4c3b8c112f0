//! Blocks: their sizes (specification §10.2), what the bitstream says about each (§6.4.5 –
//! §6.4.20) and the prediction of their vectors (§6.4.22, §6.5).

pub(crate) mod mode_info;
pub(crate) mod reference_context;
pub(crate) mod vectors;

/// The size of a block: `BLOCK_4X4` (0) to `BLOCK_64X64` (12) of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct BlockSize(u8);

/// Value of `partition` (`decode_partition`, §6.4.3): the square is one block.
pub(crate) const PARTITION_NONE: u8 = 0;
/// Value of `partition`: the square is cut into an upper and a lower half.
pub(crate) const PARTITION_HORIZONTAL: u8 = 1;
/// Value of `partition`: the square is cut into a left and a right half.
pub(crate) const PARTITION_VERTICAL: u8 = 2;
/// Value of `partition`: the square is cut into four.
pub(crate) const PARTITION_SPLIT: u8 = 3;

impl BlockSize {
    /// The smallest size that is not a part of a square.
    pub(crate) const B8X8: Self = Self(3);

    /// The parts that a square of side 8 << `log2` is cut into.
    pub(crate) fn part(log2: usize, partition: u8) -> Self {
        // By the square's size and the partition: the index of the parts' size (VP9 specification, `subsize_lookup`).
        const PARTS: [[u8; 4]; 4] = [[3, 2, 1, 0], [6, 5, 4, 3], [9, 8, 7, 6], [12, 11, 10, 9]];
        Self(PARTS[log2][usize::from(partition & 3)])
    }

    /// The size's index in the tables of the specification.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Whether the size is a part of an 8×8 square.
    pub(crate) fn below_8x8(self) -> bool {
        self < Self::B8X8
    }

    /// Binary logarithm of the width in 4×4 units.
    pub(crate) fn width4_log2(self) -> u32 {
        // The specification's `b_width_log2_lookup`.
        const W: [u8; 13] = [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4];
        u32::from(W[self.index()])
    }

    /// Binary logarithm of the height in 4×4 units.
    pub(crate) fn height4_log2(self) -> u32 {
        // The specification's `b_height_log2_lookup`.
        const H: [u8; 13] = [0, 1, 0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4];
        u32::from(H[self.index()])
    }

    /// Width in 8×8 units, at least 1.
    pub(crate) fn width8(self) -> usize {
        (1usize << self.width4_log2()).div_ceil(2)
    }

    /// Height in 8×8 units, at least 1.
    pub(crate) fn height8(self) -> usize {
        (1usize << self.height4_log2()).div_ceil(2)
    }

    /// The largest transform that fits into the block (`max_txsize_lookup`).
    pub(crate) fn largest_transform(self) -> u8 {
        self.width4_log2().min(self.height4_log2()).min(3) as u8
    }

    /// The largest transform of the 4:2:0 chroma block (`uv_txsize_lookup`).
    pub(crate) fn largest_chroma_transform(self) -> u8 {
        let side = self.width4_log2().min(self.height4_log2());
        side.saturating_sub(1) as u8
    }

    /// The luma mode probabilities that an intra block of an inter frame has (`size_group_lookup`).
    pub(crate) fn group(self) -> usize {
        usize::from([0u8, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3][self.index()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_square_have_its_sides_or_half_of_them() {
        for log2 in 0..4 {
            let side = 2u32 + log2 as u32 - 1;
            let dims = |p| {
                let s = BlockSize::part(log2, p);
                (s.width4_log2(), s.height4_log2())
            };
            assert_eq!(dims(PARTITION_NONE), (side, side));
            assert_eq!(dims(PARTITION_HORIZONTAL), (side, side - 1));
            assert_eq!(dims(PARTITION_VERTICAL), (side - 1, side));
            assert_eq!(dims(PARTITION_SPLIT), (side - 1, side - 1));
        }
    }

    #[test]
    fn chroma_transforms_fit_into_half_the_block() {
        let size = BlockSize::part(3, PARTITION_NONE);
        assert_eq!((size.largest_transform(), size.largest_chroma_transform()), (3, 3));
        let size = BlockSize::part(3, PARTITION_HORIZONTAL);
        assert_eq!((size.largest_transform(), size.largest_chroma_transform()), (3, 2));
        assert_eq!(BlockSize::B8X8.largest_chroma_transform(), 0);
        assert_eq!(BlockSize::part(0, PARTITION_SPLIT).largest_chroma_transform(), 0);
    }
}
