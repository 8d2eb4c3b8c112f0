//! A participant with a connection that does what a test says: offers, connects, opens channels, or nothing of it.

use std::time::{Duration, Instant};

use serde_json::Value;
use str0m::Rtc;
use str0m::channel::{ChannelConfig, ChannelId};

use crate::connection::Connection;
use crate::server::{Client, Server};

/// Longer than anything may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A participant whose connection does what a test says.
pub(crate) struct Guest {
    pub signal: Client,
    connection: Connection,
}

impl Guest {
    /// Joins, and no more.
    pub(crate) async fn join(server: &Server, room: &str) -> Guest {
        let (signal, welcome) = Client::join(server, room, "Guest").await;
        assert_eq!(welcome["type"], "welcome", "{welcome}");
        Guest { signal, connection: Connection::new(Rtc::builder()) }
    }

    /// Offers a data channel alone, as the SDK does first; the answer, or the error.
    pub(crate) async fn negotiate(&mut self) -> Value {
        let offered = self.connection.client.offer(&[], &["ctl"]);
        self.connection.negotiate(&mut self.signal, offered, &[], &[]).await
    }

    /// The WebRTC connection of the guest.
    pub(crate) fn rtc(&mut self) -> &mut Rtc {
        &mut self.connection.client.rtc
    }

    /// Talks until the connection is up, or the time is over.
    pub(crate) fn connect(&mut self, most: Duration) -> bool {
        let since = Instant::now();
        while !self.connection.client.connected && since.elapsed() < most {
            self.connection.talk();
            std::thread::sleep(Duration::from_millis(2));
        }
        self.connection.client.connected
    }

    /// Talks for so long.
    pub(crate) fn linger(&mut self, time: Duration) {
        let since = Instant::now();
        while since.elapsed() < time {
            self.connection.talk();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Opens a channel, which the server hears of; or, with a stream of one's own choice, not.
    pub(crate) fn open(&mut self, stream: Option<u16>) -> ChannelId {
        let config =
            ChannelConfig { label: "chat".into(), negotiated: stream, ..ChannelConfig::default() };
        self.rtc().direct_api().create_data_channel(config)
    }

    /// The error with which the server ends it.
    pub(crate) async fn ended(&mut self) -> Value {
        tokio::time::timeout(TIMEOUT, async {
            loop {
                let error = self.signal.hear(&["error"]).await;
                if error["fatal"] == true {
                    return error;
                }
            }
        })
        .await
        .expect("an end")
    }
}
