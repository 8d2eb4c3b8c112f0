//! A real `windlass serve`, and what a test asks of it.

// Each test file uses a part of it.
#![allow(dead_code)]

pub(crate) mod free;
pub(crate) mod load;
pub(crate) mod tls;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Longer than anything may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Waits until it is so; how long that took.
pub(crate) fn eventually(server: &Server, what: &str, is_so: impl Fn() -> bool) -> Duration {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < TIMEOUT, "never {what}: {}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    since.elapsed()
}

/// The laboratory's program, which makes calls: beside the server's. Cargo makes it with its own tests alone, so it is
/// built here where it is missing.
pub(crate) fn lab() -> Command {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let program = Path::new(env!("CARGO_BIN_EXE_windlass")).with_file_name("windlass-lab");
        if !program.exists() {
            let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
            let build = ["build", "--quiet", "--package", "windlass-lab", "--profile", profile];
            let _ = Command::new(env!("CARGO")).args(build).status();
        }
        assert!(program.exists(), "{}: `cargo build -p windlass-lab` makes it", program.display());
        program
    });
    Command::new(&*PROGRAM)
}

/// Status line, head and body of an answer.
pub(crate) fn get_from(addr: SocketAddr, path: &str, head: &str) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{head}\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A figure of `/metrics`, by its full name and labels.
pub(crate) fn figure(page: &str, name: &str) -> Option<f64> {
    page.lines().find_map(|l| l.strip_prefix(name)?.trim().parse().ok())
}

pub(crate) struct Server {
    child: Child,
    /// What it said on standard output first.
    pub said: String,
    pub addr: SocketAddr,
    /// What it said there since.
    words: Arc<Mutex<String>>,
    log: Arc<Mutex<String>>,
    /// Whether nobody reads the log.
    unread: Arc<AtomicBool>,
}

impl Server {
    /// Starts on free ports, without an enhancer, and waits until it serves.
    pub(crate) fn start(args: &[&str]) -> Server {
        Self::start_with(args, &[])
    }

    /// Starts a server with an enhancer.
    pub(crate) fn start_enhanced(args: &[&str]) -> Server {
        Self::spawn(args, &[])
    }

    /// Likewise, in an environment.
    pub(crate) fn start_enhanced_with(args: &[&str], env: &[(&str, &str)]) -> Server {
        Self::spawn(args, env)
    }

    pub(crate) fn start_with(args: &[&str], env: &[(&str, &str)]) -> Server {
        Self::spawn(&[args, &["--device=off"]].concat(), env)
    }

