//! Certificate that proves to an ACME server that a name leads to this server (TLS-ALPN-01, RFC 8737).

use rcgen::{CertificateParams, CustomExtension, KeyPair};

use crate::certificate::Pair;

/// Makes a certificate for `name` with the digest of the challenge's key authorization, which has 32 bytes.
pub(crate) fn answer(name: &str, digest: &[u8]) -> Result<Pair, rcgen::Error> {
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.custom_extensions.push(CustomExtension::new_acme_identifier(digest));
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?.pem();
    Ok(Pair { certificate, key: key.serialize_pem() })
}
