//! The blocks in which a transformed picture is encoded, and the codestream made of encoded blocks.
//!
//! [`Encoder`](crate::Encoder) encodes the blocks by itself. A caller that encodes them elsewhere, byte for byte the
//! same, gets the codestream made of them here.

use std::ops::Range;

use crate::bands::{Band, LogSides, bands, cell_of};
use crate::bits::BitWriter;
use crate::headers::{self, Header, Step, Transform};
use crate::tag_tree::TagTree;
use crate::wavelet::NORMS;
use crate::{Error, Format};

/// Binary logarithm of the side of a block.
const LOG_BLOCK: u32 = 6;
/// Maximum width and height of a block, in samples.
pub const BLOCK: usize = 1 << LOG_BLOCK;
/// Maximum number of levels that the encoder makes.
pub const MAX_LEVELS: u8 = NORMS.len() as u8;
/// Bits above the nominal range of a band, for filters that overshoot.
const GUARD_BITS: u8 = 2;

/// A block of a band, and where its coefficients lie in the transformed plane, which is as wide as the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The index of the block's band among all bands.
    pub band: usize,
    /// The block's first column in the plane.
    pub x: usize,
    /// The plane's row in which the block begins.
    pub y: usize,
    /// Number of the plane's rows from one row of the block to the next.
    pub row_step: usize,
    /// Number of the block's columns: 1 to [`BLOCK`].
    pub width: usize,
    /// Number of the block's rows: 1 to [`BLOCK`].
    pub height: usize,
}

/// How the coefficients of a band become integers: the magnitude times `inverse`, rounded down, and at most `max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantiser {
    /// One over the quantiser step.
    pub inverse: f32,
    /// Maximum magnitude, below 2²⁷.
    pub max: u32,
}

/// The blocks of a picture in the order of the codestream.
#[derive(Debug, Clone)]
pub struct Layout {
    format: Format,
    levels: u8,
    bands: Vec<BandBlocks>,
    blocks: Vec<Block>,
}

/// The blocks of one band.
#[derive(Debug, Clone)]
struct BandBlocks {
    band: Band,
    /// Number of blocks in a row.
    columns: usize,
    blocks: Range<usize>,
}

impl Layout {
    /// The layout of a picture under a number of levels of the transform, at most [`MAX_LEVELS`]. It takes memory for
    /// each block of the picture, however large that is.
    ///
    /// # Errors
    ///
    /// Fails if the format is not [legal](Format::is_legal).
    pub fn new(format: Format, levels: u8) -> Result<Self, Error> {
        if !format.is_legal() {
            return Err(Error::Format);
        }
        let levels = levels.min(MAX_LEVELS);
        let (width, height) = (format.width as usize, format.height as usize);
        let mut layout = Self { format, levels, bands: Vec::new(), blocks: Vec::new() };
        for band in (0..=levels).flat_map(|r| bands(width, height, levels, r)) {
            let columns = band.area.width.div_ceil(BLOCK);
            let count = columns * band.area.height.div_ceil(BLOCK);
            let first = layout.blocks.len();
            layout.blocks.extend((0..count).map(|i| {
                let area =
                    cell_of(band.area, LogSides::square(LOG_BLOCK), i % columns, i / columns);
                let y = band.rows.at(area.y);
                Block {
                    band: band.index,
                    x: area.x,
                    y,
                    row_step: band.rows.at(area.y + 1) - y,
                    width: area.width,
                    height: area.height,
                }
            }));
            layout.bands.push(BandBlocks { band, columns, blocks: first..first + count });
        }
        Ok(layout)
    }

    /// The format of the picture's samples.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Number of levels of the transform.
    pub fn levels(&self) -> u8 {
        self.levels
    }

    /// All blocks of the picture, in the order of the codestream.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The quantisers of all bands for a step in sample units. A step that cannot be written becomes the nearest that
    /// can.
    pub fn quantisers(&self, step: f32) -> Vec<Quantiser> {
        let steps = self.steps(step).into_iter();
        let quantiser = |(step, bands): (Step, &BandBlocks)| Quantiser {
            inverse: 1.0 / step.size(self.range(&bands.band)),
            max: (1 << magnitude_bits(step)) - 1,
        };
        steps.zip(&self.bands).map(quantiser).collect()
    }

