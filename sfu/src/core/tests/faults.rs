//! What is left when something panics, when clients never connect, and when they open channel after channel.

use str0m::channel::ChannelConfig;

use super::harness::*;
use crate::api::{JoinOptions, Offer, OfferError};
use crate::core::*;

const SECOND: Duration = Duration::from_secs(1);

/// Has a participant's connection panic in the stack.
fn break_stack(harness: &mut Harness, id: ParticipantId) {
    let peer = harness.core.peers.get_mut(id).expect("joined");
    assert_eq!(
        peer.link.stack.call(&mut peer.link.wake, |_| -> () { panic!("broken for {id}") }),
        None
    );
}

fn last(harness: &Harness, id: ParticipantId) -> Option<&SfuEvent> {
    harness.events.get(&id)?.last()
}

fn join(harness: &mut Harness, id: ParticipantId) {
    harness.core.join(harness.now, "room", id, JoinOptions::default()).expect("joined");
}

/// An offer of nothing but the SDK's channel.
fn offer_data(harness: &mut Harness, at: usize) -> (Offer, str0m::change::SdpPendingOffer) {
    let mut api = harness.clients[at].rtc.sdp_api();
    api.add_channel("ctl".into());
    let (sdp, pending) = api.apply().expect("offer");
    (Offer { sdp: sdp.to_sdp_string(), ..Offer::default() }, pending)
}

#[test]
fn a_subscriber_whose_connection_panics_ends_alone() {
    let (mut harness, track, _) = call();
    let third = ParticipantId(3);
    join(&mut harness, third);
    let other = harness.subscribe(third, track);
    harness.run(2 * SECOND);
    break_stack(&mut harness, SUBSCRIBER);
    harness.clients[other].received.clear();
    harness.run(SECOND);
    assert_eq!(last(&harness, SUBSCRIBER), Some(&SfuEvent::Disconnected(DisconnectReason::Fault)));
    let stats = harness.core.stats();
    assert_eq!((stats.counters.faults, stats.participants, stats.subscriptions), (1, 2, 1));
    let received = &harness.clients[other].received;
    assert!(received.len() > 40, "{}", received.len());
    assert_continuous(received);
}

#[test]
fn nothing_is_left_of_a_publisher_whose_connection_panicked_and_it_may_come_back() {
    let (mut harness, track, _) = call();
    break_stack(&mut harness, PUBLISHER);
    harness.clients.remove(0);
    harness.camera.mid = None;
    harness.run(SECOND);
    assert_eq!(last(&harness, PUBLISHER), Some(&SfuEvent::Disconnected(DisconnectReason::Fault)));
    assert!(harness.events[&SUBSCRIBER].contains(&SfuEvent::TrackRemoved { track }));
    let core = &harness.core;
    assert!(core.tracks.len() == 0 && core.tracks.stream_count() == 0);
    assert_eq!(
        (core.peers.len(), core.routes.ufrag_count(), core.routes.addresses().len()),
        (1, 1, 1)
    );
    harness.clients.clear();
    harness.core.leave(harness.now, SUBSCRIBER);
    join(&mut harness, PUBLISHER);
    harness.publish();
    harness.run(2 * SECOND);
    assert_eq!(harness.core.stats().connected, 1);
}

#[test]
fn a_participant_without_a_place_in_its_own_lists_leaves_nothing_behind() {
    let (mut harness, _, _) = call();
    // As a fault between two steps of ours would leave it.
    harness.core.peers.get_mut(PUBLISHER).expect("joined").published.clear();
    harness.core.peers.get_mut(SUBSCRIBER).expect("joined").slots.clear();
    let fault = contained(|| -> () { panic!("in between") }).expect_err("a fault");
    harness.core.on_fault(harness.now, SUBSCRIBER, &fault);
    assert_eq!(harness.core.stats().subscriptions, 0);
    harness.core.on_fault(harness.now, PUBLISHER, &fault);
    let stats = harness.core.stats();
    assert_eq!((stats.tracks, stats.rooms, stats.counters.faults), (0, 0, 2));
}

#[test]
fn an_offer_to_a_broken_connection_is_answered_with_the_fault() {
    let mut harness = Harness::new(config());
    join(&mut harness, PUBLISHER);
    let at = harness.client(PUBLISHER);
    let (offer, _) = offer_data(&mut harness, at);
    assert!(harness.core.offer(harness.now, PUBLISHER, &offer).is_ok());
    break_stack(&mut harness, PUBLISHER);
    let answer = harness.core.offer(harness.now, PUBLISHER, &offer);
    assert_eq!(answer, Err(OfferError::Fault));
    assert_eq!((harness.core.stats().participants, harness.core.counters.faults), (0, 1));
}

