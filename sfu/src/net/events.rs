//! The queue of a participant's events: bounded in events, and in bytes of data messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use crate::api::SfuEvent;
use crate::delivery::Waiting;

/// Maximum bytes of data messages that wait for a participant. One with more is too slow.
const MAX_DATA: usize = 1024 * 1024;
/// Bytes of data messages that wait, from which on those that are not reliable are dropped.
const MAX_UNRELIABLE: usize = 64 * 1024;
/// Events that wait, from which on data messages that are not reliable are dropped.
const MAX_EVENTS: usize = 64;
/// Bytes that a data message counts for beside its content.
const OVERHEAD: usize = 256;

/// The sender's side of a participant's queue of events.
pub(super) struct EventQueue {
    sender: mpsc::Sender<SfuEvent>,
    /// Bytes of data messages in the queue.
    data: Arc<AtomicUsize>,
}

/// Result of [`EventQueue::put`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// The event is in the queue.
    Queued,
    /// The event was dropped, as it is not reliable and much waits already.
    Dropped,
    /// The participant does not take its events, or is gone.
    Slow,
}

impl EventQueue {
    /// A queue for `max` events, and its receiver.
    pub(super) fn new(max: usize) -> (EventQueue, mpsc::Receiver<SfuEvent>) {
        let (sender, events) = mpsc::channel(max);
        (EventQueue { sender, data: Arc::default() }, events)
    }

    /// Whether the receiver is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Puts an event into the queue.
    pub(super) fn put(&self, mut event: SfuEvent) -> Put {
        if let SfuEvent::Data(delivery) = &mut event {
            let waiting = self.data.load(Ordering::Relaxed);
            let events = self.sender.max_capacity() - self.sender.capacity();
            if !delivery.message.reliable && (waiting > MAX_UNRELIABLE || events > MAX_EVENTS) {
                return Put::Dropped;
            }
            let bytes = delivery.sent_len + OVERHEAD;
            if waiting + bytes > MAX_DATA {
                return Put::Slow;
            }
            delivery.set_waiting(Waiting::new(&self.data, bytes));
        }
        if self.sender.try_send(event).is_ok() { Put::Queued } else { Put::Slow }
    }
}

#[cfg(test)]
mod tests {
    use windlass_types::{DataContent, DataMessage, ParticipantId};

    use super::*;
    use crate::api::Delivery;

    fn data(bytes: usize, reliable: bool) -> SfuEvent {
        let content = DataContent::Text("x".repeat(bytes));
        let message = DataMessage { topic: "t".to_owned(), content, reliable, number: None };
        SfuEvent::Data(Delivery::new(ParticipantId(1), 1, message.into()))
    }

    #[test]
    fn data_is_bounded_in_bytes_until_it_is_taken() {
        let (queue, mut events) = EventQueue::new(4096);
        let count = (0..99).filter(|_| queue.put(data(16 * 1024, true)) == Put::Queued).count();
        assert_eq!(count, MAX_DATA / (16 * 1024 + OVERHEAD));
        assert_eq!(queue.put(data(16 * 1024, true)), Put::Slow);
        let speaker = SfuEvent::Speaker { participant: ParticipantId(1) };
        assert_eq!(queue.put(speaker), Put::Queued, "other events have room");
        drop(events.try_recv());
        assert_eq!(queue.put(data(16 * 1024, true)), Put::Queued);
        while events.try_recv().is_ok() {}
        assert_eq!(queue.data.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn escapes_count_as_they_are_sent() {
        let (queue, _events) = EventQueue::new(4096);
        let put = || {
            let content = DataContent::Text("\0".repeat(16 * 1024));
            let topic = "t".to_owned();
            let message = DataMessage { topic, content, reliable: true, number: None };
            queue.put(SfuEvent::Data(Delivery::new(ParticipantId(1), 1, message.into())))
        };
        let count = (0..99).filter(|_| put() == Put::Queued).count();
        assert_eq!(count, MAX_DATA / (6 * 16 * 1024 + OVERHEAD));
    }

    #[test]
    fn data_that_is_not_reliable_is_dropped_while_much_waits() {
        let (queue, mut events) = EventQueue::new(4096);
        let put = |count, bytes, reliable| {
            (0..count).filter(|_| queue.put(data(bytes, reliable)) == Put::Queued).count()
        };
        assert_eq!(put(99, 16 * 1024, false), 4);
        assert_eq!(put(3, 16 * 1024, true), 3, "what is reliable has room");
        while events.try_recv().is_ok() {}
        assert_eq!(put(99, 1, false), MAX_EVENTS + 1);
    }

    #[test]
    fn a_full_queue_is_slow_and_so_is_one_that_nobody_reads() {
        let (queue, events) = EventQueue::new(2);
        let put = || queue.put(data(1, true));
        assert_eq!((put(), put(), put()), (Put::Queued, Put::Queued, Put::Slow));
        drop(events);
        assert!(queue.is_closed());
        assert_eq!((put(), queue.data.load(Ordering::Relaxed)), (Put::Slow, 0));
    }
}
