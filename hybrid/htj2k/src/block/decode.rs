//! The decoder of blocks.

use super::codes::{DECODE_FIRST, DECODE_OTHER};
use super::{MAX_QUADS, MEL_EXPONENTS, bit_length, has_7f, has_ff};
use crate::Error;

/// Decodes blocks, one after another, and keeps their working memory.
#[derive(Debug)]
pub(crate) struct BlockDecoder {
    /// For each quad of a row: its entry of the code table, and how far its exponents exceed the bound.
    row: Vec<(u16, u8)>,
    /// Significance of the row of quads above and of this one; the first entry is left of the block.
    above: Vec<u8>,
    below: Vec<u8>,
    /// 2μ−1 of the lower samples of the row above and of this one, of magnitude μ. The first entry is left of the
    /// block.
    odd_above: Vec<u32>,
    odd_below: Vec<u32>,
}

impl Default for BlockDecoder {
    fn default() -> Self {
        Self {
            row: vec![(0, 0); MAX_QUADS + 2],
            above: vec![0; MAX_QUADS + 4],
            below: vec![0; MAX_QUADS + 4],
            odd_above: vec![0; 2 * MAX_QUADS + 6],
            odd_below: vec![0; 2 * MAX_QUADS + 6],
        }
    }
}

/// The error of a block whose bits break the standard.
const BROKEN: Error = Error::Malformed("a code block");

impl BlockDecoder {
    /// Decodes a cleanup pass. A sample of magnitude μ comes out as ±(2μ+1), in quad order with `across` quads in a
    /// row. `missing` is the number of magnitude bits that the block leaves out; it bounds the exponents.
    pub(crate) fn decode(
        &mut self,
        data: &[u8],
        missing: u32,
        across: usize,
        samples: &mut [i32],
    ) -> Result<(), Error> {
        let [.., low, high] = *data else { return Err(BROKEN) };
        let tail = usize::from(high) << 4 | usize::from(low & 15);
        if tail < 2 || tail > data.len() || tail > 4079 || across > MAX_QUADS {
            return Err(BROKEN);
        }
        let bound = (missing + 2).min(30);
        let (front, back) = data.split_at(data.len() - tail);
        let mut mel = MelReader::new(back);
        let mut codes = BackwardReader::new(back);
        let mut magnitudes = ForwardReader::new(front);
        self.above[..across + 4].fill(0);
        self.below[..across + 4].fill(0);
        self.odd_above[..2 * across + 6].fill(0);
        self.odd_below[..2 * across + 6].fill(0);
        for (row, line) in samples.chunks_exact_mut(4 * across).enumerate() {
            let quads = line.as_chunks_mut::<4>().0;
            if row == 0 {
                self.read_codes::<true>(across, &mut mel, &mut codes);
                self.read_magnitudes::<true>(quads, bound, &mut magnitudes)?;
            } else {
                self.read_codes::<false>(across, &mut mel, &mut codes);
                self.read_magnitudes::<false>(quads, bound, &mut magnitudes)?;
            }
            std::mem::swap(&mut self.above, &mut self.below);
            std::mem::swap(&mut self.odd_above, &mut self.odd_below);
        }
        Ok(())
    }

    /// Reads the codes of a row of quads: significance, what is known of exponents, and whether offsets follow.
    fn read_codes<const FIRST: bool>(
        &mut self,
        across: usize,
        mel: &mut MelReader,
        codes: &mut BackwardReader,
    ) {
        let mut left = 0;
        for at in (0..across).step_by(2) {
            codes.fill();
            let mut pair = [0u16; 2];
            for (i, found) in pair.iter_mut().enumerate().take(across - at) {
                let above = &self.above[at + i..at + i + 3];
                let context = if FIRST {
                    left
                } else {
                    usize::from(above[0] >> 3 | above[1] >> 1 & 1)
                        | left
                        | usize::from(above[1] >> 3 | above[2] >> 1 & 1) << 2
                };
                if context != 0 || mel.event() {
                    let table = if FIRST { &DECODE_FIRST } else { &DECODE_OTHER };
                    *found = table[context << 7 | codes.peek(7) as usize];
                    codes.skip(u32::from(*found & 7));
                }
                let rho = usize::from(*found >> 4 & 15);
                self.below[at + i + 1] = rho as u8;
                left = if FIRST { rho >> 1 | rho & 1 } else { usize::from(rho & 0b1100 != 0) << 1 };
            }
            let wanted = pair.map(|found| found & 8 != 0);
            let offsets = read_offsets::<FIRST>(wanted, mel, codes);
            self.row[at] = (pair[0], offsets[0]);
            self.row[at + 1] = (pair[1], offsets[1]);
        }
    }

