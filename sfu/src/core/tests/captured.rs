//! Calls whose publisher gives its own pixels: a larger layer, or stills.

use crate::api::JoinOptions;
use windlass_types::Rung;

use bytes::Bytes;
use windlass_types::AnchorSource;
use windlass_types::message::AnchorHeader;
use windlass_types::message::HTJ2K;
use windlass_types::tiles::TileMap;
use windlass_types::{
    Bitrate, EnhancerOutput, EnhancerRequest, Layer, LayerKnobs, PublisherKnobs, Refusal, Size,
    TapInput, VideoCodec,
};

use super::harness::*;
use crate::api::{TrackId, UplinkReport};
use crate::core::allocation::anchor_costs::AnchorLimits;
use crate::core::*;

/// The pictures at HR size that were handed on: their low timestamps.
fn captured(harness: &Harness) -> Vec<Option<u32>> {
    let captured = harness.taps.iter().filter_map(|t| match t {
        TapInput::Captured(frame) => Some(frame.low_timestamp),
        _ => None,
    });
    captured.collect()
}

#[test]
fn the_layer_above_a_tapped_one_is_copied_and_meets_it_to_the_tick() {
    let (mut harness, track, _) = call();
    assert_eq!(captured(&harness), []);
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::HPlus);
    harness.run(Duration::from_secs(4));
    let low: Vec<u32> = harness
        .taps
        .iter()
        .filter_map(|t| if let TapInput::Frame(f) = t { Some(f.rtp_timestamp) } else { None })
        .collect();
    let met = captured(&harness);
    assert!(met.len() > 80 && met[..8].iter().any(Option::is_some), "{met:?}");
    let known: Vec<u32> = met.into_iter().skip(8).map(|at| at.expect("aligned")).collect();
    assert!(known.iter().all(|at| low.contains(at)), "{known:?}");
    assert!(known.windows(2).all(|w| w[1] == w[0].wrapping_add(3150)), "each frame its own");
    // Whoever can carry the layer itself has no use for it.
    harness.taps.clear();
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::F);
    harness.run(Duration::from_secs(1));
    assert!(matches!(harness.taps.last(), Some(TapInput::Stop { .. })));
}

#[test]
fn a_layer_above_that_is_no_longer_sent_ends_its_copy_alone() {
    let (mut harness, track, _) = call();
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::HPlus);
    harness.run(Duration::from_secs(2));
    harness.camera.layers = vec![Layer::Q, Layer::H];
    harness.run(Duration::from_secs(2));
    let stops = harness.taps.iter().filter(|t| matches!(t, TapInput::CaptureStop { .. })).count();
    assert_eq!((stops, harness.core.stats().taps), (1, 1));
    assert!(matches!(harness.taps.last(), Some(TapInput::Frame(_))));
}

/// A call whose publisher sends `q` and `h` and can be asked for stills; the subscriber can decode them.
fn call_with_stills() -> (Harness, TrackId, usize) {
    with_stills(Harness::new(config()), &[Layer::Q, Layer::H])
}

/// A call whose publisher sends these layers and can be asked for stills.
fn with_stills(mut harness: Harness, layers: &[Layer]) -> (Harness, TrackId, usize) {
    harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = harness.publish();
    harness.camera.layers = layers.to_vec();
    harness.offer_stills();
    harness.run(Duration::from_secs(2));
    harness.core.join(harness.now, "room", SUBSCRIBER, JoinOptions::default()).expect("joined");
    let at = harness.subscribe(SUBSCRIBER, track);
    (harness, track, at)
}

