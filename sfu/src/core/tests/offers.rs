//! Offers of browsers and others that must be taken, offers that must not, and that those leave a connection as it was.

use std::fmt::Write as _;

use super::harness::*;
use crate::api::{Answer, JoinOptions, Offer, OfferError, Subscribe, TrackId};
use crate::core::*;
use str0m::media::{Direction, MediaKind};

pub(crate) const CHROMIUM: &str = include_str!("../fixtures/chromium.sdp");

const HEAD: &str = "v=0\r\no=mozilla...THIS_IS_SDPARTA-99.0 4962303333179871722 0 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n\
    a=fingerprint:sha-256 9A:56:5D:80:95:4E:F4:A9:3F:B0:91:6B:6D:D6:FB:42:8A:16:04:E1:A6:0D:6C:55:0C:CC:40:6C:EA:65:40:EA\r\n\
    a=ice-ufrag:Cg2p\r\na=ice-pwd:TnhstHAeGeo1bz1zOzjaeQf+\r\na=setup:actpass\r\n";

/// A description with these sections: media, lines of attributes.
pub(crate) fn sdp(sections: &[(&str, &str)]) -> String {
    let mids: Vec<String> = (0..sections.len()).map(|n| n.to_string()).collect();
    let mut text = format!("{HEAD}a=group:BUNDLE {}\r\n", mids.join(" "));
    for (n, (media, attributes)) in sections.iter().enumerate() {
        let _ = write!(text, "m={media}\r\na=mid:{n}\r\n");
        for attribute in attributes.split_terminator('|') {
            let _ = write!(text, "a={attribute}\r\n");
        }
    }
    text
}

pub(crate) const AUDIO: (&str, &str) = (
    "audio 9 UDP/TLS/RTP/SAVPF 111 63",
    "recvonly|rtpmap:111 opus/48000/2|fmtp:111 minptime=10;useinbandfec=1|rtpmap:63 red/48000/2|fmtp:63 111/111",
);
pub(crate) const VIDEO: (&str, &str) = (
    "video 9 UDP/TLS/RTP/SAVPF 98 99",
    "recvonly|rtpmap:98 VP9/90000|rtcp-fb:98 nack|rtcp-fb:98 nack pli|fmtp:98 profile-id=0|rtpmap:99 rtx/90000|fmtp:99 apt=98",
);
const DATA: (&str, &str) =
    ("application 9 UDP/DTLS/SCTP webrtc-datachannel", "sctp-port:5000|max-message-size:262144");

fn offer(sdp: impl Into<String>) -> Offer {
    Offer { sdp: sdp.into(), ..Offer::default() }
}

/// Somebody who has joined and nothing else.
fn somebody() -> Harness {
    let mut harness = Harness::new(config());
    harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    harness
}

/// What becomes of offers of one participant, one after the other.
fn answers(offers: &[String]) -> Vec<Result<Answer, OfferError>> {
    let mut harness = somebody();
    let now = harness.now;
    offers.iter().map(|sdp| harness.core.offer(now, PUBLISHER, &offer(sdp.as_str()))).collect()
}

fn answer(sdp: String) -> Result<Answer, OfferError> {
    answers(&[sdp]).remove(0)
}

/// The m-lines of an answer.
fn media(answer: &Answer) -> Vec<&str> {
    answer.sdp.lines().filter_map(|line| line.strip_prefix("m=")).collect()
}

/// A section of video with VP8, VP9 and H.264, and its attributes.
fn three_codecs(direction: &str) -> (&'static str, String) {
    let types = "rtpmap:96 VP8/90000|rtpmap:98 VP9/90000|fmtp:98 profile-id=0|rtpmap:108 H264/90000\
        |fmtp:108 packetization-mode=1;profile-level-id=42e01f";
    ("video 9 UDP/TLS/RTP/SAVPF 96 98 108", format!("{direction}|{types}"))
}

#[test]
fn a_section_that_sends_has_the_preferred_codec_alone() {
    let (media_line, attributes) = three_codecs("sendonly");
    let answer = answer(sdp(&[(media_line, &attributes)])).expect("answer");
    assert_eq!(media(&answer), ["video 9 UDP/TLS/RTP/SAVPF 98"]);
}

