//! Requests to all publishers after an allocation, by what their subscribers receive: layers to send, and key frames.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use windlass_types::{Bitrate, EnhancerRequest, Layer, Rung};

use super::dynacast::first_layer;
use super::params::LimitedSubscribers;
use super::stills::Tapped;
use crate::api::{TrackId, TrackKind};
use crate::core::output::Output;
use crate::core::peer::Peer;
use crate::core::peers::Peers;
use crate::core::subscriber::downlink::State;
use crate::core::subscriber::view::View;
use crate::core::track::Track;
use crate::core::tracks::Tracks;

/// Requests the smallest layer where a subscriber takes no larger one and the layer does not come: on a narrow uplink,
/// browsers may give all bits to a larger one. Withdraws the request when no subscriber is limited to the smallest
/// layer.
pub(crate) fn request_smallest_layers(
    now: Instant,
    tracks: &mut Tracks,
    peers: &Peers,
    outputs: &mut VecDeque<Output>,
) {
    let mut limited: BTreeMap<TrackId, LimitedSubscribers> = BTreeMap::new();
    let slots = peers.iter().filter(|p| p.link.connected).flat_map(|p| &p.slots);
    for slot in slots.filter(|s| {
        s.subscription.max.layer() == Layer::Q && !s.subscription.view.is_some_and(View::hidden)
    }) {
        let Some(track) = slot.source else { continue };
        let served = slot.subscription.rung.is_some_and(|rung| rung.layer() == Layer::Q);
        let this = if served { LimitedSubscribers::Served } else { LimitedSubscribers::Unserved };
        let all = limited.entry(track).or_default();
        *all = this.max(*all);
    }
    // With one encoding there is no choice.
    let local = |track: &&mut Track| track.remote.is_none() && !track.layers.is_single();
    for track in tracks.iter_mut().filter(local) {
        let sent = track.layers.rates(now).map(|rate| rate.is_some());
        let missing = !sent[Layer::Q as usize] && sent.contains(&true);
        let limited = limited.get(&track.info.track).copied().unwrap_or_default();
        let asked = track.params.request_smallest(limited, missing);
        outputs.extend(asked.map(|layers| track.ask(layers)));
    }
}

/// Limits the smallest layer where a subscriber's connection carries less than that of the one track that it is never
/// denied. Returns how many limits have changed.
pub(crate) fn limit_smallest_layers(
    now: Instant,
    tracks: &mut Tracks,
    peers: &Peers,
    outputs: &mut VecDeque<Output>,
) -> u64 {
    let mut narrowest: BTreeMap<TrackId, Bitrate> = BTreeMap::new();
    for slot in peers.iter().filter(|p| p.link.connected).flat_map(|p| &p.slots) {
        let Some((track, room)) = slot.source.zip(slot.subscription.room) else { continue };
        narrowest.entry(track).and_modify(|least| *least = room.min(*least)).or_insert(room);
    }
    let mut changed = 0;
    // A limit of the encoding would take its upper spatial layers first.
    let local = |track: &&mut Track| {
        track.remote.is_none() && track.info.kind == TrackKind::Video && !track.layers.has_spatial()
    };
    for track in tracks.iter_mut().filter(local) {
        let room = narrowest.get(&track.info.track).copied();
        let rate = track.layers.rate(Layer::Q, now);
        let asked = track.params.limit_smallest(now, room, rate);
        changed += u64::from(asked.is_some());
        outputs.extend(asked.map(|layers| track.ask(layers)));
    }
    changed
}

/// Pauses layers that no subscriber needs, except the one with which newcomers begin, and resumes them.
pub(crate) fn pause_unused_layers(
    now: Instant,
    tracks: &mut Tracks,
    peers: &Peers,
    outputs: &mut VecDeque<Output>,
) {
    let mut needed: BTreeMap<TrackId, [bool; 3]> = BTreeMap::new();
    for slot in peers.iter().flat_map(|p| &p.slots) {
        let Some(track) = slot.source else { continue };
        let needed = needed.entry(track).or_default();
        let sources = [slot.video.current(), slot.video.waits_for()];
        let layers = sources.into_iter().flatten().filter(|s| s.track == track);
        let layers = layers.map(|s| s.layer).chain(slot.subscription.rung.map(Rung::layer));
        layers.for_each(|layer| needed[layer as usize] = true);
    }
    for track in tracks.iter_mut() {
        // The controller decides about the layers of an adapted track; a muted track sends nothing. Spatial layers are
        // one encoding.
        if track.params.is_adapted()
            || track.info.muted
            || track.info.kind != TrackKind::Video
            || track.layers.has_spatial()
        {
            continue;
        }
        let mut needed = needed.get(&track.info.track).copied().unwrap_or_default();
        let for_nodes = Layer::ALL.into_iter().filter(|&layer| track.nodes.need(layer));
        // What is recorded is to be the best that the publisher can send.
        let needs = |layer: &Layer| track.recordings.iter().any(|r| r.needs(*layer, &track.layers));
        let recorded = Layer::ALL.into_iter().filter(needs);
        for layer in track.taps.layers().chain(for_nodes).chain(recorded) {
            needed[layer as usize] = true;
        }
        let sent = track.layers.rates(now);
        // Newcomers begin with it, unless it is a backup's.
        if let Some(first) = first_layer(needed, sent).filter(|_| !track.backup.is_one()) {
            needed[first as usize] = true;
        }
        let changes = track.params.unused(now, needed, sent);
        if changes.is_empty() {
            continue;
        }
        if let Some(remote) = &mut track.remote {
            outputs.push_back(remote.request_layers(&changes));
        } else {
            let layers = track.params.activate(changes);
            outputs.push_back(track.ask(layers));
        }
    }
}

