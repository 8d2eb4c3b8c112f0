//! The main header and the tile-part headers (ITU-T T.800, Annex A; T.814, Annex A).

use std::borrow::Cow;

use crate::bands::LogSides;
use crate::{Error, Format, Limits};

/// Marker: start of codestream (ITU-T T.800, table A.2).
const SOC: u16 = 0xff4f;
/// Marker: extended capabilities (ITU-T T.814).
const CAP: u16 = 0xff50;
/// Marker: image and tile size.
const SIZ: u16 = 0xff51;
/// Marker: coding style default.
const COD: u16 = 0xff52;
/// Marker: coding style of one component.
const COC: u16 = 0xff53;
/// Marker: quantisation default.
const QCD: u16 = 0xff5c;
/// Marker: quantisation of one component.
const QCC: u16 = 0xff5d;
/// Marker: region of interest.
const RGN: u16 = 0xff5e;
/// Marker: change of the progression order.
const POC: u16 = 0xff5f;
/// Marker: packed packet headers in the main header.
const PPM: u16 = 0xff60;
/// Marker: packed packet headers in a tile-part header.
const PPT: u16 = 0xff61;
/// Marker: start of tile-part.
const SOT: u16 = 0xff90;
/// Marker: start of data.
const SOD: u16 = 0xff93;
/// Marker: end of codestream.
const EOC: u16 = 0xffd9;

/// The wavelet transform of a codestream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transform {
    Irreversible,
    Reversible,
}

/// A quantiser step as streams write it: 2^(R−exponent) · (1 + mantissa/2048), where R is the number of bits of the
/// band's nominal range. Without quantisation only the exponent counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) exponent: u8,
    pub(crate) mantissa: u16,
}

impl Step {
    /// The writable step that is nearest to a size, in a band with a nominal range of `range` bits. Exponents stay
    /// below 25, so that magnitudes have no more than 26 bits.
    pub(crate) fn nearest(size: f32, range: i32) -> Self {
        let min = power_of_two(range - 24);
        let size = if size.is_nan() { min } else { size.clamp(min, power_of_two(range + 1)) };
        let bits = size.to_bits();
        // The power of two in the float, and its fraction rounded to eleven bits.
        let rounded = (bits >> 12) + (bits >> 11 & 1);
        let exponent = range - ((rounded >> 11) as i32 - 127);
        if exponent < 0 {
            return Self { exponent: 0, mantissa: 2047 };
        }
        Self { exponent: exponent as u8, mantissa: (rounded & 2047) as u16 }
    }

    /// The size of the step in a band with a nominal range of `range` bits.
    pub(crate) fn size(self, range: i32) -> f32 {
        (1.0 + f32::from(self.mantissa) / 2048.0) * power_of_two(range - i32::from(self.exponent))
    }
}

/// 2^exponent, exactly, which `powi` does not promise.
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((127 + exponent) as u32) << 23)
}

/// The quantiser steps of all bands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Quantiser {
    pub(crate) guard_bits: u8,
    pub(crate) steps: Vec<Step>,
}

/// The parameters that a decoder must know before the first packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) format: Format,
    pub(crate) levels: u8,
    pub(crate) transform: Transform,
    /// Logarithms of a block's width and height.
    pub(crate) log_block: LogSides,
    /// Logarithms of a precinct's width and height, by resolution. Empty when each resolution is one precinct.
    pub(crate) precincts: Vec<LogSides>,
    /// Whether packets are ordered by place before resolution.
    pub(crate) position_first: bool,
    /// Whether packets may start with, and their headers end in, a marker.
    pub(crate) sop: bool,
    pub(crate) eph: bool,
    pub(crate) quantiser: Quantiser,
}

impl Header {
    /// Writes everything up to the first packet, and returns the place for the tile-part's length.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> usize {
        let Format { width, height, bits, signed } = self.format;
        put16(out, &[SOC, SIZ, 41, 0x4000]);
        for value in [width, height, 0, 0, width, height, 0, 0] {
            out.extend_from_slice(&value.to_be_bytes());
        }
        put16(out, &[1]);
        out.extend_from_slice(&[(bits - 1) | u8::from(signed) << 7, 1, 1]);

