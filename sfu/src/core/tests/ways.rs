//! Viewers of one publisher, with and without networks of their own: who gets anchors, what each is told, and whether
//! any are made.

use windlass_types::{FrameNetwork, Layer, NoNetwork, Rung, Size, TapInput, Way, WayReason};

use super::harness::*;
use crate::api::{JoinOptions, NetworkReport, TrackId, TrackReport};
use crate::core::subscriber::view::View;
use crate::core::*;

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
fn published() -> (Harness, TrackId) {
    let mut harness = Harness::new(config());
    harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = harness.publish();
    harness.camera.layers = vec![Layer::Q];
    harness.run(2 * SECOND);
    (harness, track)
}

fn watch(harness: &mut Harness, id: ParticipantId, track: TrackId) {
    harness.core.join(harness.now, "room", id, JoinOptions::default()).expect("joined");
    harness.subscribe(id, track);
    harness.core.set_view(harness.now, id, track, TILE);
}

/// Lets the viewers report once a second for so long.
fn report(
    harness: &mut Harness,
    track: TrackId,
    said: &[(ParticipantId, NetworkReport)],
    seconds: u32,
) {
    for _ in 0..seconds {
        for &(id, network) in said {
            let report = TrackReport { network, ..TrackReport::default() };
            harness.core.report(harness.now, id, track, report).expect("it watches");
        }
        harness.run(SECOND);
    }
}

/// The rung and the way that a viewer was told last.
fn told(harness: &Harness, id: ParticipantId) -> (Rung, (Way, WayReason)) {
    let events = harness.events[&id].iter().rev();
    let way = events.clone().find_map(|event| match event {
        SfuEvent::Way { way, reason, .. } => Some((*way, *reason)),
        _ => None,
    });
    let rung = harness.rungs(id).last().expect("it was told a rung").0;
    (rung, way.expect("it was told a way"))
}

const FLOW_AS_OFF: (Rung, (Way, WayReason)) = (Rung::QPlus, (Way::Flow, WayReason::NetworkOff));
const NETWORK: (Rung, (Way, WayReason)) = (Rung::Q, (Way::Network, WayReason::LittleGain));

#[test]
fn each_viewer_of_a_publisher_has_its_own_way_and_is_told_why() {
    let (mut harness, track) = published();
    watch(&mut harness, SUBSCRIBER, track);
    watch(&mut harness, OTHER, track);
    harness.run(2 * SECOND);
    assert_eq!(told(&harness, OTHER), (Rung::QPlus, (Way::Flow, WayReason::NetworkTrying)));
    report(&mut harness, track, &[(SUBSCRIBER, XS), (OTHER, none(NoNetwork::Off))], 12);
    assert_eq!((told(&harness, SUBSCRIBER), told(&harness, OTHER)), (NETWORK, FLOW_AS_OFF));
    let ways = harness.core.stats().ways;
    let ways: Vec<_> = ways.iter().filter(|(_, _, count)| *count > 0).collect();
    let counted = [(Way::Flow, WayReason::NetworkOff, 1), (Way::Network, WayReason::LittleGain, 1)];
    assert_eq!((ways.as_slice(), harness.core.stats().taps), (counted.as_slice(), 1));
}

#[test]
fn no_anchors_are_made_for_a_publisher_whose_viewers_all_run_networks() {
    let (mut harness, track) = published();
    watch(&mut harness, SUBSCRIBER, track);
    report(&mut harness, track, &[(SUBSCRIBER, XS)], 3);
    assert_eq!(harness.core.stats().taps, 1, "until the network has run for a while");
    assert_eq!(told(&harness, SUBSCRIBER).1, (Way::Both, WayReason::NetworkTrying));
    report(&mut harness, track, &[(SUBSCRIBER, XS)], 9);
    assert!(matches!(harness.taps.last(), Some(TapInput::Stop { .. })));
    assert_eq!((harness.core.stats().taps, told(&harness, SUBSCRIBER)), (0, NETWORK));
    watch(&mut harness, OTHER, track);
    harness.run(SECOND);
    assert_eq!(harness.core.stats().taps, 1, "one needs them");
}

#[test]
fn a_network_that_is_dropped_for_load_brings_anchors_within_a_second_and_they_stay() {
    let (mut harness, track) = published();
    watch(&mut harness, SUBSCRIBER, track);
    report(&mut harness, track, &[(SUBSCRIBER, XS)], 12);
    assert_eq!(told(&harness, SUBSCRIBER), NETWORK);
    report(&mut harness, track, &[(SUBSCRIBER, none(NoNetwork::Slow))], 1);
    let slow = (Rung::QPlus, (Way::Flow, WayReason::NetworkSlow));
    assert_eq!((told(&harness, SUBSCRIBER), harness.core.stats().taps), (slow, 1));
    // A machine that tries again and again.
    let rungs = harness.rungs(SUBSCRIBER).len();
    for _ in 0..4 {
        report(&mut harness, track, &[(SUBSCRIBER, XS)], 5);
        report(&mut harness, track, &[(SUBSCRIBER, none(NoNetwork::Slow))], 2);
    }
    assert_eq!(harness.rungs(SUBSCRIBER).len(), rungs, "none ended");
}

#[test]
fn a_publishers_own_pixels_go_to_viewers_with_networks_too() {
    let (mut harness, track) = published();
    harness.offer_stills();
    watch(&mut harness, SUBSCRIBER, track);
    report(&mut harness, track, &[(SUBSCRIBER, XS)], 12);
    assert_eq!(told(&harness, SUBSCRIBER), (Rung::QPlus, (Way::Both, WayReason::Gain)));
}
