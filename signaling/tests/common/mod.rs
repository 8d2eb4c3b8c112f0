//! A served router, a real WebSocket client, and HTTP by hand.

#![allow(dead_code)] // each test binary uses its share

pub(crate) mod offer;
pub(crate) mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use windlass_sfu::{EnhancerSinks, Sfu, SfuConfig};
use windlass_signaling::cluster::Cluster;
use windlass_signaling::{
    Family, Metric, MetricSource, Services, Signaling, SignalingConfig, families,
};

/// A metric of the program around signalling.
const FRAMES: Family = Family::counter("windlass_enhancer_frames_total", "Frames.");

/// A request with these further header lines.
pub(crate) fn post(path: &str, more: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\n{more}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A server on free ports, and what the tests look at.
pub(crate) struct Server {
    pub addr: SocketAddr,
    pub enhancer_on: Arc<AtomicBool>,
    pub stop: Option<oneshot::Sender<()>>,
    pub served: tokio::task::JoinHandle<()>,
    _sfu: Sfu,
}

/// One that programs of this machine may administer, where it has no token keys.
pub(crate) async fn start(config: SignalingConfig) -> Server {
    start_in(SignalingConfig { admin_local: true, ..config }, None).await
}

/// One of several servers, or one as its configuration says.
pub(crate) async fn start_in(config: SignalingConfig, cluster: Option<Arc<dyn Cluster>>) -> Server {
    let udp = "127.0.0.1:0".parse().unwrap();
    let media = SfuConfig { udp, threads: 2, ..SfuConfig::default() };
    let sfu = Sfu::start(&media, &EnhancerSinks::none()).unwrap();
    let enhancer_on = Arc::new(AtomicBool::new(true));
    let switch = enhancer_on.clone();
    let services = Services {
        sfu: sfu.handle(),
        enhancer_switch: Arc::new(move |on| {
            switch.store(on, Ordering::Relaxed);
            on
        }),
        metrics: MetricSource {
            families: || [vec![FRAMES], families()].concat(),
            read: Arc::new(|| vec![Metric::new(FRAMES.name, 3u64)]),
        },
        drain: Arc::new(|| Duration::from_secs(30)),
        recorder: None,
        cluster,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let page = Router::new().fallback(|| async { "the page" });
    let served = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        Signaling::new(config, services)
            .unwrap()
            .serve(listener, page, stopped, Duration::from_secs(3))
            .await;
    });
    Server { addr, enhancer_on, stop: Some(stop), served, _sfu: sfu }
}

pub(crate) struct Client(pub WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    pub(crate) async fn open(server: &Server) -> Client {
        Client(connect_async(format!("ws://{}/ws", server.addr)).await.unwrap().0)
    }

    pub(crate) async fn joined(server: &Server, room: &str, name: &str) -> (Client, Value) {
        let mut client = Client::open(server).await;
        client.say(&json!({"type": "join", "version": 1, "room": room, "name": name})).await;
        let welcome = client.hear("welcome").await;
        (client, welcome)
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    /// The next message, which may be something else than text.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        tokio::time::timeout(Duration::from_secs(5), self.0.next())
            .await
            .expect("the server is silent")
            .and_then(Result::ok)
    }

    /// The next message of a type; others (such as `stats`) are passed over.
    pub(crate) async fn hear(&mut self, kind: &str) -> Value {
        loop {
            if let Some(Message::Text(text)) = self.next().await {
                let message: Value = serde_json::from_str(&text).unwrap();
                if message["type"] == kind {
                    return message;
                }
                assert_ne!(message["type"], "error", "{message}");
            }
        }
    }

    pub(crate) async fn hear_error(&mut self) -> String {
        self.hear("error").await["code"].as_str().unwrap().to_owned()
    }

    /// Still served: a ping comes back.
    pub(crate) async fn check_alive(&mut self) {
        self.say(&json!({"type": "ping", "time": 1.5})).await;
        assert_eq!(self.hear("pong").await["time"], 1.5);
    }

    pub(crate) async fn close_code(&mut self) -> u16 {
        loop {
            match self.next().await {
                Some(Message::Close(frame)) => return frame.unwrap().code.into(),
                Some(_) => {}
                None => panic!("the socket ended without a close frame"),
            }
        }
    }
}

/// A request of HTTP/1.1 as bytes; the whole response as text.
pub(crate) async fn http(server: &Server, request: &str) -> String {
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

pub(crate) async fn get(server: &Server, path: &str) -> String {
    http(server, &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
        .await
}
