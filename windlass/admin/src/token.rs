//! Makes access tokens with a key of the server: for participants, for operators, and for the link to a first room.
//!
//! ```
//! use windlass_admin::token::{FIRST_ROOM, first_link};
//! use windlass_signaling::access::{Access, TokenKey};
//!
//! let key: TokenKey = "k1=a secret that has 32 bytes at the least".parse()?;
//! let link = first_link(&key, "https://calls.example")?;
//! let (page, token) = link.split_once("&token=").ok_or("no token")?;
//! assert_eq!(page, format!("https://calls.example/#room={FIRST_ROOM}"));
//! # let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
//! let host = Access::new(vec![key])?.admit(now, FIRST_ROOM, Some(token))?;
//! assert_eq!(host.identity.as_deref(), Some("host"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use thiserror::Error;
use windlass_protocol::{Grant, limits};
use windlass_signaling::access::{ALL_ROOMS, BadKey, Claims, Grants, TokenKey};

/// Name of the room in the link that a server with a public name prints.
pub const FIRST_ROOM: &str = "tea-room";

/// Lifetime of the token in the link to a first room.
const FIRST_LIFETIME: Duration = Duration::from_secs(6 * 3600);

/// Why no access token was made.
#[derive(Debug, Error)]
pub enum TokenError {
    /// An option has a value that no token can have.
    #[error("--{option}: {why}")]
    Value {
        /// Name of the option.
        option: &'static str,
        /// Reason for which the value is invalid.
        why: String,
    },
    /// The clock of this machine is before 1970.
    #[error("the clock is before 1970: set it, as tokens have times")]
    Clock,
    /// No key was given.
    #[error("--key: there is none; `windlass key FILE` makes one, and --key k1=@FILE names it")]
    NoKey,
    /// The key cannot sign tokens.
    #[error("--key: {0}")]
    Key(#[from] BadKey),
}

/// Arguments of `windlass token`.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// The room that the token is for. `*`: all rooms, and requests that concern the whole server
    #[arg(long, value_name = "ROOM")]
    room: String,

    /// Identity of the token's bearer; a room has at most one participant with it at a time
    #[arg(long, value_name = "IDENTITY")]
    identity: String,

    /// Name that the others are shown, instead of the name that the client sends
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// What the token allows: publish, subscribe, enhance, data, moderate, admin
    #[arg(
        long,
        value_name = "GRANT,…",
        value_delimiter = ',',
        default_value = "publish,subscribe,enhance,data"
    )]
    grants: Vec<Grant>,

    /// Id of the token (`jti`), by which it can be revoked; random if not given
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// How long the token can be used to join, such as 90s, 5m, 6h or 30d. Calls that have begun go on after that
    #[arg(long, value_name = "TIME", default_value = "6h", value_parser = lifetime)]
    ttl: Duration,

    /// Print a link that contains the token, instead of the token alone: to the room, on the server's page at this
    /// address
    #[arg(long, value_name = "URL", value_parser = page)]
    page: Option<String>,

    /// The server's token key: ID=SECRET or ID=@FILE; for Ed25519, the private key. Of several keys, the first is used
    #[arg(
        long,
        value_name = "ID=SECRET",
        env = "WINDLASS_TOKEN_KEY",
        hide_env_values = true,
        value_delimiter = ',',
        required = true
    )]
    key: Vec<TokenKey>,
}

impl TokenArgs {
    /// Makes the token, or a link with it.
    ///
    /// # Errors
    ///
    /// Fails if an option has a value that no token can have, or if the key cannot sign.
    pub fn run(&self) -> Result<String, TokenError> {
        Ok(sentence(self, &make(self, now()?)?))
    }
}

/// Time since 1970.
fn now() -> Result<Duration, TokenError> {
    SystemTime::now().duration_since(UNIX_EPOCH).map_err(|_| TokenError::Clock)
}

/// Makes a link to a room on a page, for the person who started the server.
///
/// # Errors
///
/// Fails if the key cannot sign.
pub fn first_link(key: &TokenKey, page: &str) -> Result<String, TokenError> {
    let args = TokenArgs {
        room: FIRST_ROOM.to_owned(),
        identity: "host".to_owned(),
        name: None,
        grants: Grant::PARTICIPANT.to_vec(),
        id: None,
        ttl: FIRST_LIFETIME,
        page: Some(page.to_owned()),
        key: vec![key.clone()],
    };
    args.run()
}

/// Makes a token for one request to the admin API.
pub(crate) fn operator(key: &TokenKey, lifetime: Duration) -> Result<String, BadKey> {
    key.sign(&Claims {
        room: ALL_ROOMS.to_owned(),
        sub: "operator".to_owned(),
        name: None,
        grants: Grants::new([Grant::Admin]),
        exp: (now().unwrap_or_default() + lifetime).as_secs_f64(),
        nbf: None,
        jti: None,
    })
}