#[test]
fn who_never_offers_and_who_never_connects_are_removed_in_time() {
    let mut harness = Harness::new(config());
    join(&mut harness, PUBLISHER);
    harness.publish();
    harness.camera.mid = None;
    harness.clients.clear();
    join(&mut harness, SUBSCRIBER);
    harness.run(29 * SECOND);
    assert!(harness.core.stats().participants >= 1, "not before its time");
    harness.run(2 * SECOND);
    assert_eq!(harness.core.stats().participants, 0);
    for id in [PUBLISHER, SUBSCRIBER] {
        assert_eq!(
            last(&harness, id),
            Some(&SfuEvent::Disconnected(DisconnectReason::NeverConnected))
        );
    }
    let counters = harness.core.counters;
    assert_eq!(counters.peers_unconnected + counters.peers_failed, 2);
}

#[test]
fn offers_do_not_put_off_the_end_of_who_never_connects() {
    let mut harness = Harness::new(config());
    join(&mut harness, PUBLISHER);
    let at = harness.client(PUBLISHER);
    let (offer, _) = offer_data(&mut harness, at);
    for _ in 0..20 {
        let _ = harness.core.offer(harness.now, PUBLISHER, &offer);
        harness.now += 2 * SECOND;
        harness.core.advance(harness.now);
    }
    assert_eq!(harness.core.stats().participants, 0);
}

/// A client with the channel of the SDK, up.
fn with_data() -> Harness {
    let mut harness = Harness::new(config());
    join(&mut harness, PUBLISHER);
    let at = harness.client(PUBLISHER);
    let (offer, pending) = offer_data(&mut harness, at);
    harness.exchange(at, PUBLISHER, &offer, pending);
    harness.run(2 * SECOND);
    assert_eq!(harness.core.stats().connected, 1, "an offer of a data channel alone is enough");
    harness
}

fn open(harness: &mut Harness, stream: Option<u16>) -> str0m::channel::ChannelId {
    let config =
        ChannelConfig { label: "chat".into(), negotiated: stream, ..ChannelConfig::default() };
    harness.clients[0].due = harness.now;
    harness.clients[0].rtc.direct_api().create_data_channel(config)
}

#[test]
fn a_channel_that_is_none_of_ours_is_closed_and_hurts_nobody() {
    let mut harness = with_data();
    for _ in 0..4 {
        let id = open(&mut harness, None);
        harness.run(SECOND);
        assert!(harness.clients[0].rtc.channel(id).is_none(), "closed");
    }
    let peer = &harness.core.peers.get(PUBLISHER).expect("it is there");
    assert!(peer.can_receive_anchors() || peer.link.connected);
    assert_eq!(harness.core.stats().connected, 1);
}

#[test]
fn a_client_that_opens_channel_after_channel_is_removed() {
    let mut harness = with_data();
    for _ in 0..8 {
        open(&mut harness, None);
        harness.run(SECOND / 4);
    }
    assert_eq!(
        last(&harness, PUBLISHER),
        Some(&SfuEvent::Disconnected(DisconnectReason::TooManyChannels))
    );
    assert_eq!(harness.core.counters.peers_channels, 1);
}

#[test]
fn a_client_that_sends_on_streams_without_opening_channels_is_removed() {
    let mut harness = with_data();
    // Agreed on by other means: nothing is heard of them but what is sent.
    let ids: Vec<_> = (100..120).map(|stream| open(&mut harness, Some(stream))).collect();
    harness.run(SECOND / 4);
    assert_eq!(harness.core.stats().participants, 1);
    for id in ids {
        if let Some(mut channel) = harness.clients[0].rtc.channel(id) {
            assert!(channel.write(true, b"more").expect("written"));
        }
    }
    harness.clients[0].due = harness.now;
    harness.run(SECOND / 4);
    assert_eq!(
        last(&harness, PUBLISHER),
        Some(&SfuEvent::Disconnected(DisconnectReason::TooManyChannels))
    );
}

#[test]
fn a_client_may_send_any_number_of_small_messages() {
    let mut harness = with_data();
    let config = ChannelConfig {
        label: publisher::stills::CHANNEL.into(),
        ordered: false,
        ..ChannelConfig::default()
    };
    harness.clients[0].due = harness.now;
    let id = harness.clients[0].rtc.direct_api().create_data_channel(config);
    harness.run(SECOND / 4);
    // More than may wait in the stack: none of them does for long.
    for _ in 0..60 {
        let mut channel = harness.clients[0].rtc.channel(id).expect("open");
        for _ in 0..100 {
            assert!(channel.write(true, b"small").expect("written"));
        }
        harness.clients[0].due = harness.now;
        harness.run(SECOND / 4);
    }
    assert_eq!(harness.core.stats().participants, 1);
}
