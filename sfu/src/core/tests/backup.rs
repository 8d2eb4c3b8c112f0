//! A publisher of VP9 with a backup in VP8, and subscribers who decode one of them.

use str0m::media::{Direction, MediaKind, Mid};
use str0m::rtp::RtpWrite;
use windlass_types::{Layer, Refusal, Rung, VideoCodec};

use super::harness::*;
use crate::api::{Answer, JoinOptions, Offer, OfferError, Publish, Subscribe, TrackId};
use crate::core::*;

const BOTH: &[VideoCodec] = &[VideoCodec::Vp9, VideoCodec::Vp8];
const VP8: &[VideoCodec] = &[VideoCodec::Vp8];
const THIRD: ParticipantId = ParticipantId(3);

/// A backup's frames: a key frame of 640×360 first, and where one is asked for.
pub(crate) struct Backup {
    mid: Mid,
    number: u32,
}

impl Backup {
    /// Publishes a backup of the camera.
    pub(crate) fn publish(harness: &mut Harness) -> (Backup, Answer) {
        let mut api = harness.clients[0].rtc.sdp_api();
        let mid = api.add_media(MediaKind::Video, Direction::SendOnly, None, None, None);
        let (sdp, pending) = api.apply().expect("offer");
        let sdp = with_vp8_alone_at_last(&sdp.to_sdp_string());
        let of = camera_at(harness.camera.mid.expect("published"));
        let backup = Publish { backup_of: Some(of.mid.clone()), ..camera_at(mid) };
        let offer = Offer { sdp, publish: vec![of, backup], subscribe: Vec::new() };
        let answer = harness.exchange(0, PUBLISHER, &offer, pending);
        (Backup { mid, number: 0 }, answer)
    }

    /// Sends a frame, of one packet.
    pub(crate) fn send(&mut self, harness: &mut Harness) {
        let key = self.number.is_multiple_of(10);
        let tag = if key { 0x10 } else { 0x11 };
        let mut payload = vec![0x10, tag, 2, 0, 0x9d, 1, 0x2a, 0x80, 2, 0x68, 1];
        payload.extend([8; 300]);
        let rtc = &mut harness.clients[0].rtc;
        let vp8 = rtc.codec_config().find(|p| p.spec().codec == str0m::format::Codec::Vp8);
        let pt = vp8.expect("VP8").pt();
        let mut api = rtc.direct_api();
        let stream = api.stream_tx_by_mid(self.mid, None).expect("stream");
        let (seq, timestamp) = (u64::from(500 + self.number), self.number * 3000);
        stream
            .write_rtp(RtpWrite::new(pt, seq.into(), timestamp, harness.now, payload).marker(true));
        let _ = rtc.handle_input(Input::Timeout(harness.now));
        harness.drain(0);
        self.number += 1;
    }
}

/// A description whose last section has VP8 as its only codec.
fn with_vp8_alone_at_last(sdp: &str) -> String {
    let last = sdp.rfind("m=video").expect("a section of video");
    let (before, section) = sdp.split_at(last);
    let lines: Vec<&str> = section.lines().collect();
    let type_of = |line: &str, codec: &str| {
        let (pt, name) = line.strip_prefix("a=rtpmap:")?.split_once(' ')?;
        name.starts_with(codec).then(|| pt.to_owned())
    };
    let mut gone: Vec<String> = lines.iter().filter_map(|l| type_of(l, "VP9")).collect();
    let repairs = lines.iter().filter_map(|line| {
        let (pt, apt) = line.strip_prefix("a=fmtp:")?.split_once(" apt=")?;
        gone.contains(&apt.to_owned()).then(|| pt.to_owned())
    });
    gone.extend(repairs.collect::<Vec<_>>());
    let of_gone = |line: &str| {
        let attribute = line.split_once(':').map_or("", |(_, value)| value);
        line.starts_with("a=") && gone.iter().any(|pt| attribute.starts_with(&format!("{pt} ")))
    };
    let mut written = String::from(before);
    for line in lines.into_iter().filter(|line| !of_gone(line)) {
        let kept = line.split(' ').enumerate();
        let kept = kept.filter(|(at, word)| {
            *at < 3 || !line.starts_with("m=") || !gone.contains(&(*word).to_owned())
        });
        let words: Vec<&str> = kept.map(|(_, word)| word).collect();
        written.push_str(&words.join(" "));
        written.push_str("\r\n");
    }
    written
}

