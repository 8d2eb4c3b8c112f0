//! The state of a stream's networks: the learned weights that make its anchors in place of the generic ones, and the
//! estimated worth of these anchors.
//!
//! The state lives as long as the stream is tapped: over key frames, gaps and the end of the publisher's larger layer.
//! The learned weights are needed most after that end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use windlass_scheduler::worth::Belief;
use windlass_sr::Model;
use windlass_types::Size;

/// Minimum time between two samples of a stream: closer pictures add little.
const EVERY: Duration = Duration::from_secs(1);
/// Maximum sets of weights, and of beliefs, kept per stream: those of two networks at two sizes.
const KEPT: usize = 4;

/// Key of one set of a stream's weights: network and picture size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Of {
    /// Index of the network in the pipeline's list.
    pub network: usize,
    /// Size of the low pictures. Weights for one size were not tried on others.
    pub size: Size,
}

/// A stream's learned weights, shared by its decoder, the workers and the learner.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    weights: Vec<(Of, Arc<Model>)>,
    beliefs: Vec<(Of, Belief)>,
    raised: Option<f64>,
    /// Time before which another sample is of no use.
    next: Option<Instant>,
    /// End of the rest.
    rest: Option<Instant>,
    trained: Option<Instant>,
}

impl Progress {
    /// Whether a sample is wanted at `now`. If so, the next one is wanted [`EVERY`] later.
    pub(crate) fn due(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        let due = [state.next, state.rest].iter().flatten().all(|&from| now >= from);
        if due {
            state.next = Some(now + EVERY);
        }
        due
    }

    /// Accepts no sample before `until`.
    pub(crate) fn rest(&self, until: Instant) {
        self.state.lock().rest = Some(until);
    }

    /// Notes that a sample begins at `now`. Returns whether it may: one that was handed in before a rest must not
    /// begin during it.
    pub(crate) fn train(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        let may = state.rest.is_none_or(|until| now >= until);
        if may {
            state.trained = Some(now);
        }
        may
    }

    /// Time at which the last sample began.
    pub(crate) fn trained(&self) -> Option<Instant> {
        self.state.lock().trained
    }

    /// Learned weights in use; `None` if the generic ones are.
    pub(crate) fn weights(&self, of: Of) -> Option<Arc<Model>> {
        let state = self.state.lock();
        state.weights.iter().find(|(key, _)| *key == of).map(|(_, model)| model.clone())
    }

    /// Reads or changes the belief about a network's anchors. Beyond [`KEPT`], the oldest belief goes.
    pub(crate) fn belief<T>(&self, of: Of, look: impl FnOnce(&mut Belief) -> T) -> T {
        let beliefs = &mut self.state.lock().beliefs;
        let at = beliefs.iter().position(|(key, _)| *key == of).unwrap_or_else(|| {
            if beliefs.len() == KEPT {
                beliefs.remove(0);
            }
            beliefs.push((of, Belief::default()));
            beliefs.len() - 1
        });
        look(&mut beliefs[at].1)
    }

    /// Notes by how many dB enhanced anchors had raised a frame, as the publisher's own picture has shown.
    pub(crate) fn saw(&self, db: f64) {
        self.state.lock().raised = Some(db);
    }

    /// Takes the gain in dB that [`saw`](Self::saw) noted last; `None` if it was taken already.
    pub(crate) fn take_seen(&self) -> Option<f64> {
        self.state.lock().raised.take()
    }

    /// Uses the given weights from now on; `None`: the generic ones. Beyond [`KEPT`], the oldest weights go.
    pub(crate) fn put(&self, of: Of, model: Option<Arc<Model>>) {
        let mut state = self.state.lock();
        state.weights.retain(|(key, _)| *key != of);
        let Some(model) = model else { return };
        if state.weights.len() == KEPT {
            state.weights.remove(0);
        }
        state.weights.push((of, model));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_sr::Architecture;

    #[test]
    fn a_stream_has_a_lesson_a_second_and_none_during_a_rest() {
        let (progress, start) = (Progress::default(), Instant::now());
        let due = |ms: u64| progress.due(start + Duration::from_millis(ms));
        assert!(due(0) && !due(1) && !due(999) && due(1000) && !due(1999));
        progress.rest(start + Duration::from_secs(10));
        assert!(!due(2000) && !due(9999) && due(10_000));
    }

    #[test]
    fn a_sample_that_was_handed_in_before_a_rest_does_not_begin_during_it() {
        let (progress, start) = (Progress::default(), Instant::now());
        let train = |s: u64| progress.train(start + Duration::from_secs(s));
        assert!(train(0));
        progress.rest(start + Duration::from_secs(10));
        assert!(!train(9) && progress.trained() == Some(start));
        assert!(train(10));
    }

    #[test]
    fn weights_are_of_a_network_and_a_size_and_few() {
        let progress = Progress::default();
        let model = |seed| Arc::new(Model::random(Architecture::chain(2, 8, 2), seed).unwrap());
        let of = |network, width| Of { network, size: Size::new(width, 90) };
        let (first, second) = (model(1), model(2));
        progress.put(of(0, 160), Some(first.clone()));
        assert!(progress.weights(of(1, 160)).is_none() && progress.weights(of(0, 320)).is_none());
        progress.put(of(0, 160), Some(second.clone()));
        assert!(progress.weights(of(0, 160)).is_some_and(|kept| Arc::ptr_eq(&kept, &second)));
        for width in 1..=KEPT as u16 {
            progress.put(of(0, width), Some(first.clone()));
        }
        assert!(progress.weights(of(0, 160)).is_none(), "the oldest went");
        assert!(progress.weights(of(0, KEPT as u16)).is_some());
        progress.put(of(0, KEPT as u16), None);
        assert!(progress.weights(of(0, KEPT as u16)).is_none());
    }
}
