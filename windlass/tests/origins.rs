//! Which pages may use a running server.

mod server;

use server::{Client, Server};

async fn opens(server: &Server, origin: &str) -> Result<(), u16> {
    Client::try_open(server, "/ws", &[("origin", origin)]).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_pages_are_refused_where_origins_are_named() {
    let server = Server::start(&["--origins", "https://calls.example,http://localhost:5173"]);
    let own = format!("http://{}", server.addr);
    for origin in ["https://calls.example", "http://localhost:5173", &own] {
        assert_eq!(opens(&server, origin).await, Ok(()), "{origin}");
    }
    for origin in ["https://evil.example", "null", "http://localhost:7880"] {
        assert_eq!(opens(&server, origin).await, Err(403), "{origin}");
    }
    let (_, answer) = Client::join(&server, "tea", "a program").await;
    assert_eq!(answer["type"], "welcome");
    // What anybody may read who reaches the server stays so.
    assert_eq!(server.status("/healthz"), 200);

    let answer = server.get_with("/whip/tea", "origin: https://calls.example\r\n");
    let head = answer.to_ascii_lowercase();
    assert!(head.contains("access-control-allow-origin: https://calls.example\r\n"), "{head}");
    assert!(head.contains("vary: origin\r\n"), "{head}");
    let answer = server.get_with("/whip/tea", "origin: https://evil.example\r\n");
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("`origins`"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_every_origin_may_otherwise() {
    let server = Server::start(&[]);
    assert_eq!(opens(&server, "https://any.example").await, Ok(()));
    let answer = server.get_with("/whip/tea", "origin: https://any.example\r\n");
    assert!(answer.to_ascii_lowercase().contains("access-control-allow-origin: *\r\n"), "{answer}");
}
