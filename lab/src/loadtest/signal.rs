//! The signalling of one client: JSON messages over a WebSocket (`docs/signaling.md`).

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail, ensure};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request as ClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use windlass_protocol::{
    ANCHOR_CODEC, AccessToken, Attributes, ClientMessage, Error, Grant, Join, Request,
    ServerMessage, VERSION, Welcome,
};
use windlass_signaling::access::{Claims, Grants, TokenKey};

/// Maximum time for a server to answer.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Time for which a token holds; tokens are made when a client joins.
const TOKEN_TTL: Duration = Duration::from_mins(10);
/// Maximum number of times that a client may be sent to another server.
const MAX_HOPS: usize = 4;

/// A server's address, from its URL.
#[derive(Debug, Clone)]
pub(super) struct ServerUrl {
    /// The authority part of the URL: `host:port`.
    pub authority: String,
    /// The key by which clients make their tokens, if the server wants any.
    key: Option<TokenKey>,
    /// The client's address in the `X-Forwarded-For` header, as a proxy writes it.
    forwarded_for: Option<IpAddr>,
}

impl ServerUrl {
    /// Reads a URL as `http://HOST[:PORT][/]`.
    pub(super) fn parse(url: &str) -> Result<ServerUrl> {
        let rest = url.strip_prefix("http://").with_context(|| {
            format!("{url}: give the server's own port as http://HOST:PORT; TLS is a proxy's")
        })?;
        let authority = rest.trim_end_matches('/');
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        ensure!(
            !host.is_empty() && !authority.contains(['/', '@', ' ']),
            "{url} is not http://HOST:PORT"
        );
        let has_port = authority.rsplit_once(':').is_some_and(|(_, p)| p.parse::<u16>().is_ok());
        let authority = if has_port { authority.to_owned() } else { format!("{authority}:80") };
        Ok(ServerUrl { authority, key: None, forwarded_for: None })
    }

    /// The server, with the key that signs the clients' tokens and the address in their `X-Forwarded-For` headers.
    pub(super) fn with(self, key: Option<TokenKey>, forwarded_for: Option<IpAddr>) -> ServerUrl {
        ServerUrl { key, forwarded_for, ..self }
    }

    /// The request that opens a WebSocket.
    fn request(&self, url: &str) -> Result<ClientRequest> {
        let mut request = url.into_client_request()?;
        if let Some(from) = self.forwarded_for {
            request.headers_mut().insert("x-forwarded-for", from.to_string().parse()?);
        }
        Ok(request)
    }

    /// A token with which a client may join for as long as a call may last.
    fn token(&self, room: &str, name: &str) -> Result<Option<AccessToken>> {
        let Some(key) = &self.key else { return Ok(None) };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock")?;
        let claims = Claims {
            room: room.to_owned(),
            sub: name.to_owned(),
            name: None,
            grants: Grants::new([Grant::Publish, Grant::Subscribe, Grant::Enhance]),
            exp: (now + TOKEN_TTL).as_secs_f64(),
            nbf: None,
            jti: None,
        };
        Ok(Some(AccessToken::from(key.sign(&claims)?)))
    }
}

/// A server's answer to a client that wants to join a room.
enum Asked {
    In(Box<Signal>, Box<Welcome>),
    /// The room is on the server with this URL.
    Moved(String),
}

/// An open signalling socket.
pub(super) struct Signal {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next_id: u32,
    /// Messages that came while the client waited for an answer.
    early: Vec<ServerMessage>,
}

impl Signal {
    /// Opens a socket and joins a room, on whatever server it is.
    pub(super) async fn join(
        server: &ServerUrl,
        room: &str,
        name: &str,
    ) -> Result<(Signal, Welcome)> {
        let token = server.token(room, name)?;
        let mut url = format!("ws://{}/ws", server.authority);
        for _ in 0..MAX_HOPS {
            match Signal::join_at(server, &url, room, name, token.clone()).await? {
                Asked::In(signal, welcome) => return Ok((*signal, *welcome)),
                Asked::Moved(to) => url = to,
            }
        }
        bail!("the servers send one another whoever asks for room {room}; the last one {url}")
    }

