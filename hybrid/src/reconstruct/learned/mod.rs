//! What detail follows from the low picture itself, learned from the anchors.
//!
//! Source: the classed linear filters of RAISR (Romano, Isidoro, Milanfar 2016), here fitted by the
//! decoder, while it runs, to the anchors that it gets: they are examples of what the server's
//! network (or the original) adds to a low picture. Every low sample belongs to a class by the
//! strength, coherence and direction of its gradient; each class has one filter of 24 neighbours for
//! each of the four high samples. The filters cost no bits, and what they predict is never late: only
//! what is left of an anchor beyond it travels by motion vectors.
//!
//! Bit for bit the same everywhere: sums are integers, and the solver uses only `+ − × ÷` on `f64`
//! in a fixed order.

use crate::detail::Detail;
use crate::picture::Plane;

/// Neighbours that a filter weighs: a 5×5 window without its centre.
const TAPS: usize = 24;
/// Reach of the window.
const REACH: usize = 2;
/// High samples of a low one.
const PHASES: usize = 4;
/// Directions, of half a turn.
const DIRECTIONS: usize = 8;
/// Gradient energies that divide weak from medium from strong; below the first there is no filter.
const STRENGTHS: [i32; 3] = [288, 2592, 18_432];
/// Classes with a filter: strength, coherence, direction.
const CLASSES: usize = STRENGTHS.len() * 2 * DIRECTIONS;
/// A weight of one: 10 bits for the taps' weights, detail being in 1/16 grey level.
const WEIGHT_BITS: u32 = 10;
/// Most examples of a class that one anchor gives: bounds the sums to 31 bits.
const MOST_EXAMPLES: u32 = 4000;
/// Energy added to every tap's own, so that a class with few examples stays near zero.
const DAMPING: f64 = 200.0;
/// How much of the older examples stays at each anchor.
const MEMORY: f64 = 0.75;
/// From a weight to its fixed point, an eighth larger: the quantiser of anchors shrinks their detail.
const GAIN: f64 = 9.0 / 8.0 * (1 << WEIGHT_BITS) as f64;
/// No class for a flat sample.
const FLAT: u8 = u8::MAX;

type Window = [i16; TAPS];

/// The filters of one stream and the sums they come from; nothing at first.
#[derive(Default)]
pub(crate) struct Learned {
    /// For each class the taps' products with each other, and with the detail of each phase.
    sums: Vec<Sums>,
    filters: Option<Vec<[Window; PHASES]>>,
}

#[derive(Clone)]
struct Sums {
    taps: [[f64; TAPS]; TAPS],
    detail: [[f64; TAPS]; PHASES],
}

/// The examples of one anchor, in one class.
#[derive(Clone)]
struct Examples {
    count: u32,
    taps: [[i32; TAPS]; TAPS],
    detail: [[i32; TAPS]; PHASES],
}

impl Learned {
    /// Whether there are filters.
    pub fn is_empty(&self) -> bool {
        self.filters.is_none()
    }

    /// Learns from the detail of an anchor over its low picture; `detail` has twice its size.
    pub fn learn(&mut self, low: &Plane, detail: &Detail) {
        let (width, height) = (low.width(), low.height());
        let padded = Padded::new(low);
        let classes = classify(&padded, width, height);
        let none = Examples { count: 0, taps: [[0; TAPS]; TAPS], detail: [[0; TAPS]; PHASES] };
        let mut examples = vec![none; CLASSES];
        // A large picture has more examples than are needed: every n-th row will do.
        let step = (width * height).div_ceil(60_000).max(1);
        for y in (0..height).step_by(step) {
            for x in 0..width {
                let class = classes[y * width + x];
                if class == FLAT {
                    continue;
                }
                let e = &mut examples[usize::from(class)];
                if e.count < MOST_EXAMPLES {
                    e.add(&padded.window(x, y), detail, x, y);
                }
            }
        }
        if self.sums.is_empty() {
            self.sums =
                vec![Sums { taps: [[0.0; TAPS]; TAPS], detail: [[0.0; TAPS]; PHASES] }; CLASSES];
        }
        for (sums, examples) in self.sums.iter_mut().zip(&examples) {
            sums.merge(examples);
        }
        self.filters = Some(self.sums.iter().map(Sums::solve).collect());
    }

    /// The detail that the low picture lets expect; `None` while nothing is learned.
    pub fn predict(&self, low: &Plane) -> Option<Detail> {
        let filters = self.filters.as_ref()?;
        let (width, height) = (low.width(), low.height());
        let padded = Padded::new(low);
        let classes = classify(&padded, width, height);
        let mut detail = Detail::zero(2 * width, 2 * height);
        let (mut upper, mut lower) = (vec![0; 2 * width], vec![0; 2 * width]);
        for y in 0..height {
            upper.fill(0);
            lower.fill(0);
            for (x, &class) in classes[y * width..][..width].iter().enumerate() {
                if class == FLAT {
                    continue;
                }
                let window = padded.window(x, y);
                let filters = &filters[usize::from(class)];
                let [a, b, c, d] = [0, 1, 2, 3].map(|p| weigh(&window, &filters[p]));
                upper[2 * x..2 * x + 2].copy_from_slice(&[a, b]);
                lower[2 * x..2 * x + 2].copy_from_slice(&[c, d]);
            }
            detail.row_mut(2 * y).copy_from_slice(&upper);
            detail.row_mut(2 * y + 1).copy_from_slice(&lower);
        }
        Some(detail)
    }
}

