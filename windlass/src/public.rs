//! `windlass serve --public`: makes and finds what such a server needs before it serves, and announces it.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result};
use windlass_admin::token;
use windlass_public::{AddressError, find, make_key};
use windlass_signaling::TurnUrl;

use crate::cli::ServeArgs;
use crate::config::{Config, Public};
use crate::tls::Source;

/// Loads the configuration, and makes the token key of a server with a public name if there is none.
pub(crate) fn load(args: &ServeArgs) -> Result<Config> {
    let config = args.load()?;
    let Some(file) = config.public.as_ref().and_then(|public| public.key.as_ref()) else {
        return Ok(config);
    };
    let made =
        make_key(file).with_context(|| format!("cannot make a key in {}", file.display()))?;
    if made { args.load() } else { Ok(config) }
}

/// Finds the address of a server with a public name, unless it is configured. Returns the STUN server that was needed,
/// if any.
pub(crate) fn find_address(config: &mut Config) -> Result<Option<String>, AddressError> {
    let sfu = &mut config.sfu;
    if config.public.is_none() || !sfu.advertise.is_empty() || !sfu.udp.ip().is_unspecified() {
        return Ok(None);
    }
    let urls = config.signaling.turn.urls.iter().map(TurnUrl::as_str);
    let servers: Vec<_> = urls.filter(|url| url.starts_with("stun:")).map(str::to_owned).collect();
    let found = find(&windlass_sfu::outward_addresses(), &servers)?;
    let takes = |ip: &IpAddr| sfu.udp.is_ipv6() || ip.is_ipv4();
    let taken = found.addresses.into_iter().filter(takes);
    sfu.advertise = taken.map(|ip| SocketAddr::new(ip, 0)).collect();
    Ok(found.by)
}

/// Announces where the page is, what is missing, and how to enter a room. `by` is the STUN server that knew the
/// address.
pub(crate) fn announce(
    config: &Config,
    public: &Public,
    by: Option<&str>,
    media: &[SocketAddr],
) -> Result<()> {
    let page = format!("https://{}", public.name);
    windlass_logging::announce(&format!("Windlass is running: {page}"))?;
    match &config.tls {
        None => windlass_logging::announce(&format!(
            "It waits at {} for a proxy that has the certificate, and forwards WebSockets too.",
            config.http
        ))?,
        Some(Source::Acme(acme)) if acme.kept().is_none() => windlass_logging::announce(&format!(
            "It has no certificate yet, and asks {} for one at port 443. Until then browsers warn; the log says how it goes.",
            acme.directory()
        ))?,
        Some(_) => {}
    }
    let places = media.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    let by = by.map_or(String::new(), |by| format!(", where {by} sees this machine"));
    windlass_logging::announce(&format!(
        "Media is at {places}{by}: open these ports for UDP and TCP."
    ))?;
    let Some(key) = public.keys.first() else { return Ok(()) };
    match token::first_link(key, &page) {
        Ok(link) => windlass_logging::announce(&format!("A room, for one person: {link}"))?,
        Err(error) => {
            tracing::warn!(%error, "cannot print an invitation link; make one with `windlass token`");
        }
    }
    let key =
        public.key.as_ref().map_or("KEY".to_owned(), |file| format!("k1=@{}", file.display()));
    windlass_logging::announce(&format!(
        "For others: windlass token --key {key} --room {} --identity NAME --page {page}",
        token::FIRST_ROOM
    ))
}
