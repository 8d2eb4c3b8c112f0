//! Fetching the detail of a cell from its anchor, and how far to trust it.
//!
//! Source: the weight is Wiener's: the energy of the wanted signal over that of signal and noise. The
//! signal is the anchor's detail around the cell, the noise how badly the anchor's *low* picture, moved by the
//! same vector, fits the low picture of now: both ends have both, bit for bit.

use super::field::CELL;
use crate::detail::Detail;
use crate::resample::Samples;
use crate::vp9::MotionVector;

/// How much the misfit of low pictures counts against the energy of detail: misfit of the low
/// frequencies stands for more of it in the high ones.
const MISFIT: u64 = 3;
/// A weight of one.
pub(crate) const WHOLE: i32 = 1 << 15;
/// Catmull-Rom taps by eighths of a sample, in 1/128, over samples −1 to 2.
const TAPS: [[i32; 4]; 8] = [
    [0, 128, 0, 0],
    [-6, 125, 10, -1],
    [-9, 111, 29, -3],
    [-9, 93, 52, -8],
    [-8, 72, 72, -8],
    [-8, 52, 93, -9],
    [-3, 29, 111, -9],
    [-1, 10, 125, -6],
];
/// Largest side of a cell in HR samples.
const MAX_SIDE: usize = CELL * 4;

/// A rectangle of samples, inside its picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
}

/// Mean square difference, in 1/64 square grey level, of an area of the low picture from what `vector` (1/8
/// sample) points to in another (bilinear, edges repeated).
pub(crate) fn misfit(low: Samples<'_>, from: Samples<'_>, area: Area, vector: MotionVector) -> u32 {
    let Area { x, y, width, height } = area;
    let (fx, fy) = (i32::from(vector.x & 7), i32::from(vector.y & 7));
    let left = x as isize + isize::from(vector.x >> 3);
    let top = y as isize + isize::from(vector.y >> 3);
    let mut patch = [0u8; (CELL + 1) * (CELL + 1)];
    for (j, row) in patch.chunks_exact_mut(CELL + 1).take(height + 1).enumerate() {
        let line = from.row((top + j as isize).clamp(0, from.height as isize - 1) as usize);
        if left >= 0 && left as usize + CELL < line.len() {
            row.copy_from_slice(&line[left as usize..][..=CELL]);
        } else {
            for (i, v) in row.iter_mut().enumerate() {
                *v = line[(left + i as isize).clamp(0, line.len() as isize - 1) as usize];
            }
        }
    }
    let mut sum = 0u32;
    for j in 0..height {
        let (above, below) = (&patch[j * (CELL + 1)..], &patch[(j + 1) * (CELL + 1)..]);
        for (i, &now) in low.row(y + j)[x..x + width].iter().enumerate() {
            let across = |row: &[u8]| i32::from(row[i]) * (8 - fx) + i32::from(row[i + 1]) * fx;
            let was = across(above) * (8 - fy) + across(below) * fy;
            let difference = (was - 64 * i32::from(now)) >> 3;
            sum += (difference * difference) as u32;
        }
    }
    sum / (width * height).max(1) as u32
}

/// What is to be kept of detail with this energy (1/256 square grey level) where low pictures differ so
/// (1/64 square grey level), in 1/[`WHOLE`].
pub(crate) fn weight(energy: u32, misfit: u32) -> i32 {
    let signal = u64::from(energy);
    let noise = MISFIT * 4 * u64::from(misfit);
    (signal * WHOLE as u64 / (signal + noise).max(1)) as i32
}

/// Adds an area's detail, fetched by a vector in 1/8 *low* sample and weighed in 1/[`WHOLE`], to rows of
/// `stride` samples that begin with the area's first.
pub(crate) fn fetch_add(
    detail: &Detail,
    area: Area,
    vector: MotionVector,
    scale: usize,
    weight: i32,
    out: &mut [i16],
    stride: usize,
) {
    let Area { x, y, width, height } = area;
    let eighths = |v: i16| i32::from(v) * scale as i32;
    let (ex, ey) = (eighths(vector.x), eighths(vector.y));
    let (fx, fy) = ((ex & 7) as usize, (ey & 7) as usize);
    let left = x as isize + (ex >> 3) as isize;
    let top = y as isize + (ey >> 3) as isize;
    let weighed = |v: i32| ((v * weight + WHOLE / 2) >> 15) as i16;
    // One sample before and two behind, with the edges repeated.
    let (columns, rows) = (width + 3, height + 3);
    let mut patch = [0i16; (MAX_SIDE + 3) * (MAX_SIDE + 3)];
    for (j, row) in patch.chunks_exact_mut(columns).take(rows).enumerate() {
        let line = (top - 1 + j as isize).clamp(0, detail.height() as isize - 1) as usize;
        let line = detail.row(line);
        let first = left - 1;
        if first >= 0 && first as usize + columns <= line.len() {
            row.copy_from_slice(&line[first as usize..][..columns]);
        } else {
            for (i, v) in row.iter_mut().enumerate() {
                *v = line[(first + i as isize).clamp(0, line.len() as isize - 1) as usize];
            }
        }
    }
    if fx == 0 && fy == 0 {
        for (j, row) in out.chunks_mut(stride).take(height).enumerate() {
            let line = &patch[(j + 1) * columns + 1..][..width];
            for (o, &v) in row[..width].iter_mut().zip(line) {
                *o = o.saturating_add(weighed(i32::from(v)));
            }
        }
        return;
    }
    let mut across = [0i16; MAX_SIDE * (MAX_SIDE + 3)];
    for (row, line) in across.chunks_exact_mut(width).zip(patch.chunks_exact(columns)).take(rows) {
        filter(
            [&line[..width], &line[1..=width], &line[2..width + 2], &line[3..width + 3]],
            fx,
            row,
        );
    }
    let mut made = [0i16; MAX_SIDE];
    for (j, row) in out.chunks_mut(stride).take(height).enumerate() {
        let line = |k: usize| &across[(j + k) * width..][..width];
        filter([line(0), line(1), line(2), line(3)], fy, &mut made[..width]);
        for (o, &v) in row[..width].iter_mut().zip(&made) {
            *o = o.saturating_add(weighed(i32::from(v)));
        }
    }
}

/// Four rows, or four shifts of one, weighed by the taps of a fraction.
fn filter(lines: [&[i16]; 4], fraction: usize, out: &mut [i16]) {
    let n = out.len();
    let [a, b, c, d] = lines.map(|l| &l[..n]);
    let [ta, tb, tc, td] = TAPS[fraction];
    for (i, o) in out.iter_mut().enumerate() {
        let sum = i32::from(a[i]) * ta
            + i32::from(b[i]) * tb
            + i32::from(c[i]) * tc
            + i32::from(d[i]) * td;
        *o = ((sum + 64) >> 7).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
    }
}
