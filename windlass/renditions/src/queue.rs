//! The bounded queue of one rendition.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use windlass_types::recording::RecordInput;

/// Maximum number of frames and anchors that wait: one second.
const MAX_WAITING: usize = 32;
/// Maximum bytes of frames and anchors that wait.
const MAX_WAITING_BYTES: usize = 8 << 20;

/// What waits for a rendition's thread.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<RecordInput>,
    bytes: usize,
    key_frame: bool,
    closed: bool,
}

/// What a thread takes from its queue.
pub(crate) enum Next {
    /// The next step of the track.
    Step {
        /// The step.
        input: RecordInput,
        /// Whether a player needs a key frame.
        key_frame: bool,
    },
    /// Nothing has come in time.
    Nothing,
    /// The queue has ended.
    Ended,
}

impl Queue {
    /// Adds a step of the track. Returns `false` if there is no room for it: it is dropped.
    pub(crate) fn push(&self, input: RecordInput) -> bool {
        let mut state = self.state.lock();
        let bytes = input.media_bytes();
        // A gap need not wait: after it there is a key frame.
        let full = state.waiting.len() >= MAX_WAITING || state.bytes + bytes > MAX_WAITING_BYTES;
        if full || bytes == 0 {
            return !full;
        }
        state.bytes += bytes;
        state.waiting.push_back(input);
        self.changed.notify_one();
        true
    }

    /// Notes that a player needs a key frame.
    pub(crate) fn request_key_frame(&self) {
        self.state.lock().key_frame = true;
    }

    /// Ends the queue: what waits is dropped.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_one();
    }

    /// Waits for the next step, for `wait` at most.
    pub(crate) fn take(&self, wait: Option<Duration>) -> Next {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return Next::Ended;
            }
            if let Some(input) = state.waiting.pop_front() {
                state.bytes -= input.media_bytes();
                let key_frame = std::mem::take(&mut state.key_frame);
                return Next::Step { input, key_frame };
            }
            match wait {
                None => self.changed.wait(&mut state),
                Some(wait) => {
                    if self.changed.wait_for(&mut state, wait).timed_out() {
                        return Next::Nothing;
                    }
                }
            }
        }
    }
}
