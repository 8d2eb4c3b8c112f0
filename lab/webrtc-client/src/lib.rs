//! A WebRTC client on webrtc-rs: another stack than the server's judges the server.
//!
//! A [`Connection`] sends simulcast by rid and receives video, answers and asks for retransmissions, gives and takes
//! transport-wide feedback, and gets anchors by the data channel. It knows nothing of signalling: session descriptions
//! go in and out as text. [`Counters`] has what its stack repaired and reported.
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
