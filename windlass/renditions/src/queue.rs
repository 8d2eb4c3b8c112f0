//! The bounded queue of one rendered track.

use std::collections::VecDeque;

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
pub(crate) struct Taken {
    /// The next step.
    pub(crate) input: RecordInput,
    /// Whether a player needs a key frame.
    pub(crate) key_frame: bool,
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

    /// Waits for the next step; `None`: the queue has ended.
    pub(crate) fn take(&self) -> Option<Taken> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(input) = state.waiting.pop_front() {
                state.bytes -= input.media_bytes();
                let key_frame = std::mem::take(&mut state.key_frame);
                return Some(Taken { input, key_frame });
            }
            self.changed.wait(&mut state);
        }
    }
}