    /// The codestream of encoded blocks, which were quantised with the same step. `coded` gives the cleanup pass of
    /// each block by its index: no bytes for a block whose coefficients are all 0.
    pub fn assemble<'a>(&self, step: f32, coded: impl Fn(usize) -> &'a [u8]) -> Vec<u8> {
        self.write(Transform::Irreversible, self.steps(step), coded)
    }

    /// Number of bits of a band's nominal range.
    fn range(&self, band: &Band) -> i32 {
        i32::from(self.format.bits + band.highs)
    }

    fn steps(&self, step: f32) -> Vec<Step> {
        let of_band = |BandBlocks { band, .. }: &BandBlocks| {
            let at = usize::from(band.level).saturating_sub(1);
            let (low, high) = if band.level == 0 { (1.0, 1.0) } else { NORMS[at] };
            let norm = match band.highs {
                0 => low * low,
                1 => low * high,
                _ => high * high,
            };
            Step::nearest(step / norm, self.range(band))
        };
        self.bands.iter().map(of_band).collect()
    }

    /// The codestream of blocks that were encoded without loss.
    pub(crate) fn assemble_exact<'a>(&self, coded: impl Fn(usize) -> &'a [u8]) -> Vec<u8> {
        let exact = |BandBlocks { band, .. }: &BandBlocks| Step {
            exponent: self.format.bits + band.highs,
            mantissa: 0,
        };
        self.write(Transform::Reversible, self.bands.iter().map(exact).collect(), coded)
    }

    fn write<'a>(
        &self,
        transform: Transform,
        steps: Vec<Step>,
        coded: impl Fn(usize) -> &'a [u8],
    ) -> Vec<u8> {
        let header = Header {
            format: self.format,
            levels: self.levels,
            transform,
            log_block: LogSides::square(LOG_BLOCK),
            precincts: Vec::new(),
            position_first: false,
            sop: false,
            eph: false,
            quantiser: headers::Quantiser { guard_bits: GUARD_BITS, steps },
        };
        let mut out = Vec::with_capacity(512 + self.format.area() / 8);
        let length_at = header.write(&mut out);
        // The coarsest resolution has one band, each other three.
        let (low, high) = self.bands.split_at(1);
        for packet in std::iter::once(low).chain(high.chunks(3)) {
            write_packet_header(packet, &header.quantiser.steps, &coded, &mut out);
            for block in packet.iter().flat_map(|band| band.blocks.clone()) {
                out.extend_from_slice(coded(block));
            }
        }
        Header::finish(&mut out, length_at);
        out
    }
}

/// Number of magnitude bits of a band with this step.
fn magnitude_bits(step: Step) -> u32 {
    u32::from(GUARD_BITS + step.exponent) - 1
}

fn write_packet_header<'a>(
    packet: &[BandBlocks],
    steps: &[Step],
    coded: impl Fn(usize) -> &'a [u8],
    out: &mut Vec<u8>,
) {
    let mut bits = BitWriter::new(out);
    let any = packet.iter().any(|band| band.blocks.clone().any(|b| !coded(b).is_empty()));
    bits.put(any);
    if !any {
        bits.finish();
        return;
    }
    for BandBlocks { band, columns, blocks } in packet {
        if blocks.is_empty() {
            continue;
        }
        let rows = blocks.len() / columns;
        // Blocks are encoded down to the last bit, in one pass: all leave out the same bits.
        let missing = magnitude_bits(steps[band.index]) - 1;
        let is_empty = |x, y| u32::from(coded(blocks.start + y * columns + x).is_empty());
        let mut included = TagTree::of(*columns, rows, is_empty);
        let mut planes = TagTree::of(*columns, rows, |_, _| missing);
        for (i, block) in blocks.clone().enumerate() {
            let (x, y) = (i % columns, i / columns);
            included.write(x, y, 1, |bit| bits.put(bit));
            let length = coded(block).len() as u32;
            if length == 0 {
                continue;
            }
            planes.write(x, y, missing + 1, |bit| bits.put(bit));
            // The code for one pass.
            bits.put(false);
            let needed = (32 - length.leading_zeros()).max(3);
            for _ in 3..needed {
                bits.put(true);
            }
            bits.put(false);
            bits.put_bits(length, needed);
        }
    }
    bits.finish();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encoder;

    #[test]
    fn blocks_cover_the_plane_once() {
        for (width, height, levels) in [(1, 1, 5), (7, 5, 2), (640, 360, 5), (3, 200, 4), (9, 9, 0)]
        {
            let format = Format { width, height, bits: 13, signed: true };
            let layout = Layout::new(format, levels).expect("a legal format");
            let mut seen = vec![0; format.area()];
            for block in layout.blocks() {
                assert!((1..=BLOCK).contains(&block.width) && (1..=BLOCK).contains(&block.height));
                for row in 0..block.height {
                    let at = (block.y + row * block.row_step) * width as usize + block.x;
                    seen[at..at + block.width].iter_mut().for_each(|n| *n += 1);
                }
            }
            assert!(seen.iter().all(|&n| n == 1), "{width}x{height} {levels}");
            assert!(layout.blocks().iter().all(|b| b.band < layout.quantisers(1.0).len()));
        }
    }

    #[test]
    fn blocks_of_nothing_make_a_flat_picture() {
        let format = Format { width: 200, height: 70, bits: 13, signed: true };
        let flat = Encoder::new(&vec![0; 14_000], format, 5).expect("a legal picture");
        let layout = Layout::new(format, 5).expect("a legal format");
        assert_eq!(layout.assemble(16.0, |_| &[]), flat.encode(16.0));
    }
}
