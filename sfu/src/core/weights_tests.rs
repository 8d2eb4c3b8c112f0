//! Weights of frame networks on their way to subscribers.

use bytes::Bytes;
use windlass_types::weights::{NetworkId, OwnWeights, WeightsMessage};
use windlass_types::{EnhancerOutput, Rung, Size, Weights};

use super::world::*;
use super::*;
use crate::api::{JoinOptions, TrackId};

/// A call whose subscriber holds `h+`.
fn enhanced_call() -> (World, TrackId, usize) {
    let (mut world, track, at) = call();
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::HPlus);
    world.run(Duration::from_secs(2));
    world.clients[at].messages.clear();
    (world, track, at)
}

/// The enhancer sends weights of a network for what it was last given; `bytes` of 0 take them back.
fn learn(world: &mut World, tier: u8, bytes: usize) {
    let windlass_types::TapFrame { stream, epoch, .. } = world.last_tapped();
    let own = (bytes > 0).then(|| OwnWeights {
        size: Size::new(640, 360),
        hash: 1,
        scene: [2; 24],
        difference: Bytes::from(vec![3; bytes]),
    });
    let network = NetworkId { tier, scale: 2 };
    let weights = EnhancerOutput::Weights(Weights { stream, epoch, network, own });
    world.core.on_enhancer_output(world.now, weights);
}

/// The weights that a client was sent.
fn got(world: &World, at: usize) -> Vec<WeightsMessage> {
    let messages = world.clients[at].messages.iter();
    messages.filter_map(|message| WeightsMessage::parse(message).ok()).collect()
}

#[test]
fn weights_reach_who_holds_the_rung_once_and_newcomers_get_the_newest() {
    let (mut world, track, at) = enhanced_call();
    for bytes in [100, 101] {
        learn(&mut world, 1, bytes);
        world.run(Duration::from_secs(1));
    }
    world.run(Duration::from_secs(2));
    let messages = got(&world, at);
    let lengths: Vec<_> =
        messages.iter().map(|m| m.own.as_ref().map(|own| own.difference.len())).collect();
    assert_eq!(lengths, [Some(100), Some(101)], "{:?}", world.core.stats().counters);
    assert_eq!(messages[0].stream, world.last_tapped().stream.0);
    assert_eq!(Some(messages[0].epoch), world.rungs(SUBSCRIBER).last().map(|rung| rung.1));
    let third = ParticipantId(3);
    world.core.join(world.now, "room", third, JoinOptions::default()).expect("joined");
    let late = world.subscribe(third, track);
    world.core.set_max_rung(world.now, third, track, Rung::HPlus);
    world.run(Duration::from_secs(3));
    let lengths: Vec<_> =
        got(&world, late).iter().map(|m| m.own.as_ref().map(|own| own.difference.len())).collect();
    assert_eq!(lengths, [Some(101)]);
}

#[test]
fn weights_are_taken_back_from_those_who_have_them() {
    let (mut world, track, at) = enhanced_call();
    learn(&mut world, 0, 0);
    world.run(Duration::from_secs(1));
    assert!(got(&world, at).is_empty(), "nobody has any");
    learn(&mut world, 1, 100);
    world.run(Duration::from_secs(1));
    // Whoever takes a plain rung stops the tap.
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::H);
    world.run(Duration::from_secs(2));
    let owned: Vec<_> = got(&world, at).iter().map(|m| m.own.is_some()).collect();
    assert_eq!(owned, [true, false]);
    assert_eq!(world.core.stats().counters.weights_out_taken_back, 1);
}

#[test]
fn weights_of_another_layer_are_kept_back() {
    let (mut world, track, at) = enhanced_call();
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::QPlus);
    learn(&mut world, 1, 100);
    world.run(Duration::from_secs(2));
    assert!(got(&world, at).iter().all(|m| m.own.is_none()));
}

#[test]
fn weights_take_sixteen_kbits_a_second_at_most() {
    let (mut world, _, at) = enhanced_call();
    let begin = world.now;
    let mut sent = 0;
    for tier in (0..4).cycle().take(40) {
        learn(&mut world, tier, 1000);
        world.run(Duration::from_millis(250));
        sent = got(&world, at).iter().map(|message| message.to_bytes().len()).sum();
    }
    let seconds = (world.now - begin).as_secs_f64();
    // One message may come before its time is paid for.
    assert!(8.0 * (sent as f64 - 1044.0) <= 16_000.0 * seconds, "{sent} bytes in {seconds} s");
    assert!(8.0 * sent as f64 > 8_000.0 * seconds, "{sent} bytes in {seconds} s");
}
