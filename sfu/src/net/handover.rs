//! Hands over datagrams that the kernel gave to one media thread and that belong to another.
//!
//! The kernel chooses a thread's socket by the sender's address; rooms are placed by the threads' load. So with several
//! threads some datagrams arrive at the wrong one. They are handed over in batches through bounded queues. A full queue
//! drops and counts them, as a full socket would drop them.

use std::time::Instant;

use tokio::sync::mpsc;

use crate::core::RemoteAddr;

/// Maximum number of batches that wait for one thread.
const MAX_BATCHES: usize = 256;

/// A datagram for another thread.
#[derive(Debug, Clone)]
pub(super) struct HandedOver {
    /// Arrival at the kernel.
    pub(super) arrival: Instant,
    /// Source address.
    pub(super) from: RemoteAddr,
    /// Content.
    pub(super) data: Vec<u8>,
}

/// Batches from the other threads.
pub(super) type Receiver = mpsc::Receiver<Vec<HandedOver>>;

/// The queues of all threads. A thread's own queue is not used.
#[derive(Clone)]
pub(super) struct Handover {
    senders: Vec<mpsc::Sender<Vec<HandedOver>>>,
    batches: Vec<Vec<HandedOver>>,
}

/// The receivers of `threads` threads, and the queues to all of them.
pub(super) fn channels(threads: usize) -> (Vec<Receiver>, Handover) {
    let (senders, receivers): (Vec<_>, _) =
        (0..threads).map(|_| mpsc::channel(MAX_BATCHES)).unzip();
    let batches = (0..threads).map(|_| Vec::new()).collect();
    (receivers, Handover { senders, batches })
}

impl Handover {
    /// Queues a datagram for another thread until [`Handover::send`].
    pub(super) fn push(&mut self, thread: usize, handed: HandedOver) {
        self.batches[thread].push(handed);
    }

    /// Sends the queued datagrams; returns how many were sent, and how many were dropped.
    pub(super) fn send(&mut self) -> (u64, u64) {
        let (mut sent, mut lost) = (0, 0);
        for (sender, batch) in self.senders.iter().zip(&mut self.batches) {
            if batch.is_empty() {
                continue;
            }
            let count = batch.len() as u64;
            // The queue of an ended thread counts as full: the server stops.
            if sender.try_send(std::mem::take(batch)).is_ok() {
                sent += count;
            } else {
                lost += count;
            }
        }
        (sent, lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed(n: u8) -> HandedOver {
        let from = std::net::SocketAddr::from(([192, 0, 2, 1], 9)).into();
        HandedOver { arrival: Instant::now(), from, data: vec![n] }
    }

    #[test]
    fn what_is_kept_goes_to_its_thread_at_once_and_in_order() {
        let (mut receivers, mut handover) = channels(3);
        for n in 0..5 {
            handover.push(if n == 3 { 2 } else { 1 }, handed(n));
        }
        assert!(receivers[1].try_recv().is_err());
        assert_eq!(handover.send(), (5, 0));
        assert_eq!(handover.send(), (0, 0));
        let data =
            |r: &mut Receiver| r.try_recv().map(|b| b.into_iter().map(|h| h.data[0]).collect());
        assert_eq!(
            receivers.iter_mut().map(data).collect::<Vec<Result<Vec<u8>, _>>>()[1..],
            [Ok(vec![0, 1, 2, 4]), Ok(vec![3])]
        );
    }

    #[test]
    fn a_thread_that_does_not_keep_up_loses_what_comes_last() {
        let (mut receivers, mut handover) = channels(2);
        let mut lost = 0;
        for n in 0..=MAX_BATCHES {
            handover.push(1, handed(n as u8));
            lost += handover.send().1;
        }
        assert_eq!(lost, 1);
        assert_eq!(receivers[1].try_recv().map(|b| b[0].data[0]), Ok(0));
    }
}
