//! The filters: how they are kept, and what they add to a strip.
//!
//! One filter at one place gives `Σ weight × (neighbour − centre)`, rounded from 1/1024 and clamped to
//! ±64 grey levels. The sum of a filter's weights fits in 16 bits, so that SIMD forms can weigh the
//! centre by what is left to zero.

use windlass_vp9::by_isa;
use windlass_vp9::simd::Isa;

use super::classes::{Band, REACH};
use super::{CLASSES, FLAT, TAPS, Window};

/// Bits of a weight's fraction: a weight of 1 is 1 << 10, for taps in grey levels and detail in 1/16 grey level.
pub(super) const WEIGHT_BITS: u32 = 10;
/// Maximum magnitude of a prediction, in 1/16 grey level.
pub(super) const MAX_PREDICTION: i16 = 1024;
/// Maximum magnitude of a weight, and of the sum of a filter's weights, in 1/1024.
const MAX_WEIGHT: i32 = 32_000;

/// The filters of all classes.
#[derive(Debug, Clone)]
pub(super) struct Filters {
    scale: usize,
    /// Weights of the filters by class, then by high sample, row by row.
    weights: Vec<Window>,
    /// The weights in the order of SIMD, with zero filters for [`FLAT`]: by class, row of the window, pair of high
    /// rows, high column.
    packed: Vec<Pair>,
}

/// One row of a window, five weights and three zeros, for a high sample and for the one below it.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(32))]
pub(super) struct Pair(pub [[i16; 8]; 2]);

/// Side of a window, in low samples.
pub(super) const SIDE: usize = 2 * REACH + 1;

/// The built-in table of weights for a scale, if there is one.
pub(super) fn built_in(scale: usize) -> Option<&'static [u8]> {
    match scale {
        2 => Some(include_bytes!("prior-x2.bin")),
        3 => Some(include_bytes!("prior-x3.bin")),
        4 => Some(include_bytes!("prior-x4.bin")),
        _ => None,
    }
}

impl Filters {
    /// Filters that predict nothing.
    pub(super) fn none(scale: usize) -> Self {
        let packed = vec![Pair::default(); (CLASSES + 1) * SIDE * scale.div_ceil(2) * scale];
        Self { scale, weights: vec![[0; TAPS]; CLASSES * scale * scale], packed }
    }

    pub(super) fn scale(&self) -> usize {
        self.scale
    }

    pub(super) fn from_table(table: &[u8]) -> Option<Self> {
        let scale = (2..=4).find(|s| table.len() == CLASSES * s * s * TAPS * 2)?;
        let mut filters = Self::none(scale);
        for (i, bytes) in table.chunks_exact(2 * TAPS).enumerate() {
            let weight = |k: usize| i16::from_le_bytes([bytes[2 * k], bytes[2 * k + 1]]);
            let weights = std::array::from_fn(|k| f64::from(weight(k)));
            filters.set(i / (scale * scale), i % (scale * scale), &weights);
        }
        Some(filters)
    }

    pub(super) fn to_table(&self) -> Vec<u8> {
        self.weights.iter().flatten().flat_map(|w| w.to_le_bytes()).collect()
    }

    /// The weights of a class for one high sample, in fixed point.
    pub(super) fn get(&self, class: usize, phase: usize) -> &Window {
        &self.weights[class * self.scale * self.scale + phase]
    }

    /// Sets the weights of a class for one high sample: rounds them to fixed point, and brings them within their
    /// bounds.
    pub(super) fn set(&mut self, class: usize, phase: usize, weights: &[f64; TAPS]) {
        let max = f64::from(MAX_WEIGHT);
        let weights = weights.map(|w| w.round().clamp(-max, max) as i32);
        let sum: i32 = weights.iter().sum();
        // Truncated weights may miss the bound by their number: MAX_WEIGHT leaves room for it.
        let fit = |w: i32| if sum.abs() > MAX_WEIGHT { w * 1000 / (sum.abs() / 32 + 1) } else { w };
        let weights = weights.map(|w| fit(w) as i16);
        self.weights[class * self.scale * self.scale + phase] = weights;
        let centre = -weights.iter().map(|&w| i32::from(w)).sum::<i32>() as i16;
        let all = weights[..TAPS / 2].iter().chain([&centre]).chain(&weights[TAPS / 2..]);
        let (row, column) = (phase / self.scale, phase % self.scale);
        for (k, &w) in all.enumerate() {
            let at = (class * SIDE + k / SIDE) * self.scale.div_ceil(2) + row / 2;
            self.packed[at * self.scale + column].0[row % 2][k % SIDE] = w;
        }
    }

    /// The weights of all filters in the order of SIMD.
    pub(super) fn packed(&self) -> &[Pair] {
        &self.packed
    }

    /// Adds the prediction for a band to its high rows, with saturation.
    pub(super) fn add(&self, isa: Isa, band: &mut Band, strip: &mut [i16]) {
        use super::simd::add as simd;
        let size = self.scale * band.width * self.scale * band.rows;
        assert_eq!(strip.len(), size, "the strip has another size");
        let filters = self;
        // SAFETY: the band was classified, so that its lines have their slack and its classes are
        // no greater than `FLAT`; there are filters for all of them; the strip is checked.
        by_isa!(
            isa,
            filters.add_scalar(band, strip),
            simd(filters: &Filters, band: &mut Band, strip: &mut [i16])
        );
    }

    fn add_scalar(&self, band: &Band, strip: &mut [i16]) {
        let step = self.scale * self.scale * band.width;
        for (y, rows) in strip.chunks_exact_mut(step.max(1)).enumerate() {
            for x in band.spans().iter().flat_map(Clone::clone) {
                self.add_at(band, x, y, rows);
            }
        }
    }

    /// Adds the predictions of one low sample's high samples to its high rows.
    pub(super) fn add_at(&self, band: &Band, x: usize, y: usize, rows: &mut [i16]) {
        let (s, wide) = (self.scale, self.scale * band.width);
        let class = band.class(x, y);
        if class == FLAT {
            return;
        }
        let mut window = [0; 48];
        band.window(x, y, &mut window);
        for phase in 0..s * s {
            let high = &mut rows[phase / s * wide + s * x + phase % s];
            *high = high.saturating_add(weigh(&window[..TAPS], self.get(class.into(), phase)));
        }
    }
}

/// The prediction of one filter at one place, in 1/16 grey level.
fn weigh(window: &[i16], filter: &Window) -> i16 {
    let sum: i32 = window.iter().zip(filter).map(|(&w, &f)| i32::from(w) * i32::from(f)).sum();
    ((sum + (1 << (WEIGHT_BITS - 1))) >> WEIGHT_BITS)
        .clamp(-i32::from(MAX_PREDICTION), i32::from(MAX_PREDICTION)) as i16
}
