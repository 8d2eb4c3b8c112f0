//! How a running server ends.

mod server;

use std::time::Duration;

use server::{Client, Server};

#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_server_takes_no_new_rooms_and_ends_with_the_last_one() {
    let mut server = Server::start(&[]);
    assert!(server.get("/readyz").contains(r#"{"ready":true,"reasons":[]}"#));
    let (ana, answer) = Client::join(&server, "tea", "Ana").await;
    assert_eq!(answer["type"], "welcome");
    server.signal("-TERM");
    server.wait_for_log("takes no new rooms");
    let readyz = server.get("/readyz");
    assert!(readyz.starts_with("HTTP/1.1 503") && readyz.contains("draining"), "{readyz}");
    assert_eq!(server.status("/healthz"), 200);
    assert!((server.metric("windlass_draining") - 1.0).abs() < 1e-9);
    let (_refused, answer) = Client::join(&server, "coffee", "Bo").await;
    assert_eq!((&answer["code"], &answer["fatal"]), (&"shutting_down".into(), &true.into()));
    assert!(answer["hint"].as_str().unwrap().contains("Reconnect"), "{answer}");
    let (bo, answer) = Client::join(&server, "tea", "Bo").await;
    assert_eq!(answer["type"], "welcome", "who belongs to a call may come back");
    assert!(server.is_running());
    drop((ana, bo));
    let (code, took) = server.ended();
    assert_eq!(code, Some(0), "{}", server.log());
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_end_of_the_drain_clients_are_told_and_the_server_ends() {
    let mut server = Server::start(&["--drain-timeout", "1s"]);
    let (mut ana, _) = Client::join(&server, "tea", "Ana").await;
    server.signal("-TERM");
    let error = ana.hear(&["error"]).await;
    assert_eq!(error["code"], "shutting_down");
    assert_eq!(server.ended().0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_a_second_signal_and_no_timeout_end_it_at_once() {
    for (args, signals) in [
        (&[][..], &["-INT"][..]),
        (&[], &["-TERM", "-TERM"]),
        (&[], &["-TERM", "-INT"]),
        (&["--drain-timeout", "0s"], &["-TERM"]),
    ] {
        let mut server = Server::start(args);
        let (_ana, _) = Client::join(&server, "tea", "Ana").await;
        for (n, signal) in signals.iter().enumerate() {
            if n > 0 {
                server.wait_for_log("takes no new rooms");
            }
            server.signal(signal);
        }
        let (code, took) = server.ended();
        assert_eq!(code, Some(0), "{signals:?}: {}", server.log());
        assert!(took < Duration::from_secs(5), "{signals:?}: {took:?}");
    }
}
