//! Rungs for subscribers, taps for publishers, and what clients are told about both.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use windlass_types::{Layer, LayerKnobs, Rung, TapInput};

use super::allocator::{Demand, Grant};
use super::downlink::State;
use super::dynacast;
use super::enhance::unbounded;
use super::peer::Peer;
use super::rewriter::Source;
use super::tap::Tap;
use super::view::{self, View};
use super::{Core, Output, Track};
use crate::api::{Kind, ParticipantId, SfuEvent, TrackId};

/// What audio tracks are taken for, each, in bits per second.
const AUDIO_BPS: u64 = 40_000;
/// The share of the estimate that anchors may fill up, video included.
const SHARE_FOR_ALL: f64 = 0.95;

/// The quarter layer while its bits are better spent on the half layer and nobody holds it: on, so that whoever needs it has
/// it at once.
const STANDBY: LayerKnobs = LayerKnobs { active: true, kbps: 30.0, fps: 10.0, needed: false };

/// How long the tapped layer stays while anybody holds it: each change costs all holders a key frame.
const TAP_STAYS: Duration = Duration::from_secs(10);

/// How many hold each enhanced layer of a track, and by how much the largest of their tiles enlarges it. One layer is tapped.
#[derive(Debug, Clone, Copy, Default)]
struct Holders([(u32, u16); Layer::ALL.len()]);

impl Holders {
    fn add(&mut self, layer: Layer, scale: u16) {
        let (count, most) = &mut self.0[layer as usize];
        (*count, *most) = (*count + 1, scale.max(*most));
    }

    fn of(self, layer: Layer) -> u32 {
        self.0[layer as usize].0
    }

    fn scale(self, layer: Layer) -> u16 {
        self.0[layer as usize].1
    }

    /// The layer to tap, `since` being which it has been and from when: that of the most holders, each step down counting twice, as
    /// whoever has a smaller picture loses more without anchors. Nobody who comes takes it at once from those who have it.
    fn tapped(self, now: Instant, since: &mut Option<(Layer, Instant)>) -> Option<Layer> {
        let worth = |layer: Layer| self.of(layer) << (Layer::F as usize - layer as usize);
        let held = Layer::ALL.into_iter().filter(|&layer| self.of(layer) > 0);
        let best = held.max_by_key(|&layer| (worth(layer), Layer::F as usize - layer as usize));
        let stays = since.filter(|&(layer, then)| {
            self.of(layer) > 0 && now.saturating_duration_since(then) < TAP_STAYS
        });
        let layer = stays.map(|(layer, _)| layer).or(best);
        if since.map(|(layer, _)| layer) != layer {
            *since = layer.map(|layer| (layer, now));
        }
        layer
    }
}

/// How large a track is watched: a larger tile counts at once, and goes on counting for a while when it has gone, as each change of the
/// scale costs all holders the detail that they have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Watched(Option<(u16, Instant)>);

impl Watched {
    /// The scale that counts, `scale` being that of the largest tile now.
    fn update(&mut self, now: Instant, scale: u16) -> u16 {
        let stays = self.0.filter(|&(held, then)| {
            held > scale && now.saturating_duration_since(then) < TAP_STAYS
        });
        if stays.is_none() {
            self.0 = Some((scale, now));
        }
        stays.map_or(scale, |(held, _)| held)
    }
}

