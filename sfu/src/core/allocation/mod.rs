//! Allocates rungs to all subscribers, and announces to clients what they receive.

pub(super) mod allocator;
pub(super) mod anchor_costs;
pub(super) mod demand;
pub(super) mod network_gain;
pub(super) mod quality;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use str0m::Rtc;
use windlass_types::{Bitrate, Layer, Refusal, Rung};

use self::anchor_costs::AnchorLimits;
use self::demand::{Demand, Grant};
use self::quality::Shown;
use crate::api::{ParticipantId, SfuEvent, TrackId, TrackKind};
use crate::core::connection::quality::Fit;
use crate::core::output::Output;
use crate::core::peer::Peer;
use crate::core::peers::Peers;
use crate::core::room::Rooms;
use crate::core::subscriber::anchor_pacer::UNLIMITED;
use crate::core::subscriber::downlink::State;
use crate::core::subscriber::rewriter::Source;
use crate::core::subscriber::slot::Slot;
use crate::core::subscriber::subscription::AnnouncedRung;
use crate::core::subscriber::view::{self, View};
use crate::core::subscriber::ways::{self, Allocated};
use crate::core::tap::tapped_layers::LayerDemand;
use crate::core::track::Track;
use crate::core::tracks::Tracks;
use crate::way_counts::WayCounts;

/// Assumed bitrate of an audio track.
const AUDIO: Bitrate = Bitrate::bps(40_000);
/// Share of the available bandwidth that video and anchors may use together.
const MAX_SHARE: f64 = 0.95;

/// The bitrates that an allocation needs, for the bandwidth estimator.
#[derive(Debug, Clone, Copy)]
struct Needs {
    /// Bitrate that all held rungs need together.
    held: Bitrate,
    /// Smallest increase to a next rung; `None`: each track has its best rung.
    step: Option<Bitrate>,
    /// Bitrate that the best rungs of all tracks need together.
    best: Bitrate,
}

/// Values that an allocation goes by, for all subscribers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// Assumed bandwidth before the first estimate; `None`: without congestion control.
    pub(crate) initial: Option<Bitrate>,
    /// Limits of the anchors that there can be on this server.
    pub(crate) limits: AnchorLimits,
    /// Latency budget of anchors.
    pub(crate) budget: Duration,
}

/// Allocates rungs to all subscribers.
pub(crate) fn allocate_rungs(
    now: Instant,
    terms: Terms,
    peers: &mut Peers,
    tracks: &Tracks,
    rooms: &Rooms,
    outputs: &mut VecDeque<Output>,
) {
    for peer in peers.iter_mut().filter(|p| p.link.connected) {
        peer.open_anchor_channel(terms.budget);
        let speaker = rooms.get(&peer.room).and_then(|room| room.speakers.speaker());
        let (slots, demands) = peer.demands(now, terms.limits, tracks, speaker);
        peer.allocate(now, terms.initial, &slots, &demands, outputs);
    }
}

/// The subscribers of enhanced rungs, by track. `scale` is the anchors' scale for a tile of unknown size.
pub(crate) fn layer_demands(
    peers: &Peers,
    tracks: &Tracks,
    scale: u16,
) -> BTreeMap<TrackId, LayerDemand> {
    let mut demands: BTreeMap<TrackId, LayerDemand> = BTreeMap::new();
    let slots = peers.iter().filter(|p| p.link.connected).flat_map(|p| &p.slots);
    for slot in slots {
        let enhanced = slot.track.zip(slot.subscription.rung).filter(|(_, rung)| rung.enhanced());
        let Some((track, rung)) = enhanced else { continue };
        let layer = rung.layer();
        let size = tracks.get(track).and_then(|t| t.layers.sizes()[layer as usize]);
        let of_tile = slot.subscription.view.zip(size).map(|(view, size)| view.scale(size));
        demands.entry(track).or_default().add(layer, of_tile.unwrap_or(scale));
    }
    demands
}

/// Announces rungs that have changed, and requests a first anchor for those that begin to have anchors.
pub(crate) fn announce_rungs(
    peers: &mut Peers,
    tracks: &Tracks,
    scale: u16,
    outputs: &mut VecDeque<Output>,
) {
    for peer in peers.iter_mut() {
        for slot in 0..peer.slots.len() {
            let track = peer.slots[slot].source.and_then(|t| tracks.get(t));
            let tapped = track.and_then(Track::tapped);
            let scale = track.map_or(scale, |t| t.scale(scale));
            if peer.announce(slot, tapped, scale, outputs) {
                outputs.extend(track.and_then(Track::request_initial_anchor));
            }
        }
    }
}

