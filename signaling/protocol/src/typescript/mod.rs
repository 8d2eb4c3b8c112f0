//! The messages as TypeScript, for the client's types.
//!
//! `cargo xtask protocol` writes them to `client-web/src/sdk/protocol.gen.ts`; a test fails when the file differs.

mod layout;

use std::fmt::Write;

use ts_rs::{Config, TS};
use windlass_types::{
    ConnectionQuality, DecayReport, FrameNetwork, Layer, LayerKnobs, NoNetwork, Refusal, Rung,
    TrackKind, VideoCodec, Way, WayReason,
};

use crate::{
    AccessToken, ClientMessage, Error, ErrorCode, Grant, IceCredential, IceServer, IceServers,
    Join, Knock, Moderate, Offer, OwnTrack, Participant, Publish, Report, SendData, ServerMessage,
    SetAttributes, SetRung, Subscribe, Track, TrackStats, Uplink, VERSION, View, Welcome,
};

/// Content of the TypeScript file.
pub fn file() -> String {
    let config = Config::new().with_large_int("number");
    let mut text = format!(
        "// Written by `cargo xtask protocol` from the types of signaling/protocol. Change those, not this.\n\n\
         /** The protocol version that these types are of. */\nexport const VERSION = {VERSION};\n"
    );
    macro_rules! declare {
        ($($name:ty),+ $(,)?) => {
            // Writing to a string cannot fail.
            $(let _ = writeln!(text, "\n{}export {}", docs(<$name>::docs()), layout::laid_out(&<$name>::decl(&config)));)+
        };
    }
    declare!(
        ClientMessage,
        Join,
        Offer,
        Publish,
        Subscribe,
        SetRung,
        View,
        Report,
        DecayReport,
        Uplink,
        SendData,
        SetAttributes,
        Moderate,
        AccessToken,
        ServerMessage,
        Welcome,
        Participant,
        Knock,
        Track,
        OwnTrack,
        TrackStats,
        Error,
        ErrorCode,
        IceServers,
        IceServer,
        IceCredential,
        Grant,
        TrackKind,
        FrameNetwork,
        NoNetwork,
        Way,
        WayReason,
        Layer,
        Rung,
        VideoCodec,
        Refusal,
        LayerKnobs,
        ConnectionQuality,
    );
    text
}

/// A type's own comment, in the form of its fields' comments.
fn docs(docs: Option<String>) -> String {
    layout::laid_out(&docs.unwrap_or_default())
}