/// One filter at one place, in 1/16 grey level.
fn weigh(window: &Window, filter: &Window) -> i16 {
    let sum: i32 = window.iter().zip(filter).map(|(&w, &f)| i32::from(w) * i32::from(f)).sum();
    ((sum + (1 << (WEIGHT_BITS - 1))) >> WEIGHT_BITS).clamp(-1024, 1024) as i16
}

impl Examples {
    fn add(&mut self, window: &Window, detail: &Detail, x: usize, y: usize) {
        self.count += 1;
        for (sums, &a) in self.taps.iter_mut().zip(window) {
            for (sum, &b) in sums.iter_mut().zip(window) {
                *sum += i32::from(a) * i32::from(b);
            }
        }
        for (phase, sums) in self.detail.iter_mut().enumerate() {
            let d = i32::from(detail.row(2 * y + phase / 2)[2 * x + phase % 2]).clamp(-2047, 2047);
            for (sum, &w) in sums.iter_mut().zip(window) {
                *sum += d * i32::from(w);
            }
        }
    }
}

impl Sums {
    fn merge(&mut self, new: &Examples) {
        for (sums, new) in self.taps.iter_mut().zip(&new.taps) {
            for (sum, &n) in sums.iter_mut().zip(new) {
                *sum = *sum * MEMORY + f64::from(n);
            }
        }
        for (sums, new) in self.detail.iter_mut().zip(&new.detail) {
            for (sum, &n) in sums.iter_mut().zip(new) {
                *sum = *sum * MEMORY + f64::from(n);
            }
        }
    }

    /// Least squares by LDLᵀ.
    fn solve(&self) -> [Window; PHASES] {
        let mut l = self.taps;
        let mut pivots = [0.0; TAPS];
        for i in 0..TAPS {
            l[i][i] += DAMPING;
            for j in 0..=i {
                let mut sum = l[i][j];
                for k in 0..j {
                    sum -= l[i][k] * l[j][k] * pivots[k];
                }
                if i == j {
                    pivots[i] = sum.max(1.0);
                } else {
                    l[i][j] = sum / pivots[j];
                }
            }
        }
        self.detail.map(|mut v| {
            for i in 0..TAPS {
                for k in 0..i {
                    v[i] -= l[i][k] * v[k];
                }
            }
            for (v, pivot) in v.iter_mut().zip(pivots) {
                *v /= pivot;
            }
            for i in (0..TAPS).rev() {
                for k in i + 1..TAPS {
                    v[i] -= l[k][i] * v[k];
                }
            }
            v.map(|v| (v * GAIN).round().clamp(-32_000.0, 32_000.0) as i16)
        })
    }
}

/// A low plane with its edges repeated.
struct Padded {
    stride: usize,
    data: Vec<i16>,
}

impl Padded {
    fn new(low: &Plane) -> Self {
        let (width, height) = (low.width(), low.height());
        let stride = width + 2 * REACH;
        let mut data = Vec::with_capacity(stride * (height + 2 * REACH));
        for y in 0..height + 2 * REACH {
            let row = low.row(y.saturating_sub(REACH).min(height - 1));
            data.extend([i16::from(row[0]); REACH]);
            data.extend(row.iter().map(|&v| i16::from(v)));
            data.extend([i16::from(row[width - 1]); REACH]);
        }
        Self { stride, data }
    }

    /// The neighbours of a sample less itself, row by row.
    fn window(&self, x: usize, y: usize) -> Window {
        let mut all = [0; TAPS + 1];
        for (k, part) in all.chunks_exact_mut(5).enumerate() {
            part.copy_from_slice(&self.data[(y + k) * self.stride + x..][..5]);
        }
        let centre = all[TAPS / 2];
        std::array::from_fn(|k| all[k + usize::from(k >= TAPS / 2)] - centre)
    }
}

