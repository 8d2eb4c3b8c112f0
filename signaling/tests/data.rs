//! Messages and attributes between real sockets.

mod common;

use serde_json::{Value, json};
use windlass_protocol::Grant;
use windlass_signaling::SignalingConfig;

use common::tokens::{NEW, config, token};
use common::{Client, get, start};

fn chat(text: &str) -> Value {
    json!({"type": "send", "topic": "chat", "text": text})
}

/// What has come, and what comes until a message of this text.
async fn texts_until(client: &mut Client, last: &str) -> Vec<String> {
    let mut texts = Vec::new();
    while texts.last().is_none_or(|text| text != last) {
        texts.push(client.hear("data").await["text"].as_str().unwrap().to_owned());
    }
    texts
}

#[tokio::test]
async fn messages_reach_all_others_or_those_they_name() {
    let server = start(SignalingConfig::default()).await;
    let (mut ana, ana_is) = Client::joined(&server, "tea", "Ana").await;
    let (mut bo, bo_is) = Client::joined(&server, "tea", "Bo").await;
    let (mut cy, _) = Client::joined(&server, "tea", "Cy").await;
    let (mut stranger, _) = Client::joined(&server, "coffee", "Di").await;
    ana.say(&chat("Tea?")).await;
    let told = json!({"type": "data", "from": ana_is["participant"], "seq": 1, "topic": "chat",
        "text": "Tea?"});
    assert_eq!(bo.hear("data").await, told);
    assert_eq!(cy.hear("data").await, told);
    let to_bo = json!({"type": "send", "id": 7, "topic": "pen", "bytes": "AAH/",
        "to": [bo_is["participant"], "p1", "nobody"], "reliable": false});
    ana.say(&to_bo).await;
    assert_eq!(ana.hear("done").await["id"], 7);
    let told = json!({"type": "data", "from": ana_is["participant"], "seq": 2, "topic": "pen",
        "bytes": "AAH/"});
    assert_eq!(bo.hear("data").await, told);
    // The others got nothing of it, nor the sender its own.
    cy.say(&chat("Yes")).await;
    assert_eq!(texts_until(&mut ana, "Yes").await, ["Yes"]);
    let mut numbered = chat("Now");
    numbered["number"] = json!(12);
    ana.say(&numbered).await;
    let told = cy.hear("data").await;
    assert_eq!((&told["seq"], &told["number"]), (&json!(3), &json!(12)));
    stranger.say(&json!({"type": "ping", "time": 1})).await;
    let next = stranger.next().await.unwrap().into_text().unwrap();
    assert!(next.contains("pong"), "another room heard {next}");
}

#[tokio::test]
async fn who_sends_too_much_is_told_so_and_takes_nothing_from_others() {
    let server = start(SignalingConfig::default()).await;
    let (mut flood, _) = Client::joined(&server, "tea", "Mallory").await;
    let (mut ana, _) = Client::joined(&server, "tea", "Ana").await;
    let (mut bo, _) = Client::joined(&server, "tea", "Bo").await;
    for n in 0..100 {
        let mut message = chat(&format!("{n}"));
        message["id"] = json!(n);
        flood.say(&message).await;
    }
    ana.say(&chat("I am here")).await;
    let (mut taken, mut refused) = (0, 0);
    for n in 0..100 {
        loop {
            let Some(message) = flood.next().await else { panic!("closed") };
            let message: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
            match message["type"].as_str().unwrap() {
                "done" => taken += 1,
                "error" => {
                    assert_eq!(message["code"], "rate_limited");
                    assert!(message["hint"].as_str().unwrap().ends_with('.'));
                    refused += 1;
                }
                _ => continue,
            }
            assert_eq!(message["id"], n, "each is answered, in order");
            break;
        }
    }
    // A second may have passed meanwhile.
    assert!((40..80).contains(&taken) && taken + refused == 100, "{taken} {refused}");
    let mut all: Vec<String> = Vec::new();
    while all.len() < taken + 1 {
        all.push(bo.hear("data").await["text"].as_str().unwrap().to_owned());
    }
    assert!(all.contains(&"I am here".to_owned()));
    let numbers: Vec<u32> = all.iter().filter_map(|text| text.parse().ok()).collect();
    assert!(numbers.is_sorted() && numbers.len() == taken, "{numbers:?}");
    flood.check_alive().await;
    let metrics = get(&server, "/metrics").await;
    assert!(metrics.contains(&format!("windlass_sfu_data_in_total {}\n", taken + 1)), "{metrics}");
    assert!(metrics.contains(&format!("windlass_signaling_rate_limited_total {refused}\n")));
}

