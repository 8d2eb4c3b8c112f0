//! The publisher's own pictures at HR size: decoded on a thread of their own, kept until their low frame is chosen.
//!
//! A chosen frame whose picture is here becomes a captured anchor, which needs no super-resolution. A stream
//! that has none of them, or lost one, goes on with enhanced anchors. A frame waits for a picture that is on its way (`coming`).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use parking_lot::Mutex;
use windlass_types::{CapturedFrame, EnhancerOutput, StreamId};
use windlass_vp9::{FrameBuffer, SizeLimit};

use super::Timing;
use super::decode::{
    ASK_EVERY, DecodeFn, DecoderFactory, FIRST_PIXELS, decode_by, leads_nowhere, pixels_of,
};
use super::slots::{Slot, Slots, Stage};
use super::work::Work;
use crate::stats::{Stats, count};

/// Maximum pictures kept per stream: two intervals at 60 frames per second.
const KEPT: usize = 8;
/// The same where frames are held before they are chosen: one second at 30 frames per second.
const KEPT_LONG: usize = 32;

/// Time without a picture after which captured pictures count as stopped.
const RECENT: Duration = Duration::from_millis(500);

/// What a stream's publisher gives of its own pixels.
#[derive(Debug, Default)]
pub(super) struct Captures {
    /// By the RTP timestamp of the low frame that shows the same.
    pictures: Mutex<VecDeque<(u32, Arc<FrameBuffer>)>>,
    /// Whether it can be asked for regions.
    pub regions: AtomicBool,
    /// Whether its frames are held before they are chosen.
    pub held: AtomicBool,
    /// When the last one came, while they are being decoded.
    last: Mutex<Option<Instant>>,
}

impl Captures {
    /// Keeps a picture; the oldest goes for it.
    pub(super) fn put(&self, low_timestamp: u32, picture: Arc<FrameBuffer>, now: Instant) {
        let max = if self.held.load(Ordering::Relaxed) { KEPT_LONG } else { KEPT };
        let mut pictures = self.pictures.lock();
        while pictures.len() >= max {
            pictures.pop_front();
        }
        pictures.push_back((low_timestamp, picture));
        *self.last.lock() = Some(now);
    }

    /// The picture of a low frame, if it is here.
    pub(super) fn get(&self, low_timestamp: u32) -> Option<Arc<FrameBuffer>> {
        let pictures = self.pictures.lock();
        pictures.iter().find(|(at, _)| *at == low_timestamp).map(|(_, picture)| picture.clone())
    }

    /// Whether the picture of a low frame may still come: they do so in order.
    pub(super) fn comes(&self, low_timestamp: u32, now: Instant) -> bool {
        let pictures = self.pictures.lock();
        let later = |newest: u32| low_timestamp.wrapping_sub(newest).cast_signed() > 0;
        let recent = |last: Instant| now.saturating_duration_since(last) <= RECENT;
        self.last.lock().is_some_and(recent) && pictures.back().is_some_and(|(at, _)| later(*at))
    }

    /// Says that none comes for now.
    fn ebb(&self) {
        *self.last.lock() = None;
    }

    fn clear(&self) {
        self.ebb();
        self.pictures.lock().clear();
    }
}

/// What a capture's queue holds.
#[derive(Debug)]
pub(super) enum CapturePacket {
    Frame(CapturedFrame),
    Gap,
}

/// Decodes a stream's pictures at HR size.
pub(super) struct CaptureDecoder {
    pub stream: StreamId,
    pub packets: Receiver<CapturePacket>,
    pub stop: Arc<AtomicBool>,
    pub gaps: Arc<AtomicUsize>,
    pub captures: Arc<Captures>,
    pub output: Sender<EnhancerOutput>,
    pub timing: Timing,
    pub slots: Arc<Slots>,
    pub work: Arc<Work>,
    pub stats: Arc<Stats>,
    pub factory: DecoderFactory,
    pub limit: SizeLimit,
}

