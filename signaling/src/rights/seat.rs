//! Seat tokens: proof that a participant was in a room, with which it may enter again while the room is locked.
//!
//! `p7.1700000000.MAC`: participant, time of issue, and an HMAC-SHA256 of both with room and identity. Servers with
//! the same key accept each other's.

use std::fmt;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use windlass_sfu::ParticipantId;

/// Validity of a seat token, in seconds.
pub(crate) const SEAT_VALID_S: u64 = 24 * 3_600;

/// The key of seat tokens. Its `Debug` form hides it.
#[derive(Clone)]
pub struct SeatKey(hmac::Key);

impl SeatKey {
    /// A random key.
    pub fn random() -> SeatKey {
        SeatKey::of(&rand::random::<[u8; 32]>())
    }

    /// The key of all servers with the same secret.
    pub fn of(secret: &[u8]) -> SeatKey {
        let main = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let own = hmac::sign(&main, b"windlass seats 1");
        SeatKey(hmac::Key::new(hmac::HMAC_SHA256, own.as_ref()))
    }

    /// Issues a seat token at `now` (seconds since 1970).
    pub(crate) fn issue(
        &self,
        room: &str,
        id: ParticipantId,
        identity: Option<&str>,
        now: u64,
    ) -> String {
        let mac = hmac::sign(&self.0, &mac_input(room, &id.to_string(), identity, now));
        format!("{id}.{now}.{}", BASE64.encode(&mac.as_ref()[..24]))
    }

    /// The participant of a seat token, if the token is valid at `now` for this room and identity.
    pub(crate) fn check(
        &self,
        seat: &str,
        room: &str,
        identity: Option<&str>,
        now: u64,
    ) -> Option<ParticipantId> {
        let mut parts = seat.split('.');
        let (id, given, mac) = (parts.next()?, parts.next()?, parts.next()?);
        let given: u64 = given.parse().ok()?;
        let mac = BASE64.decode(mac).ok()?;
        let right = hmac::sign(&self.0, &mac_input(room, id, identity, given));
        let same = aws_lc_rs::constant_time::verify_slices_are_equal(&right.as_ref()[..24], &mac);
        let fresh = now < given.saturating_add(SEAT_VALID_S);
        (same.is_ok() && parts.next().is_none() && fresh).then(|| id.parse().ok())?
    }
}

impl fmt::Debug for SeatKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeatKey(…)")
    }
}

impl Default for SeatKey {
    fn default() -> Self {
        SeatKey::random()
    }
}

fn mac_input(room: &str, id: &str, identity: Option<&str>, given: u64) -> Vec<u8> {
    serde_json::to_vec(&(room, id, identity, given)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANA: ParticipantId = ParticipantId(7);

    #[test]
    fn a_seat_is_good_for_its_room_and_identity_for_a_day() {
        let key = SeatKey::of(b"secret");
        let seat = key.issue("tea", ANA, Some("ana"), 1_000);
        let whose = |room, identity, now| key.check(&seat, room, identity, now);
        assert_eq!(whose("tea", Some("ana"), 1_000 + SEAT_VALID_S - 1), Some(ANA));
        assert_eq!(whose("tea", Some("ana"), 1_000 + SEAT_VALID_S), None);
        assert_eq!(whose("coffee", Some("ana"), 1_000), None);
        assert_eq!(whose("tea", Some("bo"), 1_000), None);
        assert_eq!(whose("tea", None, 1_000), None);
        assert_eq!(SeatKey::of(b"secret").check(&seat, "tea", Some("ana"), 1_000), Some(ANA));
    }

    #[test]
    fn nobody_makes_a_seat_without_the_key() {
        let key = SeatKey::random();
        let seat = key.issue("tea", ANA, None, 1_000);
        let other = SeatKey::random();
        assert_eq!(other.check(&seat, "tea", None, 1_000), None);
        let forged = seat.replacen("p7", "p8", 1);
        for bad in ["", "p7", "p7.1000", "p7.1000.", "p7.x.y", &forged, &format!("{seat}.x")] {
            assert_eq!(key.check(bad, "tea", None, 1_000), None, "{bad}");
        }
    }
}
