//! The signalling of one client of Janus: its JSON protocol over a WebSocket, and the VideoRoom plugin
//! (<https://janus.conf.meetecho.com/docs/videoroom>). The module also starts a Janus to load.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::signal::ServerUrl;
use crate::interrupt;

/// Maximum time for the server to answer.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Time between two keep-alives. Janus ends a session that says nothing for a minute.
const ALIVE: Duration = Duration::from_secs(25);
/// Time between two questions for publishers to watch.
const POLL_INTERVAL: Duration = Duration::from_millis(300);
/// Folders in which distributions put the libraries that Janus loads.
const LIBRARIES: [&str; 3] =
    ["/usr/lib/x86_64-linux-gnu/janus", "/usr/lib/aarch64-linux-gnu/janus", "/usr/lib/janus"];

/// A session with one handle of the VideoRoom plugin.
pub(super) struct Janus {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    session: u64,
    handle: u64,
    alive: Instant,
}

impl Janus {
    /// Opens a session and attaches it to the plugin.
    pub(super) async fn attach(server: &ServerUrl) -> Result<Janus> {
        let url = format!("ws://{}/", server.authority);
        let mut request = url.as_str().into_client_request()?;
        request.headers_mut().insert("Sec-WebSocket-Protocol", "janus-protocol".parse()?);
        let (socket, _) = timeout(TIMEOUT, connect_async(request))
            .await
            .map_err(|_| anyhow!("no answer"))
            .and_then(|opened| Ok(opened?))
            .with_context(|| format!("cannot open {url}: is Janus running there?"))?;
        let alive = Instant::now() + ALIVE;
        let mut janus = Janus { socket, session: 0, handle: 0, alive };
        janus.session = id_of(&janus.ask(json!({"janus": "create"})).await?)?;
        let attach = json!({"janus": "attach", "plugin": "janus.plugin.videoroom"});
        janus.handle = id_of(&janus.ask(attach).await?)?;
        Ok(janus)
    }

    /// Makes a room for VP9.
    pub(super) async fn create(&mut self, room: u64, publishers: usize) -> Result<()> {
        let body = json!({"request": "create", "room": room, "publishers": publishers.max(1), "videocodec": "vp9"});
        self.message(body, None).await.map(|_| ())
    }

    /// Publishes the tracks of an offer, and returns the answer.
    pub(super) async fn publish(&mut self, room: u64, offer: String) -> Result<String> {
        let body = json!({"request": "joinandconfigure", "ptype": "publisher", "room": room});
        sdp_of(&self.message(body, Some(("offer", offer))).await?)
    }

