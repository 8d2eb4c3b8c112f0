//! The encoder of blocks.

use super::codes::{ENCODE_FIRST, ENCODE_OTHER};
use super::{MAX_QUADS, MEL_EXPONENTS, bit_length, has_7f, has_ff};

/// Encodes blocks, one after another, and keeps their working memory.
#[derive(Debug)]
pub(crate) struct BlockEncoder {
    magnitudes: ForwardWriter,
    mel: MelWriter,
    codes: BackwardWriter,
    /// 2μ−1 of the lower samples of the row of quads above and of this one, of magnitude μ; 0 where insignificant.
    /// The first entry is left of the block.
    above: Vec<u32>,
    below: Vec<u32>,
}

impl Default for BlockEncoder {
    fn default() -> Self {
        Self {
            magnitudes: ForwardWriter::default(),
            mel: MelWriter::default(),
            codes: BackwardWriter::default(),
            above: vec![0; 2 * MAX_QUADS + 6],
            below: vec![0; 2 * MAX_QUADS + 6],
        }
    }
}

/// The magnitudes of a quad's four samples, and what they say together.
#[derive(Clone, Copy, Default)]
struct Quad {
    /// 2μ−1 of each sample of magnitude μ; 0 where insignificant.
    odd: [u32; 4],
    significant: u32,
    /// The greatest exponent of the four samples.
    exponent: u32,
}

impl Quad {
    fn new(samples: [u32; 4]) -> Self {
        let odd = samples.map(|s| (s | 1).saturating_sub(2));
        let any = odd[0] | odd[1] | odd[2] | odd[3];
        if any == 0 {
            return Self::default();
        }
        let bit = |i: usize| u32::from(odd[i] != 0) << i;
        Self { odd, significant: bit(0) | bit(1) | bit(2) | bit(3), exponent: bit_length(any) }
    }

    /// The samples that have the greatest exponent, one bit each.
    fn top(&self) -> u32 {
        let shift = self.exponent - 1;
        let bit = |i: usize| (self.odd[i] >> shift & 1) << i;
        bit(0) | bit(1) | bit(2) | bit(3)
    }
}

/// Whether no value is above `most`, whose set bits must be its lowest ones.
fn is_zero(values: &[u32], most: u32) -> bool {
    values.iter().fold(0, |any, v| any | v) <= most
}

impl BlockEncoder {
    /// Appends the cleanup pass of a block to `out`. Each sample is twice its magnitude, plus one when negative.
    /// Samples are in quad order, with `across` quads in a row.
    pub(crate) fn encode(&mut self, samples: &[u32], across: usize, out: &mut Vec<u8>) {
        self.magnitudes.clear();
        self.mel.clear();
        self.codes.clear();
        self.above[..2 * across + 6].fill(0);
        self.below[..2 * across + 6].fill(0);
        for (row, line) in samples.chunks_exact(4 * across).enumerate() {
            if row == 0 {
                self.row::<true>(line);
            } else {
                self.row::<false>(line);
            }
            std::mem::swap(&mut self.above, &mut self.below);
        }
        self.finish(out);
    }

    fn row<const FIRST: bool>(&mut self, line: &[u32]) {
        let quads = line.as_chunks::<4>().0;
        // Whether the quad to the left is significant in its right column, and the context of the first row that
        // follows from it.
        let mut left = 0;
        for (pair, both) in quads.chunks(2).enumerate() {
            let around = &self.above[4 * pair..4 * pair + 6];
            if left == 0 && is_zero(around, 0) && is_zero(both.as_flattened(), 1) {
                self.below[4 * pair + 1..4 * pair + 5].fill(0);
                for _ in both {
                    self.mel.event(false);
                }
                continue;
            }
            let mut bits = Bits::default();
            let mut offsets = [0; 2];
            for (i, &samples) in both.iter().enumerate() {
                let at = 4 * pair + 2 * i;
                let quad = Quad::new(samples);
                let near =
                    [self.above[at], self.above[at + 1], self.above[at + 2], self.above[at + 3]];
                let context = if FIRST {
                    left
                } else {
                    u32::from(near[0] | near[1] != 0)
                        | left
                        | u32::from(near[2] | near[3] != 0) << 2
                };
                self.below[at + 1] = quad.odd[1];
                self.below[at + 2] = quad.odd[3];
                let rho = quad.significant;
                left = if FIRST { rho >> 1 | rho & 1 } else { u32::from(rho & 0b1100 != 0) << 1 };
                if context == 0 {
                    self.mel.event(rho != 0);
                    if rho == 0 {
                        continue;
                    }
                }
                let bound = if !FIRST && rho & rho.wrapping_sub(1) != 0 {
                    bit_length(near[0] | near[1] | near[2] | near[3]).saturating_sub(1).max(1)
                } else {
                    1
                };
                let exponent = quad.exponent.max(bound);
                offsets[i] = exponent - bound;
                let top = if offsets[i] > 0 { quad.top() } else { 0 };
                let table = if FIRST { &ENCODE_FIRST } else { &ENCODE_OTHER };
                let code = u32::from(table[(context << 8 | rho << 4 | top) as usize]);
                bits.put(code >> 8, code >> 4 & 15);
                for (n, &s) in samples.iter().enumerate() {
                    if rho >> n & 1 == 1 {
                        let length = exponent - (code >> n & 1);
                        self.magnitudes.put((s - 2) & ((1 << length) - 1), length);
                    }
                }
            }
            self.put_offsets::<FIRST>(offsets, &mut bits);
            self.codes.put(bits);
        }
    }