        put16(out, &[CAP, 8, 2, 0]);
        let exponent = self.quantiser.steps.iter().map(|s| s.exponent).max().unwrap_or(0);
        let magnitude = u16::from(exponent + self.quantiser.guard_bits).saturating_sub(1);
        let irreversible = u16::from(self.transform == Transform::Irreversible) << 5;
        // Up to 27 bits a magnitude, the parameter is what exceeds 8.
        put16(out, &[irreversible | magnitude.saturating_sub(8)]);

        put16(out, &[COD, 12]);
        let LogSides { width, height } = self.log_block;
        let transform = u8::from(self.transform == Transform::Reversible);
        out.extend_from_slice(&[0, 0, 0, 1, 0]);
        out.extend_from_slice(&[self.levels, width as u8 - 2, height as u8 - 2, 0x40, transform]);

        let steps = &self.quantiser.steps;
        let guard = self.quantiser.guard_bits << 5;
        if self.transform == Transform::Reversible {
            put16(out, &[QCD, 3 + steps.len() as u16]);
            out.push(guard);
            out.extend(steps.iter().map(|s| s.exponent << 3));
        } else {
            put16(out, &[QCD, 3 + 2 * steps.len() as u16]);
            out.push(guard | 2);
            for step in steps {
                put16(out, &[u16::from(step.exponent) << 11 | step.mantissa]);
            }
        }

        put16(out, &[SOT, 10, 0]);
        let length_at = out.len();
        put16(out, &[0, 0, 1, SOD]);
        length_at
    }

    /// Ends the stream, and fills in the tile-part's length.
    pub(crate) fn finish(out: &mut Vec<u8>, length_at: usize) {
        let length = (out.len() - (length_at - 6)) as u32;
        out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
        put16(out, &[EOC]);
    }

    /// Reads a stream's headers; returns them and the packets of all tile-parts.
    pub(crate) fn read(data: &[u8], limits: Limits) -> Result<(Self, Cow<'_, [u8]>), Error> {
        let mut reader = Reader { data, what: "the main header" };
        if reader.u16()? != SOC || reader.u16()? != SIZ {
            return Err(Error::Malformed("the start of the stream"));
        }
        let format = read_size(reader.segment()?, limits)?;
        let (mut coding, mut quantiser) = (None, None);
        loop {
            match reader.u16()? {
                SOT => break,
                COD => coding = Some(Coding::read(reader.segment()?)?),
                QCD => quantiser = Some(read_quantiser(reader.segment()?)?),
                CAP => check_capabilities(reader.segment()?)?,
                other => skip_segment(other, &mut reader)?,
            }
        }
        let coding = coding.ok_or(Error::Malformed("the main header: no COD"))?;
        let quantiser = quantiser.ok_or(Error::Malformed("the main header: no QCD"))?;
        let header = Self {
            format,
            levels: coding.levels,
            transform: coding.transform,
            log_block: coding.log_block,
            precincts: coding.precincts,
            position_first: coding.position_first,
            sop: coding.sop,
            eph: coding.eph,
            quantiser: quantiser.expand(coding.levels, coding.transform)?,
        };
        Ok((header, read_tile_parts(reader.data)?.0))
    }

    /// Length of the stream that `data` begins with, in bytes.
    pub(crate) fn length(data: &[u8]) -> Result<usize, Error> {
        let mut reader = Reader { data, what: "the main header" };
        if reader.u16()? != SOC {
            return Err(Error::Malformed("the start of the stream"));
        }
        while reader.u16()? != SOT {
            reader.segment()?;
        }
        Ok(data.len() - read_tile_parts(reader.data)?.1.len())
    }
}

fn put16(out: &mut Vec<u8>, values: &[u16]) {
    for value in values {
        out.extend_from_slice(&value.to_be_bytes());
    }
}

struct Reader<'a> {
    data: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.data.split_at_checked(count).ok_or(Error::Truncated(self.what))?;
        self.data = rest;
        Ok(bytes)
    }

    fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.bytes(1)?[0])
    }

    fn u16(&mut self) -> Result<u16, Error> {
        let bytes = self.bytes(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from(self.u16()?) << 16 | u32::from(self.u16()?))
    }

    /// The content of a marker segment, which follows the segment's length.
    fn segment(&mut self) -> Result<Reader<'a>, Error> {
        let length = usize::from(self.u16()?);
        let length = length.checked_sub(2).ok_or(Error::Malformed(self.what))?;
        Ok(Reader { data: self.bytes(length)?, what: "a marker segment" })
    }
}

