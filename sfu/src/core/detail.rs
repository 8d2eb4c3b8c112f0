//! The detail stream of a track: a few full-size frames a second of the same camera, handed on as anchors as they are.
//!
//! Source: seed 001 (DDS: a second stream where the first one is not enough). The publisher's browser codes them as one
//! VP9 sequence; each becomes an anchor of codec [`Vp9Pictures`](AnchorCodecId::Vp9Pictures) at the place of
//! its camera frame in the low layer. Nothing is decoded here.
//!
//! Frames rest on those before, so a subscriber that misses one needs a key frame. What has come since the last key frame is
//! kept while it is small, and given to whoever joins; otherwise the publisher is asked for a key frame, one for all and seldom:
//! at the bit rate of a detail stream it takes seconds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use str0m::media::Mid;
use windlass_hybrid::anchor::stream::{Gain, Prediction, StreamHeader};
use windlass_media::{
    AnchorCodecId, DetailKnobs, Layer, PublisherKnobs, StreamId, TapFrame, TapInput,
};

use super::rewriter::PacketIn;
use super::tap::Tap;
use super::vp9::key_frame_size;

/// Most bytes since the last key frame that are kept for those who join.
const KEPT_BYTES: usize = 32 * 1024;
/// The least time between two requests for key frames on behalf of subscribers.
const KEY_INTERVAL: Duration = Duration::from_secs(4);
/// How many times what it was told a publisher may send: browsers do not hit their bit rates exactly, and key frames
/// come on top.
const TOLERANCE: f64 = 4.0;
/// Bytes that it may send at once.
const BURST: f64 = 64.0 * 1024.0;
/// The stream goes on for so long after the last subscriber that has a use for it.
const LINGER: Duration = Duration::from_secs(3);

/// So many pictures in a row of a size that no subscriber can use, and nothing is asked for a while: browsers round the sides of
/// layers, and twice such a side need not be a side of the camera's.
const MISFITS: u32 = 5;
/// How long that is, as long as the low layer keeps its size.
const REST: Duration = Duration::from_secs(60);

/// What is known of pictures that do not fit the low layer.
#[derive(Debug, Clone, Copy, Default)]
struct Misfits {
    low: (u16, u16),
    count: u32,
    rests: Option<Instant>,
}

/// A frame of the stream as anchors carry it.
#[derive(Debug, Clone)]
pub struct DetailFrame {
    /// The stream's own RTP timestamp.
    pub timestamp: u32,
    /// When its last packet came.
    pub arrival: Instant,
    /// Width and height of its picture.
    pub size: (u16, u16),
    /// The anchor's payload.
    pub payload: Bytes,
}

/// See the module.
pub struct DetailStream {
    /// The m-line that it comes on.
    pub mid: Mid,
    /// What the publisher was told last.
    pub told: Option<DetailKnobs>,
    tap: Tap,
    run: u16,
    sequence: u16,
    size: Option<(u16, u16)>,
    /// All frames since the last key frame; empty once they are too many bytes.
    kept: Vec<DetailFrame>,
    /// Bytes that the publisher may send now, and since when that is so.
    allowance: (f64, Option<Instant>),
    /// Frames beyond that, which nobody is given.
    pub excess: u64,
    key_wanted: bool,
    key_asked: Option<Instant>,
    /// What the controller wants of the publisher; `None` before it has said anything.
    pub adapted: Option<PublisherKnobs>,
    /// Whether the quarter layer has been told to send next to nothing, as nobody holds it.
    pub standby: bool,
    /// Size of its pictures over that of the low layer they fit.
    pub scale: u16,
    misfits: Misfits,
    useful: Option<Instant>,
}

/// A size `scale` times as large.
pub fn enlarged((width, height): (u16, u16), scale: u16) -> (u16, u16) {
    (width.saturating_mul(scale), height.saturating_mul(scale))
}

