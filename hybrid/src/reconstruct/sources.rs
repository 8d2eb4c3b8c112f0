//! References and filters: what HR pictures are made from besides low ones.

use super::carry::reference::References;
use super::learned::Learned;

/// The references and filters of one track.
pub(crate) struct Sources {
    pub references: References,
    pub learned: Learned,
    /// Counts the changes of `references` and `learned`.
    pub generation: u64,
    /// Whether anchors have taught `learned`.
    taught: bool,
    /// Whether the built-in filters are used before anchors have taught any.
    prior: bool,
}

impl Sources {
    /// No references, and the filters of a stream without anchors.
    pub(crate) fn new(scale: usize, prior: bool) -> Self {
        let (references, learned) = (References::default(), untaught(scale, prior));
        Self { references, learned, generation: 0, taught: false, prior }
    }

    /// Whether anchors have taught the filters.
    pub(crate) fn is_taught(&self) -> bool {
        self.taught
    }

    /// Notes that an anchor has taught the filters.
    pub(crate) fn set_taught(&mut self) {
        self.taught = true;
    }

    /// Forgets what anchors have taught the filters. The filters are for this scale from now on.
    pub(crate) fn forget_filters(&mut self, scale: usize) {
        self.learned = untaught(scale, self.prior);
        self.taught = false;
        self.generation += 1;
    }

    /// Forgets the references.
    pub(crate) fn forget_references(&mut self) {
        self.references.clear();
        self.generation += 1;
    }
}

/// The filters of a stream without anchors.
fn untaught(scale: usize, prior: bool) -> Learned {
    if prior { Learned::with_prior(scale) } else { Learned::new(scale) }
}