impl Core {
    /// Chooses everybody's rungs, then starts, moves and stops taps accordingly.
    pub(super) fn allocate(&mut self, now: Instant) {
        let mut taps: BTreeMap<TrackId, Holders> = BTreeMap::new();
        self.tell_speakers(now);
        for peer in self.peers.values_mut().filter(|p| p.connected) {
            peer.open_channel(self.config.budget);
            let speaker = self.rooms.get(&peer.room).and_then(|room| room.speakers.speaker());
            peer.choose(
                now,
                self.config.congestion_control.then_some(self.config.initial_estimate_bps),
                (self.enhancement, self.config.tap_pixels, self.config.captured),
                &self.tracks,
                speaker,
                &mut self.outputs,
            );
            for slot in &peer.slots {
                if let Some((track, rung)) = slot.track.zip(slot.rung).filter(|(_, r)| r.enhanced())
                {
                    let layer = rung.layer();
                    let size = self.tracks.get(&track).and_then(|t| t.sizes[layer as usize]);
                    let scale = slot.view.zip(size).map(|(view, size)| view.scale(size));
                    let scale = scale.unwrap_or(self.config.scale);
                    taps.entry(track).or_default().add(layer, scale);
                }
            }
        }
        for (&id, track) in &mut self.tracks {
            let Some(stream) = track.info.stream else { continue };
            let mut holders = taps.remove(&id).unwrap_or_default();
            // How viewers on other nodes show it is not told.
            track.enhanced_for_nodes().for_each(|layer| holders.add(layer, layer.most_scale()));
            let wanted = holders.tapped(now, &mut track.tapped_since);
            let wanted = wanted.filter(|_| !track.info.muted);
            if track.afar.is_some() {
                self.outputs.extend(track.enhance_afar(wanted));
                continue;
            }
            let wanted = wanted.filter(|_| self.enhancement);
            match (&mut track.tap, wanted) {
                (Some(tap), Some(layer)) => tap.set_layer(layer),
                (None, Some(layer)) => {
                    let limit = self.config.limits.tap_frame_bytes;
                    track.tap = Some(Tap::new(stream, layer, track.next_epoch, limit));
                }
                (Some(tap), None) => {
                    track.next_epoch = tap.next_epoch();
                    (track.tap, track.scaled) = (None, None);
                    self.outputs.push_back(Output::Tap(TapInput::Stop { stream }));
                    // Nobody adapts its layers any more.
                    if track.adapted.take().is_some() {
                        track.standby = false;
                        let layers = [Layer::Q, Layer::H].map(unbounded).to_vec();
                        self.outputs.push_back(track.knobs(layers));
                    }
                }
                (None, None) => {}
            }
            let capture = self.config.captured;
            let scale = track.scale(self.config.scale);
            let limit = self.config.limits.tap_frame_bytes;
            track.keep_capture(now, capture.then_some(scale), limit, &mut self.outputs);
            let watched = track.tap.as_ref().map_or(0, |tap| holders.scale(tap.layer()));
            let watched = track.watched.update(now, watched);
            let most_scale = track.worth_enlarging(now, watched);
            if let Some(tap) = &mut track.tap {
                let room = self.peers.get(&track.info.participant).map(|peer| &peer.room);
                let own = room.and_then(|room| self.config.room_policies.get(room));
                tap.policy = own.copied().unwrap_or(self.policy);
                tap.most_pixels = self.config.tap_pixels;
                if let Some(publisher) = self.peers.get(&track.info.participant) {
                    tap.owner = publisher.owner;
                }
                tap.most_scale = most_scale;
            }
            self.outputs.extend(track.tell_made(self.enhancement, self.config.scale));
        }
        for peer in self.peers.values_mut() {
            for slot in 0..peer.slots.len() {
                let track = peer.slots[slot].track.and_then(|t| self.tracks.get(&t));
                let tapped = track.and_then(Track::tapped);
                let scale = track.map_or(self.config.scale, |t| t.scale(self.config.scale));
                if peer.announce(slot, (tapped, scale), &mut self.outputs) {
                    self.outputs.extend(track.and_then(Track::begin_whole));
                }
            }
        }
        self.tune();
        if self.config.pause_unused {
            self.pause_unused(now);
        }
        self.ask_for_smallest(now);
    }

    /// Tells rooms whose speaker has changed.
    fn tell_speakers(&mut self, now: Instant) {
        for room in self.rooms.values_mut() {
            let Some(participant) = room.speakers.poll(now) else { continue };
            let told = |&member| Output::Event(member, SfuEvent::Speaker { participant });
            self.outputs.extend(room.members.iter().map(told));
        }
    }

    /// Tells publishers that somebody takes no larger layer than the smallest and that this does not come, as their browsers may give the bits of a
    /// narrow uplink to a larger one alone; and when nobody is held to the smallest any more.
    fn ask_for_smallest(&mut self, now: Instant) {
        let mut held: BTreeMap<TrackId, bool> = BTreeMap::new();
        let slots = self.peers.values().filter(|p| p.connected).flat_map(|p| &p.slots);
        for slot in slots.filter(|s| s.max.layer() == Layer::Q && !s.view.is_some_and(View::hidden))
        {
            let Some(track) = slot.track else { continue };
            let goes_without = slot.rung.is_none_or(|rung| rung.layer() != Layer::Q);
            *held.entry(track).or_default() |= goes_without;
        }
        // With one encoding there is nothing to choose.
        let own = |track: &&mut Track| track.afar.is_none() && track.single.is_none();
        for track in self.tracks.values_mut().filter(own) {
            let sent = Layer::ALL.map(|layer| track.layers.rate(layer, now).is_some());
            let starved = !sent[Layer::Q as usize] && sent.contains(&true);
            let needed = held
                .get(&track.info.track)
                .is_some_and(|&goes_without| track.smallest.needed || (goes_without && starved));
            if track.smallest.needed != needed {
                track.smallest.needed = needed;
                let layers = vec![(Layer::Q, track.smallest)];
                self.outputs.push_back(track.knobs(layers));
            }
        }
    }