    fn spawn(args: &[&str], env: &[(&str, &str)]) -> Server {
        let ours = ["--http", "--udp"].into_iter().filter(|name| !args.contains(name));
        let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["serve", "--admin-local"])
            .args(ours.flat_map(|name| [name, "127.0.0.1:0"]))
            .args(args)
            .envs(env.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let unread = Arc::new(AtomicBool::new(false));
        let (lines, into) = (BufReader::new(child.stderr.take().unwrap()).lines(), log.clone());
        let waits = unread.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                into.lock().unwrap().push_str(&(line + "\n"));
                while waits.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        });
        let mut said = String::new();
        let mut first = BufReader::new(child.stdout.take().unwrap());
        first.read_line(&mut said).unwrap();
        let words = Arc::new(Mutex::new(String::new()));
        let into = words.clone();
        std::thread::spawn(move || {
            for line in first.lines().map_while(Result::ok) {
                into.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        // The address of a server with a public name has no port: there it is given.
        let given = args.iter().skip_while(|arg| **arg != "--http").nth(1).copied();
        let port = [Some(said.trim()), given].into_iter().flatten().find_map(|text| {
            text.rsplit_once(':')?.1.parse::<u16>().ok().filter(|port| *port != 0)
        });
        let port = port.filter(|_| said.starts_with("Windlass is running"));
        let port = port.unwrap_or_else(|| panic!("{said}{}", log.lock().unwrap()));
        let addr = SocketAddr::from(([127, 0, 0, 1], port));
        Server { child, said, addr, words, log, unread }
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.pid()]).status().unwrap();
        assert!(sent.success());
    }

    /// Whether anybody reads what it says on standard error.
    pub(crate) fn is_read(&self, read: bool) {
        self.unread.store(!read, Ordering::Relaxed);
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for a line on standard output after the first, and gives what follows its beginning.
    pub(crate) fn wait_for_word(&self, beginning: &str) -> String {
        let since = Instant::now();
        loop {
            let words = self.words.lock().unwrap().clone();
            if let Some(rest) = words.lines().find_map(|line| line.strip_prefix(beginning)) {
                return rest.to_owned();
            }
            assert!(since.elapsed() < TIMEOUT, "no {beginning:?} in {words}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the log has a text.
    pub(crate) fn wait_for_log(&self, text: &str) {
        let since = Instant::now();
        while !self.log().contains(text) {
            assert!(since.elapsed() < TIMEOUT, "no {text:?} in {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Status line, head and body of an answer.
    pub(crate) fn get(&self, path: &str) -> String {
        self.get_with(path, "")
    }

    pub(crate) fn get_with(&self, path: &str, head: &str) -> String {
        get_from(self.addr, path, head)
    }

    pub(crate) fn status(&self, path: &str) -> u16 {
        let answer = self.get(path);
        let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        code.unwrap_or_else(|| panic!("{answer}"))
    }

    /// A figure of `/metrics`, by its full name and labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        self.metric_if_any(name).unwrap_or_else(|| panic!("no {name}"))
    }

    /// A figure that comes and goes; `None` while it is not there.
    pub(crate) fn metric_if_any(&self, name: &str) -> Option<f64> {
        figure(&self.get("/metrics"), name)
    }

    /// Waits until a figure has a value.
    pub(crate) fn wait_for_metric(&self, name: &str, value: f64) {
        let since = Instant::now();
        while (self.metric(name) - value).abs() > 1e-9 {
            assert!(since.elapsed() < TIMEOUT, "{name} is {}", self.metric(name));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end; exit code and how long it took.
    pub(crate) fn ended(&mut self) -> (Option<i32>, Duration) {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), since.elapsed());
            }
            assert!(since.elapsed() < TIMEOUT, "still there: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the signalling.
pub(crate) struct Client(pub WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>);

impl Client {
    pub(crate) async fn open(server: &Server) -> Client {
        Client(connect_async(format!("ws://{}/ws", server.addr)).await.unwrap().0)
    }

    /// Opens a socket at a path, with these lines in the request's head; or the status of the refusal.
    pub(crate) async fn try_open(
        server: &Server,
        path: &str,
        head: &[(&'static str, &str)],
    ) -> Result<Client, u16> {
        let url = format!("ws://{}{path}", server.addr);
        let mut request = url.into_client_request().unwrap();
        for (name, value) in head {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match connect_async(request).await {
            Ok((socket, _)) => Ok(Client(socket)),
            Err(tungstenite::Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn open_with(
        server: &Server,
        path: &str,
        head: &[(&'static str, &str)],
    ) -> Client {
        Self::try_open(server, path, head).await.unwrap_or_else(|status| panic!("{status}"))
    }

    /// Opens a socket and asks to join; the answer is `welcome` or `error`.
    pub(crate) async fn join(server: &Server, room: &str, name: &str) -> (Client, Value) {
        let mut client = Client::open(server).await;
        let answer = client.ask_to_join(room, name).await;
        (client, answer)
    }

    pub(crate) async fn ask_to_join(&mut self, room: &str, name: &str) -> Value {
        self.say(&json!({"type": "join", "version": 1, "room": room, "name": name})).await;
        self.hear(&["welcome", "error"]).await
    }

    pub(crate) async fn say_text(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    /// The next message of one of these types.
    pub(crate) async fn hear(&mut self, kinds: &[&str]) -> Value {
        loop {
            let next = tokio::time::timeout(TIMEOUT, self.0.next()).await.expect("silence");
            let Some(Ok(message)) = next else { panic!("the socket ended: {next:?}") };
            if let Message::Text(text) = message {
                let message: Value = serde_json::from_str(&text).unwrap();
                if kinds.iter().any(|kind| message["type"] == *kind) {
                    return message;
                }
            }
        }
    }
}
