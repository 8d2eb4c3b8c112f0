//! The forms that define the results.

use super::{CELL, CELLS, Differences, Gradients, Patches, Place, SIDE, Template};

/// The kernels of a patch in plain Rust, which define the results.
pub(in super::super) struct Scalar;

impl Patches for Scalar {
    #[inline(always)]
    unsafe fn cut(template: &mut Template, from: &[u8], stride: usize) -> Gradients {
        let mut sums = Gradients::default();
        for j in 0..SIDE {
            let rows = [0, 1, 2].map(|y| &from[(j + y) * stride..][..SIDE + 2]);
            for i in 0..SIDE {
                let at = |x: usize, y: usize| i16::from(rows[y][i + x]);
                let (x, y) = (at(2, 1) - at(0, 1), at(1, 2) - at(1, 0));
                let k = j * SIDE + i;
                template.samples[k] = at(1, 1) << 6;
                (template.across[k], template.down[k]) = (x, y);
                let (x, y) = (i32::from(x), i32::from(y));
                sums.xx += x * x;
                sums.xy += x * y;
                sums.yy += y * y;
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn compare(template: &Template, place: Place<'_>) -> Differences {
        let mut sums = Differences::default();
        each(template, place, |k, d| {
            sums.by_x += d * i32::from(template.across[k]);
            sums.by_y += d * i32::from(template.down[k]);
            sums.squares += d * d;
        });
        sums
    }

    #[inline(always)]
    unsafe fn errors(template: &Template, place: Place<'_>) -> [i32; CELLS * CELLS] {
        let mut sums = [0; CELLS * CELLS];
        each(template, place, |k, d| sums[k / SIDE / CELL * CELLS + k % SIDE / CELL] += d * d);
        sums
    }
}

/// Calls `give` with each sample's index and its difference from the patch, in 1/16 grey level.
#[inline(always)]
fn each(template: &Template, place: Place<'_>, mut give: impl FnMut(usize, i32)) {
    place.check();
    let mut above = across(place.from, place.fraction.0);
    for j in 0..SIDE {
        let below = across(&place.from[(j + 1) * place.stride..], place.fraction.0);
        for i in 0..SIDE {
            let k = j * SIDE + i;
            let d = difference(above[i], below[i], place.fraction.1, template.samples[k]);
            give(k, i32::from(d));
        }
        above = below;
    }
}

/// Eight samples, each between two of a row, in 1/64 grey level.
#[inline(always)]
fn across(row: &[u8], fraction: i16) -> [i16; SIDE] {
    let row = &row[..=SIDE];
    std::array::from_fn(|i| {
        let (left, right) = (i16::from(row[i]), i16::from(row[i + 1]));
        (left << 6) + (right - left) * fraction
    })
}

/// A sample between two rows, minus a sample of the patch, in 1/16 grey level.
#[inline(always)]
fn difference(above: i16, below: i16, fraction: i16, sample: i16) -> i16 {
    let more = (i32::from(below - above) * (i32::from(fraction) << 9) + 0x4000) >> 15;
    (above + more as i16 - sample) >> 2
}