    fn read_magnitudes<const FIRST: bool>(
        &mut self,
        quads: &mut [[i32; 4]],
        limit: u32,
        magnitudes: &mut ForwardReader,
    ) -> Result<(), Error> {
        for (i, (quad, &(found, offset))) in quads.iter_mut().zip(&self.row).enumerate() {
            let rho = u32::from(found >> 4 & 15);
            if rho == 0 {
                *quad = [0; 4];
                self.odd_below[2 * i + 1] = 0;
                self.odd_below[2 * i + 2] = 0;
                continue;
            }
            let bound = if !FIRST && rho & (rho - 1) != 0 {
                let near = &self.odd_above[2 * i..2 * i + 4];
                bit_length(near[0] | near[1] | near[2] | near[3]).saturating_sub(1).max(1)
            } else {
                1
            };
            let exponent = u32::from(offset) + bound;
            if exponent > limit {
                return Err(BROKEN);
            }
            let mut odd = [0; 4];
            for n in 0..4 {
                if rho >> n & 1 == 0 {
                    quad[n] = 0;
                    continue;
                }
                let known = u32::from(found >> (12 + n) & 1);
                let reached = u32::from(found >> (8 + n) & 1);
                let length = exponent - known;
                let bits = magnitudes.take(length) | reached << length;
                odd[n] = bits | 1;
                // The lowest bit is the sign, the rest the magnitude less one.
                let sign = -((bits & 1) as i32);
                quad[n] = ((odd[n] + 2) as i32 ^ sign) - sign;
            }
            self.odd_below[2 * i + 1] = odd[1];
            self.odd_below[2 * i + 2] = odd[3];
        }
        Ok(())
    }
}

/// Reads by how much the exponents of a pair of quads exceed their bounds.
fn read_offsets<const FIRST: bool>(
    wanted: [bool; 2],
    mel: &mut MelReader,
    codes: &mut BackwardReader,
) -> [u8; 2] {
    match wanted {
        [false, false] => [0, 0],
        [true, false] => {
            let (base, length) = read_prefix(codes);
            [base + codes.take(length) as u8, 0]
        }
        [false, true] => {
            let (base, length) = read_prefix(codes);
            [0, base + codes.take(length) as u8]
        }
        [true, true] => {
            let both = FIRST && mel.event();
            let (first, first_length) = read_prefix(codes);
            let (second, second_length) = if FIRST && !both && first > 2 {
                (1 + codes.take(1) as u8, 0)
            } else {
                read_prefix(codes)
            };
            let extra = if both { 2 } else { 0 };
            let first = first + extra + codes.take(first_length) as u8;
            [first, second + extra + codes.take(second_length) as u8]
        }
    }
}

/// Reads the prefix of an offset: the least offset that it stands for, and the length of its suffix. Offsets beyond
/// 32, which have an extension, exceed every exponent that is accepted.
fn read_prefix(codes: &mut BackwardReader) -> (u8, u32) {
    let bits = codes.peek(3);
    let (length, base, suffix) = match bits.trailing_zeros() {
        0 => (1, 1, 0),
        1 => (2, 2, 0),
        2 => (3, 3, 1),
        _ => (3, 5, 5),
    };
    codes.skip(length);
    (base, suffix)
}

/// Reads MagSgn, forwards from the block's start. Behind its end all bits are ones.
struct ForwardReader<'a> {
    data: &'a [u8],
    value: u64,
    length: u32,
    after_ff: bool,
}

impl<'a> ForwardReader<'a> {
    fn new(data: &'a [u8]) -> Self {
        Self { data, value: 0, length: 0, after_ff: false }
    }

    /// Takes the next bits, at most 31.
    fn take(&mut self, length: u32) -> u32 {
        if self.length < length {
            self.fill();
        }
        let bits = self.value & ((1 << length) - 1);
        self.value >>= length;
        self.length -= length;
        bits as u32
    }

