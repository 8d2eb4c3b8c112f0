//! The requests to an S3-compatible store: signed addresses of `rusty-s3`, sent by `hyper`.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::ETAG;
use hyper::{Method, Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rusty_s3::S3Action;
use rusty_s3::actions::{
    CompleteMultipartUpload, CompleteMultipartUploadResponse, CreateMultipartUpload,
};

use super::address::Account;

/// How long a signed address is good for. It is longer than any request may take.
const GOOD_FOR: Duration = Duration::from_secs(3600);
/// Maximum time of a request. A part of 16 MiB is sent in it at 150 kbit/s.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Maximum bytes of an answer. The store's answers are short texts.
const MAX_ANSWER: usize = 64 << 10;
/// Maximum length of the store's words in an error, in characters.
const MAX_TOLD: usize = 300;

/// Why the store does not have what was sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    /// There is no answer.
    #[error(
        "the store does not answer ({0}): see that it runs, and that AWS_ENDPOINT_URL is its address"
    )]
    Unreachable(String),
    /// The store refuses.
    #[error(
        "refused with status {status}: {reason}; check the bucket, AWS_REGION and the credentials"
    )]
    Refused {
        /// HTTP status of the answer.
        status: StatusCode,
        /// The store's words.
        reason: String,
    },
    /// The answer is not one of a store.
    #[error("the answer is not that of an S3-compatible store: check AWS_ENDPOINT_URL")]
    Answer,
}

impl StoreError {
    /// The error with all its causes: the client's own words do not say why.
    fn unreachable(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
        StoreError::Unreachable(format!("{:#}", anyhow::Error::new(error)))
    }
}

/// A client of one bucket.
pub(super) struct Client {
    account: Account,
    http: HttpClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// An answer that is not a refusal.
struct Answer {
    etag: Option<String>,
    text: String,
}

impl Client {
    /// A client that trusts this system's certificates.
    pub(super) fn new(account: Account) -> std::io::Result<Client> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(Duration::from_secs(10)));
        let builder = HttpsConnectorBuilder::new().with_native_roots()?.https_or_http();
        let connector = builder.enable_http1().wrap_connector(connector);
        Ok(Client { account, http: HttpClient::builder(TokioExecutor::new()).build(connector) })
    }

    /// Asks whether the bucket is there.
    pub(super) async fn head(&self) -> Result<(), StoreError> {
        let Account { bucket, credentials } = &self.account;
        let url = bucket.head_bucket(Some(credentials)).sign(GOOD_FOR);
        self.ask(Method::HEAD, url.as_str(), Bytes::new()).await.map(|_| ())
    }

    /// Sends a whole object.
    pub(super) async fn put(&self, object: &str, bytes: Bytes) -> Result<(), StoreError> {
        let Account { bucket, credentials } = &self.account;
        let url = bucket.put_object(Some(credentials), object).sign(GOOD_FOR);
        self.ask(Method::PUT, url.as_str(), bytes).await.map(|_| ())
    }

    /// Begins an object that is sent in parts. Returns the upload's id.
    pub(super) async fn begin(&self, object: &str) -> Result<String, StoreError> {
        let Account { bucket, credentials } = &self.account;
        let url = bucket.create_multipart_upload(Some(credentials), object).sign(GOOD_FOR);
        let answer = self.ask(Method::POST, url.as_str(), Bytes::new()).await?;
        let begun = CreateMultipartUpload::parse_response(&answer.text);
        begun.map(|begun| begun.upload_id().to_owned()).map_err(|_| StoreError::Answer)
    }

    /// Sends a part, the first of which has number 1. Returns the store's tag of it.
    pub(super) async fn part(
        &self,
        object: &str,
        upload: &str,
        number: u16,
        bytes: Bytes,
    ) -> Result<String, StoreError> {
        let Account { bucket, credentials } = &self.account;
        let url = bucket.upload_part(Some(credentials), object, number, upload).sign(GOOD_FOR);
        let answer = self.ask(Method::PUT, url.as_str(), bytes).await?;
        answer.etag.ok_or(StoreError::Answer)
    }

    /// Has the store put all parts together.
    pub(super) async fn complete(
        &self,
        object: &str,
        upload: &str,
        etags: &[String],
    ) -> Result<(), StoreError> {
        let Account { bucket, credentials } = &self.account;
        let tags = || etags.iter().map(String::as_str);
        let action =
            CompleteMultipartUpload::new(bucket, Some(credentials), object, upload, tags());
        let url = action.sign(GOOD_FOR);
        let answer = self.ask(Method::POST, url.as_str(), action.body().into()).await?;
        // A store may find out that it cannot, after it has answered with 200.
        CompleteMultipartUploadResponse::parse(&answer.text).map_err(|_| StoreError::Refused {
            status: StatusCode::OK,
            reason: answer.text.chars().take(MAX_TOLD).collect(),
        })?;
        Ok(())
    }

    async fn ask(&self, method: Method, url: &str, body: Bytes) -> Result<Answer, StoreError> {
        let request = Request::builder().method(method).uri(url).body(Full::new(body));
        let request = request.map_err(StoreError::unreachable)?;
        let answered = async {
            let answer = self.http.request(request).await.map_err(StoreError::unreachable)?;
            let (head, body) = answer.into_parts();
            let bytes = Limited::new(body, MAX_ANSWER).collect().await;
            let bytes = bytes.map_err(|error| StoreError::Unreachable(error.to_string()))?;
            let text = String::from_utf8_lossy(&bytes.to_bytes()).into_owned();
            if !head.status.is_success() {
                let reason = text.chars().take(MAX_TOLD).collect();
                return Err(StoreError::Refused { status: head.status, reason });
            }
            let etag = head.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
            Ok(Answer { etag: etag.map(str::to_owned), text })
        };
        let late = |_| {
            StoreError::Unreachable(format!("nothing within {} minutes", TIMEOUT.as_secs() / 60))
        };
        tokio::time::timeout(TIMEOUT, answered).await.map_err(late)?
    }
}