impl DetailStream {
    /// A stream that has not begun, of pictures `scale` times as large as the low layer's. `run` tells it from others of the track
    /// before.
    pub fn new(
        stream: StreamId,
        mid: Mid,
        run: u16,
        scale: u16,
        frame_bytes: usize,
    ) -> DetailStream {
        DetailStream {
            mid,
            told: None,
            tap: Tap::new(stream, Layer::F, 0, frame_bytes),
            run,
            sequence: 0,
            size: None,
            kept: Vec::new(),
            allowance: (BURST, None),
            excess: 0,
            key_wanted: false,
            key_asked: None,
            adapted: None,
            standby: false,
            scale,
            misfits: Misfits::default(),
            useful: None,
        }
    }

    /// Its pictures are to have another size over that of the low layer; whether that is new.
    pub fn rescale(&mut self, scale: u16) -> bool {
        let new = self.scale != scale;
        if new {
            self.scale = scale;
            self.misfits = Misfits::default();
            self.kept.clear();
        }
        new
    }

    /// Takes a packet.
    pub fn push(&mut self, packet: PacketIn, payload: &Arc<[u8]>) {
        self.tap.push(packet, payload);
    }

    /// When [`DetailStream::advance`] is due, while a packet is missing.
    pub fn timeout(&self) -> Option<Instant> {
        self.tap.timeout()
    }

    /// Gives up on what has been missing for too long.
    pub fn advance(&mut self, now: Instant) {
        self.tap.advance(now);
    }

    /// Gaps since this was last asked.
    pub fn take_gaps(&mut self) -> u64 {
        std::mem::take(&mut self.tap.gaps)
    }

    /// The next frame that has been put together.
    pub fn poll(&mut self) -> Option<DetailFrame> {
        loop {
            if let TapInput::Frame(frame) = self.tap.poll()?
                && let Some(frame) = self.wrap(&frame)
            {
                if self.affords(&frame) {
                    return Some(frame);
                }
                // Those after it rest on it: subscribers find out, and a key frame mends it.
                self.excess += 1;
                self.kept.clear();
            }
        }
    }

    /// Whether a frame is within what the publisher may send: other publishers' anchors share subscribers' bandwidth.
    fn affords(&mut self, frame: &DetailFrame) -> bool {
        let rate = self.told.map_or(0.0, |told| told.kbps * 125.0 * TOLERANCE);
        let (bytes, since) = self.allowance;
        let elapsed =
            since.map_or(0.0, |at| frame.arrival.saturating_duration_since(at).as_secs_f64());
        let allowed = (bytes + rate * elapsed).min(BURST) - frame.payload.len() as f64;
        let affords = allowed >= 0.0;
        let left = if affords { allowed } else { allowed + frame.payload.len() as f64 };
        self.allowance = (left, Some(frame.arrival));
        affords
    }

    fn wrap(&mut self, frame: &TapFrame) -> Option<DetailFrame> {
        let before = self.sequence;
        self.sequence = before.wrapping_add(1);
        if frame.key {
            self.size = key_frame_size(&frame.data);
            self.key_wanted = false;
            self.kept.clear();
        }
        let (prediction, refers_to) = if frame.key {
            (Prediction::Key, self.sequence)
        } else {
            (Prediction::FromLast, before)
        };
        let (sequence, run) = (self.sequence, self.run);
        let header = StreamHeader { prediction, gain: Gain::ONE, sequence, refers_to, run };
        let payload = [&header.to_bytes()[..], &frame.data].concat();
        let wrapped = DetailFrame {
            timestamp: frame.rtp_timestamp,
            arrival: frame.arrival,
            size: self.size?,
            payload: payload.into(),
        };
        let bytes: usize = self.kept.iter().map(|f| f.payload.len()).sum();
        if (frame.key || !self.kept.is_empty()) && bytes + wrapped.payload.len() <= KEPT_BYTES {
            self.kept.push(wrapped.clone());
        } else {
            self.kept.clear();
        }
        Some(wrapped)
    }

