//! Actions that a [`Session`](super::Session) asks of its shell, and the shell's answers.

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

/// An action of the shell.
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
        /// Close code, one of [`super::close`].
        code: u16,
        /// Reason for the developer who reads the close frame.
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
        /// Attributes of the participant.
        attributes: Attributes,
        /// Whether the room is a loopback room, and what the client can decode.
        options: JoinOptions,
    },
    /// Pass the offer to the SFU; answer with [`super::Session::answered`].
    Offer {
        /// The client's id of the offer.
        id: u32,
        /// The client's offer.
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
        /// Ids of the receivers; `None`: all others.
        to: Option<Vec<ParticipantId>>,
        /// The message.
        message: DataMessage,
    },
    /// Change the participant's attributes, or its name; answer with [`super::Session::changed`].
    SetAttributes {
        /// The client's id of the message.
        id: Option<u32>,
        /// The new name, if it changes.
        name: Option<String>,
        /// All attributes from now on.
        attributes: Attributes,
    },
    /// Remove all attributes of the participant.
    ClearAttributes,
    /// Send the client fresh ICE servers.
    IceServers,
    /// Note that the client has arrived on the server to which it was sent. Command [`End::AllMoved`] when all have
    /// arrived.
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
    /// The participant's id on the server from which it moved, as that server's ticket says.
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
    /// Whether the client's access token sets its name.
    pub name_is_fixed: bool,
    /// Attributes of the client's participant.
    pub attributes: Attributes,
    /// Rights of the client's participant.
    pub ruling: Ruling,
    /// Seat token, with which the client may enter again.
    pub seat: Option<String>,
    /// The other participants.
    pub participants: Vec<(ParticipantId, ParticipantInfo)>,
    /// Tracks of the other participants.
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
    /// A moderator or operator refuses the participant.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The SFU refuses the participant.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// Admission control refuses the participant.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Commands of others to a participant. They are a state, of which only the latest counts.
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
    /// Another participant with the same identity has entered.
    Replaced,
    /// An operator removed the participant.
    Removed,
    /// The room is on another server, or that server has more of the room.
    Moved {
        /// Signalling address of that server.
        url: String,
        /// Whether the participant is disconnected after [`super::SessionConfig::moving`].
        must: bool,
    },
    /// All participants of this server have arrived at the room's new server.
    AllMoved,
}
