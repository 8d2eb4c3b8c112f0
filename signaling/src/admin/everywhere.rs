//! Requests of the admin API that concern all servers of a cluster: the server that is asked carries them out first,
//! then the others.
//!
//! What the rules of moderators and operators do (locks, bans, grants of identities, revocations) holds on all servers
//! anyway ([`crate::rights`]), so those requests are not passed on.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower::ServiceExt;

use super::operator::{Authorized, Operator};
use crate::rights::unix_now_ms;
use crate::shared::Shared;

/// Maximum size of a request's body, in bytes. The requests that are passed on are settings.
const MAX_BODY: usize = 64 << 10;
/// Maximum size of an answer in bytes.
const MAX_ANSWER: usize = 16 << 20;
/// Header with the number of servers that answered, of those that there are: `2/3`.
const SERVERS: HeaderName = HeaderName::from_static("windlass-servers");

/// A request, as servers pass it on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ForwardedRequest {
    method: String,
    path: String,
    body: String,
    /// Time of the request, in milliseconds since 1970. All servers that carry it out use the same time.
    #[serde(default)]
    at: u64,
}

/// Time at which an operator ordered something, in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestedAt(pub(super) u64);

impl<S: Sync> FromRequestParts<S> for RequestedAt {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<RequestedAt, Infallible> {
        let passed_on = parts.extensions.get::<RequestedAt>().copied();
        Ok(passed_on.unwrap_or_else(|| RequestedAt(unix_now_ms())))
    }
}

/// A server's answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Answer {
    status: u16,
    body: Value,
}

/// Subject of a request that all servers are to carry out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Concern {
    /// All rooms.
    Rooms,
    /// One room, or a participant or track in it.
    Room,
    /// The servers themselves.
    Servers,
}

fn concern(method: &str, path: &str) -> Option<Concern> {
    let segments: Vec<&str> = path.strip_prefix("/admin/")?.split('/').collect();
    match (method, &segments[..]) {
        ("GET", ["rooms"]) => Some(Concern::Rooms),
        ("GET" | "PUT" | "DELETE", ["rooms", _])
        | ("DELETE", ["rooms", _, "participants", _])
        | ("PUT" | "DELETE", ["rooms", _, "participants", _, "grants"])
        | ("GET" | "POST" | "DELETE", ["rooms", _, "recording"])
        | ("PUT", ["rooms", _, "tracks", _, "muted"]) => Some(Concern::Room),
        ("POST", ["policy" | "enhancer"]) => Some(Concern::Servers),
        _ => None,
    }
}

/// Passes requests on to the other servers, and makes one answer of all. Requests that this server refuses go no
/// further.
pub(crate) async fn pass_on(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let concern = concern(request.method().as_str(), request.uri().path());
    let (Some(cluster), Some(concern)) = (shared.services.cluster.clone(), concern) else {
        return next.run(request).await;
    };
    let (mut parts, body) = request.into_parts();
    // Nobody else may fill memory with a body that is kept.
    if let Err(refused) = Operator::from_request_parts(&mut parts, &shared).await {
        return refused.into_response();
    }
    let Ok(body) = to_bytes(body, MAX_BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let request = ForwardedRequest {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        body: String::from_utf8_lossy(&body).into_owned(),
        at: unix_now_ms(),
    };
    let begins = request.method == "POST" && concern == Concern::Room;
    let own = next.run(Request::from_parts(parts, Body::from(body))).await;
    // The other servers learn of a recording that has begun here by its rule.
    let may_pass_on = own.status() == StatusCode::NOT_FOUND || own.status().is_success() && !begins;
    let Ok(request) = serde_json::to_vec(&request) else { return own };
    if !may_pass_on {
        return own;
    }
    let (head, body) = own.into_parts();
    let Ok(own) = to_bytes(body, MAX_ANSWER).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let others = cluster.order(request).await;
    let read = |answer: &Vec<u8>| serde_json::from_slice::<Answer>(answer).ok();
    let answers: Vec<Answer> = others.answers.iter().filter_map(read).collect();
    let servers = format!("{}/{}", answers.len() + 1, others.asked + 1);
    let mut response = joined(concern, head, own, answers);
    if let Ok(servers) = HeaderValue::from_str(&servers) {
        response.headers_mut().insert(SERVERS, servers);
    }
    response
}

/// Carries out a request that another server passes on. Returns the answer.
pub(crate) async fn carry_out(shared: &Arc<Shared>, request: &[u8]) -> Vec<u8> {
    let answer = match serde_json::from_slice::<ForwardedRequest>(request) {
        Ok(request) if concern(&request.method, &request.path).is_some() => {
            perform(shared, request).await
        }
        // A request of a later version.
        _ => None,
    };
    let unknown = Answer { status: StatusCode::NOT_FOUND.as_u16(), body: Value::Null };
    serde_json::to_vec(&answer.unwrap_or(unknown)).unwrap_or_default()
}

async fn perform(shared: &Arc<Shared>, request: ForwardedRequest) -> Option<Answer> {
    let request = Request::builder()
        .method(Method::from_bytes(request.method.as_bytes()).ok()?)
        .uri(request.path)
        .header(CONTENT_TYPE, "application/json")
        .extension(Authorized)
        .extension(RequestedAt(request.at))
        .body(Body::from(request.body))
        .ok()?;
    let (routes, _) = super::routes().split_for_parts();
    let Ok(response) = routes.with_state(shared.clone()).oneshot(request).await;
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), MAX_ANSWER).await.ok()?;
    Some(Answer { status, body: serde_json::from_slice(&body).unwrap_or_default() })
}

