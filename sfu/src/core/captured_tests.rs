//! Calls whose publisher gives its own pixels: a larger layer, a detail stream, regions.

use crate::api::{JoinOptions, Kind};
use std::collections::HashMap;
use windlass_media::Rung;

use bytes::Bytes;
use str0m::media::{Direction, MediaKind};
use windlass_hybrid::anchor::tiles::TileMap;
use windlass_hybrid::anchor::{AnchorHeader, AnchorOrigin};
use windlass_media::{
    AnchorCodecId, AnchorSource, EnhancerOutput, Layer, LayerKnobs, PublisherKnobs,
};

use super::world::*;
use super::*;
use crate::api::{DetailKnobs, Offer, OfferError, Publish, UplinkReport};

/// The pictures at HR size that were handed on: their low timestamps.
fn captured(world: &World) -> Vec<Option<u32>> {
    let captured = world.taps.iter().filter_map(|t| match t {
        TapInput::Captured(frame) => Some(frame.low_timestamp),
        _ => None,
    });
    captured.collect()
}

#[test]
fn the_layer_above_a_tapped_one_is_copied_and_meets_it_to_the_tick() {
    let (mut world, track, _) = call();
    assert_eq!(captured(&world), []);
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::HPlus);
    world.run(Duration::from_secs(4));
    let low: Vec<u32> = world
        .taps
        .iter()
        .filter_map(|t| if let TapInput::Frame(f) = t { Some(f.rtp_timestamp) } else { None })
        .collect();
    let met = captured(&world);
    assert!(met.len() > 80 && met[..8].iter().any(Option::is_some), "{met:?}");
    let known: Vec<u32> = met.into_iter().skip(8).map(|at| at.expect("aligned")).collect();
    assert!(known.iter().all(|at| low.contains(at)), "{known:?}");
    assert!(known.windows(2).all(|w| w[1] == w[0].wrapping_add(3150)), "each frame its own");
    // Whoever can carry the layer itself has no use for it.
    world.taps.clear();
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::F);
    world.run(Duration::from_secs(1));
    assert!(matches!(world.taps.last(), Some(TapInput::Stop { .. })));
}

#[test]
fn a_layer_above_that_is_no_longer_sent_ends_its_copy_alone() {
    let (mut world, track, _) = call();
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::HPlus);
    world.run(Duration::from_secs(2));
    world.camera.layers = vec![Layer::Q, Layer::H];
    world.run(Duration::from_secs(2));
    let stops = world.taps.iter().filter(|t| matches!(t, TapInput::CaptureStop { .. })).count();
    assert_eq!((stops, world.core.stats().taps), (1, 1));
    assert!(matches!(world.taps.last(), Some(TapInput::Frame(_))));
}