    /// Writes by how much the exponents of a pair of quads exceed their bounds.
    fn put_offsets<const FIRST: bool>(&mut self, [a, b]: [u32; 2], bits: &mut Bits) {
        if a | b == 0 {
            return;
        }
        let (mut first, mut second) = (offset_code(a), offset_code(b));
        if FIRST && a > 0 && b > 0 {
            let both = a > 2 && b > 2;
            self.mel.event(both);
            if both {
                (first, second) = (offset_code(a - 2), offset_code(b - 2));
            } else if a > 2 {
                second =
                    OffsetCode { prefix: b - 1, prefix_length: 1, suffix: 0, suffix_length: 0 };
            }
        }
        bits.put(first.prefix, first.prefix_length);
        bits.put(second.prefix, second.prefix_length);
        bits.put(first.suffix, first.suffix_length);
        bits.put(second.suffix, second.suffix_length);
    }

    /// Ends the three streams and joins them.
    fn finish(&mut self, out: &mut Vec<u8>) {
        self.magnitudes.finish();
        self.mel.flush_run();
        self.codes.flush();
        let mel = &mut self.mel;
        let codes = &mut self.codes;
        let mel_byte = (mel.pending << mel.free) as u8;
        let mel_mask = (0xff << mel.free) as u8;
        let code_byte = codes.bits.value as u8;
        let code_mask = ((1 << codes.bits.length) - 1) as u8;
        if mel_mask | code_mask != 0 {
            // One byte can end both when neither disturbs the other's bits.
            let joint = mel_byte | code_byte;
            let undisturbed = (joint ^ mel_byte) & mel_mask | (joint ^ code_byte) & code_mask == 0;
            mel.bytes.push(if undisturbed && joint != 0xff && codes.bytes.len() > 1 {
                joint
            } else {
                codes.bytes.push(code_byte);
                mel_byte
            });
        }
        let length = mel.bytes.len() + codes.bytes.len();
        codes.bytes[0] = (length >> 4) as u8;
        codes.bytes[1] = codes.bytes[1] & 0xf0 | (length & 15) as u8;
        out.extend_from_slice(&self.magnitudes.bytes);
        out.extend_from_slice(&mel.bytes);
        out.extend(codes.bytes.iter().rev());
    }
}

/// The code of an exponent offset (ITU-T T.814, table 3).
struct OffsetCode {
    prefix: u32,
    prefix_length: u32,
    suffix: u32,
    suffix_length: u32,
}

fn offset_code(offset: u32) -> OffsetCode {
    let (prefix, prefix_length, suffix, suffix_length) = match offset {
        0 => (0, 0, 0, 0),
        1 => (1, 1, 0, 0),
        2 => (2, 2, 0, 0),
        3 | 4 => (4, 3, offset - 3, 1),
        // Magnitudes of this crate have fewer than 28 bits: there is never an extension.
        _ => (0, 3, offset - 5, 5),
    };
    OffsetCode { prefix, prefix_length, suffix, suffix_length }
}

/// Bits in the order in which they are read, the first one lowest.
#[derive(Debug, Clone, Copy, Default)]
struct Bits {
    value: u64,
    length: u32,
}

impl Bits {
    fn put(&mut self, value: u32, length: u32) {
        self.value |= u64::from(value) << self.length;
        self.length += length;
    }

