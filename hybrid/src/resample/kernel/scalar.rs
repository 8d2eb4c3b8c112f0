//! The scalar form of the passes, which defines the results.

use super::{Level, Passes, WINDOW};
use crate::detail::ONE;

pub(super) struct Scalar;

impl<T: Level> Passes<T> for Scalar {
    unsafe fn centre(row: &[u8], out: &mut [i16]) {
        for (o, &v) in out.iter_mut().zip(row) {
            *o = i16::from(v) - 128;
        }
    }

    unsafe fn across<const N: usize, const S: usize>(
        pad: &[i16],
        width: usize,
        taps: &[[i16; N]],
        out: &mut [i16],
    ) {
        for (i, out) in out.chunks_exact_mut(S).enumerate().take(width) {
            let window = &pad[i..=i + N];
            if S % 2 == 1 {
                out[S / 2] = 128 * window[N / 2];
            }
            for (p, taps) in taps.iter().enumerate() {
                let (mut before, mut after) = (0, 0);
                for k in 0..N {
                    before += taps[k] * window[k];
                    after += taps[k] * window[N - k];
                }
                out[p] = before;
                out[S - 1 - p] = after;
            }
        }
    }

    unsafe fn down<const N: usize, const S: usize>(
        rows: [&[i16]; WINDOW],
        taps: &[[i16; N]],
        width: usize,
        out: &mut [T],
    ) {
        for (p, out) in out.chunks_exact_mut(width).enumerate() {
            let mut weights = [0; WINDOW];
            if p < S / 2 {
                weights[..N].copy_from_slice(&taps[p]);
            } else if S % 2 == 1 && p == S / 2 {
                weights[N / 2] = 128;
            } else {
                for (k, &tap) in taps[S - 1 - p].iter().enumerate() {
                    weights[N - k] = tap;
                }
            }
            for (x, o) in out.iter_mut().enumerate() {
                let mut sum = T::BIAS;
                for k in 0..=N {
                    sum += i32::from(weights[k]) * i32::from(rows[k][x]);
                }
                *o = T::clamped(sum >> T::SHIFT);
            }
        }
    }
}

pub(super) fn narrow(strip: &[i16], out: &mut [u8]) {
    for (o, &v) in out.iter_mut().zip(strip) {
        *o = (v.saturating_add(ONE / 2) >> 4).clamp(0, 255) as u8;
    }
}
