//! Audio through the whole core: redundancy, losses and silence.

use crate::api::{JoinOptions, TrackKind};
use str0m::media::Mid;
use str0m::media::{Direction, MediaKind, Pt};
use str0m::rtp::{ExtensionValues, RtpWrite};

use super::harness::{Harness, PUBLISHER, config};
use crate::api::{Offer, Publish, Subscribe};
use crate::core::*;

/// From one packet to the next while somebody speaks.
const PACKET: Duration = Duration::from_millis(20);
/// RTP clock in one of them.
const TICKS: u32 = 960;

/// A publisher of audio and subscribers who take redundancy, or do not.
struct Talk {
    harness: Harness,
    mid: Mid,
    opus: Pt,
    red: Option<Pt>,
    sent: u64,
    timestamp: u32,
}

impl Talk {
    fn new(publisher: bool, subscribers: &[bool]) -> Talk {
        let mut harness = Harness::new(config());
        let now = harness.now;
        harness.core.join(now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
        let at = harness.client_of(PUBLISHER, publisher);
        let mut api = harness.clients[at].rtc.sdp_api();
        let mid = api.add_media(MediaKind::Audio, Direction::SendOnly, None, None, None);
        let (sdp, pending) = api.apply().expect("offer");
        let (kind, name) = (TrackKind::Audio, "microphone".into());
        let publish = vec![Publish {
            mid: mid.to_string(),
            kind,
            name,
            max: None,
            encrypted: false,
            backup_of: None,
        }];
        let offer = Offer { sdp: sdp.to_sdp_string(), publish, subscribe: Vec::new() };
        let answer = harness.exchange(at, PUBLISHER, &offer, pending);
        for (n, &red) in subscribers.iter().enumerate() {
            let id = ParticipantId(10 + n as u64);
            harness.core.join(now, "room", id, JoinOptions::default()).expect("joined");
            let at = harness.client_of(id, red);
            let mut api = harness.clients[at].rtc.sdp_api();
            let mid = api.add_media(MediaKind::Audio, Direction::RecvOnly, None, None, None);
            let (sdp, pending) = api.apply().expect("offer");
            let (mid, track) = (mid.to_string(), answer.tracks[0].1);
            let subscribe = vec![Subscribe { mid, track, max: None }];
            let offer = Offer { sdp: sdp.to_sdp_string(), publish: Vec::new(), subscribe };
            harness.exchange(at, id, &offer, pending);
        }
        harness.run(Duration::from_secs(5));
        let params = harness.clients[0].rtc.codec_config().params();
        let opus = params.iter().find(|p| p.spec().codec == str0m::format::Codec::Opus);
        let (opus, red) = opus.map(|p| (p.pt(), p.red())).expect("Opus");
        Talk { harness, mid, opus, red, sent: 0, timestamp: 0 }
    }

    /// One packet, after a time.
    fn say(&mut self, after: Duration, pt: Pt, payload: Vec<u8>) {
        self.harness.run(after);
        self.timestamp = self.timestamp.wrapping_add(after.as_millis() as u32 * 48);
        let seq = 40_000 + self.sent;
        self.sent += 1;
        let now = self.harness.now;
        let mut api = self.harness.clients[0].rtc.direct_api();
        let stream = api.stream_tx_by_mid(self.mid, None).expect("a stream");
        stream.write_rtp(RtpWrite::new(pt, seq.into(), self.timestamp, now, payload));
        self.harness.clients[0].due = now;
    }

    /// A block, and the one before it.
    fn say_twice(&mut self, n: u8) {
        let opus = *self.opus;
        let mut payload = vec![0x80 | opus, (TICKS >> 6) as u8, ((TICKS & 0x3f) << 2) as u8, 2];
        payload.extend([opus, 0xfc, n.wrapping_sub(1), 0xfc, n]);
        self.say(PACKET, self.red.expect("redundancy"), payload);
    }

    fn heard(&mut self, subscriber: usize) -> Vec<(u8, Vec<u8>)> {
        let packets = &self.harness.clients[1 + subscriber].received;
        packets.iter().map(|p| (*p.header.payload_type, p.payload.to_vec())).collect()
    }
}

#[test]
fn redundancy_goes_to_those_who_take_it_and_others_get_the_newest_block() {
    let mut talk = Talk::new(true, &[true, false]);
    let red = *talk.red.expect("redundancy");
    for n in 1..=50 {
        talk.say_twice(n);
    }
    talk.harness.run(PACKET);
    let opus = *talk.opus;
    let heard = talk.heard(0);
    assert_eq!(heard.len(), 50);
    assert!(heard.iter().all(|(pt, payload)| *pt == red && payload.len() == 9), "{heard:?}");
    let heard = talk.heard(1);
    let plain: Vec<_> = (1..=50).map(|n| (opus, vec![0xfc, n])).collect();
    assert_eq!(heard, plain);
}

#[test]
fn what_is_lost_on_the_way_is_in_the_next_packet() {
    let mut talk = Talk::new(true, &[true]);
    talk.harness.clients[1].loss = 3;
    for n in 1..=90 {
        talk.say_twice(n);
    }
    talk.harness.run(PACKET);
    let heard = talk.heard(0);
    assert!((55..=65).contains(&heard.len()), "{}", heard.len());
    let mut known: Vec<u8> = heard.iter().flat_map(|(_, p)| [p[6], p[8]]).collect();
    known.sort_unstable();
    known.dedup();
    assert!(known.len() >= 89, "{known:?}");
}

#[test]
fn whoever_comes_later_is_told_who_speaks() {
    let mut talk = Talk::new(false, &[false]);
    let opus = talk.opus;
    for n in 0..100 {
        talk.harness.run(PACKET);
        talk.timestamp += TICKS;
        let level = ExtensionValues {
            audio_level: Some(-20),
            voice_activity: Some(true),
            ..ExtensionValues::default()
        };
        let now = talk.harness.now;
        let mut api = talk.harness.clients[0].rtc.direct_api();
        let stream = api.stream_tx_by_mid(talk.mid, None).expect("a stream");
        let packet = RtpWrite::new(opus, (7 + n).into(), talk.timestamp, now, vec![0xfc]);
        stream.write_rtp(packet.ext_vals(level));
        talk.harness.clients[0].due = now;
    }
    let late = ParticipantId(99);
    talk.harness.core.join(talk.harness.now, "room", late, JoinOptions::default()).expect("joined");
    talk.harness.run(PACKET);
    let told = talk.harness.events.get(&late);
    let speaks = SfuEvent::Speaker { participant: PUBLISHER };
    assert!(told.is_some_and(|events| events.contains(&speaks)), "{told:?}");
}

#[test]
fn malformed_redundancy_is_counted_and_goes_to_nobody() {
    let mut talk = Talk::new(true, &[true, false]);
    let red = talk.red.expect("redundancy");
    talk.say(PACKET, red, vec![0x80 | *talk.opus, 0, 3, 255, *talk.opus, 1]);
    talk.say(PACKET, red, vec![0x85, 0, 0, 1, 5, 1, 2]);
    talk.harness.run(PACKET);
    assert_eq!(talk.harness.core.counters.red_malformed, 2);
    assert!(talk.heard(0).is_empty() && talk.heard(1).is_empty());
}

#[test]
fn silence_that_is_told_rarely_keeps_its_times_and_numbers() {
    let mut talk = Talk::new(false, &[false, true]);
    let opus = talk.opus;
    assert_eq!(talk.red, None, "who offers none gets none");
    // As Opus with DTX: speech, then a packet in 400 ms, then speech.
    for n in 0..30u8 {
        let after = if (10..20).contains(&n) { 20 * PACKET } else { PACKET };
        talk.say(after, opus, vec![0xfc, n]);
    }
    talk.harness.run(PACKET);
    for subscriber in 0..2 {
        let packets = &talk.harness.clients[1 + subscriber].received;
        assert_eq!(packets.len(), 30);
        for (n, pair) in packets.windows(2).enumerate() {
            assert_eq!(*pair[1].seq_no, *pair[0].seq_no + 1);
            let ticks = pair[1].header.timestamp.wrapping_sub(pair[0].header.timestamp);
            let slow = (9..19).contains(&n);
            assert_eq!(ticks, if slow { 20 * TICKS } else { TICKS }, "{n}");
        }
    }
}