/// The codecs in which publisher was asked for backups.
pub(crate) fn wanted(harness: &Harness) -> Vec<(TrackId, Vec<VideoCodec>)> {
    let events = harness.events.get(&PUBLISHER).into_iter().flatten();
    let wanted = events.filter_map(|event| match event {
        SfuEvent::BackupWanted { track, codecs } => Some((*track, codecs.clone())),
        _ => None,
    });
    wanted.collect()
}

fn run(harness: &mut Harness, backup: &mut Backup, frames: u32) {
    for _ in 0..frames {
        backup.send(harness);
        harness.run(Duration::from_millis(35));
    }
}

/// A publisher of VP9, and a subscriber who decodes VP8 alone.
fn call() -> (Harness, TrackId, usize) {
    let mut harness = Harness::new(config());
    harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    harness.codecs = BOTH;
    let track = harness.publish();
    harness.run(Duration::from_secs(2));
    harness.core.join(harness.now, "room", SUBSCRIBER, JoinOptions::default()).expect("joined");
    harness.codecs = VP8;
    let at = harness.subscribe(SUBSCRIBER, track);
    harness.run(Duration::from_secs(2));
    (harness, track, at)
}

#[test]
fn who_cannot_decode_a_track_is_sent_its_backup_and_nobody_else_hears_of_it() {
    let (mut harness, track, at) = call();
    assert_eq!(wanted(&harness), [(track, vec![VideoCodec::Vp8])], "once");
    assert!(harness.clients[at].received.is_empty());
    assert_eq!(harness.refused(SUBSCRIBER), Some(Refusal::Codec));

    let (mut backup, answer) = Backup::publish(&mut harness);
    assert_eq!((answer.tracks.len(), answer.tracks[0].1), (2, track));
    let own = answer.tracks[1].1;
    run(&mut harness, &mut backup, 60);
    let received = &harness.clients[at].received;
    assert!(received.len() > 40, "{}", received.len());
    assert!(received.iter().all(|packet| packet.payload.len() == 311));
    assert_continuous(received);
    assert_eq!(harness.rungs(SUBSCRIBER).last().map(|rung| (rung.0, rung.2)), Some((Rung::H, 640)));
    assert_eq!(harness.refused(SUBSCRIBER), Some(Refusal::Codec), "it is never enhanced");
    assert_eq!(wanted(&harness).len(), 1);

    let (_, tracks) =
        harness.core.join(harness.now, "room", THIRD, JoinOptions::default()).expect("joined");
    assert_eq!(tracks.iter().map(|info| info.track).collect::<Vec<_>>(), [track]);
    harness.codecs = BOTH;
    let third = harness.subscribe(THIRD, track);
    run(&mut harness, &mut backup, 30);
    let received = &harness.clients[third].received;
    assert!(received.len() > 20 && received.iter().all(|packet| packet.payload.len() != 311));
    let told = harness.events.values().flatten();
    assert!(
        !told
            .into_iter()
            .any(|event| matches!(event, SfuEvent::TrackAdded(info) if info.track == own))
    );
    assert_eq!(harness.core.stats().subscriptions, 2);
}

