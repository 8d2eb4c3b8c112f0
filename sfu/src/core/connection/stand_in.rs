//! Stands in for the connectivity checks of clients that send none.
//!
//! The stack gives up a client of which no check has come for 15 s: its consent to receive has ended (RFC 7675). Some
//! clients, as GStreamer's, keep their path open by indications instead, which nobody can authenticate. But their
//! media and reports are authenticated, and come from the holder of the session's keys. So in a session of WHIP or
//! WHEP such a packet counts as a check: the stack is given one that the client could have sent from the same
//! address. Its reply goes there too, and is ignored as one that nobody waits for. A report that somebody sends again
//! counts, as a check that somebody sends again does.

use std::time::{Duration, Instant};

use str0m::crypto::from_feature_flags;
use str0m::ice::{IceCreds, StunMessage, TransId};

/// Minimum time between two such checks. A player's reports come every five seconds, and some are lost.
const INTERVAL: Duration = Duration::from_secs(1);
/// Priority that the checks name. They nominate no pair, so nothing is made of it.
const PRIORITY: u32 = 1;
/// Buffer size of a check in bytes. The stack writes user names of up to 128 bytes: nothing stands in for a client
/// whose fragment is longer than 111.
const MAX_CHECK: usize = 1024;

/// When the checks of one client were last stood in for.
#[derive(Debug, Default)]
pub(crate) struct StandIn {
    /// The client's ICE user name fragment.
    pub client: String,
    last: Option<Instant>,
}

impl StandIn {
    /// Whether a check is due; from then on it counts as done.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let due = self.last.is_none_or(|last| now.saturating_duration_since(last) >= INTERVAL);
        if due {
            self.last = Some(now);
        }
        due
    }
}

/// A check of the client with this user name fragment, to the server with these credentials.
pub(crate) fn check(client: &str, server: &IceCreds) -> Option<Vec<u8>> {
    let name = format!("{}:{client}", server.ufrag);
    let message = StunMessage::binding_request(&name, TransId::new(), true, 0, PRIORITY, false);
    written(&message, &server.pass)
}

/// A STUN message as bytes, with its integrity by this password.
pub(crate) fn written(message: &StunMessage<'_>, password: &str) -> Option<Vec<u8>> {
    let hmac = from_feature_flags().sha1_hmac_provider;
    let sha1_hmac = |key: &[u8], parts: &[&[u8]]| hmac.sha1_hmac(key, parts);
    let mut buf = vec![0; MAX_CHECK];
    let length = (*message).to_bytes(Some(password.as_bytes()), &mut buf, sha1_hmac).ok()?;
    buf.truncate(length);
    Some(buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_due_every_second() {
        let begin = Instant::now();
        let mut stand_in = StandIn::default();
        let due: Vec<u64> = (0..2500)
            .step_by(250)
            .filter(|&ms| stand_in.is_due(begin + Duration::from_millis(ms)))
            .collect();
        assert_eq!(due, [0, 1000, 2000]);
    }

    #[test]
    fn a_check_is_as_the_client_would_send_it() {
        let server = IceCreds { ufrag: "srv".into(), pass: "password-of-the-server".into() };
        let check = check(&"c".repeat(100), &server).expect("check");
        let message = StunMessage::parse(&check).expect("parsed");
        assert!(message.is_binding_request());
        assert_eq!(message.split_username(), Some(("srv", &*"c".repeat(100))));
        let hmac = from_feature_flags().sha1_hmac_provider;
        assert!(message.verify(server.pass.as_bytes(), |key, parts| hmac.sha1_hmac(key, parts)));
    }
}
