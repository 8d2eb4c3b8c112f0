//! A server is closed until it is told to be open: rooms, administration and figures.

mod server;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;
use server::free::free_address;
use server::{Client, Server, get_from};

fn windlass(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass")).args(args).output().unwrap()
}

/// What a server says that does not start.
fn refused(args: &[&str]) -> String {
    let ended = windlass(&[&["serve", "--udp", "127.0.0.1:0", "--device=off"], args].concat());
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    String::from_utf8(ended.stderr).unwrap()
}

fn written(folder: &Path, text: &str) -> String {
    let file = folder.join("windlass.yaml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_server_that_others_reach_does_not_start_without_token_keys() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "http: 0.0.0.0:0\n");
    for args in [["--http", "0.0.0.0:0"], ["--http", "[::]:0"], ["--config", &file]] {
        let said = refused(&args);
        for part in ["every room would be open", "windlass key ", "--token-key", "--open-rooms"] {
            assert!(said.contains(part), "{args:?}: {said}");
        }
    }
    let both = ["--open-rooms", "--token-key", "k1=0123456789abcdef0123456789abcdef"];
    assert!(refused(&both).contains("open-rooms must not stand beside token-key"));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_starts_where_rooms_are_said_to_be_open() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "http: 0.0.0.0:0\nopen-rooms: true\n");
    for args in
        [&["--http", "0.0.0.0:0", "--open-rooms"][..], &["--http", "0.0.0.0:0", "--config", &file]]
    {
        let server = Server::start(args);
        let (_client, answer) = Client::join(&server, "tea", "Ana").await;
        assert_eq!(answer["type"], "welcome", "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_made_by_one_command_and_a_link_that_lets_in_by_another() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("k1");
    let made = windlass(&["key", file.to_str().unwrap()]);
    assert!(made.status.success(), "{made:?}");
    let key = format!("k1=@{}", file.display());
    assert!(String::from_utf8(made.stdout).unwrap().contains(&format!("--token-key {key}")));
    let server = Server::start(&["--http", "0.0.0.0:0", "--token-key", &key]);
    let (_uninvited, answer) = Client::join(&server, "tea", "Ana").await;
    assert_eq!(answer["code"], "unauthorized");
    let page = ["--page", "https://calls.example"];
    let link = windlass(
        &[&["token", "--key", &key, "--room", "tea", "--identity", "ana"], &page[..]].concat(),
    );
    let link = String::from_utf8(link.stdout).unwrap();
    let token = link.trim().strip_prefix("https://calls.example/#room=tea&token=").unwrap();
    let mut invited = Client::open(&server).await;
    let join = json!({"type": "join", "version": 1, "room": "tea", "name": "Ana", "token": token});
    invited.say(&join).await;
    assert_eq!(invited.hear(&["welcome", "error"]).await["type"], "welcome");
}

#[test]
fn figures_are_at_an_address_of_their_own_and_nothing_else_is_there() {
    let free = free_address();
    let server = Server::start(&["--metrics", &free.to_string()]);
    let status = |answer: String| answer[9..12].to_owned();
    for (path, at_page, apart) in [
        ("/metrics", "404", "200"),
        ("/openapi.json", "404", "200"),
        ("/healthz", "200", "200"),
        ("/readyz", "200", "200"),
        ("/ws", "400", "404"),
        ("/admin/rooms", "200", "404"),
    ] {
        assert_eq!(status(server.get(path)), at_page, "{path} beside the page");
        assert_eq!(status(get_from(free, path, "")), apart, "{path} at its own address");
    }
    let figures = get_from(free, "/metrics", "");
    assert!(figures.contains("\nwindlass_sfu_participants 0\n"), "{figures}");
    assert!(figures.contains("\nwindlass_log_lines_lost_total 0\n"), "{figures}");
}

#[test]
fn where_figures_cannot_be_told_the_server_does_not_start() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = refused(&["--http", "127.0.0.1:0", "--metrics", &address]);
    assert!(said.contains(&address) && said.contains("`--metrics 127.0.0.1:"), "{said}");
}
