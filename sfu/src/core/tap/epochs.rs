//! The epochs of a tapped stream: a new one begins where the frames' size or layer changes.

use std::collections::VecDeque;

use windlass_types::{Epoch, Layer};

/// Number of epochs whose layer is kept, for anchors that are being made.
const MAX_EPOCHS: usize = 8;

/// The last epochs of one stream, each with its layer.
#[derive(Debug)]
pub(crate) struct TapEpochs {
    known: VecDeque<(Epoch, Layer)>,
    next: u16,
}

impl TapEpochs {
    /// No epochs yet; the first one will be `first`.
    pub(crate) fn new(first: u16) -> TapEpochs {
        TapEpochs { known: VecDeque::new(), next: first }
    }

    /// Begins the next epoch.
    pub(crate) fn begin(&mut self, layer: Layer) {
        if self.known.len() == MAX_EPOCHS {
            self.known.pop_front();
        }
        self.known.push_back((Epoch(self.next), layer));
        self.next = self.next.wrapping_add(1);
    }

    /// The current epoch and its layer.
    pub(crate) fn current(&self) -> Option<(Epoch, Layer)> {
        self.known.back().copied()
    }

    /// The layer of an epoch; `None` for old epochs.
    pub(crate) fn layer_of(&self, epoch: Epoch) -> Option<Layer> {
        self.known.iter().find(|e| e.0 == epoch).map(|e| e.1)
    }

    /// The next epoch number.
    pub(crate) fn next(&self) -> u16 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_epochs_are_forgotten() {
        let mut epochs = TapEpochs::new(u16::MAX);
        assert_eq!(epochs.current(), None);
        epochs.begin(Layer::Q);
        assert_eq!((epochs.layer_of(Epoch(u16::MAX)), epochs.next()), (Some(Layer::Q), 0));
        for _ in 0..MAX_EPOCHS {
            epochs.begin(Layer::H);
        }
        assert_eq!(epochs.layer_of(Epoch(u16::MAX)), None);
        assert_eq!(epochs.current(), Some((Epoch(MAX_EPOCHS as u16 - 1), Layer::H)));
    }
}
