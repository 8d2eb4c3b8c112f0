//! Some rows of a picture, on which a frame network runs alone: a track shares a network among several instances of the
//! module, each in a worker of its own.
//!
//! The caller gives the rows that it wants and those that they depend on ([`rows_reach`]). What comes out for
//! the wanted ones is what a run over the whole picture makes.

use std::sync::Arc;

use windlass_network::{Changed, Network, Runner, Tier};
use windlass_vp9::simd::Isa;
use windlass_vp9::{Plane, PlaneSize, Samples};

use crate::{MAX_PIXELS, free};

/// Side of a cell in low samples: the network runs where a cell has changed since the last run.
const CELL: usize = 8;

/// A network and the rows that it ran on last, behind a handle.
pub struct Rows {
    network: Arc<Network>,
    runner: Runner,
    /// Size of the low rows; empty before the first.
    size: PlaneSize,
    /// Luma of the low rows, and behind it of the high ones: for the next run, and of the last one.
    given: Vec<u8>,
    last: Vec<u8>,
    /// The high rows that the last run made; `None` before the first run of this size.
    shown: Option<Plane>,
    changed: Vec<bool>,
}

/// A network of a tier (1 `xxs`, 2 `xs`) and a scale; null where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn rows_new(tier: u32, scale: u32) -> *mut Rows {
    let tier = Tier::ALL.get((tier as usize).wrapping_sub(1));
    let of_scale =
        |tier: &Tier| tier.networks().iter().find(|network| network.scale() == scale as usize);
    let Some(network) = tier.and_then(of_scale) else { return std::ptr::null_mut() };
    Box::into_raw(Box::new(Rows {
        network: network.clone(),
        runner: Runner::new(Isa::detect()),
        size: PlaneSize::new(0, 0),
        given: Vec::new(),
        last: Vec::new(),
        shown: None,
        changed: Vec::new(),
    }))
}

/// Frees what [`rows_new`] made.
///
/// # Safety
/// `handle` must come from [`rows_new`] and not have been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rows_free(handle: *mut Rows) {
    // SAFETY: as promised by the caller.
    unsafe { free(handle) };
}

/// Number of low rows above and below a row on which it depends; 0 without a handle.
///
/// # Safety
/// `handle` must come from [`rows_new`] or be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rows_reach(handle: *const Rows) -> u32 {
    // SAFETY: as promised by the caller.
    unsafe { handle.as_ref() }.map_or(0, |rows| rows.network.reach() as u32)
}

/// Where to put the luma of the low rows, and behind it that of the high rows, without gaps; null where the rows are
/// empty or too large.
///
/// # Safety
/// `handle` must come from [`rows_new`] or be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rows_place(handle: *mut Rows, width: u32, height: u32) -> *mut u8 {
    // SAFETY: as promised by the caller.
    let Some(rows) = (unsafe { handle.as_mut() }) else { return std::ptr::null_mut() };
    let pixels = u64::from(width) * u64::from(height);
    if pixels == 0 || pixels > MAX_PIXELS {
        return std::ptr::null_mut();
    }
    let size = PlaneSize::new(width as usize, height as usize);
    if size != rows.size {
        rows.size = size;
        let length = pixels as usize * (1 + rows.network.scale().pow(2));
        (rows.given, rows.last, rows.shown) = (vec![0; length], vec![0; length], None);
    }
    rows.given.as_mut_ptr()
}

/// Runs the network on the rows at [`rows_place`]. Returns the luma of the high rows, without gaps; null without rows.
/// They hold until the next run, or [`rows_place`] of another size.
///
/// # Safety
/// `handle` must come from [`rows_new`] or be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rows_run(handle: *mut Rows) -> *const u8 {
    // SAFETY: as promised by the caller.
    match unsafe { handle.as_mut() } {
        Some(rows) if !rows.given.is_empty() => rows.run().samples().as_ptr(),
        _ => std::ptr::null(),
    }
}

impl Rows {
    /// Runs the network where the rows differ from those of the last run.
    fn run(&mut self) -> &Plane {
        let (size, scale) = (self.size, self.network.scale());
        let (low, high) = planes(&self.given, size, scale);
        let changed = if self.shown.is_some() {
            let (last_low, last_high) = planes(&self.last, size, scale);
            let columns = size.width.div_ceil(CELL);
            self.changed.clear();
            self.changed.extend((0..columns * size.height.div_ceil(CELL)).map(|cell| {
                let (x, y) = (cell % columns * CELL, cell / columns * CELL);
                differs(low, last_low, x, y, CELL)
                    || differs(high, last_high, scale * x, scale * y, scale * CELL)
            }));
            Changed::Cells { changed: &self.changed, side: CELL }
        } else {
            Changed::All
        };
        let PlaneSize { width, height } = size.scaled(scale);
        let shown = self.shown.get_or_insert_with(|| Plane::filled(width, height, 0));
        self.runner.run(&self.network, low, high, changed, shown);
        std::mem::swap(&mut self.given, &mut self.last);
        shown
    }
}

