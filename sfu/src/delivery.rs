//! A data message on its way to a participant.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use windlass_types::{DataMessage, ParticipantId};

/// A data message for a participant.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Sender of the message.
    pub from: ParticipantId,
    /// Number of the message: each message of a sender has a larger one than its earlier messages.
    pub seq: u32,
    /// The message.
    pub message: Arc<DataMessage>,
    /// Length of the message's content as it is sent, in bytes.
    pub(crate) sent_len: usize,
    /// The message's bytes in the queue of the participant's events; `None` outside of a queue.
    waiting: Option<Arc<Waiting>>,
}

impl Delivery {
    /// A data message that is in no queue yet.
    pub fn new(from: ParticipantId, seq: u32, message: Arc<DataMessage>) -> Delivery {
        let sent_len = message.content.sent_len();
        Delivery { from, seq, message, sent_len, waiting: None }
    }

    /// Notes that the message is in a queue, and counts for the bytes of `waiting` there.
    pub(crate) fn set_waiting(&mut self, waiting: Waiting) {
        self.waiting = Some(Arc::new(waiting));
    }
}

impl PartialEq for Delivery {
    fn eq(&self, other: &Delivery) -> bool {
        (self.from, self.seq, &self.message) == (other.from, other.seq, &other.message)
    }
}

/// Bytes of a data message that waits in a queue. They count until the event with the message is taken from the queue.
#[derive(Debug)]
pub(crate) struct Waiting {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

impl Waiting {
    /// Counts `bytes` more in a queue whose sum is `all`, until the returned value is dropped.
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
