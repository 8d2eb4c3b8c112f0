//! What is left when something panics, when clients never connect, and when they open channel after channel.

use str0m::channel::ChannelConfig;

use super::world::*;
use super::*;
use crate::api::{JoinOptions, Offer, OfferError};

const SECOND: Duration = Duration::from_secs(1);

/// Has a participant's connection panic in the stack.
fn break_stack(world: &mut World, id: ParticipantId) {
    let peer = world.core.peers.get_mut(id).expect("joined");
    assert_eq!(
        peer.link.stack.call(&mut peer.link.wake, |_| -> () { panic!("broken for {id}") }),
        None
    );
}

fn last(world: &World, id: ParticipantId) -> Option<&SfuEvent> {
    world.events.get(&id)?.last()
}

fn join(world: &mut World, id: ParticipantId) {
    world.core.join(world.now, "room", id, JoinOptions::default()).expect("joined");
}

/// An offer of nothing but the SDK's channel.
fn offer_data(world: &mut World, at: usize) -> (Offer, str0m::change::SdpPendingOffer) {
    let mut api = world.clients[at].rtc.sdp_api();
    api.add_channel("ctl".into());
    let (sdp, pending) = api.apply().expect("offer");
    (Offer { sdp: sdp.to_sdp_string(), ..Offer::default() }, pending)
}

#[test]
fn a_subscriber_whose_connection_panics_ends_alone() {
    let (mut world, track, _) = call();
    let third = ParticipantId(3);
    join(&mut world, third);
    let other = world.subscribe(third, track);
    world.run(2 * SECOND);
    break_stack(&mut world, SUBSCRIBER);
    world.clients[other].received.clear();
    world.run(SECOND);
    assert_eq!(last(&world, SUBSCRIBER), Some(&SfuEvent::Disconnected(DisconnectReason::Fault)));
    let stats = world.core.stats();
    assert_eq!((stats.counters.faults, stats.participants, stats.subscriptions), (1, 2, 1));
    let received = &world.clients[other].received;
    assert!(received.len() > 40, "{}", received.len());
    assert_continuous(received);
}

#[test]
fn nothing_is_left_of_a_publisher_whose_connection_panicked_and_it_may_come_back() {
    let (mut world, track, _) = call();
    break_stack(&mut world, PUBLISHER);
    world.clients.remove(0);
    world.camera.mid = None;
    world.run(SECOND);
    assert_eq!(last(&world, PUBLISHER), Some(&SfuEvent::Disconnected(DisconnectReason::Fault)));
    assert!(world.events[&SUBSCRIBER].contains(&SfuEvent::TrackRemoved { track }));
    let core = &world.core;
    assert!(core.tracks.len() == 0 && core.tracks.stream_count() == 0);
    assert_eq!(
        (core.peers.len(), core.routes.ufrag_count(), core.routes.addresses().len()),
        (1, 1, 1)
    );
    world.clients.clear();
    world.core.leave(world.now, SUBSCRIBER);
    join(&mut world, PUBLISHER);
    world.publish();
    world.run(2 * SECOND);
    assert_eq!(world.core.stats().connected, 1);
}

#[test]
fn a_participant_without_a_place_in_its_own_lists_leaves_nothing_behind() {
    let (mut world, _, _) = call();
    // As a fault between two steps of ours would leave it.
    world.core.peers.get_mut(PUBLISHER).expect("joined").published.clear();
    world.core.peers.get_mut(SUBSCRIBER).expect("joined").slots.clear();
    let fault = contained(|| -> () { panic!("in between") }).expect_err("a fault");
    world.core.on_fault(world.now, SUBSCRIBER, &fault);
    assert_eq!(world.core.stats().subscriptions, 0);
    world.core.on_fault(world.now, PUBLISHER, &fault);
    let stats = world.core.stats();
    assert_eq!((stats.tracks, stats.rooms, stats.counters.faults), (0, 0, 2));
}

#[test]
fn an_offer_to_a_broken_connection_is_answered_with_the_fault() {
    let mut world = World::new(config());
    join(&mut world, PUBLISHER);
    let at = world.client(PUBLISHER);
    let (offer, _) = offer_data(&mut world, at);
    assert!(world.core.offer(world.now, PUBLISHER, &offer).is_ok());
    break_stack(&mut world, PUBLISHER);
    let answer = world.core.offer(world.now, PUBLISHER, &offer);
    assert_eq!(answer, Err(OfferError::Fault));
    assert_eq!((world.core.stats().participants, world.core.counters.faults), (0, 1));
}