#[test]
fn regions_are_asked_of_the_publisher_and_its_answers_reach_subscribers_at_their_frame() {
    let (mut harness, track, at) = call_with_stills();
    harness.run(Duration::from_secs(3));
    let possible = |harness: &Harness| {
        let said = harness.requests.iter().filter_map(|request| match request {
            EnhancerRequest::Regions(possible) => Some(*possible),
            _ => None,
        });
        said.collect::<Vec<_>>()
    };
    assert_eq!(possible(&harness), [true]);
    let tapped = harness.last_tapped();
    let tiles = Bytes::from(vec![0x0f; TileMap::wire_bytes(Size::new(640, 360))]);
    let want = EnhancerOutput::WantRegions {
        stream: tapped.stream,
        size: Size::new(640, 360),
        tiles: tiles.clone(),
        bytes: 3000,
    };
    harness.core.on_enhancer_output(harness.now, want.clone());
    harness.core.on_enhancer_output(harness.now, want);
    harness.run(Duration::from_millis(10));
    let asked: Vec<_> = harness.events[&PUBLISHER]
        .iter()
        .filter_map(|e| match e {
            SfuEvent::Regions { track: of, request } if *of == track => Some(request.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(asked.len(), 1, "two at once are one too many");
    let header = AnchorHeader {
        codec: HTJ2K,
        source: AnchorSource::Captured,
        tiled: true,
        beyond_prior: true,
        part: 0,
        stream: 0,
        epoch: asked[0].id,
        chunk_index: 0,
        chunk_count: 1,
        age_ms: 5,
        rtp_timestamp: harness.last_tapped().rtp_timestamp,
        size: Size::new(1280, 720),
    };
    let payload = [&tiles[..], &[7; 2000]].concat();
    let stills = |harness: &Harness| {
        let all = harness.clients[at].messages.iter();
        let all = all.map(|m| AnchorHeader::parse(m).expect("anchor").0);
        all.filter(|h| h.tiled && h.beyond_prior).collect::<Vec<_>>()
    };
    assert_eq!(stills(&harness), []);
    let channel = harness.clients[0].channel.expect("open");
    for message in windlass_types::message::encode_chunks(&header, &payload, 1000).expect("fits") {
        let rtc = &mut harness.clients[0].rtc;
        assert!(rtc.channel(channel).expect("channel").write(true, &message).expect("written"));
    }
    harness.clients[0].due = harness.now;
    harness.run(Duration::from_millis(200));
    let got = stills(&harness);
    assert!(!got.is_empty(), "{:?}", harness.core.stats().counters);
    let shown = |h: &AnchorHeader| {
        harness.clients[at].received.iter().any(|p| p.header.timestamp == h.rtp_timestamp)
    };
    assert!(got.iter().all(shown), "their frame is the subscriber's");
    let given = harness
        .requests
        .iter()
        .any(|request| matches!(request, EnhancerRequest::Given(anchor) if anchor.tiled && anchor.payload.starts_with(&tiles)));
    assert!(given, "the enhancer hears of it");
    // What nobody asked for goes nowhere.
    harness.core.on_region_message(harness.now, PUBLISHER, &[1; 40]);
    let counters = harness.core.stats().counters;
    assert_eq!((counters.regions_in, counters.regions_malformed), (1, 1));
    // The layer itself, which this subscriber may not have, is better than any still.
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::HPlus);
    harness.camera.layers = Layer::ALL.into();
    harness.run(Duration::from_secs(3));
    assert_eq!(possible(&harness), [true, false]);
}

/// A call whose tracks no enhancer can read, on a server without one: encrypted end to end, or of another codec.
fn unreadable(encrypted: bool) -> Harness {
    let codecs = if encrypted { &[VideoCodec::Vp9] } else { &[VideoCodec::Vp8] };
    Harness { encrypted, codecs, ..Harness::new(config()) }
}

/// A call of [`unreadable`] whose publisher can be asked for stills.
fn unreadable_with_stills(encrypted: bool) -> (Harness, TrackId, usize) {
    let mut harness = unreadable(encrypted);
    harness.core.set_enhancement(harness.now, false);
    with_stills(harness, &[Layer::Q])
}

#[test]
fn stills_of_an_encrypted_track_are_asked_for_and_passed_on_without_an_enhancer() {
    stills_pass_without_an_enhancer(unreadable_with_stills(true));
}

#[test]
fn stills_of_another_codec_are_asked_for_and_passed_on_without_an_enhancer() {
    stills_pass_without_an_enhancer(unreadable_with_stills(false));
}

fn stills_pass_without_an_enhancer((mut harness, _, at): (Harness, TrackId, usize)) {
    harness.run(Duration::from_secs(7));
    let requests = harness.stills_asked();
    assert!((2..=4).contains(&requests.len()), "one in two seconds: {requests:?}");
    let whole = TileMap::full(Size::new(320, 180)).to_bytes();
    assert!(requests.iter().all(|r| r.size == Size::new(320, 180) && r.tiles == whole));
    // Nothing of it can be read, so the payload is of any bytes.
    let payload = vec![0xa5; requests[0].bytes];
    let shown = harness.clients[at].received.last().expect("video").header.timestamp;
    harness.send_still(&payload);
    harness.run(Duration::from_millis(400));
    let came = harness.clients[at].anchor();
    let came = came.unwrap_or_else(|| panic!("{:?}", harness.core.stats().counters));
    assert_eq!(came.payload, payload);
    let timestamp = came.header.rtp_timestamp;
    assert!(timestamp.wrapping_sub(shown) < 90_000, "{timestamp} is of the subscriber's time");
    assert!(harness.taps.is_empty() && harness.requests.is_empty(), "no enhancer hears of it");
    assert_eq!(harness.refused(SUBSCRIBER), None);
}

#[test]
fn viewers_of_a_track_that_nobody_reads_and_that_has_no_stills_are_told_why() {
    for (encrypted, why) in [(true, Refusal::Encrypted), (false, Refusal::Codec)] {
        let mut harness = unreadable(encrypted);
        harness.core.set_enhancement(harness.now, false);
        harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
        let track = harness.publish();
        harness.run(Duration::from_secs(2));
        harness.core.join(harness.now, "room", SUBSCRIBER, JoinOptions::default()).expect("joined");
        harness.subscribe(SUBSCRIBER, track);
        harness.run(Duration::from_secs(3));
        assert_eq!(harness.refused(SUBSCRIBER), Some(why));
    }
}

#[test]
fn an_encrypted_track_is_asked_for_no_stills_while_nobody_needs_them() {
    let (mut harness, track, _) = unreadable_with_stills(true);
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::Q);
    harness.run(Duration::from_secs(5));
    assert_eq!(harness.stills_asked(), []);
}

#[test]
fn stills_are_counted_on_before_anything_is_tapped() {
    let captured = |stills: bool| {
        let mut harness = Harness::new(config());
        harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
        let track = harness.publish();
        harness.camera.layers = vec![Layer::Q, Layer::H];
        if stills {
            harness.offer_stills();
        }
        harness.run(Duration::from_secs(3));
        let limits =
            AnchorLimits { available: true, max_pixels: u32::MAX, captured: false, max_octaves: 2 };
        let costs = harness
            .core
            .tracks
            .get(track)
            .expect("it is there")
            .expected_anchor_costs(harness.now, limits);
        costs[Layer::H as usize].expect("anchors are made of it").captured
    };
    assert!(captured(false) == Bitrate::ZERO && captured(true) > Bitrate::ZERO);
}

#[test]
fn what_a_publisher_can_send_reaches_the_enhancer_and_what_it_shall_send_the_publisher() {
    let (mut harness, track, _) = call_with_stills();
    harness.core.config.adapt = true;
    harness.run(Duration::from_secs(3));
    let report =
        UplinkReport { bitrate: Bitrate::kbps(400.0), size: Size::new(1280, 720), fps: 30.0 };
    let uplinks = |harness: &Harness| {
        let said = harness.requests.iter().filter_map(|request| match request {
            EnhancerRequest::Uplink(uplink) => Some((uplink.layer, uplink.report.bitrate)),
            _ => None,
        });
        said.collect::<Vec<_>>()
    };
    harness.core.uplink(harness.now, SUBSCRIBER, track, report);
    let bitrate = Bitrate::kbps(f64::NAN);
    harness.core.uplink(harness.now, PUBLISHER, track, UplinkReport { bitrate, ..report });
    harness.core.uplink(harness.now, PUBLISHER, track, UplinkReport { fps: f64::NAN, ..report });
    harness.run(Duration::from_millis(10));
    assert_eq!(uplinks(&harness), [], "another's track, and nonsense");
    harness.core.uplink(harness.now, PUBLISHER, track, report);
    harness.run(Duration::from_millis(10));
    let told = uplinks(&harness);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].0 == Layer::H && told[0].1 < report.bitrate,
        "what the other layer takes is left out: {told:?}"
    );
    let knobs = PublisherKnobs { layer: Layer::H, bitrate: Bitrate::kbps(300.0), fps: 15.0 };
    let stream = harness.last_tapped().stream;
    harness.core.on_enhancer_output(harness.now, EnhancerOutput::Knobs { stream, knobs });
    harness.run(Duration::from_millis(500));
    let layers = harness.events[&PUBLISHER].iter().filter_map(|e| match e {
        SfuEvent::Knobs { layers, .. } if !layers.is_empty() => Some(layers.clone()),
        _ => None,
    });
    let own = LayerKnobs { active: true, bitrate: Bitrate::kbps(300.0), fps: 15.0, needed: false };
    assert_eq!(layers.collect::<Vec<_>>()[0], [(Layer::H, own)]);
}

