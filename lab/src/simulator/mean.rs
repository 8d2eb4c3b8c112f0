//! The mean of figures that come one by one.

/// A mean over what was added so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mean {
    pub(crate) sum: f64,
    pub(crate) count: u64,
}

impl Mean {
    pub(crate) fn add(&mut self, figure: f64) {
        self.merge(Mean { sum: figure, count: 1 });
    }

    /// Adds what was added to another one.
    pub(crate) fn merge(&mut self, other: Mean) {
        self.sum += other.sum;
        self.count += other.count;
    }

    /// The mean; `None` if nothing was added.
    pub(crate) fn get(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_that_of_all_figures() {
        let (mut all, mut later) = (Mean::default(), Mean::default());
        assert_eq!(all.get(), None);
        all.add(1.0);
        later.add(2.0);
        later.add(6.0);
        all.merge(later);
        assert_eq!(all.get(), Some(3.0));
    }
}