/// Tells clients how their pictures are made, where that has changed.
pub(crate) fn announce_ways(
    now: Instant,
    peers: &mut Peers,
    tracks: &Tracks,
    outputs: &mut VecDeque<Output>,
) {
    for peer in peers.iter_mut() {
        let anchors = peer.can_receive_anchors();
        for slot in &mut peer.slots {
            let source = slot.source.and_then(|source| tracks.get(source));
            let shown = source.zip(slot.subscription.demand).zip(slot.subscription.rung).and_then(
                |((source, demand), _)| {
                    let (track, rung) = slot.effective_rung(source.tapped(), anchors)?;
                    let layer = rung.layer();
                    let given = Allocated {
                        layer,
                        granted: slot.subscription.rung == Rung::plus(layer),
                        tapped: rung.enhanced(),
                        refused: refuses(source, &demand, layer),
                    };
                    Some((track, ways::way(now, &demand, given, &slot.subscription.network)))
                },
            );
            let way = shown.map(|(_, way)| way);
            let changed = std::mem::replace(&mut slot.subscription.way, way) != way;
            if let Some((track, (way, reason))) = shown.filter(|_| changed) {
                outputs.push_back(Output::Event(peer.id, SfuEvent::Way { track, way, reason }));
            }
        }
    }
}

/// Whether the enhancer makes no anchors of a layer. Anchors of the publisher's own pixels do not need the enhancer's
/// networks.
fn refuses(track: &Track, demand: &Demand, layer: Layer) -> bool {
    let captured = demand.anchors[layer as usize].is_some_and(|a| a.captured_octaves > 0);
    track.refused.is_some_and(|reason| reason != Refusal::Slow || !captured)
}

/// Counts the subscriptions by how their pictures are made.
pub(crate) fn count_ways(peers: &Peers) -> WayCounts {
    let mut counts = WayCounts::default();
    peers
        .iter()
        .flat_map(|peer| &peer.slots)
        .filter_map(|slot| slot.subscription.way)
        .for_each(|(way, reason)| counts.add(way, reason));
    counts
}

impl Peer {
    /// The demands of the video slots that are visible and not muted, with the slots' indices. Hidden slots lose their
    /// rung, as do those whose codec the client cannot decode.
    fn demands(
        &mut self,
        now: Instant,
        limits: AnchorLimits,
        tracks: &Tracks,
        speaker: Option<ParticipantId>,
    ) -> (Vec<usize>, Vec<Demand>) {
        let anchors = self.can_receive_anchors();
        let (mut slots, mut demands) = (Vec::new(), Vec::new());
        let video = |(_, slot): &(usize, &mut Slot)| slot.kind == TrackKind::Video;
        for (i, slot) in self.slots.iter_mut().enumerate().filter(video) {
            (slot.subscription.demand, slot.subscription.room) = (None, None);
            let track = slot.track.and_then(|t| tracks.get(t)).filter(|t| !t.info.muted);
            let Some(track) = track else { continue };
            let source = decodable(slot, self.link.stack.rtc(), track, tracks);
            slot.subscription.undecodable = source.is_none();
            let track = source.unwrap_or(track);
            slot.source = Some(track.info.track);
            slot.subscription.spatial = track.layers.spatial();
            if slot.subscription.undecodable || slot.subscription.view.is_some_and(View::hidden) {
                slot.subscription.rung = None;
                slot.video.set_target(None);
                continue;
            }
            let speaks = speaker == Some(track.info.participant);
            let demand = demand(now, slot, track, limits, anchors, speaks);
            slot.subscription.demand = Some(demand);
            slots.push(i);
            demands.push(demand);
        }
        (slots, demands)
    }

    /// Grants rungs to `slots` by their demands, and the rest to anchors. `initial`: bandwidth before the first
    /// estimate; `None`: without congestion control.
    fn allocate(
        &mut self,
        now: Instant,
        initial: Option<Bitrate>,
        slots: &[usize],
        demands: &[Demand],
        outputs: &mut VecDeque<Output>,
    ) {
        let audio = |s: &&Slot| s.kind == TrackKind::Audio && s.track.is_some();
        let audio: Bitrate = self.slots.iter().filter(audio).map(|_| AUDIO).sum();
        let estimate = self.downlink.available();
        let available = initial.map(|initial| estimate.unwrap_or(initial).saturating_sub(audio));
        let congested = self.downlink.state() != State::Normal;
        let grants = self.allocator.allocate(now, available, congested, demands);
        if let Some(estimate) = estimate.filter(|_| initial.is_some())
            && let Some((at, others)) = allocator::smallest_first(demands, &grants)
        {
            let audio = self.slots.iter().filter(|slot| slot.kind == TrackKind::Audio);
            let audio: Bitrate = audio.map(|slot| slot.subscription.sent.media).sum();
            let room = estimate.saturating_sub(audio).saturating_sub(others);
            self.slots[slots[at]].subscription.room = Some(room);
        }
        let mut needs = Needs { held: audio, step: None, best: audio };
        let paused = grants.iter().any(|grant| matches!(grant, Grant::Paused));
        for ((&slot, demand), grant) in slots.iter().zip(demands).zip(grants) {
            let (rung, max_temporal) = match grant {
                Grant::Rung(rung) => (Some(rung), None),
                Grant::Thinned(rung, layer) => (Some(rung), Some(layer)),
                Grant::Paused => (None, None),
                // The slot keeps its rung while the publisher sends nothing.
                Grant::Silent => continue,
            };
            needs.add(demand, grant);
            self.set_rung(slot, rung, outputs);
            self.slots[slot].set_max_temporal(max_temporal);
        }
        self.fit = Fit::new(paused, available.and(estimate), needs.best);
        self.anchors.pacer.set_downlink(available);
        self.limit_retransmissions();
        let media: Bitrate = self.slots.iter().map(|s| s.subscription.sent.media).sum();
        self.anchors.rate = available
            .map_or(UNLIMITED, |available| available.mul_f64(MAX_SHARE).saturating_sub(media));
        // The estimate stays near what is sent: without padding and probes the next rung would never fit.
        let next = needs.step.map_or(Bitrate::ZERO, |step| needs.held + step);
        self.set_bitrate_targets(now, next, needs.best);
    }