#[test]
fn sections_that_receive_have_all_codecs_up_to_a_limit() {
    let (media_line, attributes) = three_codecs("recvonly");
    let sections: Vec<(&str, &str)> = vec![(media_line, attributes.as_str()); 25];
    let answer = answer(sdp(&sections)).expect("answer");
    let media = media(&answer);
    // 24 sections have two further codecs each.
    assert!(media[..24].iter().all(|m| *m == "video 9 UDP/TLS/RTP/SAVPF 98 96 108"), "{media:?}");
    assert_eq!(media[24], "video 9 UDP/TLS/RTP/SAVPF 98");
}

#[test]
fn an_offer_of_chromium_is_answered_with_what_is_forwarded() {
    let answer = answer(CHROMIUM.replace('\n', "\r\n")).expect("answer");
    // VP9, VP8, AV1, H.264, each with its retransmissions, where Chromium receives.
    let video = "video 9 UDP/TLS/RTP/SAVPF 98 99 96 97 45 46 108 109";
    let audio = "audio 9 UDP/TLS/RTP/SAVPF 63 111";
    let data = "application 9 UDP/DTLS/SCTP webrtc-datachannel";
    assert_eq!(
        media(&answer),
        [audio, "video 9 UDP/TLS/RTP/SAVPF 98 99", video, audio, video, data]
    );
    for line in [
        "a=simulcast:recv q;h;f",
        "a=rtcp-fb:98 transport-cc",
        "a=extmap:12 https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension",
        "a=fmtp:63 111/111",
        "a=fmtp:99 apt=98",
        "a=rtpmap:96 VP8/90000",
        "a=rtpmap:45 AV1/90000",
        "a=fmtp:108 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
    ] {
        assert!(answer.sdp.contains(&format!("{line}\r\n")), "{line} in {}", answer.sdp);
    }
}

#[test]
fn offers_of_other_clients_are_taken() {
    // Firefox: types from 109 on, sections that share the first one's port, no codec of ours at first.
    let firefox = sdp(&[
        (
            "audio 9 UDP/TLS/RTP/SAVPF 109 9 0 8 101",
            "sendrecv|extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level|extmap:2/recvonly urn:ietf:params:rtp-hdrext:csrc-audio-level|\
            fmtp:109 maxplaybackrate=48000;stereo=1;useinbandfec=1|fmtp:101 0-15|rtcp-mux|rtpmap:109 opus/48000/2|rtpmap:9 G722/8000/1|rtpmap:0 PCMU/8000|rtpmap:8 PCMA/8000|\
            rtpmap:101 telephone-event/8000|ssrc:3456 cname:{a}",
        ),
        (
            "video 0 UDP/TLS/RTP/SAVPF 120 124 121 125 126 127 97 98 123 122 119",
            "bundle-only|sendonly|fmtp:126 profile-level-id=42e01f;level-asymmetry-allowed=1;packetization-mode=1|\
            fmtp:120 max-fs=12288;max-fr=60|fmtp:124 apt=120|fmtp:121 max-fs=12288;max-fr=60|fmtp:125 apt=121|fmtp:127 apt=126|fmtp:98 apt=97|fmtp:119 apt=122|\
            rtpmap:120 VP8/90000|rtpmap:124 rtx/90000|rtpmap:121 VP9/90000|rtpmap:125 rtx/90000|rtpmap:126 H264/90000|rtpmap:127 rtx/90000|rtpmap:97 H264/90000|rtpmap:98 rtx/90000|\
            rtpmap:123 ulpfec/90000|rtpmap:122 red/90000|rtpmap:119 rtx/90000|rtcp-fb:121 nack|rtcp-fb:121 nack pli|rtcp-fb:121 ccm fir|rtcp-fb:121 goog-remb|rtcp-fb:121 transport-cc|\
            rid:q send|rid:f send|simulcast:send q;f|ssrc:1 cname:{a}|ssrc:2 cname:{a}|ssrc-group:FID 1 2",
        ),
        (
            "application 0 UDP/DTLS/SCTP webrtc-datachannel",
            "bundle-only|sendrecv|sctp-port:5000|max-message-size:1073741823",
        ),
    ]);
    // GStreamer: numbers as the pipeline gives them, no feedback but its own.
    let gstreamer = sdp(&[
        (
            "video 9 UDP/TLS/RTP/SAVPF 96 97",
            "sendonly|rtcp-mux|rtcp-rsize|rtpmap:96 VP9/90000|rtcp-fb:96 nack pli|rtcp-fb:96 ccm fir|rtcp-fb:* transport-cc|rtpmap:97 rtx/90000|fmtp:97 apt=96;rtx-time=1000|\
            framerate:30|ssrc:3 msid:user3 webrtctransceiver0|ssrc:3 cname:user3",
        ),
        (
            "audio 0 UDP/TLS/RTP/SAVPF 100",
            "bundle-only|sendonly|rtpmap:100 OPUS/48000/2|fmtp:100 sprop-maxcapturerate=48000;sprop-stereo=0|ptime:20",
        ),
    ]);
    // aiortc and libdatachannel (OBS): H.264 alone.
    let other = sdp(&[
        (
            "audio 9 UDP/TLS/RTP/SAVPF 96 9 0 8",
            "sendonly|rtpmap:96 opus/48000/2|rtpmap:9 G722/8000|rtpmap:0 PCMU/8000|rtpmap:8 PCMA/8000|ssrc:7 cname:x",
        ),
        (
            "video 9 UDP/TLS/RTP/SAVPF 97 98",
            "sendonly|rtpmap:97 H264/90000|fmtp:97 profile-level-id=42e01f;packetization-mode=1|rtpmap:98 rtx/90000|fmtp:98 apt=97|ssrc:8 cname:x",
        ),
    ]);
    let told: Vec<String> = [firefox, gstreamer, other]
        .into_iter()
        .map(|sdp| media(&answer(sdp).expect("answer")).join(", "))
        .collect();
    assert!(
        told[0].starts_with("audio 9 UDP/TLS/RTP/SAVPF 109, video 9 UDP/TLS/RTP/SAVPF 121 125"),
        "{told:?}"
    );
    assert!(
        told[1].starts_with("video 9 UDP/TLS/RTP/SAVPF 96 97, audio 9 UDP/TLS/RTP/SAVPF 100"),
        "{told:?}"
    );
    assert_eq!(told[2], "audio 9 UDP/TLS/RTP/SAVPF 96, video 9 UDP/TLS/RTP/SAVPF 97 98");
}

