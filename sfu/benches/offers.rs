//! The cost of the most expensive offers that are accepted: parsing and writing on the caller's thread, and the media
//! thread's part. Fails if an offer holds a media thread longer than [`MAX_MEDIA_THREAD_TIME`].
//!
//! `cargo bench -p windlass-sfu --bench offers`

#![allow(missing_docs)]

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use windlass_sfu::core::{Core, ReadOffer};
use windlass_sfu::{JoinOptions, Limits, Offer, ParticipantId, SfuConfig};

/// Maximum time that an offer may hold a media thread.
const MAX_MEDIA_THREAD_TIME: Duration = Duration::from_millis(5);
/// Number of measured offers of each kind. Each comes from a new participant.
const ROUNDS: u64 = 40;

/// Session part of an offer, with ICE credentials and a DTLS fingerprint for all sections.
const HEAD: &str = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuv\r\n\
    a=fingerprint:sha-256 9A:56:5D:80\r\na=setup:actpass\r\n";

/// Opus with redundancy, and the longest lists that the stack reads.
const OPUS: &str = "m=audio 9 UDP/TLS/RTP/SAVPF 111 63\r\na=rtpmap:111 opus/48000/2\r\na=rtcp-fb:111 transport-cc\r\n\
    a=fmtp:111 minptime=10;useinbandfec=1;usedtx=1;stereo=1;sprop-stereo=1\r\na=rtpmap:63 red/48000/2\r\na=fmtp:63 111/111\r\n";

/// Video of `codecs` (payload type, name and parameters), each with retransmissions and all feedback.
fn video(codecs: &[(u8, &str, &str)]) -> String {
    let types: Vec<String> = codecs.iter().map(|(pt, ..)| format!("{pt} {}", pt + 1)).collect();
    let mut text = format!("m=video 9 UDP/TLS/RTP/SAVPF {}\r\n", types.join(" "));
    for (pt, name, parameters) in codecs {
        let _ = write!(text, "a=rtpmap:{pt} {name}/90000\r\n");
        for feedback in ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli"] {
            let _ = write!(text, "a=rtcp-fb:{pt} {feedback}\r\n");
        }
        let _ = write!(text, "a=fmtp:{pt} {parameters}\r\n");
        let _ = write!(text, "a=rtpmap:{0} rtx/90000\r\na=fmtp:{0} apt={pt}\r\n", pt + 1);
    }
    text
}

/// The forwarded codecs.
const CODECS: [(u8, &str, &str); 4] = [
    (98, "VP9", "profile-id=0"),
    (96, "VP8", "max-fr=30"),
    (108, "H264", "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"),
    (45, "AV1", "level-idx=5;profile=0;tier=0"),
];

/// The most expensive offer of `sections` sections of one direction. Each section has the longest lists that the stack
/// reads, up to the limit of the text.
fn dearest(sections: usize, direction: &str, codecs: &str, extensions: usize) -> String {
    let mids: Vec<String> = (0..sections).map(|n| n.to_string()).collect();
    let mut text = format!("{HEAD}a=group:BUNDLE {}\r\n", mids.join(" "));
    for n in 0..sections {
        text += codecs;
        let _ = write!(text, "a=mid:{n}\r\na={direction}\r\n");
        for (at, name) in EXTENSIONS.iter().take(extensions).enumerate() {
            let _ = write!(text, "a=extmap:{} {name}\r\n", at + 1);
        }
        if direction.starts_with("send") {
            let (ssrc, repair) = (1000 + 2 * n, 1001 + 2 * n);
            let _ = write!(
                text,
                "a=ssrc:{ssrc} cname:x\r\na=ssrc:{repair} cname:x\r\na=ssrc-group:FID {ssrc} {repair}\r\n"
            );
        }
    }
    text
}

