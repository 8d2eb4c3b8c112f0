//! Datagrams that the kernel gave to one of the SFU's threads and that are another's.
//!
//! The kernel chooses a thread's socket by the sender's address, and rooms are chosen by how much each thread has to do, so
//! with several threads some come to the wrong one. They go on by the batch, through a bounded queue between each two
//! threads; what it has no room for is dropped, as a full socket would, and counted.

use std::time::Instant;

use tokio::sync::mpsc;

use crate::core::Remote;

/// Batches that wait for a thread.
const BATCHES: usize = 256;

/// A datagram on its way to its thread.
#[derive(Debug, Clone)]
pub(super) struct Handed {
    /// When the kernel had it.
    pub(super) arrival: Instant,
    /// Who sent it.
    pub(super) from: Remote,
    /// What it says.
    pub(super) data: Vec<u8>,
}

/// What comes from the other threads, a batch at a time.
pub(super) type Receiver = mpsc::Receiver<Vec<Handed>>;

/// The ways to all threads, the own one among them, which nothing goes by.
#[derive(Clone)]
pub(super) struct Handover {
    ways: Vec<mpsc::Sender<Vec<Handed>>>,
    batches: Vec<Vec<Handed>>,
}

/// For each of so many threads: where others' datagrams come, and the ways to all.
pub(super) fn between(threads: usize) -> (Vec<Receiver>, Handover) {
    let (ways, receivers): (Vec<_>, _) = (0..threads).map(|_| mpsc::channel(BATCHES)).unzip();
    let batches = (0..threads).map(|_| Vec::new()).collect();
    (receivers, Handover { ways, batches })
}

impl Handover {
    /// Keeps a datagram for another thread until [`Handover::send`].
    pub(super) fn keep(&mut self, thread: usize, handed: Handed) {
        self.batches[thread].push(handed);
    }

    /// Hands over what was kept; how many were, and how many there was no room for.
    pub(super) fn send(&mut self) -> (u64, u64) {
        let (mut sent, mut lost) = (0, 0);
        for (way, batch) in self.ways.iter().zip(&mut self.batches) {
            if batch.is_empty() {
                continue;
            }
            let count = batch.len() as u64;
            // A thread that has ended is the same as a full one: the server stops.
            if way.try_send(std::mem::take(batch)).is_ok() {
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

    fn handed(n: u8) -> Handed {
        let from = std::net::SocketAddr::from(([192, 0, 2, 1], 9)).into();
        Handed { arrival: Instant::now(), from, data: vec![n] }
    }

    #[test]
    fn what_is_kept_goes_to_its_thread_at_once_and_in_order() {
        let (mut receivers, mut handover) = between(3);
        for n in 0..5 {
            handover.keep(if n == 3 { 2 } else { 1 }, handed(n));
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
        let (mut receivers, mut handover) = between(2);
        let mut lost = 0;
        for n in 0..=BATCHES {
            handover.keep(1, handed(n as u8));
            lost += handover.send().1;
        }
        assert_eq!(lost, 1);
        assert_eq!(receivers[1].try_recv().map(|b| b[0].data[0]), Ok(0));
    }
}
