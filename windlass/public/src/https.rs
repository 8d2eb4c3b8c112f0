//! HTTPS client for the ACME server, which trusts the system's certificates.

use std::future::Future;
use std::io::{Error as IoError, ErrorKind};
use std::pin::Pin;
use std::time::Duration;

use http_body_util::Limited;
use hyper::Request;
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};

/// Maximum time for the head of an answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum bytes of an answer. The largest real ones are certificates with their chains.
const MAX_ANSWER: usize = 1 << 20;

/// An HTTPS client.
pub(crate) struct Https(Client<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>);

impl Https {
    /// Creates a client that trusts this system's certificates (also those that `SSL_CERT_FILE` names).
    pub(crate) fn new() -> std::io::Result<Https> {
        let connector = HttpsConnectorBuilder::new().with_native_roots()?.https_only();
        let connector = connector.enable_http1().build();
        Ok(Https(Client::builder(TokioExecutor::new()).build(connector)))
    }
}

impl HttpClient for Https {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let asked = self.0.request(request);
        Box::pin(async move {
            let late = |_| Error::Other(Box::new(IoError::from(ErrorKind::TimedOut)));
            let answer = tokio::time::timeout(TIMEOUT, asked).await.map_err(late)?;
            let answer = answer.map_err(|error| Error::Other(Box::new(error)))?;
            Ok(BytesResponse::from(answer.map(|body| Limited::new(body, MAX_ANSWER))))
        })
    }
}