    /// Waits for `publishers` publishers of a room, subscribes to all of them, and returns Janus' offer.
    pub(super) async fn subscribe(&mut self, room: u64, publishers: usize) -> Result<String> {
        let begun = Instant::now();
        let feeds = loop {
            let body = json!({"request": "listparticipants", "room": room});
            let told = match self.message(body, None).await {
                // The room's first publisher makes it.
                Err(error) if error.to_string().contains("No such room") => Value::Null,
                told => told?,
            };
            let all = told["plugindata"]["data"]["participants"].as_array();
            let feeds: Vec<Value> = all
                .into_iter()
                .flatten()
                .filter(|p| p["publisher"] == true)
                .map(|p| json!({"feed": p["id"]}))
                .collect();
            if feeds.len() >= publishers {
                break feeds;
            }
            if begun.elapsed() > TIMEOUT {
                bail!("nobody publishes in room {room}");
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        };
        let body =
            json!({"request": "join", "ptype": "subscriber", "room": room, "streams": feeds});
        sdp_of(&self.message(body, None).await?)
    }

    /// Sends the answer to Janus' offer.
    pub(super) async fn start(&mut self, answer: String) -> Result<()> {
        self.message(json!({"request": "start"}), Some(("answer", answer))).await.map(|_| ())
    }

    /// Reads messages that need no answer, and keeps the session alive. It ends only with an error. The future may be
    /// dropped without loss.
    pub(super) async fn receive(&mut self) -> Result<()> {
        tokio::select! {
            said = next(&mut self.socket) => said.map(|_| ()),
            () = tokio::time::sleep_until(self.alive) => {
                self.alive = Instant::now() + ALIVE;
                self.write(json!({"janus": "keepalive"})).await
            }
        }
    }

    /// Ends the session. Errors do not matter any more.
    pub(super) async fn close(mut self) {
        let _ = timeout(Duration::from_secs(1), async {
            let _ = self.write(json!({"janus": "destroy"})).await;
            let _ = self.socket.close(None).await;
        })
        .await;
    }

    async fn message(&mut self, body: Value, jsep: Option<(&str, String)>) -> Result<Value> {
        let mut message = json!({"janus": "message", "body": body});
        if let Some((kind, sdp)) = jsep {
            message["jsep"] = json!({"type": kind, "sdp": sdp});
        }
        let told = self.ask(message).await?;
        match told["plugindata"]["data"]["error"].as_str() {
            Some(error) => bail!("Janus refuses: {error}"),
            None => Ok(told),
        }
    }

    /// Sends a question, and waits for what is more than an acknowledgement. Only one question is open at a time.
    async fn ask(&mut self, question: Value) -> Result<Value> {
        self.write(question).await?;
        timeout(TIMEOUT, async {
            loop {
                let told = next(&mut self.socket).await?;
                match told["janus"].as_str() {
                    Some("error") => bail!("Janus refuses: {}", told["error"]["reason"]),
                    Some("success" | "event") if told["transaction"] == "ask" => return Ok(told),
                    _ => {}
                }
            }
        })
        .await
        .map_err(|_| anyhow!("Janus does not answer"))?
    }

    async fn write(&mut self, mut message: Value) -> Result<()> {
        message["transaction"] = "ask".into();
        if self.session != 0 {
            message["session_id"] = self.session.into();
        }
        if self.handle != 0 {
            message["handle_id"] = self.handle.into();
        }
        self.socket.send(Message::text(message.to_string())).await.context("Janus' socket")
    }
}

async fn next(socket: &mut WebSocketStream<MaybeTlsStream<TcpStream>>) -> Result<Value> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => {
                return serde_json::from_str(&text).context("what Janus says");
            }
            Some(Ok(Message::Close(_))) | None => bail!("Janus closed the socket"),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error).context("Janus' socket"),
        }
    }
}

fn id_of(told: &Value) -> Result<u64> {
    told["data"]["id"].as_u64().with_context(|| format!("Janus gives no id: {told}"))
}

fn sdp_of(told: &Value) -> Result<String> {
    let sdp = told["jsep"]["sdp"].as_str();
    sdp.map(str::to_owned).with_context(|| format!("Janus gives no session description: {told}"))
}

/// Starts the installed Janus on a free port of this machine, with the VideoRoom plugin alone. It runs ICE lite, as
/// Windlass does, and has its own defaults for the rest.
pub(super) async fn start_own(folder: &Path) -> Result<(Child, String)> {
    let libraries = LIBRARIES.iter().map(Path::new).find(|p| p.is_dir());
    let libraries = libraries.context("Janus is not installed: `apt-get install janus`")?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    for (kind, name) in
        [("plugins", "libjanus_videoroom.so"), ("transports", "libjanus_websockets.so")]
    {
        let own = folder.join(kind);
        std::fs::create_dir_all(&own)?;
        std::os::unix::fs::symlink(libraries.join(kind).join(name), own.join(name))?;
    }
    let at = folder.display();
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text);
    write(
        "janus.jcfg",
        format!(
            "general: {{ configs_folder = \"{at}\" plugins_folder = \"{at}/plugins\" transports_folder = \"{at}/transports\" \
             debug_level = 2 }}\nnat: {{ ice_lite = true }}\n"
        ),
    )?;
    write(
        "janus.transport.websockets.jcfg",
        format!("general: {{ ws = true ws_port = {port} ws_ip = \"127.0.0.1\" }}\n"),
    )?;
    write("janus.plugin.videoroom.jcfg", "general: { }\n".into())?;
    let child = Command::new("janus")
        .arg("-F")
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(folder.join("log"))?)
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .process_group(0)
        .spawn()
        .context("starting Janus")?;
    interrupt::end_with_us(child.id());
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        if begun.elapsed() > TIMEOUT {
            let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
            bail!("Janus does not start: {log}");
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok((child, format!("http://127.0.0.1:{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_in_an_answer_is_told_with_the_answer() {
        let told = json!({"janus": "success", "data": {"id": 7}});
        assert_eq!(id_of(&told).unwrap(), 7);
        assert!(sdp_of(&told).unwrap_err().to_string().contains("success"));
    }
}
