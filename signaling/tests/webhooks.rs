//! Webhooks to a real HTTP receiver, which fails, redirects or does not answer first.

mod common;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use windlass_signaling::SignalingConfig;
use windlass_signaling::webhooks::WebhookConfig;

use common::tokens::{config as with_keys, guest, join};
use common::{Client, get, offer, start};

const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// How old a webhook may be, for a receiver that has seen no other with its id.
const WINDOW_S: u64 = 300;

/// What the receiver does with the first requests; after them it takes all.
#[derive(Clone, Copy)]
enum First {
    Fail,
    Redirect,
    Sleep,
}

struct Receiver {
    first: First,
    left: AtomicUsize,
    requests: AtomicUsize,
    redirected: AtomicUsize,
    /// What was taken, in order.
    taken: Mutex<Vec<Value>>,
    /// How often each id came.
    ids: Mutex<HashMap<String, usize>>,
}

/// Checks a webhook as a receiver would: by the specification, with nothing of the server's code.
fn verify(headers: &HeaderMap, body: &str) -> Result<String, &'static str> {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).ok_or("no header");
    let (id, timestamp) = (text("webhook-id")?, text("webhook-timestamp")?);
    let at: u64 = timestamp.parse().map_err(|_| "no time")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    if now.abs_diff(at) > WINDOW_S {
        return Err("too old");
    }
    let key =
        aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &BASE64.decode(SECRET).unwrap());
    let signed = format!("{id}.{timestamp}.{body}");
    let fits = |one: &str| {
        let tag = one.strip_prefix("v1,").and_then(|tag| BASE64.decode(tag).ok());
        tag.is_some_and(|tag| aws_lc_rs::hmac::verify(&key, signed.as_bytes(), &tag).is_ok())
    };
    if text("webhook-signature")?.split(' ').any(fits) { Ok(id.to_owned()) } else { Err("forged") }
}

async fn hook(State(receiver): State<Arc<Receiver>>, headers: HeaderMap, body: String) -> Response {
    receiver.requests.fetch_add(1, Ordering::Relaxed);
    let id = verify(&headers, &body).expect("a good signature");
    let forged = body.replace("tea", "sea");
    assert!(!body.contains("tea") || verify(&headers, &forged).is_err());
    *receiver.ids.lock().entry(id.clone()).or_default() += 1;
    let left =
        receiver.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
    if left.is_ok() {
        return match receiver.first {
            First::Fail => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            First::Redirect => Redirect::temporary("/elsewhere").into_response(),
            First::Sleep => {
                tokio::time::sleep(Duration::from_secs(30)).await;
                StatusCode::OK.into_response()
            }
        };
    }
    let event: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(event["id"], id);
    receiver.taken.lock().push(event);
    StatusCode::NO_CONTENT.into_response()
}

async fn elsewhere(State(receiver): State<Arc<Receiver>>) -> StatusCode {
    receiver.redirected.fetch_add(1, Ordering::Relaxed);
    StatusCode::OK
}

