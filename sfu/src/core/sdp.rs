//! What an offer says about its m-lines, as far as the lists beside it must agree with it.
//!
//! The WebRTC stack reads the SDP itself; this only answers "is there such an m-line, of that kind and direction,
//! with a codec that we forward?" before the stack's state is touched. Anything else is passed over: the stack refuses
//! what is no session description.

use std::collections::HashSet;

use crate::api::Kind;

/// One m-line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MediaLine {
    /// `a=mid`.
    pub mid: String,
    /// `None` for anything but audio and video.
    pub kind: Option<Kind>,
    /// Whether it is `m=application`.
    pub application: bool,
    /// Whether the client sends on it.
    pub sends: bool,
    /// Whether the client receives on it.
    pub receives: bool,
    /// Whether it has VP9 profile 0 or Opus, as its kind needs.
    pub codec: bool,
}

/// The m-lines of an offer, in order.
pub fn media_lines(sdp: &str) -> Vec<MediaLine> {
    let mut lines: Vec<MediaLine> = Vec::new();
    let mut vp9: HashSet<&str> = HashSet::new();
    let mut other_profiles: HashSet<&str> = HashSet::new();
    let mut rejected = false;
    for line in sdp.lines().map(str::trim_end).chain(std::iter::once("m=")) {
        if let Some(media) = line.strip_prefix("m=") {
            if let Some(last) = lines.last_mut() {
                if last.kind == Some(Kind::Video) {
                    last.codec = !vp9.is_subset(&other_profiles);
                }
                if rejected {
                    (last.sends, last.receives) = (false, false);
                }
            }
            vp9.clear();
            other_profiles.clear();
            let mut words = media.split(' ');
            let kind = match words.next() {
                Some("audio") => Some(Kind::Audio),
                Some("video") => Some(Kind::Video),
                _ => None,
            };
            rejected = words.next() == Some("0");
            let application = media.starts_with("application");
            // An m-line without a direction is `sendrecv`.
            lines.push(MediaLine {
                kind,
                application,
                sends: true,
                receives: true,
                ..MediaLine::default()
            });
            continue;
        }
        let Some(last) = lines.last_mut() else { continue };
        let Some(attribute) = line.strip_prefix("a=") else { continue };
        if let Some(mid) = attribute.strip_prefix("mid:") {
            mid.clone_into(&mut last.mid);
        } else if attribute == "bundle-only" {
            // It has no port of its own because it shares another's (RFC 8843 §7.2.1): Firefox and GStreamer write it so.
            rejected = false;
        } else if attribute == "sendonly" {
            last.receives = false;
        } else if attribute == "recvonly" {
            last.sends = false;
        } else if attribute == "inactive" {
            (last.sends, last.receives) = (false, false);
        } else if let Some((pt, codec)) =
            attribute.strip_prefix("rtpmap:").and_then(|r| r.split_once(' '))
        {
            let codec = codec.to_ascii_lowercase();
            if codec.starts_with("vp9/90000") {
                vp9.insert(pt);
            }
            last.codec |= last.kind == Some(Kind::Audio) && codec.starts_with("opus/48000");
        } else if let Some((pt, format)) =
            attribute.strip_prefix("fmtp:").and_then(|r| r.split_once(' '))
            && format
                .split(';')
                .filter_map(|p| p.trim().strip_prefix("profile-id="))
                .any(|profile| profile != "0")
        {
            other_profiles.insert(pt);
        }
    }
    lines.pop();
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OFFER: &str = "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=sendonly\r\na=rtpmap:111 opus/48000/2\r\n\
        m=video 9 UDP/TLS/RTP/SAVPF 98 100\r\na=mid:1\r\na=recvonly\r\na=rtpmap:98 VP9/90000\r\na=fmtp:98 profile-id=0\r\n\
        a=rtpmap:100 VP9/90000\r\na=fmtp:100 profile-id=2\r\n\
        m=video 9 UDP/TLS/RTP/SAVPF 100\r\na=mid:2\r\na=inactive\r\na=rtpmap:100 VP9/90000\r\na=fmtp:100 x=y; profile-id=2\r\n\
        m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:3\r\n";

    #[test]
    fn kinds_directions_and_codecs_are_found() {
        let lines = media_lines(OFFER);
        let told: Vec<_> =
            lines.iter().map(|l| (l.mid.as_str(), l.kind, l.sends, l.receives, l.codec)).collect();
        assert_eq!(
            told,
            [
                ("0", Some(Kind::Audio), true, false, true),
                ("1", Some(Kind::Video), false, true, true),
                ("2", Some(Kind::Video), false, false, false),
                ("3", None, true, true, false),
            ]
        );
        assert!(lines[3].application);
    }

    #[test]
    fn a_line_without_a_port_is_rejected_unless_it_is_bundled() {
        let sdp = "v=0\r\na=bundle-only\r\nm=audio 9 X 0\r\na=mid:0\r\nm=audio 0 X 0\r\na=mid:1\r\na=sendonly\r\na=bundle-only\r\n\
            m=video 0 X 0\r\na=mid:2\r\na=sendonly\r\nm=video 0 X 0\r\na=bundle-only\r\na=mid:3\r\na=recvonly\r\n";
        let told: Vec<_> = media_lines(sdp).into_iter().map(|l| (l.sends, l.receives)).collect();
        assert_eq!(told, [(true, true), (true, false), (false, false), (false, true)]);
    }

    #[test]
    fn a_long_list_of_payload_types_is_read_in_no_time() {
        let types = (0..60_000)
            .map(|pt| format!("a=rtpmap:{pt} VP9/90000\r\na=fmtp:{pt} profile-id=2\r\n"));
        let line = "m=video 9 UDP/TLS/RTP/SAVPF 98\r\na=mid:0\r\n".to_owned();
        let sdp: String = std::iter::once(line).chain(types).collect();
        let begun = std::time::Instant::now();
        assert!(!media_lines(&sdp)[0].codec);
        assert!(begun.elapsed().as_secs() < 3, "{:?}", begun.elapsed());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            media_lines(&text);
        }

        #[test]
        fn any_mutilated_offer_is_read(from in 0..OFFER.len(), to in 0..OFFER.len()) {
            if let Some(part) = OFFER.get(from.min(to)..from.max(to)) {
                media_lines(part);
            }
        }
    }
}
