//! Tickets of participants who are sent to another server: by one the other knows whose place they take, whatever they say themselves.
//!
//! A ticket is sealed by the server that sends somebody away, for the room, the name and the identity that it knows them by, and good for a minute.
//!
//! Pure. Source: decision 025.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use thiserror::Error;

use crate::sealed::{BusTime, Rogue, SealKey, TOLERANCE};

/// For how long it is good: whoever is sent away goes at once, and may try again.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// Longest that is read.
const MOST_CHARS: usize = 256;
const PURPOSE: &str = "windlass move";

/// Who moves, as servers know them: these must be the same where they come.
#[derive(Debug, Clone, Copy)]
pub struct Mover<'a> {
    /// The room.
    pub room: &'a str,
    /// The name that others see.
    pub name: &'a str,
    /// Who that is by an access token.
    pub identity: Option<&'a str>,
}

impl Mover<'_> {
    /// What a ticket is for. Nothing of it can be taken for another part.
    fn words(&self) -> String {
        let identity = self.identity.map_or(String::from("-"), |identity| format!("+{identity}"));
        format!("{} {} {}{}{identity}", self.room.len(), self.name.len(), self.room, self.name)
    }
}

/// Why a ticket is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadTicket {
    /// It has another form.
    #[error("it is no ticket")]
    Form,
    /// It is not the cluster's, or for another room, name or identity.
    #[error(transparent)]
    Rogue(#[from] Rogue),
    /// It was good once.
    #[error("it is too old")]
    Old,
}

/// A ticket for a participant of that id.
pub fn issue(key: &SealKey, mover: Mover<'_>, participant: &str, now: BusTime) -> String {
    BASE64.encode(key.seal((PURPOSE, &mover.words()), now, participant.as_bytes()))
}

/// The id of the participant to whom a ticket was given.
pub fn check(
    key: &SealKey,
    mover: Mover<'_>,
    ticket: &str,
    now: BusTime,
) -> Result<String, BadTicket> {
    if ticket.len() > MOST_CHARS {
        return Err(BadTicket::Form);
    }
    let sealed = BASE64.decode(ticket).map_err(|_| BadTicket::Form)?;
    let (at, participant) = key.open((PURPOSE, &mover.words()), &sealed)?;
    let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let good = at.0.saturating_sub(ms(TOLERANCE))..=at.0.saturating_add(ms(GOOD_FOR));
    if !good.contains(&now.0) {
        return Err(BadTicket::Old);
    }
    String::from_utf8(participant.to_vec()).map_err(|_| BadTicket::Form)
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
        assert!(ticket.len() < MOST_CHARS);
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
            assert_eq!(refused, Err(BadTicket::Rogue(Rogue::Forged)), "{other:?}");
        }
        let other = SealKey::of(&"another-cluster-of-these".parse().unwrap());
        assert_eq!(check(&other, ANA, &ticket, NOW), Err(BadTicket::Rogue(Rogue::Forged)));
    }

    #[test]
    fn it_is_good_for_a_minute_and_only_as_it_is() {
        let ticket = issue(&KEY, ANA, "17", NOW);
        assert_eq!(check(&KEY, ANA, &ticket, BusTime(NOW.0 + 60_001)), Err(BadTicket::Old));
        assert_eq!(check(&KEY, ANA, &ticket, BusTime(NOW.0 - 10_001)), Err(BadTicket::Old));
        assert_eq!(check(&KEY, ANA, "AQAB", NOW), Err(BadTicket::Rogue(Rogue::Unsealed)));
        for wrong in ["", "not base64!", &"A".repeat(300)] {
            assert!(check(&KEY, ANA, wrong, NOW).is_err(), "{wrong}");
        }
    }
}