#[test]
fn who_never_offers_and_who_never_connects_are_removed_in_time() {
    let mut world = World::new(config());
    join(&mut world, PUBLISHER);
    world.publish();
    world.camera.mid = None;
    world.clients.clear();
    join(&mut world, SUBSCRIBER);
    world.run(29 * SECOND);
    assert!(world.core.stats().participants >= 1, "not before its time");
    world.run(2 * SECOND);
    assert_eq!(world.core.stats().participants, 0);
    for id in [PUBLISHER, SUBSCRIBER] {
        assert_eq!(
            last(&world, id),
            Some(&SfuEvent::Disconnected(DisconnectReason::NeverConnected))
        );
    }
    let counters = world.core.counters;
    assert_eq!(counters.peers_unconnected + counters.peers_failed, 2);
}

#[test]
fn offers_do_not_put_off_the_end_of_who_never_connects() {
    let mut world = World::new(config());
    join(&mut world, PUBLISHER);
    let at = world.client(PUBLISHER);
    let (offer, _) = offer_data(&mut world, at);
    for _ in 0..20 {
        let _ = world.core.offer(world.now, PUBLISHER, &offer);
        world.now += 2 * SECOND;
        world.core.advance(world.now);
    }
    assert_eq!(world.core.stats().participants, 0);
}

/// A client with the channel of the SDK, up.
fn with_data() -> World {
    let mut world = World::new(config());
    join(&mut world, PUBLISHER);
    let at = world.client(PUBLISHER);
    let (offer, pending) = offer_data(&mut world, at);
    let answer = world.core.offer(world.now, PUBLISHER, &offer).expect("answer");
    world.accept(at, pending, &answer);
    world.run(2 * SECOND);
    assert_eq!(world.core.stats().connected, 1, "an offer of a data channel alone is enough");
    world
}

fn open(world: &mut World, stream: Option<u16>) -> str0m::channel::ChannelId {
    let config =
        ChannelConfig { label: "chat".into(), negotiated: stream, ..ChannelConfig::default() };
    world.clients[0].due = world.now;
    world.clients[0].rtc.direct_api().create_data_channel(config)
}

#[test]
fn a_channel_that_is_none_of_ours_is_closed_and_hurts_nobody() {
    let mut world = with_data();
    for _ in 0..4 {
        let id = open(&mut world, None);
        world.run(SECOND);
        assert!(world.clients[0].rtc.channel(id).is_none(), "closed");
    }
    let peer = &world.core.peers.get(PUBLISHER).expect("it is there");
    assert!(peer.can_receive_anchors() || peer.link.connected);
    assert_eq!(world.core.stats().connected, 1);
}

#[test]
fn a_client_that_opens_channel_after_channel_is_removed() {
    let mut world = with_data();
    for _ in 0..8 {
        open(&mut world, None);
        world.run(SECOND / 4);
    }
    assert_eq!(
        last(&world, PUBLISHER),
        Some(&SfuEvent::Disconnected(DisconnectReason::TooManyChannels))
    );
    assert_eq!(world.core.counters.peers_channels, 1);
}

#[test]
fn a_client_that_sends_on_streams_without_opening_channels_is_removed() {
    let mut world = with_data();
    // Agreed on by other means: nothing is heard of them but what is sent.
    let ids: Vec<_> = (100..120).map(|stream| open(&mut world, Some(stream))).collect();
    world.run(SECOND / 4);
    assert_eq!(world.core.stats().participants, 1);
    for id in ids {
        if let Some(mut channel) = world.clients[0].rtc.channel(id) {
            assert!(channel.write(true, b"more").expect("written"));
        }
    }
    world.clients[0].due = world.now;
    world.run(SECOND / 4);
    assert_eq!(
        last(&world, PUBLISHER),
        Some(&SfuEvent::Disconnected(DisconnectReason::TooManyChannels))
    );
}

#[test]
fn a_client_may_send_any_number_of_small_messages() {
    let mut world = with_data();
    let config = ChannelConfig {
        label: regions::CHANNEL.into(),
        ordered: false,
        ..ChannelConfig::default()
    };
    world.clients[0].due = world.now;
    let id = world.clients[0].rtc.direct_api().create_data_channel(config);
    world.run(SECOND / 4);
    // More than may wait in the stack: none of them does for long.
    for _ in 0..60 {
        let mut channel = world.clients[0].rtc.channel(id).expect("open");
        for _ in 0..100 {
            assert!(channel.write(true, b"small").expect("written"));
        }
        world.clients[0].due = world.now;
        world.run(SECOND / 4);
    }
    assert_eq!(world.core.stats().participants, 1);
}
