//! Requests to the admin API by HTTP, and their errors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use hyper::{Method, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;
use windlass_signaling::access::BadKey;

/// Maximum time for an answer. Stopping the enhancer takes the longest, because its threads end first.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum size of an answer in bytes: enough for some tens of thousands of participants.
const MAX_ANSWER: usize = 32 << 20;

/// Header of an answer with the number of servers of a cluster that answered, and of all: `2/3`.
const SERVERS: &str = "windlass-servers";

/// Number of servers that did not answer, by the value of the header [`SERVERS`].
fn silent(servers: &str) -> usize {
    let number = |text: &str| text.parse::<usize>().unwrap_or(0);
    servers
        .split_once('/')
        .map_or(0, |(answered, all)| number(all).saturating_sub(number(answered)))
}

/// A request to the admin API.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Method of the request.
    pub method: Method,
    /// Path of the request, percent-encoded.
    pub path: String,
    /// Body of the request; `None` if it has none.
    pub body: Option<Value>,
}

impl Request {
    /// Creates a request without a body. `path` has the unescaped segments of the path after `/admin`.
    pub fn new(method: Method, path: &[&str]) -> Request {
        let segment =
            |segment: &&str| format!("/{}", utf8_percent_encode(segment, NON_ALPHANUMERIC));
        let path = format!("/admin{}", path.iter().map(segment).collect::<String>());
        Request { method, path, body: None }
    }

    /// Returns this request with the given body.
    #[must_use]
    pub fn with(self, body: Value) -> Request {
        Request { body: Some(body), ..self }
    }
}

/// Why a server did not do what an operator asked for.
#[derive(Debug, Error)]
pub enum AdminError {
    /// The text is not the address of a server.
    #[error(
        "`{0}` is not the address of a server, such as http://127.0.0.1:7880 or https://calls.example"
    )]
    Address(String),
    /// The system's certificates, with which the server's is verified, cannot be read.
    #[error(
        "the system's certificates cannot be read: {0}; install them (Debian: ca-certificates)"
    )]
    Certificates(std::io::Error),
    /// There is no connection, or it ended.
    #[error("no answer from {server}: {source}; see that it runs, or name another by --server")]
    Unreachable {
        /// Address of the server.
        server: String,
        /// Error of the connection.
        source: hyper_util::client::legacy::Error,
    },
    /// The server did not answer in time.
    #[error("no answer from {server} within {} s: check that it runs and that a firewall lets requests through", TIMEOUT.as_secs())]
    Late {
        /// Address of the server.
        server: String,
    },
    /// The server refused the request.
    #[error("{message}. {hint}")]
    Refused {
        /// Reason of the refusal, for programs.
        code: String,
        /// Description of what happened.
        message: String,
        /// Advice on what to do next.
        hint: String,
    },
    /// The answer does not come from the admin API.
    #[error(
        "{server} does not answer as a Windlass server does ({status}); see that --server names one"
    )]
    Foreign {
        /// Address of the server.
        server: String,
        /// HTTP status of the answer.
        status: hyper::StatusCode,
    },
    /// No participant or track of the room has this name.
    #[error(
        "nobody and no track in the room {room} is called `{name}`; `windlass room {room}` shows them"
    )]
    Unknown {
        /// Name of the room.
        room: String,
        /// Name that was asked for.
        name: String,
    },
    /// Several participants of the room have this name.
    #[error("{count} participants in the room are called `{name}`: name one by its id ({ids})")]
    Ambiguous {
        /// Name that was asked for.
        name: String,
        /// Number of participants with this name.
        count: usize,
        /// Ids of these participants.
        ids: String,
    },
    /// The participant has no identity, so that it cannot be banned.
    #[error(
        "`{0}` has no identity, as without access tokens nobody has: remove it without --ban, or lock the room"
    )]
    NoIdentity(String),
    /// The system gives no sockets or timers.
    #[error(
        "no request can be made on this machine: {0}; check its limits of open files and threads"
    )]
    Runtime(std::io::Error),
    /// The file with the access token cannot be read.
    #[error("--token: the file with the access token cannot be read: {0}")]
    Token(std::io::Error),
    /// The key cannot sign tokens.
    #[error("--key: {0}")]
    Key(#[from] BadKey),
}

/// Body of a refusal by the admin API.
#[derive(Deserialize)]
struct Refusal {
    code: String,
    message: String,
    hint: String,
}

