//! The passes over any [`Vector`].
//!
//! Rows: 128 times a centred sample fits in 16 bits, so products of 16 bits are summed as they
//! are. Columns: two rows are interleaved and multiplied in pairs to 32 bits; every interleaved pair
//! serves the phases of one half. The last vector of a line ends with it and repeats a part of the
//! one before.

use std::marker::PhantomData;

use windlass_vp9::simd::vector::Vector;

use super::{Bank, Level, Passes, Scratch, Strip, WINDOW, by_scale};

/// Minimum length of a line that vectors are used for, in samples.
pub(super) const MIN_LINE: usize = 32;

/// The passes over vectors `V`; `O` has one lane.
struct Lanes<V, O>(PhantomData<(V, O)>);

/// Makes a strip in 1/16 grey level.
///
/// # Safety
///
/// The machine has both types; the strip is checked, and no line is shorter than [`MIN_LINE`].
#[inline(always)]
pub(super) unsafe fn strip_q4<V: Vector, O: Vector>(
    strip: Strip<'_, i16>,
    bank: &Bank<6>,
    scratch: &mut Scratch,
) {
    unsafe { by_scale::<Lanes<V, O>, i16, 6>(strip, bank, scratch) }
}

/// Makes a strip in whole grey levels.
///
/// # Safety
///
/// The conditions of [`strip_q4`].
#[inline(always)]
pub(super) unsafe fn strip_u8<V: Vector, O: Vector>(
    strip: Strip<'_, u8>,
    bank: &Bank<4>,
    scratch: &mut Scratch,
) {
    unsafe { by_scale::<Lanes<V, O>, u8, 4>(strip, bank, scratch) }
}

/// How a column pass turns 32-bit sums into samples and stores them.
trait Store: Level {
    /// Stores `8 * V::LANES` samples at `p`, from sums; `low` and `high` have the halves of lanes.
    unsafe fn store<V: Vector>(low: V, high: V, p: *mut Self);
    /// Stores rows that need no filter (128 times a centred level) at `p`.
    unsafe fn store_whole<V: Vector>(row: V, p: *mut Self);
}

