//! Options for TURN servers of clients, and the credentials for them.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Result;
use percent_encoding::percent_decode_str;
use windlass_signaling::{TurnAccess, TurnConfig, TurnSecret, TurnUrl};

use super::{Invalid, Settings};

/// Lifetimes of TURN credentials that are allowed: a minute to a week.
const TTL: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(604_800);

/// A TURN or STUN server, perhaps with a static user and password: `turn:USER:PASSWORD@HOST`. It is parsed once all
/// options are known, because errors of the command line would repeat the whole value with the password.
struct TurnServer {
    url: TurnUrl,
    user: Option<(String, TurnSecret)>,
}

impl FromStr for TurnServer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = |text: &str| text.parse::<TurnUrl>().map_err(|e| e.to_string());
        let Some((front, host)) = text.rsplit_once('@') else {
            return Ok(TurnServer { url: url(text)?, user: None });
        };
        // What stands before the host is not repeated: it may be a password.
        let mut parts = front.splitn(3, ':');
        let (Some(scheme), Some(user), Some(password)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(format!(
                "the server at {host} needs user and password: turn:USER:PASSWORD@HOST"
            ));
        };
        let plain = |text: &str| {
            let decoded = percent_decode_str(text).decode_utf8();
            decoded
                .map(Cow::into_owned)
                .map_err(|_| format!("{host}: user or password is no UTF-8"))
        };
        let password =
            plain(password)?.parse::<TurnSecret>().map_err(|e| format!("{host}: {e}"))?;
        Ok(TurnServer {
            url: url(&format!("{scheme}:{host}"))?,
            user: Some((plain(user)?, password)),
        })
    }
}

pub(super) fn turn(settings: &Settings) -> Result<TurnConfig> {
    let ttl = settings.turn_ttl().0;
    allow!(TTL.contains(&ttl.0), "turn-ttl", "must be from 1m to 7days, not {ttl}");
    let read = |text: &String| text.parse::<TurnServer>().map_err(|e| Invalid::new("turn-url", e));
    let servers: Vec<TurnServer> =
        settings.turn_url.iter().flatten().map(read).collect::<Result<_, _>>()?;
    let mut users = servers.iter().filter_map(|server| server.user.as_ref());
    let user = users.next();
    let one = users.all(|other| Some(other) == user);
    allow!(
        one,
        "turn-url",
        "has several users: name one user and password for all servers, or use turn-secret"
    );
    let access = match (&settings.turn_secret, user) {
        // The secret wins where both are set: credentials that are made of it expire.
        (Some(secret), _) => TurnAccess::Rest(secret.clone(), ttl.0),
        (None, Some((name, password))) => TurnAccess::Static(name.clone(), password.clone()),
        (None, None) => TurnAccess::Open,
    };
    let urls: Vec<TurnUrl> = servers.iter().map(|server| server.url.clone()).collect();
    let open = access != TurnAccess::Open || !urls.iter().any(TurnUrl::needs_credentials);
    allow!(open, "turn-url", "needs turn-secret, or a user and password before the host");
    allow!(!urls.is_empty() || access == TurnAccess::Open, "turn-secret", "needs turn-url");
    Ok(TurnConfig { urls, access })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(urls: &[&str], rest: &str) -> Result<TurnConfig> {
        let file = crate::config::File::parse(&format!("turn-url: {urls:?}\n{rest}"))?;
        turn(&file.settings)
    }

    #[test]
    fn a_turn_server_needs_a_secret_or_a_user_with_a_password() {
        let url = ["turn:turn.example.org:3478"];
        for (urls, rest, wanted) in [
            (&url[..], "", "turn-url needs turn-secret"),
            (&["turn:anna@turn.example.org"], "", "needs user and password"),
            (&["turn:anna:@turn.example.org"], "", "must not be empty"),
            (&["turn:a:b@one.example", "turn:c:d@two.example"], "", "several users"),
            (&url, "turn-secret: north\nturn-ttl: 5s", "turn-ttl must be"),
        ] {
            let error = format!("{:#}", parse(urls, rest).unwrap_err());
            assert!(error.contains(wanted), "{rest}: {error}");
        }
        assert!(matches!(parse(&url, "turn-secret: north").unwrap().access, TurnAccess::Rest(..)));
        let user = parse(&["turn:anna:so:uth@turn.example.org:3478"], "").unwrap();
        assert_eq!(user.urls, [url[0].parse().unwrap()]);
        let access = TurnAccess::Static("anna".to_owned(), "so:uth".parse().unwrap());
        assert_eq!(user.access, access);
        let special =
            parse(&["turn:1700000000%3Aanna:so%2Cuth@turn.example.org:3478"], "").unwrap();
        let access = TurnAccess::Static("1700000000:anna".to_owned(), "so,uth".parse().unwrap());
        assert_eq!(special.access, access);
        assert_eq!(parse(&["stun:turn.example.org"], "").unwrap().access, TurnAccess::Open);
        assert!(parse(&[], "turn-secret: north").is_err());
    }
}