/// A call whose publisher sends `q` and `h` and can send a detail stream; the subscriber can decode it.
fn detailed_call() -> (World, TrackId, usize) {
    let mut world = World::new(config());
    world.core.join(world.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = world.publish();
    world.camera.layers = vec![Layer::Q, Layer::H];
    world.publish_detail();
    world.run(Duration::from_secs(2));
    let anchor_codecs = AnchorCodecId::ALL.into_iter().collect();
    let options = JoinOptions { anchor_codecs, ..JoinOptions::default() };
    world.core.join(world.now, "room", SUBSCRIBER, options).expect("joined");
    let at = world.subscribe(SUBSCRIBER, track);
    (world, track, at)
}

/// The anchors of a detail stream that a client was sent, and the numbers of the camera frames that they show.
fn detail_anchors(world: &World, at: usize) -> Vec<(AnchorHeader, u32)> {
    let parsed = world.clients[at].messages.iter().map(|m| AnchorHeader::parse(m).expect("anchor"));
    let pictures = parsed.filter(|(header, _)| header.codec == AnchorCodecId::Vp9Pictures.id());
    let number = |payload: &[u8]| {
        u32::from_be_bytes(payload[payload.len() - 4..].try_into().expect("four bytes"))
    };
    pictures.map(|(header, payload)| (header, number(payload))).collect()
}

#[test]
fn frames_of_a_detail_stream_meet_their_camera_frame_at_the_subscriber() {
    let (mut world, _, at) = detailed_call();
    assert_eq!(world.knobs(), [], "nobody has a use for it yet");
    world.run(Duration::from_secs(10));
    assert_eq!(world.knobs().len(), 1);
    let shown: HashMap<u32, u32> = world.clients[at]
        .received
        .iter()
        .filter(|p| p.payload.len() > 5)
        .map(|p| {
            let end = p.payload.len() - 1;
            let number = p.payload[end - 4..end].try_into().expect("four bytes");
            (p.header.timestamp, u32::from_be_bytes(number))
        })
        .collect();
    let anchors = detail_anchors(&world, at);
    let met: Vec<_> =
        anchors.iter().filter_map(|(h, n)| Some((*shown.get(&h.rtp_timestamp)?, *n))).collect();
    assert!(met.len() >= 15, "{} of {}", met.len(), anchors.len());
    assert!(met.iter().all(|(low, detail)| low == detail), "{met:?}");
    assert!(anchors.iter().all(|(h, _)| (h.width, h.height) == (1280, 720) && !h.beyond_prior));
    assert!(anchors.iter().all(|(h, _)| h.source == AnchorOrigin::Captured));
}

#[test]
fn a_detail_stream_is_asked_for_while_it_is_of_use() {
    let (mut world, track, _) = detailed_call();
    let knobs = world.core.config.detail;
    world.run(Duration::from_secs(3));
    assert_eq!(world.knobs(), [knobs]);
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::H);
    world.run(Duration::from_secs(5));
    assert_eq!(world.knobs(), [knobs, None], "nobody holds an enhanced rung");
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::HPlus);
    world.run(Duration::from_secs(1));
    assert_eq!(world.knobs(), [knobs, None, knobs]);
    world.camera.layers = Layer::ALL.into();
    world.run(Duration::from_secs(5));
    assert_eq!(world.knobs(), [knobs, None, knobs, None], "the layer itself is sent");
}

#[test]
fn whoever_joins_gets_the_detail_stream_without_a_key_frame_while_it_is_short() {
    let (mut world, track, _) = detailed_call();
    world.run(Duration::from_secs(5));
    let keys = world.camera.detail_keys;
    let third = ParticipantId(3);
    let anchor_codecs = AnchorCodecId::ALL.into_iter().collect();
    let options = JoinOptions { anchor_codecs, ..JoinOptions::default() };
    world.core.join(world.now, "room", third, options).expect("joined");
    let late = world.subscribe(third, track);
    world.run(Duration::from_secs(2));
    let anchors = detail_anchors(&world, late);
    assert_eq!(world.camera.detail_keys, keys);
    assert!(anchors.len() >= 15, "those since the key frame, and the new ones: {}", anchors.len());
    // One that misses a frame that others rest on is given a key frame, and that only so often.
    for _ in 0..100 {
        world.core.whole_anchor_wanted(world.now, third, track, AnchorSource::Captured);
        world.run(Duration::from_millis(20));
    }
    assert_eq!(world.camera.detail_keys, keys + 1);
}

