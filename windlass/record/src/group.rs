//! The media of a participant that go into one file: a camera and a microphone, or a screen and its sound.
//!
//! A file begins when each of its tracks has a sender report, or after [`REPORT_WAIT`]. Frames wait until then, and are
//! then placed in time. Later frames wait for [`HOLD`], so that both tracks come into one order and late packets find
//! their place. A track that comes later is not in the file's head, so another file begins, with a key frame.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use windlass_types::recording::{RecordedFrame, RecordedPacket, RecordedTime};
use windlass_types::{Layer, Size, TrackId};

use crate::clock::{SenderClock, Timeline};
use crate::webm::{Shape, Slot};

/// Maximum time that a file waits for sender reports, in µs. Those of audio come every five seconds.
const REPORT_WAIT: i64 = 4_000_000;
/// Maximum time that a file waits for media of a published track, in µs.
const TRACK_WAIT: i64 = 1_000_000;
/// Maximum bytes that wait for a file to begin.
const MAX_PENDING: usize = 8 << 20;
/// Time that frames wait for earlier ones, in µs.
const HOLD: i64 = 500_000;
/// Minimum time between two requests for a key frame, in µs.
const KEY_FRAME_INTERVAL: i64 = 1_000_000;
/// Number of packets whose time is remembered, to recognise duplicates.
const RECENT: usize = 64;

/// A frame of video, or a packet of audio.
#[derive(Debug, Clone)]
pub(crate) struct Media {
    slot: Slot,
    /// Layer whose timeline the media belongs to; `None` for audio.
    layer: Option<Layer>,
    time: RecordedTime,
    key: bool,
    size: Option<Size>,
    data: Bytes,
}

impl From<RecordedFrame> for Media {
    fn from(frame: RecordedFrame) -> Media {
        let RecordedFrame { layer, time, key, size, data, .. } = frame;
        let size = (size.pixels() > 0).then_some(size);
        Media { slot: Slot::Video, layer: Some(layer), time, key, size, data }
    }
}

impl From<RecordedPacket> for Media {
    fn from(packet: RecordedPacket) -> Media {
        let RecordedPacket { time, data, .. } = packet;
        Media { slot: Slot::Audio, layer: None, time, key: true, size: None, data }
    }
}

/// What tells a video frame from the others of its track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameId {
    pub(crate) layer: Layer,
    pub(crate) rtp: u32,
}

/// A step in writing the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Begin a file whose first frame was made at time `at`, in µs.
    Open { shape: Shape, at: i64 },
    /// Write a frame at its time in the file.
    Write { slot: Slot, at: Duration, key: bool, data: Bytes, frame: Option<FrameId> },
    /// End the file.
    Close,
    /// Ask for a key frame of the video track.
    KeyFrame(TrackId),
}

/// A track of the group.
#[derive(Debug, Default)]
struct Track {
    id: Option<TrackId>,
    timelines: HashMap<Option<Layer>, Timeline>,
    /// Ticks of the last audio packets.
    recent: VecDeque<i64>,
    /// Time of the last video frame, in µs.
    last: i64,
    /// Whether the track's media came with a sender report.
    reported: bool,
    /// Arrival of the track's last media; `None` before any.
    heard: Option<i64>,
}

impl Track {
    fn timeline(&mut self, layer: Option<Layer>) -> &mut Timeline {
        let rate = if layer.is_some() { 90_000 } else { 48_000 };
        self.timelines.entry(layer).or_insert_with(|| Timeline::new(rate))
    }
}

#[derive(Debug)]
struct OpenFile {
    shape: Shape,
    begins: i64,
    /// Frames that wait, by their time and a number that keeps them in order.
    waiting: BTreeMap<(i64, u64), Media>,
    /// Time up to which frames were written, in µs.
    written: i64,
}

