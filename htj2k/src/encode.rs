//! The encoder: transform once, then quantise and code at any step.

#![allow(clippy::inline_always)] // functions take on the target features of their callers

use std::ops::Range;

use crate::bands::{Area, Band, bands, cell_of};
use crate::bits::BitWriter;
use crate::block::encode::BlockEncoder;
use crate::headers::{Header, Quantiser, Step, Transform};
use crate::tag_tree::TagTree;
use crate::wavelet::{self, Irreversible, NORMS, Reversible, Rows};
use crate::wide::wide;
use crate::{Error, Format};

/// Logarithm of the side of a block.
const LOG_BLOCK: u32 = 6;
const BLOCK: usize = 1 << LOG_BLOCK;
/// Most levels that the encoder makes.
const MAX_LEVELS: u8 = NORMS.len() as u8;
/// Bits above the nominal range of a band, for filters that overshoot.
const GUARD_BITS: u8 = 2;

/// A picture under the 9/7 transform, ready to be coded at any step.
#[derive(Debug)]
pub struct Encoder {
    format: Format,
    levels: u8,
    plane: Vec<f32>,
}

impl Encoder {
    /// Transforms a picture over a number of levels (5 is usual; more than 8 are as 8). Samples
    /// beyond the format's range are clamped.
    pub fn new(samples: &[i16], format: Format, levels: u8) -> Result<Self, Error> {
        Self::with_memory(Vec::new(), samples, format, levels)
    }

    /// The same in memory that [`into_memory`](Self::into_memory) gave back, so that the system need not find and clear it
    /// anew: for large pictures that takes as long as the transform.
    pub fn with_memory(
        mut plane: Vec<f32>,
        samples: &[i16],
        format: Format,
        levels: u8,
    ) -> Result<Self, Error> {
        check(samples, format)?;
        let levels = levels.min(MAX_LEVELS);
        plane.resize(samples.len(), 0.0);
        centre(samples, format, &mut plane);
        wavelet::forward::<Irreversible>(&mut plane, format.width as usize, levels);
        Ok(Self { format, levels, plane })
    }

    /// The memory for another picture.
    pub fn into_memory(self) -> Vec<f32> {
        self.plane
    }

    /// The codestream at a quantiser step in sample units; steps out of what can be written become
    /// the nearest that can.
    pub fn encode(&self, step: f32) -> Vec<u8> {
        let range = |band: &Band| i32::from(self.format.bits + band.highs);
        let quantise = |band: &Band| {
            let at = usize::from(band.level).saturating_sub(1);
            let (low, high) = if band.level == 0 { (1.0, 1.0) } else { NORMS[at] };
            let norm = match band.highs {
                0 => low * low,
                1 => low * high,
                _ => high * high,
            };
            Step::nearest(step / norm, range(band))
        };
        write(
            self.format,
            self.levels,
            Transform::Irreversible,
            quantise,
            |band, step, area, out| {
                let quantiser = (1.0 / step.size(range(band)), (1 << magnitude_bits(step)) - 1);
                let stride = self.format.width as usize;
                quantised(&self.plane, stride, band.rows, area, out, quantiser)
            },
        )
    }
}

/// The codestream of a picture by the 5/3 transform, which gives every sample back. Samples beyond
/// the format's range are clamped.
pub fn encode_lossless(samples: &[i16], format: Format, levels: u8) -> Result<Vec<u8>, Error> {
    let levels = levels.min(MAX_LEVELS);
    check(samples, format)?;
    let ((least, most), level) = (format.range(), format.level());
    let centred = |&s: &i16| i32::from(s).clamp(least, most) - level;
    let mut plane: Vec<i32> = samples.iter().map(centred).collect();
    let stride = format.width as usize;
    wavelet::forward::<Reversible>(&mut plane, stride, levels);
    let exact = |band: &Band| Step { exponent: format.bits + band.highs, mantissa: 0 };
    Ok(write(format, levels, Transform::Reversible, exact, |band, _, area, out| {
        quad_order(&plane, stride, band.rows, area, out, |q| q.unsigned_abs() << 1 | q as u32 >> 31)
    }))
}

fn check(samples: &[i16], format: Format) -> Result<(), Error> {
    if format.is_legal() && samples.len() == format.area() { Ok(()) } else { Err(Error::Format) }
}

wide! {
    /// The samples around 0.
    fn centre(samples: &[i16], format: Format, out: &mut [f32]) = centre_by
}

#[inline(always)]
fn centre_by(samples: &[i16], format: Format, out: &mut [f32]) {
    let ((least, most), level) = (format.range(), format.level());
    for (to, &s) in out.iter_mut().zip(samples) {
        *to = (i32::from(s).clamp(least, most) - level) as f32;
    }
}

/// The magnitude bits of a band.
fn magnitude_bits(step: Step) -> u32 {
    u32::from(GUARD_BITS + step.exponent) - 1
}

wide! {
    /// A block's coefficients, quantised by a factor and a greatest magnitude, in [`quad_order`].
    fn quantised(
        plane: &[f32], stride: usize, rows: Rows, area: Area, out: &mut [u32], quantiser: (f32, u32),
    ) -> bool = quantised_by
}