impl Store for i16 {
    #[inline(always)]
    unsafe fn store<V: Vector>(low: V, high: V, p: *mut Self) {
        unsafe { low.pack_i32_i16(high).store(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store_whole<V: Vector>(row: V, p: *mut Self) {
        unsafe { row.add16(V::splat16(4)).shr_i16::<3>().add16(V::splat16(2048)).store(p.cast()) }
    }
}

impl Store for u8 {
    #[inline(always)]
    unsafe fn store<V: Vector>(low: V, high: V, p: *mut Self) {
        unsafe { low.pack_i32_i16(high).store_narrow(p) }
    }
    #[inline(always)]
    unsafe fn store_whole<V: Vector>(row: V, p: *mut Self) {
        unsafe { row.add16(V::splat16(68)).shr_i16::<7>().add16(V::splat16(128)).store_narrow(p) }
    }
}

impl<T: Store, V: Vector, O: Vector> Passes<T> for Lanes<V, O> {
    #[inline(always)]
    unsafe fn centre(row: &[u8], out: &mut [i16]) {
        let step = 8 * V::LANES;
        let out = &mut out[..row.len()];
        let (from, to) = (row.as_ptr(), out.as_mut_ptr());
        for x in starts(row.len(), step) {
            unsafe {
                V::load_widen(from.add(x)).sub16(V::splat16(128)).store(to.add(x).cast());
            }
        }
    }

    #[inline(always)]
    unsafe fn across<const N: usize, const S: usize>(
        pad: &[i16],
        width: usize,
        taps: &[[i16; N]],
        out: &mut [i16],
    ) {
        // Three phases are stored over each other's ends, which lanes must do one after the other.
        unsafe {
            if S == 3 {
                across::<O, N, S>(pad, width, taps, out);
            } else {
                across::<V, N, S>(pad, width, taps, out);
            }
        }
    }

    #[inline(always)]
    unsafe fn down<const N: usize, const S: usize>(
        rows: [&[i16]; WINDOW],
        taps: &[[i16; N]],
        width: usize,
        out: &mut [T],
    ) {
        let lines = out.len() / width;
        let to = out.as_mut_ptr();
        let rows = rows.map(<[i16]>::as_ptr);
        for x in starts(width, 8 * V::LANES) {
            unsafe {
                let before = pair_rows::<V, N>(&rows, x, 0);
                for (p, taps) in taps.iter().enumerate().take(S / 2) {
                    if p < lines {
                        weigh_pairs::<T, V, N>(&before, *taps, to.add(p * width + x));
                    }
                }
                if S % 2 == 1 && lines > S / 2 {
                    let row = V::load(rows[N / 2].add(x).cast());
                    T::store_whole(row, to.add(S / 2 * width + x));
                }
                let after = pair_rows::<V, N>(&rows, x, 1);
                for (p, taps) in taps.iter().enumerate().take(S / 2) {
                    if S - 1 - p < lines {
                        let to = to.add((S - 1 - p) * width + x);
                        weigh_pairs::<T, V, N>(&after, mirrored(taps), to);
                    }
                }
            }
        }
    }
}

fn mirrored<const N: usize>(taps: &[i16; N]) -> [i16; N] {
    let mut taps = *taps;
    taps.reverse();
    taps
}

/// The rows of a window in pairs, interleaved: the halves of lanes.
#[inline(always)]
unsafe fn pair_rows<V: Vector, const N: usize>(
    rows: &[*const i16; WINDOW],
    x: usize,
    first: usize,
) -> [(V, V); 3] {
    unsafe {
        let mut pairs = [(V::zero(), V::zero()); 3];
        for (pair, rows) in pairs.iter_mut().zip(rows[first..first + N].chunks_exact(2)) {
            let (a, b) = (V::load(rows[0].add(x).cast()), V::load(rows[1].add(x).cast()));
            *pair = (a.zip_low16(b), a.zip_high16(b));
        }
        pairs
    }
}

/// Makes one phase of the column pass, and stores it at `to`.
#[inline(always)]
unsafe fn weigh_pairs<T: Store, V: Vector, const N: usize>(
    pairs: &[(V, V); 3],
    taps: [i16; N],
    to: *mut T,
) {
    unsafe {
        let mut low = V::splat32(T::BIAS);
        let mut high = low;
        for (pair, taps) in pairs.iter().zip(taps.chunks_exact(2)) {
            let taps = V::splat_pair(taps[0], taps[1]);
            low = low.add32(pair.0.madd_i16(taps));
            high = high.add32(pair.1.madd_i16(taps));
        }
        if T::SHIFT == 10 {
            T::store(low.shr_i32::<10>(), high.shr_i32::<10>(), to);
        } else {
            T::store(low.shr_i32::<14>(), high.shr_i32::<14>(), to);
        }
    }
}

/// The places where vectors of `step` samples begin that cover `len` (at least `step`); the last one ends with the
/// line.
#[inline(always)]
fn starts(len: usize, step: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by(step).map(move |x| x.min(len - step))
}

/// The row pass, as [`Passes::across`] describes it. Lines have slack.
#[inline(always)]
unsafe fn across<V: Vector, const N: usize, const S: usize>(
    pad: &[i16],
    width: usize,
    taps: &[[i16; N]],
    out: &mut [i16],
) {
    let step = 8 * V::LANES;
    assert!(pad.len() >= width + N + step && out.len() >= S * (width + step), "lines have slack");
    let (from, to) = (pad.as_ptr(), out.as_mut_ptr());
    for x in (0..width).step_by(step) {
        unsafe {
            let mut window = [V::zero(); WINDOW];
            for (k, v) in window.iter_mut().enumerate().take(N + 1) {
                *v = V::load(from.add(x + k).cast());
            }
            let to = to.add(S * x).cast::<u8>();
            let (a, z) = both_sides(&window, &taps[0]);
            match S {
                2 => {
                    a.zip_low16(z).store_lanes(to, 32);
                    a.zip_high16(z).store_lanes(to.add(16), 32);
                }
                3 => {
                    let middle = window[N / 2].shl16::<7>();
                    for (i, v) in spread([a, middle, z, z]).iter().enumerate() {
                        v.store_half_lanes(to.add(12 * i), 0);
                        v.store_high_half_lanes(to.add(12 * i + 6), 0);
                    }
                }
                _ => {
                    let (b, y) = both_sides(&window, &taps[1]);
                    for (i, v) in spread([a, b, y, z]).iter().enumerate() {
                        v.store_lanes(to.add(16 * i), 64);
                    }
                }
            }
        }
    }
}

/// A phase before the centre and its mirror image, in the row pass.
#[inline(always)]
unsafe fn both_sides<V: Vector, const N: usize>(window: &[V; WINDOW], taps: &[i16; N]) -> (V, V) {
    unsafe {
        let (mut before, mut after) = (V::zero(), V::zero());
        for (k, &tap) in taps.iter().enumerate() {
            let tap = V::splat16(tap);
            before = before.add16(window[k].mul_low16(tap));
            after = after.add16(window[N - k].mul_low16(tap));
        }
        (before, after)
    }
}

/// Interleaves four vectors of 16-bit elements.
#[inline(always)]
unsafe fn spread<V: Vector>([a, b, c, d]: [V; 4]) -> [V; 4] {
    unsafe {
        let (ab, cd) = ((a.zip_low16(b), a.zip_high16(b)), (c.zip_low16(d), c.zip_high16(d)));
        [ab.0.zip_low32(cd.0), ab.0.zip_high32(cd.0), ab.1.zip_low32(cd.1), ab.1.zip_high32(cd.1)]
    }
}

/// # Safety
///
/// The machine has `V`; the lengths are equal.
#[inline(always)]
pub(super) unsafe fn narrow<V: Vector, O: Vector>(strip: &[i16], out: &mut [u8]) {
    let step = 8 * V::LANES;
    let whole = strip.len() / step * step;
    for x in (0..whole).step_by(step) {
        unsafe {
            let v = V::load(strip.as_ptr().add(x).cast());
            v.adds_i16(V::splat16(8)).shr_i16::<4>().store_narrow(out.as_mut_ptr().add(x));
        }
    }
    super::scalar::narrow(&strip[whole..], &mut out[whole..]);
}
