//! Rights while a call runs, over real sockets and the admin API.

mod common;

use serde_json::{Value, json};
use windlass_protocol::Grant;
use windlass_signaling::SignalingConfig;

use common::tokens::{NEW, config, guest, join, token};
use common::{Client, Server, http, offer, start};

/// Status and JSON body of an operator's request.
async fn ask(server: &Server, request: &str, body: Value) -> (u16, Value) {
    let ops = token(NEW, "*", "ops", &[Grant::Admin], 60.0);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = format!(
        "{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         authorization: Bearer {ops}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = http(server, &request).await;
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or_default())
}

async fn enter(server: &Server, token: &str) -> (Client, Value) {
    let mut client = Client::open(server).await;
    client.say(&join("tea", token)).await;
    let welcome = client.hear("welcome").await;
    (client, welcome)
}

fn moderator() -> String {
    token(NEW, "tea", "mod", &[Grant::Subscribe, Grant::Moderate], 60.0)
}

/// Says something as a moderator; `done`, or the error's code.
async fn moderate(client: &mut Client, mut order: Value) -> String {
    order["type"] = json!("moderate");
    order["id"] = json!(7);
    client.say(&order).await;
    loop {
        if let Some(tokio_tungstenite::tungstenite::Message::Text(text)) = client.next().await {
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["id"] == 7 {
                let code = message["code"].as_str().unwrap_or("done");
                return code.to_owned();
            }
        }
    }
}

async fn refusal(server: &Server, token: &str) -> String {
    let mut client = Client::open(server).await;
    client.say(&join("tea", token)).await;
    client.hear_error().await
}

#[tokio::test]
async fn who_is_banned_goes_and_no_token_of_the_identity_brings_them_back() {
    let server = start(config()).await;
    let (mut boss, _) = enter(&server, &moderator()).await;
    let (mut ana, welcome) = enter(&server, &guest("tea", "ana")).await;
    let (mut bo, _) = enter(&server, &guest("tea", "bo")).await;
    let order = json!({"action": "ban", "participant": welcome["participant"]});
    assert_eq!(moderate(&mut boss, order).await, "done");
    let error = ana.hear("error").await;
    assert_eq!((&error["code"], &error["fatal"]), (&json!("banned"), &json!(true)));
    assert_eq!(ana.close_code().await, 4002);
    assert_eq!(bo.hear("participant_left").await["participant"], welcome["participant"]);
    assert_eq!(refusal(&server, &guest("tea", "ana")).await, "banned");
    assert_eq!(
        refusal(&server, &token(NEW, "*", "ana", &Grant::PARTICIPANT, 600.0)).await,
        "banned"
    );
    let mut elsewhere = Client::open(&server).await;
    elsewhere.say(&join("coffee", &guest("*", "ana"))).await;
    elsewhere.hear("welcome").await;
    bo.check_alive().await;
    let (_, bans) = ask(&server, "GET /admin/rooms/tea/bans", Value::Null).await;
    assert_eq!(bans["bans"][0]["identity"], "ana");
    let unban = json!({"action": "unban", "identity": "ana"});
    assert_eq!(moderate(&mut boss, unban).await, "done");
    enter(&server, &guest("tea", "ana")).await;
}

#[tokio::test]
async fn nobody_moderates_without_the_grant_and_nothing_happens() {
    let server = start(config()).await;
    let (mut ana, welcome) = enter(&server, &guest("tea", "ana")).await;
    let (mut bo, of_bo) = enter(&server, &guest("tea", "bo")).await;
    assert_eq!(welcome["grants"], json!(["publish", "subscribe", "enhance", "data"]));
    let whom = &of_bo["participant"];
    for order in [
        json!({"action": "grants", "participant": whom, "grants": []}),
        json!({"action": "lock", "locked": true}),
        json!({"action": "lobby", "lobby": true}),
        json!({"action": "admit", "waiting": "w1"}),
        json!({"action": "refuse", "waiting": "w1"}),
        json!({"action": "remove", "participant": whom}),
        json!({"action": "ban", "participant": whom}),
        json!({"action": "unban", "identity": "bo"}),
        json!({"action": "mute", "track": "t1", "muted": true}),
    ] {
        assert_eq!(moderate(&mut ana, order).await, "forbidden");
    }
    bo.check_alive().await;
    enter(&server, &guest("tea", "cy")).await;
    // In open rooms nobody moderates; the operator of the machine does.
    let open = start(SignalingConfig::default()).await;
    let (mut di, _) = Client::joined(&open, "tea", "Di").await;
    assert_eq!(moderate(&mut di, json!({"action": "lock", "locked": true})).await, "forbidden");
    let (status, _) = ask(&open, "PUT /admin/rooms/tea/entry", json!({"locked": true})).await;
    assert_eq!(status, 200);
    assert_eq!(di.hear("entry").await["locked"], true);
}