    /// All frames since the last key frame, for somebody who has none; empty where that would be too much.
    pub fn kept(&self) -> &[DetailFrame] {
        &self.kept
    }

    /// Somebody misses a frame that others rest on.
    pub fn want_key(&mut self) {
        self.key_wanted = true;
    }

    /// Whether to ask the publisher for a key frame now.
    pub fn asks_for_key(&mut self, now: Instant) -> bool {
        if self.told.is_none() {
            return false;
        }
        let rested =
            self.key_asked.is_none_or(|at| now.saturating_duration_since(at) >= KEY_INTERVAL);
        let asks = rested && (self.key_wanted || self.tap.asks_for_key(now));
        if asks {
            self.key_asked = Some(now);
        }
        asks
    }

    /// Takes note of whether a frame's picture has the size that goes with a low layer of size `low`.
    pub fn compare(&mut self, now: Instant, size: (u16, u16), low: Option<(u16, u16)>) {
        let Some(low) = low else { return };
        if self.misfits.low != low {
            self.misfits = Misfits { low, ..Misfits::default() };
        }
        if size == enlarged(low, self.scale) {
            self.misfits.count = 0;
        } else {
            self.misfits.count += 1;
            if self.misfits.count >= MISFITS {
                self.misfits = Misfits { low, count: 0, rests: Some(now + REST) };
            }
        }
    }

    /// Whether its pictures are of no use for a low layer of size `low`, as they had another size until now.
    pub fn misfits(&self, now: Instant, low: Option<(u16, u16)>) -> bool {
        low == Some(self.misfits.low) && self.misfits.rests.is_some_and(|until| now < until)
    }

    /// Lets the publisher be told to send by `knobs` while somebody has a use for it, and nothing a while after; whether
    /// [`told`](Self::told) has changed.
    pub fn tune(&mut self, now: Instant, knobs: Option<DetailKnobs>) -> bool {
        if knobs.is_some() {
            self.useful = Some(now);
        }
        let lingers = self.useful.is_some_and(|at| now.saturating_duration_since(at) < LINGER);
        let before = self.told;
        self.told = knobs.or(self.told.filter(|_| lingers));
        self.told != before
    }
}

