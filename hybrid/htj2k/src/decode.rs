//! The decoder: headers, packets, blocks, transform.

#![allow(clippy::inline_always)] // functions take on the target features of their callers

use crate::bands::{Area, Band, LogSides, bands, cell_of};
use crate::bits::BitReader;
use crate::block::decode::BlockDecoder;
use crate::headers::{Header, Transform};
use crate::tag_tree::TagTree;
use crate::wavelet::{self, Irreversible, Reversible, Rows, low_length};
use crate::wide::wide;
use crate::{Error, Format, Limits, Picture};

/// Maximum length of a cleanup pass, in bytes.
const MAX_PASS: u32 = 65_534;

/// Decodes a codestream, which may come from anywhere. A given stream gives the same samples on
/// every machine.
///
/// # Errors
///
/// Fails if the stream is truncated or malformed, needs a part of the standard that this crate leaves out, or holds a
/// picture beyond `limits`.
pub fn decode(data: &[u8], limits: Limits) -> Result<Picture, Error> {
    let (header, packets) = Header::read(data, limits)?;
    let samples = match header.transform {
        Transform::Irreversible => decode_irreversible(&header, &packets)?,
        Transform::Reversible => decode_reversible(&header, &packets)?,
    };
    Ok(Picture { format: header.format, samples })
}

/// Length of the codestream that `data` begins with, in bytes. `data` may go on behind it.
///
/// # Errors
///
/// Fails if `data` does not begin with a whole codestream.
pub fn length(data: &[u8]) -> Result<usize, Error> {
    Header::length(data)
}

fn decode_irreversible(header: &Header, packets: &[u8]) -> Result<Vec<i16>, Error> {
    let format = header.format;
    let stride = format.width as usize;
    let mut plane = vec![0f32; format.area()];
    decode_blocks(header, packets, |band, block, halves| {
        let range = i32::from(format.bits + band.highs);
        let step = header.quantiser.steps[band.index].size(range);
        // Halves of a step; a block whose last bits were left out has larger ones.
        let scale = 0.5 * step * (1u32 << block.coarser) as f32;
        place(&mut plane, stride, band.rows, block.area, halves, |h| h as f32 * scale);
    })?;
    wavelet::inverse::<Irreversible>(&mut plane, stride, header.levels);
    let mut samples = vec![0; plane.len()];
    round(&plane, format, &mut samples);
    Ok(samples)
}

wide! {
    /// Rounds coefficients to the nearest samples, ties to even.
    fn round(plane: &[f32], format: Format, samples: &mut [i16]) = round_by
}

#[inline(always)]
fn round_by(plane: &[f32], format: Format, samples: &mut [i16]) {
    let (min, max) = format.range();
    let (min, max) = (min as f32, max as f32);
    let level = format.level() as f32;
    for (to, &v) in samples.iter_mut().zip(plane) {
        // Adding 1.5·2²³ leaves no bits for a fraction.
        let nearest = (v + level).clamp(min, max) + 12_582_912.0;
        *to = (nearest.to_bits() as i32 - 0x4b40_0000) as i16;
    }
}

fn decode_reversible(header: &Header, packets: &[u8]) -> Result<Vec<i16>, Error> {
    let format = header.format;
    let stride = format.width as usize;
    let mut plane = vec![0i32; format.area()];
    decode_blocks(header, packets, |band, block, halves| {
        place(&mut plane, stride, band.rows, block.area, halves, |h| {
            let magnitude = (h.unsigned_abs() << block.coarser >> 1) as i32;
            if h < 0 { -magnitude } else { magnitude }
        });
    })?;
    wavelet::inverse::<Reversible>(&mut plane, stride, header.levels);
    let ((min, max), level) = (format.range(), format.level());
    Ok(plane.iter().map(|&v| v.wrapping_add(level).clamp(min, max) as i16).collect())
}

/// One block, as its packet describes it.
#[derive(Debug, Clone, Copy)]
struct Block<'a> {
    area: Area,
    /// Number of magnitude bits that are left out at the top.
    missing: u32,
    /// Number of magnitude bits that are left out at the bottom.
    coarser: u32,
    data: &'a [u8],
}

/// Decodes all blocks that have data, and hands each with its samples in quad order to `visit`.
fn decode_blocks(
    header: &Header,
    packets: &[u8],
    mut visit: impl FnMut(&Band, Block, &[i32]),
) -> Result<(), Error> {
    let mut decoder = BlockDecoder::default();
    let mut samples = Vec::new();
    visit_blocks(header, packets, |band, block| {
        let across = block.area.width.div_ceil(2);
        samples.resize(4 * across * block.area.height.div_ceil(2), 0);
        decoder.decode(block.data, block.missing, across, &mut samples)?;
        visit(band, block, &samples);
        Ok(())
    })
}

