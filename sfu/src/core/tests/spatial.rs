//! A publisher of spatial layers in one encoding, and subscribers of each.

use std::time::Duration;

use str0m::rtp::RtpPacket;
use windlass_types::{Layer, Refusal, Rung, Size};

use super::harness::{Harness, PUBLISHER, SUBSCRIBER, assert_continuous, config};
use crate::api::{JoinOptions, ParticipantId, SfuEvent, TrackId};
use crate::core::subscriber::view::View;

/// A publisher of three spatial layers, in a call.
fn publisher() -> (Harness, TrackId) {
    let mut harness = Harness::new(config());
    harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = harness.publish_spatial();
    harness.run(Duration::from_secs(2));
    (harness, track)
}

fn subscribe(harness: &mut Harness, track: TrackId, id: ParticipantId, max: Rung) -> usize {
    harness.core.join(harness.now, "room", id, JoinOptions::default()).expect("joined");
    let at = harness.subscribe_at_most(id, track, Some(max));
    harness.run(Duration::from_secs(3));
    at
}

/// The spatial layers of packets: what is behind the headers names them.
fn layers(packets: &[RtpPacket]) -> Vec<u8> {
    packets.iter().filter_map(|packet| packet.payload.last().copied()).collect()
}

#[test]
fn each_subscriber_gets_the_spatial_layers_of_its_rung() {
    let (mut harness, track) = publisher();
    for (n, (max, widest, width)) in
        [(Rung::Q, 0, 320), (Rung::H, 1, 640), (Rung::F, 2, 1280)].into_iter().enumerate()
    {
        let id = ParticipantId(10 + n as u64);
        let at = subscribe(&mut harness, track, id, max);
        let received = &harness.clients[at].received;
        assert!(received.len() > 50, "{max:?}: {}", received.len());
        assert_continuous(received);
        let layers = layers(received);
        assert_eq!(layers.iter().max(), Some(&widest), "{max:?}");
        let smallest = received.iter().filter(|packet| packet.payload.ends_with(&[0])).count();
        assert_eq!(smallest, layers.len() / usize::from(widest + 1));
        let (rung, _, announced) = *harness.rungs(id).last().expect("announced");
        assert_eq!((rung, announced), (max, width));
        let spatial_layers = harness.events[&id].iter().rev().find_map(|event| match event {
            SfuEvent::RungChanged { spatial_layers, .. } => Some(*spatial_layers),
            _ => None,
        });
        assert_eq!(spatial_layers, Some(3));
    }
}

#[test]
fn spatial_layers_go_at_once_and_come_back_with_a_key_frame() {
    let (mut harness, track) = publisher();
    let at = subscribe(&mut harness, track, SUBSCRIBER, Rung::F);
    let requested = harness.clients[0].key_frame_requests;
    let show = |harness: &mut Harness, width, height| {
        let view = View { size: Size::new(width, height), pinned: false };
        harness.core.peers.get_mut(SUBSCRIBER).expect("joined").slots[0].subscription.view =
            Some(view);
        harness.core.schedule.allocate_now(harness.now);
        let before = harness.clients[at].received.len();
        harness.run(Duration::from_secs(1));
        layers(&harness.clients[at].received[before..])
    };
    let small = show(&mut harness, 200, 112);
    assert!(small[12..].iter().all(|layer| *layer == 0), "{small:?}");
    assert_eq!(
        harness.clients[0].key_frame_requests, requested,
        "a lower layer needs no key frame"
    );
    assert_eq!(harness.rungs(SUBSCRIBER).last().map(|r| (r.0, r.2)), Some((Rung::Q, 320)));
    let large = show(&mut harness, 1280, 720);
    assert_eq!(large.iter().max(), Some(&2));
    assert!(harness.clients[0].key_frame_requests > requested);
    assert_eq!(harness.rungs(SUBSCRIBER).last().map(|r| (r.0, r.2)), Some((Rung::F, 1280)));
    assert_continuous(&harness.clients[at].received);
}

#[test]
fn a_spatial_layer_counts_with_those_below_it_and_none_is_paused() {
    let (mut harness, track) = publisher();
    subscribe(&mut harness, track, SUBSCRIBER, Rung::Q);
    harness.run(Duration::from_secs(10));
    let track = harness.core.tracks.get(track).expect("published");
    let [q, h, f] = track.layers.rates(harness.now).map(|rate| rate.expect("sent").as_bps());
    assert!(h > 2 * q && f > 2 * h - q / 2, "{q}, {h}, {f}");
    assert_eq!(track.layers.sizes(), [1u16, 2, 4].map(|n| Some(Size::new(320 * n, 180 * n))));
    assert_eq!(harness.knobs_of_layers(), Vec::<Vec<_>>::new());
    let (encoding, spatial) = track.layers.spatial().encoding(Layer::H);
    assert_eq!((encoding, spatial), (Layer::Q, Some(1)));
}

#[test]
fn spatial_layers_are_not_tapped_and_viewers_are_told() {
    let (mut harness, track) = publisher();
    subscribe(&mut harness, track, SUBSCRIBER, Rung::F);
    assert_eq!(harness.taps.len(), 0);
    assert_eq!(harness.refused(SUBSCRIBER), Some(Refusal::Codec));
}

#[test]
fn what_is_lost_of_spatial_layers_is_sent_again() {
    let (mut harness, track) = publisher();
    let at = subscribe(&mut harness, track, SUBSCRIBER, Rung::H);
    harness.clients[at].loss = 10;
    harness.run(Duration::from_secs(3));
    harness.clients[at].loss = 0;
    harness.run(Duration::from_secs(1));
    assert_continuous(&harness.clients[at].received);
}

#[test]
fn layers_that_are_added_without_a_key_frame_are_known_at_once() {
    let mut harness = Harness::new(config());
    harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = harness.publish_spatial();
    harness.camera.spatial = 1;
    harness.run(Duration::from_secs(2));
    let (small, large) = (ParticipantId(10), ParticipantId(11));
    let at = [(small, Rung::Q), (large, Rung::F)]
        .map(|(id, max)| subscribe(&mut harness, track, id, max));
    assert_eq!(
        harness.rungs(large).last().map(|r| r.0.layer()),
        Some(Layer::Q),
        "there is no other"
    );
    let before = at.map(|at| harness.clients[at].received.len());
    let requested = harness.clients[0].key_frame_requests;
    (harness.camera.spatial, harness.camera.names_spatial) = (3, true);
    harness.run(Duration::from_secs(1));
    let [of_small, of_large] =
        [0, 1].map(|n| layers(&harness.clients[at[n]].received[before[n]..]));
    assert_eq!(of_large.iter().max(), Some(&2));
    // The first picture begins before the server allocates anew.
    assert!(of_small[8..].iter().all(|layer| *layer == 0), "{of_small:?}");
    assert_eq!(harness.clients[0].key_frame_requests, requested);
    assert_eq!(harness.rungs(large).last().map(|r| (r.0, r.2)), Some((Rung::F, 1280)));
    assert_eq!(harness.refused(large), Some(Refusal::Codec));
}
