//! Sockets that want to be served: half open, silent, slow, a byte at a time, too large, too many, and for what is none
//! of theirs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

/// Connections of each kind that are held open.
const HELD: usize = 60;
/// What the server may take for any answer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Floods {
    /// Joins.
    pub joins: u64,
    /// Requests for files outside of the page's folder.
    pub escapes: u64,
    /// Messages larger than any may be.
    pub oversize: u64,
}

/// Goes on until told to stop.
pub(crate) async fn flood(to: SocketAddr, stop: Arc<AtomicBool>) -> Floods {
    let mut held = Vec::new();
    for _ in 0..HELD {
        // Nothing is ever said, or not enough of it.
        held.push(opened(to, b"").await);
        held.push(opened(to, b"GET /ws HTTP/1.1\r\nhost: x\r\nupgr").await);
        held.push(
            opened(to, b"POST /whip/tea HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\nv=0")
                .await,
        );
    }
    let slow = tokio::spawn(slow_readers(to, stop.clone()));
    let crawl = tokio::spawn(one_byte_frames(to, stop.clone()));
    let mut floods = Floods::default();
    while !stop.load(Ordering::Relaxed) {
        floods.joins += join_and_go(to).await;
        floods.oversize += oversize(to).await;
        floods.escapes += escape(to).await;
    }
    let _ = slow.await;
    let _ = crawl.await;
    drop(held);
    floods
}

async fn opened(to: SocketAddr, said: &[u8]) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(to).await.ok()?;
    stream.write_all(said).await.ok()?;
    Some(stream)
}

fn join(room: &str) -> Message {
    Message::text(json!({"type": "join", "version": 1, "room": room, "name": "x"}).to_string())
}

/// Joins of rooms that nobody else is in, as fast as they are answered.
async fn join_and_go(to: SocketAddr) -> u64 {
    let Ok((mut socket, _)) = connect_async(format!("ws://{to}/ws")).await else { return 0 };
    let done = tokio::time::timeout(TIMEOUT, async {
        socket.send(join(&format!("flood-{}", rand::random::<u32>()))).await.ok()?;
        socket.next().await?.ok()
    });
    u64::from(matches!(done.await, Ok(Some(_))))
}

/// A message of a megabyte.
async fn oversize(to: SocketAddr) -> u64 {
    let Ok((mut socket, _)) = connect_async(format!("ws://{to}/ws")).await else { return 0 };
    u64::from(socket.send(Message::text("x".repeat(1 << 20))).await.is_ok())
}

/// Files that are not the page's; none of them may be given.
async fn escape(to: SocketAddr) -> u64 {
    let paths = [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/assets/../../../../../../etc/passwd",
        "/..\\..\\..\\etc\\passwd",
        "/%00/etc/passwd",
        "/file:///etc/passwd",
    ];
    for path in paths {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let Some(mut stream) = opened(to, request.as_bytes()).await else { continue };
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut answer)).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.contains("root:"), "{path}: {answer}");
    }
    paths.len() as u64
}

/// Participants of a busy room who never read what they are told.
async fn slow_readers(to: SocketAddr, stop: Arc<AtomicBool>) {
    let mut sockets = Vec::new();
    for _ in 0..20 {
        let Ok((mut socket, _)) = connect_async(format!("ws://{to}/ws")).await else { continue };
        let _ = socket.send(join("slow")).await;
        sockets.push(socket);
    }
    while !stop.load(Ordering::Relaxed) {
        for socket in &mut sockets {
            // Each answer is one more thing that nobody reads.
            let _ =
                tokio::time::timeout(Duration::from_millis(20), socket.send(Message::text("{}")))
                    .await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A join in frames of one byte, a byte in each write.
async fn one_byte_frames(to: SocketAddr, stop: Arc<AtomicBool>) {
    let head = format!(
        "GET /ws HTTP/1.1\r\nhost: {to}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    let text = json!({"type": "join", "version": 1, "room": "crawl", "name": "x"}).to_string();
    while !stop.load(Ordering::Relaxed) {
        let Some(mut stream) = opened(to, head.as_bytes()).await else { continue };
        let bytes = text.as_bytes();
        'frames: for (n, byte) in bytes.iter().enumerate() {
            let (first, last) = (n == 0, n + 1 == bytes.len());
            let flags = u8::from(first) | if last { 0x80 } else { 0 };
            // Masked with zeros.
            for byte in [flags, 0x81, 0, 0, 0, 0, *byte] {
                if stream.write_all(&[byte]).await.is_err() || stop.load(Ordering::Relaxed) {
                    break 'frames;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        let mut answer = [0; 64];
        let _ = tokio::time::timeout(Duration::from_secs(2), stream.read(&mut answer)).await;
    }
}
