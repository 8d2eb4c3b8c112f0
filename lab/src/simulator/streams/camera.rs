//! The frames that publishers encode: of random sizes about a bitrate, or those of a recorded trace.

use std::sync::Arc;
use std::time::Duration;

use super::events::Random;
use super::scenario::Group;
use super::trace::Trace;
use windlass_scheduler::Tier;

/// Size of a key frame over that of another frame.
const KEY: f64 = 8.0;
/// Number of frames from one refresh of the golden frame to the next, about as in Chromium.
const GOLDEN_EVERY: u64 = 80;

/// An encoded frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Coded {
    /// When the frame is sent.
    pub at: Duration,
    pub bytes: u32,
    pub tier: Tier,
    /// The known worth of the frame's anchor, over the mean of its clip's frames.
    pub worth: Option<f64>,
}

/// One publisher's encoder.
#[derive(Debug, Clone)]
pub(super) struct Camera {
    next: Duration,
    number: u64,
    keys_every: u64,
    key_wanted: bool,
    of: Frames,
}

#[derive(Debug, Clone)]
enum Frames {
    MadeUp {
        every: Duration,
        bytes: f64,
    },
    /// A trace, and the place of the next frame in it.
    Recorded {
        trace: Arc<Trace>,
        place: usize,
        mean_gain_db: Option<f64>,
    },
}

impl Camera {
    /// A camera that begins between `joins` and one frame later. A recorded one begins with the trace's first frame,
    /// goes on from a place of its own, and repeats the trace.
    pub(super) fn new(
        group: &Group,
        trace: Option<&Arc<Trace>>,
        joins: Duration,
        random: &mut Random,
    ) -> Camera {
        let (every, of) = match trace {
            None => {
                let every = Duration::from_secs_f64(1.0 / group.fps);
                (every, Frames::MadeUp { every, bytes: group.kbps * 125.0 / group.fps })
            }
            Some(trace) => {
                let others = trace.frames().len() - 1;
                let place = 1 + ((random.share() * others as f64) as usize).min(others - 1);
                let mean_gain_db = trace.mean_gain_db().filter(|gain| *gain > 0.0);
                (trace.every(0), Frames::Recorded { trace: trace.clone(), place, mean_gain_db })
            }
        };
        let next = joins + every.mul_f64(random.share());
        Camera { next, number: 0, keys_every: group.keys_every, key_wanted: false, of }
    }

    /// Mean size of a frame, in bytes.
    pub(super) fn mean_bytes(&self) -> f64 {
        match &self.of {
            Frames::MadeUp { bytes, .. } => *bytes,
            Frames::Recorded { trace, .. } => trace.mean_bytes(),
        }
    }

    /// When the next frame is sent.
    pub(super) fn next_at(&self) -> Duration {
        self.next
    }

    /// Makes the next frame a key frame.
    pub(super) fn want_key(&mut self) {
        self.key_wanted = true;
    }

    /// Encodes the next frame.
    pub(super) fn code(&mut self, random: &mut Random) -> Coded {
        let asked = self.keys_every > 0 && self.number.is_multiple_of(self.keys_every);
        let key = self.number == 0 || asked || std::mem::take(&mut self.key_wanted);
        let golden = self.number.is_multiple_of(GOLDEN_EVERY);
        self.number += 1;
        let at = self.next;
        match &mut self.of {
            Frames::MadeUp { every, bytes } => {
                self.next += *every;
                // Most frames are small, some large.
                let varied = *bytes * (0.4 + 1.2 * random.share() * random.share() * 2.0);
                let tier = match (key, golden) {
                    (true, _) => Tier::Key,
                    (_, true) => Tier::Golden,
                    _ => Tier::Normal,
                };
                let bytes = if key { KEY * *bytes } else { varied };
                Coded { at, bytes: bytes as u32, tier, worth: None }
            }
            Frames::Recorded { trace, place, mean_gain_db } => {
                // A key frame is the trace's first one, wherever it is asked for.
                let of = if key { 0 } else { *place };
                let frame = trace.frames()[of];
                self.next += trace.every(*place);
                if !key {
                    *place = if *place + 1 < trace.frames().len() { *place + 1 } else { 1 };
                }
                let worth = frame.gain_db.zip(*mean_gain_db).map(|(gain, mean)| gain / mean);
                Coded { at, bytes: frame.bytes, tier: frame.tier, worth }
            }
        }
    }
}
