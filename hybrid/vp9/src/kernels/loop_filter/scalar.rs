//! The scalar form of the loop filter, which defines the result and follows the specification's text.

use super::{Area, Direction, EdgeMasks, Levels, Limit, Limits};

/// How far a filter may reach.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Size {
    Narrow,
    Medium,
    Wide,
}

pub(super) fn filter_edges(
    direction: Direction,
    masks: &EdgeMasks,
    levels: &Levels,
    limits: &Limits,
    area: &mut Area,
) {
    let (across, along) = match direction {
        Direction::Vertical => (1, area.stride),
        Direction::Horizontal => (area.stride, 1),
    };
    for (line, &levels) in levels.iter().enumerate().take(area.units) {
        for place in 0..area.units {
            let bit = 1 << (8 * line + place);
            let limit = limits.get((levels >> (8 * place)) as u8);
            let at = area.offset + 8 * (line * across + place * along);
            let size = if masks.wide & bit != 0 {
                Some(Size::Wide)
            } else if masks.medium & bit != 0 {
                Some(Size::Medium)
            } else if masks.narrow & bit != 0 {
                Some(Size::Narrow)
            } else {
                None
            };
            for i in 0..8 {
                if let Some(size) = size {
                    filter_sample(area.samples, at + i * along, across, size, limit);
                }
                if masks.inner & bit != 0 {
                    let at = at + 4 * across + i * along;
                    filter_sample(area.samples, at, across, Size::Narrow, limit);
                }
            }
        }
    }
}

/// Filters one sample of an edge (specification 8.8.5). `at` is the first sample after the edge, `step` leads across
/// it.
pub(super) fn filter_sample(samples: &mut [u8], at: usize, step: usize, size: Size, limit: Limit) {
    // Samples before the edge have negative numbers.
    let x = |i: isize| i32::from(samples[at.wrapping_add_signed(i * step as isize)]);
    let differ = |a: isize, b: isize, by: u8| (x(a) - x(b)).abs() > i32::from(by);
    let step_of = |by| {
        differ(-4, -3, by)
            || differ(-3, -2, by)
            || differ(-2, -1, by)
            || differ(1, 0, by)
            || differ(2, 1, by)
            || differ(3, 2, by)
    };
    let over_edge = (x(-1) - x(0)).abs() * 2 + (x(-2) - x(1)).abs() / 2;
    if step_of(limit.step) || over_edge > i32::from(limit.blimit) {
        return;
    }
    let flat = |from: isize, to| (from..=to).all(|i| !differ(i, 0, 1) && !differ(-1 - i, -1, 1));
    if size == Size::Narrow || !flat(1, 3) {
        let hev = differ(-2, -1, limit.thresh) || differ(1, 0, limit.thresh);
        narrow(samples, at, step, hev);
    } else if size == Size::Wide && flat(4, 7) {
        average::<8>(samples, at, step);
    } else {
        average::<4>(samples, at, step);
    }
}

/// The narrow filter (specification 8.8.5.2).
fn narrow(samples: &mut [u8], at: usize, step: usize, hev: bool) {
    let clamp = |v: i32| v.clamp(-128, 127);
    let [p1, p0, q0, q1] = [at - 2 * step, at - step, at, at + step];
    let signed = |i: usize| i32::from(samples[i]) - 128;
    let [vp1, vp0, vq0, vq1] = [p1, p0, q0, q1].map(signed);
    let base = if hev { clamp(vp1 - vq1) } else { 0 };
    let filter = clamp(base + 3 * (vq0 - vp0));
    let filter1 = clamp(filter + 4) >> 3;
    let filter2 = clamp(filter + 3) >> 3;
    let mut put = |i: usize, v: i32| samples[i] = (clamp(v) + 128) as u8;
    put(q0, vq0 - filter1);
    put(p0, vp0 + filter2);
    if !hev {
        let outer = (filter1 + 1) >> 1;
        put(q1, vq1 - outer);
        put(p1, vp1 + outer);
    }
}

/// The wide filters (specification 8.8.5.3) with `N` samples on either side: the outermost stand for all beyond.
fn average<const N: isize>(samples: &mut [u8], at: usize, step: usize) {
    let index = |i: isize| at.wrapping_add_signed(i.clamp(-N, N - 1) * step as isize);
    let mut out = [0u8; 16];
    for i in 1 - N..N - 1 {
        let around: i32 = (1 - N..N).map(|j| i32::from(samples[index(i + j)])).sum();
        let sum = around + i32::from(samples[index(i)]);
        out[(i + N) as usize] = ((sum + N as i32) / (2 * N as i32)) as u8;
    }
    for i in 1 - N..N - 1 {
        samples[index(i)] = out[(i + N) as usize];
    }
}