/// URIs of RTP header extensions. A section has at most 16 of them, as the stack takes ids up to 16.
const EXTENSIONS: [&str; 16] = [
    "urn:ietf:params:rtp-hdrext:ssrc-audio-level",
    "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time",
    "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01",
    "urn:ietf:params:rtp-hdrext:sdes:mid",
    "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay",
    "http://www.webrtc.org/experiments/rtp-hdrext/video-content-type",
    "http://www.webrtc.org/experiments/rtp-hdrext/video-timing",
    "http://www.webrtc.org/experiments/rtp-hdrext/color-space",
    "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time",
    "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id",
    "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id",
    "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension",
    "urn:3gpp:video-orientation",
    "urn:ietf:params:rtp-hdrext:toffset",
    "http://tools.ietf.org/html/draft-ietf-avtext-framemarking-07",
    "urn:x",
];

/// Median and maximum of `times`, in milliseconds.
fn figures(times: &mut [Duration]) -> (f64, f64) {
    times.sort_unstable();
    let ms = |at: usize| times[at].as_secs_f64() * 1000.0;
    (ms(times.len() / 2), ms(times.len() - 1))
}

fn main() -> ExitCode {
    let limits = Limits::default();
    let max = limits.media_sections;
    let chromium = include_str!("../src/core/fixtures/chromium.sdp").to_owned();
    let full = 4 * max;
    let (one, four) = (video(&CODECS[..1]), video(&CODECS));
    let cases = [
        ("Chromium, 6 sections", chromium),
        ("64 video, sendrecv", dearest(max, "sendrecv", &one, 16)),
        ("64 audio, sendrecv", dearest(max, "sendrecv", OPUS, 16)),
        ("64 video, recvonly", dearest(max, "recvonly", &one, 16)),
        ("64 video of four codecs, sendrecv", dearest(max, "sendrecv", &four, 16)),
        ("64 video of four codecs, recvonly", dearest(max, "recvonly", &four, 16)),
        ("16 video of four codecs, recvonly", dearest(16, "recvonly", &four, 16)),
        ("16 video, recvonly", dearest(16, "recvonly", &one, 16)),
        ("256 video, inactive, no extensions", dearest(full, "inactive", &four, 0)),
        ("256 video, inactive, 8 extensions", dearest(full, "inactive", &one, 8)),
    ];
    let mut slow = false;
    println!(
        "| offer | bytes | read, ms (most) | media thread, first, ms (most) | again | write, ms |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for (name, sdp) in cases {
        let bytes = sdp.len();
        let now = Instant::now();
        let mut core = Core::new(SfuConfig::default(), ([192, 0, 2, 1], 7881).into(), now);
        let offer = Offer { sdp, ..Offer::default() };
        let (mut read, mut first, mut again, mut write) = (vec![], vec![], vec![], vec![]);
        for n in 1..=ROUNDS {
            let id = ParticipantId(n);
            core.join(now, "room", id, JoinOptions::default()).expect("joined");
            for times in [&mut first, &mut again] {
                let since = Instant::now();
                let parsed = ReadOffer::new(offer.clone(), limits.sdp_bytes);
                read.push(since.elapsed());
                let since = Instant::now();
                let answered = core.answer(now, id, parsed);
                times.push(since.elapsed());
                let answered = answered.unwrap_or_else(|error| panic!("{name}: {error}"));
                let since = Instant::now();
                std::hint::black_box(answered.write());
                write.push(since.elapsed());
            }
            core.leave(now, id);
            core.advance(now);
            while core.poll().is_some() {}
        }
        let [read, first, again, write] =
            [&mut read, &mut first, &mut again, &mut write].map(|times| figures(times));
        slow |= first.0.max(again.0) > MAX_MEDIA_THREAD_TIME.as_secs_f64() * 1000.0;
        println!(
            "| {name} | {bytes} | {:.2} ({:.2}) | {:.2} ({:.2}) | {:.2} ({:.2}) | {:.2} |",
            read.0, read.1, first.0, first.1, again.0, again.1, write.0
        );
    }
    if slow {
        println!("an offer holds a media thread longer than {MAX_MEDIA_THREAD_TIME:?}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
