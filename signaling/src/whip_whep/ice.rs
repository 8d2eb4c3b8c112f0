//! Restarts of ICE by `PATCH` (RFC 9725 §4.3.3): credentials are exchanged as fragments of session descriptions.
//!
//! The SFU takes whole offers only. So a restart repeats the session's offer with the client's new credentials, and
//! returns the new part of the answer. Candidates in a fragment are ignored: the server is ICE-lite and learns a
//! client's address from its connectivity checks.

/// Valid lengths of an ICE user name fragment, in characters (RFC 8839 §5.4).
const UFRAG: std::ops::RangeInclusive<usize> = 4..=256;
/// Valid lengths of an ICE password, in characters (RFC 8839 §5.4).
const PASSWORD: std::ops::RangeInclusive<usize> = 22..=256;

/// Beginning of the line with the user name fragment (RFC 8839 §5.4).
const UFRAG_LINE: &str = "a=ice-ufrag:";
/// Beginning of the line with the password (RFC 8839 §5.4).
const PASSWORD_LINE: &str = "a=ice-pwd:";

/// ICE credentials.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Credentials<'a> {
    ufrag: &'a str,
    password: &'a str,
}

impl<'a> Credentials<'a> {
    /// The first credentials in a fragment; `None`: it has no valid ones.
    pub(super) fn of(fragment: &'a str) -> Option<Self> {
        let first = |prefix| fragment.lines().find_map(|line| line.trim_end().strip_prefix(prefix));
        let (ufrag, password) = (first(UFRAG_LINE)?, first(PASSWORD_LINE)?);
        let is_text = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
        };
        let fit = UFRAG.contains(&ufrag.len()) && PASSWORD.contains(&password.len());
        (fit && is_text(ufrag) && is_text(password)).then_some(Credentials { ufrag, password })
    }

    /// The offer with these credentials instead of its own, and without candidates.
    pub(super) fn put_into(&self, offer: &str) -> String {
        let mut text = String::with_capacity(offer.len() + 64);
        for line in offer.lines().map(str::trim_end) {
            if line.starts_with("a=candidate:") || line == "a=end-of-candidates" {
                continue;
            }
            if line.starts_with(UFRAG_LINE) {
                text.push_str(UFRAG_LINE);
                text.push_str(self.ufrag);
            } else if line.starts_with(PASSWORD_LINE) {
                text.push_str(PASSWORD_LINE);
                text.push_str(self.password);
            } else {
                text.push_str(line);
            }
            text.push_str("\r\n");
        }
        text
    }
}

/// The lines about ICE of an answer's first section, which stands for the whole bundle.
pub(super) fn fragment(answer: &str) -> String {
    let kept = |line: &&str| {
        [
            "a=ice-lite",
            "a=ice-options:",
            "a=group:BUNDLE",
            "m=",
            "a=mid:",
            UFRAG_LINE,
            PASSWORD_LINE,
            "a=candidate:",
            "a=end-of-candidates",
        ]
        .iter()
        .any(|prefix| line.starts_with(prefix))
    };
    let mut sections = 0;
    let first = answer.lines().map(str::trim_end).take_while(|line| {
        sections += usize::from(line.starts_with("m="));
        sections < 2
    });
    first.filter(kept).flat_map(|line| [line, "\r\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWORD: &str = "0123456789abcdefghij+/";

    #[test]
    fn credentials_are_read_from_a_fragment_and_nothing_else_is() {
        let fragment = format!("a=ice-ufrag:EsAw\r\na=ice-pwd:{PASSWORD}\r\nm=audio 9 X 0\r\n");
        let found = Credentials { ufrag: "EsAw", password: PASSWORD };
        assert_eq!(Credentials::of(&fragment), Some(found));
        for wrong in [
            String::new(),
            "a=ice-ufrag:EsAw\r\n".to_owned(),
            format!("a=ice-ufrag:Es\r\na=ice-pwd:{PASSWORD}\r\n"),
            format!("a=ice-ufrag:Es w\r\na=ice-pwd:{PASSWORD}\r\n"),
            "a=ice-ufrag:EsAw\r\na=ice-pwd:short\r\n".to_owned(),
        ] {
            assert_eq!(Credentials::of(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_offer_is_made_again_with_other_credentials() {
        let offer = "v=0\r\nm=audio 9 X 0\r\na=ice-ufrag:old0\r\na=ice-pwd:oldoldoldoldoldoldoldo\r\n\
            a=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\na=end-of-candidates\r\na=mid:0\r\n";
        let again = Credentials { ufrag: "EsAw", password: PASSWORD }.put_into(offer);
        let wanted = format!(
            "v=0\r\nm=audio 9 X 0\r\na=ice-ufrag:EsAw\r\na=ice-pwd:{PASSWORD}\r\na=mid:0\r\n"
        );
        assert_eq!(again, wanted);
    }

    #[test]
    fn the_answers_first_section_says_how_to_reach_the_server() {
        let answer = "v=0\r\ns=-\r\na=group:BUNDLE 0 1\r\na=ice-lite\r\nm=audio 9 X 111\r\nc=IN IP4 0.0.0.0\r\n\
            a=mid:0\r\na=ice-ufrag:abcd\r\na=ice-pwd:efgh\r\na=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n\
            a=rtcp-mux\r\nm=video 9 X 96\r\na=mid:1\r\na=ice-ufrag:abcd\r\n";
        let wanted = "a=group:BUNDLE 0 1\r\na=ice-lite\r\nm=audio 9 X 111\r\na=mid:0\r\na=ice-ufrag:abcd\r\n\
            a=ice-pwd:efgh\r\na=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n";
        assert_eq!(fragment(answer), wanted);
    }
}
