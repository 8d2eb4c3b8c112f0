//! Mutual TLS between the machines of a cluster. Both sides present a certificate of the cluster's authority, and
//! reload it when its files change.
//!
//! Certificates name a [`Role`], not a machine: they need no addresses, and an enhancer cannot act as a server with its
//! own. Source: decision 025.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode;

/// Maximum number of concurrent handshakes; further connections are closed.
const MAX_HANDSHAKES: usize = 64;
/// Time limit of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);
/// Capacity of the queue of ready connections.
const READY_QUEUE: usize = 16;
/// Pause after a failed `accept`.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Role of a machine in a cluster, as its certificate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An SFU.
    Server,
    /// An enhancer for SFUs.
    Enhancer,
}

impl Role {
    /// The DNS name (subjectAltName) in the certificate of a machine with this role.
    pub fn name(self) -> &'static str {
        match self {
            Role::Server => "windlass-sfu",
            Role::Enhancer => "windlass-enhancer",
        }
    }
}

/// Files of authority, certificate and key (PEM).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Certificates of the authority.
    pub ca: PathBuf,
    /// This machine's certificate.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
}

impl Files {
    /// All three files.
    pub fn all(&self) -> [&Path; 3] {
        [&self.ca, &self.certificate, &self.key]
    }
}

/// Why certificates cannot be used.
#[derive(Debug, Error)]
pub enum MutualError {
    /// A file cannot be read.
    #[error("cannot read {}: {why}", file.display())]
    File {
        /// The file that cannot be read.
        file: PathBuf,
        /// Why the file cannot be read.
        why: std::io::Error,
    },
    /// A file has no valid content, or key and certificate do not match.
    #[error("cannot use {}: {why}", file.display())]
    Content {
        /// The file that cannot be used.
        file: PathBuf,
        /// What is wrong with the content.
        why: String,
    },
    /// The certificate is for another role.
    #[error(
        "{}: the certificate lacks the DNS name `{name}`, which states this machine's role: create it with that subjectAltName",
        file.display()
    )]
    Role {
        /// The certificate.
        file: PathBuf,
        /// The DNS name of this machine's role.
        name: &'static str,
    },
}

/// Certificate of this machine, and the check of other machines' certificates. Clones share one state.
#[derive(Clone)]
pub struct Mutual(Arc<Shared>);

struct Shared {
    files: Files,
    role: Role,
    current: RwLock<Current>,
    refused: AtomicU64,
}

#[derive(Clone)]
struct Current {
    /// Number of reloads.
    generation: u64,
    server: Arc<ServerConfig>,
    client: ClientTlsConfig,
    not_after: u64,
}

impl Mutual {
    /// Reads the files of a machine with that role.
    ///
    /// # Errors
    ///
    /// A file cannot be read or used.
    pub fn load(files: &Files, role: Role) -> Result<Mutual, MutualError> {
        let current = RwLock::new(read(files, role, 0)?);
        let shared = Shared { files: files.clone(), role, current, refused: AtomicU64::new(0) };
        Ok(Mutual(Arc::new(shared)))
    }

    /// Reads the files again, for new connections.
    ///
    /// # Errors
    ///
    /// A file cannot be read or used; the former certificate stays in use.
    pub fn reload(&self) -> Result<(), MutualError> {
        let generation = self.generation() + 1;
        *self.0.current.write() = read(&self.0.files, self.0.role, generation)?;
        Ok(())
    }

    /// Number of successful reloads.
    pub fn generation(&self) -> u64 {
        self.0.current.read().generation
    }

    /// When the certificate expires, in seconds since 1970.
    pub fn not_after(&self) -> u64 {
        self.0.current.read().not_after
    }

    /// Number of connections that were refused for lack of a certificate of the required role.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// The client's TLS configuration for connections to a machine of that role.
    pub fn to(&self, role: Role) -> ClientTlsConfig {
        self.0.current.read().client.clone().domain_name(role.name())
    }