#[test]
fn a_backup_is_muted_with_its_track_and_ends_with_it() {
    let (mut harness, track, at) = call();
    let (mut backup, answer) = Backup::publish(&mut harness);
    let own = answer.tracks[1].1;
    run(&mut harness, &mut backup, 30);
    harness.core.set_muted(harness.now, PUBLISHER, track, true);
    let before = harness.clients[at].received.len();
    run(&mut harness, &mut backup, 30);
    assert_eq!(harness.clients[at].received.len(), before);
    harness.core.set_muted(harness.now, PUBLISHER, own, false);
    run(&mut harness, &mut backup, 30);
    assert_eq!(harness.clients[at].received.len(), before, "it has no state of its own");
    harness.core.set_muted(harness.now, PUBLISHER, track, false);
    run(&mut harness, &mut backup, 30);
    assert!(harness.clients[at].received.len() > before + 10);

    harness.core.leave(harness.now, PUBLISHER);
    harness.run(Duration::from_millis(100));
    assert_eq!(harness.core.stats().tracks, 0);
    let removed = harness.events[&SUBSCRIBER]
        .iter()
        .filter(|event| matches!(event, SfuEvent::TrackRemoved { .. }));
    assert_eq!(removed.count(), 1);
}

#[test]
fn a_backup_that_nobody_needs_is_paused_and_comes_back_for_the_next_one() {
    let (mut harness, track, _) = call();
    let (mut backup, answer) = Backup::publish(&mut harness);
    let own = answer.tracks[1].1;
    run(&mut harness, &mut backup, 60);
    let layers = |harness: &Harness| {
        let events = harness.events.get(&PUBLISHER).into_iter().flatten();
        let told = events.filter_map(|event| match event {
            SfuEvent::Knobs { track, layers } if *track == own => Some(layers.clone()),
            _ => None,
        });
        told.flatten().map(|(layer, knobs)| (layer, knobs.active)).collect::<Vec<_>>()
    };
    assert_eq!(layers(&harness), []);
    harness.core.leave(harness.now, SUBSCRIBER);
    run(&mut harness, &mut backup, 250);
    assert_eq!(layers(&harness), [(Layer::H, false)]);
    harness.run(Duration::from_secs(3));

    harness.core.join(harness.now, "room", THIRD, JoinOptions::default()).expect("joined");
    harness.codecs = VP8;
    let at = harness.subscribe(THIRD, track);
    harness.run(Duration::from_secs(1));
    assert_eq!(layers(&harness), [(Layer::H, false), (Layer::H, true)]);
    run(&mut harness, &mut backup, 30);
    assert!(harness.clients[at].received.len() > 10);
}

#[test]
fn where_a_backup_ends_its_subscribers_have_nothing_and_another_is_asked_for() {
    let (mut harness, track, at) = call();
    let (mut backup, _) = Backup::publish(&mut harness);
    run(&mut harness, &mut backup, 30);
    let (sdp, pending) = {
        let mut api = harness.clients[0].rtc.sdp_api();
        api.add_channel("more".into());
        api.apply().expect("offer")
    };
    let publish = vec![camera_at(harness.camera.mid.expect("published"))];
    let offer = Offer { sdp: sdp.to_sdp_string(), publish, subscribe: Vec::new() };
    harness.exchange(0, PUBLISHER, &offer, pending);
    let before = harness.clients[at].received.len();
    run(&mut harness, &mut backup, 30);
    assert_eq!(harness.clients[at].received.len(), before);
    harness.run(Duration::from_secs(30));
    assert_eq!(wanted(&harness), [(track, vec![VideoCodec::Vp8]), (track, vec![VideoCodec::Vp8])]);
    assert_eq!(harness.core.stats().tracks, 1);
}

#[test]
fn another_codec_is_asked_for_where_it_serves_more_of_them() {
    let (mut harness, track, _) = call();
    let (mut backup, _) = Backup::publish(&mut harness);
    run(&mut harness, &mut backup, 30);
    harness.core.join(harness.now, "room", THIRD, JoinOptions::default()).expect("joined");
    harness.codecs = &[VideoCodec::H264];
    harness.subscribe(THIRD, track);
    run(&mut harness, &mut backup, 300);
    assert_eq!(wanted(&harness).len(), 1, "one of each: the backup stays");
    harness.core.leave(harness.now, SUBSCRIBER);
    run(&mut harness, &mut backup, 30);
    assert_eq!(wanted(&harness)[1..], [(track, vec![VideoCodec::H264])]);
}

