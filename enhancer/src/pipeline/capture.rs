//! Decodes the publisher's own pictures at HR size on a thread of their own. They are kept until their low frame is
//! chosen.
//!
//! A chosen frame whose picture is here becomes a captured anchor, which needs no super-resolution. A stream without
//! such pictures, or after a lost one, goes on with enhanced anchors. A frame waits for a picture that is on its way
//! (`coming`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender};
use windlass_types::{CapturedFrame, EnhancerOutput, StreamId};
use windlass_vp9::SizeLimit;

use super::Timing;
use super::captures::Captures;
use super::clock::Clock;
use super::decode::{
    ASK_EVERY, DecodeFn, DecoderFactory, FIRST_PIXELS, decode_by, leads_nowhere, pixels_of,
};
use super::slot_time::SlotTime;
use super::slots::{Slot, Slots, Stage};
use crate::stats::{Stats, count};

/// Entry of the queue to a capture decoder.
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
    pub clock: Clock,
    pub slots: Arc<Slots>,
    pub slot_time: Arc<SlotTime>,
    pub stats: Arc<Stats>,
    pub factory: DecoderFactory,
    pub limit: SizeLimit,
}

struct State {
    decode: DecodeFn,
    /// Whether nothing can be decoded before the next key frame.
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
        self.slot_time.high_ended();
    }

    fn step(&self, state: &mut State, packet: CapturePacket) {
        let counters = &self.stats.counters;
        let CapturePacket::Frame(frame) = packet else {
            self.gaps.fetch_sub(1, Ordering::Relaxed);
            return self.wait_for_key(state);
        };
        let deadline = self.timing.deadline_of(frame.arrival);
        if leads_nowhere(&self.gaps, deadline, self.clock.now()) {
            return self.wait_for_key(state);
        }
        if state.waiting && !frame.key {
            return self.wait_for_key(state);
        }
        let by = decode_by(self.timing, frame.arrival);
        // Held to the end.
        let mut slot = self.slots.take(Stage::Capture, state.pixels, by, self.stream.0.into());
        let _done = self.slot_time.high(&self.clock, slot.as_ref().map(Slot::given));
        match (state.decode)(&frame.data) {
            Ok(decoded) => {
                count(&counters.captured_decoded);
                (state.waiting, state.asked) = (false, None);
                for frame in &decoded {
                    self.slot_time.decoded_high(pixels_of(&frame.info));
                }
                let shown = decoded.iter().rev().find(|d| d.info.shown);
                if let Some((shown, slot)) = shown.zip(slot.as_mut()) {
                    state.pixels = pixels_of(&shown.info);
                    slot.did(state.pixels);
                }
                if let Some((shown, at)) = shown.zip(frame.low_timestamp) {
                    self.captures.put(at, shown.picture.clone(), self.clock.now());
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
        let now = self.clock.now();
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
