//! Work on a GPU with a timeout: kernels on trial may hang, and their caller must not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::CudaError;

/// Timeout for the trial of a network, compiling included.
pub(super) const TRIAL: Duration = Duration::from_secs(120);

/// Time without an answer after which a GPU counts as hung, in ms: frames that waited for it are long past their
/// deadlines.
static TIMEOUT_MS: AtomicU64 = AtomicU64::new(3000);

/// Time without an answer after which a GPU counts as hung.
pub(crate) fn timeout() -> Duration {
    Duration::from_millis(TIMEOUT_MS.load(Ordering::Relaxed))
}

/// Sets the time without an answer after which a GPU of this process counts as hung; by default 3 s. An emulated one
/// is as slow as the machine.
pub fn set_timeout(timeout: Duration) {
    TIMEOUT_MS.store(timeout.as_millis() as u64, Ordering::Relaxed);
}

/// Runs work on a thread of its own and waits for it with a timeout; work that hangs keeps its thread.
pub(super) fn within<T: Send + 'static>(
    timeout: Duration,
    work: impl FnOnce() -> Result<T, CudaError> + Send + 'static,
) -> Result<T, CudaError> {
    let (back, answer) = bounded(1);
    let thread = std::thread::Builder::new().name("gpu-trial".to_owned());
    let spawned = thread.spawn(move || {
        // The caller has timed out.
        let _ = back.try_send(work());
    });
    spawned.map_err(|error| CudaError::Driver(format!("no thread for it: {error}")))?;
    match answer.recv_timeout(timeout) {
        Ok(done) => done,
        Err(RecvTimeoutError::Timeout) => Err(CudaError::Silent(timeout)),
        Err(RecvTimeoutError::Disconnected) => {
            Err(CudaError::Driver("its trial failed".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_is_left_to_itself() {
        assert_eq!(within(Duration::from_secs(60), || Ok(7)), Ok(7));
        assert_eq!(
            within(Duration::from_secs(60), || Err::<(), _>(CudaError::Wrong)),
            Err(CudaError::Wrong)
        );
        let short = Duration::from_millis(20);
        let (release, held) = bounded::<()>(0);
        let hangs = move || {
            let _ = held.recv();
            Ok(())
        };
        assert_eq!(within(short, hangs), Err(CudaError::Silent(short)));
        drop(release);
        let failed = within(Duration::from_secs(60), || -> Result<(), _> { panic!("a trial") });
        assert!(matches!(failed, Err(CudaError::Driver(_))));
    }
}