#[test]
fn a_payload_type_with_two_meanings_is_refused_wherever_the_second_is() {
    let video = |types: &str, attributes: &str| {
        let (media, attributes) =
            (format!("video 9 UDP/TLS/RTP/SAVPF {types}"), attributes.to_owned());
        sdp(&[
            (
                "audio 9 UDP/TLS/RTP/SAVPF 96 97",
                "recvonly|rtpmap:96 opus/48000/2|rtpmap:97 red/48000/2|fmtp:97 96/96",
            ),
            (&media, &attributes),
        ])
    };
    let cases = [
        // The smallest offer that ended a media thread.
        video("96", "recvonly|rtpmap:96 VP9/90000"),
        video("96", "sendrecv|rtpmap:96 VP9/90000"),
        // Retransmissions, and redundancy.
        video("98 96", "recvonly|rtpmap:98 VP9/90000|rtpmap:96 rtx/90000|fmtp:96 apt=98"),
        video("98 97", "recvonly|rtpmap:98 VP9/90000|rtpmap:97 rtx/90000|fmtp:97 apt=98"),
        // Codecs that are not forwarded, too.
        video("97", "recvonly|rtpmap:97 H264/90000"),
        // In one section.
        video("98", "recvonly|rtpmap:98 VP9/90000|rtpmap:98 VP8/90000"),
        video("98 98", "recvonly|rtpmap:98 VP9/90000"),
        video("98", "recvonly|rtpmap:98 VP9/90000|fmtp:98 profile-id=0|fmtp:98 profile-id=2"),
        // Two profiles, and two streams that one repairs.
        sdp(&[
            VIDEO,
            ("video 9 UDP/TLS/RTP/SAVPF 98", "recvonly|rtpmap:98 VP9/90000|fmtp:98 profile-id=2"),
        ]),
        sdp(&[
            VIDEO,
            (
                "video 9 UDP/TLS/RTP/SAVPF 100 99",
                "recvonly|rtpmap:100 VP9/90000|fmtp:100 profile-id=2|rtpmap:99 rtx/90000|fmtp:99 apt=100",
            ),
        ]),
    ];
    for sdp in cases {
        let refused = answer(sdp.clone()).expect_err(&sdp);
        assert!(matches!(refused, OfferError::PayloadType { .. }), "{refused}: {sdp}");
    }
    // Over two offers.
    let audio = ("audio 9 UDP/TLS/RTP/SAVPF 96", "recvonly|rtpmap:96 opus/48000/2");
    let taken = ("audio 9 UDP/TLS/RTP/SAVPF 97", "recvonly|rtpmap:97 opus/48000/2");
    let other = ("video 9 UDP/TLS/RTP/SAVPF 96", "recvonly|rtpmap:96 VP9/90000");
    for second in [sdp(&[audio, other]), sdp(&[taken, other]), sdp(&[taken])] {
        let told = answers(&[sdp(&[audio]), second]);
        assert!(told[0].is_ok(), "{told:?}");
        assert!(matches!(told[1], Err(OfferError::PayloadType { .. })), "{told:?}");
    }
}