#[test]
fn regions_are_asked_of_the_publisher_and_its_answers_reach_subscribers_at_their_frame() {
    let (mut world, track, at) = detailed_call();
    world.run(Duration::from_secs(3));
    let possible = |world: &World| {
        let said = world.taps.iter().filter_map(|t| match t {
            TapInput::Regions { possible, .. } => Some(*possible),
            _ => None,
        });
        said.collect::<Vec<_>>()
    };
    assert_eq!(possible(&world), [true]);
    let tapped = world.last_tapped();
    let tiles = Bytes::from(vec![0x0f; TileMap::wire_bytes(640, 360)]);
    let want = EnhancerOutput::WantRegions {
        stream: tapped.stream,
        size: (640, 360),
        tiles: tiles.clone(),
        bytes: 3000,
    };
    world.core.enhancer(world.now, want.clone());
    world.core.enhancer(world.now, want);
    world.run(Duration::from_millis(10));
    let asked: Vec<_> = world.events[&PUBLISHER]
        .iter()
        .filter_map(|e| match e {
            SfuEvent::Regions { track: of, request } if *of == track => Some(request.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(asked.len(), 1, "two at once are one too many");
    let header = AnchorHeader {
        codec: AnchorCodecId::Htj2k.id(),
        source: AnchorOrigin::Captured,
        tiled: true,
        beyond_prior: true,
        part: 0,
        stream: 0,
        epoch: asked[0].id,
        chunk_index: 0,
        chunk_count: 1,
        age_ms: 5,
        rtp_timestamp: world.last_tapped().rtp_timestamp,
        width: 1280,
        height: 720,
    };
    let payload = [&tiles[..], &[7; 2000]].concat();
    let stills = |world: &World| {
        let all = world.clients[at].messages.iter();
        let all = all.map(|m| AnchorHeader::parse(m).expect("anchor").0);
        all.filter(|h| h.tiled && h.beyond_prior).collect::<Vec<_>>()
    };
    assert_eq!(stills(&world), []);
    let channel = world.clients[0].channel.expect("open");
    for message in
        windlass_hybrid::anchor::message::encode_chunks(&header, &payload, 1000).expect("fits")
    {
        let rtc = &mut world.clients[0].rtc;
        assert!(rtc.channel(channel).expect("channel").write(true, &message).expect("written"));
    }
    world.clients[0].due = world.now;
    world.run(Duration::from_millis(200));
    let got = stills(&world);
    assert!(!got.is_empty(), "{:?}", world.core.stats().counters);
    let shown = |h: &AnchorHeader| {
        world.clients[at].received.iter().any(|p| p.header.timestamp == h.rtp_timestamp)
    };
    assert!(got.iter().all(shown), "their frame is the subscriber's");
    let given = world
        .taps
        .iter()
        .any(|t| matches!(t, TapInput::Given { anchor, .. } if anchor.tiled && anchor.payload.starts_with(&tiles)));
    assert!(given, "the enhancer hears of it");
    // What nobody asked for goes nowhere.
    world.core.take_region(world.now, PUBLISHER, &[1; 40]);
    let counters = world.core.stats().counters;
    assert_eq!((counters.regions_in, counters.regions_malformed), (1, 1));
}

#[test]
fn what_a_publisher_can_send_reaches_the_enhancer_and_what_it_shall_send_the_publisher() {
    let (mut world, track, _) = detailed_call();
    world.core.config.adapt = true;
    world.run(Duration::from_secs(3));
    let report = UplinkReport { kbps: 400.0, size: (1280, 720), fps: 30.0 };
    let uplinks = |world: &World| {
        let said = world.taps.iter().filter_map(|t| match t {
            TapInput::Uplink { layer, kbps, .. } => Some((*layer, *kbps)),
            _ => None,
        });
        said.collect::<Vec<_>>()
    };
    world.core.uplink(world.now, SUBSCRIBER, track, report);
    world.core.uplink(world.now, PUBLISHER, track, UplinkReport { kbps: f64::NAN, ..report });
    world.run(Duration::from_millis(10));
    assert_eq!(uplinks(&world), [], "another's track, and nonsense");
    world.core.uplink(world.now, PUBLISHER, track, report);
    world.run(Duration::from_millis(10));
    let told = uplinks(&world);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].0 == Layer::H && told[0].1 < 400.0,
        "what the other layer takes is left out: {told:?}"
    );
    let knobs = PublisherKnobs {
        layer: Layer::H,
        kbps: 300.0,
        fps: 15.0,
        detail: Some(DetailKnobs { kbps: 900.0, fps: 0.5 }),
    };
    let stream = world.last_tapped().stream;
    world.core.enhancer(world.now, EnhancerOutput::Knobs { stream, knobs });
    world.run(Duration::from_millis(500));
    let layers = world.events[&PUBLISHER].iter().filter_map(|e| match e {
        SfuEvent::Knobs { layers, .. } if !layers.is_empty() => Some(layers.clone()),
        _ => None,
    });
    let own = LayerKnobs { active: true, kbps: 300.0, fps: 15.0, needed: false };
    assert_eq!(layers.collect::<Vec<_>>()[0], [(Layer::H, own)]);
    let most = world.core.config.detail.expect("default");
    assert_eq!(
        world.knobs().last(),
        Some(&Some(DetailKnobs { fps: 0.5, ..most })),
        "the operator's cap"
    );
    world.run(Duration::from_secs(2));
    let details = world.taps.iter().filter(|t| matches!(t, TapInput::Given { .. })).count();
    assert!(details > 3, "the controller sees the detail stream: {details}");
}

#[test]
fn a_smaller_layer_turns_the_larger_one_off_and_all_is_undone_when_nobody_watches() {
    let (mut world, track, _) = detailed_call();
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::HPlus);
    world.core.config.adapt = true;
    world.run(Duration::from_secs(2));
    let stream = world.last_tapped().stream;
    let knobs = PublisherKnobs { layer: Layer::Q, kbps: 90.0, fps: 30.0, detail: None };
    world.core.enhancer(world.now, EnhancerOutput::Knobs { stream, knobs });
    world.run(Duration::from_millis(100));
    assert_eq!(world.layers_told(), [[(Layer::Q, true), (Layer::H, false)]]);
    let knobs = PublisherKnobs { layer: Layer::H, kbps: 200.0, ..knobs };
    world.core.enhancer(world.now, EnhancerOutput::Knobs { stream, knobs });
    world.run(Duration::from_millis(100));
    assert_eq!(world.layers_told()[1], [(Layer::H, true), (Layer::Q, true)]);
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::Q);
    world.run(Duration::from_secs(5));
    let last = world.layers_told().pop();
    assert_eq!(last, Some(vec![(Layer::Q, true), (Layer::H, true)]));
}