/// Luma of the low rows and of the high ones.
fn planes(bytes: &[u8], low: PlaneSize, scale: usize) -> (Samples<'_>, Samples<'_>) {
    let of = |data, PlaneSize { width, height }| Samples { data, stride: width, width, height };
    let (first, rest) = bytes.split_at(low.width * low.height);
    (of(first, low), of(rest, low.scaled(scale)))
}

/// Whether two planes differ in a square, or what there is of it.
fn differs(a: Samples<'_>, b: Samples<'_>, x: usize, y: usize, side: usize) -> bool {
    let columns = x..(x + side).min(a.width);
    (y..(y + side).min(a.height)).any(|y| a.row(y)[columns.clone()] != b.row(y)[columns.clone()])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of noise that moves in the columns `moving`.
    fn luma(size: PlaneSize, frame: usize, moving: std::ops::Range<usize>) -> Vec<u8> {
        let sample = |i: usize| {
            let moves = moving.contains(&(i % size.width));
            let seed = if moves { i + 977 * frame } else { i };
            (seed.wrapping_mul(2_654_435_761) >> 13) as u8
        };
        (0..size.width * size.height).map(sample).collect()
    }

    /// High luma that the network makes of low and high rows.
    fn made(rows: *mut Rows, scale: usize, width: usize, low: &[u8], high: &[u8]) -> Vec<u8> {
        let height = low.len() / width;
        // SAFETY: the handle is live, and the place as long as both planes.
        unsafe {
            let place = rows_place(rows, width as u32, height as u32);
            place.copy_from_nonoverlapping(low.as_ptr(), low.len());
            place.add(low.len()).copy_from_nonoverlapping(high.as_ptr(), high.len());
            std::slice::from_raw_parts(rows_run(rows), scale * scale * low.len()).to_vec()
        }
    }

    #[test]
    fn two_halves_with_what_they_depend_on_make_the_whole() {
        for (tier, scale) in [(1, 2), (2, 2), (2, 3), (2, 4)] {
            let low = PlaneSize::new(37, 41);
            let [whole, upper, lower] = [(); 3].map(|()| rows_new(tier, scale as u32));
            // SAFETY: the handle is live.
            let reach = unsafe { rows_reach(whole) } as usize;
            for frame in 0..3 {
                // Low samples on the left, and high ones on the right.
                let l = luma(low, frame, 0..9);
                let h = luma(low.scaled(scale), frame, scale * 29..scale * 37);
                let fresh = rows_new(tier, scale as u32);
                let all = made(fresh, scale, low.width, &l, &h);
                // SAFETY: the handle is live, and freed once.
                unsafe { rows_free(fresh) };
                assert_eq!(made(whole, scale, low.width, &l, &h), all, "what ran before");
                let line = scale * scale * low.width;
                let part = |rows, from: usize, to: usize| {
                    let (l, h) = (&l[from * low.width..to * low.width], &h[from * line..to * line]);
                    made(rows, scale, low.width, l, h)
                };
                let (middle, end) = (20, low.height);
                let first = part(upper, 0, middle + reach);
                let second = part(lower, middle - reach, end);
                let joined = [&first[..middle * line], &second[reach * line..]].concat();
                assert_eq!(joined, all, "tier {tier}, scale {scale}, frame {frame}");
            }
            for rows in [whole, upper, lower] {
                // SAFETY: the handle is live, and freed once.
                unsafe { rows_free(rows) };
            }
        }
    }

    #[test]
    fn what_there_is_not_is_refused() {
        assert!(rows_new(0, 2).is_null() && rows_new(3, 2).is_null() && rows_new(1, 5).is_null());
        let rows = rows_new(1, 2);
        // SAFETY: null is allowed everywhere, and the live handle is freed once.
        unsafe {
            assert!(rows_run(rows).is_null() && rows_run(std::ptr::null_mut()).is_null());
            assert!(rows_place(rows, 0, 9).is_null() && rows_place(rows, 4096, 4096).is_null());
            assert!(rows_place(std::ptr::null_mut(), 8, 8).is_null());
            assert_eq!(rows_reach(std::ptr::null()), 0);
            rows_free(rows);
            rows_free(std::ptr::null_mut());
        }
    }
}
