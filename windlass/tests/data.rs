//! Messages and attributes in a room on two real servers, with a real `nats-server`.

mod cluster;
mod server;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use cluster::{Nats, TOKEN, alone};
use server::free::free_address;
use server::{Client, Server, eventually};

/// A server that wants one participant of a room.
fn serve(nats: &Nats) -> Server {
    let port = free_address().port();
    let (http, url) = (format!("127.0.0.1:{port}"), format!("ws://127.0.0.1:{port}/ws"));
    let nats = nats.url();
    let cluster = ["--nats", &nats, "--cluster-token", TOKEN, "--node-url", &url];
    let own = ["--http", &http, "--node-listen", "127.0.0.1:0", "--node-max-participants", "1"];
    Server::start(&[&cluster[..], &own[..]].concat())
}

/// Joins wherever the room is; what it is told there, and where that is.
async fn join(server: &Server, more: &Value) -> (Client, Value, String) {
    let mut url = format!("ws://{}/ws", server.addr);
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(10) {
        let mut client = Client(tokio_tungstenite::connect_async(&url).await.unwrap().0);
        let mut ask = json!({"type": "join", "version": 1, "room": "tea"});
        ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.say(&ask).await;
        let answer = client.hear(&["welcome", "error", "moved"]).await;
        if answer["type"] != "moved" {
            return (client, answer, url);
        }
        answer["url"].as_str().unwrap().clone_into(&mut url);
    }
    panic!("sent on and on: {}", server.log());
}

#[test]
fn messages_and_attributes_pass_between_servers_in_their_order() {
    let _turn = alone();
    let Some(nats) = Nats::start(None) else { return };
    let (one, other) = (serve(&nats), serve(&nats));
    for server in [&one, &other] {
        eventually(server, "both servers", || {
            server.metric_if_any("windlass_cluster_nodes") == Some(2.0)
        });
    }
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (mut ana, ana_is, here) = join(&one, &json!({"name": "Ana"})).await;
        let hand = json!({"hand": "up"});
        let (mut bo, _, there) = join(&one, &json!({"name": "Bo", "attributes": hand})).await;
        assert_ne!(here, there, "they are at two servers");
        let joined = ana.hear(&["participant_joined"]).await;
        assert_eq!((&joined["name"], &joined["attributes"]), (&json!("Bo"), &hand));
        bo.hear(&["participant_joined"]).await;

        for n in 0..30 {
            let (text, reliable) = (format!("{n}"), n % 3 != 0);
            let all = json!({"type": "send", "topic": "chat", "text": text, "reliable": reliable,
                "number": n + 7});
            ana.say(&all).await;
        }
        for n in 0..30 {
            let told = json!({"type": "data", "from": ana_is["participant"], "seq": n + 1,
                "number": n + 7, "topic": "chat", "text": format!("{n}")});
            assert_eq!(bo.hear(&["data"]).await, told);
        }
        let named = json!({"type": "send", "topic": "pen", "bytes": "AAH/",
            "to": [ana_is["participant"]]});
        bo.say(&named).await;
        let heard = ana.hear(&["data"]).await;
        assert_eq!((&heard["from"], &heard["bytes"]), (&joined["participant"], &json!("AAH/")));

        ana.say(&json!({"type": "attributes", "set": {"pen": "red"}, "name": "Anna"})).await;
        let told = json!({"type": "participant_changed", "participant": ana_is["participant"],
            "name": "Anna", "attributes": {"pen": "red"}});
        assert_eq!(bo.hear(&["participant_changed"]).await, told);
        let (_cy, welcome, _) = join(&other, &json!({"name": "Cy"})).await;
        let people = welcome["participants"].as_array().unwrap();
        let of = |id: &Value| people.iter().find(|one| one["id"] == *id).expect("there").clone();
        let anna = of(&ana_is["participant"]);
        assert_eq!((&anna["name"], &anna["attributes"]), (&json!("Anna"), &json!({"pen": "red"})));
        assert_eq!(of(&joined["participant"])["attributes"], hand);

        // Whoever comes back is known by its seat, whichever server it comes to.
        bo.hear(&["participant_joined"]).await;
        drop(ana);
        bo.hear(&["participant_left"]).await;
        let (_ana, _, _) = join(&other, &json!({"name": "Anna", "seat": ana_is["seat"]})).await;
        assert_eq!(bo.hear(&["participant_joined"]).await["was"], ana_is["participant"]);
    });
}
