//! HTTPS: TLS handshakes, and the certificate, which may be replaced while the server runs.
//!
//! An ACME server that looks whether a name leads here (TLS-ALPN-01, RFC 8737) gets another certificate, and nothing
//! more.

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
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
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
/// ALPN protocol that an ACME server offers alone (RFC 8737 §3).
const CHALLENGE: &[u8] = b"acme-tls/1";

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

type Challenge = Arc<RwLock<Option<Arc<CertifiedKey>>>>;

/// The certificates that a handshake may get.
#[derive(Debug)]
struct Certificates {
    usual: Arc<CertifiedKey>,
    challenge: Challenge,
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if hello.alpn().is_some_and(|names| names.eq([CHALLENGE])) {
            return self.challenge.read().clone();
        }
        Some(self.usual.clone())
    }
}

struct Shared {
    config: RwLock<Arc<ServerConfig>>,
    challenge: Challenge,
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
        // The debug form leaves out the key.
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
        let challenge = Challenge::default();
        let (config, not_after) = read(certificate, key, &challenge)?;
        let zero = AtomicU64::default;
        let shared = Shared {
            config: RwLock::new(Arc::new(config)),
            challenge,
            not_after: AtomicU64::new(not_after),
            done: zero(),
            failed: zero(),
            slow: zero(),
            refused: zero(),
            plain: zero(),
        };
        Ok(Tls { shared: Arc::new(shared) })
    }

    /// Time at which the certificate expires, in seconds since 1970.
    pub fn not_after(&self) -> u64 {
        self.shared.not_after.load(Ordering::Relaxed)
    }

    /// Replaces the certificate for new connections. A certificate that cannot be used changes nothing.
    ///
    /// # Errors
    ///
    /// Fails where [`Tls::new`] does.
    pub fn replace(&self, certificate: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let (config, not_after) = read(certificate, key, &self.shared.challenge)?;
        *self.shared.config.write() = Arc::new(config);
        self.shared.not_after.store(not_after, Ordering::Relaxed);
        Ok(())
    }

    /// Sets the certificate and key, both PEM, that ACME servers get in handshakes from now on. With none, these
    /// handshakes fail, as at first.
    ///
    /// # Errors
    ///
    /// Fails if a text is not PEM of its kind, or the key is not supported.
    pub fn answer_challenge(&self, pair: Option<(&[u8], &[u8])>) -> Result<(), TlsError> {
        let answer = match pair {
            None => None,
            Some((certificate, key)) => {
                let (chain, key) = parse(certificate, key)?;
                let key = aws_lc_rs::sign::any_supported_type(&key)?;
                // The certificate has a critical extension for the ACME server alone, so the pair is not checked.
                Some(Arc::new(CertifiedKey::new(chain, key)))
            }
        };
        *self.shared.challenge.write() = answer;
        Ok(())
    }

    /// The connection after its handshake; `None`: the handshake failed, was counted, and the connection is closed.
    /// Plaintext HTTP is answered with an explanation, and with whether the server is `well`, since health checks may
    /// not use TLS.
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
                answer(&mut stream, well).await;
                return Err(ErrorKind::InvalidData.into());
            }
            acceptor.accept(stream).await
        };
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(mut stream)) => {
                count(&shared.done);
                if stream.get_ref().1.alpn_protocol() == Some(CHALLENGE) {
                    // The handshake with the challenge's certificate was the answer.
                    let _ = tokio::time::timeout(LINGER, stream.shutdown()).await;
                    return None;
                }
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
async fn answer(stream: &mut TcpStream, well: bool) {
    let status = if well { "400 Bad Request" } else { "503 Service Unavailable" };
    let body = "This port of a Windlass server speaks HTTPS: open the same address with https:// before it.\n";
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

type Parsed = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn parse(certificate: &[u8], key: &[u8]) -> Result<Parsed, TlsError> {
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|e| TlsError::Certificate(e.to_string()))?;
    if chain.is_empty() {
        return Err(TlsError::Certificate("no `BEGIN CERTIFICATE`".to_owned()));
    }
    Ok((chain, PrivateKeyDer::from_pem_slice(key).map_err(|e| TlsError::Key(e.to_string()))?))
}

fn read(
    certificate: &[u8],
    key: &[u8],
    challenge: &Challenge,
) -> Result<(ServerConfig, u64), TlsError> {
    let (chain, key) = parse(certificate, key)?;
    let usual = Arc::new(CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())?);
    let parsed = CertificateInner::<Raw>::from_der(&usual.cert[0])
        .map_err(|e| TlsError::Certificate(e.to_string()))?;
    let not_after = parsed.tbs_certificate().validity().not_after.to_unix_duration();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Certificates { usual, challenge: challenge.clone() }));
    // WebSockets need HTTP/1.1.
    config.alpn_protocols = vec![b"http/1.1".to_vec(), CHALLENGE.to_vec()];
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

    type Made = rcgen::CertifiedKey<rcgen::KeyPair>;

    /// What a client that trusts `trusted` and offers this protocol gets; none where the handshake fails.
    async fn shown(tls: &Tls, trusted: &Made, protocol: &[u8]) -> Option<CertificateDer<'static>> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(trusted.cert.der().clone()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let client = async {
            let stream = TcpStream::connect(addr).await.unwrap();
            let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
            let stream = connector.connect("localhost".try_into().unwrap(), stream).await.ok()?;
            Some(stream.get_ref().1.peer_certificates()?[0].clone().into_owned())
        };
        let server = async { tls.accept(listener.accept().await.unwrap().0, true).await };
        let (shown, connection) = tokio::join!(client, server);
        assert_eq!(connection.is_some(), protocol != CHALLENGE, "a challenge opens nothing");
        shown
    }

    #[tokio::test]
    async fn an_acme_server_gets_the_answer_to_its_challenge_and_nobody_else_does() {
        let made = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (usual, answer) = (made(), made());
        let pem = |made: &Made| (made.cert.pem(), made.signing_key.serialize_pem());
        let (certificate, key) = pem(&usual);
        let tls = Tls::new(certificate.as_bytes(), key.as_bytes()).unwrap();
        assert_eq!(shown(&tls, &usual, CHALLENGE).await, None, "nobody asked for one");
        let (challenge, challenge_key) = pem(&answer);
        tls.answer_challenge(Some((challenge.as_bytes(), challenge_key.as_bytes()))).unwrap();
        // A renewed certificate takes nothing away from it.
        tls.replace(certificate.as_bytes(), key.as_bytes()).unwrap();
        assert_eq!(shown(&tls, &answer, CHALLENGE).await.as_ref(), Some(answer.cert.der()));
        assert_eq!(shown(&tls, &usual, b"http/1.1").await.as_ref(), Some(usual.cert.der()));
        tls.answer_challenge(None).unwrap();
        assert_eq!(shown(&tls, &answer, CHALLENGE).await, None);
    }
}