/// The token, or a link with the token after `#`. Browsers send that part to no server.
fn sentence(args: &TokenArgs, token: &str) -> String {
    match &args.page {
        None => token.to_owned(),
        Some(page) if args.room == ALL_ROOMS => format!("{page}/#token={token}"),
        Some(page) => format!("{page}/#room={}&token={token}", args.room),
    }
}

/// Address of a page, cut off after its path.
fn page(text: &str) -> Result<String, String> {
    let known = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
    if !known || text.contains(['#', '?']) {
        return Err(format!("`{text}` is no address of a page such as https://calls.example"));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Makes a token that is valid for the asked time from `now` (since 1970) on.
fn make(args: &TokenArgs, now: Duration) -> Result<String, TokenError> {
    let wrong = |option, why| TokenError::Value { option, why };
    if args.room != ALL_ROOMS {
        limits::check_room(&args.room).map_err(|e| wrong("room", e.to_string()))?;
    }
    if let Some(name) = &args.name {
        limits::check_name(name).map_err(|e| wrong("name", e.to_string()))?;
    }
    if !limits::is_identity(&args.identity) {
        let most = limits::IDENTITY_BYTES;
        let why = format!("it must be 1 to {most} bytes without invisible characters");
        return Err(wrong("identity", why));
    }
    let claims = Claims {
        room: args.room.clone(),
        sub: args.identity.clone(),
        name: args.name.clone(),
        grants: Grants::new(args.grants.iter().copied()),
        exp: (now + args.ttl).as_secs() as f64,
        nbf: Some(now.as_secs() as f64),
        jti: Some(args.id.clone().unwrap_or_else(|| format!("{:016x}", rand::random::<u64>()))),
    };
    let key = args.key.first().ok_or(TokenError::NoKey)?;
    Ok(key.sign(&claims)?)
}

fn lifetime(text: &str) -> Result<Duration, String> {
    let wrong = |_| {
        format!("`{text}` is no time: write a number with its unit, such as 90s, 5m, 6h or 30d")
    };
    let time = humantime::parse_duration(text).map_err(wrong)?;
    if time.is_zero() { Err("a token of no time lets nobody in".to_owned()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use windlass_signaling::access::Access;

    use super::*;

    const KEY: &str = "k1=0123456789abcdef0123456789abcdef";

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: TokenArgs,
    }

    fn args(more: &[&str]) -> Result<TokenArgs, clap::Error> {
        let line = [&["token", "--key", KEY, "--identity", "ana", "--room"], more].concat();
        Line::try_parse_from(line).map(|line| line.args)
    }

    #[test]
    fn a_token_lets_in_until_its_time_is_over() {
        let args = args(&["tea", "--ttl", "90s", "--grants", "subscribe"]).unwrap();
        let token = make(&args, Duration::from_secs(1000)).unwrap();
        let access = Access::new(vec![KEY.parse().unwrap()]).unwrap();
        let admission = access.admit(1089, "tea", Some(&token)).unwrap();
        assert_eq!(admission.identity.as_deref(), Some("ana"));
        assert_eq!(admission.grants.list(), [Grant::Subscribe]);
        assert!(access.admit(1200, "tea", Some(&token)).is_err());
        assert!(access.admit(1089, "coffee", Some(&token)).is_err());
    }

    #[test]
    fn a_link_has_room_and_token_where_browsers_send_them_to_nobody() {
        let link = |more: &[&str]| sentence(&args(more).unwrap(), "x.y.z");
        assert_eq!(link(&["tea"]), "x.y.z");
        let page = ["--page", "https://calls.example/"];
        assert_eq!(link(&["tea", page[0], page[1]]), "https://calls.example/#room=tea&token=x.y.z");
        assert_eq!(link(&["*", page[0], page[1]]), "https://calls.example/#token=x.y.z");
        for wrong in ["calls.example", "https://a/?room=b", "https://a/#b"] {
            assert!(args(&["tea", "--page", wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_in_a_token_is_refused() {
        let now = Duration::from_secs(1000);
        assert!(make(&args(&["a b"]).unwrap(), now).is_err());
        assert!(make(&args(&["tea", "--name", " "]).unwrap(), now).is_err());
        for wrong in ["0s", "6", "h", "-1h", "é"] {
            assert!(args(&["tea", "--ttl", wrong]).is_err(), "{wrong}");
        }
        assert!(args(&["tea", "--grants", "fly"]).is_err());
    }
}