/// Skips a segment that does not change the decoding; refuses one that would.
fn skip_segment(marker: u16, reader: &mut Reader) -> Result<(), Error> {
    match marker {
        COC | QCC => Err(Error::Unsupported("overrides for a component")),
        COD | QCD => Err(Error::Unsupported("overrides for a tile")),
        RGN => Err(Error::Unsupported("regions of interest")),
        POC => Err(Error::Unsupported("changes of progression")),
        PPM | PPT => Err(Error::Unsupported("packed packet headers")),
        0xff50..0xff90 => reader.segment().map(|_| ()),
        _ => Err(Error::Malformed(reader.what)),
    }
}

fn read_size(mut reader: Reader, limits: Limits) -> Result<Format, Error> {
    let profile = reader.u16()?;
    let (width, height) = (reader.u32()?, reader.u32()?);
    let origin = (reader.u32()?, reader.u32()?);
    let tile = (reader.u32()?, reader.u32()?);
    let tile_origin = (reader.u32()?, reader.u32()?);
    let components = reader.u16()?;
    let (depth, dx, dy) = (reader.u8()?, reader.u8()?, reader.u8()?);
    if width == 0 || height == 0 || tile.0 == 0 || tile.1 == 0 || components == 0 {
        return Err(Error::Malformed("SIZ"));
    }
    if profile & 0x4000 == 0 {
        return Err(Error::Unsupported("no HT blocks"));
    }
    if components != 1 || dx != 1 || dy != 1 {
        return Err(Error::Unsupported("several or subsampled components"));
    }
    if origin != (0, 0) || tile_origin != (0, 0) {
        return Err(Error::Unsupported("an origin other than 0"));
    }
    if tile.0 < width || tile.1 < height {
        return Err(Error::Unsupported("several tiles"));
    }
    let area = u64::from(width) * u64::from(height);
    if width.max(height) > limits.max_side || area > u64::from(limits.max_area) {
        return Err(Error::TooLarge { width, height });
    }
    let bits = (depth & 0x7f) + 1;
    let format = Format { width, height, bits, signed: depth & 0x80 != 0 };
    if !format.is_legal() {
        return Err(Error::Unsupported("samples of more than 16 bits"));
    }
    Ok(format)
}

/// Checks that Part 15 is among the capabilities, and that there are no others: those change what follows.
fn check_capabilities(mut reader: Reader) -> Result<(), Error> {
    match reader.u32()? {
        0x0002_0000 => Ok(()),
        _ => Err(Error::Unsupported("extensions other than HT")),
    }
}

struct Coding {
    levels: u8,
    transform: Transform,
    log_block: LogSides,
    precincts: Vec<LogSides>,
    position_first: bool,
    sop: bool,
    eph: bool,
}

impl Coding {
    fn read(mut reader: Reader) -> Result<Self, Error> {
        let style = reader.u8()?;
        let progression = reader.u8()?;
        let layers = reader.u16()?;
        let _component_transform = reader.u8()?;
        let levels = reader.u8()?;
        let log_block =
            LogSides { width: u32::from(reader.u8()?) + 2, height: u32::from(reader.u8()?) + 2 };
        let block_style = reader.u8()?;
        let transform = match reader.u8()? {
            0 => Transform::Irreversible,
            1 => Transform::Reversible,
            _ => return Err(Error::Unsupported("a transform of its own")),
        };
        if levels > 32
            || log_block.width.max(log_block.height) > 10
            || log_block.width + log_block.height > 12
        {
            return Err(Error::Malformed("COD"));
        }
        if progression > 4 || layers == 0 {
            return Err(Error::Malformed("COD"));
        }
        if layers != 1 {
            return Err(Error::Unsupported("several layers"));
        }
        // HT alone; causal contexts touch refinement passes only.
        if block_style & !0x08 != 0x40 {
            return Err(Error::Unsupported("blocks that are not HT"));
        }
        let mut precincts = Vec::new();
        if style & 1 != 0 {
            for resolution in 0..=levels {
                let byte = u32::from(reader.u8()?);
                let sides = LogSides { width: byte & 15, height: byte >> 4 };
                if resolution > 0 && (sides.width == 0 || sides.height == 0) {
                    return Err(Error::Malformed("COD"));
                }
                precincts.push(sides);
            }
        }
        Ok(Self {
            levels,
            transform,
            log_block,
            precincts,
            position_first: progression > 2,
            sop: style & 2 != 0,
            eph: style & 4 != 0,
        })
    }
}

