//! The filters: how they are kept, and what they add to a strip.
//!
//! One filter at one place gives `Σ weight × (neighbour − centre)`, rounded from 1/1024 and clamped to
//! ±64 grey levels. The sum of a filter's weights fits in 16 bits, so that SIMD forms can weigh the
//! centre by what is left to zero.

use super::classes::Band;
use super::{CLASSES, FLAT, TAPS, Window};
use crate::simd::Isa;

/// A weight of one: 10 bits for the taps' weights, detail being in 1/16 grey level.
pub(super) const WEIGHT_BITS: u32 = 10;
/// The greatest prediction, in 1/16 grey level.
const MOST: i32 = 1024;
/// Greatest magnitude of a weight, and of the sum of a filter's weights.
const MOST_WEIGHT: i32 = 32_000;

/// The filters of all classes.
#[derive(Debug, Clone)]
pub(super) struct Filters {
    scale: usize,
    /// By class, then high sample, row by row.
    weights: Vec<Window>,
}

/// The built-in table for a scale.
pub(super) fn built_in(_scale: usize) -> Option<&'static [u8]> {
    None
}

impl Filters {
    /// Filters that predict nothing.
    pub fn none(scale: usize) -> Self {
        Self { scale, weights: vec![[0; TAPS]; CLASSES * scale * scale] }
    }

    pub fn scale(&self) -> usize {
        self.scale
    }

    pub fn from_table(table: &[u8]) -> Option<Self> {
        let scale = (2..=4).find(|s| table.len() == CLASSES * s * s * TAPS * 2)?;
        let mut filters = Self::none(scale);
        for (i, bytes) in table.chunks_exact(2 * TAPS).enumerate() {
            let weight = |k: usize| i16::from_le_bytes([bytes[2 * k], bytes[2 * k + 1]]);
            let weights = std::array::from_fn(|k| f64::from(weight(k)));
            filters.set(i / (scale * scale), i % (scale * scale), &weights);
        }
        Some(filters)
    }

    pub fn to_table(&self) -> Vec<u8> {
        self.weights.iter().flatten().flat_map(|w| w.to_le_bytes()).collect()
    }

    /// The weights of a class for one high sample, in fixed point.
    pub fn get(&self, class: usize, phase: usize) -> &Window {
        &self.weights[class * self.scale * self.scale + phase]
    }

    /// Rounds weights in fixed point, and brings them within their bounds.
    pub fn set(&mut self, class: usize, phase: usize, weights: &[f64; TAPS]) {
        let most = f64::from(MOST_WEIGHT);
        let weights = weights.map(|w| w.round().clamp(-most, most) as i32);
        let sum: i32 = weights.iter().sum();
        // Truncated weights may miss the bound by their number: MOST_WEIGHT leaves room for it.
        let fit =
            |w: i32| if sum.abs() > MOST_WEIGHT { w * 1000 / (sum.abs() / 32 + 1) } else { w };
        self.weights[class * self.scale * self.scale + phase] = weights.map(|w| fit(w) as i16);
    }

    /// Adds the prediction for a band to its high rows, with saturation.
    pub fn add(&self, isa: Isa, band: &mut Band, strip: &mut [i16]) {
        let _ = isa;
        let s = self.scale;
        let wide = s * band.width;
        assert_eq!(strip.len(), wide * s * band.rows, "the strip has another size");
        for y in 0..band.rows {
            let rows = &mut strip[s * wide * y..][..s * wide];
            for span in band.spans() {
                for x in span.clone() {
                    self.add_at(band, x, y, rows);
                }
            }
        }
    }

    /// Adds the high samples of one low sample to its high rows.
    fn add_at(&self, band: &Band, x: usize, y: usize, rows: &mut [i16]) {
        let (s, wide) = (self.scale, self.scale * band.width);
        let class = band.class(x, y);
        if class == FLAT {
            return;
        }
        let mut window = [0; TAPS];
        band.window(x, y, &mut window);
        for phase in 0..s * s {
            let high = &mut rows[phase / s * wide + s * x + phase % s];
            *high = high.saturating_add(weigh(&window, self.get(class.into(), phase)));
        }
    }
}

/// One filter at one place, in 1/16 grey level.
fn weigh(window: &Window, filter: &Window) -> i16 {
    let sum: i32 = window.iter().zip(filter).map(|(&w, &f)| i32::from(w) * i32::from(f)).sum();
    ((sum + (1 << (WEIGHT_BITS - 1))) >> WEIGHT_BITS).clamp(-MOST, MOST) as i16
}
