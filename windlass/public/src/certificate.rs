//! Certificates with their keys, and their validity.

use std::time::{Duration, SystemTime};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode;
use x509_cert::time::Time;

/// A certificate with its chain, and its private key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate, followed by its chain.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the key.
        f.debug_struct("Pair").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Period in which a certificate is valid, as times since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// Start of the validity.
    pub not_before: Duration,
    /// End of the validity.
    pub not_after: Duration,
}

impl Validity {
    /// Validity of a PEM text with a certificate and its key; `None` if one is missing, or they do not belong together.
    pub fn of(pem: &[u8]) -> Option<Validity> {
        let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>().ok()?;
        let first = CertificateInner::<Raw>::from_der(chain.first()?).ok()?;
        let validity = *first.tbs_certificate().validity();
        let key = PrivateKeyDer::from_pem_slice(pem).ok()?;
        CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).ok()?;
        let [not_before, not_after] =
            [validity.not_before, validity.not_after].map(Time::to_unix_duration);
        Some(Validity { not_before, not_after })
    }

    /// Time until the certificate is to be renewed: when a third of its validity is left.
    pub(crate) fn renewed_in(self, now: SystemTime) -> Duration {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let lasts = self.not_after.saturating_sub(self.not_before);
        (self.not_before + lasts * 2 / 3).saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_renewed_when_a_third_of_its_time_is_left() {
        let [begin, end] = [1000, 1090].map(Duration::from_secs);
        let validity = Validity { not_before: begin, not_after: end };
        let at = |s| validity.renewed_in(SystemTime::UNIX_EPOCH + Duration::from_secs(s)).as_secs();
        assert_eq!([at(990), at(1000), at(1050), at(1060), at(2000)], [70, 60, 10, 0, 0]);
    }

    #[test]
    fn a_text_without_a_certificate_and_its_own_key_has_none() {
        let pair = || rcgen::generate_simple_self_signed(["calls.example".to_owned()]).unwrap();
        let (one, other) = (pair(), pair());
        let text = |key: &rcgen::KeyPair| key.serialize_pem() + &one.cert.pem();
        assert!(Validity::of(text(&one.signing_key).as_bytes()).is_some());
        assert_eq!(Validity::of(text(&other.signing_key).as_bytes()), None);
        assert_eq!(Validity::of(one.cert.pem().as_bytes()), None);
        assert_eq!(Validity::of(b""), None);
    }
}