    /// Accepts connections of machines with the role `admits`.
    pub fn incoming(
        &self,
        listener: TcpListener,
        admits: Role,
    ) -> impl Stream<Item = std::io::Result<TlsStream<TcpStream>>> + use<> {
        let (ready, connections) = mpsc::channel(READY_QUEUE);
        let shared = self.0.clone();
        tokio::spawn(async move {
            let permits = Arc::new(Semaphore::new(MAX_HANDSHAKES));
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = ready.closed() => return,
                };
                let Ok((stream, _)) = accepted else {
                    // Usually too many open files, for a while.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let Ok(permit) = permits.clone().try_acquire_owned() else { continue };
                let (shared, ready) = (shared.clone(), ready.clone());
                tokio::spawn(async move {
                    match timeout(HANDSHAKE_TIMEOUT, accept(&shared, stream, admits)).await {
                        Ok(Ok(stream)) => {
                            let _ = ready.send(Ok(stream)).await;
                        }
                        Ok(Err(error)) => {
                            shared.refused.fetch_add(1, Ordering::Relaxed);
                            tracing::debug!(%error, "refused a connection without a certificate of the required role");
                        }
                        Err(_) => {
                            shared.refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    drop(permit);
                });
            }
        });
        ReceiverStream::new(connections)
    }
}

async fn accept(
    shared: &Shared,
    stream: TcpStream,
    admits: Role,
) -> std::io::Result<TlsStream<TcpStream>> {
    stream.set_nodelay(true)?;
    let config = shared.current.read().server.clone();
    let stream = TlsAcceptor::from(config).accept(stream).await?;
    let peer = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    if peer.is_some_and(|peer| is_valid_for(peer, admits)) {
        Ok(stream)
    } else {
        Err(std::io::Error::other("the certificate is for another role"))
    }
}

fn is_valid_for(certificate: &CertificateDer<'_>, role: Role) -> bool {
    let Ok(name) = ServerName::try_from(role.name()) else { return false };
    ParsedCertificate::try_from(certificate)
        .is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
}

fn read(files: &Files, role: Role, generation: u64) -> Result<Current, MutualError> {
    let text = |file: &Path| {
        std::fs::read(file).map_err(|why| MutualError::File { file: file.to_owned(), why })
    };
    let (ca, own, key) = (text(&files.ca)?, text(&files.certificate)?, text(&files.key)?);
    let wrong = |file: &Path, why: String| MutualError::Content { file: file.to_owned(), why };
    let chain = |file: &Path, pem: &[u8]| {
        let all = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let all = all.map_err(|why| wrong(file, why.to_string()))?;
        if all.is_empty() { Err(wrong(file, "no `BEGIN CERTIFICATE`".to_owned())) } else { Ok(all) }
    };
    let mut roots = RootCertStore::empty();
    for authority in chain(&files.ca, &ca)? {
        roots.add(authority).map_err(|why| wrong(&files.ca, why.to_string()))?;
    }
    let certificates = chain(&files.certificate, &own)?;
    if !is_valid_for(&certificates[0], role) {
        let file = files.certificate.clone();
        return Err(MutualError::Role { file, name: role.name() });
    }
    let parsed = CertificateInner::<Raw>::from_der(&certificates[0])
        .map_err(|why| wrong(&files.certificate, why.to_string()))?;
    let not_after = parsed.tbs_certificate().validity().not_after.to_unix_duration().as_secs();
    let private = PrivateKeyDer::from_pem_slice(&key);
    let private = private.map_err(|why| wrong(&files.key, why.to_string()))?;
    let provider: Arc<CryptoProvider> = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
    let verifier = verifier.build().map_err(|why| wrong(&files.ca, why.to_string()))?;
    let pair = |why: rustls::Error| wrong(&files.key, why.to_string());
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(pair)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates, private)
        .map_err(pair)?;
    server.alpn_protocols = vec![b"h2".to_vec()];
    let client = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(ca))
        .identity(Identity::from_pem(own, key));
    Ok(Current { generation, server: Arc::new(server), client, not_after })
}

#[cfg(test)]
#[path = "mutual_tests.rs"]
mod tests;
