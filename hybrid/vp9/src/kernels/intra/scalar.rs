//! The scalar form of intra prediction, which defines its results.

use super::{Edges, IntraMode};

fn mean2(a: u8, b: u8) -> u8 {
    (u16::from(a) + u16::from(b)).div_ceil(2) as u8
}

fn mean3(a: u8, b: u8, c: u8) -> u8 {
    ((u16::from(a) + 2 * u16::from(b) + u16::from(c) + 2) >> 2) as u8
}

/// The mean of the available edges; mid-grey where there are none.
pub(super) fn dc(have_left: bool, have_above: bool, above: &[u8], left: &[u8]) -> u8 {
    let sum = |edge: &[u8]| edge.iter().map(|&v| u32::from(v)).sum::<u32>();
    let side = left.len() as u32;
    let (total, count) = match (have_left, have_above) {
        (true, true) => (sum(left) + sum(above), 2 * side),
        (true, false) => (sum(left), side),
        (false, true) => (sum(above), side),
        (false, false) => (128, 1),
    };
    ((total + count / 2) / count) as u8
}

pub(super) fn predict(
    mode: IntraMode,
    side: usize,
    edges: Edges<'_>,
    dst: &mut [u8],
    stride: usize,
) {
    let Edges { above, left, have_left, have_above } = edges;
    let (corner, above, left) = (above[0], &above[1..=2 * side], &left[..side]);
    // One line round the corner: the left column upwards, the corner, the row above. The sample
    // `d` steps along it from the corner, upwards and to the right.
    let round = |d: isize| match d {
        0 => corner,
        1.. => above[d as usize - 1],
        _ => left[(-d) as usize - 1],
    };
    let round3 = |d: isize| mean3(round(d - 1), round(d), round(d + 1));
    let round2 = |d: isize| mean2(round(d - 1), round(d));
    let left_at = |i: usize| left[i.min(side - 1)];
    let level = dc(have_left, have_above, &above[..side], left);
    for y in 0..side {
        for x in 0..side {
            let (i, j) = (y as isize, x as isize);
            dst[y * stride + x] = match mode {
                IntraMode::Dc => level,
                IntraMode::V => above[x],
                IntraMode::H => left[y],
                IntraMode::Tm => (i16::from(left[y]) + i16::from(above[x]) - i16::from(corner))
                    .clamp(0, 255) as u8,
                IntraMode::D45 if x + y + 2 < 2 * side => {
                    mean3(above[x + y], above[x + y + 1], above[x + y + 2])
                }
                IntraMode::D45 => above[2 * side - 1],
                IntraMode::D63 => {
                    let a = &above[x + y / 2..];
                    if y % 2 == 0 { mean2(a[0], a[1]) } else { mean3(a[0], a[1], a[2]) }
                }
                IntraMode::D207 => {
                    let n = y + x / 2;
                    if x % 2 == 0 {
                        mean2(left_at(n), left_at(n + 1))
                    } else {
                        mean3(left_at(n), left_at(n + 1), left_at(n + 2))
                    }
                }
                IntraMode::D135 => round3(j - i),
                // Two rows down are one column to the right, until the left column is reached.
                IntraMode::D117 if i / 2 <= j => {
                    let d = j - i / 2;
                    if y % 2 == 0 { round2(d + 1) } else { round3(d) }
                }
                IntraMode::D117 => round3(2 * j + 1 - i),
                // Two columns to the right are one row up, until the row above is reached.
                IntraMode::D153 if j / 2 <= i => {
                    let d = i - j / 2;
                    if x % 2 == 0 { round2(-d) } else { round3(-d) }
                }
                IntraMode::D153 => round3(j - 1 - 2 * i),
            };
        }
    }
}
