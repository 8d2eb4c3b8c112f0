//! The thread of one rendered track.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_render::{Effort, RenderedPicture, Rendition};
use windlass_types::recording::RecordInput;
use windlass_types::relay::RelayedPacket;
use windlass_types::rendition::Rendered;
use windlass_types::{Layer, TrackId, VideoCodec};

use crate::Shared;
use crate::counts::count;
use crate::pace::Pace;
use crate::queue::{Queue, Taken};

/// Age of a frame beyond which it is decoded but not encoded: later ones are waiting.
const MAX_AGE: Duration = Duration::from_millis(100);
/// Priority of the threads below those of media, as a nice value.
const NICE: i32 = 5;

/// Makes the rendition of a track until its queue ends.
pub(crate) fn run(shared: &Arc<Shared>, track: TrackId, queue: &Queue) {
    lower_priority();
    let rendition = Rendition::new(shared.config);
    let pace = Pace::default();
    let mut renders = Renders { shared, track, rendition, seq: 0, pace, waits: true };
    while let Some(taken) = queue.take() {
        if catch_unwind(AssertUnwindSafe(|| renders.take(taken))).is_err() {
            count(&shared.counters.faults);
            tracing::error!(%track, "a rendition panicked: it goes on with a key frame; please report this as a bug");
            renders.restart();
        }
    }
}

struct Renders<'a> {
    shared: &'a Shared,
    track: TrackId,
    rendition: Rendition,
    /// Number of the next packet.
    seq: u64,
    pace: Pace,
    /// Whether frames before the next key frame cannot be decoded.
    waits: bool,
}

impl Renders<'_> {
    fn take(&mut self, Taken { input, key_frame }: Taken) {
        if key_frame {
            self.rendition.request_key_frame();
        }
        let frame = match input {
            RecordInput::Video(frame) => frame,
            RecordInput::Anchor(anchor) => return self.rendition.push_anchor(&anchor),
            _ => return,
        };
        self.waits &= !frame.key;
        if self.waits {
            return;
        }
        let late = frame.time.arrival.elapsed() > MAX_AGE;
        let network = self.pace.begin(frame.time.arrival);
        // What is not shown needs no network.
        let effort = Effort { network: network.filter(|_| !late), encode: !late };
        match self.rendition.push_frame(&frame, effort, Instant::now) {
            Ok((pictures, work)) => {
                self.pace.end(effort.network, work);
                if work.encode.is_none() {
                    count(&self.shared.counters.late);
                }
                pictures.into_iter().for_each(|picture| self.send(picture));
            }
            Err(error) => {
                count(&self.shared.counters.failed);
                tracing::debug!(track = %self.track, %error, "a frame of a rendition has no picture");
                self.restart();
            }
        }
    }

    /// Begins anew, with a key frame of the track.
    fn restart(&mut self) {
        self.rendition = Rendition::new(self.shared.config);
        self.waits = true;
        self.shared.answer(Rendered::KeyFrame(self.track));
    }

    fn send(&mut self, RenderedPicture { timestamp, payloads }: RenderedPicture) {
        count(&self.shared.counters.pictures);
        let last = payloads.len().saturating_sub(1);
        let mut lost = false;
        for (at, payload) in payloads.into_iter().enumerate() {
            let packet = RelayedPacket {
                track: self.track,
                layer: Some(Layer::F),
                seq: self.seq,
                timestamp,
                marker: at == last,
                level: None,
                voice: None,
                blocks: None,
                codec: VideoCodec::Av1,
                payload,
            };
            self.seq += 1;
            lost |= !self.shared.answer(Rendered::Packet(packet));
        }
        if lost {
            // Nobody has the packet to repair the picture with.
            self.rendition.request_key_frame();
        }
    }
}

/// Lets media go before the calling thread, where threads have a priority of their own.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE) {
        tracing::debug!(%error, "the thread keeps its priority");
    }
}
