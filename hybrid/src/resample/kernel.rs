//! The inner loops of two-phase upsampling: a row pass and a column pass.

use crate::detail::Detail;

/// Taps of even HR samples, in 1/128; odd ones use them mirrored. `N` is even, and the first
/// tap lies `N / 2` samples to the left.
pub(super) struct Taps<const N: usize>([i16; N]);

/// Lanczos with a = 3 at distances 2.75, 1.75, 0.75, 0.25, 1.25, 2.25.
pub(super) const LANCZOS3: Taps<6> = Taps([1, -9, 35, 114, -17, 4]);
/// Catmull-Rom at distances 1.75, 0.75, 0.25, 1.25.
pub(super) const BICUBIC: Taps<4> = Taps([-3, 29, 111, -9]);

impl<const N: usize> Taps<N> {
    fn mirrored(&self) -> [i16; N] {
        let mut taps = self.0;
        taps.reverse();
        taps
    }
}

/// One row of 8-bit samples to a row of twice the width: 128 × (sample − 128).
///
/// Centring keeps sums within 128 × 180 = 23 040, so that 16 bits are enough.
pub(super) fn row_u8<const N: usize>(
    source: &[u8],
    taps: &Taps<N>,
    out: &mut [i16],
    pad: &mut Vec<i16>,
) {
    let centred = source.iter().map(|&v| i16::from(v) - 128);
    pad_row::<N>(centred, pad);
    let (even, odd) = (taps.0, taps.mirrored());
    let n = source.len();
    for (i, pair) in out.chunks_exact_mut(2).enumerate().take(n) {
        let window = &pad[i..=i + N];
        let (mut a, mut b) = (0i16, 0i16);
        for k in 0..N {
            a += even[k] * window[k];
            b += odd[k] * window[k + 1];
        }
        pair[0] = a;
        pair[1] = b;
    }
}

/// One row of signed samples in 1/16 to a row of twice the width in 1/64.
pub(super) fn row_i16<const N: usize>(
    source: &[i16],
    taps: &Taps<N>,
    out: &mut [i16],
    pad: &mut Vec<i16>,
) {
    pad_row::<N>(source.iter().copied(), pad);
    let (even, odd) = (taps.0, taps.mirrored());
    let n = source.len();
    for (i, pair) in out.chunks_exact_mut(2).enumerate().take(n) {
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
fn pad_row<const N: usize>(samples: impl ExactSizeIterator<Item = i16>, pad: &mut Vec<i16>) {
    let side = N / 2;
    pad.clear();
    pad.resize(side, 0);
    pad.extend(samples);
    let (first, last) = (pad.get(side).copied().unwrap_or(0), pad[pad.len() - 1]);
    pad[..side].fill(first);
    pad.resize(pad.len() + side, last);
}

/// The column pass: `rows` to twice the height, shifted right by `shift` with rounding, plus
/// `offset`.
pub(super) fn columns<const N: usize>(
    rows: &Detail,
    taps: &Taps<N>,
    shift: u32,
    offset: i32,
    out: &mut Detail,
) {
    let bias = (1 << (shift - 1)) + (offset << shift);
    let last = rows.height() as isize - 1;
    let width = rows.width();
    let (even, odd) = (taps.0, taps.mirrored());
    for y in 0..out.height() {
        let first = (y / 2) as isize - (N / 2) as isize + (y % 2) as isize;
        let taps = if y % 2 == 0 { &even } else { &odd };
        let sources: [&[i16]; N] = std::array::from_fn(|k| {
            &rows.row((first + k as isize).clamp(0, last) as usize)[..width]
        });
        for (x, o) in out.row_mut(y)[..width].iter_mut().enumerate() {
            let mut sum = bias;
            for k in 0..N {
                sum += i32::from(taps[k]) * i32::from(sources[k][x]);
            }
            *o = clamp16(sum >> shift);
        }
    }
}

fn clamp16(v: i32) -> i16 {
    v.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}
