//! HTTPS: the certificate in use, which may be replaced while the server runs, and the handshake before a connection.

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
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::metrics::Metric;

/// How long a client may take for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client that was told something may take to hear it.
const LINGER: Duration = Duration::from_secs(1);
/// Handshakes at a time; a connection that comes while there are so many is closed.
const HANDSHAKES: usize = 256;
/// The first byte of a TLS handshake record (RFC 8446 §5.1).
const HANDSHAKE_RECORD: u8 = 22;

/// Why a certificate cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The certificate file is no PEM, or holds no certificate.
    #[error("there is no certificate in it: {0}")]
    Certificate(String),
    /// The key file is no PEM, or holds no private key.
    #[error("there is no private key in it: {0}")]
    Key(String),
    /// The two do not belong together, or are of a kind that is not supported.
    #[error("certificate and key cannot be used together: {0}")]
    Pair(#[from] rustls::Error),
}

/// The certificate that connections are given, and what handshakes came to. Clones are the same.
#[derive(Clone)]
pub struct Tls {
    shared: Arc<Shared>,
}

struct Shared {
    config: RwLock<Arc<ServerConfig>>,
    /// When the certificate ends, in seconds since 1970.
    not_after: AtomicU64,
    handshakes: Semaphore,
    done: AtomicU64,
    failed: AtomicU64,
    slow: AtomicU64,
    refused: AtomicU64,
    plain: AtomicU64,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing of the key.
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Serves by a certificate with its chain, and its private key, both PEM.
    pub fn new(certificate: &[u8], key: &[u8]) -> Result<Tls, TlsError> {
        let (config, not_after) = read(certificate, key)?;
        let zero = AtomicU64::default;
        let shared = Shared {
            config: RwLock::new(Arc::new(config)),
            not_after: AtomicU64::new(not_after),
            handshakes: Semaphore::new(HANDSHAKES),
            done: zero(),
            failed: zero(),
            slow: zero(),
            refused: zero(),
            plain: zero(),
        };
        Ok(Tls { shared: Arc::new(shared) })
    }

    /// Gives new connections another certificate; one that cannot be used changes nothing.
    pub fn replace(&self, certificate: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let (config, not_after) = read(certificate, key)?;
        *self.shared.config.write() = Arc::new(config);
        self.shared.not_after.store(not_after, Ordering::Relaxed);
        Ok(())
    }

    /// The connection after its handshake, or `None` where it came to nothing: counted, and the connection closed. Whoever asks in
    /// plain HTTP hears what is spoken here, and whether the server is `well`: health checks do not speak TLS.
    pub(crate) async fn accept(
        &self,
        mut stream: TcpStream,
        well: bool,
    ) -> Option<TlsStream<TcpStream>> {
        let shared = &self.shared;
        let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
        let Ok(_permit) = shared.handshakes.try_acquire() else {
            count(&shared.refused);
            return None;
        };
        let acceptor = TlsAcceptor::from(shared.config.read().clone());
        let handshake = async {
            if !speaks_tls(&stream).await? {
                count(&shared.plain);
                tell(&mut stream, well).await;
                return Err(ErrorKind::InvalidData.into());
            }
            acceptor.accept(stream).await
        };
        match tokio::time::timeout(HANDSHAKE, handshake).await {
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

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let s = &self.shared;
        let outcomes = [
            ("done", &s.done),
            ("failed", &s.failed),
            ("slow", &s.slow),
            ("refused", &s.refused),
            ("plain_http", &s.plain),
        ];
        let not_after = s.not_after.load(Ordering::Relaxed) as f64;
        let mut metrics =
            vec![Metric::gauge("tls_certificate_not_after_timestamp_seconds", not_after)];
        metrics.extend(outcomes.map(|(outcome, value)| {
            let metric = Metric::counter("tls_handshakes", value.load(Ordering::Relaxed));
            metric.labelled(format!("outcome=\"{outcome}\""))
        }));
        metrics
    }
}

async fn speaks_tls(stream: &TcpStream) -> std::io::Result<bool> {
    let mut first = [0];
    Ok(stream.peek(&mut first).await? == 0 || first[0] == HANDSHAKE_RECORD)
}

/// Says to somebody who speaks HTTP where TLS is spoken what is wrong.
async fn tell(stream: &mut TcpStream, well: bool) {
    let status = if well { "400 Bad Request" } else { "503 Service Unavailable" };
    let body = "This port speaks HTTPS: open the same address with https:// before it.\n";
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    // What is left unread would make the system throw the answer away (RFC 9112 §9.6).
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
    let not_after = x509_parser::parse_x509_certificate(first)
        .map_err(|e| TlsError::Certificate(e.to_string()))?
        .1
        .validity()
        .not_after
        .timestamp();
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| TlsError::Key(e.to_string()))?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    // WebSockets need HTTP/1.1.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((config, u64::try_from(not_after).unwrap_or_default()))
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
        assert!(Tls::new(certificate.as_bytes(), key.as_bytes()).is_ok());
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
