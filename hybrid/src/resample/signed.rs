//! Lanczos by two, and means of four, of signed planes in 1/16 grey level: what back-projection
//! needs. Scalar.

use super::kernel::LANCZOS3;
use crate::detail::Detail;

/// Taps of a phase, and samples on either side of it.
const N: usize = 6;

/// Lanczos-3 of a signed plane in 1/16 grey level, as back-projection needs it.
pub fn lanczos2x_signed(source: &Detail) -> Detail {
    let (width, height) = (source.width(), source.height());
    let mut rows = Detail::zero(2 * width, height);
    let mut pad = Vec::new();
    for y in 0..height {
        row(source.row(y), rows.row_mut(y), &mut pad);
    }
    let mut out = Detail::zero(2 * width, 2 * height);
    columns(&rows, &mut out);
    out
}

/// Means of 2×2 samples of a signed plane in 1/16 grey level, rounded.
pub fn box_half_signed(source: &Detail) -> Detail {
    let mut out = Detail::zero(source.width() / 2, source.height() / 2);
    for y in 0..out.height() {
        let (a, b) = (source.row(2 * y), source.row(2 * y + 1));
        let pairs = a.chunks_exact(2).zip(b.chunks_exact(2));
        for (o, (a, b)) in out.row_mut(y).iter_mut().zip(pairs) {
            let sum = i32::from(a[0]) + i32::from(a[1]) + i32::from(b[0]) + i32::from(b[1]);
            *o = ((sum + 2) >> 2) as i16;
        }
    }
    out
}

fn taps() -> ([i16; N], [i16; N]) {
    let even = LANCZOS3.two[0];
    (even, std::array::from_fn(|k| even[N - 1 - k]))
}

/// One row in 1/16 to a row of twice the width in 1/64.
fn row(source: &[i16], out: &mut [i16], pad: &mut Vec<i16>) {
    pad_row(source, pad);
    let (even, odd) = taps();
    for (i, pair) in out.chunks_exact_mut(2).enumerate().take(source.len()) {
        let window = &pad[i..=i + N];
        let (mut a, mut b) = (16i32, 16i32);
        for k in 0..N {
            a += i32::from(even[k]) * i32::from(window[k]);
            b += i32::from(odd[k]) * i32::from(window[k + 1]);
        }
        pair[0] = clamp16(a >> 5);
        pair[1] = clamp16(b >> 5);
    }
}

/// `N / 2` repeats of the edge on both sides.
fn pad_row(samples: &[i16], pad: &mut Vec<i16>) {
    let edge = |v: Option<&i16>| [v.copied().unwrap_or(0); N / 2];
    pad.clear();
    pad.extend(edge(samples.first()));
    pad.extend(samples);
    pad.extend(edge(samples.last()));
}

/// The column pass: rows in 1/64 to twice the height, in 1/16 again.
fn columns(rows: &Detail, out: &mut Detail) {
    let last = rows.height() as isize - 1;
    let width = rows.width();
    let (even, odd) = taps();
    for y in 0..out.height() {
        let first = (y / 2) as isize - (N / 2) as isize + (y % 2) as isize;
        let taps = if y % 2 == 0 { &even } else { &odd };
        let sources: [&[i16]; N] = std::array::from_fn(|k| {
            &rows.row((first + k as isize).clamp(0, last) as usize)[..width]
        });
        for (x, o) in out.row_mut(y)[..width].iter_mut().enumerate() {
            let mut sum = 1 << 8;
            for k in 0..N {
                sum += i32::from(taps[k]) * i32::from(sources[k][x]);
            }
            *o = clamp16(sum >> 9);
        }
    }
}

fn clamp16(v: i32) -> i16 {
    v.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}
