//! Parses a client's offer. The WebRTC stack reads only what [`Description::to_stack_offer`](super::stack_offer) writes
//! from the result, so text that this parser does not understand cannot reach it.
//!
//! The parser is strict where an error would reach the stack or make its answer wrong. It ignores unknown attributes,
//! codecs that are not forwarded, and attributes of payload types that an m-line does not list.

use std::collections::{HashMap, HashSet};

use str0m::media::Mid;

use super::payload_types::{Chosen, Payload, Payloads};
use crate::api::{OfferError, TrackKind};

/// Maximum number of lines with one attribute in a section, and before the first section. A browser writes less than
/// half of it.
const MAX_LINES: usize = 128;
/// Longest mid that the WebRTC stack distinguishes, in bytes.
pub(crate) const MAX_MID: usize = 16;
/// Longest ICE user name fragment and password, in bytes (RFC 8445 §5.3).
const MAX_ICE: usize = 256;
/// Longest certificate fingerprint, in bytes: of SHA-512, as hex pairs with colons.
const MAX_FINGERPRINT: usize = 64 * 3;
/// Largest id of an RTP header extension that the stack takes.
const MAX_EXTENSION: u8 = 16;
/// Longest URI of an RTP header extension, in bytes.
const MAX_URI: usize = 128;
/// Maximum number of simulcast layers of a section that are kept: browsers send three.
const MAX_LAYERS: usize = 8;
/// Longest rid that the stack distinguishes, in bytes.
const MAX_RID: usize = 8;

/// One m-line, as far as the offer's publish and subscribe lists must match it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MediaLine {
    /// `a=mid` of the m-line.
    pub mid: String,
    /// Kind of media; `None` for anything but audio and video.
    pub kind: Option<TrackKind>,
    /// Whether the m-line is `m=application`.
    pub application: bool,
    /// Whether the client sends on it.
    pub sends: bool,
    /// Whether the client receives on it.
    pub receives: bool,
    /// Whether the m-line has a codec that is forwarded: a [`VideoCodec`](windlass_types::VideoCodec), or Opus.
    pub codec: bool,
}

/// One section, from its m-line to the next one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    /// The m-line, for the publish and subscribe lists.
    pub line: MediaLine,
    /// Whether the client rejects the section: port 0, and not bundled.
    pub rejected: bool,
    /// Payload types of each forwarded codec, the preferred one first.
    pub chosen: Vec<Chosen>,
    /// Header extensions: id and URI.
    pub extensions: Vec<(u8, String)>,
    /// The layers that the client sends.
    pub layers: Vec<OfferedLayer>,
    /// Whether `a=simulcast` lists the layers.
    pub simulcast: bool,
    /// SSRCs that the client sends.
    pub ssrcs: Option<OfferedSsrcs>,
    /// `a=max-message-size` of the data channels, in bytes.
    pub message_bytes: Option<u32>,
}

/// A simulcast layer of an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfferedLayer {
    /// The layer's rid.
    pub rid: String,
    /// Whether `a=simulcast` lists it as paused, by `~`.
    pub paused: bool,
}

/// SSRCs of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OfferedSsrcs {
    /// SSRC of the media.
    pub media: u32,
    /// SSRC of its retransmissions.
    pub repair: Option<u32>,
}

/// ICE credentials of the client.
#[derive(Debug, Clone, Default)]
pub(crate) struct IceCredentials {
    /// User name fragment.
    pub ufrag: String,
    /// Password.
    pub pwd: String,
}

/// Fingerprint of the client's certificate.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fingerprint {
    /// Hash function.
    pub hash: String,
    /// Digest, as hex pairs with colons.
    pub digest: String,
}

/// ICE and DTLS parameters of the client.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transport {
    /// ICE credentials.
    pub ice: IceCredentials,
    /// Fingerprint of the certificate.
    pub fingerprint: Fingerprint,
    /// `a=setup`: the DTLS role.
    pub setup: Option<&'static str>,
}

/// A parsed offer, consistent by itself. [`Negotiated`](super::negotiated::Negotiated) checks it against earlier
/// offers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Description {
    /// The sections, in order.
    pub sections: Vec<Section>,
    /// The transport that all sections share.
    pub transport: Transport,
}

/// The m-lines of an offer, in order.
///
/// # Errors
///
/// Fails if the description is malformed, or the SFU could not answer it.
pub fn media_lines(sdp: &str) -> Result<Vec<MediaLine>, OfferError> {
    Ok(Description::read(sdp)?.sections.into_iter().map(|section| section.line).collect())
}

