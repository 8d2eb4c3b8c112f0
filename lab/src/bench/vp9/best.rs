//! The least time that each frame took over many passes.

use crate::latencies::Latencies;

/// The least time of each frame, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Best(Vec<f64>);

impl Best {
    /// Takes a frame's time in one pass.
    pub(crate) fn record(&mut self, frame: usize, ms: f64) {
        if self.0.len() <= frame {
            self.0.resize(frame + 1, f64::INFINITY);
        }
        self.0[frame] = self.0[frame].min(ms);
    }

    /// Takes the times of a whole pass.
    pub(crate) fn record_all(&mut self, pass: &[f64]) {
        for (frame, &ms) in pass.iter().enumerate() {
            self.record(frame, ms);
        }
    }

    /// Mean over all frames; `None` where there are none.
    pub(crate) fn mean(&self) -> Option<f64> {
        mean(self.0.iter().copied())
    }

    /// Mean over the frames chosen.
    pub(crate) fn mean_of(&self, chosen: &[bool]) -> Option<f64> {
        mean(self.0.iter().zip(chosen).filter(|(_, chosen)| **chosen).map(|(&ms, _)| ms))
    }

    /// The time that one frame in a hundred exceeds.
    pub(crate) fn p99(&self) -> Option<f64> {
        self.0.iter().collect::<Latencies>().percentile(99.0)
    }

    /// The time of the first frame.
    pub(crate) fn first(&self) -> Option<f64> {
        self.0.first().copied()
    }

    /// The longest time of a frame, without the first.
    pub(crate) fn max_after_first(&self) -> Option<f64> {
        self.0.iter().skip(1).copied().max_by(f64::total_cmp)
    }

    /// How many times faster this is than `other`.
    pub(crate) fn speed_up(&self, other: &Best) -> Option<f64> {
        Some(other.mean()? / self.mean()?)
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), ms| (sum + ms, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_keeps_its_least_time() {
        let mut best = Best::default();
        best.record_all(&[4.0, 1.0, 9.0]);
        best.record_all(&[3.0, 2.0, 5.0]);
        assert_eq!(best, Best(vec![3.0, 1.0, 5.0]));
        assert_eq!(best.mean(), Some(3.0));
        assert_eq!(best.mean_of(&[true, false, true]), Some(4.0));
        assert_eq!((best.first(), best.max_after_first()), (Some(3.0), Some(5.0)));
        assert_eq!(best.speed_up(&Best(vec![6.0])), Some(2.0));
    }

    #[test]
    fn the_99th_percentile_leaves_one_frame_in_a_hundred() {
        let best = Best((1..=300).map(|n| f64::from(n) / 10.0).collect());
        assert_eq!(best.p99(), Some(29.7));
        assert_eq!(Best(vec![7.0]).p99(), Some(7.0));
    }

    #[test]
    fn no_frames_have_no_times() {
        let none = Best::default();
        assert_eq!((none.mean(), none.p99(), none.first()), (None, None, None));
        assert_eq!(none.mean_of(&[true]), None);
    }
}
