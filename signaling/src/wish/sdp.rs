//! The sections of an offer: all that must be known of it before the SFU reads it.

use windlass_sfu::Kind;

/// A section that carries audio or video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    /// Its `a=mid`.
    pub mid: String,
    /// What it carries.
    pub kind: Kind,
    /// Whether the client sends there.
    pub sends: bool,
    /// Whether it receives there.
    pub receives: bool,
}

/// The sections of audio and video that have an identification, in their order. Anything else is passed over: the SFU
/// refuses what is no session description.
pub(super) fn sections(sdp: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    // Whether the lines now belong to the last of them.
    let mut inside = false;
    for line in sdp.lines().map(str::trim_end) {
        if let Some(media) = line.strip_prefix("m=") {
            let kind = match media.split(' ').next() {
                Some("audio") => Some(Kind::Audio),
                Some("video") => Some(Kind::Video),
                _ => None,
            };
            inside = kind.is_some();
            if let Some(kind) = kind {
                let (mid, open) = (String::new(), media.split(' ').nth(1) != Some("0"));
                sections.push(Section { mid, kind, sends: open, receives: open });
            }
            continue;
        }
        let Some(section) = sections.last_mut().filter(|_| inside) else { continue };
        match line {
            "a=sendonly" => section.receives = false,
            "a=recvonly" => section.sends = false,
            "a=inactive" => (section.sends, section.receives) = (false, false),
            _ => {
                if let Some(mid) = line.strip_prefix("a=mid:") {
                    mid.clone_into(&mut section.mid);
                }
            }
        }
    }
    sections.retain(|section| !section.mid.is_empty());
    sections
}

/// The offer with a port in every section that is bundled with another: those have none of their own (RFC 8843 §7.2.1, as
/// GStreamer writes it), which would say that they are rejected if it were not for `a=bundle-only`.
pub(super) fn with_ports(sdp: &str) -> String {
    let mut text = String::with_capacity(sdp.len() + 16);
    for (at, section) in sdp.split("\nm=").enumerate() {
        if at > 0 {
            text.push_str("\nm=");
        }
        let bundled = section.lines().any(|line| line.trim_end() == "a=bundle-only");
        match section
            .split_once(" 0 ")
            .filter(|(kind, _)| at > 0 && bundled && !kind.contains('\n'))
        {
            Some((kind, rest)) => {
                text.push_str(kind);
                text.push_str(" 9 ");
                text.push_str(rest);
            }
            None => text.push_str(section),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_kind_mid_and_direction() {
        let sdp = "v=0\r\na=recvonly\r\nm=audio 9 X 111\r\na=mid:0\r\na=sendonly\r\n\
            m=application 9 X\r\na=mid:1\r\nm=video 9 X 98\r\na=mid:v\r\na=recvonly\r\nm=video 9 X\r\n";
        let section = |mid: &str, kind, sends, receives| Section {
            mid: mid.to_owned(),
            kind,
            sends,
            receives,
        };
        assert_eq!(
            sections(sdp),
            [section("0", Kind::Audio, true, false), section("v", Kind::Video, false, true)]
        );
        assert!(!sections("m=video 0 X 1\r\na=mid:0\r\n")[0].sends);
        assert_eq!(sections("m=video\u{0}\n\na=mid:\n"), []);
    }
    #[test]
    fn bundled_sections_get_a_port_and_rejected_ones_do_not() {
        let sdp = "v=0\r\nm=video 9 X 96\r\na=mid:v\r\nm=audio 0 X 100\r\na=bundle-only\r\na=mid:a\r\n\
            m=audio 0 X 100\r\na=mid:b\r\n";
        let expected = sdp.replacen("m=audio 0", "m=audio 9", 1);
        assert_eq!(with_ports(sdp), expected);
        assert_eq!(with_ports(&expected), expected);
        let open: Vec<bool> = sections(&with_ports(sdp)).iter().map(|s| s.sends).collect();
        assert_eq!(open, [true, true, false]);
    }
}
