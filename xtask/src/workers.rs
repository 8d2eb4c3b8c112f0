//! Does work of several pieces, as many at once as the machine has CPUs.

use std::sync::Mutex;
use std::thread;

/// Does `work` for each piece. The results are in the order of the pieces.
pub(crate) fn each<T: Sync, R: Send>(pieces: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    by(thread::available_parallelism().map_or(1, usize::from), pieces, work)
}

/// Does `work` for each piece, `count` pieces at a time.
pub(crate) fn by<T: Sync, R: Send>(
    count: usize,
    pieces: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = Mutex::new(pieces.iter().enumerate());
    let done = Mutex::new(Vec::new());
    let hold = "no thread that holds it panics";
    thread::scope(|scope| {
        for _ in 0..count.min(pieces.len()) {
            scope.spawn(|| {
                loop {
                    let Some((at, piece)) = next.lock().expect(hold).next() else { break };
                    let result = work(piece);
                    done.lock().expect(hold).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect(hold);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_pieces() {
        let pieces: Vec<usize> = (0..40).collect();
        // Neither thread goes on alone: the first piece is done when all others are but the last.
        let (begun, last) = (Barrier::new(2), Barrier::new(2));
        let doubled = by(2, &pieces, |&n| {
            match n {
                0 => _ = (begun.wait(), last.wait()),
                1 => _ = begun.wait(),
                39 => _ = last.wait(),
                _ => {}
            }
            2 * n
        });
        assert_eq!(doubled, pieces.iter().map(|n| 2 * n).collect::<Vec<_>>());
        assert!(each(&[0; 0], |n| *n).is_empty());
    }
}