#[test]
fn what_makes_the_stack_slow_is_refused() {
    let lines = |line: &str, count: usize| format!("{line}|").repeat(count);
    let many = |attributes: String| {
        answer(sdp(&[(
            "video 9 UDP/TLS/RTP/SAVPF 98",
            &format!("recvonly|rtpmap:98 VP9/90000|{attributes}"),
        )]))
    };
    // 22 seconds.
    let cubic = many(lines("rtpmap:7 VP9/90000", 1200) + &lines("fmtp:9 apt=98", 1700));
    assert!(matches!(cubic, Err(OfferError::TooManyLines { max: 128, .. })), "{cubic:?}");
    for line in ["rtpmap:7 VP9/90000", "fmtp:9 apt=98"] {
        let twice = many(lines(line, 2));
        assert!(matches!(twice, Err(OfferError::PayloadType { .. })), "{twice:?}");
    }
    for line in ["rtcp-fb:98 nack", "extmap:1 urn:x", "ssrc:1 cname:x", "whatever"] {
        assert!(many(lines(line, 128)).is_ok(), "{line}");
        let (name, _) = line.split_once(':').unwrap_or((line, ""));
        let error = OfferError::TooManyLines { name: name.into(), max: 128 };
        assert_eq!(many(lines(line, 129)), Err(error));
    }
    let media = sdp(&vec![VIDEO; 65]);
    assert_eq!(answer(media), Err(OfferError::TooLarge));
    assert!(answer(sdp(&vec![VIDEO; 64])).is_ok());
    assert!(
        answer(sdp(&[
            &[("video 9 UDP/TLS/RTP/SAVPF 98", "inactive|rtpmap:98 VP9/90000"); 100][..],
            &[VIDEO; 64]
        ]
        .concat()))
        .is_ok()
    );
}

#[test]
fn what_nobody_understands_is_refused() {
    let bad = |sdp: String| {
        assert!(
            matches!(answer(sdp.clone()), Err(OfferError::BadSdp(_) | OfferError::BadMid { .. })),
            "{sdp}"
        );
    };
    bad(sdp(&[("text 9 UDP/TLS/RTP/SAVPF 98", "recvonly|rtpmap:98 t140/1000")]));
    bad(sdp(&[AUDIO, ("text 0 UDP/TLS/RTP/SAVPF 98", "recvonly")]));
    bad(sdp(&[("video 9 RTP/AVP 98", "recvonly|rtpmap:98 VP9/90000")]));
    bad(sdp(&[("video 9 UDP/TLS/RTP/SAVPF 98 96", "recvonly|rtpmap:98 VP9/90000")]));
    bad(sdp(&[("video 9 UDP/TLS/RTP/SAVPF 200", "recvonly|rtpmap:200 VP9/90000")]));
    bad(sdp(&[("video 9 UDP/TLS/RTP/SAVPF", "recvonly|rtpmap:98 VP9/90000")]));
    bad(sdp(&[("video 9 UDP/TLS/RTP/SAVPF 98", "recvonly|sendonly|rtpmap:98 VP9/90000")]));
    bad(sdp(&[DATA, DATA]));
    bad(sdp(&[VIDEO]).replace("a=mid:0", "a=mid:0\r\na=mid:0"));
    bad(sdp(&[VIDEO]).replace("a=mid:0", "a=mid:a-b").replace("BUNDLE 0", "BUNDLE a-b"));
    bad(sdp(&[VIDEO]).replace("BUNDLE 0", "BUNDLE 1"));
    bad(sdp(&[VIDEO]).replace("a=group:BUNDLE 0\r\n", ""));
    bad(sdp(&[VIDEO]).replace("a=setup:actpass", "a=ice-lite"));
    bad(sdp(&[VIDEO]).replace("a=ice-pwd", "a=ice-pass"));
    bad(sdp(&[VIDEO]).replace("sha-256 9A", "sha-256 9"));
    bad(sdp(&[VIDEO, VIDEO]).replace("a=mid:1", "a=mid:0"));
    bad(sdp(&[VIDEO]) + "nothing");
    bad(sdp(&[VIDEO]) + "a=x\u{7}\r\n");
}