/// A receiver that serves the first `count` requests badly, and a configuration that tells it everything.
async fn receiver(first: First, count: usize) -> (Arc<Receiver>, SignalingConfig) {
    let receiver = Arc::new(Receiver {
        first,
        left: AtomicUsize::new(count),
        requests: AtomicUsize::new(0),
        redirected: AtomicUsize::new(0),
        taken: Mutex::default(),
        ids: Mutex::default(),
    });
    let app = Router::new()
        .route("/hook", axum::routing::post(hook))
        .route("/elsewhere", axum::routing::any(elsewhere))
        .with_state(receiver.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let webhooks = WebhookConfig {
        urls: vec![url.parse().unwrap()],
        secrets: vec![format!("whsec_{SECRET}").parse().unwrap()],
        timeout: Duration::from_millis(300),
        first_pause: Duration::from_millis(20),
        max_pause: Duration::from_millis(100),
        ..WebhookConfig::default()
    };
    (receiver, SignalingConfig { webhooks, ..SignalingConfig::default() })
}

/// Waits until `count` events were taken; their types.
async fn types(receiver: &Receiver, count: usize) -> Vec<String> {
    for _ in 0..500 {
        if receiver.taken.lock().len() >= count {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let taken = receiver.taken.lock();
    taken.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_call_is_told_in_order_to_a_receiver_that_fails_at_first() {
    let (receiver, config) = receiver(First::Fail, 3).await;
    let server = start(config).await;
    let (mut ana, welcome) = Client::joined(&server, "tea", "Ana").await;
    ana.say(&offer::camera(1)).await;
    let track = ana.hear("answer").await["tracks"][0]["track"].clone();
    let (bo, _) = Client::joined(&server, "tea", "Bo").await;
    drop(bo);
    ana.hear("participant_left").await;
    drop(ana);
    let expected = [
        "room_started",
        "participant_joined",
        "track_published",
        "participant_joined",
        "participant_left",
        "track_unpublished",
        "participant_left",
        "room_finished",
    ];
    assert_eq!(types(&receiver, expected.len()).await, expected);
    let taken = receiver.taken.lock().clone();
    assert!(taken.iter().all(|event| event["room"] == "tea" && event["at"].is_f64()));
    assert_eq!(taken[1]["participant"]["id"], welcome["participant"]);
    assert_eq!(taken[2]["track"]["id"], track);
    assert_eq!(taken[2]["track"]["name"], "camera");
    assert_eq!(receiver.requests.load(Ordering::Relaxed), expected.len() + 3);
    // The first came four times, with the same id.
    let ids = receiver.ids.lock().clone();
    assert_eq!(ids[taken[0]["id"].as_str().unwrap()], 4);
    assert_eq!(ids.len(), expected.len());
    let metrics = get(&server, "/metrics").await;
    for line in [
        "windlass_webhooks_delivered_total 8",
        "windlass_webhooks_failed_attempts_total 3",
        "windlass_webhooks_dropped_total 0",
        "windlass_webhooks_waiting 0",
    ] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed_and_silence_is_a_failure() {
    for first in [First::Redirect, First::Sleep] {
        let (receiver, config) = receiver(first, 1).await;
        let server = start(config).await;
        let (_ana, _) = Client::joined(&server, "tea", "Ana").await;
        assert_eq!(types(&receiver, 2).await, ["room_started", "participant_joined"]);
        assert_eq!(receiver.redirected.load(Ordering::Relaxed), 0);
        assert_eq!(receiver.requests.load(Ordering::Relaxed), 3);
    }
}

#[tokio::test]
async fn identities_are_told_and_a_replaced_one_leaves_before_it_comes_again() {
    let (receiver, config) = receiver(First::Fail, 0).await;
    let server = start(SignalingConfig { access: with_keys().access, ..config }).await;
    let mut first = Client::open(&server).await;
    first.say(&join("tea", &guest("tea", "ana"))).await;
    first.hear("welcome").await;
    let mut second = Client::open(&server).await;
    second.say(&join("tea", &guest("tea", "ana"))).await;
    second.hear("welcome").await;
    let expected = ["room_started", "participant_joined", "participant_left", "participant_joined"];
    assert_eq!(types(&receiver, expected.len()).await, expected);
    let taken = receiver.taken.lock();
    assert!(taken[1..].iter().all(|event| event["participant"]["identity"] == "ana"));
    assert_ne!(taken[1]["participant"]["id"], taken[3]["participant"]["id"]);
}

#[tokio::test]
async fn what_happens_while_the_server_goes_down_is_still_told() {
    let (receiver, config) = receiver(First::Fail, 0).await;
    let mut server = start(config).await;
    let (_ana, _) = Client::joined(&server, "tea", "Ana").await;
    server.stop.take().unwrap().send(()).unwrap();
    (&mut server.served).await.unwrap();
    let types = types(&receiver, 4).await;
    assert_eq!(types[2..], ["participant_left", "room_finished"]);
}

#[tokio::test]
async fn rooms_of_ones_own_are_not_told() {
    let (receiver, config) = receiver(First::Fail, 0).await;
    let server = start(config).await;
    let mut alone = Client::open(&server).await;
    let join = serde_json::json!({"type": "join", "version": 1, "room": "me", "name": "Ana",
        "loopback": true});
    alone.say(&join).await;
    alone.hear("welcome").await;
    let (_ana, _) = Client::joined(&server, "tea", "Ana").await;
    assert_eq!(types(&receiver, 2).await, ["room_started", "participant_joined"]);
    assert!(receiver.taken.lock().iter().all(|event| event["room"] == "tea"));
}
