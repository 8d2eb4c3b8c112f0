//! The scalar form of motion compensation, which defines its results.

use super::{AFTER, BEFORE, Block, MAX_SIDE, MAX_STEP, Reference, Steps};

/// Rows that a block's vertical filters read at most.
pub(super) const MAX_ROWS: usize =
    ((15 + (MAX_SIDE - 1) * MAX_STEP as usize) >> 4) + 1 + BEFORE + AFTER;

/// The filter at `samples[at]`, its neighbours `stride` apart.
fn tap(samples: &[u8], at: usize, stride: usize, filter: &[i16; 8]) -> u8 {
    let first = at - BEFORE * stride;
    let sum: i32 =
        (0..8).map(|k| i32::from(samples[first + k * stride]) * i32::from(filter[k])).sum();
    ((sum + 64) >> 7).clamp(0, 255) as u8
}

fn put(block: &mut Block<'_>, x: usize, y: usize, value: u8) {
    let to = &mut block.dst[y * block.stride + x];
    *to = if block.average { (u16::from(*to) + u16::from(value)).div_ceil(2) as u8 } else { value };
}

pub(super) fn predict(
    across: &[i16; 8],
    down: &[i16; 8],
    filter_x: bool,
    filter_y: bool,
    reference: Reference<'_>,
    mut block: Block<'_>,
) {
    let (before, after) = if filter_y { (BEFORE, AFTER) } else { (0, 0) };
    let (width, rows) = (block.width, block.height + before + after);
    let mut middle = [0; MAX_SIDE * (MAX_SIDE + BEFORE + AFTER)];
    let first = reference.offset - before * reference.stride;
    for (y, row) in middle.chunks_exact_mut(width).take(rows).enumerate() {
        let start = first + y * reference.stride;
        for (x, to) in row.iter_mut().enumerate() {
            *to = if filter_x {
                tap(reference.samples, start + x, 1, across)
            } else {
                reference.samples[start + x]
            };
        }
    }
    for y in 0..block.height {
        for x in 0..width {
            let at = (y + before) * width + x;
            let value = if filter_y { tap(&middle, at, width, down) } else { middle[at] };
            put(&mut block, x, y, value);
        }
    }
}

pub(super) fn predict_scaled(
    filters: &[[i16; 8]; 16],
    steps: Steps,
    reference: Reference<'_>,
    mut block: Block<'_>,
) {
    let width = block.width;
    let rows = steps.rows(block.height) + BEFORE + AFTER;
    let mut middle = [0; MAX_SIDE * MAX_ROWS];
    let first = reference.offset - BEFORE * reference.stride;
    for (y, row) in middle.chunks_exact_mut(width).take(rows).enumerate() {
        for (x, to) in row.iter_mut().enumerate() {
            let position = steps.fx + x * steps.step_x;
            let at = first + y * reference.stride + (position >> 4);
            *to = tap(reference.samples, at, 1, &filters[position & 15]);
        }
    }
    for y in 0..block.height {
        let position = steps.fy + y * steps.step_y;
        for x in 0..width {
            let at = (BEFORE + (position >> 4)) * width + x;
            let value = tap(&middle, at, width, &filters[position & 15]);
            put(&mut block, x, y, value);
        }
    }
}
