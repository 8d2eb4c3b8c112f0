//! Message types of the Windlass signalling protocol, version [`VERSION`].
//!
//! JSON text over one WebSocket per participant. `docs/signaling.md` describes the protocol for
//! people; this crate is its definition. It holds no state and does no I/O: text goes in and a
//! typed message or a typed [`ProtocolError`] comes out, whatever the text.
//!
//! - [`Request`] is a client's message with its optional id; [`Request::parse`] reads one.
//! - [`ServerMessage`] is what the server answers.
//! - [`ErrorCode`] is every reason for an `error` message, with what the client can do next.
//! - [`limits`] bounds each field. Sizes are bytes, lengths are characters.
//!
//! ```
//! use windlass_protocol::{ClientMessage, ErrorCode, Request};
//!
//! let request = Request::parse(r#"{"type":"ping","time":12.5}"#).unwrap();
//! assert_eq!(request.message, ClientMessage::Ping { time: 12.5 });
//!
//! let error = Request::parse(r#"{"type":"fly","id":7}"#).unwrap_err();
//! assert_eq!((error.code, error.id), (ErrorCode::UnknownType, Some(7)));
//! ```
//!
//! Unknown fields of a known message are ignored, so that a newer client can talk to an older
//! server of the same protocol version. An unknown `type` is refused with `unknown_type`.

mod client;
mod data;
mod described;
mod error;
mod grant;
mod ice;
pub mod limits;
mod moderate;
mod names;
mod server;
#[cfg(feature = "typescript")]
pub mod typescript;

pub use client::{
    ANCHOR_CODEC, ClientMessage, Join, Offer, Publish, Report, Request, SetRung, Subscribe, Uplink,
    View,
};
pub use data::{Base64, SendData, SetAttributes};
pub use error::{ErrorCode, ProtocolError};
pub use grant::{AccessToken, Grant, UnknownGrant};
pub use ice::{IceCredential, IceServer, IceServers};
pub use moderate::{Knock, Moderate};
pub use server::{Error, OwnTrack, Participant, ServerMessage, Track, TrackStats, Welcome};
pub use windlass_types::{
    Attributes, ConnectionQuality, FrameNetwork, LayerKnobs, NoNetwork, Rung, TrackKind, Way,
    WayReason,
};

/// The README of this crate, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The protocol version that this crate speaks.
pub const VERSION: u32 = 1;