#[test]
fn offers_follow_the_ones_before() {
    let follows = |first: &str, second: &str| answers(&[first.into(), second.into()]).remove(1);
    let gone = ("video 0 UDP/TLS/RTP/SAVPF 98", "inactive");
    let out = |text: String, mid: &str| text.replacen(&format!(" {mid}"), "", 1);
    // A section that was given up, and others that have taken its place.
    let given_up = out(sdp(&[VIDEO, gone, AUDIO]), "1");
    let again = sdp(&[VIDEO, VIDEO, AUDIO]);
    assert!(follows(&again, &given_up).is_ok());
    assert!(follows(&given_up, &again).is_err(), "it does not come back");
    let anew = again.replace("BUNDLE 0 1", "BUNDLE 0 7").replace("a=mid:1", "a=mid:7");
    assert!(follows(&given_up, &anew).is_ok(), "but another one may come");
    assert!(follows(&again, &anew).is_err(), "where there was none");
    assert!(follows(&again, &sdp(&[VIDEO, VIDEO])).is_err(), "none goes without a trace");
    assert!(follows(&again, &sdp(&[VIDEO, AUDIO, VIDEO])).is_err(), "nor becomes another kind");
    let swapped = again.replace("a=mid:0", "a=mid:x").replace("a=mid:1", "a=mid:0");
    let swapped = swapped.replace("a=mid:x", "a=mid:1").replace("BUNDLE 0 1", "BUNDLE 1 0");
    assert!(follows(&again, &swapped).is_err(), "nor changes its place");
    assert!(follows(&sdp(&[VIDEO]), &sdp(&[VIDEO, DATA])).is_ok());
    assert!(
        follows(
            &sdp(&[VIDEO, DATA]),
            &out(sdp(&[VIDEO, ("application 0 UDP/DTLS/SCTP webrtc-datachannel", "")]), "1")
        )
        .is_err()
    );
}

#[test]
fn a_section_whose_codec_went_away_keeps_its_place() {
    let both = sdp(&[VIDEO, VIDEO]);
    let without =
        sdp(&[VIDEO, ("video 9 UDP/TLS/RTP/SAVPF 100", "recvonly|rtpmap:100 H264/90000")]);
    let another = both.replace("BUNDLE 0 1", "BUNDLE 0 7").replace("a=mid:1", "a=mid:7");
    let mut harness = somebody();
    let mut answer =
        |sdp: &String| harness.core.offer(harness.now, PUBLISHER, &offer(sdp.as_str()));
    answer(&both).expect("a first offer");
    answer(&without).expect("an offer with a codec that nobody forwards");
    // The stack remembers that the section had a codec, and takes no other in its place.
    answer(&another).expect_err("another section in its place");
    answer(&both).expect("the codec is back");
    assert_eq!(harness.core.counters.offers_failed, 0, "the stack has refused nothing");
    // Where there never was one, another may come.
    assert!(answers(&[without, another])[1].is_ok());
}

#[test]
fn a_connection_names_so_many_streams_and_no_more() {
    let mut harness = somebody();
    let offers = (0..300).map(|n| {
        let attributes = format!("sendonly|rtpmap:98 VP9/90000|ssrc:{} cname:x", 1000 + n);
        sdp(&[("video 9 UDP/TLS/RTP/SAVPF 98", &attributes)])
    });
    let taken = offers
        .filter(|sdp| harness.core.offer(harness.now, PUBLISHER, &offer(sdp.as_str())).is_ok());
    assert_eq!(taken.count(), 256);
}

