//! The thread of one rendition.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_transcode::{CallError, CallPicture, CallTranscoder, Effort};
use windlass_types::recording::RecordInput;
use windlass_types::relay::RelayedPacket;
use windlass_types::rendition::RendererAnswer;
use windlass_types::{Layer, TrackId, VideoCodec};

use crate::Shared;
use crate::counts::count;
use crate::pace::Pace;
use crate::queue::{Next, Queue};

/// Age of a frame beyond which it is decoded but not encoded, as later ones are waiting: three of 30 a second.
const MAX_AGE: Duration = Duration::from_millis(100);
/// Time without a frame after which the encoder gives out what it holds back.
const MAX_HELD: Duration = Duration::from_millis(100);
/// Time after which a key frame of the track that has not come is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// Priority of the threads below those of media, as a nice value.
const NICE: i32 = 5;

/// Makes a rendition until its queue ends.
pub(crate) fn run(shared: &Arc<Shared>, rendition: TrackId, queue: &Queue) {
    lower_priority();
    let pictures = CallTranscoder::new(shared.config);
    let pace = Pace::default();
    let mut thread =
        RenditionThread { shared, rendition, pictures, seq: 0, pace, waits: true, asked: None };
    loop {
        let wait = thread.pictures.holds().then_some(MAX_HELD);
        let step = match queue.take(wait) {
            Next::Ended => return,
            Next::Nothing => catch_unwind(AssertUnwindSafe(|| thread.repeat())),
            Next::Step { input, key_frame } => {
                catch_unwind(AssertUnwindSafe(|| thread.take(input, key_frame)))
            }
        };
        if step.is_err() {
            count(&shared.counters.faults);
            tracing::error!(%rendition, "a rendition panicked: it goes on with a key frame; please report this as a bug");
            thread.restart();
        }
    }
}

struct RenditionThread<'a> {
    shared: &'a Shared,
    rendition: TrackId,
    pictures: CallTranscoder,
    /// Number of the next packet.
    seq: u64,
    pace: Pace,
    /// Whether frames before the next key frame cannot be decoded.
    waits: bool,
    /// When a key frame of the track was last asked for.
    asked: Option<Instant>,
}

impl RenditionThread<'_> {
    fn take(&mut self, input: RecordInput, key_frame: bool) {
        if key_frame {
            self.pictures.request_key_frame();
        }
        let frame = match input {
            RecordInput::Video(frame) => frame,
            RecordInput::Anchor(anchor) => return self.pictures.push_anchor(&anchor),
            _ => return,
        };
        self.waits &= !frame.key;
        if self.waits {
            if self.asked.is_none_or(|asked| asked.elapsed() > ASK_AGAIN) {
                self.ask();
            }
            return;
        }
        let late = frame.time.arrival.elapsed() > MAX_AGE;
        let network = self.pace.begin(frame.time.arrival);
        // What is not shown needs no network.
        let effort = Effort { network: network.filter(|_| !late), encode: !late };
        match self.pictures.push_frame(&frame, effort, Instant::now) {
            Ok((pictures, work)) => {
                self.pace.end(effort, work);
                if late && work.encode.is_none() {
                    count(&self.shared.counters.late);
                }
                self.send_all(pictures);
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Has the encoder give out what it holds back, where no frame has come.
    fn repeat(&mut self) {
        match self.pictures.repeat() {
            Ok(pictures) => self.send_all(pictures),
            Err(error) => self.fail(&error),
        }
    }

    fn fail(&mut self, error: &CallError) {
        count(&self.shared.counters.failed);
        tracing::debug!(rendition = %self.rendition, %error, "a frame of a rendition has no picture");
        self.restart();
    }

    /// Begins anew, with a key frame of the track.
    fn restart(&mut self) {
        self.pictures.restart();
        self.waits = true;
        self.ask();
    }

    fn ask(&mut self) {
        self.asked = Some(Instant::now());
        self.shared.answer(RendererAnswer::KeyFrame(self.rendition));
    }

    fn send_all(&mut self, pictures: Vec<CallPicture>) {
        for picture in pictures {
            self.send(picture);
        }
    }

    fn send(&mut self, CallPicture { timestamp, payloads }: CallPicture) {
        count(&self.shared.counters.pictures);
        let last = payloads.len().saturating_sub(1);
        let mut lost = false;
        for (at, payload) in payloads.into_iter().enumerate() {
            let packet = RelayedPacket {
                track: self.rendition,
                layer: Some(Layer::F),
                seq: self.seq,
                timestamp,
                marker: at == last,
                level: None,
                voice: None,
                blocks: None,
                codec: VideoCodec::Av1,
                frame: None,
                payload,
            };
            self.seq += 1;
            lost |= !self.shared.answer(RendererAnswer::Packet(packet));
        }
        if lost {
            // Nobody has the packet to repair the picture with.
            self.pictures.request_key_frame();
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
