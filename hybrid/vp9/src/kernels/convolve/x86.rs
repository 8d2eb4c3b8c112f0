//! Motion compensation by AVX2: `maddubs` multiplies 32 samples by two taps at once.
//!
//! Rows: shuffles gather the two samples of each tap pair. Columns: a vector holds the pairs of
//! one row in its low lane and those of the next in its high one, so two rows of results are
//! summed together and each pair of rows is interleaved once.

#[allow(clippy::wildcard_imports)] // the names say where they come from
use core::arch::x86_64::*;

use super::simd::{From, Middle, To, copy};
use super::{AFTER, BEFORE, Block, Filter, Filters, MAX_SIDE, ROWS, Reference, SLACK, Steps, simd};
use crate::simd::vector::Vector;
use crate::simd::vector::x86::{X128, X256};

/// Predicts a block from a reference of the picture's own size.
///
/// # Safety
///
/// The machine has AVX2; block and reference are checked; where rows are filtered, [`SLACK`] bytes may be read beyond
/// the samples that count.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn predict(filters: Filters, reference: Reference<'_>, block: Block<'_>) {
    unsafe {
        match (block.average, filters.two_taps) {
            (false, false) => directions::<false, 8>(filters, reference, block),
            (true, false) => directions::<true, 8>(filters, reference, block),
            (false, true) => directions::<false, 2>(filters, reference, block),
            (true, true) => directions::<true, 2>(filters, reference, block),
        }
    }
}

/// Predicts a block from a reference of another size.
///
/// # Safety
///
/// The machine has AVX2; block and reference are checked.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn predict_scaled(
    filters: &[Filter; 16],
    steps: Steps,
    reference: Reference<'_>,
    block: Block<'_>,
) {
    unsafe { simd::predict_scaled::<X128>(filters, steps, reference, block) }
}

#[target_feature(enable = "avx2")]
unsafe fn directions<const AVERAGE: bool, const TAPS: usize>(
    filters: Filters,
    reference: Reference<'_>,
    block: Block<'_>,
) {
    let (width, height) = (block.width, block.height);
    let to = To { at: block.dst.as_mut_ptr(), stride: block.stride };
    let stride = reference.stride;
    unsafe {
        let from = From { at: reference.samples.as_ptr().add(reference.offset), stride };
        match (filters.across, filters.down) {
            (None, None) => whole::<AVERAGE>(from, to, width, height),
            (Some(across), None) => rows::<AVERAGE, TAPS>(across, from, to, width, height),
            (None, Some(down)) => {
                let from = From { at: from.at.sub(BEFORE * stride), stride };
                columns::<AVERAGE, TAPS>(down, from, to, width, height);
            }
            (Some(across), Some(down)) => {
                let mut middle = Middle::<{ MAX_SIDE * ROWS + SLACK }>::new();
                let between = middle.to(width);
                let from = From { at: from.at.sub(BEFORE * stride), stride };
                rows::<false, TAPS>(across, from, between, width, height + BEFORE + AFTER);
                columns::<AVERAGE, TAPS>(down, between.read(), to, width, height);
            }
        }
    }
}

/// Copies whole samples to the destination, or averages them in.
#[target_feature(enable = "avx2")]
unsafe fn whole<const AVERAGE: bool>(from: From, to: To, width: usize, height: usize) {
    unsafe {
        match width {
            4 => copy::<X128, AVERAGE>(from, to, 4, height),
            8 => copy::<X128, AVERAGE>(from, to, 8, height),
            16 => copy::<X128, AVERAGE>(from, to, 16, height),
            _ => {
                for y in 0..height {
                    let (p, q) = (from.at.add(y * from.stride), to.at.add(y * to.stride));
                    for x in (0..width).step_by(32) {
                        let v = X256::load(p.add(x));
                        let v = if AVERAGE { v.avg_u8(X256::load(q.add(x))) } else { v };
                        v.store(q.add(x));
                    }
                }
            }
        }
    }
}

/// The factors of a filter as four pairs of bytes, each in a vector of its own.
#[inline(always)]
unsafe fn factor_pairs(filter: &Filter) -> [__m256i; 4] {
    unsafe {
        let pair = |tap: usize| _mm256_set1_epi16((filter[tap + 1] << 8) | (filter[tap] & 0xff));
        [pair(0), pair(2), pair(4), pair(6)]
    }
}

/// The weighted sum of four sample pairs, rounded, still to be clipped to bytes.
#[inline(always)]
unsafe fn weigh<const TAPS: usize>(
    pairs: impl Fn(usize) -> __m256i,
    factors: &[__m256i; 4],
) -> __m256i {
    unsafe {
        let product = |i: usize| _mm256_maddubs_epi16(pairs(i), factors[i]);
        let sum = if TAPS == 2 {
            _mm256_add_epi16(product(1), product(2))
        } else {
            _mm256_adds_epi16(
                _mm256_add_epi16(product(0), product(2)),
                _mm256_add_epi16(product(1), product(3)),
            )
        };
        // (sum * 256 + 2^14) >> 15 is (sum + 64) >> 7 without overflow.
        _mm256_mulhrs_epi16(sum, _mm256_set1_epi16(256))
    }
}

