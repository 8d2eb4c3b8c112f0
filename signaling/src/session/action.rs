//! What a [`Session`](super::Session) asks its shell to do, and what the shell answers.

use std::collections::BTreeSet;

use windlass_protocol::{AccessToken, Attributes, IceServers, Moderate, Report, ServerMessage};
use windlass_sfu::{
    DataMessage, JoinError, JoinOptions, Offer, ParticipantId, TrackId, TrackInfo, UplinkReport,
    View,
};
use windlass_types::Rung;

use crate::access::AccessError;
use crate::admission::Refused;
use crate::rights::ruling::{Denied, Ruling};

/// What the shell has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send a message to the client.
    Send(ServerMessage),
    /// Tell the client that the room is on the server with this signalling address.
    Moved(String),
    /// Send a WebSocket ping.
    Ping,
    /// Close the socket, when everything before is sent.
    Close {
        /// One of the close codes in [`super::close`].
        code: u16,
        /// Why, for a developer who reads the close frame.
        reason: &'static str,
    },
    /// Enter the room; answer with [`super::Session::joined`].
    Join {
        /// The room as the client calls it.
        room: String,
        /// The participant's name, if the token has none.
        name: String,
        /// The access token.
        token: Option<AccessToken>,
        /// Ticket of the server from which the participant moves.
        ticket: Option<String>,
        /// Seat token of an earlier stay in the room.
        seat: Option<String>,
        /// Its attributes.
        attributes: Attributes,
        /// Loopback, and what the client can decode.
        options: JoinOptions,
    },
    /// Answer the offer; answer with [`super::Session::answered`].
    Offer {
        /// The client's id of the offer.
        id: u32,
        /// Of the client.
        offer: Offer,
    },
    /// Cap a subscription.
    SetMaxRung(TrackId, Rung),
    /// Set how the participant shows a track.
    SetView(TrackId, View),
    /// Ask for a key anchor of a track.
    KeyAnchor(TrackId),
    /// Take the client's report of the uplink of a published track.
    Uplink(TrackId, UplinkReport),
    /// Mute or unmute a published track.
    SetMuted(TrackId, bool),
    /// Send a message to others; answer with [`super::Session::sent`].
    SendData {
        /// The client's id of the message.
        id: Option<u32>,
        /// Who gets it; `None`: all others.
        to: Option<Vec<ParticipantId>>,
        /// The message.
        message: DataMessage,
    },
    /// The participant is to have other attributes, or another name; answer with [`super::Session::changed`].
    SetAttributes {
        /// The client's id of the message.
        id: Option<u32>,
        /// The new name, if it changes.
        name: Option<String>,
        /// All attributes from now on.
        attributes: Attributes,
    },
    /// The participant has no attributes any more.
    ClearAttributes,
    /// Send the client fresh ICE servers.
    IceServers,
    /// The client has arrived on the server to which it was sent. Command [`End::AllMoved`] when all have.
    Arrived,
    /// Apply a moderator's request; answer with [`super::Session::moderated`].
    Moderate {
        /// The client's id of the message.
        id: Option<u32>,
        /// The request.
        request: Moderate,
    },
    /// Leave the room, or the lobby.
    Leave,
    /// Take the client's report of a received track.
    Report(TrackId, Report),
}

/// A participant, as others see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParticipantInfo {
    /// The display name.
    pub name: String,
    /// The identity in its access token.
    pub identity: Option<String>,
    /// Its id on the server from which it moved, as that server's ticket says.
    pub was: Option<String>,
    /// The attributes that the participant tells the others.
    pub attributes: Attributes,
}

impl ParticipantInfo {
    /// A participant that has left.
    pub fn someone() -> Self {
        ParticipantInfo { name: "Someone".to_owned(), ..ParticipantInfo::default() }
    }
}

/// The room, as it was when the shell entered it.
#[derive(Debug, Clone)]
pub struct Entered {
    /// The client's own id.
    pub id: ParticipantId,
    /// The identity in its access token.
    pub identity: Option<String>,
    /// Whether its access token says its name.
    pub name_is_fixed: bool,
    /// Its attributes.
    pub attributes: Attributes,
    /// Its rights.
    pub ruling: Ruling,
    /// Its seat token, with which it may enter again.
    pub seat: Option<String>,
    /// The other participants.
    pub participants: Vec<(ParticipantId, ParticipantInfo)>,
    /// Their tracks.
    pub tracks: Vec<TrackInfo>,
    /// STUN and TURN servers.
    pub ice: IceServers,
    /// Signalling addresses of other servers of the cluster.
    pub others: Vec<String>,
}

/// Why the shell did not enter the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EnterError {
    /// The access token is refused.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A moderator or operator refuses it.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The SFU refuses it.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// Admission control refuses it.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// What others command of a participant: a state, of which only the latest counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commands {
    /// The command to leave the room, with the reason; `None`: the participant may stay.
    pub end: Option<End>,
    /// Published tracks that stay muted.
    pub held: BTreeSet<TrackId>,
}

/// Why a participant has to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Another participant with its identity has entered.
    Replaced,
    /// An operator removed it.
    Removed,
    /// Its room is on another server, or more of the room is.
    Moved {
        /// Signalling address of that server.
        url: String,
        /// Whether it is disconnected after [`super::SessionConfig::moving`].
        must: bool,
    },
    /// All participants of this server have arrived at the room's new server.
    AllMoved,
}
