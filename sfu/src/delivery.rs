//! A data message on its way to a participant.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use windlass_types::{DataMessage, ParticipantId};

/// A data message for a participant.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Who sent it.
    pub from: ParticipantId,
    /// Its number: each message of its sender has a larger one than those before.
    pub seq: u32,
    /// The message.
    pub message: Arc<DataMessage>,
    /// Length of its content as it is sent, in bytes.
    pub(crate) sent_len: usize,
    /// Its bytes in the queue of the participant's events.
    waiting: Option<Arc<Waiting>>,
}

impl Delivery {
    /// A message that is in no queue.
    pub fn new(from: ParticipantId, seq: u32, message: Arc<DataMessage>) -> Delivery {
        let sent_len = message.content.sent_len();
        Delivery { from, seq, message, sent_len, waiting: None }
    }

    /// Notes that the message is in a queue, and counts for so many bytes there.
    pub(crate) fn set_waiting(&mut self, waiting: Waiting) {
        self.waiting = Some(Arc::new(waiting));
    }
}

impl PartialEq for Delivery {
    fn eq(&self, other: &Delivery) -> bool {
        (self.from, self.seq, &self.message) == (other.from, other.seq, &other.message)
    }
}

/// Bytes in a queue, until the event that has this is taken from it.
#[derive(Debug)]
pub(crate) struct Waiting {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

impl Waiting {
    /// Counts `bytes` more in a queue whose sum is `all`, until this is dropped.
    pub(crate) fn new(all: &Arc<AtomicUsize>, bytes: usize) -> Waiting {
        all.fetch_add(bytes, Ordering::Relaxed);
        Waiting { all: all.clone(), bytes }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
