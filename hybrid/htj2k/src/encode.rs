//! The encoder: transform once, then quantise and code at any step.

#![allow(clippy::inline_always)] // functions take on the target features of their callers

use crate::block::encode::BlockEncoder;
use crate::layout::{BLOCK, Block, Layout, Quantiser};
use crate::wavelet::{self, Irreversible, Reversible};
use crate::wide::wide;
use crate::{Error, Format};

/// A picture under the 9/7 transform, ready to be encoded with any step.
#[derive(Debug)]
pub struct Encoder {
    layout: Layout,
    plane: Vec<f32>,
}

impl Encoder {
    /// Transforms a picture over a number of levels: 5 is usual, and at most 8 are made. Samples beyond the format's
    /// range are clamped.
    ///
    /// # Errors
    ///
    /// Fails if the format is not [legal](Format::is_legal), or the number of samples is not its area.
    pub fn new(samples: &[i16], format: Format, levels: u8) -> Result<Self, Error> {
        Self::with_memory(Vec::new(), samples, format, levels)
    }

    /// Transforms a picture as [`new`](Self::new) does, in memory that [`into_memory`](Self::into_memory) returned.
    /// For large pictures, to find and clear new memory takes as long as the transform.
    ///
    /// # Errors
    ///
    /// Fails if the format is not [legal](Format::is_legal), or the number of samples is not its area.
    pub fn with_memory(
        mut plane: Vec<f32>,
        samples: &[i16],
        format: Format,
        levels: u8,
    ) -> Result<Self, Error> {
        let layout = layout(samples, format, levels)?;
        plane.resize(samples.len(), 0.0);
        centre(samples, format, &mut plane);
        wavelet::forward::<Irreversible>(&mut plane, format.width as usize, layout.levels());
        Ok(Self { layout, plane })
    }

    /// The encoder's memory, for another picture.
    pub fn into_memory(self) -> Vec<f32> {
        self.plane
    }

    /// The codestream of the picture with a quantiser step in sample units. A step that cannot be written becomes the
    /// nearest that can.
    pub fn encode(&self, step: f32) -> Vec<u8> {
        let quantisers = self.layout.quantisers(step);
        let stride = self.layout.format().width as usize;
        let coded = Coded::new(&self.layout, |block, out| {
            quantised(&self.plane, stride, block, out, quantisers[block.band])
        });
        self.layout.assemble(step, |block| coded.block(block))
    }
}

/// The codestream of a picture by the 5/3 transform, which gives every sample back. Samples beyond
/// the format's range are clamped.
///
/// # Errors
///
/// Fails if the format is not [legal](Format::is_legal), or the number of samples is not its area.
pub fn encode_lossless(samples: &[i16], format: Format, levels: u8) -> Result<Vec<u8>, Error> {
    let layout = layout(samples, format, levels)?;
    let ((min, max), level) = (format.range(), format.level());
    let centred = |&s: &i16| i32::from(s).clamp(min, max) - level;
    let mut plane: Vec<i32> = samples.iter().map(centred).collect();
    let stride = format.width as usize;
    wavelet::forward::<Reversible>(&mut plane, stride, layout.levels());
    let coded = Coded::new(&layout, |block, out| {
        quad_order(&plane, stride, block, out, |q| q.unsigned_abs() << 1 | q as u32 >> 31)
    });
    Ok(layout.assemble_exact(|block| coded.block(block)))
}

/// The layout of a picture that has as many samples as its format says.
fn layout(samples: &[i16], format: Format, levels: u8) -> Result<Layout, Error> {
    if samples.len() == format.area() { Layout::new(format, levels) } else { Err(Error::Format) }
}

/// The encoded blocks of a picture.
struct Coded {
    bytes: Vec<u8>,
    /// The end of each block's bytes, as an index.
    ends: Vec<usize>,
}

impl Coded {
    /// Encodes all blocks of a layout. `load` gives the coefficients of a block in quad order, and whether any is not
    /// 0.
    fn new(layout: &Layout, mut load: impl FnMut(&Block, &mut [u32]) -> bool) -> Self {
        let mut coder = BlockEncoder::default();
        let mut samples = vec![0; BLOCK * BLOCK];
        let mut bytes = Vec::new();
        let code = |block: &Block| {
            if load(block, &mut samples) {
                let across = block.width.div_ceil(2);
                let used = 4 * across * block.height.div_ceil(2);
                coder.encode(&samples[..used], across, &mut bytes);
            }
            bytes.len()
        };
        let ends = layout.blocks().iter().map(code).collect();
        Self { bytes, ends }
    }

    fn block(&self, block: usize) -> &[u8] {
        let start = block.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[block]]
    }
}

wide! {
    /// Moves samples so that their range is centred on 0.
    fn centre(samples: &[i16], format: Format, out: &mut [f32]) = centre_by
}

#[inline(always)]
fn centre_by(samples: &[i16], format: Format, out: &mut [f32]) {
    let ((min, max), level) = (format.range(), format.level());
    for (to, &s) in out.iter_mut().zip(samples) {
        *to = (i32::from(s).clamp(min, max) - level) as f32;
    }
}

wide! {
    /// A block's coefficients in [`quad_order`], quantised: multiplied by a factor, and at most a greatest magnitude.
    fn quantised(
        plane: &[f32], stride: usize, block: &Block, out: &mut [u32], quantiser: Quantiser,
    ) -> bool = quantised_by
}

#[inline(always)]
fn quantised_by(
    plane: &[f32],
    stride: usize,
    block: &Block,
    out: &mut [u32],
    Quantiser { inverse, max }: Quantiser,
) -> bool {
    let is_small = |row: &[f32]| row.iter().fold(true, |all, v| all & (v.abs() * inverse < 1.0));
    if (0..block.height).all(|y| is_small(row(plane, stride, block, y))) {
        return false;
    }
    quad_order(plane, stride, block, out, |v| {
        let q = (v * inverse) as i32;
        q.unsigned_abs().min(max) << 1 | q as u32 >> 31
    })
}

/// The coefficients of one row of a block.
#[inline(always)]
fn row<'a, T>(plane: &'a [T], stride: usize, block: &Block, y: usize) -> &'a [T] {
    &plane[(block.y + y * block.row_step) * stride + block.x..][..block.width]
}

/// Puts a block's coefficients into quad order, each as `code` makes it, and pads the block to whole quads. Returns
/// whether any is not 0.
#[inline(always)]
fn quad_order<T: Copy>(
    plane: &[T],
    stride: usize,
    block: &Block,
    out: &mut [u32],
    code: impl Fn(T) -> u32,
) -> bool {
    let across = block.width.div_ceil(2);
    let mut any = 0;
    for (i, line) in out.chunks_exact_mut(4 * across).take(block.height.div_ceil(2)).enumerate() {
        let upper = row(plane, stride, block, 2 * i);
        let pairs = line.as_chunks_mut::<2>().0;
        if 2 * i + 1 < block.height {
            let lower = row(plane, stride, block, 2 * i + 1);
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
        if block.width % 2 == 1 {
            pairs[block.width] = [0; 2];
        }
    }
    any > 1
}