#[tokio::test]
async fn a_moderator_is_told_what_cannot_be_done() {
    let server = start(config()).await;
    let (mut boss, welcome) = enter(&server, &moderator()).await;
    for (order, code) in [
        (json!({"action": "remove", "participant": "p99"}), "unknown_participant"),
        (json!({"action": "admit", "waiting": "w99"}), "unknown_participant"),
        (json!({"action": "mute", "track": "t99", "muted": true}), "unknown_track"),
        (json!({"action": "fly"}), "malformed"),
        (json!({"action": "unban", "identity": ""}), "malformed"),
        (
            json!({"action": "grants", "participant": welcome["participant"], "grants": ["admin"]}),
            "forbidden",
        ),
    ] {
        assert_eq!(moderate(&mut boss, order).await, code);
    }
    boss.check_alive().await;
}

#[tokio::test]
async fn into_a_locked_room_comes_who_has_a_seat_and_nobody_else() {
    let server = start(config()).await;
    let (mut boss, _) = enter(&server, &moderator()).await;
    let (ana, welcome) = enter(&server, &guest("tea", "ana")).await;
    assert_eq!(moderate(&mut boss, json!({"action": "lock", "locked": true})).await, "done");
    assert_eq!(refusal(&server, &guest("tea", "bo")).await, "locked");
    drop(ana);
    boss.hear("participant_left").await;
    let mut again = Client::open(&server).await;
    let mut with_seat = join("tea", &guest("tea", "ana"));
    with_seat["seat"] = welcome["seat"].clone();
    again.say(&with_seat).await;
    assert_eq!(again.hear("welcome").await["locked"], true);
    let mut thief = Client::open(&server).await;
    let mut stolen = join("tea", &guest("tea", "bo"));
    stolen["seat"] = welcome["seat"].clone();
    thief.say(&stolen).await;
    assert_eq!(thief.hear_error().await, "locked");
    assert_eq!(moderate(&mut boss, json!({"action": "lock", "locked": false})).await, "done");
    assert_eq!(again.hear("entry").await["locked"], false);
    thief.say(&stolen).await;
    thief.hear("welcome").await;
}

#[tokio::test]
async fn who_comes_to_a_lobby_waits_and_is_admitted_or_refused() {
    let server = start(config()).await;
    let (mut boss, _) = enter(&server, &moderator()).await;
    let (mut ana, _) = enter(&server, &guest("tea", "ana")).await;
    assert_eq!(moderate(&mut boss, json!({"action": "lobby", "lobby": true})).await, "done");
    assert_eq!(ana.hear("entry").await["lobby"], true);
    let mut bo = Client::open(&server).await;
    bo.say(&join("tea", &guest("tea", "bo"))).await;
    bo.hear("waiting").await;
    bo.check_alive().await;
    let lobby = boss.hear("lobby").await;
    assert_eq!(lobby["waiting"][0]["identity"], "bo");
    let order = json!({"action": "admit", "waiting": lobby["waiting"][0]["id"]});
    assert_eq!(moderate(&mut boss, order).await, "done");
    let welcome = bo.hear("welcome").await;
    assert_eq!(welcome["lobby"], true);
    assert_eq!(ana.hear("participant_joined").await["identity"], "bo");
    let mut cy = Client::open(&server).await;
    cy.say(&join("tea", &guest("tea", "cy"))).await;
    cy.hear("waiting").await;
    let waiting = loop {
        let lobby = boss.hear("lobby").await;
        if lobby["waiting"][0]["identity"] == "cy" {
            break lobby["waiting"][0]["id"].as_str().unwrap().to_owned();
        }
    };
    let (status, _) = ask(
        &server,
        &format!("PUT /admin/rooms/tea/waiting/{waiting}"),
        json!({"admitted": false}),
    )
    .await;
    assert_eq!(status, 204);
    assert_eq!(cy.hear_error().await, "refused");
    assert_eq!(cy.close_code().await, 4002);
    // Who goes while it waits is on nobody's list.
    let mut di = Client::open(&server).await;
    di.say(&join("tea", &guest("tea", "di"))).await;
    di.hear("waiting").await;
    di.say(&json!({"type": "leave"})).await;
    di.check_alive().await;
    let (_, list) = ask(&server, "GET /admin/rooms/tea/waiting", Value::Null).await;
    assert_eq!(list["waiting"], json!([]));
}

