//! The inner loops of upsampling by 2, 3 or 4: a row pass, whose last rows are kept in a ring, and
//! a column pass over that ring.
//!
//! `unsafe` here follows the invariants of [`windlass_vp9::simd`]: the heads of [`upsample_q4`] and
//! [`upsample_u8`] check all slices.

#![allow(clippy::inline_always)] // so that code takes on the target features of its caller

mod scalar;
mod simd;

use std::ops::Range;

use windlass_vp9::simd::Isa;
use windlass_vp9::{Samples, by_isa};

/// Number of rows of the ring: more than a window has, and a power of two.
const RING: usize = 8;
/// Number of samples behind the end of a line that SIMD vectors may touch.
const SLACK: usize = 64;
/// Side of a window, in samples: the largest number of taps, and one more for the other half of the phases.
const WINDOW: usize = 7;

/// Taps in 1/128 of the phases before the centre of a sample, in order. A window has `N / 2`
/// samples on either side of the phase. In odd scales a phase without taps follows, the sample
/// itself; then the same taps mirrored, their windows one sample later.
pub(super) struct Bank<const N: usize> {
    pub(super) two: [[i16; N]; 1],
    three: [[i16; N]; 1],
    four: [[i16; N]; 2],
}

/// Lanczos with a = 3. All sums of magnitudes are below 256, so that 128 times a sample of 8 bits,
/// centred, stays within 16 bits.
pub(super) const LANCZOS3: Bank<6> = Bank {
    two: [[1, -9, 35, 114, -17, 4]],
    three: [[2, -12, 49, 104, -19, 4]],
    four: [[2, -13, 56, 98, -19, 4], [0, -4, 15, 125, -11, 3]],
};

/// Catmull-Rom, the bicubic filter.
pub(super) const BICUBIC: Bank<4> = Bank {
    two: [[-3, 29, 111, -9]],
    three: [[-5, 43, 100, -10]],
    four: [[-6, 50, 93, -9], [-1, 12, 123, -6]],
};

impl<const N: usize> Bank<N> {
    /// The taps of the phases before the centre, for scales 2, 3 and 4.
    fn before(&self, scale: usize) -> &[[i16; N]] {
        match scale {
            2 => &self.two,
            3 => &self.three,
            _ => &self.four,
        }
    }
}

/// Working memory; grows to what the largest picture needs and is used again.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    /// One row with its edges repeated, in 16 bits, each sample minus 128.
    pad: Vec<i16>,
    /// The last rows that went through the row pass.
    ring: Vec<i16>,
}

/// A strip to be made: the HR rows of some LR rows, each cut to `width`.
pub(super) struct Strip<'a, T> {
    pub low: Samples<'a>,
    pub scale: usize,
    pub rows: Range<usize>,
    pub width: usize,
    /// The output, at most `scale * rows.len()` rows.
    pub out: &'a mut [T],
}

impl<T> Strip<'_, T> {
    /// Whether the strip has any samples to make.
    ///
    /// # Panics
    ///
    /// Panics if the strip lies outside its picture, or the output does not fit it.
    fn check(&self) -> bool {
        let Self { low, scale, rows, width, out } = self;
        assert!(matches!(scale, 2..=4), "scale {scale}");
        assert!(rows.start <= rows.end && rows.end <= low.height, "rows {rows:?}");
        assert!(*width <= scale * low.width && low.width <= low.stride, "width {width}");
        if out.is_empty() {
            return false;
        }
        let lines = out.len() / width;
        assert!(lines * width == out.len() && lines <= scale * rows.len(), "the output's size");
        let needed = (low.height - 1).saturating_mul(low.stride).saturating_add(low.width);
        assert!(low.data.len() >= needed, "the plane is too short");
        true
    }
}

/// The kind of sample that a column pass ends in.
trait Level: Copy {
    /// Shift that converts 128 × 128 times a grey level to this kind.
    const SHIFT: i32;
    /// The sum of what is added before the shift: the rounding, and the 128 that was subtracted from rows.
    const BIAS: i32;
    fn clamped(v: i32) -> Self;
}

impl Level for i16 {
    /// Shift that gives 1/16 grey level.
    const SHIFT: i32 = 10;
    const BIAS: i32 = (1 << 9) + (128 << 14);
    fn clamped(v: i32) -> Self {
        v.clamp(Self::MIN.into(), Self::MAX.into()) as Self
    }
}

impl Level for u8 {
    /// Shift that gives whole grey levels, as if rounded to 1/16 first.
    const SHIFT: i32 = 14;
    const BIAS: i32 = (1 << 9) + (1 << 13) + (128 << 14);
    fn clamped(v: i32) -> Self {
        v.clamp(0, 255) as Self
    }
}