    /// Sets the rung of a slot, and tells the client when the track is paused or goes on.
    fn set_rung(&mut self, slot: usize, rung: Option<Rung>, outputs: &mut VecDeque<Output>) {
        let slot = &mut self.slots[slot];
        let (Some(track), Some(source)) = (slot.track, slot.source) else { return };
        slot.subscription.rung = rung;
        if slot.subscription.paused != rung.is_none() {
            slot.subscription.paused = rung.is_none();
            let event = SfuEvent::Paused { track, paused: slot.subscription.paused };
            outputs.push_back(Output::Event(self.id, event));
        }
        let encoding = rung.map(|rung| slot.subscription.spatial.encoding(rung.layer()));
        slot.video.set_target(encoding.map(|(layer, _)| Source { track: source, layer }));
        slot.video.set_max_spatial(encoding.and_then(|(_, spatial)| spatial));
    }

    /// Announces to the client what it receives on a slot, if that has changed. `tapped` and `scale` are those of the
    /// slot's track. Returns whether the client begins to receive anchors of another epoch.
    pub(crate) fn announce(
        &mut self,
        slot: usize,
        tapped: Option<Layer>,
        scale: u16,
        outputs: &mut VecDeque<Output>,
    ) -> bool {
        let anchors = self.can_receive_anchors();
        let Some(slot) = self.slots.get_mut(slot) else { return false };
        let Some((track, rung)) = slot.effective_rung(tapped, anchors) else { return false };
        let (epoch, Some(size)) = slot.video.epoch() else { return false };
        let spatial_layers = slot.subscription.spatial.count();
        let announced = Some(AnnouncedRung { rung, epoch, size, scale, spatial_layers });
        if slot.subscription.announced == announced {
            return false;
        }
        slot.subscription.announced = announced;
        let event = SfuEvent::RungChanged { track, rung, epoch, size, scale, spatial_layers };
        outputs.push_back(Output::Event(self.id, event));
        rung.enhanced()
    }
}

/// Which of a track and its backup the client of a slot decodes; the track itself if it decodes both.
fn decodable<'a>(
    slot: &mut Slot,
    rtc: Option<&Rtc>,
    track: &'a Track,
    tracks: &'a Tracks,
) -> Option<&'a Track> {
    let Some(rtc) = rtc else { return Some(track) };
    let backup = track.backup.id.and_then(|backup| tracks.get(backup));
    [Some(track), backup].into_iter().flatten().find(|t| slot.decodes(rtc, t.layers.codec()))
}

/// The demand of one slot. `anchors`: the client can receive anchors.
fn demand(
    now: Instant,
    slot: &Slot,
    track: &Track,
    limits: AnchorLimits,
    anchors: bool,
    speaks: bool,
) -> Demand {
    let sufficient =
        slot.subscription.view.and_then(|view| view.sufficient_layer(track.layers.sizes()));
    // Without a view anchors are made at the smallest scale.
    let max_octaves = if slot.subscription.view.is_some() { limits.max_octaves } else { 1 };
    Demand {
        max: sufficient
            .map_or(slot.subscription.max, |layer| slot.subscription.max.min(Rung::plain(layer))),
        rates: track.params.rates(now, track.layers.rates(now)),
        thinned: track.thinned(),
        sizes: track.layers.likely_sizes(),
        anchors: if anchors && track.has_anchors(limits.available) {
            track.expected_anchor_costs(now, AnchorLimits { max_octaves, ..limits })
        } else {
            [None; 3]
        },
        shown: Shown {
            tile: view::tile_size(slot.subscription.view),
            network: slot.subscription.network.proved(now),
        },
        current: slot.subscription.rung,
        max_temporal: slot.subscription.max_temporal,
        unlimited: track.params.unlimited(),
        weight: view::weight(slot.subscription.view, speaks),
    }
}

impl Needs {
    /// Adds a track that holds what it was granted.
    fn add(&mut self, demand: &Demand, grant: Grant) {
        let needs = demand.bitrate_needs(grant);
        self.held += needs.held;
        self.best += needs.best;
        if let Some(next) = needs.next {
            let step = next.saturating_sub(needs.held);
            self.step = Some(self.step.map_or(step, |min| min.min(step)));
        }
    }
}
