//! The commands that administer a running server: options in, an [`Action`] out, and its report as text.

use std::time::Duration;

use clap::{Args, Subcommand};
use windlass_signaling::access::TokenKey;
use windlass_signaling::at_file;
use windlass_types::AnchorPolicy;

use crate::action::{Action, perform};
use crate::client::{AdminError, Client};
use crate::token::operator;

/// Lifetime of a token that is made for one command.
const TOKEN_LIFETIME: Duration = Duration::from_secs(60);

/// What an operator asks of a running server.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// List the rooms of a server, or of all servers of its cluster.
    Rooms(Target),
    /// Show a room: its participants, their tracks, and what each receives; or change its settings, or end it.
    Room(RoomArgs),
    /// Remove a participant from a room.
    Kick(KickArgs),
    /// End a ban of `kick --ban`, so that the identity can join again.
    Unban(UnbanArgs),
    /// Mute the microphone of a participant, or a track, until an operator unmutes it.
    Mute(MuteArgs),
    /// Lock a room, give it a lobby, or open it again.
    Lock(LockArgs),
    /// Record a room, or one of its participants, until `--stop`; everybody in the room is told.
    Record(RecordArgs),
    /// Set the policy that chooses which frames become anchors, of a room or of all.
    Policy(PolicyArgs),
    /// Switch enhancement on or off, while calls go on.
    Enhancement(EnhancementArgs),
    /// End a server when its rooms have ended, or gone to other servers, as SIGTERM does.
    Drain(Target),
}

/// The server, and what lets an operator in.
#[derive(Debug, Args)]
pub struct Target {
    /// Address of the server, or of any server of a cluster
    #[arg(
        long,
        value_name = "URL",
        env = "WINDLASS_SERVER",
        default_value = "http://127.0.0.1:7880"
    )]
    server: String,

    /// An access token that grants `admin`, or @FILE that contains one
    #[arg(
        long,
        value_name = "TOKEN|@FILE",
        env = "WINDLASS_TOKEN",
        hide_env_values = true,
        conflicts_with = "key"
    )]
    token: Option<String>,

    /// A token key of the server, ID=SECRET or ID=@FILE: the command makes a token that grants `admin` with it
    #[arg(
        long,
        value_name = "ID=SECRET",
        env = "WINDLASS_TOKEN_KEY",
        hide_env_values = true,
        value_delimiter = ','
    )]
    key: Vec<TokenKey>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `windlass room`.
#[derive(Debug, Args)]
pub struct RoomArgs {
    /// The room
    room: String,

    /// Set the maximum number of the room's participants, and create the room if it does not exist
    #[arg(long, value_name = "N")]
    max_participants: Option<usize>,

    /// End the room: its participants are removed, and its settings are deleted
    #[arg(long, conflicts_with = "max_participants")]
    close: bool,

    #[command(flatten)]
    target: Target,
}

/// Arguments of `windlass kick`.
#[derive(Debug, Args)]
pub struct KickArgs {
    /// The room
    room: String,

    /// The participant: its id, its identity, or a display name that no other has
    who: String,

    /// Ban the participant's identity from the room, with any token
    #[arg(long)]
    ban: bool,

    #[command(flatten)]
    target: Target,
}

/// Arguments of `windlass unban`.
#[derive(Debug, Args)]
pub struct UnbanArgs {
    /// The room
    room: String,

    /// The banned identity, as in its access tokens
    identity: String,

    #[command(flatten)]
    target: Target,
}

/// Arguments of `windlass mute`.
#[derive(Debug, Args)]
pub struct MuteArgs {
    /// The room
    room: String,

    /// A participant (its id, its identity, or a display name that no other has), or the id of a track
    what: String,

    /// Unmute the track, as far as its publisher has not muted it
    #[arg(long)]
    undo: bool,

    #[command(flatten)]
    target: Target,
}

/// Arguments of `windlass lock`.
#[derive(Debug, Args)]
pub struct LockArgs {
    /// The room
    room: String,

    /// Let new participants wait until somebody admits them, instead of refusing them
    #[arg(long)]
    lobby: bool,

    /// End the room's lock and lobby
    #[arg(long, conflicts_with = "lobby")]
    undo: bool,

    #[command(flatten)]
    target: Target,
}

/// Arguments of `windlass record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The room
    room: String,

    /// Record this participant alone: its id, its identity, or a display name that no other has
    #[arg(long, value_name = "WHO")]
    only: Option<String>,

    /// Make the enhanced pictures too, in files of their own, when the recording has ended
    #[arg(long)]
    enhanced: bool,

    /// End the recording
    #[arg(long, conflicts_with_all = ["only", "enhanced"])]
    stop: bool,

    #[command(flatten)]
    target: Target,
}

/// Arguments of `windlass policy`.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// The policy: latency-sensitive, cost-effective, quality-sla, or default (as configured)
    #[arg(value_parser = policy)]
    policy: Policy,

    /// Set the policy of this room. Without it: of all rooms that have no policy of their own
    #[arg(long, value_name = "ROOM")]
    room: Option<String>,

    #[command(flatten)]
    target: Target,
}

