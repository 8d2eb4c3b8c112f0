//! A viewer's call over a link: what came through in each tenth of a second, and how the viewer showed it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use str0m::Event;
use str0m::media::Mid;
use windlass_netem::Course;
use windlass_sfu::{ParticipantId, SfuConfig, SfuEvent, TrackId};
use windlass_testkit::{Access, World, WorldEvent};
use windlass_types::message::{HTJ2K, Reassembler};
use windlass_types::{
    Anchor, AnchorSource, Bitrate, EnhancerOutput, Rung, Size, StageTimes, TapFrame, TapInput,
    VideoCodec,
};

use crate::viewer::{HEADERS, Part, Watcher};

/// Time that super-resolution and encoding are assumed to take.
const ENHANCING: Duration = Duration::from_millis(80);
/// One of this many tapped frames becomes an anchor: with [`ANCHOR_BYTES`], 120 kbit/s.
const ANCHOR_EVERY: u32 = 15;
/// Length of an anchor, in bytes.
const ANCHOR_BYTES: usize = 7_500;
/// The viewer's participant id.
const VIEWER: ParticipantId = ParticipantId(1000);

/// What came through the viewer's link in a tenth of a second.
#[derive(Debug, Clone, Default)]
pub(super) struct Tenth {
    /// Bytes of datagrams that the link carried, headers included.
    pub carried: u64,
    /// Bytes of video and anchors that the viewer could use.
    pub media: u64,
    /// The waits before the bottleneck in ms, one for each datagram.
    pub waits: Vec<f64>,
    /// The bandwidth estimate at the end of the tenth, in bits per second.
    pub estimate_bps: u64,
    /// Number of tracks that were paused at the end of the tenth.
    pub paused: u32,
    /// The rungs held at the end of the tenth, by track.
    pub rungs: Vec<Option<Rung>>,
}

/// A viewer's call over a link, second by second.
pub(super) struct Call {
    world: World,
    /// The viewer's index in the world, once the viewer has joined.
    viewer: Option<usize>,
    /// When the viewer joined.
    pub start: Instant,
    /// When the call began.
    began: Instant,
    tapped: HashMap<u32, u32>,
    tracks: Vec<TrackId>,
    /// The viewer's watchers, by m-line.
    watchers: HashMap<Mid, Watcher>,
    mids: HashMap<TrackId, Mid>,
    rungs: HashMap<TrackId, Rung>,
    paused: HashMap<TrackId, bool>,
    /// Number of changes of rung that the viewer was told.
    pub rung_changes: u64,
    /// Length of an anchor, in bytes.
    pub anchor_bytes: usize,
    /// Ages of the anchors that came whole, in ms: from their frame's arrival at the SFU to their last message at the
    /// viewer.
    pub anchor_ages: Vec<f64>,
    reassembler: Reassembler,
    /// The tenths of a second since the viewer joined.
    pub tenths: Vec<Tenth>,
}

impl Call {
    /// A call with `publishers` whose links nobody notices, and one viewer of all of them behind `down` and `up`.
    pub(super) fn new(
        config: SfuConfig,
        publishers: usize,
        down: Course,
        up: Course,
        seed: u64,
    ) -> Call {
        let world = World::new(config);
        let start = world.now;
        let mut call = Call {
            world,
            viewer: None,
            start,
            began: start,
            tapped: HashMap::new(),
            tracks: Vec::new(),
            watchers: HashMap::new(),
            mids: HashMap::new(),
            rungs: HashMap::new(),
            paused: HashMap::new(),
            rung_changes: 0,
            anchor_bytes: ANCHOR_BYTES,
            anchor_ages: Vec::new(),
            reassembler: Reassembler::new(),
            tenths: vec![Tenth::default()],
        };
        for number in 1..=publishers as u64 {
            let at = call.world.join(ParticipantId(number), Access::wide(seed + 2 * number));
            let track = call.world.publish(at, seed + number);
            call.tracks.push(track);
        }
        call.run(Duration::from_secs(1));
        let at = call.world.join(VIEWER, Access { down, up, seed });
        let mids = call.world.subscribe(at, &call.tracks);
        call.viewer = Some(at);
        call.watchers = mids.iter().map(|&mid| (mid, Watcher::default())).collect();
        call.mids = call.tracks.iter().copied().zip(mids).collect();
        (call.start, call.tenths) = (call.world.now, vec![Tenth::default()]);
        call
    }

    /// Tells the SFU whether there is an enhancer.
    pub(super) fn enhancement(&mut self, works: bool) {
        self.world.core.set_enhancement(self.world.now, works);
    }

    /// Lets simulated time pass.
    pub(super) fn run(&mut self, span: Duration) {
        let end = self.world.now + span;
        while self.world.now < end {
            for event in self.world.step(end) {
                self.handle(event);
            }
            self.ask();
            let since = self.world.now.saturating_duration_since(self.start);
            let tenth = (since.as_millis() / 100) as usize;
            while self.tenths.len() <= tenth {
                let rungs = self.tracks.iter().map(|t| self.rungs.get(t).copied()).collect();
                if let Some(last) = self.tenths.last_mut() {
                    last.rungs = rungs;
                    last.paused = self.paused.values().filter(|p| **p).count() as u32;
                    last.estimate_bps = self.world.core.estimate(VIEWER).map_or(0, Bitrate::as_bps);
                }
                self.tenths.push(Tenth::default());
            }
        }
    }