/// The QCD segment as it is written: one step may stand for all bands.
struct WrittenQuantiser {
    guard_bits: u8,
    style: u8,
    steps: Vec<Step>,
}

fn read_quantiser(mut reader: Reader) -> Result<WrittenQuantiser, Error> {
    let style = reader.u8()?;
    let mut steps = Vec::new();
    while !reader.data.is_empty() {
        steps.push(if style.trailing_zeros() >= 5 {
            Step { exponent: reader.u8()? >> 3, mantissa: 0 }
        } else {
            let value = reader.u16()?;
            Step { exponent: (value >> 11) as u8, mantissa: value & 2047 }
        });
    }
    Ok(WrittenQuantiser { guard_bits: style >> 5, style: style & 31, steps })
}

impl WrittenQuantiser {
    fn expand(mut self, levels: u8, transform: Transform) -> Result<Quantiser, Error> {
        let bands = 3 * usize::from(levels) + 1;
        match (self.style, transform) {
            (0, Transform::Reversible) | (2, Transform::Irreversible) => {}
            (1, Transform::Irreversible) => {
                let first = *self.steps.first().ok_or(Error::Malformed("QCD"))?;
                self.steps.resize(1, first);
                for level in (1..=levels).rev() {
                    let exponent = first.exponent.saturating_sub(levels - level);
                    self.steps.extend([Step { exponent, ..first }; 3]);
                }
            }
            _ => return Err(Error::Malformed("QCD")),
        }
        if self.steps.len() < bands {
            return Err(Error::Malformed("QCD"));
        }
        self.steps.truncate(bands);
        let most = self.steps.iter().map(|s| s.exponent).max().unwrap_or(0) + self.guard_bits;
        if most > 28 {
            return Err(Error::Unsupported("magnitudes of more than 27 bits"));
        }
        Ok(Quantiser { guard_bits: self.guard_bits, steps: self.steps })
    }
}

/// Reads the packets of all tile-parts, from behind the first SOT marker. Returns them and the bytes behind the
/// stream.
fn read_tile_parts(data: &[u8]) -> Result<(Cow<'_, [u8]>, &[u8]), Error> {
    let mut packets = Cow::Borrowed(&[][..]);
    let mut rest = data;
    loop {
        let start = rest;
        let mut reader = Reader { data: rest, what: "a tile-part" };
        let mut segment = reader.segment()?;
        let tile = segment.u16()?;
        let length = segment.u32()? as usize;
        if tile != 0 {
            return Err(Error::Unsupported("several tiles"));
        }
        loop {
            match reader.u16()? {
                SOD => break,
                other => skip_segment(other, &mut reader)?,
            }
        }
        let head = start.len() - reader.data.len();
        let body = if length == 0 {
            // It lasts to the end of the stream.
            let body = reader.data;
            rest = &body[body.len().saturating_sub(2)..];
            &body[..body.len().saturating_sub(2)]
        } else {
            // The length counts from the marker, two bytes before.
            let body = length.checked_sub(head + 2).ok_or(Error::Malformed("a tile-part"))?;
            let body = reader.bytes(body)?;
            rest = reader.data;
            body
        };
        if packets.is_empty() {
            packets = Cow::Borrowed(body);
        } else {
            packets.to_mut().extend_from_slice(body);
        }
        let mut reader = Reader { data: rest, what: "the end of the stream" };
        match reader.u16()? {
            SOT => rest = reader.data,
            EOC => return Ok((packets, reader.data)),
            _ => return Err(Error::Malformed("the end of a tile-part")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_written_to_within_their_precision() {
        for range in [8, 13, 15, 18] {
            for i in -120..200 {
                let size = 2f32.powf(i as f32 / 10.0);
                let step = Step::nearest(size, range);
                let back = step.size(range);
                let legal = size.clamp(2f32.powi(range - 24), 2f32.powi(range) * 1.999);
                assert!((back / legal - 1.0).abs() < 1.0 / 2048.0, "{size} {back} {range}");
                assert!(step.exponent <= 24);
            }
        }
        assert_eq!(Step::nearest(f32::NAN, 8).exponent, 24);
        assert_eq!(Step::nearest(f32::INFINITY, 8), Step { exponent: 0, mantissa: 2047 });
    }
}
