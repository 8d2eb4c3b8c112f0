//! Which TURN servers clients are told of, and by what they may use them.

use std::time::Duration;

use anyhow::Result;
use windlass_signaling::{TurnAccess, TurnConfig, TurnUrl};

use super::{Invalid, Settings};

/// For how long a client's name and password may be good, in seconds.
const TTL: std::ops::RangeInclusive<u64> = 60..=604_800;

pub(super) fn turn(said: &Settings) -> Result<TurnConfig> {
    let ttl = said.turn_ttl_s.unwrap_or(3600);
    allow!(TTL.contains(&ttl), "turn-ttl-s", "must be from 60 to 604800, not {ttl}");
    let access = match (&said.turn_secret, &said.turn_username, &said.turn_password) {
        (None, None, None) => TurnAccess::Open,
        // The secret wins where both are set: what it gives ends by itself.
        (Some(secret), ..) => TurnAccess::Rest(secret.clone(), Duration::from_secs(ttl)),
        (None, Some(name), Some(password)) => TurnAccess::Static(name.clone(), password.clone()),
        (None, Some(_), None) => {
            return Err(Invalid::new("turn-username", "needs turn-password beside it").into());
        }
        (None, None, Some(_)) => {
            return Err(Invalid::new("turn-password", "needs turn-username beside it").into());
        }
    };
    let urls = said.turn_url.clone().unwrap_or_default();
    let open = access != TurnAccess::Open || !urls.iter().any(TurnUrl::needs_credentials);
    allow!(open, "turn-url", "needs turn-secret, or turn-username and turn-password");
    allow!(!urls.is_empty() || access == TurnAccess::Open, "turn-secret", "needs turn-url");
    Ok(TurnConfig { urls, access })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(urls: &[&str], rest: &str) -> Result<TurnConfig> {
        let file = crate::config::File::parse(&format!("turn-url: {urls:?}\n{rest}"))?;
        turn(&file.settings)
    }

    #[test]
    fn a_turn_server_needs_a_secret_or_a_name_with_a_password() {
        let url = ["turn:turn.example.org:3478"];
        for (rest, wanted) in [
            ("", "turn-url needs turn-secret"),
            ("turn-username: anna", "turn-username needs turn-password"),
            ("turn-password: south", "turn-password needs turn-username"),
            ("turn-secret: north\nturn-ttl-s: 5", "turn-ttl-s must be"),
        ] {
            let error = format!("{:#}", said(&url, rest).unwrap_err());
            assert!(error.contains(wanted), "{rest}: {error}");
        }
        assert!(matches!(said(&url, "turn-secret: north").unwrap().access, TurnAccess::Rest(..)));
        let both = "turn-username: anna\nturn-password: south";
        assert!(matches!(said(&url, both).unwrap().access, TurnAccess::Static(..)));
        assert_eq!(said(&["stun:turn.example.org"], "").unwrap().access, TurnAccess::Open);
        assert!(said(&[], "turn-secret: north").is_err());
    }
}
