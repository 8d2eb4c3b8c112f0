//! Writes first inputs for the fuzz targets: valid ones, which the fuzzer then changes.
//!
//! The program is linked as a fuzz target, since nothing that counts coverage can be linked otherwise. It ends before
//! the first input.

#![no_main]
#![allow(missing_docs)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use std::time::Instant;

use libfuzzer_sys::fuzz_target;
use str0m::Rtc;
use str0m::media::{Direction, MediaKind, Simulcast, SimulcastLayer};

/// An offer of Chromium.
const CHROMIUM: &str = include_str!("../../src/core/fixtures/chromium.sdp");

/// Session part of an offer, with ICE credentials and a DTLS fingerprint for all sections.
const HEAD: &str = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuv\r\n\
    a=fingerprint:sha-256 9A:56:5D:80\r\na=setup:actpass\r\n";

/// Sections of offers, by name: valid ones, one payload type for two codecs, repeated payload types and lines.
const SECTIONS: [(&str, &[&str]); 4] = [
    (
        "sound",
        &[AUDIO, VIDEO, VIDEO, "application 9 UDP/DTLS/SCTP webrtc-datachannel|sctp-port:5000"],
    ),
    (
        "two-codecs",
        &[
            "audio 9 UDP/TLS/RTP/SAVPF 96|recvonly|rtpmap:96 opus/48000/2",
            "video 9 UDP/TLS/RTP/SAVPF 96|recvonly|rtpmap:96 VP9/90000",
        ],
    ),
    (
        "two-repairs",
        &[
            VIDEO,
            "video 9 UDP/TLS/RTP/SAVPF 100 99|recvonly|rtpmap:100 VP9/90000|fmtp:100 profile-id=2|rtpmap:99 rtx/90000|fmtp:99 apt=100",
        ],
    ),
    (
        "repeated",
        &[
            "video 9 UDP/TLS/RTP/SAVPF 98|recvonly|rtpmap:98 VP9/90000|rtpmap:7 VP9/90000|rtpmap:7 VP9/90000|fmtp:9 apt=98|fmtp:9 apt=98",
            "video 0 UDP/TLS/RTP/SAVPF 98|inactive",
        ],
    ),
];
/// An audio section: its m-line and attributes, separated by `|`.
const AUDIO: &str = "audio 9 UDP/TLS/RTP/SAVPF 111 63|recvonly|rtpmap:111 opus/48000/2|rtpmap:63 red/48000/2|fmtp:63 111/111";
/// A video section: its m-line and attributes, separated by `|`.
const VIDEO: &str = "video 9 UDP/TLS/RTP/SAVPF 98 99|sendrecv|rtpmap:98 VP9/90000|rtcp-fb:98 nack|fmtp:98 profile-id=0|\
    rtpmap:99 rtx/90000|fmtp:99 apt=98|ssrc:1 cname:x|ssrc:2 cname:x|ssrc-group:FID 1 2";

fuzz_target!(init: make_and_end(), |_data: &[u8]| {});

fn make_and_end() {
    make().expect("seeds can be written");
    std::process::exit(0);
}