#[test]
fn a_smaller_layer_turns_the_larger_one_off_and_all_is_undone_when_nobody_watches() {
    let (mut harness, track, _) = call_with_stills();
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::HPlus);
    harness.core.config.adapt = true;
    harness.run(Duration::from_secs(2));
    let stream = harness.last_tapped().stream;
    let knobs = PublisherKnobs { layer: Layer::Q, bitrate: Bitrate::kbps(90.0), fps: 30.0 };
    harness.core.on_enhancer_output(harness.now, EnhancerOutput::Knobs { stream, knobs });
    harness.run(Duration::from_millis(100));
    assert_eq!(harness.layers_told(), [[(Layer::Q, true), (Layer::H, false)]]);
    let knobs = PublisherKnobs { layer: Layer::H, bitrate: Bitrate::kbps(200.0), ..knobs };
    harness.core.on_enhancer_output(harness.now, EnhancerOutput::Knobs { stream, knobs });
    harness.run(Duration::from_millis(100));
    assert_eq!(harness.layers_told()[1], [(Layer::H, true), (Layer::Q, true)]);
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::Q);
    harness.run(Duration::from_secs(5));
    let last = harness.layers_told().pop();
    assert_eq!(last, Some(vec![(Layer::Q, true), (Layer::H, true)]));
}

