//! The commands that administer a server, against a real one.

mod cluster;
mod server;

use std::process::Command;

use serde_json::{Value, json};
use windlass_protocol::Grant;
use windlass_signaling::access::{Claims, Grants, TokenKey};

use cluster::{Nats, TOKEN, alone};
use server::free::free_address;
use server::{Client, Server, eventually};

const KEY: &str = "k1=0123456789abcdef0123456789abcdef";

/// What a command printed, or its error.
fn windlass(server: &Server, args: &[&str]) -> Result<String, String> {
    let url = format!("http://{}", server.addr);
    let ended = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(args)
        .args(["--server", &url])
        .env_remove("WINDLASS_TOKEN")
        .env_remove("WINDLASS_TOKEN_KEY")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if ended.status.success() { Ok(text(ended.stdout)) } else { Err(text(ended.stderr)) }
}

fn json(server: &Server, args: &[&str]) -> Value {
    let said = windlass(server, &[args, &["--json"]].concat()).unwrap();
    serde_json::from_str(&said).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_sees_a_room_and_takes_somebody_out() {
    let server = Server::start(&[]);
    assert_eq!(windlass(&server, &["rooms"]).unwrap(), "There are no rooms.\n");
    let (mut ana, _) = Client::join(&server, "tea-room", "Ana").await;
    let (_bo, _) = Client::join(&server, "tea-room", "Bo").await;
    assert_eq!(json(&server, &["rooms"])["rooms"][0]["participants"], 2);
    let seen = windlass(&server, &["room", "tea-room"]).unwrap();
    assert!(seen.starts_with("Room tea-room: 2 participants\n") && seen.contains("Ana"), "{seen}");
    let said = windlass(&server, &["kick", "tea-room", "Ana"]).unwrap();
    assert!(said.starts_with("Ana (p"), "{said}");
    assert_eq!(ana.hear(&["error"]).await["code"], "removed");
    let error = windlass(&server, &["kick", "tea-room", "Cy"]).unwrap_err();
    assert!(error.contains("nobody and no track") && error.contains("`Cy`"), "{error}");
    let error = windlass(&server, &["kick", "tea-room", "Bo", "--ban"]).unwrap_err();
    assert!(error.contains("no identity"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_are_not_named_stay() {
    let server = Server::start(&[]);
    windlass(&server, &["policy", "cost-effective", "--room", "tea"]).unwrap();
    let made = json(&server, &["room", "tea", "--max-participants", "1"]);
    assert_eq!(made["max_participants"], 1);
    let (_ana, _) = Client::join(&server, "tea", "Ana").await;
    let (_bo, answer) = Client::join(&server, "tea", "Bo").await;
    assert_eq!(answer["code"], "room_full");
    windlass(&server, &["lock", "tea"]).unwrap();
    windlass(&server, &["room", "tea", "--max-participants", "3"]).unwrap();
    let (_bo, answer) = Client::join(&server, "tea", "Bo").await;
    assert_eq!(answer["code"], "locked");
    assert!(windlass(&server, &["lock", "tea", "--undo"]).unwrap().contains("is open"));
    let (_bo, answer) = Client::join(&server, "tea", "Bo").await;
    assert_eq!(answer["type"], "welcome");
    windlass(&server, &["room", "tea", "--close"]).unwrap();
    let error = windlass(&server, &["room", "tea"]).unwrap_err();
    assert!(error.contains("there is no such room. See"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_keys_is_administered_by_a_key_or_a_token() {
    let server = Server::start(&["--token-key", KEY]);
    let error = windlass(&server, &["rooms"]).unwrap_err();
    assert!(error.contains("Authorization: Bearer"), "{error}");
    assert!(windlass(&server, &["rooms", "--key", KEY]).is_ok());
    let claims = Claims {
        room: "tea".to_owned(),
        sub: "ops".to_owned(),
        name: None,
        grants: Grants::new([Grant::Admin]),
        exp: 4e9,
        nbf: None,
        jti: None,
    };
    let token = KEY.parse::<TokenKey>().unwrap().sign(&claims).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{token}\n")).unwrap();
    let at = format!("@{}", file.path().display());
    let made = windlass(&server, &["room", "tea", "--max-participants", "2", "--token", &at]);
    assert!(made.is_ok(), "{made:?}");
    let error = windlass(&server, &["rooms", "--token", &at]).unwrap_err();
    assert!(error.contains("for `*`"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_server_lets_its_rooms_end() {
    let mut server = Server::start(&[]);
    let (ana, _) = Client::join(&server, "tea", "Ana").await;
    let said = windlass(&server, &["drain"]).unwrap();
    assert!(said.contains("takes no new rooms") && said.contains("30 s"), "{said}");
    server.wait_for_log("takes no new rooms");
    assert_eq!(json(&server, &["drain"]), json!({"seconds": 30}), "a second order ends nothing");
    assert!(server.is_running());
    drop(ana);
    assert_eq!(server.ended().0, Some(0));
}

/// A server of a cluster.
fn member(nats: &Nats) -> Server {
    let port = free_address().port();
    let (http, url) = (format!("127.0.0.1:{port}"), format!("ws://127.0.0.1:{port}/ws"));
    let cluster =
        ["--nats", &nats.url(), "--cluster-token", TOKEN, "--node-url", &url].map(str::to_owned);
    let args = ["--http".to_owned(), http].into_iter().chain(cluster).collect::<Vec<_>>();
    Server::start(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn any_server_of_a_cluster_answers_for_all() {
    let _turn = alone();
    let Some(nats) = Nats::start(None) else { return };
    let (one, other) = (member(&nats), member(&nats));
    for server in [&one, &other] {
        let both = || (server.metric("windlass_cluster_nodes") - 2.0).abs() < 0.1;
        eventually(server, "the servers know each other", both);
    }
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (_ana, _) = Client::join(&one, "tea", "Ana").await;
        let (mut bo, _) = Client::join(&other, "coffee", "Bo").await;
        for server in [&one, &other] {
            let rooms = json(server, &["rooms"]);
            let names = [&rooms["rooms"][0]["room"], &rooms["rooms"][1]["room"]];
            assert_eq!(names, ["coffee", "tea"], "{rooms}");
        }
        let seen = windlass(&one, &["room", "coffee"]).unwrap();
        assert!(seen.starts_with("Room coffee: 1 participant\n") && seen.contains("Bo"), "{seen}");
        windlass(&one, &["room", "coffee", "--max-participants", "1"]).unwrap();
        let (_cy, answer) = Client::join(&other, "coffee", "Cy").await;
        assert_eq!(answer["code"], "room_full");
        windlass(&one, &["kick", "coffee", "Bo"]).unwrap();
        assert_eq!(bo.hear(&["error"]).await["code"], "removed");
        let error = windlass(&one, &["room", "water"]).unwrap_err();
        assert!(error.contains("there is no such room"), "{error}");
    });
}

#[test]
fn who_answers_otherwise_is_told_apart() {
    let server = Server::start(&[]);
    let nobody = ["rooms", "--server", "http://127.0.0.1:9"];
    let error = Command::new(env!("CARGO_BIN_EXE_windlass")).args(nobody).output().unwrap().stderr;
    let error = String::from_utf8(error).unwrap();
    assert!(error.contains("no answer from http://127.0.0.1:9"), "{error}");
    let said = windlass(&server, &["enhancement", "on"]).unwrap();
    assert!(said.contains("device: off"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_folder_for_recordings_says_which_option_names_one() {
    let server = Server::start(&[]);
    let (_ana, _) = Client::join(&server, "tea", "Ana").await;
    let error = windlass(&server, &["record", "tea"]).unwrap_err();
    assert!(error.contains("records nothing") && error.contains("record-to"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_in_a_recorded_room_is_told_and_the_folder_has_its_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("recordings");
    let server = Server::start(&["--record-to", root.to_str().unwrap()]);
    let error = windlass(&server, &["record", "tea"]).unwrap_err();
    assert!(error.contains("no such room"), "{error}");
    let (mut ana, _) = Client::join(&server, "tea", "Ana").await;
    let made = json(&server, &["record", "tea"]);
    assert_eq!(ana.hear(&["recording"]).await["on"], true);
    let (mut bo, welcome) = Client::join(&server, "tea", "Bo").await;
    assert_eq!(welcome["recording"], true);
    assert_eq!(
        json(&server, &["record", "tea"])["recording"],
        made["recording"],
        "it runs already"
    );
    windlass(&server, &["record", "tea", "--stop"]).unwrap();
    for told in [&mut ana, &mut bo] {
        assert_eq!(told.hear(&["recording"]).await["on"], false);
    }
    let error = windlass(&server, &["record", "tea", "--stop"]).unwrap_err();
    assert!(error.contains("not recorded"), "{error}");
    let made = root.join(made["recording"].as_str().unwrap());
    let manifest = || -> Option<Value> {
        let file = std::fs::read_dir(&made).ok()?.flatten().next()?.path();
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
    };
    eventually(&server, "the recording has ended", || {
        manifest().is_some_and(|said| said["reason"] == "stopped" && said["room"] == "tea")
    });
}
