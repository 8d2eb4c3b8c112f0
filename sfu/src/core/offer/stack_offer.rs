//! Writes the offer that the WebRTC stack reads, from the parsed [`Description`]: the stack never reads the client's
//! text.
//!
//! The stack's work grows faster than in proportion to sections and payload types. Here a section has at most two
//! payload types of each codec that is forwarded, whatever the client lists (decision 020).

use std::fmt::Write as _;

use windlass_types::VideoCodec;

use super::payload_types::Chosen;
use super::sdp::{Description, Fingerprint, IceCredentials, OfferedLayer, OfferedSsrcs, Section};
use crate::api::TrackKind;
use crate::core::codec::dependency_descriptor;

/// The `a=rtpmap` of a section without a common codec: a codec that the stack does not know, so that it answers with
/// port 0.
const UNKNOWN_CODEC: &str = "35 nothing/90000";

impl Description {
    /// The offer for the stack.
    pub(crate) fn to_stack_offer(&self) -> String {
        let mut text = String::with_capacity(1024 * (1 + self.sections.len()));
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, to: &mut String) -> std::fmt::Result {
        let transport = &self.transport;
        write!(to, "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=group:BUNDLE")?;
        for section in self.sections.iter().filter(|section| !section.rejected) {
            write!(to, " {}", section.line.mid)?;
        }
        let IceCredentials { ufrag, pwd } = &transport.ice;
        let Fingerprint { hash, digest } = &transport.fingerprint;
        write!(
            to,
            "\r\na=ice-ufrag:{ufrag}\r\na=ice-pwd:{pwd}\r\na=fingerprint:{hash} {digest}\r\n"
        )?;
        if let Some(setup) = transport.setup {
            write!(to, "a=setup:{setup}\r\n")?;
        }
        self.sections.iter().try_for_each(|section| section.write(to))
    }
}

impl Section {
    fn write(&self, to: &mut String) -> std::fmt::Result {
        let mid = &self.line.mid;
        let Some(kind) = self.line.kind else {
            write!(to, "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:{mid}\r\n")?;
            write!(to, "a=sctp-port:5000\r\n")?;
            return match self.message_bytes {
                Some(bytes) => write!(to, "a=max-message-size:{bytes}\r\n"),
                None => Ok(()),
            };
        };
        let (port, direction) = match (self.rejected, self.line.sends, self.line.receives) {
            (true, ..) => (0, "inactive"),
            (_, true, true) => (9, "sendrecv"),
            (_, true, false) => (9, "sendonly"),
            (_, false, true) => (9, "recvonly"),
            (_, false, false) => (9, "inactive"),
        };
        let media = if kind == TrackKind::Audio { "audio" } else { "video" };
        write!(to, "m={media} {port} UDP/TLS/RTP/SAVPF")?;
        for chosen in &self.chosen {
            write!(to, " {}", chosen.pt)?;
            if let Some(second) = chosen.second {
                write!(to, " {second}")?;
            }
        }
        if self.chosen.is_empty() {
            write!(to, " 35")?;
        }
        write!(to, "\r\na=mid:{mid}\r\na={direction}\r\n")?;
        self.write_payloads(to)?;
        // A publisher's descriptor is read for AV1 alone. Without it, Chromium's VP8 payloads say their temporal layer.
        // So one that prefers AV1 and sends VP8 has no temporal layers here.
        let is_av1 = self.chosen.first().is_some_and(|first| first.codec == Some(VideoCodec::Av1));
        let unread = self.line.sends && !self.line.receives && !is_av1;
        for (id, uri) in &self.extensions {
            if unread && uri == dependency_descriptor::URI {
                continue;
            }
            write!(to, "a=extmap:{id} {uri}\r\n")?;
        }
        for OfferedLayer { rid, .. } in &self.layers {
            write!(to, "a=rid:{rid} send\r\n")?;
        }
        if self.simulcast {
            let named = self.layers.iter().map(|OfferedLayer { rid, paused }| {
                let mark = if *paused { "~" } else { "" };
                format!("{mark}{rid}")
            });
            write!(to, "a=simulcast:send {}\r\n", named.collect::<Vec<_>>().join(";"))?;
        }
        if let Some(OfferedSsrcs { media, repair }) = self.ssrcs {
            write!(to, "a=ssrc:{media} cname:-\r\n")?;
            if let Some(repair) = repair {
                write!(to, "a=ssrc:{repair} cname:-\r\na=ssrc-group:FID {media} {repair}\r\n")?;
            }
        }
        Ok(())
    }

    fn write_payloads(&self, to: &mut String) -> std::fmt::Result {
        if self.chosen.is_empty() {
            return write!(to, "a=rtpmap:{UNKNOWN_CODEC}\r\n");
        }
        self.chosen.iter().try_for_each(|chosen| chosen.write(to))
    }
}

impl Chosen {
    fn write(&self, to: &mut String) -> std::fmt::Result {
        let pt = self.pt;
        match self.codec {
            Some(codec) => write!(to, "a=rtpmap:{pt} {}/90000\r\n", codec.name())?,
            None => write!(to, "a=rtpmap:{pt} opus/48000/2\r\n")?,
        }
        for what in &self.feedback {
            write!(to, "a=rtcp-fb:{pt} {what}\r\n")?;
        }
        if !self.parameters.is_empty() {
            write!(to, "a=fmtp:{pt} {}\r\n", self.parameters)?;
        }
        match self.second {
            Some(second) if self.codec.is_some() => {
                write!(to, "a=rtpmap:{second} rtx/90000\r\na=fmtp:{second} apt={pt}\r\n")
            }
            Some(second) => {
                write!(to, "a=rtpmap:{second} red/48000/2\r\na=fmtp:{second} {pt}/{pt}\r\n")
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::core::codec::dependency_descriptor;
    use crate::core::offer::sdp::Description;
    use crate::core::tests::offers::sdp;

    #[test]
    fn a_frames_descriptor_is_for_those_who_receive_and_read_of_av1_alone() {
        let section = |direction: &str, codec: &str| {
            let lines = format!(
                "{direction}|rtpmap:98 {codec}/90000|extmap:12 {}",
                dependency_descriptor::URI
            );
            let text = sdp(&[("video 9 UDP/TLS/RTP/SAVPF 98", &lines)]);
            Description::read(&text).expect("an offer").to_stack_offer()
        };
        assert!(!section("sendonly", "VP9").contains(dependency_descriptor::URI));
        assert!(section("recvonly", "VP9").contains(dependency_descriptor::URI));
        assert!(section("sendrecv", "VP9").contains(dependency_descriptor::URI));
        assert!(section("sendonly", "AV1").contains(dependency_descriptor::URI));
    }
}