#[test]
fn the_quarter_layer_stands_by_while_all_hold_the_half_layer() {
    let (mut harness, track, _) = call_with_stills();
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::HPlus);
    harness.core.config.adapt = true;
    harness.run(Duration::from_secs(2));
    let quarter = |harness: &Harness| {
        let told = harness.events[&PUBLISHER].iter().filter_map(|e| match e {
            SfuEvent::Knobs { layers, .. } => layers
                .iter()
                .find(|(layer, _)| *layer == Layer::Q)
                .map(|(_, knobs)| knobs.bitrate.as_kbps()),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    let stream = harness.last_tapped().stream;
    let knobs = PublisherKnobs { layer: Layer::H, bitrate: Bitrate::kbps(200.0), fps: 30.0 };
    harness.core.on_enhancer_output(harness.now, EnhancerOutput::Knobs { stream, knobs });
    harness.run(Duration::from_secs(1));
    assert_eq!(quarter(&harness), [30.0]);
    let third = ParticipantId(3);
    harness.core.join(harness.now, "room", third, JoinOptions::default()).expect("joined");
    harness.subscribe_at_most(third, track, Some(Rung::Q));
    harness.run(Duration::from_secs(1));
    assert_eq!(quarter(&harness), [30.0, 150.0], "somebody needs it");
    let knobs = PublisherKnobs { layer: Layer::Q, bitrate: Bitrate::kbps(90.0), ..knobs };
    harness.core.on_enhancer_output(harness.now, EnhancerOutput::Knobs { stream, knobs });
    harness.run(Duration::from_secs(1));
    assert_eq!(quarter(&harness), [30.0, 150.0, 90.0], "and keeps what it is adapted to");
}