/// One answer out of those of all servers: this server's, with what only other servers have.
fn joined(
    concern: Concern,
    head: axum::http::response::Parts,
    own: Bytes,
    others: Vec<Answer>,
) -> Response {
    let good = |answer: &Answer| (200..300).contains(&answer.status);
    let first = Answer {
        status: head.status.as_u16(),
        body: serde_json::from_slice(&own).unwrap_or_default(),
    };
    let mut successes = std::iter::once(first).chain(others).filter(good);
    let (Some(mut answer), false) = (successes.next(), concern == Concern::Servers) else {
        return Response::from_parts(head, Body::from(own));
    };
    let list = if concern == Concern::Rooms { "rooms" } else { "participants" };
    for other in successes {
        if let (Some(all), Value::Object(mut more)) = (answer.body.as_object_mut(), other.body) {
            let found = more.remove(list);
            for (name, value) in more {
                all.entry(name).or_insert(value);
            }
            if let (Some(Value::Array(all)), Some(Value::Array(found))) = (all.get_mut(list), found)
            {
                all.extend(found);
            }
        }
    }
    match concern {
        Concern::Rooms => add_up(&mut answer.body),
        _ => sort_by_age(&mut answer.body),
    }
    let status = StatusCode::from_u16(answer.status).unwrap_or(head.status);
    if answer.body.is_null() {
        return status.into_response();
    }
    (status, axum::Json(answer.body)).into_response()
}

/// Makes one entry out of those of a room that several servers have. Numbers are added up.
fn add_up(body: &mut Value) {
    let Some(Value::Array(rooms)) = body.get_mut("rooms") else { return };
    rooms.sort_by(|a, b| a["room"].as_str().cmp(&b["room"].as_str()));
    rooms.dedup_by(|next, kept| {
        let same = next["room"] == kept["room"];
        if same && let (Value::Object(kept), Value::Object(next)) = (kept, next) {
            for (name, value) in std::mem::take(next) {
                let sum = kept.get(&name).and_then(Value::as_u64).zip(value.as_u64());
                match sum.filter(|_| name != "max_participants") {
                    Some((a, b)) => _ = kept.insert(name, (a + b).into()),
                    None => _ = kept.entry(name).or_insert(value),
                }
            }
        }
        same
    });
}

fn sort_by_age(body: &mut Value) {
    if let Some(Value::Array(all)) = body.get_mut("participants") {
        all.sort_by_key(|who| who["since"].as_u64());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn join(concern: Concern, own: &(u16, Value), others: &[(u16, Value)]) -> (u16, Response) {
        let status = StatusCode::from_u16(own.0).unwrap();
        let (mut head, ()) = Response::new(()).into_parts();
        head.status = status;
        let others =
            others.iter().map(|(status, body)| Answer { status: *status, body: body.clone() });
        let own = Bytes::from(own.1.to_string());
        let response = joined(concern, head, own, others.collect());
        (response.status().as_u16(), response)
    }

    async fn body(response: Response) -> Value {
        let bytes = to_bytes(response.into_body(), MAX_ANSWER).await.unwrap();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    #[test]
    fn only_what_other_servers_would_not_hear_otherwise_is_passed_on() {
        for (method, path) in [
            ("GET", "/admin/rooms"),
            ("DELETE", "/admin/rooms/tea"),
            ("PUT", "/admin/rooms/tea/tracks/t7/muted"),
            ("POST", "/admin/enhancer"),
            ("POST", "/admin/rooms/tea/recording"),
        ] {
            assert!(concern(method, path).is_some(), "{method} {path}");
        }
        for (method, path) in [
            ("PUT", "/admin/rooms/tea/entry"),
            ("PUT", "/admin/rooms/tea/bans/eve"),
            ("POST", "/admin/drain"),
            ("GET", "/admin/rooms/tea/waiting"),
            ("GET", "/metrics"),
        ] {
            assert_eq!(concern(method, path), None, "{method} {path}");
        }
    }

    #[tokio::test]
    async fn a_room_of_several_servers_is_one() {
        let own = json!({"rooms": [{"room": "tea", "participants": 2, "tracks": 1}]});
        let other = json!({"rooms": [
            {"room": "tea", "participants": 1, "tracks": 3, "max_participants": 9},
            {"room": "coffee", "participants": 4, "tracks": 0}]});
        let (_, all) = join(Concern::Rooms, &(200, own), &[(200, other)]);
        let expected = json!({"rooms": [
            {"room": "coffee", "participants": 4, "tracks": 0},
            {"room": "tea", "participants": 3, "tracks": 4, "max_participants": 9}]});
        assert_eq!(body(all).await, expected);
    }

    #[tokio::test]
    async fn who_is_on_another_server_is_shown_and_found() {
        let missing = || (404, json!({"code": "unknown_room"}));
        let room = json!({"room": "tea", "participants": [{"id": "p1", "since": 5}]});
        let (status, found) = join(Concern::Room, &missing(), &[missing(), (200, room.clone())]);
        assert_eq!((status, body(found).await), (200, room.clone()));
        let older = json!({"room": "tea", "participants": [{"id": "p2", "since": 3}]});
        let (_, both) = join(Concern::Room, &(200, room), &[(200, older)]);
        let both = body(both).await;
        assert_eq!(
            (&both["participants"][0]["id"], &both["participants"][1]["id"]),
            (&"p2".into(), &"p1".into())
        );
        let (status, none) = join(Concern::Room, &missing(), &[missing()]);
        assert_eq!((status, body(none).await), missing());
        let (status, _) = join(Concern::Room, &missing(), &[(204, Value::Null)]);
        assert_eq!(status, 204);
    }
}