#[test]
fn the_quarter_layer_stands_by_while_all_hold_the_half_layer() {
    let (mut world, track, _) = detailed_call();
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::HPlus);
    world.core.config.adapt = true;
    world.run(Duration::from_secs(2));
    let quarter = |world: &World| {
        let told = world.events[&PUBLISHER].iter().filter_map(|e| match e {
            SfuEvent::Knobs { layers, .. } => {
                layers.iter().find(|(layer, _)| *layer == Layer::Q).map(|(_, knobs)| knobs.kbps)
            }
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    let stream = world.last_tapped().stream;
    let knobs = PublisherKnobs { layer: Layer::H, kbps: 200.0, fps: 30.0, detail: None };
    world.core.enhancer(world.now, EnhancerOutput::Knobs { stream, knobs });
    world.run(Duration::from_secs(1));
    assert_eq!(quarter(&world), [30.0]);
    let third = ParticipantId(3);
    world.core.join(world.now, "room", third, JoinOptions::default()).expect("joined");
    world.subscribe_at_most(third, track, Some(Rung::Q));
    world.run(Duration::from_secs(1));
    assert_eq!(quarter(&world), [30.0, 150.0], "somebody needs it");
}

#[test]
fn detail_streams_of_nothing_or_of_themselves_are_refused() {
    let (mut world, _, _) = detailed_call();
    let camera = world.camera.mid.expect("mid").to_string();
    let detail = world.camera.detail.expect("mid").to_string();
    for (camera_of, detail_of) in
        [(None, "x".to_owned()), (None, detail.clone()), (Some(detail.clone()), camera.clone())]
    {
        let mut api = world.clients[0].rtc.sdp_api();
        api.add_media(MediaKind::Audio, Direction::RecvOnly, None, None, None);
        let (sdp, _) = api.apply().expect("offer");
        let entry = |mid: &str, detail_of| Publish {
            mid: mid.into(),
            kind: Kind::Video,
            name: "camera".into(),
            detail_of,
        };
        let publish = vec![entry(&camera, camera_of), entry(&detail, Some(detail_of))];
        let offer = Offer { sdp: sdp.to_sdp_string(), publish, subscribe: Vec::new() };
        let refused = world.core.offer(world.now, PUBLISHER, &offer);
        assert!(matches!(refused, Err(OfferError::BadMid { .. })), "{refused:?}");
    }
}