    fn drop(&mut self, length: u32) {
        self.value >>= length;
        self.length -= length;
    }
}

/// Writes MagSgn: low bits first. After a byte of 0xff the next one has seven bits.
#[derive(Debug, Default)]
struct ForwardWriter {
    bytes: Vec<u8>,
    bits: Bits,
    after_ff: bool,
}

impl ForwardWriter {
    fn clear(&mut self) {
        self.bytes.clear();
        self.bits = Bits::default();
        self.after_ff = false;
    }

    fn put(&mut self, value: u32, length: u32) {
        self.bits.put(value, length);
        if self.bits.length >= 32 {
            let word = self.bits.value as u32;
            if self.after_ff || has_ff(word) {
                self.put_bytes();
            } else {
                self.bytes.extend_from_slice(&word.to_le_bytes());
                self.bits.drop(32);
            }
        }
    }

    fn put_bytes(&mut self) {
        loop {
            let length = 8 - u32::from(self.after_ff);
            if self.bits.length < length {
                return;
            }
            let byte = (self.bits.value & ((1 << length) - 1)) as u8;
            self.bytes.push(byte);
            self.after_ff = byte == 0xff;
            self.bits.drop(length);
        }
    }

    /// Fills the last byte with ones; trailing bytes of ones are what a decoder assumes anyway.
    fn finish(&mut self) {
        self.put_bytes();
        if self.bits.length > 0 {
            let free = 8 - u32::from(self.after_ff) - self.bits.length;
            self.bits.put((1 << free) - 1, free);
            self.put_bytes();
        }
        if self.after_ff {
            self.bytes.pop();
        }
    }
}

/// Writes VLC: bytes in the order in which they are read, which is from the block's end. After a byte above 0x8f,
/// seven set bits make a byte of their own.
#[derive(Debug, Default)]
struct BackwardWriter {
    bytes: Vec<u8>,
    bits: Bits,
    last: u8,
}

impl BackwardWriter {
    /// Begins a block. The first twelve bits are kept for the length of MEL and VLC.
    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.push(0xff);
        self.bits = Bits { value: 15, length: 4 };
        self.last = 0xff;
    }

    fn put(&mut self, more: Bits) {
        self.bits.value |= more.value << self.bits.length;
        self.bits.length += more.length;
        if self.bits.length >= 32 {
            let word = self.bits.value as u32;
            if has_7f(word) {
                self.flush();
            } else {
                self.bytes.extend_from_slice(&word.to_le_bytes());
                self.last = (word >> 24) as u8;
                self.bits.drop(32);
            }
        }
    }

    /// Writes all whole bytes.
    fn flush(&mut self) {
        while self.bits.length >= 8 {
            let byte = self.bits.value as u8;
            let short = self.last > 0x8f && byte & 0x7f == 0x7f;
            self.last = if short { 0x7f } else { byte };
            self.bytes.push(self.last);
            self.bits.drop(8 - u32::from(short));
        }
    }
}

/// Writes MEL, an adaptive run-length code: high bits first. After a byte of 0xff the next one has seven bits.
#[derive(Debug, Default)]
struct MelWriter {
    bytes: Vec<u8>,
    pending: u32,
    /// Number of bits that are still free in the pending byte.
    free: u32,
    state: usize,
    run: u32,
}

impl MelWriter {
    fn clear(&mut self) {
        self.bytes.clear();
        *self = Self { bytes: std::mem::take(&mut self.bytes), free: 8, ..Self::default() };
    }

    fn event(&mut self, happened: bool) {
        let exponent = u32::from(MEL_EXPONENTS[self.state]);
        if happened {
            self.put(0);
            for bit in (0..exponent).rev() {
                self.put(self.run >> bit & 1);
            }
            self.run = 0;
            self.state = self.state.saturating_sub(1);
        } else {
            self.run += 1;
            if self.run >> exponent != 0 {
                self.put(1);
                self.run = 0;
                self.state = (self.state + 1).min(12);
            }
        }
    }

    /// Ends the last run: a run that the end cuts may be encoded as a whole one.
    fn flush_run(&mut self) {
        if self.run > 0 {
            self.put(1);
        }
    }

    fn put(&mut self, bit: u32) {
        self.pending = self.pending << 1 | bit;
        self.free -= 1;
        if self.free == 0 {
            self.bytes.push(self.pending as u8);
            self.free = if self.pending == 0xff { 7 } else { 8 };
            self.pending = 0;
        }
    }
}
