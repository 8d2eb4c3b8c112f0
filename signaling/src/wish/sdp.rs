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
                let mid = String::new();
                sections.push(Section { mid, kind, sends: true, receives: true });
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
        assert_eq!(sections("m=video\u{0}\n\na=mid:\n"), []);
    }
}