#[tokio::test]
async fn messages_beyond_their_bounds_are_refused_and_the_rest_goes_on() {
    let server = start(SignalingConfig::default()).await;
    let (mut ana, _) = Client::joined(&server, "tea", "Ana").await;
    let (mut bo, _) = Client::joined(&server, "tea", "Bo").await;
    for (message, code) in [
        (json!({"topic": "t", "text": "x".repeat(16 * 1024 + 1)}), "too_large"),
        (json!({"topic": "t", "bytes": "AAAA".repeat(5462)}), "too_large"),
        (json!({"topic": "t".repeat(65), "text": "x"}), "too_large"),
        (json!({"topic": "t", "text": "x", "to": vec!["p1"; 101]}), "too_large"),
        (json!({"topic": "a b", "text": "x"}), "malformed"),
        (json!({"topic": "t", "bytes": "?"}), "malformed"),
        (json!({"topic": "t"}), "malformed"),
    ] {
        let mut message = message;
        message["type"] = json!("send");
        ana.say(&message).await;
        assert_eq!(ana.hear_error().await, code, "{message}");
    }
    let large = "x".repeat(16 * 1024);
    ana.say(&chat(&large)).await;
    assert_eq!(bo.hear("data").await["text"], large);
    let mut outside = Client::open(&server).await;
    outside.say(&chat("x")).await;
    assert_eq!(outside.hear_error().await, "not_joined");
}

#[tokio::test]
async fn attributes_and_names_are_told_to_those_who_are_there_and_who_come() {
    let server = start(SignalingConfig::default()).await;
    let (mut ana, ana_is) = Client::joined(&server, "tea", "Ana").await;
    let (mut bo, _) = Client::joined(&server, "tea", "Bo").await;
    let change = json!({"type": "attributes", "id": 3, "set": {"hand": "up", "pen": "red"}});
    ana.say(&change).await;
    assert_eq!(ana.hear("done").await["id"], 3);
    let told = json!({"type": "participant_changed", "participant": ana_is["participant"],
        "name": "Ana", "attributes": {"hand": "up", "pen": "red"}});
    assert_eq!(bo.hear("participant_changed").await, told);
    ana.say(&json!({"type": "attributes", "set": {"hand": null}, "name": "Anna"})).await;
    let told = json!({"type": "participant_changed", "participant": ana_is["participant"],
        "name": "Anna", "attributes": {"pen": "red"}});
    assert_eq!(bo.hear("participant_changed").await, told);
    let (_cy, welcome) = Client::joined(&server, "tea", "Cy").await;
    let mut people = welcome["participants"].as_array().unwrap().iter();
    let of_ana = people.find(|one| one["id"] == ana_is["participant"]).unwrap();
    assert_eq!((&of_ana["name"], &of_ana["attributes"]), (&json!("Anna"), &json!({"pen": "red"})));
    bo.hear("participant_joined").await;
    // She comes again, with what she said of herself.
    drop(ana);
    bo.hear("participant_left").await;
    let mut ana = Client::open(&server).await;
    ana.say(&json!({"type": "join", "version": 1, "room": "tea", "name": "Anna",
        "seat": ana_is["seat"], "attributes": {"pen": "red"}}))
        .await;
    assert_eq!(ana.hear("welcome").await["attributes"], json!({"pen": "red"}));
    let joined = bo.hear("participant_joined").await;
    assert_eq!((&joined["name"], &joined["attributes"]), (&json!("Anna"), &json!({"pen": "red"})));
    assert_eq!(joined["was"], ana_is["participant"], "her seat says who she was");
}