/// Reports to the enhancer which publishers it may ask for stills: those whose low layer is tapped and whose larger
/// layer is not sent. `allowed`: the server requests stills.
pub(crate) fn update_still_sources(
    now: Instant,
    allowed: bool,
    tracks: &mut Tracks,
    peers: &Peers,
    outputs: &mut VecDeque<Output>,
) {
    for track in tracks.iter_mut().filter(|track| track.remote.is_none()) {
        let publisher = peers.get(track.info.participant);
        let channel = publisher.is_some_and(|p| p.link.channels.has_region()) && allowed;
        let tapped = match (track.taps.is_on(), track.taps.captures()) {
            (false, _) => Tapped::Nothing,
            (true, false) => Tapped::Low,
            (true, true) => Tapped::Larger,
        };
        let changed = track.stills.update(now, channel, tapped);
        let told = track.enhanced_stream().zip(changed);
        outputs.extend(
            told.map(|(stream, usable)| Output::Request(stream, EnhancerRequest::Regions(usable))),
        );
    }
}

/// Sets the quarter layer to standby where the half layer is adapted and no subscriber holds the quarter layer.
pub(crate) fn update_standby(tracks: &mut Tracks, peers: &Peers, outputs: &mut VecDeque<Output>) {
    for track in tracks.iter_mut().filter(|track| track.remote.is_none()) {
        let holds_quarter = |peer: &Peer| {
            let mut slots = peer.slots.iter().filter(|s| s.source == Some(track.info.track));
            slots.any(|s| s.subscription.rung.is_none_or(|rung| rung.layer() == Layer::Q))
        };
        let mut subscribers = track.subscribers.iter().filter_map(|&id| peers.get(id));
        let asked = track.params.set_standby(|| subscribers.any(holds_quarter));
        outputs.extend(asked.map(|layers| track.ask(layers)));
    }
}

/// Requests the key frames that subscribers, taps and recordings wait for. Returns how many were requested.
pub(crate) fn request_key_frames(
    now: Instant,
    tracks: &mut Tracks,
    peers: &mut Peers,
    outputs: &mut VecDeque<Output>,
) -> u64 {
    collect_waiting(now, tracks, peers);
    let mut requested = 0;
    for track in tracks.iter_mut() {
        if let Some(remote) = &track.remote {
            let request = track.keyframes.poll(now).map(|layer| remote.request_key_frame(layer));
            requested += u64::from(request.is_some());
            outputs.extend(request);
            continue;
        }
        let publisher = peers.connected_mut(track.info.participant);
        let Some(publisher) = publisher.filter(|_| !track.info.muted) else {
            track.keyframes.clear();
            continue;
        };
        for layer in track.taps.take_key_requests(now, &track.layers) {
            track.keyframes.request_repair(None, layer);
        }
        for recording in track.recordings.iter_mut() {
            for layer in recording.take_key_requests(now, &track.layers) {
                track.keyframes.request_repair(None, layer);
            }
        }
        if let Some(layer) = track.keyframes.poll(now)
            && publisher.link.request_key_frame(track.mid, layer)
        {
            requested += 1;
        }
    }
    requested
}

/// Takes the layers whose key frames subscribers wait for.
fn collect_waiting(now: Instant, tracks: &mut Tracks, peers: &mut Peers) {
    let uncongested = |p: &&mut Peer| p.link.connected && p.downlink.state() != State::Congested;
    for peer in peers.iter_mut().filter(uncongested) {
        for slot in peer.slots.iter_mut().filter(|s| s.key_frame_pending) {
            slot.key_frame_pending = false;
            let Some(source) = slot.video.current() else { continue };
            if let Some(track) = tracks.get_mut(source.track) {
                track.keyframes.request_repair(Some(peer.id), source.layer);
            }
        }
    }
    for peer in peers.iter().filter(|p| p.link.connected) {
        for wanted in peer.slots.iter().filter_map(|s| s.video.needs_key_frame_of()) {
            // A layer that is not sent has no key frames.
            let track = tracks.get_mut(wanted.track);
            if let Some(track) = track.filter(|t| t.layers.rate(wanted.layer, now).is_some()) {
                track.keyframes.request(Some(peer.id), wanted.layer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::api::ParticipantId;
    use crate::core::relay::track::RemotePublisher;
    use crate::core::shard::Shard;
    use crate::core::tests::harness::camera;
    use crate::relay::{NodeId, Relayed};

    #[test]
    fn another_nodes_publisher_is_asked_through_its_node_and_a_local_one_without_a_connection_not()
    {
        let (now, room) = (Instant::now(), Arc::<str>::from("tea"));
        let (mut tracks, mut peers) = (Tracks::new(Shard::default()), Peers::default());
        for participant in [1, 2].map(ParticipantId) {
            let id = tracks.add(participant, &camera(), room.clone());
            let track = tracks.get_mut(id).expect("added");
            track.keyframes.request(None, Layer::Q);
            if participant.0 == 2 {
                track.remote = Some(RemotePublisher::new(NodeId(9), TrackId(5), room.clone()));
            }
        }
        let mut outputs = VecDeque::new();
        assert_eq!(request_key_frames(now, &mut tracks, &mut peers, &mut outputs), 1);
        let asked = outputs.pop_front();
        let Some(Output::Relay(NodeId(9), _, Relayed::KeyFrame { track, layer })) = asked else {
            panic!("{asked:?}");
        };
        assert_eq!((track, layer, outputs.len()), (TrackId(5), Layer::Q, 0));
        assert_eq!(tracks.due(now), None, "the other's request is dropped");
    }
}
