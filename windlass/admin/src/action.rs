//! Orders of an operator to a server, and the requests that carry them out.

use hyper::Method;
use serde_json::{Value, json};
use windlass_types::AnchorPolicy;

use crate::client::{AdminError, Client, Request};
use crate::find::{self, text};
use crate::report::{self, Report};

/// An action of an operator on a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// List the rooms.
    Rooms,
    /// Show a room.
    Room {
        /// Name of the room.
        room: String,
    },
    /// Create a room, or change its maximum number of participants. Its other settings stay.
    Limit {
        /// Name of the room.
        room: String,
        /// Maximum number of participants.
        max_participants: usize,
    },
    /// End a room: its participants are removed, and its settings are deleted.
    Close {
        /// Name of the room.
        room: String,
    },
    /// Remove a participant.
    Kick {
        /// Name of the room.
        room: String,
        /// The participant's id, identity, or display name.
        who: String,
        /// Whether the participant may not come back either.
        ban: bool,
    },
    /// Let an identity come back.
    Unban {
        /// Name of the room.
        room: String,
        /// Identity that may come back.
        identity: String,
    },
    /// Mute or unmute tracks.
    Mute {
        /// Name of the room.
        room: String,
        /// A track's id; or a participant's id, identity, or display name, for all of its audio tracks.
        what: String,
        /// Whether the tracks are to be muted.
        muted: bool,
    },
    /// Set who may enter a room.
    Lock {
        /// Name of the room.
        room: String,
        /// Whether new participants are refused.
        locked: bool,
        /// Whether new participants wait until they are admitted.
        lobby: bool,
    },
    /// Record a room.
    Record {
        /// Name of the room.
        room: String,
        /// Id, identity, or display name of the only participant that is recorded; `None` for all.
        only: Option<String>,
        /// Whether enhanced pictures are made too.
        enhanced: bool,
    },
    /// End the recording of a room.
    EndRecording {
        /// Name of the room.
        room: String,
    },
    /// Set the policy that chooses anchors.
    Policy {
        /// The policy; `None` for the policy of all rooms, or without a room for that of the configuration.
        policy: Option<AnchorPolicy>,
        /// Name of the room; `None` for all rooms without a policy of their own.
        room: Option<String>,
    },
    /// Start or stop the enhancer.
    Enhancer {
        /// Whether the enhancer is to run.
        enabled: bool,
    },
    /// End the server when its rooms have ended, or gone to other servers.
    Drain,
}

/// Sends an action, and reports its result.
///
/// # Errors
///
/// Fails if the server does not answer or refuses, or if no participant or track of the room has the given name.
pub async fn perform(client: &Client, action: &Action) -> Result<Report, AdminError> {
    Ok(send(client, action).await?.without(client.silent()))
}

async fn send(client: &Client, action: &Action) -> Result<Report, AdminError> {
    match action {
        Action::Rooms => {
            let rooms = client.send(Request::new(Method::GET, &["rooms"])).await?;
            Ok(report::rooms(rooms))
        }
        Action::Room { room } => Ok(report::room(show(client, room).await?)),
        Action::Limit { room, max_participants } => limit(client, room, *max_participants).await,
        Action::Close { room } => {
            client.send(Request::new(Method::DELETE, &["rooms", room])).await?;
            Ok(Report::sentence(format!("The room {room} has ended.")))
        }
        Action::Kick { room, who, ban } => kick(client, room, who, *ban).await,
        Action::Unban { room, identity } => {
            client.send(Request::new(Method::DELETE, &["rooms", room, "bans", identity])).await?;
            Ok(Report::sentence(format!("{identity} may join the room {room} again.")))
        }
        Action::Mute { room, what, muted } => mute(client, room, what, *muted).await,
        Action::Lock { room, locked, lobby } => {
            let wanted = json!({"locked": locked, "lobby": lobby});
            let path = Request::new(Method::PUT, &["rooms", room, "entry"]);
            let now = client.send(path.with(wanted)).await?;
            Ok(report::entry(room, now))
        }
        Action::Record { room, only, enhanced } => {
            record(client, room, only.as_deref(), *enhanced).await
        }
        Action::EndRecording { room } => {
            client.send(Request::new(Method::DELETE, &["rooms", room, "recording"])).await?;
            Ok(Report::sentence(format!("The room {room} is not recorded any more.")))
        }
        Action::Policy { policy, room } => {
            let mut wanted = json!({"policy": policy.map(AnchorPolicy::name)});
            if let Some(room) = room {
                wanted["room"] = json!(room);
            }
            let now = client.send(Request::new(Method::POST, &["policy"]).with(wanted)).await?;
            Ok(report::policy(now))
        }
        Action::Enhancer { enabled } => {
            let wanted = json!({"enabled": enabled});
            let now = client.send(Request::new(Method::POST, &["enhancer"]).with(wanted)).await?;
            Ok(report::enhancer(now, *enabled))
        }
        Action::Drain => {
            let now = client.send(Request::new(Method::POST, &["drain"])).await?;
            Ok(report::drain(now))
        }
    }
}

async fn show(client: &Client, room: &str) -> Result<Value, AdminError> {
    client.send(Request::new(Method::GET, &["rooms", room])).await
}

/// Sets the maximum of participants. The API replaces all settings, so the present ones are read first.
async fn limit(client: &Client, room: &str, max: usize) -> Result<Report, AdminError> {
    let now = match show(client, room).await {
        Ok(now) => now,
        Err(AdminError::Refused { code, .. }) if code == "unknown_room" => Value::Null,
        Err(error) => return Err(error),
    };
    let wanted = json!({"max_participants": max, "policy": now["policy"]});
    let path = Request::new(Method::PUT, &["rooms", room]);
    Ok(report::room(client.send(path.with(wanted)).await?))
}

async fn kick(client: &Client, room: &str, who: &str, ban: bool) -> Result<Report, AdminError> {
    let seen = show(client, room).await?;
    let found = find::participant(&seen, who)?;
    let (id, name, identity) = (text(found, "id"), text(found, "name"), text(found, "identity"));
    if !ban {
        client.send(Request::new(Method::DELETE, &["rooms", room, "participants", id])).await?;
        return Ok(Report::sentence(format!(
            "{name} ({id}) is removed from the room {room}, and may come back with a valid token."
        )));
    }
    if identity.is_empty() {
        return Err(AdminError::NoIdentity(name.to_owned()));
    }
    let path = Request::new(Method::PUT, &["rooms", room, "bans", identity]);
    client.send(path.with(json!({}))).await?;
    Ok(Report::sentence(format!("{name} ({identity}) is banned from the room {room}.")))
}

async fn record(
    client: &Client,
    room: &str,
    only: Option<&str>,
    enhanced: bool,
) -> Result<Report, AdminError> {
    let mut wanted = if enhanced { json!({"enhanced": true}) } else { json!({}) };
    if let Some(name) = only {
        let seen = show(client, room).await?;
        wanted["participant"] = text(find::participant(&seen, name)?, "id").into();
    }
    let path = Request::new(Method::POST, &["rooms", room, "recording"]);
    Ok(report::recording(room, client.send(path.with(wanted)).await?))
}

async fn mute(client: &Client, room: &str, what: &str, muted: bool) -> Result<Report, AdminError> {
    let seen = show(client, room).await?;
    let tracks = find::tracks(&seen, what)?;
    let mut now = Vec::new();
    for track in tracks {
        let path = Request::new(Method::PUT, &["rooms", room, "tracks", &track, "muted"]);
        now.push(client.send(path.with(json!({"muted": muted}))).await?);
    }
    Ok(report::muted(what, &now))
}