#[inline(always)]
fn quantised_by(
    plane: &[f32],
    stride: usize,
    rows: Rows,
    area: Area,
    out: &mut [u32],
    (inverse, most): (f32, u32),
) -> bool {
    let is_small = |row: &[f32]| row.iter().fold(true, |all, v| all & (v.abs() * inverse < 1.0));
    let row = |y: usize| &plane[rows.at(area.y + y) * stride + area.x..][..area.width];
    if (0..area.height).all(|y| is_small(row(y))) {
        return false;
    }
    quad_order(plane, stride, rows, area, out, |v| {
        let q = (v * inverse) as i32;
        q.unsigned_abs().min(most) << 1 | q as u32 >> 31
    })
}

/// Puts a block's coefficients into quad order, each as `code` makes it; pads it to whole quads.
/// Returns whether any is not 0.
#[inline(always)]
fn quad_order<T: Copy>(
    plane: &[T],
    stride: usize,
    rows: Rows,
    area: Area,
    out: &mut [u32],
    code: impl Fn(T) -> u32,
) -> bool {
    let across = area.width.div_ceil(2);
    let mut any = 0;
    for (i, line) in out.chunks_exact_mut(4 * across).take(area.height.div_ceil(2)).enumerate() {
        let upper = &plane[rows.at(area.y + 2 * i) * stride + area.x..][..area.width];
        let pairs = line.as_chunks_mut::<2>().0;
        if 2 * i + 1 < area.height {
            let lower = &plane[rows.at(area.y + 2 * i + 1) * stride + area.x..][..area.width];
            for ((pair, &a), &b) in pairs.iter_mut().zip(upper).zip(lower) {
                *pair = [code(a), code(b)];
                any |= pair[0] | pair[1];
            }
        } else {
            for (pair, &a) in pairs.iter_mut().zip(upper) {
                *pair = [code(a), 0];
                any |= pair[0];
            }
        }
        if area.width % 2 == 1 {
            pairs[area.width] = [0; 2];
        }
    }
    any > 1
}

/// Writes a whole codestream. `quantise` gives the step of a band, `load` the coded coefficients of
/// a block in quad order and whether any is not 0.
fn write(
    format: Format,
    levels: u8,
    transform: Transform,
    quantise: impl Fn(&Band) -> Step,
    mut load: impl FnMut(&Band, Step, Area, &mut [u32]) -> bool,
) -> Vec<u8> {
    let (width, height) = (format.width as usize, format.height as usize);
    let all = |r| bands(width, height, levels, r);
    let steps: Vec<Step> = (0..=levels).flat_map(all).map(|band| quantise(&band)).collect();
    let header = Header {
        format,
        levels,
        transform,
        log_block: (LOG_BLOCK, LOG_BLOCK),
        precincts: Vec::new(),
        position_first: false,
        sop: false,
        eph: false,
        quantiser: Quantiser { guard_bits: GUARD_BITS, steps: steps.clone() },
    };
    let mut out = Vec::with_capacity(512 + format.area() / 8);
    let length_at = header.write(&mut out);
    let mut coder = BlockEncoder::default();
    let mut samples = vec![0; BLOCK * BLOCK];
    let mut bodies = Vec::new();
    for resolution in 0..=levels {
        bodies.clear();
        let mut coded = Vec::new();
        for band in all(resolution) {
            let columns = band.area.width.div_ceil(BLOCK);
            let rows = band.area.height.div_ceil(BLOCK);
            let mut blocks = Vec::with_capacity(columns * rows);
            for i in 0..columns * rows {
                let area = cell_of(band.area, (LOG_BLOCK, LOG_BLOCK), i % columns, i / columns);
                let start = bodies.len();
                if load(&band, steps[band.index], area, &mut samples) {
                    let across = area.width.div_ceil(2);
                    let used = 4 * across * area.height.div_ceil(2);
                    coder.encode(&samples[..used], across, &mut bodies);
                }
                blocks.push(start..bodies.len());
            }
            coded.push((columns, blocks, magnitude_bits(steps[band.index]) - 1));
        }
        write_packet_header(&coded, &mut out);
        out.extend_from_slice(&bodies);
    }
    Header::finish(&mut out, length_at);
    out
}

/// Columns of blocks, where each block's bytes lie (none for an empty one), and the magnitude bits
/// that all leave out: blocks are coded down to the last bit, in one pass.
type CodedBand = (usize, Vec<Range<usize>>, u32);

fn write_packet_header(coded: &[CodedBand], out: &mut Vec<u8>) {
    let mut bits = BitWriter::new(out);
    let any = coded.iter().any(|(_, blocks, _)| blocks.iter().any(|b| !b.is_empty()));
    bits.put(any);
    if !any {
        bits.finish();
        return;
    }
    for (columns, blocks, missing) in coded {
        if blocks.is_empty() {
            continue;
        }
        let rows = blocks.len() / columns;
        let mut included =
            TagTree::of(*columns, rows, |x, y| u32::from(blocks[y * columns + x].is_empty()));
        let mut planes = TagTree::of(*columns, rows, |_, _| *missing);
        for (i, block) in blocks.iter().enumerate() {
            let (x, y) = (i % columns, i / columns);
            included.write(x, y, 1, |bit| bits.put(bit));
            if block.is_empty() {
                continue;
            }
            planes.write(x, y, missing + 1, |bit| bits.put(bit));
            // One pass.
            bits.put(false);
            let length = block.len() as u32;
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