/// Arguments of `windlass enhancement`.
#[derive(Debug, Args)]
pub struct EnhancementArgs {
    /// Whether pictures are enhanced
    #[arg(value_enum)]
    state: Switch,

    #[command(flatten)]
    target: Target,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Switch {
    On,
    Off,
}

/// A policy, or that of the configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Policy(Option<AnchorPolicy>);

fn policy(text: &str) -> Result<Policy, String> {
    if text == "default" {
        return Ok(Policy(None));
    }
    text.parse().map(|policy| Policy(Some(policy))).map_err(|error| format!("{error}"))
}

impl AdminCommand {
    /// Splits the command into the action and the server that gets it.
    fn action(self) -> (Action, Target) {
        match self {
            AdminCommand::Rooms(target) => (Action::Rooms, target),
            AdminCommand::Room(RoomArgs { room, max_participants, close, target }) => {
                let action = match (close, max_participants) {
                    (true, _) => Action::Close { room },
                    (false, None) => Action::Room { room },
                    (false, Some(max_participants)) => Action::Limit { room, max_participants },
                };
                (action, target)
            }
            AdminCommand::Kick(KickArgs { room, who, ban, target }) => {
                (Action::Kick { room, who, ban }, target)
            }
            AdminCommand::Unban(UnbanArgs { room, identity, target }) => {
                (Action::Unban { room, identity }, target)
            }
            AdminCommand::Mute(MuteArgs { room, what, undo, target }) => {
                (Action::Mute { room, what, muted: !undo }, target)
            }
            AdminCommand::Lock(LockArgs { room, lobby, undo, target }) => {
                (Action::Lock { room, locked: !lobby && !undo, lobby }, target)
            }
            AdminCommand::Record(RecordArgs { room, stop: true, target, .. }) => {
                (Action::EndRecording { room }, target)
            }
            AdminCommand::Record(RecordArgs { room, only, enhanced, target, .. }) => {
                (Action::Record { room, only, enhanced }, target)
            }
            AdminCommand::Policy(PolicyArgs { policy, room, target }) => {
                (Action::Policy { policy: policy.0, room }, target)
            }
            AdminCommand::Enhancement(EnhancementArgs { state, target }) => {
                (Action::Enhancer { enabled: state == Switch::On }, target)
            }
            AdminCommand::Drain(target) => (Action::Drain, target),
        }
    }

    /// Asks the server and waits for its answer, which is returned as text or as JSON.
    ///
    /// # Errors
    ///
    /// Fails if the token cannot be read or made, the server does not answer, or it refuses.
    pub fn run(self) -> Result<String, AdminError> {
        let (action, target) = self.action();
        let client = Client::new(&target.server, target.token()?)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let report = runtime.map_err(AdminError::Runtime)?.block_on(perform(&client, &action))?;
        Ok(if target.json { report.json.to_string() } else { report.text })
    }
}

impl Target {
    /// Access token for the request; `None` if the server is to accept this machine without one.
    fn token(&self) -> Result<Option<String>, AdminError> {
        if let Some(token) = &self.token {
            let token = at_file::text(token).map_err(AdminError::Token)?;
            return Ok(Some(token.trim().to_owned()));
        }
        let Some(key) = self.key.first() else { return Ok(None) };
        Ok(Some(operator(key, TOKEN_LIFETIME)?))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        command: AdminCommand,
    }

    fn action(line: &str) -> Result<Action, clap::Error> {
        let words = std::iter::once("windlass").chain(line.split(' '));
        Line::try_parse_from(words).map(|line| line.command.action().0)
    }

    #[test]
    fn commands_become_orders() {
        let room = || "tea".to_owned();
        for (line, expected) in [
            ("rooms", Action::Rooms),
            ("room tea", Action::Room { room: room() }),
            ("room tea --close", Action::Close { room: room() }),
            ("kick tea ana --ban", Action::Kick { room: room(), who: "ana".into(), ban: true }),
            ("mute tea t7 --undo", Action::Mute { room: room(), what: "t7".into(), muted: false }),
            ("lock tea", Action::Lock { room: room(), locked: true, lobby: false }),
            ("lock tea --lobby", Action::Lock { room: room(), locked: false, lobby: true }),
            ("lock tea --undo", Action::Lock { room: room(), locked: false, lobby: false }),
            ("record tea", Action::Record { room: room(), only: None, enhanced: false }),
            (
                "record tea --only ana --enhanced",
                Action::Record { room: room(), only: Some("ana".into()), enhanced: true },
            ),
            ("record tea --stop", Action::EndRecording { room: room() }),
            ("policy default", Action::Policy { policy: None, room: None }),
            ("enhancement off", Action::Enhancer { enabled: false }),
            ("drain", Action::Drain),
        ] {
            assert_eq!(action(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for line in [
            "room tea --close --max-participants 3",
            "lock tea --lobby --undo",
            "record tea --stop --only ana",
            "record tea --stop --enhanced",
            "policy fastest",
            "kick tea",
            "rooms --token a --key k1=0123456789abcdef0123456789abcdef",
        ] {
            assert!(action(line).is_err(), "{line}");
        }
    }
}