/// Somebody who watches, with the last offer, and what it was answered.
pub(crate) fn watcher(
    harness: &mut Harness,
    id: ParticipantId,
    track: TrackId,
) -> (usize, Offer, Answer) {
    harness.core.join(harness.now, "room", id, JoinOptions::default()).expect("joined");
    let at = harness.client(id);
    let mut api = harness.clients[at].rtc.sdp_api();
    let mid = api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
    api.add_media(MediaKind::Audio, Direction::RecvOnly, None, None, None);
    api.add_channel("control".into());
    let (sdp, pending) = api.apply().expect("offer");
    let subscribe = vec![Subscribe { mid: mid.to_string(), track, max: None }];
    let offer = Offer { sdp: sdp.to_sdp_string(), publish: Vec::new(), subscribe };
    let answer = harness.exchange(at, id, &offer, pending);
    (at, offer, answer)
}

#[test]
fn refused_offers_leave_a_connection_as_it_was() {
    let (mut harness, track, _) = call();
    let id = ParticipantId(3);
    let (at, good, answer) = watcher(&mut harness, id, track);
    harness.run(Duration::from_secs(1));
    let with = |from: &str, to: &str| {
        assert!(good.sdp.contains(from), "{from} in {}", good.sdp);
        Offer { sdp: good.sdp.replacen(from, to, 1), ..good.clone() }
    };
    let all = |from: &str, to: &str| Offer { sdp: good.sdp.replace(from, to), ..good.clone() };
    let ufrag = good.sdp.lines().find(|line| line.starts_with("a=ice-ufrag:")).expect("ufrag");
    // Each would have restarted ICE before the stack found its fault, or changed what was there.
    let restarted =
        |offer: Offer| Offer { sdp: offer.sdp.replace(ufrag, "a=ice-ufrag:other"), ..offer };
    let listed = |subscribe| Offer { subscribe, ..with(ufrag, "a=ice-ufrag:other") };
    let twice = [good.subscribe.clone(), good.subscribe.clone()].concat();
    let unknown =
        vec![Subscribe { mid: good.subscribe[0].mid.clone(), track: TrackId(99), max: None }];
    let refused = [
        restarted(all("a=fingerprint:sha-256 ", "a=fingerprint:sha-999 ")),
        restarted(with("VP9/90000", "opus/48000/2")),
        restarted(with("m=audio", "m=video")),
        restarted(with("m=audio", "m=text")),
        restarted(with("a=mid:", "a=mid:x")),
        restarted(with("BUNDLE ", "BUNDLE x")),
        restarted(Offer {
            sdp: good.sdp.split("m=application").next().expect("head").into(),
            ..good.clone()
        }),
        restarted(Offer { sdp: good.sdp.clone() + &"a=x\r\n".repeat(129), ..good.clone() }),
        listed(twice),
        listed(unknown),
    ];
    for offer in &refused {
        let before = harness.core.counters.offers_refused;
        let error = harness.core.offer(harness.now, id, offer).expect_err(&offer.sdp);
        assert_eq!(harness.core.counters.offers_refused, before + 1, "{error}");
        // The same credentials, sections, numbers and streams as ever.
        assert_eq!(harness.core.offer(harness.now, id, &good).as_ref(), Ok(&answer), "{error}");
        harness.run(Duration::from_millis(100));
    }
    let counters = harness.core.counters;
    assert_eq!((counters.offers_failed, counters.ice_restarts, counters.peers_failed), (0, 0, 0));
    let before = harness.clients[at].received.len();
    harness.run(Duration::from_secs(2));
    assert!(harness.clients[at].received.len() > before + 80);
    // And a sound offer still does what it says.
    let restart = with(ufrag, "a=ice-ufrag:another");
    assert_ne!(harness.core.offer(harness.now, id, &restart).expect("answer"), answer);
    assert_eq!(harness.core.counters.ice_restarts, 1);
}

#[test]
fn a_track_is_subscribed_to_once_by_each() {
    let (mut harness, track, _) = call();
    let mut api = harness.clients[1].rtc.sdp_api();
    let mids: Vec<_> = (0..2)
        .map(|_| api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None))
        .collect();
    let (sdp, _pending) = api.apply().expect("offer");
    let subscribe = mids.iter().map(|mid| Subscribe { mid: mid.to_string(), track, max: None });
    let twice =
        Offer { sdp: sdp.to_sdp_string(), publish: Vec::new(), subscribe: subscribe.collect() };
    let refused = harness.core.offer(harness.now, SUBSCRIBER, &twice);
    assert_eq!(refused, Err(OfferError::SubscribedTwice { track }));
}