/// The class of every low sample, by the structure tensor of the 3×3 samples around it.
fn classify(padded: &Padded, width: usize, height: usize) -> Vec<u8> {
    let stride = padded.stride;
    // Products of gradients around the samples and one beyond every edge; then summed over three columns, for the
    // last three rows. Row y here is row y + 1 of the padded plane.
    let mut products = vec![[0i32; 3]; width + 2];
    let mut sums: [Vec<[i32; 3]>; 3] = std::array::from_fn(|_| vec![[0; 3]; width]);
    let mut classes = vec![FLAT; width * height];
    for y in 0..height + 2 {
        let at = |dx: usize, dy: usize| &padded.data[(y + dy) * stride + dx..];
        let (above, below) = (at(1, 0), at(1, 2));
        let (left, right) = (at(0, 1), at(2, 1));
        for (x, p) in products.iter_mut().enumerate() {
            let gx = i32::from(right[x]) - i32::from(left[x]);
            let gy = i32::from(below[x]) - i32::from(above[x]);
            *p = [gx * gx, gy * gy, gx * gy];
        }
        let row = &mut sums[y % 3];
        for (x, s) in row.iter_mut().enumerate() {
            let [a, b, c] = [products[x], products[x + 1], products[x + 2]];
            *s = [a[0] + b[0] + c[0], a[1] + b[1] + c[1], a[2] + b[2] + c[2]];
        }
        let Some(out) = y.checked_sub(2) else { continue };
        for (x, class) in classes[out * width..][..width].iter_mut().enumerate() {
            let [xx, yy, xy] = [0, 1, 2].map(|k| sums[0][x][k] + sums[1][x][k] + sums[2][x][k]);
            *class = class_of(xx, yy, xy);
        }
    }
    classes
}

/// The class of a structure tensor: strength, coherence, direction.
fn class_of(xx: i32, yy: i32, xy: i32) -> u8 {
    let (a, b) = (xx - yy, 2 * xy);
    let (long, short) = (a.abs().max(b.abs()), a.abs().min(b.abs()));
    // The length of (a, b), within 7 %.
    let length = long + short * 3 / 8;
    let energy = xx + yy;
    let Some(strength) = STRENGTHS.iter().rposition(|&s| energy + length >= s) else {
        return FLAT;
    };
    let coherent = usize::from(2 * length > energy);
    let direction =
        4 * usize::from(a < 0) + 2 * usize::from(b < 0) + usize::from(b.abs() > a.abs());
    ((strength * 2 + coherent) * DIRECTIONS + direction) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resample::box_half;

    /// Gratings in all directions, and detail that depends on them: a high-pass of the plane.
    fn example(width: usize, height: usize, phase: f64) -> (Plane, Detail) {
        let high = (0..4 * width * height).map(|i| {
            let (x, y) = ((i % (2 * width)) as f64, (i / (2 * width)) as f64);
            (128.0 + 60.0 * ((x * x + y * y) * 0.002 + phase).sin()) as u8
        });
        let high = Plane::from_samples(2 * width, 2 * height, high.collect()).expect("the count");
        let low = box_half(&high);
        let mut detail = Detail::zero(2 * width, 2 * height);
        for y in 1..height - 1 {
            for x in 1..width - 1 {
                let v = |x: usize, y: usize| i16::from(low.row(y)[x]);
                let pass = 4 * v(x, y) - v(x - 1, y) - v(x + 1, y) - v(x, y - 1) - v(x, y + 1);
                for k in 0..4 {
                    detail.row_mut(2 * y + k / 2)[2 * x + k % 2] = 2 * pass;
                }
            }
        }
        (low, detail)
    }

    fn energy(detail: &Detail) -> i64 {
        detail.samples().iter().map(|&d| i64::from(d) * i64::from(d)).sum()
    }

    #[test]
    fn nothing_is_predicted_before_anything_is_learned() {
        assert_eq!(Learned::default().predict(&Plane::filled(9, 7, 3)), None);
    }

    #[test]
    fn what_follows_from_the_low_picture_is_predicted_in_pictures_not_seen_before() {
        let mut learned = Learned::default();
        let (low, detail) = example(160, 90, 0.0);
        learned.learn(&low, &detail);
        let (low, detail) = example(160, 90, 2.0);
        let mut rest = learned.predict(&low).expect("it has learned");
        for (r, d) in rest.samples_mut().iter_mut().zip(detail.samples()) {
            *r = d - *r;
        }
        assert!(energy(&rest) * 10 < energy(&detail), "{} {}", energy(&rest), energy(&detail));
    }

    #[test]
    fn flat_and_tiny_planes_have_no_prediction_but_zero() {
        let mut learned = Learned::default();
        let (low, detail) = example(40, 30, 0.0);
        learned.learn(&low, &detail);
        for (width, height) in [(1, 1), (2, 5), (33, 1)] {
            let flat = learned.predict(&Plane::filled(width, height, 200)).expect("it has learned");
            assert_eq!(flat, Detail::zero(2 * width, 2 * height));
            learned.learn(&Plane::filled(width, height, 9), &flat);
        }
    }

    #[test]
    fn the_wildest_anchors_keep_sums_and_filters_in_range() {
        let mut learned = Learned::default();
        let samples = (0..200 * 300).map(|i: u32| if i.is_multiple_of(2) { 0 } else { 255 });
        let low = Plane::from_samples(200, 300, samples.collect()).expect("the count");
        let wild = vec![i16::MAX; 4 * 200 * 300];
        let detail = Detail::from_samples(400, 600, wild).expect("the count");
        for _ in 0..3 {
            learned.learn(&low, &detail);
        }
        let found = learned.predict(&low).expect("it has learned");
        assert!(found.samples().iter().all(|d| d.abs() <= 1024));
    }
}
