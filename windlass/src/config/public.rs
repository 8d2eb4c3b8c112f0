//! Defaults of the other options for a server with a public name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use windlass_public::LETS_ENCRYPT;
use windlass_signaling::access::TokenKey;

use super::values::{Parsed, TlsChoice};
use super::{Invalid, Settings};

/// Port where browsers expect pages.
const HTTPS: u16 = 443;
/// Listening address of the metrics. They are for this machine only, because everybody reaches the page.
const FIGURES: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7889);

/// Configuration of a server with a public name.
#[derive(Debug, Clone)]
pub(crate) struct Public {
    /// Public name of the server.
    pub name: String,
    /// Folder for what the server makes and is given.
    pub folder: PathBuf,
    /// File of the token key that the server makes; `None` if keys are given, or rooms are open.
    pub key: Option<PathBuf>,
    /// Token keys that exist already.
    pub keys: Vec<TokenKey>,
}

/// Fills in the settings that follow from a public name. Given settings stay.
pub(super) fn filled(
    mut settings: Settings,
    folder: Option<&Path>,
) -> Result<(Settings, Option<Public>), Invalid> {
    let Some(Parsed(name)) = settings.public.clone() else {
        if let Some(Parsed(TlsChoice::Acme(_))) = settings.tls {
            return Err(Invalid::new(
                "tls",
                "acme needs public, the name that the certificate is for",
            ));
        }
        return Ok((settings, None));
    };
    let Some(folder) = folder else {
        let allowed = "needs a folder for its key and certificate: set STATE_DIRECTORY or HOME";
        return Err(Invalid::new("public", allowed));
    };
    let http = *settings.http.get_or_insert_with(|| everywhere(HTTPS));
    settings.udp.get_or_insert_with(|| everywhere(Settings::default().udp().port()));
    settings.metrics.get_or_insert(FIGURES);
    // A proxy before the server has the certificate.
    let has_proxy = http.ip().to_canonical().is_loopback() || settings.trusted_proxies.is_some();
    if settings.tls.is_none() && !has_proxy {
        settings.tls = Some(Parsed(TlsChoice::Acme(LETS_ENCRYPT.to_owned())));
    }
    let given = settings.token_key.as_ref().is_some_and(|keys| !keys.is_empty());
    let key = (!given && settings.open_rooms != Some(true)).then(|| folder.join("token-key"));
    // It is made at the start.
    if let Some(file) = key.as_ref().filter(|file| file.exists()) {
        let key = format!("k1=@{}", file.display()).parse::<TokenKey>();
        settings.token_key =
            Some(vec![key.map_err(|e| Invalid::new("public", format!("has no key: {e}")))?]);
    }
    let keys = settings.token_key.clone().unwrap_or_default();
    Ok((settings, Some(Public { name: name.to_string(), folder: folder.to_owned(), key, keys })))
}

/// The unspecified address: IPv6 and IPv4 if the machine has both.
fn everywhere(port: u16) -> SocketAddr {
    let ip = if windlass_sfu::outward_addresses().iter().any(IpAddr::is_ipv6) {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    };
    SocketAddr::new(ip, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(yaml: &str, folder: &Path) -> Result<(Settings, Option<Public>), Invalid> {
        filled(serde_saphyr::from_str(yaml).expect(yaml), Some(folder))
    }

    fn acme(settings: &Settings) -> bool {
        matches!(settings.tls, Some(Parsed(TlsChoice::Acme(_))))
    }

    #[test]
    fn a_public_name_stands_for_all_that_it_takes_to_serve_everybody() {
        let dir = tempfile::tempdir().unwrap();
        let (settings, public) = of("public: Calls.Example.", dir.path()).unwrap();
        let http = settings.http.unwrap();
        assert!(http.ip().is_unspecified() && http.port() == 443, "{http}");
        assert_eq!(settings.udp.map(|udp| udp.port()), Some(7881));
        assert!(settings.metrics.is_some_and(|at| at.ip().is_loopback()) && acme(&settings));
        let public = public.unwrap();
        assert_eq!((public.name.as_str(), public.keys.len()), ("calls.example", 0));
        let key = public.key.unwrap();
        windlass_public::make_key(&key).unwrap();
        let (settings, public) = of("public: calls.example", dir.path()).unwrap();
        assert_eq!(
            (settings.token_key.map(|keys| keys.len()), public.unwrap().keys.len()),
            (Some(1), 1)
        );
    }

    #[test]
    fn what_is_said_wins() {
        let dir = tempfile::tempdir().unwrap();
        let of = |more: &str| of(&format!("public: calls.example\n{more}"), dir.path()).unwrap();
        for more in [
            "tls: cert.pem,key.pem",
            "http: 127.0.0.1:7880",
            "http: '[::1]:7880'",
            "trusted-proxies: [10.0.0.1]",
        ] {
            assert!(!acme(&of(more).0), "{more}");
        }
        let (settings, _) = of("http: 127.0.0.1:7880\ntls: acme:https://ca.example/dir");
        assert_eq!(
            settings.tls,
            Some(Parsed(TlsChoice::Acme("https://ca.example/dir".to_owned())))
        );
        let (_, public) = of("token-key: [k1=0123456789abcdef0123456789abcdef]");
        assert_eq!(public.map(|public| (public.key, public.keys.len())), Some((None, 1)));
        assert_eq!(of("open-rooms: true").1.and_then(|public| public.key), None);
    }

    #[test]
    fn a_certificate_by_acme_is_for_a_name() {
        let error = filled(serde_saphyr::from_str("tls: acme").unwrap(), None).unwrap_err();
        assert_eq!(error.option, "tls");
        let without = serde_saphyr::from_str("public: calls.example").unwrap();
        assert!(filled(without, None).unwrap_err().to_string().contains("STATE_DIRECTORY"));
    }
}
