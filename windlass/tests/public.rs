//! A server with a public name: its certificate from a real ACME server (pebble, which looks for itself whether the
//! name leads here), its key, its address, and the link that it prints.

mod server;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use server::free::free_address;
use server::tls::{connect, get_of};
use server::{Server, eventually};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::{self, Message};

const NAME: &str = "calls.example";
/// Longer than anything may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Long enough for a certificate that is to be served, not renewed.
const HOUR: u64 = 3600;

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < TIMEOUT, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|path| path.join(program).exists())
}

/// A process of a test, which ends with it.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// pebble, and the DNS server that it asks.
struct Pebble {
    folder: TempDir,
    acme: SocketAddr,
    management: SocketAddr,
    dns: SocketAddr,
    log: Arc<Mutex<String>>,
    /// Where the server is to listen.
    http: SocketAddr,
    process: Process,
    _dns: Process,
}

impl Pebble {
    /// Starts Pebble, whose certificates are good for `seconds`. `None` where it is not installed.
    fn start(seconds: u64) -> Option<Pebble> {
        Pebble::start_refusing(seconds, 0)
    }

    /// Likewise. It refuses so many per cent of the nonces that it gave.
    fn start_refusing(seconds: u64, percent: u32) -> Option<Pebble> {
        if !installed("pebble") || !installed("pebble-challtestsrv") {
            windlass_skips::skip("no pebble (`cargo xtask setup` installs it)");
            return None;
        }
        let [acme, management, names, dns, http] = [(); 5].map(|()| free_address());
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let own = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let pair = rcgen::generate_simple_self_signed(own).unwrap();
        fs::write(path("own.pem"), pair.cert.pem()).unwrap();
        fs::write(path("own.key"), pair.signing_key.serialize_pem()).unwrap();
        let config = json!({"pebble": {
            "listenAddress": acme.to_string(),
            "managementListenAddress": management.to_string(),
            "certificate": path("own.pem"),
            "privateKey": path("own.key"),
            "httpPort": 9,
            "tlsPort": http.port(),
            "ocspResponderURL": "",
            "externalAccountBindingRequired": false,
            "certificateValidityPeriod": seconds,
        }});
        fs::write(path("pebble.json"), config.to_string()).unwrap();
        let dns_server = Command::new("pebble-challtestsrv")
            .args(["-dns01", &names.to_string(), "-management", &dns.to_string()])
            .args(["-http01", "", "-https01", "", "-tlsalpn01", ""])
            .args(["-defaultIPv4", "", "-defaultIPv6", ""])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut process = Command::new("pebble")
            .args(["-strict", "-dnsserver", &names.to_string(), "-config"])
            .arg(path("pebble.json"))
            // Each order is looked into anew, and at once.
            .envs([("PEBBLE_VA_NOSLEEP", "1"), ("PEBBLE_AUTHZREUSE", "0")])
            .env("PEBBLE_WFE_NONCEREJECT", percent.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, into) = (BufReader::new(process.stdout.take().unwrap()).lines(), log.clone());
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| *into.lock().unwrap() += &(line + "\n"));
        });
        let (process, names_server) = (Process(process), Process(dns_server));
        for addr in [acme, management, dns] {
            until("pebble's start", || TcpStream::connect(addr).is_ok());
        }
        Some(Pebble { folder, acme, management, dns, log, http, process, _dns: names_server })
    }

    /// Lets the name lead to this machine.
    fn name_leads_here(&self) {
        let body = json!({"host": NAME, "addresses": ["127.0.0.1"]}).to_string();
        let head = format!("POST /add-a HTTP/1.1\r\nhost: a\r\ncontent-length: {}", body.len());
        let mut stream = TcpStream::connect(self.dns).unwrap();
        write!(stream, "{head}\r\nconnection: close\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// The root of its certificates, which no system trusts.
    fn root(&self) -> Vec<u8> {
        let own = fs::read(self.folder.path().join("own.pem")).unwrap();
        let stream = connect(self.management, &own, "localhost").unwrap();
        let answer = get_of(stream, "localhost", "/roots/0");
        answer.split_once("\r\n\r\n").unwrap().1.as_bytes().to_vec()
    }

    fn issued(&self) -> usize {
        self.log.lock().unwrap().matches("Issued certificate").count()
    }

    /// A server with the public name that keeps what it has in `state`.
    fn serve(&self, state: &Path) -> Server {
        let acme = format!("acme:https://{}/dir", self.acme);
        let http = self.http.to_string();
        let trusted = self.folder.path().join("own.pem");
        Server::start_with(
            &["--public", NAME, "--http", &http, "--tls", &acme, "--metrics", "127.0.0.1:0"],
            &[
                ("STATE_DIRECTORY", state.to_str().unwrap()),
                ("SSL_CERT_FILE", trusted.to_str().unwrap()),
            ],
        )
    }
}

/// The certificate that a client gets who trusts pebble's root; none where it trusts it not.
fn served(server: &Server, root: &[u8]) -> Option<Vec<u8>> {
    let stream = connect(server.addr, root, NAME).ok()?;
    Some(stream.conn.peer_certificates().unwrap()[0].to_vec())
}

fn mode(file: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

#[test]
fn one_option_gets_a_certificate_keeps_it_over_a_restart_and_prints_a_link_that_lets_in() {
    let Some(pebble) = Pebble::start(HOUR) else { return };
    pebble.name_leads_here();
    let (root, state) = (pebble.root(), tempfile::tempdir().unwrap());
    let server = pebble.serve(state.path());
    assert_eq!(server.said, format!("Windlass is running: https://{NAME}\n"));
    server.wait_for_word("It has no certificate yet, and asks https://127.0.0.1:");
    eventually(&server, "a certificate", || served(&server, &root).is_some());
    let first = served(&server, &root);
    let answer = get_of(connect(server.addr, &root, NAME).unwrap(), NAME, "/healthz");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let kept = state.path().join(format!("acme/127.0.0.1_{}/{NAME}.pem", pebble.acme.port()));
    assert_eq!([mode(&kept), mode(&state.path().join("token-key"))], [0o600; 2]);

    let link = server.wait_for_word("A room, for one person: ");
    let token = link.strip_prefix(&format!("https://{NAME}/#room=tea-room&token=")).unwrap();
    let stream = connect(server.addr, &root, NAME).unwrap();
    let (mut socket, _) = tungstenite::client(format!("wss://{NAME}/ws"), stream).unwrap();
    let join =
        json!({"type": "join", "version": 1, "room": "tea-room", "name": "Ana", "token": token});
    socket.send(Message::text(join.to_string())).unwrap();
    let Message::Text(text) = socket.read().unwrap() else { panic!("no text") };
    let welcome: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(welcome["type"], "welcome", "{welcome}");
    let figures = get_of(connect(server.addr, &root, NAME).unwrap(), NAME, "/metrics");
    assert!(figures.starts_with("HTTP/1.1 404"), "figures are not for everybody: {figures}");
    drop(server);

    let key = fs::read(state.path().join("token-key")).unwrap();
    let server = pebble.serve(state.path());
    assert_eq!(served(&server, &root), first, "it is there from the beginning");
    server.wait_for_word("A room, for one person: ");
    std::thread::sleep(Duration::from_secs(1));
    assert!(!server.log().contains("asking for a certificate"), "{}", server.log());
    assert_eq!(pebble.issued(), 1, "{}", pebble.log.lock().unwrap());
    assert_eq!(fs::read(state.path().join("token-key")).unwrap(), key);
}

#[test]
fn a_certificate_is_renewed_before_its_end_and_the_former_one_stays_where_that_fails() {
    let Some(mut pebble) = Pebble::start(15) else { return };
    pebble.name_leads_here();
    let (root, state) = (pebble.root(), tempfile::tempdir().unwrap());
    let server = pebble.serve(state.path());
    eventually(&server, "a certificate", || served(&server, &root).is_some());
    let first = served(&server, &root);
    // A client that checks it never meets one that has ended.
    eventually(&server, "a renewal", || {
        let now = served(&server, &root);
        assert!(now.is_some(), "there is always one that is good");
        now != first
    });
    assert_eq!(pebble.issued(), 2);
    let second = served(&server, &root);
    pebble.process.0.kill().unwrap();
    server.wait_for_log("the former one stays in use; asked again in 1 min");
    assert!(server.log().contains("/dir does not answer ("), "{}", server.log());
    assert_eq!(served(&server, &root), second);
}

#[test]
fn what_the_acme_server_refuses_is_said_with_what_to_do_and_asked_for_again() {
    // Three of them one after the other, which ends an order, are then no rare case.
    let Some(pebble) = Pebble::start_refusing(HOUR, 20) else { return };
    let (root, state) = (pebble.root(), tempfile::tempdir().unwrap());
    let server = pebble.serve(state.path());
    server.wait_for_log("browsers warn until there is one; asked again in 1 min, or at SIGHUP");
    let log = server.log();
    assert!(log.contains("/dir refuses: ") && log.contains(NAME), "{log}");
    assert!(log.contains("`windlass doctor --public calls.example`"), "{log}");
    assert_eq!(served(&server, &root), None, "it has none that anybody trusts");
    assert!(server.get("/").contains("speaks HTTPS"), "it serves");
    pebble.name_leads_here();
    server.signal("-HUP");
    eventually(&server, "a certificate", || served(&server, &root).is_some());
}

#[test]
fn an_account_that_the_acme_server_has_forgotten_is_made_anew() {
    let Some(pebble) = Pebble::start(HOUR) else { return };
    pebble.name_leads_here();
    let state = tempfile::tempdir().unwrap();
    let server = pebble.serve(state.path());
    server.wait_for_log("certificate issued");
    drop(server);
    // Another one, which knows nobody.
    let Some(other) = Pebble::start(HOUR) else { return };
    other.name_leads_here();
    let folder =
        |pebble: &Pebble| state.path().join(format!("acme/127.0.0.1_{}", pebble.acme.port()));
    fs::create_dir_all(folder(&other)).unwrap();
    let account = fs::read_to_string(folder(&pebble).join("account.json")).unwrap();
    let account = account.replace(&pebble.acme.to_string(), &other.acme.to_string());
    fs::write(folder(&other).join("account.json"), account).unwrap();
    let server = other.serve(state.path());
    server.wait_for_log("certificate issued");
    assert_eq!(other.issued(), 1);
}

/// A command in a network of its own, where this machine's only address is a private one, 10.9.0.1; `before` is run
/// there first. None where that cannot be had. All that it starts ends with it.
fn behind_a_nat(before: &str) -> Option<Command> {
    let network = |then: &str| {
        let up = "ip link set lo up && ip addr add 10.9.0.1/32 dev lo && ip route add default dev lo src 10.9.0.1";
        let mut command = Command::new("unshare");
        let apart = ["--map-root-user", "--net", "--pid", "--fork", "--kill-child"];
        command.args(apart).args(["sh", "-c", &format!("{up} && {then}"), "sh"]);
        command
    };
    if !network("true").output().is_ok_and(|ended| ended.status.success()) {
        windlass_skips::skip("no network of its own: no right to make one, or no iproute2");
        return None;
    }
    let mut command = network(&format!(r#"{before} exec "$@""#));
    command.args(["timeout", "20", env!("CARGO_BIN_EXE_windlass")]);
    Some(command)
}

#[test]
fn behind_a_nat_a_stun_server_says_where_the_machine_is() {
    if !installed("turnserver") {
        return windlass_skips::skip("no coturn (`cargo xtask setup` installs it)");
    }
    let coturn = "turnserver -n --no-cli --no-tls --no-dtls --stun-only --pidfile=/dev/null --listening-ip=127.0.0.1 \
                  --log-file=stdout >/dev/null 2>&1 & until ss -Hlun | grep -q 127.0.0.1:3478; do sleep 0.1; done;";
    let Some(mut command) = behind_a_nat(coturn) else { return };
    let state = tempfile::tempdir().unwrap();
    let mut child = command
        .args(["serve", "--public", NAME, "--http", "127.0.0.1:7880", "--device=off"])
        .args(["--turn-url", "stun:127.0.0.1:3478"])
        .env("STATE_DIRECTORY", state.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let _process = Process(child);
    assert_eq!(lines.next(), Some(format!("Windlass is running: https://{NAME}")));
    let proxy = lines.next().unwrap();
    assert!(proxy.starts_with("It waits at 127.0.0.1:7880 for a proxy"), "{proxy}");
    let media = "Media is at 127.0.0.1:7881, where stun:127.0.0.1:3478 sees this machine: open these ports for UDP and TCP.";
    assert_eq!(lines.next().as_deref(), Some(media));
}

/// What a server says that does not start.
fn refused(command: &mut Command, args: &[&str]) -> String {
    let state = tempfile::tempdir().unwrap();
    let usual = ["serve", "--public", NAME, "--device=off", "--metrics", "127.0.0.1:0"];
    let command = command.args(usual).args(args).env("STATE_DIRECTORY", state.path());
    let ended = command.output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    String::from_utf8(ended.stderr).unwrap()
}

#[test]
fn where_no_stun_server_answers_the_address_is_asked_for() {
    let silent = ["--turn-url", "stun:127.0.0.1:9"];
    let Some(mut command) = behind_a_nat("") else { return };
    let said = refused(&mut command, &silent);
    for part in ["private (10.9.0.1)", "stun:127.0.0.1:9", "--advertise PUBLIC_IP"] {
        assert!(said.contains(part), "{said}");
    }
    let Some(mut command) = behind_a_nat("") else { return };
    // No name is known in that network; the system waits no longer than a second to find out.
    command.args(["doctor", "--public", NAME, "--http", "127.0.0.1:0", "--device=off"]);
    let command = command.args(silent).env("RES_OPTIONS", "timeout:1 attempts:1");
    let ended = command.output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(said.contains("fault    addresses    this machine's own address is private"), "{said}");
    assert!(said.contains("mend: the address by --advertise PUBLIC_IP"), "{said}");
    assert!(said.contains("calls.example is not known"), "{said}");
}

#[test]
fn a_port_that_needs_rights_is_said_with_how_to_get_them() {
    let limit = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    if limit.is_ok_and(|limit| limit.trim() != "1024") || !installed("setpriv") {
        return windlass_skips::skip("everybody may use port 443 here, or there is no setpriv");
    }
    let mut without = Command::new("setpriv");
    without.args(["--bounding-set=-net_bind_service", env!("CARGO_BIN_EXE_windlass")]);
    let said = refused(&mut without, &["--http", "127.0.0.1:443", "--udp", "127.0.0.1:0"]);
    for part in ["127.0.0.1:443", "setcap cap_net_bind_service=+ep", "AmbientCapabilities="] {
        assert!(said.contains(part), "{said}");
    }
}