    /// Tells publishers to pause layers that nobody takes, but for the one with which newcomers begin, and to send them again.
    fn pause_unused(&mut self, now: Instant) {
        let mut needed: BTreeMap<TrackId, [bool; 3]> = BTreeMap::new();
        for slot in self.peers.values().flat_map(|p| &p.slots) {
            let Some(track) = slot.track else { continue };
            let needed = needed.entry(track).or_default();
            let sources = [slot.video.current(), slot.video.waits_for()];
            let layers = sources.into_iter().flatten().filter(|s| s.track == track);
            let layers = layers.map(|s| s.layer).chain(slot.rung.map(Rung::layer));
            layers.for_each(|layer| needed[layer as usize] = true);
        }
        for (id, track) in &mut self.tracks {
            // A controller decides itself what is sent; a muted track sends nothing anyway.
            if track.adapted.is_some() || track.info.muted || track.info.kind != Kind::Video {
                continue;
            }
            let mut needed = needed.get(id).copied().unwrap_or_default();
            let sent = Layer::ALL.map(|layer| track.layers.rate(layer, now));
            for tap in [&track.tap, &track.capture].into_iter().flatten() {
                needed[tap.layer() as usize] = true;
            }
            for layer in Layer::ALL.into_iter().filter(|&layer| track.needed_by_nodes(layer)) {
                needed[layer as usize] = true;
            }
            if let Some(first) = dynacast::first(needed, sent) {
                needed[first as usize] = true;
            }
            let told = track.dynacast.update(now, needed, sent);
            if !told.is_empty() && track.afar.is_some() {
                self.outputs.extend(track.layers_afar(&told));
            } else if !told.is_empty() {
                let layers = told
                    .into_iter()
                    .map(|(layer, active)| (layer, LayerKnobs { active, ..unbounded(layer).1 }));
                self.outputs.push_back(track.knobs(layers.collect()));
            }
        }
    }

    /// Tells the enhancer whom it may ask for stills: they are of use where anchors are and no larger layer is sent. And tells publishers whose half layer
    /// is adapted whether anybody holds the quarter layer.
    fn tune(&mut self) {
        for track in self.tracks.values_mut().filter(|track| track.afar.is_none()) {
            if let Some(stream) = track.info.stream {
                let publisher = self.peers.get(&track.info.participant);
                track.stills = publisher.is_some_and(Peer::gives_regions) && self.config.regions;
                let possible = track.stills && track.tap.is_some() && track.capture.is_none();
                if track.regions != possible && track.tap.is_some() {
                    self.outputs.push_back(Output::Tap(TapInput::Regions { stream, possible }));
                }
                track.regions = possible;
            }
            let small = |peer: &Peer| {
                let mut slots = peer.slots.iter().filter(|s| s.track == Some(track.info.track));
                slots.any(|s| s.rung.is_none_or(|rung| rung.layer() == Layer::Q))
            };
            let mut watching = track.subscribers.iter().filter_map(|id| self.peers.get(id));
            let half = track.adapted.is_some_and(|adapted| adapted.layer == Layer::H);
            let standby = half && !watching.any(small);
            if track.standby != standby {
                track.standby = standby;
                let (layer, knobs) = unbounded(Layer::Q);
                let knobs = if standby { STANDBY } else { knobs };
                // Where the quarter layer is adapted itself, its publisher has been told more.
                if standby || track.adapted.is_none_or(|adapted| adapted.layer != Layer::Q) {
                    self.outputs.push_back(track.knobs(vec![(layer, knobs)]));
                }
            }
        }
    }
}

impl Track {
    /// Tells its publisher what to send of `layers`.
    pub(super) fn knobs(&mut self, mut layers: Vec<(Layer, LayerKnobs)>) -> Output {
        for (_, knobs) in layers.iter_mut().filter(|(layer, _)| *layer == Layer::Q) {
            knobs.needed = self.smallest.needed;
            self.smallest = *knobs;
        }
        let knobs = SfuEvent::Knobs { track: self.info.track, layers };
        Output::Event(self.info.participant, knobs)
    }

    /// By how much the tapped layer is enlarged now; `base`: where the enhancer has not said.
    pub(super) fn scale(&self, base: u16) -> u16 {
        let layer = self.tapped();
        self.scaled.filter(|(of, _)| Some(*of) == layer).map_or(base, |(_, scale)| scale)
    }