/// The two passes for one instruction set.
trait Passes<T> {
    /// Filters a row: of each sample of `pad`, which begins `N / 2` samples before the row, makes `S` samples of
    /// `out`.
    unsafe fn across<const N: usize, const S: usize>(
        pad: &[i16],
        width: usize,
        taps: &[[i16; N]],
        out: &mut [i16],
    );
    /// Filters down: makes at most `S` rows of `out`, each of `width` samples, from the rows around a row. The middle
    /// one is that row.
    unsafe fn down<const N: usize, const S: usize>(
        rows: [&[i16]; WINDOW],
        taps: &[[i16; N]],
        width: usize,
        out: &mut [T],
    );
    /// Writes `row`, each sample minus 128, as 16 bits.
    unsafe fn centre(row: &[u8], out: &mut [i16]);
}

/// Makes a strip.
///
/// # Safety
///
/// The machine has the instructions of `P`; the strip is checked.
#[inline(always)]
unsafe fn run<P: Passes<T>, T, const N: usize, const S: usize>(
    strip: Strip<'_, T>,
    bank: &Bank<N>,
    scratch: &mut Scratch,
) {
    let Strip { low, rows, width, out, .. } = strip;
    let taps = bank.before(S);
    let (side, last) = (N / 2, low.height - 1);
    let line = S * low.width + S * SLACK;
    grow(&mut scratch.pad, low.width + WINDOW + SLACK);
    grow(&mut scratch.ring, RING * line);
    let Scratch { pad, ring } = scratch;
    let mut next = rows.start.saturating_sub(side);
    let step = S * width;
    for (y, out) in rows.zip(out.chunks_mut(step)) {
        while next <= last.min(y + side) {
            let row = low.row(next);
            // SAFETY: as the caller promises; the padded row and the line have their slack.
            unsafe {
                P::centre(row, &mut pad[side..]);
                let edges = (pad[side], pad[side + low.width - 1]);
                pad[..side].fill(edges.0);
                pad[side + low.width..][..side].fill(edges.1);
                let line = &mut ring[next % RING * line..][..line];
                P::across::<N, S>(pad, low.width, taps, line);
            }
            next += 1;
        }
        let window: [&[i16]; WINDOW] = std::array::from_fn(|j| {
            let at = (y + j.min(2 * side)).saturating_sub(side).min(last);
            &ring[at % RING * line..][..line]
        });
        // SAFETY: as the caller promises.
        unsafe { P::down::<N, S>(window, taps, width, out) };
    }
}

/// Makes `v` at least `len` elements long and keeps its contents.
fn grow(v: &mut Vec<i16>, len: usize) {
    if v.len() < len {
        v.resize(len, 0);
    }
}

/// Calls [`run`] for the strip's scale.
#[inline(always)]
unsafe fn by_scale<P: Passes<T>, T, const N: usize>(
    strip: Strip<'_, T>,
    bank: &Bank<N>,
    scratch: &mut Scratch,
) {
    unsafe {
        match strip.scale {
            2 => run::<P, T, N, 2>(strip, bank, scratch),
            3 => run::<P, T, N, 3>(strip, bank, scratch),
            _ => run::<P, T, N, 4>(strip, bank, scratch),
        }
    }
}

/// Makes a strip in 1/16 grey level.
pub(super) fn upsample_q4(isa: Isa, strip: Strip<'_, i16>, bank: &Bank<6>, scratch: &mut Scratch) {
    use simd::strip_q4;
    if !strip.check() {
        return;
    }
    // SAFETY: the scalar form has no needs. The strip is checked.
    by_isa!(
        isa_for(isa, &strip),
        unsafe { by_scale::<scalar::Scalar, _, 6>(strip, bank, scratch) },
        strip_q4(strip: Strip<'_, i16>, bank: &Bank<6>, scratch: &mut Scratch)
    );
}

/// Makes a strip in whole grey levels.
pub(super) fn upsample_u8(isa: Isa, strip: Strip<'_, u8>, bank: &Bank<4>, scratch: &mut Scratch) {
    use simd::strip_u8;
    if !strip.check() {
        return;
    }
    // SAFETY: the scalar form has no needs. The strip is checked.
    by_isa!(
        isa_for(isa, &strip),
        unsafe { by_scale::<scalar::Scalar, _, 4>(strip, bank, scratch) },
        strip_u8(strip: Strip<'_, u8>, bank: &Bank<4>, scratch: &mut Scratch)
    );
}

/// The instruction set for a strip: rows shorter than two vectors are left to the scalar form.
fn isa_for<T>(isa: Isa, strip: &Strip<'_, T>) -> Isa {
    if strip.width < simd::MIN_LINE || strip.low.width < simd::MIN_LINE { Isa::SCALAR } else { isa }
}

/// Rounds 1/16 grey levels to whole ones, within 8 bits.
///
/// # Panics
///
/// Panics if the lengths differ.
pub fn narrow(isa: Isa, strip: &[i16], out: &mut [u8]) {
    use simd::narrow;
    assert_eq!(strip.len(), out.len(), "as many samples out as in");
    // SAFETY: the lengths are equal.
    by_isa!(isa, scalar::narrow(strip, out), narrow(strip: &[i16], out: &mut [u8]));
}