    /// The viewer's number of freezes, time frozen, frames shown and key frames asked for.
    pub(super) fn watched(&self) -> (u64, Duration, u64, u64) {
        let all = self.watchers.values();
        all.fold((0, Duration::ZERO, 0, 0), |(freezes, frozen, frames, asks), w| {
            (freezes + w.freezes, frozen + w.frozen, frames + w.frames, asks + w.asks)
        })
    }

    /// Share of the viewer's datagrams that found its link's queue full.
    pub(super) fn overflow(&self) -> f64 {
        let stats = self.viewer.map(|at| self.world.parties[at].down()).unwrap_or_default();
        stats.overflowed as f64 / stats.sent.max(1) as f64
    }

    fn handle(&mut self, event: WorldEvent) {
        match event {
            WorldEvent::Arrived { at, bytes, waited } if self.viewer == Some(at) => {
                if let Some(tenth) = self.tenths.last_mut() {
                    tenth.carried += bytes as u64 + 28;
                    tenth.waits.push(waited.as_secs_f64() * 1000.0);
                }
            }
            WorldEvent::Client(at, event) if self.viewer == Some(at) => self.came(at, *event),
            WorldEvent::Told(VIEWER, SfuEvent::RungChanged { track, rung, .. }) => {
                self.rung_changes += u64::from(self.rungs.insert(track, rung).is_some());
            }
            WorldEvent::Told(VIEWER, SfuEvent::Paused { track, paused }) => {
                self.paused.insert(track, paused);
                let mid = self.mids.get(&track);
                if let Some(watcher) = mid.and_then(|mid| self.watchers.get_mut(mid)) {
                    watcher.pause();
                }
            }
            WorldEvent::Tapped(TapInput::Frame(frame)) => self.tap(&frame),
            _ => {}
        }
    }

    /// Handles an event at the viewer.
    fn came(&mut self, at: usize, event: Event) {
        match event {
            Event::RtpPacket(packet) => {
                let mut api = self.world.parties[at].client.rtc.direct_api();
                let mid = api.stream_rx(&packet.header.ssrc).map(|s| s.mid());
                if let Some(watcher) = mid.and_then(|mid| self.watchers.get_mut(&mid)) {
                    let part = Part::of(VideoCodec::Vp9, &packet.payload, packet.header.marker);
                    watcher.packet(self.world.now, *packet.seq_no, part);
                }
                if let Some(tenth) = self.tenths.last_mut() {
                    tenth.media += packet.payload.len() as u64 + HEADERS;
                }
            }
            Event::ChannelData(message) => {
                if let Some(tenth) = self.tenths.last_mut() {
                    tenth.media += message.data.len() as u64;
                }
                let whole = self.reassembler.push(&message.data).ok().flatten();
                if let Some(stamp) = whole.as_ref().and_then(|anchor| anchor.payload.first_chunk())
                {
                    let frame = self.began + Duration::from_micros(u64::from_le_bytes(*stamp));
                    let age = self.world.now.saturating_duration_since(frame);
                    self.anchor_ages.push(age.as_secs_f64() * 1000.0);
                }
            }
            _ => {}
        }
    }

    /// Lets the viewer ask for key frames where something is missing for good.
    fn ask(&mut self) {
        let Some(at) = self.viewer else { return };
        let client = &mut self.world.parties[at].client;
        for (mid, watcher) in &mut self.watchers {
            if watcher.wants_key(self.world.now) {
                client.ask_for_key_frame(*mid);
                client.due = self.world.now;
            }
        }
    }

    /// Acts as an enhancer that makes anchors of one in [`ANCHOR_EVERY`] frames; they do not depend on each other.
    fn tap(&mut self, frame: &TapFrame) {
        let count = self.tapped.entry(frame.stream.0).or_default();
        *count += 1;
        if !count.is_multiple_of(ANCHOR_EVERY) {
            return;
        }
        // The receiver can tell how old the anchor is.
        let mut payload = vec![7; self.anchor_bytes];
        let age = frame.arrival.saturating_duration_since(self.began);
        payload[..8].copy_from_slice(&(age.as_micros() as u64).to_le_bytes());
        let anchor = Anchor {
            stream: frame.stream,
            epoch: frame.epoch,
            rtp_timestamp: frame.rtp_timestamp,
            arrival: frame.arrival,
            source: AnchorSource::Enhanced,
            codec: HTJ2K,
            tiled: false,
            size: Size::new(640, 360),
            beyond_prior: false,
            payload: Bytes::from(payload),
            times: StageTimes::default(),
        };
        self.world.enhancer_says(self.world.now + ENHANCING, EnhancerOutput::Anchor(anchor));
    }
}
