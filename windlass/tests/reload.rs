//! A running server whose configuration changes.

mod server;

use server::{Client, Server};

const RELOADS: &str = "windlass_config_reloads_total";
const FAILURES: &str = "windlass_config_reload_failures_total";

#[tokio::test(flavor = "multi_thread")]
async fn what_may_change_does_what_may_not_is_named_and_a_bad_file_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("windlass.yaml");
    std::fs::write(&file, "max-total-participants: 1\nbudget: 200ms\n").unwrap();
    let server = Server::start(&["--config", file.to_str().unwrap()]);
    let (_one, answer) = Client::join(&server, "one", "Ana").await;
    assert_eq!(answer["type"], "welcome");
    let (_refused, answer) = Client::join(&server, "two", "Bo").await;
    assert_eq!(answer["code"], "server_full");

    std::fs::write(&file, "max-total-participants: 2\nbudget: 300ms\n").unwrap();
    server.signal("-HUP");
    server.wait_for_metric(RELOADS, 1.0);
    let (_two, answer) = Client::join(&server, "two", "Bo").await;
    assert_eq!((&answer["type"], &answer["budget_ms"]), (&"welcome".into(), &200.into()));
    server.wait_for_log("configuration changes wait: they need a restart");
    assert!(server.log().contains("budget"), "{}", server.log());
    server.wait_for_metric("windlass_config_options_waiting_for_restart", 1.0);

    std::fs::write(&file, "max-total-participants: 3\nbudget: 10ms\n").unwrap();
    server.signal("-HUP");
    server.wait_for_metric(FAILURES, 1.0);
    server.wait_for_log("line 2, column 9: budget must be from 50ms to 2s, not 10ms");
    let (_refused, answer) = Client::join(&server, "three", "Cy").await;
    assert_eq!(answer["code"], "server_full");
    assert!((server.metric(RELOADS) - 1.0).abs() < 1e-9);
}

#[test]
fn a_changed_file_is_read_by_itself_and_the_log_filter_follows() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("windlass.yaml");
    std::fs::write(&file, "log: info\n").unwrap();
    let server = Server::start(&["--config", file.to_str().unwrap(), "--max-enhanced", "5"]);
    std::fs::write(&file, "log: debug\nmax-enhanced: 7\n").unwrap();
    server.wait_for_metric(RELOADS, 1.0);
    server.wait_for_log("changed=\"log\"");
    assert!(!server.log().contains("max-enhanced"), "the command line wins: {}", server.log());
}

#[test]
fn a_hangup_without_a_file_ends_nothing() {
    let mut server = Server::start(&[]);
    server.signal("-HUP");
    server.wait_for_log("configuration not reloaded");
    assert!(server.is_running() && server.status("/healthz") == 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn token_keys_change_and_the_last_one_stays() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("windlass.yaml");
    let keys = ["k1=0123456789abcdef0123456789abcdef", "k2=fedcba9876543210fedcba9876543210"];
    let token = |key: &str| {
        let args = ["token", "--key", key, "--room", "tea", "--identity", "ana", "--ttl", "1h"];
        let binary = env!("CARGO_BIN_EXE_windlass");
        let made = std::process::Command::new(binary).args(args).output().unwrap();
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    };
    let tokens = keys.map(token);
    std::fs::write(&file, format!("token-key: [{}]\n", keys[0])).unwrap();
    let server = Server::start(&["--config", file.to_str().unwrap()]);
    let answers = async || {
        let mut answers = Vec::new();
        for token in &tokens {
            let mut client = Client::open(&server).await;
            let join = serde_json::json!(
                {"type": "join", "version": 1, "room": "tea", "name": "Ana", "token": token}
            );
            client.say(&join).await;
            answers.push(client.hear(&["welcome", "error"]).await["type"] == "welcome");
        }
        answers
    };
    assert_eq!(answers().await, [true, false]);
    std::fs::write(&file, format!("token-key: [{}, {}]\n", keys[1], keys[0])).unwrap();
    server.signal("-HUP");
    server.wait_for_metric(RELOADS, 1.0);
    assert_eq!(answers().await, [true, true]);
    std::fs::write(&file, format!("token-key: [{}]\n", keys[1])).unwrap();
    server.signal("-HUP");
    server.wait_for_metric(RELOADS, 2.0);
    assert_eq!(answers().await, [false, true]);
    std::fs::write(&file, "# none\n").unwrap();
    server.signal("-HUP");
    server.wait_for_metric(FAILURES, 1.0);
    server.wait_for_log("needs a restart");
    assert_eq!(answers().await, [false, true]);
    assert!(!server.log().contains("fedcba"), "{}", server.log());
}
