//! Work that may run at the same time.

/// Runs two pieces of work, maybe at the same time; results do not depend on how they are run. This crate starts no
/// threads itself: a caller with threads implements this.
pub trait Join: Send + Sync {
    /// Returns when both are done.
    fn join(&self, first: &mut (dyn FnMut() + Send), second: &mut (dyn FnMut() + Send));
}

/// Runs one piece after the other, on the caller's thread.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OneThread;

impl Join for OneThread {
    fn join(&self, first: &mut (dyn FnMut() + Send), second: &mut (dyn FnMut() + Send)) {
        first();
        second();
    }
}
