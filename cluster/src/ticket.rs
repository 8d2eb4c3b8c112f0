//! Tickets of participants that move to another server: proof of which participant they were on the former one.
//!
//! The former server seals the participant's id, for its room, name and identity. A ticket is valid for a minute.
//!
//! Pure. Source: decision 025.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use thiserror::Error;

use crate::sealed::{BusTime, Scope, SealError, SealKey, TOLERANCE};

/// Validity of a ticket: clients move at once, and may retry.
const VALIDITY: Duration = Duration::from_secs(60);
/// Longest ticket that is read, in characters.
const MAX_CHARS: usize = 256;
/// [`Scope::bucket`] of tickets: no bucket has this name.
const PURPOSE: &str = "windlass move";

/// A participant that moves. All fields must be equal on both servers.
#[derive(Debug, Clone, Copy)]
pub struct Mover<'a> {
    /// The room.
    pub room: &'a str,
    /// The display name.
    pub name: &'a str,
    /// The identity in the access token.
    pub identity: Option<&'a str>,
}

impl Mover<'_> {
    /// [`Scope::key`] of the ticket. Lengths are included, so that no part can be taken for another.
    fn scope_key(&self) -> String {
        let identity = self.identity.map_or(String::from("-"), |identity| format!("+{identity}"));
        format!("{} {} {}{}{identity}", self.room.len(), self.name.len(), self.room, self.name)
    }
}

/// Why a ticket is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadTicket {
    /// The text is no ticket.
    #[error("the ticket is malformed: send it as the former server gave it")]
    Malformed,
    /// The ticket is of another cluster, or for another room, name or identity.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The ticket has expired.
    #[error("the ticket has expired: join without it")]
    Expired,
}

/// Makes a ticket for the participant with that id.
pub fn issue(key: &SealKey, mover: Mover<'_>, participant: &str, now: BusTime) -> String {
    BASE64.encode(key.seal(
        Scope { bucket: PURPOSE, key: &mover.scope_key() },
        now,
        participant.as_bytes(),
    ))
}

/// The id of the participant that the ticket was made for.
///
/// # Errors
///
/// The ticket is malformed, expired, or made for another participant or by another cluster.
pub fn check(
    key: &SealKey,
    mover: Mover<'_>,
    ticket: &str,
    now: BusTime,
) -> Result<String, BadTicket> {
    if ticket.len() > MAX_CHARS {
        return Err(BadTicket::Malformed);
    }
    let sealed = BASE64.decode(ticket).map_err(|_| BadTicket::Malformed)?;
    let (at, participant) =
        key.open(Scope { bucket: PURPOSE, key: &mover.scope_key() }, &sealed)?;
    let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let valid = at.0.saturating_sub(ms(TOLERANCE))..=at.0.saturating_add(ms(VALIDITY));
    if !valid.contains(&now.0) {
        return Err(BadTicket::Expired);
    }
    String::from_utf8(participant.to_vec()).map_err(|_| BadTicket::Malformed)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    const NOW: BusTime = BusTime(1_700_000_000_000);
    const ANA: Mover<'static> =
        Mover { room: "board", name: "Ana", identity: Some("ana@example.org") };

    static KEY: LazyLock<SealKey> =
        LazyLock::new(|| SealKey::of(&"a-cluster-of-these-tests".parse().unwrap()));

    #[test]
    fn whoever_was_given_it_takes_the_place_that_they_had() {
        let ticket = issue(&KEY, ANA, "1234567890123456789", NOW);
        assert!(ticket.len() < MAX_CHARS);
        let later = BusTime(NOW.0 + 5_000);
        assert_eq!(check(&KEY, ANA, &ticket, later), Ok("1234567890123456789".to_owned()));
    }

    #[test]
    fn nobody_else_does() {
        let ticket = issue(&KEY, ANA, "17", NOW);
        let others = [
            Mover { room: "another", ..ANA },
            Mover { name: "Mallory", ..ANA },
            Mover { identity: Some("mallory"), ..ANA },
            Mover { identity: None, ..ANA },
            Mover { room: "boardA", name: "na", ..ANA },
        ];
        for other in others {
            let refused = check(&KEY, other, &ticket, NOW);
            assert_eq!(refused, Err(BadTicket::Seal(SealError::Forged)), "{other:?}");
        }
        let other = SealKey::of(&"another-cluster-of-these".parse().unwrap());
        assert_eq!(check(&other, ANA, &ticket, NOW), Err(BadTicket::Seal(SealError::Forged)));
    }

    #[test]
    fn it_is_good_for_a_minute_and_only_as_it_is() {
        let ticket = issue(&KEY, ANA, "17", NOW);
        assert_eq!(check(&KEY, ANA, &ticket, BusTime(NOW.0 + 60_001)), Err(BadTicket::Expired));
        assert_eq!(check(&KEY, ANA, &ticket, BusTime(NOW.0 - 10_001)), Err(BadTicket::Expired));
        assert_eq!(check(&KEY, ANA, "AQAB", NOW), Err(BadTicket::Seal(SealError::Unsealed)));
        for wrong in ["", "not base64!", &"A".repeat(300)] {
            assert!(check(&KEY, ANA, wrong, NOW).is_err(), "{wrong}");
        }
    }
}