/// Places the media of a camera and microphone, or of a screen and its sound, in one file (see the module's head).
#[derive(Debug, Default)]
pub(crate) struct Group {
    clock: SenderClock,
    video: Track,
    audio: Track,
    pending: Vec<(Media, i64)>,
    pending_bytes: usize,
    file: Option<OpenFile>,
    /// Time of the last request for a key frame; `None` before any.
    asked: Option<i64>,
    /// Number of frames so far. It orders frames of the same time.
    count: u64,
    /// Number of packets that came after later ones were written.
    pub(crate) late: u64,
}

impl Group {
    /// Whether the group has a track of the given kind.
    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.track(slot).id.is_some()
    }

    /// Adds a track to the group.
    pub(crate) fn begin(&mut self, slot: Slot, id: TrackId) {
        let track = self.track_mut(slot);
        *track = Track { id: Some(id), last: track.last, ..Track::default() };
    }

    /// Removes a track that has ended. Returns whether it was the last one.
    pub(crate) fn end(&mut self, id: TrackId) -> bool {
        for track in [&mut self.video, &mut self.audio] {
            if track.id == Some(id) {
                track.id = None;
            }
        }
        self.video.id.is_none() && self.audio.id.is_none()
    }

    fn track(&self, slot: Slot) -> &Track {
        if slot == Slot::Video { &self.video } else { &self.audio }
    }

    fn track_mut(&mut self, slot: Slot) -> &mut Track {
        if slot == Slot::Video { &mut self.video } else { &mut self.audio }
    }

    /// Takes media that arrived at `arrival`, and returns the steps that follow.
    pub(crate) fn push(&mut self, media: Media, arrival: i64) -> Vec<Step> {
        let mut steps = Vec::new();
        let track = self.track_mut(media.slot);
        track.heard = Some(arrival);
        track.reported |= media.time.report.is_some();
        let Some(file) = &self.file else {
            self.wait(media, arrival);
            self.open_if_ready(arrival, &mut steps);
            return steps;
        };
        match self.lacks(file, &media, arrival) {
            None => self.place(media, arrival, true),
            Some(Lack::Begin) => {
                self.close(&mut steps);
                self.wait(media, arrival);
                self.open_if_ready(arrival, &mut steps);
            }
            Some(Lack::KeyFrame) => {
                if self.asked.is_none_or(|asked| arrival - asked >= KEY_FRAME_INTERVAL) {
                    self.asked = Some(arrival);
                    steps.extend(self.video.id.map(Step::KeyFrame));
                }
            }
        }
        self.release(arrival - HOLD, &mut steps);
        steps
    }

    /// Returns the steps that are due at `now`.
    pub(crate) fn advance(&mut self, now: i64) -> Vec<Step> {
        let mut steps = Vec::new();
        self.open_if_ready(now, &mut steps);
        self.release(now - HOLD, &mut steps);
        steps
    }

    /// Returns the steps that write everything that waits, and end the file.
    pub(crate) fn finish(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.file.is_none() && !self.pending.is_empty() {
            self.open(&mut steps);
        }
        self.close(&mut steps);
        steps
    }

    /// What the file lacks to take the media; `None` if it can take it.
    fn lacks(&self, file: &OpenFile, media: &Media, arrival: i64) -> Option<Lack> {
        let soon = |track: &Track| track.heard.is_some_and(|heard| arrival - heard < TRACK_WAIT);
        let awaits_sound = self.audio.id.is_some() && !file.shape.audio && soon(&self.audio);
        match media.slot {
            Slot::Video if file.shape.video.is_none() || awaits_sound => {
                Some(if media.key { Lack::Begin } else { Lack::KeyFrame })
            }
            // A file with pictures begins with one.
            Slot::Audio if !file.shape.audio => {
                Some(if soon(&self.video) { Lack::KeyFrame } else { Lack::Begin })
            }
            _ => None,
        }
    }

    fn wait(&mut self, media: Media, arrival: i64) {
        self.pending_bytes += media.data.len();
        self.pending.push((media, arrival));
    }

    fn open_if_ready(&mut self, now: i64, steps: &mut Vec<Step>) {
        let Some((_, since)) = self.pending.first().filter(|_| self.file.is_none()) else { return };
        let waited = now - since;
        let all = |ready: fn(&Track) -> bool| {
            [&self.video, &self.audio].into_iter().filter(|t| t.id.is_some()).all(ready)
        };
        let complete = all(|track| track.heard.is_some() && track.reported);
        let of_those_that_come = waited >= TRACK_WAIT && all(|t| t.heard.is_none() || t.reported);
        let too_long = waited >= REPORT_WAIT || self.pending_bytes > MAX_PENDING;
        if complete || of_those_that_come || too_long {
            self.open(steps);
        }
    }

    fn open(&mut self, steps: &mut Vec<Step>) {
        let pending = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        let size = pending.iter().find(|(m, _)| m.slot == Slot::Video).and_then(|(m, _)| m.size);
        let heard = pending.iter().any(|(media, _)| media.slot == Slot::Audio);
        let shape = Shape { video: size, audio: heard || self.audio.id.is_some() };
        for (media, arrival) in &pending {
            // Those with less delay tell the offset of all.
            let mut probe = Timeline::new(if media.layer.is_some() { 90_000 } else { 48_000 });
            if media.time.report.is_some() {
                probe.place(&mut self.clock, &media.time, *arrival, false);
            }
        }
        let begins = i64::MIN;
        self.file = Some(OpenFile { shape, begins, waiting: BTreeMap::new(), written: begins });
        // Packets from before a track's first report were of the same timeline.
        let report = |layer| {
            let mut of = pending.iter().filter(move |(media, _)| media.layer == layer);
            of.find_map(|(media, _)| media.time.report)
        };
        let reports: HashMap<_, _> =
            pending.iter().map(|(media, _)| (media.layer, report(media.layer))).collect();
        for (mut media, arrival) in pending {
            media.time.report = media.time.report.or(reports[&media.layer]);
            self.place(media, arrival, true);
        }
        let Some(file) = &mut self.file else { return };
        let first = file.waiting.first_key_value().map_or(0, |(key, _)| key.0);
        (file.begins, file.written) = (first, first);
        steps.push(Step::Open { shape, at: first });
    }

    /// Puts media into the order of the file.
    fn place(&mut self, media: Media, arrival: i64, settled: bool) {
        let (clock, track) = match media.slot {
            Slot::Video => (&mut self.clock, &mut self.video),
            Slot::Audio => (&mut self.clock, &mut self.audio),
        };
        let timeline = track.timeline(media.layer);
        let mut at = timeline.place(clock, &media.time, arrival, settled);
        let Some(file) = &mut self.file else { return };
        if media.slot == Slot::Video {
            // Frames stay in the order of decoding.
            at = at.max(track.last + 1).max(file.written);
            track.last = at;
        } else {
            let ticks = timeline.ticks(media.time.rtp);
            if track.recent.contains(&ticks) {
                return;
            }
            if track.recent.len() >= RECENT {
                track.recent.pop_front();
            }
            track.recent.push_back(ticks);
            if at < file.written {
                self.late += 1;
                return;
            }
        }
        self.count += 1;
        file.waiting.insert((at, self.count), media);
    }

    /// Writes the frames up to a time.
    fn release(&mut self, until: i64, steps: &mut Vec<Step>) {
        let Some(file) = &mut self.file else { return };
        while let Some(first) = file.waiting.first_entry().filter(|first| first.key().0 <= until) {
            let ((at, _), media) = first.remove_entry();
            file.written = at;
            let at = Duration::from_micros((at - file.begins).max(0).unsigned_abs());
            let Media { slot, layer, time, key, data, .. } = media;
            let frame = layer.map(|layer| FrameId { layer, rtp: time.rtp });
            steps.push(Step::Write { slot, at, key, data, frame });
        }
    }

    fn close(&mut self, steps: &mut Vec<Step>) {
        self.release(i64::MAX, steps);
        if self.file.take().is_some() {
            steps.push(Step::Close);
        }
    }
}

/// What a file lacks to take a frame.
enum Lack {
    /// The frame's track is missing: another file begins with the frame.
    Begin,
    /// The frame's track is missing: another file begins with the next key frame.
    KeyFrame,
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