    /// By how much the tapped layer's pictures are worth enlarging where the largest tile that shows them enlarges them by `watched`: as
    /// much, so that it is a larger layer's size where one is sent, as its pixels are better than any that are made; never beyond the camera's.
    fn worth_enlarging(&self, now: Instant, watched: u16) -> u16 {
        let Some(low) = self.tap.as_ref().map(Tap::layer) else { return 1 };
        let sent =
            |&scale: &u16| low.enlarged(scale).is_some_and(|l| self.layers.rate(l, now).is_some());
        let enough = |&scale: &u16| scale >= watched;
        let scales = || (1..=low.most_scale()).filter(|&scale| low.enlarged(scale).is_some());
        scales()
            .find(|scale| sent(scale) && enough(scale))
            .or(scales().rev().find(sent))
            .or(scales().find(enough))
            .unwrap_or(low.most_scale())
    }

    /// Copies the layer that is `scale` times the tapped one while that is of use (`None`: it is not) and being sent.
    fn keep_capture(
        &mut self,
        now: Instant,
        scale: Option<u16>,
        frame_bytes: usize,
        outputs: &mut VecDeque<Output>,
    ) {
        let Some(stream) = self.info.stream else { return };
        let above = scale.zip(self.tap.as_ref()).and_then(|(s, tap)| tap.layer().enlarged(s));
        let above = above.filter(|&layer| self.layers.rate(layer, now).is_some());
        if self.capture.as_ref().map(Tap::layer) == above {
            return;
        }
        // With the tap its stream has stopped as a whole.
        if self.capture.take().is_some() && self.tap.is_some() {
            outputs.push_back(Output::Tap(TapInput::CaptureStop { stream }));
        }
        self.capture = above.map(|layer| Tap::new(stream, layer, 0, frame_bytes));
    }
}

impl Peer {
    /// Chooses a rung for each video slot, and what is left for anchors. `assumed_bps`: what the downlink carries before there is an estimate;
    /// `None`: nobody counts.
    fn choose(
        &mut self,
        now: Instant,
        assumed_bps: Option<u64>,
        (enhancement, most_pixels, captured): (bool, u32, bool),
        tracks: &BTreeMap<TrackId, Track>,
        speaker: Option<ParticipantId>,
        outputs: &mut VecDeque<Output>,
    ) {
        let audio_bps = AUDIO_BPS
            * self.slots.iter().filter(|s| s.kind == Kind::Audio && s.track.is_some()).count()
                as u64;
        let mut demands = Vec::new();
        let mut chosen = Vec::new();
        let mut hidden = Vec::new();
        for (i, slot) in self.slots.iter().enumerate().filter(|(_, s)| s.kind == Kind::Video) {
            let Some(track) = slot.track.and_then(|t| tracks.get(&t)).filter(|t| !t.info.muted)
            else {
                continue;
            };
            if slot.view.is_some_and(View::hidden) {
                hidden.push(i);
                continue;
            }
            let enough = slot.view.and_then(|view| view.enough(track.sizes));
            let speaks = speaker == Some(track.info.participant);
            let measured = Layer::ALL.map(|l| track.layers.rate(l, now));
            let able = track.afar.as_ref().map_or(enhancement, |afar| afar.made.able);
            demands.push(Demand {
                max: enough.map_or(slot.max, |layer| slot.max.min(Rung::plain(layer))),
                rates: track.dynacast.rates(now, measured),
                sizes: track.likely_sizes(),
                anchors: if able && self.can_take_anchors() {
                    // For a tile of unknown size anchors are made at the least scale.
                    let most_octaves = if slot.view.is_some() { 2 } else { 1 };
                    track.anchor_costs(now, most_pixels, captured, most_octaves)
                } else {
                    [None; 3]
                },
                shown: view::shown(slot.view),
                current: slot.rung,
                weight: view::weight(slot.view, speaks),
            });
            chosen.push((i, track));
        }
        for slot in hidden {
            let slot = &mut self.slots[slot];
            slot.rung = None;
            slot.video.set_target(None);
        }
        let known = self.downlink.available_bps();
        let available =
            assumed_bps.map(|assumed| known.unwrap_or(assumed).saturating_sub(audio_bps));
        let sure = self.downlink.state() != State::Normal;
        let grants = self.allocator.allocate(now, available, sure, &demands);
        let (mut held_bps, mut best_bps) = (audio_bps, audio_bps);
        let mut step_bps = None;
        for ((&(i, track), demand), grant) in chosen.iter().zip(&demands).zip(grants) {
            let slot = &mut self.slots[i];
            let held = match grant {
                Grant::Rung(rung) => Some(rung),
                Grant::Paused => None,
                // A publisher that is silent for a moment keeps what it has: nothing else can be had.
                Grant::Silent => continue,
            };
            let wishes = demand.wishes(held);
            held_bps += wishes.held;
            best_bps += wishes.best;
            if let Some(next) = wishes.next {
                let more = next - wishes.held;
                step_bps = Some(step_bps.map_or(more, |least: u64| least.min(more)));
            }
            slot.rung = held;
            if slot.paused != held.is_none() {
                slot.paused = held.is_none();
                let paused = SfuEvent::Paused { track: track.info.track, paused: slot.paused };
                outputs.push_back(Output::Event(self.id, paused));
            }
            let source = held.map(|rung| Source { track: track.info.track, layer: rung.layer() });
            slot.video.set_target(source);
        }
        self.pacer.set_downlink(available);
        self.bound_retransmission();
        let video_bps: u64 = self.slots.iter().map(|s| s.sent.video_bps).sum();
        self.anchor_rate_bps = match available {
            None => super::anchors::UNLIMITED_BPS,
            Some(bps) => ((bps as f64 * SHARE_FOR_ALL) as u64).saturating_sub(video_bps),
        };
        // A stream that sends little can prove little: without padding the estimate stays near what is sent, and
        // the next rung would never seem to fit.
        self.set_bitrate_targets(now, step_bps.map_or(0, |more| held_bps + more), best_bps);
    }