type Http = hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A client of one server's admin API.
///
/// ```
/// use windlass_admin::{Client, Action, perform};
/// # use std::{sync::Arc, time::Duration};
/// # use windlass_sfu::{EnhancerSinks, Sfu, SfuConfig};
/// # use windlass_signaling::{MetricSource, Services, Signaling, SignalingConfig};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let media = SfuConfig { udp: ([127, 0, 0, 1], 0).into(), ..SfuConfig::default() };
/// # let sfu = Sfu::start(&media, &EnhancerSinks::none())?;
/// # let services = Services {
/// #     sfu: sfu.handle(),
/// #     enhancer_switch: Arc::new(|_| false),
/// #     metrics: MetricSource::default(),
/// #     drain: Arc::new(|| Duration::ZERO),
/// #     recorder: None,
/// #     cluster: None,
/// # };
/// # let config = SignalingConfig { admin_local: true, ..SignalingConfig::default() };
/// # let signaling = Signaling::new(config, services)?;
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let server = listener.local_addr()?;
/// # let serving = async move {
/// #     signaling.serve(listener, axum::Router::new(), std::future::pending(), Duration::ZERO).await;
/// # };
/// # tokio::spawn(serving);
/// // `server` has no token keys, and lets programs of its own machine administer it.
/// let client = Client::new(&format!("http://{server}"), None)?;
/// let limit = Action::Limit { room: "tea".to_owned(), max_participants: 3 };
/// perform(&client, &limit).await?;
/// let report = perform(&client, &Action::Room { room: "tea".to_owned() }).await?;
/// assert_eq!(report.json["max_participants"], 3);
/// # Ok(())
/// # }
/// ```
pub struct Client {
    http: Http,
    server: String,
    token: Option<String>,
    silent: AtomicUsize,
}

impl Client {
    /// Creates a client of the server at this address (`http://127.0.0.1:7880`); it does not connect yet. `token` is an
    /// access token that grants `admin`. Without one, a server accepts requests from its own machine only, if at all.
    ///
    /// # Errors
    ///
    /// Fails if the address is not that of a server, or if it is HTTPS and the system has no certificates.
    pub fn new(server: &str, token: Option<String>) -> Result<Client, AdminError> {
        let wrong = || AdminError::Address(server.to_owned());
        let uri: Uri = server.parse().map_err(|_| wrong())?;
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        let builder = HttpsConnectorBuilder::new();
        let builder = if secure {
            builder.with_native_roots().map_err(AdminError::Certificates)?
        } else {
            let none = rustls::RootCertStore::empty();
            let tls = rustls::ClientConfig::builder().with_root_certificates(none);
            builder.with_tls_config(tls.with_no_client_auth())
        };
        let connector = builder.https_or_http().enable_http1().wrap_connector(connector);
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
        let http = http.build(connector);
        Ok(Client {
            http,
            server: server.trim_end_matches('/').to_owned(),
            token,
            silent: AtomicUsize::new(0),
        })
    }

    /// The largest number of servers of the cluster that did not answer a request.
    pub(crate) fn silent(&self) -> usize {
        self.silent.load(Ordering::Relaxed)
    }

    /// Sends a request; returns the answer's body, or null if it has none.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer, the server refuses, or the answer does not come from the admin API.
    pub async fn send(&self, request: Request) -> Result<Value, AdminError> {
        let Request { method, path, body } = request;
        let server = self.server.clone();
        let mut head = hyper::Request::builder()
            .method(method)
            .uri(format!("{server}{path}"))
            .header(USER_AGENT, concat!("windlass/", env!("CARGO_PKG_VERSION")));
        if let Some(token) = &self.token {
            head = head.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if body.is_some() {
            head = head.header(CONTENT_TYPE, "application/json");
        }
        let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
        let request =
            head.body(Full::new(body)).map_err(|_| AdminError::Address(server.clone()))?;
        let answer = async {
            let answer = self
                .http
                .request(request)
                .await
                .map_err(|source| AdminError::Unreachable { server: server.clone(), source })?;
            let status = answer.status();
            let servers = answer.headers().get(SERVERS).and_then(|value| value.to_str().ok());
            self.silent.fetch_max(servers.map_or(0, silent), Ordering::Relaxed);
            let foreign = || AdminError::Foreign { server: server.clone(), status };
            let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
            let body = body.map_err(|_| foreign())?.to_bytes();
            if status.is_success() && body.is_empty() {
                return Ok(Value::Null);
            }
            if status.is_success() {
                return serde_json::from_slice(&body).map_err(|_| foreign());
            }
            let Refusal { code, message, hint } =
                serde_json::from_slice(&body).map_err(|_| foreign())?;
            Err(AdminError::Refused { code, message, hint })
        };
        let late = |_| AdminError::Late { server: server.clone() };
        tokio::time::timeout(TIMEOUT, answer).await.map_err(late)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_segment_of_a_path() {
        let path = |segments: &[&str]| Request::new(Method::GET, segments).path;
        assert_eq!(path(&["rooms"]), "/admin/rooms");
        assert_eq!(path(&["rooms", "a/b ?", "bans", "é"]), "/admin/rooms/a%2Fb%20%3F/bans/%C3%A9");
    }

    #[test]
    fn servers_that_did_not_answer_are_counted() {
        for (servers, count) in [("3/3", 0), ("1/3", 2), ("", 0), ("x/y", 0)] {
            assert_eq!(silent(servers), count, "{servers}");
        }
    }

    #[test]
    fn only_addresses_of_servers_are_taken() {
        assert!(Client::new("http://127.0.0.1:7880/", None).is_ok());
        for wrong in ["127.0.0.1:7880", "ws://calls.example", "calls.example", ""] {
            assert!(matches!(Client::new(wrong, None), Err(AdminError::Address(_))), "{wrong}");
        }
    }
}