    async fn join_at(
        server: &ServerUrl,
        url: &str,
        room: &str,
        name: &str,
        token: Option<AccessToken>,
    ) -> Result<Asked> {
        let (socket, _) = timeout(TIMEOUT, connect_async(server.request(url)?))
            .await
            .map_err(|_| anyhow!("no answer"))
            .and_then(|opened| Ok(opened?))
            .with_context(|| format!("cannot open {url}: is `windlass serve` running there?"))?;
        let mut signal = Signal { socket, next_id: 1, early: Vec::new() };
        let join = Join {
            version: VERSION,
            room: room.to_owned(),
            name: name.to_owned(),
            loopback: false,
            anchor_codecs: Some(vec![ANCHOR_CODEC.to_owned()]),
            token,
            ticket: None,
            seat: None,
            attributes: Attributes::new(),
        };
        signal.send(ClientMessage::Join(join)).await?;
        let welcome = timeout(TIMEOUT, async {
            loop {
                match signal.receive().await? {
                    ServerMessage::Welcome(welcome) => return Ok(Ok(welcome)),
                    ServerMessage::Moved { url, .. } => return Ok(Err(url)),
                    ServerMessage::Error(error) => return Err(refusal(&error)),
                    other => signal.early.push(other),
                }
            }
        })
        .await
        .map_err(|_| anyhow!("the server does not answer `join`"))??;
        Ok(match welcome {
            Ok(welcome) => Asked::In(Box::new(signal), Box::new(welcome)),
            Err(url) => Asked::Moved(url),
        })
    }

    /// Sends a message that needs no answer.
    pub(super) async fn send(&mut self, message: ClientMessage) -> Result<()> {
        self.write(Request { id: None, message }).await
    }

    /// Sends an offer, and returns its id.
    pub(super) async fn offer(&mut self, offer: windlass_protocol::Offer) -> Result<u32> {
        let id = self.next_id;
        self.next_id += 1;
        self.write(Request { id: Some(id), message: ClientMessage::Offer(offer) }).await?;
        Ok(id)
    }

    async fn write(&mut self, request: Request) -> Result<()> {
        let sent = timeout(TIMEOUT, self.socket.send(Message::text(request.to_json()))).await;
        sent.map_err(|_| anyhow!("the server does not read its signalling"))?
            .context("the signalling socket")
    }

    /// Waits for the answer to an offer.
    pub(super) async fn answer(&mut self, to: u32) -> Result<String> {
        timeout(TIMEOUT, async {
            loop {
                match self.receive().await? {
                    ServerMessage::Answer { id, sdp, .. } if id == to => return Ok(sdp),
                    ServerMessage::Error(error) if error.fatal || error.id == Some(to) => {
                        return Err(refusal(&error));
                    }
                    other => self.early.push(other),
                }
            }
        })
        .await
        .map_err(|_| anyhow!("the server does not answer an offer"))?
    }

    /// Takes the messages that came while the client waited for an answer.
    pub(super) fn take_early(&mut self) -> Vec<ServerMessage> {
        std::mem::take(&mut self.early)
    }

    /// The next message. Messages of an unknown kind are skipped. The future may be dropped without loss.
    pub(super) async fn receive(&mut self) -> Result<ServerMessage> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    if let Ok(message) = ServerMessage::parse(&text) {
                        return Ok(message);
                    }
                }
                Some(Ok(Message::Close(frame))) => {
                    let code = frame.map_or(0, |f| u16::from(f.code));
                    bail!("the server closed the signalling socket (code {code})");
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error).context("the signalling socket"),
                None => bail!("the server closed the signalling socket"),
            }
        }
    }

    /// Leaves and closes the socket. Errors do not matter any more.
    pub(super) async fn close(mut self) {
        let _ = timeout(Duration::from_secs(1), async {
            let _ = self.send(ClientMessage::Leave {}).await;
            let _ = self.socket.close(None).await;
        })
        .await;
    }
}

/// The error of a refusal: the server's words, with what helps in a load test.
pub(super) fn refusal(error: &Error) -> anyhow::Error {
    let help = match serde_json::to_value(error.code).ok().as_ref().and_then(|c| c.as_str()) {
        Some("room_full") => " (fewer with --per-room, or `windlass serve --max-participants`)",
        Some("server_full") => " (its limit is `windlass serve --max-total-participants`)",
        _ => "",
    };
    anyhow!("the server refuses: {}. {}{help}", error.message, error.hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_with_its_port() {
        let read = |url| ServerUrl::parse(url).map(|u| u.authority);
        assert_eq!(read("http://localhost:7880/").unwrap(), "localhost:7880");
        assert_eq!(read("http://192.0.2.1").unwrap(), "192.0.2.1:80");
        assert_eq!(read("http://[2001:db8::1]:80").unwrap(), "[2001:db8::1]:80");
        for wrong in ["https://localhost", "localhost:7880", "http://", "http://a/b", "http://a b"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read("https://x").unwrap_err().to_string().contains("http://HOST:PORT"));
    }
}
