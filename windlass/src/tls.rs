//! Sources of the certificate: files, an ACME server, or for development the server itself.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use windlass_public::{Acme, Pair, kept, made, of_user};
use windlass_signaling::Tls;

use crate::watch::Watch;

/// Source of the certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// PEM files: the certificate with its chain, and its key.
    Files(PathBuf, PathBuf),
    /// A certificate from an ACME server, kept in a file.
    Acme(Acme),
    /// A certificate that the server makes, for the machine's own names and these addresses.
    SelfSigned(Vec<IpAddr>),
}

impl Source {
    /// Reads the certificate, or makes it.
    pub(crate) fn load(&self) -> Result<Tls> {
        let (certificate, key) = self.read()?;
        Tls::new(&certificate, &key).with_context(|| self.name())
    }

    /// Reloads the certificate for new connections.
    pub(crate) fn reload(&self, tls: &Tls) -> Result<()> {
        let (certificate, key) = self.read()?;
        tls.replace(&certificate, &key).with_context(|| self.name())
    }

    /// Files to watch for changes.
    pub(crate) fn watches(&self) -> Vec<Watch> {
        match self {
            Source::Files(certificate, key) => vec![Watch::new(certificate), Watch::new(key)],
            Source::Acme(acme) => vec![Watch::new(&acme.file())],
            Source::SelfSigned(_) => Vec::new(),
        }
    }

    /// Starts the renewal by ACME, if the certificate comes from there. Its file is reloaded like others.
    pub(crate) fn keep(&self, tls: &Tls) {
        let Source::Acme(acme) = self else { return };
        let tls = tls.clone();
        let answer = move |pair: Option<&Pair>| {
            let pair = pair.map(|pair| (pair.certificate.as_bytes(), pair.key.as_bytes()));
            if let Err(error) = tls.answer_challenge(pair) {
                tracing::error!(%error, "ACME challenge cannot be answered; check that port 443 reaches this server");
            }
        };
        let kept = acme.clone().run(answer);
        tokio::spawn(async move {
            if let Err(error) = kept.await {
                tracing::error!(%error, "certificate renewal stopped: this process cannot listen for SIGHUP; restart the server before the certificate expires");
            }
        });
    }

    fn name(&self) -> String {
        match self {
            Source::Files(certificate, key) => {
                format!("cannot serve HTTPS by {} and {}", certificate.display(), key.display())
            }
            Source::Acme(acme) => format!("cannot serve HTTPS by {}", acme.file().display()),
            Source::SelfSigned(_) => "cannot serve HTTPS by a certificate of our own".to_owned(),
        }
    }

    fn read(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let read =
            |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
        match self {
            Source::Files(certificate, key) => Ok((read(certificate)?, read(key)?)),
            Source::Acme(acme) => match acme.pem() {
                Some(both) => Ok((both.clone(), both)),
                // Until there is one, handshakes need some certificate.
                None => Ok(pem(made(&[acme.name().to_owned()].into())?)),
            },
            Source::SelfSigned(addresses) => {
                let names = names(addresses);
                Ok(pem(match folder() {
                    Some(folder) => kept(&folder, &names)?,
                    // It is another one at each start then, which browsers ask about anew.
                    None => made(&names)?,
                }))
            }
        }
    }
}

fn pem(pair: Pair) -> (Vec<u8>, Vec<u8>) {
    (pair.certificate.into_bytes(), pair.key.into_bytes())
}

/// Names and addresses by which browsers may reach this machine, as far as it knows.
fn names(addresses: &[IpAddr]) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    if let Ok(host) = fs::read_to_string("/proc/sys/kernel/hostname") {
        let host = host.trim();
        if !host.is_empty() && host.is_ascii() {
            names.insert(host.to_owned());
        }
    }
    names.extend(windlass_sfu::outward_addresses().iter().map(ToString::to_string));
    names.extend(addresses.iter().filter(|a| !a.is_unspecified()).map(ToString::to_string));
    names
}

fn folder() -> Option<PathBuf> {
    Some(of_user("XDG_CACHE_HOME", ".cache")?.join("tls"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn until_an_acme_server_gives_a_certificate_there_is_one_that_nobody_trusts() {
        let dir = tempfile::tempdir().unwrap();
        let acme = Acme::new("calls.example", "https://127.0.0.1:9/dir", dir.path());
        let source = Source::Acme(acme.clone());
        source.load().unwrap();
        let pair = made(&["calls.example".to_owned()].into()).unwrap();
        fs::create_dir_all(acme.file().parent().unwrap()).unwrap();
        fs::write(acme.file(), pair.key.clone() + &pair.certificate).unwrap();
        assert_eq!(source.read().unwrap().0, (pair.key + &pair.certificate).into_bytes());
        fs::write(acme.file(), "half a cert").unwrap();
        source.load().unwrap();
    }

    #[test]
    fn the_machine_is_known_by_localhost_and_what_it_was_told() {
        let names = names(&["192.0.2.9".parse().unwrap(), "0.0.0.0".parse().unwrap()]);
        for name in ["localhost", "127.0.0.1", "::1", "192.0.2.9"] {
            assert!(names.contains(name), "{names:?}");
        }
        assert!(!names.contains("0.0.0.0"));
    }

    #[test]
    fn a_file_that_is_missing_or_no_certificate_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, key) = (dir.path().join("c.pem"), dir.path().join("k.pem"));
        let source = Source::Files(certificate.clone(), key.clone());
        assert!(format!("{:#}", source.load().unwrap_err()).contains("c.pem"));
        fs::write(&certificate, "x").unwrap();
        fs::write(&key, "x").unwrap();
        let error = format!("{:#}", source.load().unwrap_err());
        assert!(error.contains("c.pem") && error.contains("no certificate"), "{error}");
    }
}
