//! A viewer's call over a link: what came through, tenth by tenth, and what the viewer made of it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use str0m::Event;
use str0m::media::Mid;
use windlass_netem::Course;
use windlass_sfu::{ParticipantId, SfuConfig, SfuEvent, TrackId};
use windlass_testkit::{Access, World, WorldEvent};
use windlass_types::message::AnchorHeader;
use windlass_types::message::HTJ2K;
use windlass_types::{
    Anchor, AnchorSource, Bitrate, EnhancerOutput, Rung, StageTimes, TapFrame, TapInput,
};

use crate::viewer::{HEADERS, Watcher};

/// What super-resolution and coding are taken to need.
const ENHANCING: Duration = Duration::from_millis(80);
/// Every so many tapped frames become an anchor of so many bytes (120 kbit/s).
const ANCHOR_EVERY: u32 = 15;
const ANCHOR_BYTES: usize = 7_500;
/// The viewer's id.
const VIEWER: ParticipantId = ParticipantId(1000);

/// What came through the viewer's link in a tenth of a second.
#[derive(Debug, Clone, Default)]
pub(super) struct Tenth {
    /// Bytes of datagrams, headers included.
    pub carried: u64,
    /// Bytes of video and anchors that the viewer had a use for.
    pub media: u64,
    /// Waits before the bottleneck, in ms, by datagram.
    pub waits: Vec<f64>,
    /// The estimate at its end, in bits per second.
    pub estimate_bps: u64,
    /// Tracks that were paused at its end.
    pub paused: u32,
    /// Rungs held at its end, by track.
    pub rungs: Vec<Option<Rung>>,
}

/// A viewer's call over a link, second by second.
pub(super) struct Call {
    world: World,
    /// The viewer's place in the world, once it has come.
    viewer: Option<usize>,
    /// When the viewer came.
    pub start: Instant,
    /// When the call began.
    began: Instant,
    tapped: HashMap<u32, u32>,
    tracks: Vec<TrackId>,
    /// By m-line of the viewer.
    watchers: HashMap<Mid, Watcher>,
    mids: HashMap<TrackId, Mid>,
    rungs: HashMap<TrackId, Rung>,
    paused: HashMap<TrackId, bool>,
    /// Changes of rung that the viewer was told.
    pub rung_changes: u64,
    /// Size of an anchor.
    pub anchor_bytes: usize,
    /// Anchors that came, by how long after their frame reached the SFU, in ms: to their first message.
    pub anchor_ages: Vec<f64>,
    /// By tenth of a second.
    pub tenths: Vec<Tenth>,
}

impl Call {
    /// `publishers` with links that nobody notices, and one viewer of all of them behind `down` and `up`.
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

    /// Whether there is an enhancer.
    pub(super) fn enhancement(&mut self, works: bool) {
        self.world.core.set_enhancement(self.world.now, works);
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, span: Duration) {
        let end = self.world.now + span;
        while self.world.now < end {
            for happening in self.world.step(end) {
                self.happened(happening);
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

    /// Freezes, time frozen, frames shown and key frames asked for by the viewer.
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

    fn happened(&mut self, happening: WorldEvent) {
        match happening {
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

    /// Something came to the viewer.
    fn came(&mut self, at: usize, event: Event) {
        match event {
            Event::RtpPacket(packet) => {
                let mut api = self.world.parties[at].client.rtc.direct_api();
                let mid = api.stream_rx(&packet.header.ssrc).map(|s| s.mid());
                if let Some(watcher) = mid.and_then(|mid| self.watchers.get_mut(&mid)) {
                    watcher.packet(self.world.now, *packet.seq_no, &packet.payload);
                }
                if let Some(tenth) = self.tenths.last_mut() {
                    tenth.media += packet.payload.len() as u64 + HEADERS;
                }
            }
            Event::ChannelData(message) => {
                if let Some(tenth) = self.tenths.last_mut() {
                    tenth.media += message.data.len() as u64;
                }
                let parsed = AnchorHeader::parse(&message.data);
                if let Ok((header, payload)) = parsed
                    && header.chunk_index == 0
                    && let Some(stamp) = payload.first_chunk()
                {
                    let frame = self.began + Duration::from_micros(u64::from_le_bytes(*stamp));
                    let age = self.world.now.saturating_duration_since(frame);
                    self.anchor_ages.push(age.as_secs_f64() * 1000.0);
                }
            }
            _ => {}
        }
    }

    /// The viewer asks for key frames where something is missing for good.
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

    /// An enhancer that makes anchors of every so many frames, which do not depend on each other.
    fn tap(&mut self, frame: &TapFrame) {
        let count = self.tapped.entry(frame.stream.0).or_default();
        *count += 1;
        if !count.is_multiple_of(ANCHOR_EVERY) {
            return;
        }
        // Whoever gets it can tell how old it is.
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
            width: 640,
            height: 360,
            beyond_prior: false,
            payload: Bytes::from(payload),
            times: StageTimes::default(),
        };
        self.world.enhancer_says(self.world.now + ENHANCING, EnhancerOutput::Anchor(anchor));
    }
}