fn make() -> std::io::Result<()> {
    let corpus = Path::new("corpus");
    let write = |target: &str, name: &str, data: &[u8]| {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), data)
    };
    let mut rtc = Rtc::new(Instant::now());
    let mut simulcast = Simulcast::new();
    for rid in ["q", "h", "f"] {
        simulcast.add_send_layer(SimulcastLayer::new(rid));
    }
    let mut api = rtc.sdp_api();
    api.add_media(MediaKind::Video, Direction::SendOnly, None, None, Some(simulcast));
    api.add_media(MediaKind::Audio, Direction::SendOnly, None, None, None);
    api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
    api.add_channel("ctl".into());
    let (offer, _) = api.apply().expect("offer");
    let sdp = offer.to_sdp_string();
    for lists in [0u8, 1, 4, 5, 9, 0x14] {
        write("offers", &format!("offer-{lists}"), &[&[0, lists], sdp.as_bytes()].concat())?;
        let twice = [&[0, lists], sdp.as_bytes(), &[0, 0, lists], sdp.as_bytes()].concat();
        write("offers", &format!("again-{lists}"), &twice)?;
    }
    for (name, sections) in SECTIONS {
        let mids: Vec<String> = (0..sections.len()).map(|n| n.to_string()).collect();
        let mut text = format!("{HEAD}a=group:BUNDLE {}\r\n", mids.join(" "));
        for (n, section) in sections.iter().enumerate() {
            let (media, attributes) = section.split_once('|').unwrap_or((section, ""));
            let attributes = attributes.replace('|', "\r\na=");
            let _ = write!(text, "m={media}\r\na=mid:{n}\r\na={attributes}\r\n");
        }
        for lists in [0u8, 1, 5] {
            write("offers", &format!("{name}-{lists}"), &[&[0, lists], text.as_bytes()].concat())?;
        }
        // After another offer, and before it.
        let (one, other) = (text.as_bytes(), CHROMIUM.as_bytes());
        write("offers", &format!("{name}-then"), &[&[0, 0], one, &[0, 0, 0], other].concat())?;
        write("offers", &format!("{name}-after"), &[&[0, 0], other, &[0, 0, 0], one].concat())?;
    }
    write("stack", "offer", &[&[4], sdp.as_bytes()].concat())?;
    // A binding request, the beginning of a ClientHello, a packet with an extension, a receiver report.
    let stun =
        [&[0, 1, 0, 8, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12], &[0, 6, 0, 3, b'a', b':', b'b', 0]]
            .concat();
    let hello = [
        &[22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 1, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 8][..],
        &[0; 8],
    ]
    .concat();
    let rtp =
        [&[0x90, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9, 0xbe, 0xde, 0, 1, 0x10, 0, 0, 0][..], &[5; 40]]
            .concat();
    let report = [&[0x81, 201, 0, 7, 0, 0, 0, 1][..], &[0; 24]].concat();
    for (name, which, datagram) in
        [("stun", 0u8, &stun), ("hello", 5, &hello), ("rtp", 2, &rtp), ("rtcp", 3, &report)]
    {
        write("stack", name, &[&[which], datagram.as_slice()].concat())?;
        let length = (datagram.len() as u16).to_be_bytes();
        for (options, from) in [(0u8, 9u8), (1, 0), (1, 1), (1, 0x85)] {
            let input = [&[options, from], &length[..], datagram].concat();
            write("datagrams", &format!("{name}-{options}-{from}"), &input)?;
        }
    }
    // VP9 with its descriptor: a key frame of one packet, then three more.
    let frame = |key: bool, n: u8| {
        let mut payload = vec![if key { 0x8e } else { 0xce }, 0x80, n, 0x18, 1, 2, 128, 1, 104];
        payload.extend([0x82, 0x49, 0x83, 0x42, 0, 0x27, 0xf0, 0x16, 0x70]);
        payload.extend([0; 60]);
        payload
    };
    let mut packets = Vec::new();
    for n in 0..4 {
        let payload = frame(n == 0, n);
        packets.extend([0xc0 | (n % 3), 0x60]);
        packets.extend((payload.len() as u16).to_be_bytes());
        packets.extend(payload);
    }
    packets.extend([0x86, 0, 5, 1, 2, 3, 4, 5, 7]);
    write("media", "frames", &packets)?;
    // DATA, SACK, HEARTBEAT, RE-CONFIG, FORWARD-TSN, ABORT, SHUTDOWN.
    for kind in [0u8, 3, 4, 5, 6, 7, 130, 192, 132] {
        let chunk = [&[kind, 3, 0, 20][..], &[0; 16]].concat();
        let input = [&[5, 0, 20][..], &chunk].concat();
        write("sctp", &format!("chunk-{kind}"), &input)?;
    }
    Ok(())
}
