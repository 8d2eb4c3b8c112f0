//! Offers that ended a media thread for ever, or kept it busy for many seconds. Whoever may join can send them.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::honest::Scene;
use crate::server::{Client, Server};

const HEAD: &str = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuv\r\n\
    a=fingerprint:sha-256 9A:56:5D:80:95:4E:F4:A9:3F:B0:91:6B:6D:D6:FB:42:8A:16:04:E1:A6:0D:6C:55:0C:CC:40:6C:EA:65:40:EA\r\n\
    a=setup:actpass\r\n";
const AUDIO: &str = "m=audio 9 UDP/TLS/RTP/SAVPF 96\r\na=recvonly\r\na=rtpmap:96 opus/48000/2\r\n";
const VIDEO: &str = "m=video 9 UDP/TLS/RTP/SAVPF 98 99\r\na=recvonly\r\na=rtpmap:98 VP9/90000\r\na=rtcp-fb:98 nack\r\n\
    a=rtpmap:99 rtx/90000\r\na=fmtp:99 apt=98\r\n";
/// Rooms of newcomers go where there is least to do: so many are on both threads.
const ROOMS: usize = 6;

fn sdp(sections: &[String]) -> String {
    let mids: Vec<String> = (0..sections.len()).map(|n| n.to_string()).collect();
    let mut text = format!("{HEAD}a=group:BUNDLE {}\r\n", mids.join(" "));
    for (n, section) in sections.iter().enumerate() {
        let _ = write!(text, "{section}a=mid:{n}\r\n");
    }
    text
}

async fn inside(server: &Server) -> Vec<Client> {
    let mut clients = Vec::new();
    for n in 0..ROOMS {
        let (client, welcome) = Client::join(server, &format!("mallory-{n}"), "Mallory").await;
        assert_eq!(welcome["type"], "welcome", "{welcome}");
        clients.push(client);
    }
    clients
}

async fn offer(client: &mut Client, sdp: &str) -> Value {
    client
        .say(&json!({"type": "offer", "id": 1, "sdp": sdp, "publish": [], "subscribe": []}))
        .await;
    client.hear(&["answer", "error"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_payload_type_for_two_codecs_ends_no_media_thread() {
    let scene = Scene::open(&[]);
    let mut clients = inside(&scene.server).await;
    let video = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=recvonly\r\na=rtpmap:96 VP9/90000\r\n";
    let first = sdp(&[AUDIO.to_owned()]);
    let both = sdp(&[AUDIO.to_owned(), video.to_owned()]);
    for client in &mut clients {
        // As the first offer, and as one to a connection that is there.
        for _ in 0..2 {
            let error = offer(client, &both).await;
            assert_eq!((&error["code"], &error["fatal"]), (&json!("bad_sdp"), &json!(false)));
            assert!(error["message"].as_str().is_some_and(|text| text.contains("96")), "{error}");
            let answer = offer(client, &first).await;
            assert_eq!(answer["type"], "answer", "{answer}");
        }
    }
    assert!(!scene.server.log().contains("panicked"), "{}", scene.server.log());
    drop(clients);
    scene.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_offer_keeps_a_media_thread_busy() {
    let scene = Scene::open(&[]);
    let mut clients = inside(&scene.server).await;
    // 22 seconds.
    let cubic = VIDEO.to_owned()
        + &"a=rtpmap:7 VP9/90000\r\n".repeat(1200)
        + &"a=fmtp:9 apt=98\r\n".repeat(1700);
    let cubic = sdp(&[cubic]);
    for client in &mut clients {
        let since = Instant::now();
        let error = offer(client, &cubic).await;
        assert_eq!(error["code"], "too_large", "{error}");
        assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
    }
    // The dearest that is taken, again and again.
    let extensions: Vec<String> =
        (1..=8).map(|n| format!("a=extmap:{n} urn:ietf:params:rtp-hdrext:{n}\r\n")).collect();
    let dear = sdp(&vec![VIDEO.replace("recvonly", "sendrecv") + &extensions.concat(); 64]);
    for client in &mut clients {
        for _ in 0..5 {
            let answer = offer(client, &dear).await;
            assert_eq!(answer["type"], "answer", "{answer}");
        }
    }
    drop(clients);
    scene.close();
}