struct State {
    decode: DecodeFn,
    /// Nothing can be decoded before the next key frame.
    waiting: bool,
    asked: Option<Instant>,
    /// Pixels of the last picture.
    pixels: u64,
}

impl CaptureDecoder {
    /// Runs until it is stopped.
    pub(super) fn run(self) {
        let mut state = State {
            decode: (self.factory)(self.limit),
            waiting: true,
            asked: None,
            pixels: FIRST_PIXELS,
        };
        for packet in &self.packets {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            if catch_unwind(AssertUnwindSafe(|| self.step(&mut state, packet))).is_err() {
                count(&self.stats.counters.panics);
                state.decode = (self.factory)(self.limit);
                self.wait_for_key(&mut state);
            }
        }
        self.captures.clear();
        self.work.without_larger();
    }

    fn step(&self, state: &mut State, packet: CapturePacket) {
        let counters = &self.stats.counters;
        let CapturePacket::Frame(frame) = packet else {
            self.gaps.fetch_sub(1, Ordering::Relaxed);
            return self.wait_for_key(state);
        };
        let deadline = self.timing.deadline_of(frame.arrival);
        if leads_nowhere(&self.gaps, deadline) {
            return self.wait_for_key(state);
        }
        if state.waiting && !frame.key {
            return self.wait_for_key(state);
        }
        let by = decode_by(self.timing, frame.arrival);
        // Held to the end.
        let mut slot = self.slots.take(Stage::Capture, state.pixels, by, self.stream.0.into());
        let _done = self.work.picture(slot.as_ref().map(Slot::given));
        match (state.decode)(&frame.data) {
            Ok(decoded) => {
                count(&counters.captured_decoded);
                (state.waiting, state.asked) = (false, None);
                for frame in &decoded {
                    self.work.made_larger(pixels_of(&frame.info));
                }
                let shown = decoded.iter().rev().find(|d| d.info.shown);
                if let Some((shown, slot)) = shown.zip(slot.as_mut()) {
                    state.pixels = pixels_of(&shown.info);
                    slot.did(state.pixels);
                }
                if let Some((shown, at)) = shown.zip(frame.low_timestamp) {
                    self.captures.put(at, shown.picture.clone(), Instant::now());
                }
            }
            Err(error) => {
                tracing::debug!(stream = self.stream.0, %error, "captured frame not decoded");
                count(&counters.captured_decode_errors);
                self.wait_for_key(state);
            }
        }
    }

    fn wait_for_key(&self, state: &mut State) {
        state.waiting = true;
        self.captures.ebb();
        let now = Instant::now();
        if state.asked.is_some_and(|asked| now.saturating_duration_since(asked) < ASK_EVERY) {
            return;
        }
        state.asked = Some(now);
        let wanted = EnhancerOutput::NeedCapturedKeyFrame { stream: self.stream };
        match self.output.try_send(wanted) {
            Ok(()) => count(&self.stats.counters.key_requests),
            Err(_) => count(&self.stats.counters.dropped_output_queue),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_found_by_its_low_frame_while_it_is_kept() {
        let captures = Captures::default();
        let picture = Arc::new(FrameBuffer::grey(64, 64));
        for at in 0..=KEPT as u32 {
            captures.put(at, picture.clone(), Instant::now());
        }
        assert!(captures.get(0).is_none(), "the oldest went");
        assert!(captures.get(1).is_some() && captures.get(KEPT as u32).is_some());
    }

    #[test]
    fn a_picture_may_come_until_a_later_one_has_or_none_does() {
        let captures = Captures::default();
        let now = Instant::now();
        assert!(!captures.comes(5, now), "there are none");
        captures.put(u32::MAX - 1, Arc::new(FrameBuffer::grey(64, 64)), now);
        assert!(captures.comes(5, now), "timestamps wrap around");
        assert!(!captures.comes(u32::MAX - 1, now) && !captures.comes(u32::MAX - 9, now));
        assert!(!captures.comes(5, now + RECENT * 2), "they have ceased");
        captures.ebb();
        assert!(!captures.comes(5, now), "the next key frame is awaited");
    }
}