    #[cold]
    fn fill_by_bytes(&mut self) {
        while self.length <= 32 {
            let byte = match self.data.split_first() {
                Some((&byte, rest)) => {
                    self.data = rest;
                    byte
                }
                None => 0xff,
            };
            self.value |= u64::from(byte) << self.length;
            self.length += 8 - u32::from(self.after_ff);
            self.after_ff = byte == 0xff;
        }
        self.value &= (1 << self.length) - 1;
    }

    /// Loads at least 32 bits.
    fn fill(&mut self) {
        if let Some((&word, rest)) = self.data.split_first_chunk::<4>() {
            let word = u32::from_le_bytes(word);
            if !self.after_ff && !has_ff(word) {
                self.value |= u64::from(word) << self.length;
                self.length += 32;
                self.data = rest;
                return;
            }
        }
        self.fill_by_bytes();
    }
}

/// Reads VLC, backwards from the block's end. Before its start all bits are zeros.
struct BackwardReader<'a> {
    data: &'a [u8],
    value: u64,
    length: u32,
    last: u8,
}

impl<'a> BackwardReader<'a> {
    /// A reader of VLC, where `data` is MEL and VLC together. The last twelve bits, which are their length, are
    /// skipped.
    fn new(data: &'a [u8]) -> Self {
        let (rest, half) = (&data[..data.len() - 2], data[data.len() - 2]);
        let short = half >> 4 & 7 == 7;
        let length = 4 - u32::from(short);
        let value = u64::from(half >> 4) & ((1 << length) - 1);
        Self { data: rest, value, length, last: half | 15 }
    }

    /// Loads at least 32 bits.
    fn fill(&mut self) {
        if self.length >= 32 {
            return;
        }
        if let Some((rest, &word)) = self.data.split_last_chunk::<4>() {
            let word = u32::from_be_bytes(word);
            if !has_7f(word) {
                self.value |= u64::from(word) << self.length;
                self.length += 32;
                self.last = (word >> 24) as u8;
                self.data = rest;
                return;
            }
        }
        while self.length <= 48 {
            let byte = match self.data.split_last() {
                Some((&byte, rest)) => {
                    self.data = rest;
                    byte
                }
                None => 0,
            };
            let short = self.last > 0x8f && byte & 0x7f == 0x7f;
            self.value |= u64::from(if short { 0x7f } else { byte }) << self.length;
            self.length += 8 - u32::from(short);
            self.last = byte;
        }
    }

    fn peek(&self, length: u32) -> u32 {
        (self.value & ((1 << length) - 1)) as u32
    }

    /// Skips bits that [`fill`](Self::fill) has loaded: a pair of quads has at most 30.
    fn skip(&mut self, length: u32) {
        self.value >>= length;
        self.length = self.length.saturating_sub(length);
    }

    fn take(&mut self, length: u32) -> u32 {
        let bits = self.peek(length);
        self.skip(length);
        bits
    }
}

/// Reads MEL, forwards from where MagSgn ends. Behind its end all bits are ones.
struct MelReader<'a> {
    data: &'a [u8],
    value: u8,
    length: u32,
    after_ff: bool,
    state: usize,
    /// Number of events that still do not happen in this run, and whether one happens after them.
    run: u32,
    then: bool,
}

impl<'a> MelReader<'a> {
    /// A reader of MEL, where `data` is MEL and VLC together: MEL may reach up to the half byte of their length.
    fn new(data: &'a [u8]) -> Self {
        let data = &data[..data.len() - 1];
        Self { data, value: 0, length: 0, after_ff: false, state: 0, run: 0, then: false }
    }

    fn event(&mut self) -> bool {
        if self.run == 0 && !self.then {
            let exponent = u32::from(MEL_EXPONENTS[self.state]);
            if self.bit() == 1 {
                self.run = 1 << exponent;
                self.state = (self.state + 1).min(12);
            } else {
                self.run = (0..exponent).fold(0, |run, _| run << 1 | self.bit());
                self.then = true;
                self.state = self.state.saturating_sub(1);
            }
        }
        if self.run > 0 {
            self.run -= 1;
            return false;
        }
        self.then = false;
        true
    }

    fn bit(&mut self) -> u32 {
        if self.length == 0 {
            self.value = match *self.data {
                [] => 0xff,
                [last] => last | 15,
                [byte, ..] => byte,
            };
            self.data = self.data.get(1..).unwrap_or_default();
            self.length = 8 - u32::from(self.after_ff);
            self.after_ff = self.value == 0xff;
        }
        self.length -= 1;
        u32::from(self.value >> self.length & 1)
    }
}