#[test]
fn a_request_without_effect_is_repeated_slowly() {
    let (mut harness, ..) = call();
    harness.run(Duration::from_secs(25));
    assert_eq!(wanted(&harness).len(), 1);
    harness.run(Duration::from_secs(10));
    assert_eq!(wanted(&harness).len(), 2);
}

#[test]
fn nobody_can_subscribe_to_a_backup() {
    let (mut harness, ..) = call();
    let (_, answer) = Backup::publish(&mut harness);
    let own = answer.tracks[1].1;
    harness.core.join(harness.now, "room", THIRD, JoinOptions::default()).expect("joined");
    let at = harness.client(THIRD);
    let mut api = harness.clients[at].rtc.sdp_api();
    let mid = api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
    let (sdp, _) = api.apply().expect("offer");
    let subscribe = vec![Subscribe { mid: mid.to_string(), track: own, max: None }];
    let offer = Offer { sdp: sdp.to_sdp_string(), publish: Vec::new(), subscribe };
    let refused = harness.core.offer(harness.now, THIRD, &offer).err();
    assert_eq!(refused, Some(OfferError::UnknownTrack { track: own }));
}

#[test]
fn a_section_that_was_a_backup_becomes_a_track_of_its_own_that_all_hear_of() {
    let (mut harness, track, _) = call();
    let (backup, answer) = Backup::publish(&mut harness);
    let own = answer.tracks[1].1;
    let (sdp, pending) = {
        let mut api = harness.clients[0].rtc.sdp_api();
        api.add_channel("more".into());
        api.apply().expect("offer")
    };
    let camera = camera_at(harness.camera.mid.expect("published"));
    let publish = vec![camera, camera_at(backup.mid)];
    let offer = Offer { sdp: sdp.to_sdp_string(), publish, subscribe: Vec::new() };
    let answer = harness.exchange(0, PUBLISHER, &offer, pending);
    let new = answer.tracks[1].1;
    assert!(answer.tracks[0].1 == track && new != own);
    harness.deliver();
    let added = |event: &SfuEvent| matches!(event, SfuEvent::TrackAdded(info) if info.track == new);
    assert!(harness.events[&SUBSCRIBER].iter().any(added));
    assert_eq!(harness.core.stats().tracks, 2);
}

#[test]
fn a_backup_counts_toward_no_limit() {
    let limits = crate::Limits { published_tracks: 1, tracks_per_room: 1, ..Default::default() };
    let mut harness = Harness::new(SfuConfig { limits, ..config() });
    harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    harness.codecs = BOTH;
    harness.publish();
    let (_, answer) = Backup::publish(&mut harness);
    assert_eq!(answer.tracks.len(), 2);
}

#[test]
fn a_camera_that_becomes_the_backup_of_a_new_one_ends_as_a_track() {
    let (mut harness, track, _) = call();
    let mut api = harness.clients[0].rtc.sdp_api();
    let mid = api.add_media(MediaKind::Video, Direction::SendOnly, None, None, None);
    let (sdp, pending) = api.apply().expect("offer");
    let (old, new) = (camera_at(harness.camera.mid.expect("published")), camera_at(mid));
    let publish = vec![new.clone(), Publish { backup_of: Some(new.mid), ..old }];
    let offer = Offer { sdp: sdp.to_sdp_string(), publish, subscribe: Vec::new() };
    let answer = harness.exchange(0, PUBLISHER, &offer, pending);
    harness.deliver();
    assert!(answer.tracks.len() == 2 && answer.tracks.iter().all(|(_, id)| *id != track));
    assert!(harness.events[&SUBSCRIBER].contains(&SfuEvent::TrackRemoved { track }));
    assert_eq!(harness.core.tracks.announced().count(), 1);
}
