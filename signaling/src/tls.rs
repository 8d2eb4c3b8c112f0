//! HTTPS: TLS handshakes, and the certificate, which may be replaced while the server runs.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode;

use crate::metric::Metric;

/// Time limit of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that a client has to read an answer before its connection is closed.
const LINGER: Duration = Duration::from_secs(1);
/// The first byte of a TLS handshake record (RFC 8446 §5.1).
const HANDSHAKE_RECORD: u8 = 22;

/// Why a certificate cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The certificate file is no PEM, or has no certificate.
    #[error("the file has no certificate (PEM): {0}")]
    Certificate(String),
    /// The key file is no PEM, or has no private key.
    #[error("the file has no private key (PEM): {0}")]
    Key(String),
    /// Certificate and key do not match, or are not supported.
    #[error("certificate and key cannot be used together: {0}")]
    Pair(#[from] rustls::Error),
}

/// The certificate of new connections, and counters of handshakes. Clones share one state.
#[derive(Clone)]
pub struct Tls {
    shared: Arc<Shared>,
}

struct Shared {
    config: RwLock<Arc<ServerConfig>>,
    /// When the certificate expires, in seconds since 1970.
    not_after: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
    slow: AtomicU64,
    refused: AtomicU64,
    plain: AtomicU64,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the key.
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Uses a certificate with its chain, and its private key, both PEM.
    ///
    /// # Errors
    ///
    /// Fails if a text is not PEM of its kind, or the key is not the certificate's.
    pub fn new(certificate: &[u8], key: &[u8]) -> Result<Tls, TlsError> {
        let (config, not_after) = read(certificate, key)?;
        let zero = AtomicU64::default;
        let shared = Shared {
            config: RwLock::new(Arc::new(config)),
            not_after: AtomicU64::new(not_after),
            done: zero(),
            failed: zero(),
            slow: zero(),
            refused: zero(),
            plain: zero(),
        };
        Ok(Tls { shared: Arc::new(shared) })
    }

    /// When the certificate ends, in seconds since 1970.
    pub fn not_after(&self) -> u64 {
        self.shared.not_after.load(Ordering::Relaxed)
    }

    /// Replaces the certificate for new connections; one that cannot be used changes nothing.
    ///
    /// # Errors
    ///
    /// Fails where [`Tls::new`] does.
    pub fn replace(&self, certificate: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let (config, not_after) = read(certificate, key)?;
        *self.shared.config.write() = Arc::new(config);
        self.shared.not_after.store(not_after, Ordering::Relaxed);
        Ok(())
    }

    /// The connection after its handshake; `None`: the handshake failed, was counted, and the connection is closed. Plaintext HTTP is
    /// answered with an explanation, and with whether the server is `well`, since health checks may not use TLS.
    pub(crate) async fn accept(
        &self,
        mut stream: TcpStream,
        well: bool,
    ) -> Option<TlsStream<TcpStream>> {
        let shared = &self.shared;
        let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
        let acceptor = TlsAcceptor::from(shared.config.read().clone());
        let handshake = async {
            if !speaks_tls(&stream).await? {
                count(&shared.plain);
                tell(&mut stream, well).await;
                return Err(ErrorKind::InvalidData.into());
            }
            acceptor.accept(stream).await
        };
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(stream)) => {
                count(&shared.done);
                Some(stream)
            }
            Ok(Err(error)) => {
                count(&shared.failed);
                tracing::debug!(%error, "TLS handshake failed");
                None
            }
            Err(_) => {
                count(&shared.slow);
                None
            }
        }
    }

    /// Counts a connection that was closed because of too many handshakes.
    pub(crate) fn refused(&self) {
        self.shared.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let s = &self.shared;
        let outcomes = [
            ("done", &s.done),
            ("failed", &s.failed),
            ("slow", &s.slow),
            ("refused", &s.refused),
            ("plain_http", &s.plain),
        ];
        let not_after = self.not_after();
        let mut metrics =
            vec![Metric::new("windlass_tls_certificate_not_after_timestamp_seconds", not_after)];
        metrics.extend(outcomes.map(|(outcome, value)| {
            Metric::new("windlass_tls_handshakes_total", value).label("outcome", outcome)
        }));
        metrics
    }
}

async fn speaks_tls(stream: &TcpStream) -> std::io::Result<bool> {
    let mut first = [0];
    Ok(stream.peek(&mut first).await? == 0 || first[0] == HANDSHAKE_RECORD)
}

/// Answers plaintext HTTP on a TLS port.
async fn tell(stream: &mut TcpStream, well: bool) {
    let status = if well { "400 Bad Request" } else { "503 Service Unavailable" };
    let body = "This port speaks HTTPS: open the same address with https:// before it.\n";
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    // Unread data would make TCP reset the connection and discard the answer (RFC 9112 §9.6).
    let mut unread = [0; 1024];
    let read = async { while matches!(stream.read(&mut unread).await, Ok(n) if n > 0) {} };
    let _ = tokio::time::timeout(LINGER, read).await;
}

fn read(certificate: &[u8], key: &[u8]) -> Result<(ServerConfig, u64), TlsError> {
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|e| TlsError::Certificate(e.to_string()))?;
    let Some(first) = chain.first() else {
        return Err(TlsError::Certificate("no `BEGIN CERTIFICATE`".to_owned()));
    };
    let parsed = CertificateInner::<Raw>::from_der(first)
        .map_err(|e| TlsError::Certificate(e.to_string()))?;
    let not_after = parsed.tbs_certificate().validity().not_after.to_unix_duration();
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| TlsError::Key(e.to_string()))?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    // WebSockets need HTTP/1.1.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((config, not_after.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_or_key_is_refused_by_name() {
        assert!(matches!(Tls::new(b"", b""), Err(TlsError::Certificate(_))));
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        assert!(matches!(Tls::new(certificate.as_bytes(), b"x"), Err(TlsError::Key(_))));
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let other = other.signing_key.serialize_pem();
        assert!(matches!(
            Tls::new(certificate.as_bytes(), other.as_bytes()),
            Err(TlsError::Pair(_))
        ));
        let tls = Tls::new(certificate.as_bytes(), key.as_bytes()).unwrap();
        // rcgen's default, 4096-01-01.
        assert_eq!(tls.shared.not_after.load(Ordering::Relaxed), 67_090_118_400);
    }

    #[test]
    fn a_certificate_that_cannot_be_used_leaves_the_former_in_place() {
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        let tls = Tls::new(certificate.as_bytes(), key.as_bytes()).unwrap();
        let before = tls.shared.config.read().clone();
        assert!(tls.replace(b"", key.as_bytes()).is_err());
        assert!(Arc::ptr_eq(&before, &tls.shared.config.read()));
        tls.replace(certificate.as_bytes(), key.as_bytes()).unwrap();
        assert!(!Arc::ptr_eq(&before, &tls.shared.config.read()));
    }
}
