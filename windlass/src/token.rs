//! `windlass token`: makes an access token by a key of the server's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use windlass_protocol::{Grant, limits};
use windlass_signaling::access::{ALL_ROOMS, Claims, Grants, TokenKey};

use crate::time::Time;

/// The room of the link that a server with a public name prints.
pub(crate) const FIRST_ROOM: &str = "tea-room";

/// Arguments of `windlass token`.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// The room that it lets in; `*` for all rooms, and for what concerns the whole server
    #[arg(long, value_name = "ROOM")]
    room: String,

    /// Who its bearer is: one participant in a room at a time
    #[arg(long, value_name = "IDENTITY")]
    identity: String,

    /// The name that the others are shown, in the place of what the client says
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// What it allows: publish, subscribe, enhance, data, moderate, admin
    #[arg(
        long,
        value_name = "GRANT,…",
        value_delimiter = ',',
        default_value = "publish,subscribe,enhance,data"
    )]
    grants: Vec<Grant>,

    /// Its own id (`jti`), by which it can be revoked; without, one is made up
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// How long somebody may join with it, such as 90s, 5m, 6h or 30d. What is under way goes on after that
    #[arg(long, value_name = "TIME", default_value = "6h", value_parser = lifetime)]
    ttl: Duration,

    /// Print a link to the room on the server's page at this address, with the token in it, in the place of the token alone
    #[arg(long, value_name = "URL", value_parser = page)]
    page: Option<String>,

    /// The key, as the server has it: ID=SECRET or ID=@FILE; of Ed25519, the private half. Of several the first is used
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

/// Prints a token, or a link with it.
pub(crate) fn run(args: &TokenArgs) -> Result<()> {
    println!("{}", said(args, &make(args, now()?)?));
    Ok(())
}

/// The time since 1970.
fn now() -> Result<Duration> {
    SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")
}

/// A link to a room on a page, for whoever has started the server.
pub(crate) fn first_link(key: &TokenKey, page: &str) -> Result<String> {
    let args = TokenArgs {
        room: FIRST_ROOM.to_owned(),
        identity: "host".to_owned(),
        name: None,
        grants: Grant::PARTICIPANT.to_vec(),
        id: None,
        ttl: Duration::from_secs(6 * 3600),
        page: Some(page.to_owned()),
        key: vec![key.clone()],
    };
    Ok(said(&args, &make(&args, now()?)?))
}

/// The token, or the link. What follows `#` is sent to nobody.
fn said(args: &TokenArgs, token: &str) -> String {
    match &args.page {
        None => token.to_owned(),
        Some(page) if args.room == ALL_ROOMS => format!("{page}/#token={token}"),
        Some(page) => format!("{page}/#room={}&token={token}", args.room),
    }
}

/// The address of a page, without what follows its path.
fn page(text: &str) -> Result<String, String> {
    let known = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
    if !known || text.contains(['#', '?']) {
        return Err(format!("`{text}` is no address of a page such as https://calls.example"));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// A token that is good for the asked time from `now` (since 1970) on.
fn make(args: &TokenArgs, now: Duration) -> Result<String> {
    if args.room != ALL_ROOMS {
        limits::check_room(&args.room).map_err(|e| anyhow!("--room: {e}"))?;
    }
    if let Some(name) = &args.name {
        limits::check_name(name).map_err(|e| anyhow!("--name: {e}"))?;
    }
    ensure!(
        limits::is_identity(&args.identity),
        "--identity must be 1 to {} bytes without invisible characters",
        limits::IDENTITY_BYTES
    );
    let claims = Claims {
        room: args.room.clone(),
        sub: args.identity.clone(),
        name: args.name.clone(),
        grants: Grants::new(args.grants.iter().copied()),
        exp: (now + args.ttl).as_secs() as f64,
        nbf: Some(now.as_secs() as f64),
        jti: Some(args.id.clone().unwrap_or_else(|| format!("{:016x}", rand::random::<u64>()))),
    };
    let key = args.key.first().context("there is no key")?;
    Ok(key.sign(&claims)?)
}

fn lifetime(text: &str) -> Result<Duration, String> {
    let Time(time) = text.parse()?;
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
        let link = |more: &[&str]| said(&args(more).unwrap(), "x.y.z");
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