    /// Tells the client what it now gets on a slot, if that has changed; whether it begins to get anchors, of which it
    /// has none yet.
    pub(super) fn announce(
        &mut self,
        slot: usize,
        (tapped, scale): (Option<Layer>, u16),
        outputs: &mut VecDeque<Output>,
    ) -> bool {
        let anchors = self.can_take_anchors();
        let Some(slot) = self.slots.get_mut(slot) else { return false };
        let Some((track, rung)) = slot.enhanced(tapped, anchors) else {
            return false;
        };
        let (epoch, Some(size)) = slot.video.epoch() else { return false };
        let news = Some((rung, epoch, size, scale));
        if slot.told != news {
            slot.told = news;
            let (width, height) = size;
            outputs.push_back(Output::Event(
                self.id,
                SfuEvent::RungChanged { track, rung, epoch, width, height, scale },
            ));
            return rung.enhanced();
        }
        false
    }
}

impl super::peer::Slot {
    /// The rung that the subscriber really has: what is being forwarded, plus anchors where the tap makes them
    /// for that layer and the subscriber is to get them.
    pub(super) fn enhanced(&self, tapped: Option<Layer>, anchors: bool) -> Option<(TrackId, Rung)> {
        let current = self.video.current()?;
        let plus = self.rung.filter(|r| r.enhanced() && r.layer() == current.layer);
        let plus = plus.filter(|_| anchors && tapped == Some(current.layer));
        Some((current.track, plus.unwrap_or(Rung::plain(current.layer))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holders(q: u32, h: u32) -> Holders {
        Holders([(q, 2), (h, 2), (0, 0)])
    }

    #[test]
    fn a_larger_tile_counts_at_once_and_for_a_while_when_it_has_gone() {
        let (start, mut watched) = (Instant::now(), Watched::default());
        assert_eq!(watched.update(start, 2), 2);
        assert_eq!(watched.update(start, 4), 4);
        assert_eq!(watched.update(start + TAP_STAYS / 2, 3), 4);
        assert_eq!(watched.update(start + TAP_STAYS, 3), 3);
        assert_eq!(watched.update(start + TAP_STAYS, 4), 4);
    }

    #[test]
    fn those_with_the_smallest_picture_keep_their_anchors_from_a_few_with_larger_ones() {
        let now = Instant::now();
        for ((q, h), layer) in [
            ((0, 0), None),
            ((1, 0), Some(Layer::Q)),
            ((0, 1), Some(Layer::H)),
            ((1, 2), Some(Layer::Q)),
            ((1, 3), Some(Layer::H)),
        ] {
            assert_eq!(holders(q, h).tapped(now, &mut None), layer, "{q} and {h}");
        }
    }

    #[test]
    fn a_layer_that_is_held_stays_for_a_while_and_one_that_is_not_goes_at_once() {
        let (start, mut since) = (Instant::now(), None);
        assert_eq!(holders(1, 0).tapped(start, &mut since), Some(Layer::Q));
        let soon = start + TAP_STAYS / 2;
        assert_eq!(holders(1, 9).tapped(soon, &mut since), Some(Layer::Q));
        assert_eq!(holders(1, 9).tapped(start + TAP_STAYS, &mut since), Some(Layer::H));
        assert_eq!(holders(1, 0).tapped(start + TAP_STAYS, &mut since), Some(Layer::Q));
    }
}
