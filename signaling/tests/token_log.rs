//! No token is written down. A test of its own process, because it looks at everything that is logged.

mod common;

use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;
use windlass_protocol::Grant;

use common::tokens::{STRANGER, config, guest, join, token};
use common::{Client, http, post, start};

/// Everything that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

#[tokio::test]
async fn no_token_is_logged_whatever_the_level() {
    let log = Log::default();
    // As the binary filters: `tungstenite` would write whole messages.
    let filter = "trace,tungstenite=info";
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(log.clone()).init();
    let server = start(config()).await;
    let good = guest("tea", "ana");
    let bad = token(STRANGER, "tea", "ana", &Grant::PARTICIPANT, 60.0);
    let mut client = Client::open(&server).await;
    client.say(&join("tea", &bad)).await;
    client.hear_error().await;
    client.say(&join("tea", &good)).await;
    client.hear("welcome").await;
    let header = format!("authorization: Bearer {good}\r\n");
    http(&server, &post("/admin/enhancer", &header, r#"{"enabled":false}"#)).await;
    let log = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(log.contains("joined") && log.contains("join refused"), "{log}");
    for token in [&good, &bad] {
        for part in token.split('.').skip(1) {
            assert!(!log.contains(part), "{part} is in the log: {log}");
        }
    }
}
