//! Ridge regression of a convolution's weights about those that it has, by sums over samples.
//!
//! The sums tell exactly what any weights would have given, also on samples that nothing was learned from. So the
//! strength of the pull is chosen by these.

/// Minimum share of the squared error on held-back samples that new weights must remove.
const MIN_GAIN: f64 = 0.01;
/// Strengths of the pull to the generic weights that are tried, as shares of each feature's own energy.
const RIDGES: [f64; 6] = [0.0003, 0.003, 0.03, 0.1, 0.3, 1.0];

/// Sums over samples: of products of features, of features and errors, and of squared errors.
#[derive(Debug, Clone)]
pub struct Moments {
    size: usize,
    outputs: usize,
    /// Upper triangle, row by row.
    products: Vec<f64>,
    /// Sums of products of each feature with the error of each output, by feature.
    pub(crate) errors: Vec<f64>,
    squares: f64,
}

impl Moments {
    /// Sums over no samples, each of `size` features and `outputs` errors.
    pub fn new(size: usize, outputs: usize) -> Self {
        let (products, errors) = (vec![0.0; size * size], vec![0.0; size * outputs]);
        Moments { size, outputs, products, errors, squares: 0.0 }
    }

    /// Numbers of a sample's features.
    pub fn features(&self) -> usize {
        self.size
    }

    /// Numbers of a sample's errors.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Adds a sample.
    pub fn add(&mut self, features: &[f64], errors: &[f64]) {
        for (i, &feature) in features.iter().enumerate() {
            // ReLU leaves many at zero.
            if feature == 0.0 {
                continue;
            }
            let row = &mut self.products[i * self.size + i..(i + 1) * self.size];
            for (sum, other) in row.iter_mut().zip(&features[i..]) {
                *sum += feature * other;
            }
            let row = &mut self.errors[i * self.outputs..][..self.outputs];
            for (sum, error) in row.iter_mut().zip(errors) {
                *sum += feature * error;
            }
        }
        self.squares += errors.iter().map(|e| e * e).sum::<f64>();
    }

    /// The squared error that there is without a change.
    pub fn squares(&self) -> f64 {
        self.squares
    }

    /// Adds the samples of another one of the same size.
    pub fn merge(&mut self, other: &Moments) {
        let pairs = self.products.iter_mut().zip(&other.products);
        let pairs = pairs.chain(self.errors.iter_mut().zip(&other.errors));
        pairs.for_each(|(sum, more)| *sum += more);
        self.squares += other.squares;
    }

    /// Lets what was added so far count for less.
    pub fn scale(&mut self, by: f64) {
        self.products.iter_mut().chain(&mut self.errors).for_each(|sum| *sum *= by);
        self.squares *= by;
    }

    fn product(&self, i: usize, j: usize) -> f64 {
        self.products[i.min(j) * self.size + i.max(j)]
    }

    /// The change of weights (by feature, one for each output) that leaves the least squared error of some strengths of
    /// the pull to none on the samples that were held back, and what it gains there, in dB. `None` where no change
    /// gains.
    pub fn best_change(&self, held: &Moments) -> Option<(Vec<f64>, f64)> {
        let before = held.squares;
        let tried = RIDGES.iter().filter_map(|&ridge| {
            let change = self.solve(ridge)?;
            let left = held.left_by(&change);
            (left.is_finite() && left < before * (1.0 - MIN_GAIN)).then_some((left, change))
        });
        let (left, change) = tried.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some((change, 10.0 * (before / left.max(1e-9)).log10()))
    }

    /// The change of weights that leaves the least squared error, with a pull to none of this strength, as a share of
    /// each feature's own energy. `None` where there is nothing to learn from.
    pub fn solve(&self, ridge: f64) -> Option<Vec<f64>> {
        let (n, outputs) = (self.size, self.outputs);
        let mean = (0..n).map(|i| self.product(i, i)).sum::<f64>() / n as f64;
        if mean <= 0.0 {
            return None;
        }
        // Cholesky: L·Lᵀ, of which the lower triangle is kept.
        let mut lower = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let pull = if i == j { ridge * (self.product(i, i) + 0.01 * mean) } else { 0.0 };
                let known: f64 = (0..j).map(|k| lower[i * n + k] * lower[j * n + k]).sum();
                let left = self.product(i, j) + pull - known;
                lower[i * n + j] = if i == j {
                    if left.is_nan() || left <= 0.0 {
                        return None;
                    }
                    left.sqrt()
                } else {
                    left / lower[j * n + j]
                };
            }
        }
        let mut change = self.errors.clone();
        for output in 0..outputs {
            for i in 0..n {
                let known: f64 =
                    (0..i).map(|k| lower[i * n + k] * change[k * outputs + output]).sum();
                change[i * outputs + output] =
                    (change[i * outputs + output] - known) / lower[i * n + i];
            }
            for i in (0..n).rev() {
                let known: f64 =
                    (i + 1..n).map(|k| lower[k * n + i] * change[k * outputs + output]).sum();
                change[i * outputs + output] =
                    (change[i * outputs + output] - known) / lower[i * n + i];
            }
        }
        Some(change)
    }

    /// The squared error that a change of weights would leave.
    pub fn left_by(&self, change: &[f64]) -> f64 {
        let (n, outputs) = (self.size, self.outputs);
        let mut left = self.squares;
        for output in 0..outputs {
            let of = |i: usize| change[i * outputs + output];
            for i in 0..n {
                let mixed: f64 = (0..n).map(|j| self.product(i, j) * of(j)).sum();
                left += of(i) * (mixed - 2.0 * self.errors[i * outputs + output]);
            }
        }
        left
    }
}
