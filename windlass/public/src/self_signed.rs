//! Certificates that the server makes for itself: for development, and until it has one by ACME.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DnType, Error, ExtendedKeyUsagePurpose, KeyPair};

use crate::certificate::Pair;
use crate::state;

/// One day. Lifetimes of certificates are counted in days.
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Age after which a certificate is replaced, long before it expires.
const FRESH: Duration = DAY.saturating_mul(180);

/// Returns the certificate of the last start if it is fresh and for these names, or a new one.
///
/// # Errors
///
/// Fails if a name cannot be in a certificate.
pub fn kept(folder: &Path, names: &BTreeSet<String>) -> Result<Pair, Error> {
    let (certificate, key, list) =
        (folder.join("cert.pem"), folder.join("key.pem"), folder.join("names"));
    let wanted = names.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    let age = fs::metadata(&certificate).and_then(|m| m.modified()).ok();
    let age = age.and_then(|made| SystemTime::now().duration_since(made).ok());
    if age.is_some_and(|age| age < FRESH)
        && fs::read_to_string(&list).is_ok_and(|l| l == wanted)
        && let (Ok(certificate), Ok(key)) =
            (fs::read_to_string(&certificate), fs::read_to_string(&key))
    {
        return Ok(Pair { certificate, key });
    }
    let pair = made(names)?;
    let store = || -> std::io::Result<()> {
        state::write(&key, pair.key.as_bytes(), false)?;
        fs::write(&certificate, &pair.certificate)?;
        fs::write(&list, wanted)
    };
    if let Err(error) = store() {
        tracing::warn!(%error, folder = %folder.display(), "development certificate not kept: browsers ask about a new one at each start; make the folder writable");
    }
    Ok(pair)
}

/// Makes a new certificate for these names.
///
/// # Errors
///
/// Fails if a name cannot be in a certificate.
pub fn made(names: &BTreeSet<String>) -> Result<Pair, Error> {
    let mut params = CertificateParams::new(names.iter().cloned().collect::<Vec<_>>())?;
    params.distinguished_name.push(DnType::CommonName, "Windlass development certificate");
    params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    let now = SystemTime::now();
    // Clocks differ. Apple's devices take none for longer than 825 days.
    params.not_before = (now - DAY).into();
    params.not_after = (now + 397 * DAY).into();
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::Validity;

    fn of(list: &[&str]) -> BTreeSet<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_development_certificate_is_kept_until_the_names_change() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("tls");
        let first = kept(&folder, &of(&["localhost", "192.0.2.1"])).unwrap();
        let both = first.key.clone() + &first.certificate;
        assert!(Validity::of(both.as_bytes()).is_some());
        assert_eq!(kept(&folder, &of(&["localhost", "192.0.2.1"])).unwrap(), first);
        assert_ne!(kept(&folder, &of(&["localhost", "192.0.2.2"])).unwrap(), first);
        let mode = fs::metadata(folder.join("key.pem")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "nobody else may read the key");
    }
}
