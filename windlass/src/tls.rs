//! Where the certificate comes from: files, or one for development that the server makes for itself.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use windlass_signaling::Tls;

use crate::reload::Watch;

/// A day, in which lifetimes of certificates are counted.
const DAY: Duration = Duration::from_secs(24 * 3600);
/// A development certificate is made anew after this time: long before it ends.
const FRESH: Duration = DAY.saturating_mul(180);

/// Where the certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// PEM files: the certificate with its chain, and its key.
    Files(PathBuf, PathBuf),
    /// Made here, for the machine's own names and these addresses.
    SelfSigned(Vec<IpAddr>),
}

impl Source {
    /// Reads the certificate, or makes it.
    pub(crate) fn load(&self) -> Result<Tls> {
        let (certificate, key) = self.read()?;
        Tls::new(&certificate, &key).with_context(|| self.name())
    }

    /// Gives new connections what the files say now.
    pub(crate) fn reload(&self, tls: &Tls) -> Result<()> {
        let (certificate, key) = self.read()?;
        tls.replace(&certificate, &key).with_context(|| self.name())
    }

    /// What to look at for changes.
    pub(crate) fn watches(&self) -> Vec<Watch> {
        match self {
            Source::Files(certificate, key) => vec![Watch::new(certificate), Watch::new(key)],
            Source::SelfSigned(_) => Vec::new(),
        }
    }

    fn name(&self) -> String {
        match self {
            Source::Files(certificate, key) => {
                format!("cannot serve HTTPS by {} and {}", certificate.display(), key.display())
            }
            Source::SelfSigned(_) => "cannot serve HTTPS by a certificate of our own".to_owned(),
        }
    }

    fn read(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let read =
            |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
        match self {
            Source::Files(certificate, key) => Ok((read(certificate)?, read(key)?)),
            Source::SelfSigned(addresses) => {
                let names = names(addresses);
                match folder() {
                    Some(folder) => kept(&folder, &names),
                    // It is another one at each start then, which browsers ask about anew.
                    None => made(&names),
                }
            }
        }
    }
}

/// The names and addresses that browsers may reach this machine by, as far as it knows.
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
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("windlass").join("tls"))
}

/// The certificate of the last start, if it is fresh and for these names; a new one otherwise.
fn kept(folder: &Path, names: &BTreeSet<String>) -> Result<(Vec<u8>, Vec<u8>)> {
    let (certificate, key, list) =
        (folder.join("cert.pem"), folder.join("key.pem"), folder.join("names"));
    let wanted = names.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    let age = fs::metadata(&certificate).and_then(|m| m.modified()).ok();
    let age = age.and_then(|made| SystemTime::now().duration_since(made).ok());
    if age.is_some_and(|age| age < FRESH)
        && fs::read_to_string(&list).is_ok_and(|l| l == wanted)
        && let (Ok(certificate), Ok(key)) = (fs::read(&certificate), fs::read(&key))
    {
        return Ok((certificate, key));
    }
    let (made_certificate, made_key) = made(names)?;
    let store = || -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        // What is there may be another's to read.
        let _ = fs::remove_file(&key);
        let private = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&key);
        private?.write_all(&made_key)?;
        fs::write(&certificate, &made_certificate)?;
        fs::write(&list, wanted)
    };
    if let Err(error) = store() {
        tracing::warn!(%error, folder = %folder.display(), "the development certificate cannot be kept");
    }
    Ok((made_certificate, made_key))
}

fn made(names: &BTreeSet<String>) -> Result<(Vec<u8>, Vec<u8>)> {
    let failed = |error: rcgen::Error| anyhow!("cannot make a certificate: {error}");
    let mut params =
        CertificateParams::new(names.iter().cloned().collect::<Vec<_>>()).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, "Windlass development certificate");
    params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    let now = SystemTime::now();
    // Clocks differ. Apple's devices take none for longer than 825 days.
    params.not_before = (now - DAY).into();
    params.not_after = (now + 397 * DAY).into();
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    Ok((certificate.pem().into_bytes(), key.serialize_pem().into_bytes()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn of(list: &[&str]) -> BTreeSet<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_development_certificate_is_kept_until_the_names_change() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("tls");
        let first = kept(&folder, &of(&["localhost", "192.0.2.1"])).unwrap();
        assert!(Tls::new(&first.0, &first.1).is_ok());
        assert_eq!(kept(&folder, &of(&["localhost", "192.0.2.1"])).unwrap(), first);
        assert_ne!(kept(&folder, &of(&["localhost", "192.0.2.2"])).unwrap(), first);
        let mode = fs::metadata(folder.join("key.pem")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "nobody else may read the key");
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