/// Writes the low bytes of lane 0 to a row and those of lane 1 to the next one.
#[inline(always)]
unsafe fn put<const AVERAGE: bool, const WIDTH: usize>(v: __m256i, q: *mut u8, next: usize) {
    unsafe {
        let v = X256(v);
        match WIDTH {
            4 => {
                let v = if AVERAGE { v.avg_u8(X256::load_quarter_lanes(q, next)) } else { v };
                v.store_quarter_lanes(q, next);
            }
            8 => {
                let v = if AVERAGE { v.avg_u8(X256::load_half_lanes(q, next)) } else { v };
                v.store_half_lanes(q, next);
            }
            16 => {
                let v = if AVERAGE { v.avg_u8(X256::load_lanes(q, next)) } else { v };
                v.store_lanes(q, next);
            }
            _ => {
                let v = if AVERAGE { v.avg_u8(X256::load(q)) } else { v };
                v.store(q);
            }
        }
    }
}

/// Filters along rows.
#[inline(always)]
unsafe fn rows<const AVERAGE: bool, const TAPS: usize>(
    filter: &Filter,
    from: From,
    to: To,
    width: usize,
    height: usize,
) {
    unsafe {
        let from = From { at: from.at.sub(BEFORE), ..from };
        match width {
            4 => rows_of::<AVERAGE, TAPS, 4>(filter, from, to, 4, height),
            8 => rows_of::<AVERAGE, TAPS, 8>(filter, from, to, 8, height),
            16 => rows_of::<AVERAGE, TAPS, 16>(filter, from, to, 16, height),
            _ => rows_of::<AVERAGE, TAPS, 32>(filter, from, to, width, height),
        }
    }
}

/// Filters across as [`rows`] does, `WIDTH` columns at a time; `from` begins at the first tap.
#[target_feature(enable = "avx2")]
unsafe fn rows_of<const AVERAGE: bool, const TAPS: usize, const WIDTH: usize>(
    filter: &Filter,
    from: From,
    to: To,
    width: usize,
    height: usize,
) {
    unsafe {
        let factors = factor_pairs(filter);
        // Bytes 2j and 2j + 1 of the gathered pairs are samples j + 2i and j + 2i + 1.
        let pair = _mm256_broadcastsi128_si256(_mm_setr_epi8(
            0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8,
        ));
        let from_byte = |first: i8| _mm256_add_epi8(pair, _mm256_set1_epi8(first));
        let gather = [pair, from_byte(2), from_byte(4), from_byte(6)];
        let eight =
            |samples: __m256i| weigh::<TAPS>(|i| _mm256_shuffle_epi8(samples, gather[i]), &factors);
        if WIDTH == 32 {
            for y in 0..height {
                let (p, q) = (from.at.add(y * from.stride), to.at.add(y * to.stride));
                for x in (0..width).step_by(32) {
                    let low = eight(X256::load(p.add(x)).0);
                    let high = eight(X256::load(p.add(x + 8)).0);
                    put::<AVERAGE, 32>(_mm256_packus_epi16(low, high), q.add(x), 0);
                }
            }
            return;
        }
        for y in (0..height).step_by(2) {
            // An odd last row is done twice.
            let next = usize::from(y + 1 < height);
            let (p, q) = (from.at.add(y * from.stride), to.at.add(y * to.stride));
            let low = eight(X256::load_lanes(p, next * from.stride).0);
            let high = if WIDTH == 16 {
                eight(X256::load_lanes(p.add(8), next * from.stride).0)
            } else {
                low
            };
            put::<AVERAGE, WIDTH>(_mm256_packus_epi16(low, high), q, next * to.stride);
        }
    }
}

/// Filters along columns; `from` begins [`BEFORE`] rows above the block.
#[inline(always)]
unsafe fn columns<const AVERAGE: bool, const TAPS: usize>(
    filter: &Filter,
    from: From,
    to: To,
    width: usize,
    height: usize,
) {
    unsafe {
        match width {
            4 => columns_of::<AVERAGE, TAPS, 4>(filter, from, to, 4, height),
            8 => columns_of::<AVERAGE, TAPS, 8>(filter, from, to, 8, height),
            _ => columns_of::<AVERAGE, TAPS, 16>(filter, from, to, width, height),
        }
    }
}

/// Filters down as [`columns`] does, `WIDTH` columns at a time.
#[target_feature(enable = "avx2")]
unsafe fn columns_of<const AVERAGE: bool, const TAPS: usize, const WIDTH: usize>(
    filter: &Filter,
    from: From,
    to: To,
    width: usize,
    height: usize,
) {
    unsafe {
        let factors = factor_pairs(filter);
        for x in (0..width).step_by(WIDTH) {
            let p = from.at.add(x);
            // Rows `y` and `y + 1`, each interleaved with the one below it, low and high half.
            let pairs = |y: usize| {
                let p = p.add(y * from.stride);
                let (a, b) = match WIDTH {
                    4 => (
                        X256::load_quarter_lanes(p, from.stride),
                        X256::load_quarter_lanes(p.add(from.stride), from.stride),
                    ),
                    8 => (
                        X256::load_half_lanes(p, from.stride),
                        X256::load_half_lanes(p.add(from.stride), from.stride),
                    ),
                    _ => (
                        X256::load_lanes(p, from.stride),
                        X256::load_lanes(p.add(from.stride), from.stride),
                    ),
                };
                (a.zip_low8(b).0, a.zip_high8(b).0)
            };
            let zero = _mm256_setzero_si256();
            let mut window = [(zero, zero); 4];
            for i in 0..3 {
                window[i + 1] = pairs(2 * i);
            }
            for y in (0..height).step_by(2) {
                window = [window[1], window[2], window[3], pairs(y + 6)];
                let low = weigh::<TAPS>(|i| window[i].0, &factors);
                let high = if WIDTH == 16 { weigh::<TAPS>(|i| window[i].1, &factors) } else { low };
                let q = to.at.add(y * to.stride + x);
                put::<AVERAGE, WIDTH>(_mm256_packus_epi16(low, high), q, to.stride);
            }
        }
    }
}