/// Reads all packets: resolutions from the coarsest, precincts row by row.
fn visit_blocks<'a>(
    header: &Header,
    packets: &'a [u8],
    mut visit: impl FnMut(&Band, Block<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (width, height) = (header.format.width as usize, header.format.height as usize);
    let mut rest = packets;
    for resolution in 0..=header.levels {
        let level = header.levels - resolution;
        let log_precinct = header.precincts.get(usize::from(resolution)).copied();
        let log_precinct = log_precinct.unwrap_or(LogSides::square(15));
        let columns = low_length(width, level).div_ceil(1 << log_precinct.width);
        let rows = low_length(height, level).div_ceil(1 << log_precinct.height);
        if header.position_first && columns * rows > 1 {
            return Err(Error::Unsupported("progression by position with several precincts"));
        }
        // Precincts divide the bands of all but the coarsest resolution at half their size.
        let halved = u32::from(resolution > 0);
        let log_cell =
            LogSides { width: log_precinct.width - halved, height: log_precinct.height - halved };
        let log_block = LogSides {
            width: header.log_block.width.min(log_cell.width),
            height: header.log_block.height.min(log_cell.height),
        };
        for precinct in 0..columns * rows {
            let bands = bands(width, height, header.levels, resolution).map(|band| {
                (band, cell_of(band.area, log_cell, precinct % columns, precinct / columns))
            });
            rest = read_packet(header, rest, bands, log_block, &mut visit)?;
        }
    }
    Ok(())
}

/// Reads one packet, and returns the bytes behind it.
fn read_packet<'a>(
    header: &Header,
    mut data: &'a [u8],
    bands: impl Iterator<Item = (Band, Area)>,
    log_block: LogSides,
    visit: &mut impl FnMut(&Band, Block<'a>) -> Result<(), Error>,
) -> Result<&'a [u8], Error> {
    if header.sop && data.starts_with(&[0xff, 0x91]) {
        data = data.get(6..).ok_or(Error::Truncated("a packet"))?;
    }
    let mut bits = BitReader::new(data);
    let mut found = Vec::new();
    if bits.get()? {
        for (band, area) in bands {
            let columns = area.width.div_ceil(1 << log_block.width);
            let rows = area.height.div_ceil(1 << log_block.height);
            if columns * rows == 0 {
                continue;
            }
            let mut included = TagTree::new(columns, rows);
            let mut planes = TagTree::new(columns, rows);
            let exponent = header.quantiser.steps[band.index].exponent;
            let magnitude_bits =
                u32::from(header.quantiser.guard_bits + exponent).saturating_sub(1);
            for i in 0..columns * rows {
                let (x, y) = (i % columns, i / columns);
                if !included.read(x, y, 1, || bits.get())? {
                    continue;
                }
                let mut missing = 0;
                while !planes.read(x, y, missing + 1, || bits.get())? {
                    missing += 1;
                    if missing >= magnitude_bits {
                        return Err(Error::Malformed("a packet's bit planes"));
                    }
                }
                let (skipped, length) = read_pass(&mut bits)?;
                missing += skipped;
                let coarser = magnitude_bits
                    .checked_sub(missing + 1)
                    .ok_or(Error::Malformed("a packet's passes"))?;
                let area = cell_of(area, log_block, x, y);
                found.push((band, Block { area, missing, coarser, data: &[] }, length as usize));
            }
        }
    }
    let mut rest = bits.finish();
    if header.eph && rest.starts_with(&[0xff, 0x92]) {
        rest = &rest[2..];
    }
    for (band, block, length) in found {
        let (data, behind) = rest.split_at_checked(length).ok_or(Error::Truncated("a block"))?;
        rest = behind;
        visit(&band, Block { data, ..block })?;
    }
    Ok(rest)
}

/// Reads a block's passes from a packet header: how many magnitude bits its empty passes stand for, and the length of
/// its cleanup pass in bytes.
fn read_pass(bits: &mut BitReader) -> Result<(u32, u32), Error> {
    let mut passes = 1;
    for (length, limit) in [(1, 1), (1, 1), (2, 3), (5, 31), (7, 127)] {
        let more = bits.get_bits(length)?;
        passes += more;
        if more < limit {
            break;
        }
    }
    if passes % 3 != 1 {
        return Err(Error::Unsupported("refinement passes"));
    }
    let mut length_bits = 3 + passes.ilog2();
    while bits.get()? {
        length_bits += 1;
        if length_bits > 31 {
            return Err(Error::Malformed("a packet's lengths"));
        }
    }
    let length = bits.get_bits(length_bits)?;
    if !(2..=MAX_PASS).contains(&length) {
        return Err(Error::Malformed("a packet's lengths"));
    }
    Ok((passes / 3, length))
}

/// Puts a block's samples, in quad order, where they belong.
fn place<T>(
    plane: &mut [T],
    stride: usize,
    rows: Rows,
    area: Area,
    samples: &[i32],
    value: impl Fn(i32) -> T,
) {
    let across = area.width.div_ceil(2);
    for (i, line) in samples.chunks_exact(4 * across).enumerate() {
        let pairs = line.as_chunks::<2>().0;
        for lower in 0..(area.height - 2 * i).min(2) {
            let row = &mut plane[rows.at(area.y + 2 * i + lower) * stride + area.x..][..area.width];
            for (to, from) in row.iter_mut().zip(pairs) {
                *to = value(from[lower]);
            }
        }
    }
}