#[tokio::test]
async fn who_comes_back_by_its_seat_takes_its_own_place() {
    let server = start(SignalingConfig::default()).await;
    let (mut bo, bo_is) = Client::joined(&server, "tea", "Bo").await;
    let (mut ana, ana_is) = Client::joined(&server, "tea", "Ana").await;
    bo.hear("participant_joined").await;
    let back = |seat: &Value| json!({"type": "join", "version": 1, "room": "tea", "name": "Ana", "seat": seat});
    // Its former connection is not known to be lost yet.
    let mut again = Client::open(&server).await;
    again.say(&back(&ana_is["seat"])).await;
    let others = again.hear("welcome").await["participants"].clone();
    assert_eq!(others.as_array().unwrap().len(), 1);
    assert_eq!(others[0]["id"], bo_is["participant"]);
    assert_eq!(bo.hear("participant_left").await["participant"], ana_is["participant"]);
    assert_eq!(bo.hear("participant_joined").await["was"], ana_is["participant"]);
    assert_eq!(ana.hear_error().await, "replaced");
    // Nobody is somebody else by an id alone.
    let mut mallory = Client::open(&server).await;
    let false_seat = json!(ana_is["seat"].as_str().unwrap().replacen(
        ana_is["participant"].as_str().unwrap(),
        bo_is["participant"].as_str().unwrap(),
        1,
    ));
    assert_ne!(false_seat, ana_is["seat"]);
    mallory.say(&back(&false_seat)).await;
    mallory.hear("welcome").await;
    assert_eq!(bo.hear("participant_joined").await["was"], Value::Null);
}

#[tokio::test]
async fn without_the_grant_nothing_is_sent_until_a_moderator_gives_it() {
    let server = start(config()).await;
    let join = |identity: &str, grants: &[Grant]| {
        json!({"type": "join", "version": 1, "room": "tea", "name": "N",
            "attributes": {"hand": "up"}, "token": token(NEW, "tea", identity, grants, 60.0)})
    };
    let mut boss = Client::open(&server).await;
    boss.say(&join("boss", &[Grant::Moderate, Grant::Data])).await;
    assert_eq!(boss.hear("welcome").await["attributes"], json!({"hand": "up"}));
    let mut ana = Client::open(&server).await;
    ana.say(&join("ana", &[Grant::Publish, Grant::Subscribe])).await;
    let welcome = ana.hear("welcome").await;
    assert_eq!(welcome["attributes"], Value::Null);
    assert_eq!(boss.hear("participant_joined").await["attributes"], Value::Null);
    ana.say(&chat("x")).await;
    assert_eq!(ana.hear_error().await, "forbidden");
    ana.say(&json!({"type": "attributes", "set": {"hand": "up"}})).await;
    assert_eq!(ana.hear_error().await, "forbidden");
    // It may hear others all the same.
    boss.say(&chat("Welcome")).await;
    assert_eq!(ana.hear("data").await["text"], "Welcome");
    let given = ["publish", "subscribe", "data"];
    boss.say(&json!({"type": "moderate", "action": "grants",
        "participant": welcome["participant"], "grants": given}))
        .await;
    assert_eq!(ana.hear("grants").await["grants"], json!(given));
    ana.say(&chat("Thank you")).await;
    assert_eq!(boss.hear("data").await["text"], "Thank you");
    // What she says of herself ends with the grant.
    ana.say(&json!({"type": "attributes", "set": {"hand": "up"}})).await;
    assert_eq!(boss.hear("participant_changed").await["attributes"], json!({"hand": "up"}));
    boss.say(&json!({"type": "moderate", "action": "grants",
        "participant": welcome["participant"], "grants": ["subscribe"]}))
        .await;
    assert_eq!(boss.hear("participant_changed").await["attributes"], Value::Null);
}

#[tokio::test]
async fn in_a_room_of_ones_own_messages_come_back() {
    let server = start(SignalingConfig::default()).await;
    let mut ana = Client::open(&server).await;
    let join = json!({"type": "join", "version": 1, "room": "me", "name": "Ana", "loopback": true});
    ana.say(&join).await;
    ana.hear("welcome").await;
    ana.say(&chat("Echo")).await;
    assert_eq!(ana.hear("data").await["text"], "Echo");
}