fn bad(why: impl Into<String>) -> OfferError {
    OfferError::BadSdp(why.into())
}

/// The attributes of a section, in order.
#[derive(Default)]
struct Lines<'a> {
    media: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Lines<'a> {
    fn all(&self, name: &str) -> impl Iterator<Item = &'a str> + Clone {
        self.attributes.iter().filter(move |(n, _)| *n == name).map(|&(_, value)| value)
    }

    fn has(&self, name: &str) -> bool {
        self.attributes.iter().any(|(n, _)| *n == name)
    }

    fn bounded(&self) -> Result<(), OfferError> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        // An ICE-lite server learns the client's addresses from its checks: candidates are ignored.
        for (name, _) in self.attributes.iter().filter(|(name, _)| *name != "candidate") {
            let count = counts.entry(name).or_default();
            *count += 1;
            if *count > MAX_LINES {
                let name = name.chars().take(16).collect();
                return Err(OfferError::TooManyLines { name, max: MAX_LINES });
            }
        }
        Ok(())
    }
}

impl Description {
    /// Reads a description.
    pub(crate) fn read(sdp: &str) -> Result<Description, OfferError> {
        let (session, sections) = split(sdp)?;
        let bundle = session.all("group").find_map(|group| group.strip_prefix("BUNDLE"));
        let bundle = bundle.ok_or_else(|| bad("`a=group:BUNDLE` is missing"))?;
        let bundle: HashSet<&str> = bundle.split_ascii_whitespace().collect();
        if session.has("ice-lite") {
            return Err(bad("the server is ICE-lite, so the client cannot be"));
        }
        let mut payloads = Payloads::default();
        let read = |lines: &Lines<'_>| Section::read(lines, &bundle, &mut payloads);
        let transport = Transport::read(&session, &sections, &bundle)?;
        let sections = sections.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        if sections.is_empty() {
            return Err(bad("it has no m-line"));
        }
        if sections.iter().filter(|section| section.line.application).count() > 1 {
            return Err(bad("it has two `m=application`"));
        }
        let mut mids = HashSet::new();
        for Section { line, .. } in &sections {
            if line.mid.is_empty() {
                return Err(bad("a section has no `a=mid`"));
            }
            // The stack keeps only letters, digits and `_` of a mid, and would answer with another one.
            let fits = line.mid.len() <= MAX_MID && *Mid::from(line.mid.as_str()) == *line.mid;
            if !fits || !mids.insert(line.mid.as_str()) {
                return Err(OfferError::BadMid { mid: line.mid.chars().take(MAX_MID).collect() });
            }
        }
        Ok(Description { sections, transport })
    }
}