#[tokio::test]
async fn a_grant_that_is_taken_ends_tracks_and_offers_and_can_be_given_again() {
    let server = start(config()).await;
    let (mut boss, _) = enter(&server, &moderator()).await;
    let (mut ana, welcome) = enter(&server, &guest("tea", "ana")).await;
    ana.say(&offer::camera(1)).await;
    ana.hear("answer").await;
    let track = boss.hear("track_added").await["track"]["id"].clone();
    let grants = |grants: Value| json!({"action": "grants", "participant": welcome["participant"], "grants": grants});
    assert_eq!(moderate(&mut boss, grants(json!(["subscribe"]))).await, "done");
    assert_eq!(ana.hear("grants").await["grants"], json!(["subscribe"]));
    assert_eq!(boss.hear("track_removed").await["track"], track);
    ana.say(&offer::camera(2)).await;
    assert_eq!(ana.hear_error().await, "forbidden");
    let (_, room) = ask(&server, "GET /admin/rooms/tea", Value::Null).await;
    let of_ana = room["participants"].as_array().unwrap().iter().find(|p| p["identity"] == "ana");
    assert_eq!(of_ana.unwrap()["grants"], json!(["subscribe"]));
    // With the same token it comes back as it is now.
    drop(ana);
    let (mut ana, welcome) = enter(&server, &guest("tea", "ana")).await;
    assert_eq!(welcome["grants"], json!(["subscribe"]));
    let path = format!(
        "DELETE /admin/rooms/tea/participants/{}/grants",
        welcome["participant"].as_str().unwrap()
    );
    assert_eq!(ask(&server, &path, Value::Null).await.0, 204);
    assert_eq!(ana.hear("grants").await["grants"], json!(Grant::PARTICIPANT));
    ana.say(&offer::camera(1)).await;
    ana.hear("answer").await;
}

#[tokio::test]
async fn a_revoked_token_ends_who_came_with_it_and_lets_nobody_in() {
    let server = start(config()).await;
    let (mut ana, _) = enter(&server, &guest("tea", "ana")).await;
    let (mut bo, _) = enter(&server, &guest("tea", "bo")).await;
    let revoked = "PUT /admin/revoked/ana-token";
    assert_eq!(ask(&server, revoked, json!({})).await.0, 204);
    assert_eq!(ana.hear_error().await, "revoked");
    assert_eq!(refusal(&server, &guest("tea", "ana")).await, "revoked");
    bo.check_alive().await;
    assert_eq!(ask(&server, "DELETE /admin/revoked/ana-token", Value::Null).await.0, 204);
    enter(&server, &guest("tea", "ana")).await;
}

#[tokio::test]
async fn operators_of_one_room_say_nothing_of_others() {
    let server = start(config()).await;
    let tea = token(NEW, "tea", "ops", &[Grant::Admin], 60.0);
    let request = |path: &str| {
        format!(
            "PUT {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
             authorization: Bearer {tea}\r\ncontent-length: 2\r\n\r\n{{}}"
        )
    };
    for (path, status) in [
        ("/admin/rooms/tea/bans/ana", "204"),
        ("/admin/rooms/coffee/bans/ana", "403"),
        ("/admin/rooms/*/bans/ana", "403"),
        ("/admin/revoked/ana-token", "403"),
        ("/admin/rooms/coffee/entry", "403"),
    ] {
        let answer = http(&server, &request(path)).await;
        assert_eq!(answer.split(' ').nth(1), Some(status), "{path}");
    }
}

#[tokio::test]
async fn whip_is_refused_where_its_bearer_may_not_come_in_and_ends_when_it_may_not_stay() {
    let server = start(config()).await;
    let (mut boss, _) = enter(&server, &moderator()).await;
    let post = |identity: &str| {
        let sdp = offer::camera(1)["sdp"].as_str().unwrap().to_owned();
        let token = guest("tea", identity);
        format!(
            "POST /whip/tea HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/sdp\r\n\
             authorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{sdp}",
            sdp.len()
        )
    };
    let status = async |identity: &str| {
        let answer = http(&server, &post(identity)).await;
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status("cam").await, "201");
    let cam = boss.hear("participant_joined").await["participant"].clone();
    let grants = json!({"action": "grants", "participant": cam, "grants": ["subscribe"]});
    assert_eq!(moderate(&mut boss, grants).await, "done");
    assert_eq!(boss.hear("participant_left").await["participant"], cam);
    assert_eq!(status("dan").await, "201");
    let dan = boss.hear("participant_joined").await["participant"].clone();
    assert_eq!(moderate(&mut boss, json!({"action": "ban", "participant": dan})).await, "done");
    assert_eq!(boss.hear("participant_left").await["participant"], dan);
    assert_eq!(status("dan").await, "403");
    assert_eq!(moderate(&mut boss, json!({"action": "lock", "locked": true})).await, "done");
    assert_eq!(status("eve").await, "403");
}
