//! Viewers of one publisher, with and without networks of their own: who gets anchors, what each is told, and whether
//! any are made.

use windlass_types::{FrameNetwork, Layer, NoNetwork, Rung, Size, TapInput, Way, WayReason};

use super::view::View;
use super::world::*;
use super::*;
use crate::api::{JoinOptions, NetworkReport, TrackId, TrackReport};

/// A tile that shows the quarter layer twice enlarged.
const TILE: View = View { size: Size::new(640, 360), pinned: false };
const OTHER: ParticipantId = ParticipantId(3);
const XS: NetworkReport = NetworkReport { network: FrameNetwork::Xs, absence: None };
const SECOND: Duration = Duration::from_secs(1);

/// A report that no network runs, and why.
fn none(why: NoNetwork) -> NetworkReport {
    NetworkReport { network: FrameNetwork::None, absence: Some(why) }
}

/// A publisher of the quarter layer alone, who gives no stills: all anchors would be enhanced ones.
fn published() -> (World, TrackId) {
    let mut world = World::new(config());
    world.core.join(world.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = world.publish();
    world.camera.layers = vec![Layer::Q];
    world.run(2 * SECOND);
    (world, track)
}

fn watch(world: &mut World, id: ParticipantId, track: TrackId) {
    world.core.join(world.now, "room", id, JoinOptions::default()).expect("joined");
    world.subscribe(id, track);
    world.core.set_view(world.now, id, track, TILE);
}

/// Lets the viewers report once a second for so long.
fn report(
    world: &mut World,
    track: TrackId,
    said: &[(ParticipantId, NetworkReport)],
    seconds: u32,
) {
    for _ in 0..seconds {
        for &(id, network) in said {
            let report = TrackReport { network, ..TrackReport::default() };
            world.core.report(world.now, id, track, report).expect("it watches");
        }
        world.run(SECOND);
    }
}

/// The rung and the way that a viewer was told last.
fn told(world: &World, id: ParticipantId) -> (Rung, (Way, WayReason)) {
    let events = world.events[&id].iter().rev();
    let way = events.clone().find_map(|event| match event {
        SfuEvent::Way { way, reason, .. } => Some((*way, *reason)),
        _ => None,
    });
    let rung = world.rungs(id).last().expect("it was told a rung").0;
    (rung, way.expect("it was told a way"))
}

const FLOW_AS_OFF: (Rung, (Way, WayReason)) = (Rung::QPlus, (Way::Flow, WayReason::NetworkOff));
const NETWORK: (Rung, (Way, WayReason)) = (Rung::Q, (Way::Network, WayReason::LittleGain));

#[test]
fn each_viewer_of_a_publisher_has_its_own_way_and_is_told_why() {
    let (mut world, track) = published();
    watch(&mut world, SUBSCRIBER, track);
    watch(&mut world, OTHER, track);
    world.run(2 * SECOND);
    assert_eq!(told(&world, OTHER), (Rung::QPlus, (Way::Flow, WayReason::NetworkTrying)));
    report(&mut world, track, &[(SUBSCRIBER, XS), (OTHER, none(NoNetwork::Off))], 12);
    assert_eq!((told(&world, SUBSCRIBER), told(&world, OTHER)), (NETWORK, FLOW_AS_OFF));
    let ways = world.core.stats().ways;
    let ways: Vec<_> = ways.iter().filter(|(_, _, count)| *count > 0).collect();
    let counted = [(Way::Flow, WayReason::NetworkOff, 1), (Way::Network, WayReason::LittleGain, 1)];
    assert_eq!((ways.as_slice(), world.core.stats().taps), (counted.as_slice(), 1));
}

#[test]
fn no_anchors_are_made_for_a_publisher_whose_viewers_all_run_networks() {
    let (mut world, track) = published();
    watch(&mut world, SUBSCRIBER, track);
    report(&mut world, track, &[(SUBSCRIBER, XS)], 3);
    assert_eq!(world.core.stats().taps, 1, "until the network has run for a while");
    assert_eq!(told(&world, SUBSCRIBER).1, (Way::Both, WayReason::NetworkTrying));
    report(&mut world, track, &[(SUBSCRIBER, XS)], 9);
    assert!(matches!(world.taps.last(), Some(TapInput::Stop { .. })));
    assert_eq!((world.core.stats().taps, told(&world, SUBSCRIBER)), (0, NETWORK));
    watch(&mut world, OTHER, track);
    world.run(SECOND);
    assert_eq!(world.core.stats().taps, 1, "one needs them");
}

#[test]
fn a_network_that_is_dropped_for_load_brings_anchors_within_a_second_and_they_stay() {
    let (mut world, track) = published();
    watch(&mut world, SUBSCRIBER, track);
    report(&mut world, track, &[(SUBSCRIBER, XS)], 12);
    assert_eq!(told(&world, SUBSCRIBER), NETWORK);
    report(&mut world, track, &[(SUBSCRIBER, none(NoNetwork::Slow))], 1);
    let slow = (Rung::QPlus, (Way::Flow, WayReason::NetworkSlow));
    assert_eq!((told(&world, SUBSCRIBER), world.core.stats().taps), (slow, 1));
    // A machine that tries again and again.
    let rungs = world.rungs(SUBSCRIBER).len();
    for _ in 0..4 {
        report(&mut world, track, &[(SUBSCRIBER, XS)], 5);
        report(&mut world, track, &[(SUBSCRIBER, none(NoNetwork::Slow))], 2);
    }
    assert_eq!(world.rungs(SUBSCRIBER).len(), rungs, "none ended");
}

#[test]
fn a_publishers_own_pixels_go_to_viewers_with_networks_too() {
    let (mut world, track) = published();
    world.offer_stills();
    watch(&mut world, SUBSCRIBER, track);
    report(&mut world, track, &[(SUBSCRIBER, XS)], 12);
    assert_eq!(told(&world, SUBSCRIBER), (Rung::QPlus, (Way::Both, WayReason::Gain)));
}