/// The codec of its anchors.
pub fn codec() -> u8 {
    AnchorCodecId::Vp9Pictures.id()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOBS: DetailKnobs = DetailKnobs { kbps: 50.0, fps: 1.0 };

    fn stream() -> DetailStream {
        DetailStream::new(StreamId(1), Mid::from("1"), 7, 2, 1 << 20)
    }

    /// A frame of `bytes` bytes; a key frame begins with the header of a picture of 640 × 360.
    fn frame(key: bool, bytes: usize) -> TapFrame {
        let mut data = vec![0x82, 0x49, 0x83, 0x42];
        data.extend(((0x027f_u64 << 16 | 0x0167) << 28 | 0x2000_0000_0000_0000).to_be_bytes());
        data.resize(bytes.max(data.len()), 0);
        TapFrame {
            owner: windlass_media::Owner::alone(StreamId(1)),
            stream: StreamId(1),
            epoch: windlass_media::Epoch(0),
            rtp_timestamp: 90_000,
            arrival: Instant::now(),
            key,
            most_scale: 2,
            policy: windlass_media::AnchorPolicy::default(),
            data: data.into(),
        }
    }

    fn header(frame: &DetailFrame) -> StreamHeader {
        StreamHeader::parse(&frame.payload).expect("our own").0
    }

    #[test]
    fn each_frame_rests_on_the_one_before_and_a_key_frame_on_none() {
        let mut stream = stream();
        let frames: Vec<_> = [true, false, false, true]
            .map(|key| stream.wrap(&frame(key, 500)))
            .into_iter()
            .flatten()
            .collect();
        let rests: Vec<_> =
            frames.iter().map(header).map(|h| h.sequence.wrapping_sub(h.refers_to)).collect();
        assert_eq!(rests, [0, 1, 1, 0]);
        assert!(frames.iter().all(|f| f.size == (640, 360) && header(f).run == 7));
    }

    #[test]
    fn what_came_since_the_key_frame_is_kept_while_it_is_small() {
        let mut stream = stream();
        stream.wrap(&frame(true, 10_000));
        stream.wrap(&frame(false, 10_000));
        assert_eq!(stream.kept().len(), 2);
        stream.wrap(&frame(false, 20_000));
        assert!(stream.kept().is_empty(), "too much");
        stream.wrap(&frame(false, 100));
        assert!(stream.kept().is_empty(), "a part of it is of no use");
        stream.wrap(&frame(true, 100));
        assert_eq!(stream.kept().len(), 1);
    }

    #[test]
    fn key_frames_are_asked_for_while_the_stream_runs_and_seldom() {
        let (mut stream, now) = (stream(), Instant::now());
        stream.want_key();
        assert!(!stream.asks_for_key(now), "it is paused");
        stream.told = Some(KNOBS);
        assert!(stream.asks_for_key(now));
        stream.want_key();
        assert!(!stream.asks_for_key(now + KEY_INTERVAL / 2));
        assert!(stream.asks_for_key(now + KEY_INTERVAL));
    }

    #[test]
    fn a_publisher_that_sends_much_more_than_it_was_told_is_cut_off() {
        let mut stream = stream();
        stream.told = Some(KNOBS);
        let begin = Instant::now();
        let mut passed = 0;
        for n in 0..1000 {
            let arrival = begin + Duration::from_millis(10) * n;
            let frame = TapFrame { arrival, ..frame(true, 10_000) };
            let frame = stream.wrap(&frame).expect("a frame");
            passed += if stream.affords(&frame) { frame.payload.len() } else { 0 };
        }
        // 10 s of 50 kbit/s.
        let most = BURST + TOLERANCE * 62_500.0;
        assert!((0.8 * most..=most).contains(&(passed as f64)), "{passed} bytes");
    }

    #[test]
    fn pictures_that_fit_no_low_layer_are_not_asked_for_until_that_changes() {
        let (mut stream, now) = (stream(), Instant::now());
        let low = Some((240, 134));
        for _ in 0..MISFITS - 1 {
            stream.compare(now, (480, 270), low);
        }
        stream.compare(now, (480, 268), low);
        assert!(!stream.misfits(now, low), "one that fits begins the count anew");
        for _ in 0..MISFITS {
            stream.compare(now, (480, 270), low);
        }
        assert!(stream.misfits(now, low));
        assert!(!stream.misfits(now, Some((240, 135))), "another size is another matter");
        assert!(!stream.misfits(now + REST, low), "it is tried again");
    }

    #[test]
    fn with_another_scale_pictures_of_another_size_fit() {
        let (mut stream, now) = (stream(), Instant::now());
        let low = Some((160, 90));
        for _ in 0..MISFITS {
            stream.compare(now, (640, 360), low);
        }
        stream.wrap(&frame(true, 500));
        assert!(stream.misfits(now, low) && !stream.rescale(2));
        assert!(stream.rescale(4), "it is new");
        assert!(!stream.misfits(now, low) && stream.kept().is_empty());
        for _ in 0..MISFITS {
            stream.compare(now, (640, 360), low);
        }
        assert!(!stream.misfits(now, low));
    }

    #[test]
    fn it_goes_on_for_a_while_after_its_last_use() {
        let (mut stream, now) = (stream(), Instant::now());
        assert!(!stream.tune(now, None));
        assert!(stream.tune(now, Some(KNOBS)) && stream.told == Some(KNOBS));
        assert!(!stream.tune(now, Some(KNOBS)));
        assert!(!stream.tune(now + LINGER / 2, None));
        assert!(stream.tune(now + LINGER, None) && stream.told.is_none());
    }
}