/// Splits the text into the session's attributes and the sections.
fn split(sdp: &str) -> Result<(Lines<'_>, Vec<Lines<'_>>), OfferError> {
    let mut lines = sdp.lines();
    if lines.next() != Some("v=0") {
        return Err(bad("it does not begin with `v=0`"));
    }
    let (mut session, mut sections) = (Lines::default(), Vec::<Lines<'_>>::new());
    for line in lines.filter(|line| !line.is_empty()) {
        if line.chars().any(|c| c.is_control() && c != '\t') {
            return Err(bad("a line has control characters"));
        }
        match line.split_once('=') {
            Some(("m", media)) => sections.push(Lines { media, attributes: Vec::new() }),
            Some(("a", attribute)) => {
                let attribute = attribute.trim_end();
                let parts = attribute.split_once(':').unwrap_or((attribute, ""));
                sections.last_mut().unwrap_or(&mut session).attributes.push(parts);
            }
            // Times, bandwidths and others are ignored.
            Some((kind, _)) if kind.len() == 1 => {}
            _ => return Err(bad("a line is not `letter=value`")),
        }
    }
    for lines in std::iter::once(&session).chain(&sections) {
        lines.bounded()?;
    }
    Ok((session, sections))
}

impl Transport {
    /// Session attributes hold for all sections; without one, the first section that has it counts. Those in the bundle
    /// come first: a section that was given up may have credentials of former times.
    fn read(
        session: &Lines<'_>,
        sections: &[Lines<'_>],
        bundle: &HashSet<&str>,
    ) -> Result<Transport, OfferError> {
        let is_bundled = |lines: &&Lines<'_>| lines.all("mid").any(|mid| bundle.contains(mid));
        let (bundled, others): (Vec<_>, Vec<_>) = sections.iter().partition(is_bundled);
        let levels = || [session].into_iter().chain(bundled.clone()).chain(others.clone());
        let ice = levels().find_map(|l| l.all("ice-ufrag").next().zip(l.all("ice-pwd").next()));
        let (ufrag, pwd) = ice.ok_or_else(|| bad("`a=ice-ufrag` or `a=ice-pwd` is missing"))?;
        let fits = |text: &str| {
            (1..=MAX_ICE).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
        };
        if !fits(ufrag) || !fits(pwd) {
            return Err(bad("`a=ice-ufrag` or `a=ice-pwd` is malformed"));
        }
        let fingerprint = levels().find_map(|lines| {
            // The stack can compare these hashes only; the better one first.
            ["sha-256", "sha-1"].into_iter().find_map(|wanted| {
                let all = lines.all("fingerprint").filter_map(|f| f.split_once(' '));
                let mut fit = all.filter(|(_, digest)| is_digest(digest));
                let (_, digest) = fit.find(|(hash, _)| hash.eq_ignore_ascii_case(wanted))?;
                Some(Fingerprint { hash: wanted.to_owned(), digest: digest.to_owned() })
            })
        });
        let fingerprint =
            fingerprint.ok_or_else(|| bad("`a=fingerprint` of SHA-256 is missing"))?;
        let setup = levels().find_map(|lines| {
            ["actpass", "active", "passive"]
                .into_iter()
                .find(|s| lines.all("setup").any(|v| v == *s))
        });
        let ice = IceCredentials { ufrag: ufrag.to_owned(), pwd: pwd.to_owned() };
        Ok(Transport { ice, fingerprint, setup })
    }
}

fn is_digest(digest: &str) -> bool {
    digest.len() <= MAX_FINGERPRINT
        && digest
            .split(':')
            .all(|byte| byte.len() == 2 && byte.bytes().all(|b| b.is_ascii_hexdigit()))
}

impl Section {
    fn read(
        lines: &Lines<'_>,
        bundle: &HashSet<&str>,
        payloads: &mut Payloads,
    ) -> Result<Section, OfferError> {
        let mut words = lines.media.split_ascii_whitespace();
        let mut word = || words.next().unwrap_or_default();
        let (media, port, proto) = (word(), word(), word());
        let kind = match media {
            "audio" => Some(TrackKind::Audio),
            "video" => Some(TrackKind::Video),
            "application" => None,
            _ => return Err(bad("an m-line is neither audio, video nor application")),
        };
        let mut mids = lines.all("mid");
        let mid = mids.next().unwrap_or_default().to_owned();
        if mids.next().is_some() {
            return Err(bad("a section has two `a=mid`"));
        }
        // Port 0 also means a bundled section without its own port (RFC 8843 §7.2.1), as Firefox and GStreamer write
        // it.
        let bundled = bundle.contains(mid.as_str());
        let rejected = port == "0" && !bundled && !lines.has("bundle-only");
        let mut section = Section { rejected, ..Section::default() };
        section.line = MediaLine { mid, kind, application: kind.is_none(), ..MediaLine::default() };
        if rejected && kind.is_some() {
            return Ok(section);
        }
        if !bundled {
            return Err(bad("a section is not in `a=group:BUNDLE`"));
        }
        let Some(kind) = kind else {
            if !["UDP/DTLS/SCTP", "DTLS/SCTP"].contains(&proto) {
                return Err(bad("an m-line has another transport than UDP/DTLS/SCTP"));
            }
            (section.line.sends, section.line.receives) = (true, true);
            let size = lines.all("max-message-size").find_map(|size| size.parse::<u64>().ok());
            section.message_bytes = size.map(|size| u32::try_from(size).unwrap_or(u32::MAX));
            return Ok(section);
        };
        if proto != "UDP/TLS/RTP/SAVPF" {
            return Err(bad("an m-line has another transport than UDP/TLS/RTP/SAVPF"));
        }
        (section.line.sends, section.line.receives) = directions(lines)?;
        let listed = Payload::read(words, lines.all("rtpmap"), lines.all("fmtp"))?;
        section.chosen =
            payloads.choose(kind, section.line.receives, &listed, &lines.all("rtcp-fb"))?;
        section.line.codec = !section.chosen.is_empty();
        section.extensions = extensions(lines);
        if section.line.sends {
            (section.layers, section.simulcast) = layers(lines);
            section.ssrcs = ssrcs(lines);
        }
        Ok(section)
    }
}

/// Whether the client sends and receives; by default both.
fn directions(lines: &Lines<'_>) -> Result<(bool, bool), OfferError> {
    let all = ["sendrecv", "sendonly", "recvonly", "inactive"];
    let mut listed = lines.attributes.iter().filter(|(name, _)| all.contains(name));
    let direction = listed.next().map_or("sendrecv", |(name, _)| *name);
    if listed.next().is_some() {
        return Err(bad("a section has two directions"));
    }
    Ok((direction.starts_with("send"), ["sendrecv", "recvonly"].contains(&direction)))
}

fn extensions(lines: &Lines<'_>) -> Vec<(u8, String)> {
    let mut kept: Vec<(u8, String)> = Vec::new();
    for (id, rest) in lines.all("extmap").filter_map(|value| value.split_once(' ')) {
        let id = id.split('/').next().and_then(|id| id.parse().ok()).unwrap_or(0);
        let uri = rest.split(' ').next().unwrap_or_default();
        let fits = (1..=MAX_EXTENSION).contains(&id)
            && (1..=MAX_URI).contains(&uri.len())
            && uri.bytes().all(|b| b.is_ascii_graphic());
        if fits && !kept.iter().any(|(i, u)| *i == id || u == uri) {
            kept.push((id, uri.to_owned()));
        }
    }
    kept
}

/// The rids that the client sends, and whether `a=simulcast` lists them.
fn layers(lines: &Lines<'_>) -> (Vec<OfferedLayer>, bool) {
    let fits = |rid: &&str| {
        (1..=MAX_RID).contains(&rid.len()) && rid.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    let mut rids: Vec<&str> = lines
        .all("rid")
        .filter_map(|value| {
            let mut words = value.split(' ');
            words.next().filter(|_| words.next() == Some("send")).filter(fits)
        })
        .collect();
    // In the order of `a=simulcast`; of alternatives the first.
    let simulcast = lines.all("simulcast").find_map(|value| {
        let mut words = value.split_ascii_whitespace();
        words.find(|word| *word == "send").and_then(|_| words.next())
    });
    let mut kept: Vec<OfferedLayer> = Vec::new();
    let named = simulcast.into_iter().flat_map(|list| list.split(';'));
    for name in named.filter_map(|alternatives| alternatives.split(',').next()) {
        let rid = name.trim_start_matches('~');
        if let Some(at) = rids.iter().position(|r| *r == rid) {
            rids.remove(at);
            kept.push(OfferedLayer { rid: rid.to_owned(), paused: rid != name });
        }
    }
    if simulcast.is_none() {
        kept.extend(
            rids.into_iter().map(|rid| OfferedLayer { rid: rid.to_owned(), paused: false }),
        );
    }
    kept.truncate(MAX_LAYERS);
    let are_simulcast = simulcast.is_some() && !kept.is_empty();
    (kept, are_simulcast)
}

/// The first SSRC, and the SSRC of its retransmissions.
fn ssrcs(lines: &Lines<'_>) -> Option<OfferedSsrcs> {
    let number = |text: &str| text.parse().ok().filter(|ssrc| *ssrc != 0);
    let pairs: Vec<(u32, u32)> = lines
        .all("ssrc-group")
        .filter_map(|group| {
            let mut words = group.split_ascii_whitespace();
            words.next().filter(|semantics| semantics.eq_ignore_ascii_case("FID"))?;
            number(words.next()?).zip(number(words.next()?))
        })
        .collect();
    let mut ssrcs = lines.all("ssrc").filter_map(|value| number(value.split(' ').next()?));
    let media = ssrcs.find(|ssrc| !pairs.iter().any(|(_, repair)| repair == ssrc))?;
    let repair = pairs.iter().find(|(ssrc, _)| *ssrc == media).map(|(_, repair)| *repair);
    Some(OfferedSsrcs { media, repair })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::tests::offers::{CHROMIUM, sdp};

    fn read_lines(sdp: &str) -> Vec<(String, Option<TrackKind>, bool, bool, bool)> {
        let lines = media_lines(sdp).unwrap_or_else(|error| panic!("{error}: {sdp}"));
        lines.into_iter().map(|l| (l.mid, l.kind, l.sends, l.receives, l.codec)).collect()
    }

    #[test]
    fn kinds_directions_and_codecs_are_found() {
        let both = "recvonly|rtpmap:98 VP9/90000|fmtp:98 profile-id=0|rtpmap:100 VP9/90000|fmtp:100 x=y; profile-id=2";
        let text = sdp(&[
            ("audio 9 UDP/TLS/RTP/SAVPF 111", "sendonly|rtpmap:111 opus/48000/2"),
            ("video 9 UDP/TLS/RTP/SAVPF 98 100", both),
            ("video 9 UDP/TLS/RTP/SAVPF 100", &both.replace("recvonly", "inactive")),
            ("video 9 UDP/TLS/RTP/SAVPF 98", "rtpmap:98 vp9/90000"),
            ("application 9 UDP/DTLS/SCTP webrtc-datachannel", ""),
        ]);
        let (audio, video) = (Some(TrackKind::Audio), Some(TrackKind::Video));
        let wanted = [
            ("0", audio, true, false, true),
            ("1", video, false, true, true),
            ("2", video, false, false, false),
            ("3", video, true, true, true),
            ("4", None, true, true, false),
        ];
        assert_eq!(read_lines(&text), wanted.map(|(mid, k, s, r, c)| (mid.to_owned(), k, s, r, c)));
        assert!(media_lines(&text).is_ok_and(|lines| lines[4].application));
    }

    #[test]
    fn a_line_without_a_port_is_rejected_unless_it_is_bundled() {
        let section = |port: u8, direction: &str| {
            (
                format!("audio {port} UDP/TLS/RTP/SAVPF 111"),
                format!("{direction}rtpmap:111 opus/48000/2"),
            )
        };
        let sections =
            [section(9, ""), section(0, "sendonly|bundle-only|"), section(0, "sendonly|")];
        let sections: Vec<_> = sections.iter().map(|(media, rest)| (&**media, &**rest)).collect();
        let text = sdp(&sections);
        let directions = |text: &str| -> Vec<_> {
            read_lines(text)
                .into_iter()
                .map(|(_, _, sends, receives, _)| (sends, receives))
                .collect()
        };
        let alone = text.replace("BUNDLE 0 1 2", "BUNDLE 0 1");
        assert_eq!(directions(&alone), [(true, true), (true, false), (false, false)]);
        // Whatever is in the group shares its port.
        assert_eq!(directions(&text), [(true, true), (true, false), (true, false)]);
    }

    #[test]
    fn credentials_are_those_of_sections_that_are_not_given_up() {
        let of = |ufrag: &str| {
            format!("recvonly|rtpmap:98 VP9/90000|ice-ufrag:{ufrag}|ice-pwd:0123456789abcdef012345")
        };
        let (former, present) = (of("former"), of("present"));
        let all = sdp(&[
            ("video 0 UDP/TLS/RTP/SAVPF 98", former.as_str()),
            ("video 9 UDP/TLS/RTP/SAVPF 98", present.as_str()),
        ]);
        let text = all.replace("a=ice-ufrag:Cg2p\r\na=ice-pwd:TnhstHAeGeo1bz1zOzjaeQf+\r\n", "");
        let ufrag = |text: &str| Description::read(text).expect("an offer").transport.ice.ufrag;
        assert_eq!(ufrag(&text.replace("BUNDLE 0 1", "BUNDLE 1")), "present");
        assert_eq!(ufrag(&text), "former", "whatever is in the group is not given up");
    }

    #[test]
    fn a_long_list_of_payload_types_is_read_in_no_time() {
        let types = (0..60_000)
            .map(|pt| format!("a=rtpmap:{pt} VP9/90000\r\na=fmtp:{pt} profile-id=2\r\n"));
        let text = sdp(&[("video 9 UDP/TLS/RTP/SAVPF 98", "")]);
        let text: String = std::iter::once(text).chain(types).collect();
        let begun = std::time::Instant::now();
        assert!(media_lines(&text).is_err());
        assert!(begun.elapsed().as_secs() < 3, "{:?}", begun.elapsed());
    }

    #[test]
    fn what_the_stack_is_told_does_not_grow_with_what_the_client_lists() {
        let description = Description::read(CHROMIUM).expect("sound");
        let bytes = description.to_stack_offer().len();
        assert!(bytes < 1000 * (1 + description.sections.len()), "{bytes}");
        assert_eq!(
            Description::read(&description.to_stack_offer()).expect("sound").to_stack_offer(),
            description.to_stack_offer()
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            let _ = media_lines(&text);
        }

        #[test]
        fn any_mutilated_offer_is_read(from in 0..CHROMIUM.len(), to in 0..CHROMIUM.len()) {
            if let Some(part) = CHROMIUM.get(from.min(to)..from.max(to)) {
                let _ = media_lines(&format!("v=0\r\n{part}"));
            }
        }
    }
}
