//! The scalar form of motion compensation, which defines its results.

use super::{AFTER, BEFORE, Block, Filter, Filters, MAX_SIDE, ROWS, Reference, SCALED_ROWS, Steps};

/// The result of a filter at `samples[at]`, whose neighbours are `stride` apart.
fn tap(samples: &[u8], at: usize, stride: usize, filter: &Filter) -> u8 {
    let first = at - BEFORE * stride;
    let sum: i32 =
        (0..8).map(|k| i32::from(samples[first + k * stride]) * i32::from(filter[k])).sum();
    ((sum + 64) >> 7).clamp(0, 255) as u8
}

fn put(block: &mut Block<'_>, x: usize, y: usize, value: u8) {
    let to = &mut block.dst[y * block.stride + x];
    *to = if block.average { (u16::from(*to) + u16::from(value)).div_ceil(2) as u8 } else { value };
}

pub(super) fn predict(filters: Filters, reference: Reference<'_>, mut block: Block<'_>) {
    let (before, after) = if filters.down.is_some() { (BEFORE, AFTER) } else { (0, 0) };
    let (width, rows) = (block.width, block.height + before + after);
    let mut middle = [0; MAX_SIDE * ROWS];
    let first = reference.offset - before * reference.stride;
    for (y, row) in middle.chunks_exact_mut(width).take(rows).enumerate() {
        let start = first + y * reference.stride;
        for (x, to) in row.iter_mut().enumerate() {
            *to = match filters.across {
                Some(filter) => tap(reference.samples, start + x, 1, filter),
                None => reference.samples[start + x],
            };
        }
    }
    for y in 0..block.height {
        for x in 0..width {
            let at = (y + before) * width + x;
            let value = filters.down.map_or(middle[at], |filter| tap(&middle, at, width, filter));
            put(&mut block, x, y, value);
        }
    }
}

pub(super) fn predict_scaled(
    filters: &[Filter; 16],
    steps: Steps,
    reference: Reference<'_>,
    mut block: Block<'_>,
) {
    let width = block.width;
    let rows = steps.rows(block.height) + BEFORE + AFTER;
    #[allow(clippy::large_stack_arrays)] // 20 KiB
    let mut middle = [0; MAX_SIDE * SCALED_ROWS];
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
