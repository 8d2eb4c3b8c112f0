//! HTTPS under a client that checks the certificate.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A connection whose certificate was checked against what is trusted (PEM).
pub(crate) fn connect(addr: SocketAddr, trusted: &[u8], name: &str) -> Result<Stream, String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = name.to_owned().try_into().unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|e| e.to_string())?;
    }
    Ok(StreamOwned::new(connection, stream))
}

/// Status line, head and body of an answer.
pub(crate) fn get_of(mut stream: Stream, host: &str, path: &str) -> String {
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // A server may end without TLS's own farewell.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
