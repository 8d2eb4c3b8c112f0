//! TLS between the machines of a cluster: both sides show a certificate of its authority, which says by a name what its machine is there for, and both read
//! theirs again when they have changed.
//!
//! The name is that of a [`Role`], not of a machine: certificates need no addresses in them, and an enhancer's is of no use to whoever wants to pass for a
//! server. Source: decision 025.

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

/// Handshakes at a time; whoever comes then is let go.
const HANDSHAKES: usize = 64;
/// What one may take.
const HANDSHAKE: Duration = Duration::from_secs(3);
/// Connections that wait for whoever serves them.
const WAITING: usize = 16;

/// What a machine of a cluster is there for, as its certificate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It serves rooms.
    Server,
    /// It enhances.
    Enhancer,
}

impl Role {
    /// The DNS name that its certificate is good for.
    pub fn name(self) -> &'static str {
        match self {
            Role::Server => "windlass-sfu",
            Role::Enhancer => "windlass-enhancer",
        }
    }
}

/// Where authority, certificate and key lie (PEM).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The authority.
    pub ca: PathBuf,
    /// The machine's certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl Files {
    /// All of them.
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
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        why: std::io::Error,
    },
    /// What is in one is not what it should be, or they do not go together.
    #[error("{}: {why}", file.display())]
    Content {
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// It is not one of its machine's role.
    #[error(
        "{}: it is not good for `{name}`, by which others know what this machine is there for: make it with that DNS name (subjectAltName)",
        file.display()
    )]
    Role {
        /// The certificate.
        file: PathBuf,
        /// What it should be good for.
        name: &'static str,
    },
}

/// A machine's own certificate, and what it asks of others'. A clone is the same.
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
    /// Another for each time that the files were read.
    generation: u64,
    server: Arc<ServerConfig>,
    client: ClientTlsConfig,
    not_after: u64,
}

impl Mutual {
    /// Reads what lies there, of a machine with that role.
    pub fn load(files: &Files, role: Role) -> Result<Mutual, MutualError> {
        let current = RwLock::new(read(files, role, 0)?);
        let shared = Shared { files: files.clone(), role, current, refused: AtomicU64::new(0) };
        Ok(Mutual(Arc::new(shared)))
    }

    /// Reads it again, for connections from now on. What cannot be used changes nothing.
    pub fn reload(&self) -> Result<(), MutualError> {
        let generation = self.generation() + 1;
        *self.0.current.write() = read(&self.0.files, self.0.role, generation)?;
        Ok(())
    }

    /// Another one after each reload.
    pub fn generation(&self) -> u64 {
        self.0.current.read().generation
    }

    /// When its own certificate ends, in seconds since 1970.
    pub fn not_after(&self) -> u64 {
        self.0.current.read().not_after
    }

    /// Connections that were let go because whoever came had no certificate of the role that was asked for.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// What goes with a connection to a machine of that role.
    pub fn to(&self, role: Role) -> ClientTlsConfig {
        self.0.current.read().client.clone().domain_name(role.name())
    }

    /// Connections of whoever comes and has that role.
    pub fn incoming(
        &self,
        listener: TcpListener,
        admits: Role,
    ) -> impl Stream<Item = std::io::Result<TlsStream<TcpStream>>> + use<> {
        let (ready, connections) = mpsc::channel(WAITING);
        let shared = self.0.clone();
        tokio::spawn(async move {
            let turns = Arc::new(Semaphore::new(HANDSHAKES));
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = ready.closed() => return,
                };
                let Ok((stream, _)) = accepted else {
                    // Too many open files, as a rule: it passes.
                    tokio::time::sleep(HANDSHAKE / 30).await;
                    continue;
                };
                let Ok(turn) = turns.clone().try_acquire_owned() else { continue };
                let (shared, ready) = (shared.clone(), ready.clone());
                tokio::spawn(async move {
                    match timeout(HANDSHAKE, accept(&shared, stream, admits)).await {
                        Ok(Ok(stream)) => {
                            let _ = ready.send(Ok(stream)).await;
                        }
                        Ok(Err(error)) => {
                            shared.refused.fetch_add(1, Ordering::Relaxed);
                            tracing::debug!(%error, "refused a machine without a certificate");
                        }
                        Err(_) => {
                            shared.refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    drop(turn);
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
    let own = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    if own.is_some_and(|own| is_good_for(own, admits)) {
        Ok(stream)
    } else {
        Err(std::io::Error::other("its certificate is another role's"))
    }
}

fn is_good_for(certificate: &CertificateDer<'_>, role: Role) -> bool {
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
    if !is_good_for(&certificates[0], role) {
        let file = files.certificate.clone();
        return Err(MutualError::Role { file, name: role.name() });
    }
    let not_after = x509_parser::parse_x509_certificate(&certificates[0])
        .map_err(|why| wrong(&files.certificate, why.to_string()))?
        .1
        .validity()
        .not_after
        .timestamp();
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
    let not_after = u64::try_from(not_after).unwrap_or_default();
    Ok(Current { generation, server: Arc::new(server), client, not_after })
}

#[cfg(test)]
#[path = "mutual_tests.rs"]
mod tests;
