//! A WebRTC client on webrtc-rs: another stack than the server's judges the server.
//!
//! A [`Connection`] sends simulcast by rid and receives video, answers and asks for retransmissions, gives and takes
//! transport-wide feedback, and gets anchors by the data channel. It knows nothing of signalling: session descriptions
//! go in and out as text. [`Counters`] has what its stack repaired and reported.
//!
//! ```no_run
//! # async fn example(answered: impl Fn(&str) -> String) -> anyhow::Result<()> {
//! use std::net::Ipv4Addr;
//! use windlass_webrtc_client::Connection;
//!
//! let mut connection = Connection::new(Ipv4Addr::LOCALHOST.into()).await?;
//! connection.send(&["q", "h", "f"]).await?;
//! connection.receive().await?;
//! let offered = connection.offer().await?;
//! connection.accept(&answered(&offered.sdp)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! `lab/webrtc-client/README.md` lists what the stack cannot do, with the smallest case.

mod codecs;
mod connection;
mod counters;
mod engine;
mod labels;
mod meter;
mod numbers;
mod receive;
mod send;

pub use connection::{Connection, Offered};
pub use counters::Counters;
pub use receive::{Arrival, Event};
pub use send::VideoPacket;
