//! One client's socket as a state machine, without I/O.
//!
//! Messages, the SFU's answers and events, and time go in; [`Action`]s come out of [`Session::poll`],
//! to be carried out in order. A session is outside a room, entering one, inside one, or closed.
//! It bounds the rate of messages and the time without any, and never fails: a message that cannot
//! be used is answered with an `error` message.

pub(crate) mod action;
pub(crate) mod config;
mod data;
mod messages;
mod ruled;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::time::{Duration, Instant};

use windlass_protocol::{
    Attributes, ClientMessage, Error, ErrorCode, Grant, OwnTrack, ProtocolError, Request,
    ServerMessage, VERSION, Welcome,
};
use windlass_sfu::{Answer, DisconnectReason, OfferError, ParticipantId, SfuEvent, TrackId};
use windlass_types::Size;

pub use self::action::{Action, Commands, End, EnterError, Entered, ParticipantInfo};
pub use self::config::{RateLimit, SessionConfig, close};
use self::ruled::Ruled;
use crate::convert;
use crate::rate::TokenBucket;
use crate::rights::ruling::Ruling;

#[derive(Debug)]
enum Phase {
    Outside,
    Entering {
        request: Option<u32>,
        room: String,
        loopback: bool,
        /// Whether the client waits in the lobby.
        waits: bool,
    },
    Inside {
        id: ParticipantId,
        loopback: bool,
        /// Rights of the client, as last sent to it.
        ruled: Ruled,
        /// Attributes that the client gives itself.
        attributes: Attributes,
        /// Whether the client's access token sets its name.
        name_is_fixed: bool,
        /// The tracks of the room.
        tracks: HashSet<TrackId>,
        /// Tracks that the client publishes, each with whether the client muted it.
        own: BTreeMap<TrackId, bool>,
        /// Published tracks that an operator muted.
        held: BTreeSet<TrackId>,
        /// Address of the server to which the client was sent. With it, the time at which the client is disconnected
        /// here if it must move.
        moving: Option<(String, Option<Instant>)>,
    },
    Closed,
}

/// One client's socket.
///
/// ```
/// use std::time::Instant;
/// use windlass_signaling::session::{Action, Session, SessionConfig};
///
/// let now = Instant::now();
/// let mut session = Session::new(SessionConfig::default(), now);
/// session.text(now, r#"{"type":"join","version":1,"room":"tea","name":"Ana"}"#);
/// // The shell enters the room, and answers with `Session::joined`.
/// assert!(matches!(session.poll(), Some(Action::Join { room, name, .. }) if room == "tea" && name == "Ana"));
/// assert_eq!(session.poll(), None);
/// ```
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    phase: Phase,
    messages: TokenBucket,
    offers: TokenBucket,
    tracks: TokenBucket,
    mutes: TokenBucket,
    data: TokenBucket,
    data_bytes: TokenBucket,
    changes: TokenBucket,
    /// Mids of the published sections of the last offer.
    publishing: HashSet<String>,
    /// Beginning of the current second of messages above the rate, and the number of these.
    excess: Option<(Instant, u32)>,
    /// Time of the last message.
    heard: Instant,
    /// Time of the last ping.
    pinged: Instant,
    /// Since when the session has been outside a room.
    outside: Instant,
    actions: VecDeque<Action>,
}

impl Session {
    /// The session of a new socket.
    pub fn new(config: SessionConfig, now: Instant) -> Self {
        let bucket = |limit: RateLimit| TokenBucket::new(limit.burst, limit.per_second, now);
        let (messages, offers) = (bucket(config.messages), bucket(config.offers));
        let (tracks, mutes) = (bucket(config.tracks), bucket(config.mutes));
        let (data, data_bytes) = (bucket(config.data), bucket(config.data_bytes));
        let changes = bucket(config.changes);
        Self {
            config,
            phase: Phase::Outside,
            messages,
            offers,
            tracks,
            mutes,
            data,
            data_bytes,
            changes,
            publishing: HashSet::new(),
            excess: None,
            heard: now,
            pinged: now,
            outside: now,
            actions: VecDeque::new(),
        }
    }

    /// Takes the next action.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Takes a text message.
    pub fn text(&mut self, now: Instant, text: &str) {
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        let request = Request::parse(text);
        // These have rates of their own, and each is answered: who sends them waits for that. Only what is refused
        // counts with the rest.
        let is_apart = matches!(
            &request,
            Ok(Request { message: ClientMessage::Send(_) | ClientMessage::Attributes(_), .. })
        );
        self.heard = now;
        if !is_apart && !self.admit(now) {
            return;
        }
        match request {
            Ok(Request { id, message }) => {
                if let Err(e) = self.message(now, id, message) {
                    self.refuse(e.answering(id));
                    if is_apart {
                        self.admit(now);
                    }
                }
            }
            Err(e) => self.refuse(e),
        }
    }

    /// Takes a binary message. The protocol has none.
    pub fn binary(&mut self, now: Instant) {
        if self.admit(now) {
            self.refuse(ProtocolError::new(
                ErrorCode::Malformed,
                "messages are JSON texts; this one was binary",
            ));
        }
    }

    /// Notes that the socket cannot be read any further: a message was too large, or malformed.
    pub fn unreadable(&mut self, too_large: bool) {
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        let (code, message) = if too_large {
            (ErrorCode::TooLarge, "the message is too large to be read")
        } else {
            (ErrorCode::Malformed, "the WebSocket stream is broken")
        };
        self.fail(ProtocolError::new(code, message), close::TOO_LARGE);
    }

    /// Takes a ping or pong. They count as messages.
    pub fn heard(&mut self, now: Instant) {
        self.admit(now);
    }

    /// Notes that the client has exceeded the byte rate for too long.
    pub fn flooded(&mut self) {
        if !matches!(self.phase, Phase::Closed) {
            let e = ProtocolError::new(ErrorCode::RateLimited, "too much comes on this socket");
            self.fail(e, close::REFUSED);
        }
    }

    /// Takes the answer to [`Action::Join`] where the address has joined too often.
    pub fn joins_limited(&mut self, why: &str) {
        let Phase::Entering { request, .. } = self.phase else { return };
        self.phase = Phase::Outside;
        self.refuse(ProtocolError::new(ErrorCode::RateLimited, why).answering(request));
    }

    /// Takes the answer to [`Action::Join`] where the room is on another server.
    pub fn redirect(&mut self, url: String) {
        self.actions.push_back(Action::Moved(url));
        self.moved();
    }

    fn moved(&mut self) {
        self.close(close::MOVED, "the room is on another server");
    }

    /// Notes that the client waits in the lobby: the answer to [`Action::Join`] comes later.
    pub fn waits(&mut self) {
        if let Phase::Entering { waits, .. } = &mut self.phase {
            *waits = true;
            self.send(ServerMessage::Waiting {});
        }
    }

    /// Takes the answer to [`Action::Join`].
    pub fn joined(&mut self, result: Result<Entered, EnterError>) {
        let Phase::Entering { request, room, loopback, .. } =
            std::mem::replace(&mut self.phase, Phase::Outside)
        else {
            return;
        };
        let entered = match result {
            Ok(entered) => entered,
            Err(e) => return self.refuse(convert::enter_error(e).answering(request)),
        };
        let tracks = entered.tracks.iter().map(|t| t.track).collect();
        self.phase = Phase::Inside {
            id: entered.id,
            loopback,
            ruled: Ruled::at_first(&entered.ruling),
            attributes: entered.attributes.clone(),
            name_is_fixed: entered.name_is_fixed,
            tracks,
            own: BTreeMap::new(),
            held: BTreeSet::new(),
            moving: None,
        };
        self.send(ServerMessage::Welcome(Welcome {
            version: VERSION,
            participant: entered.id.to_string(),
            room,
            loopback,
            budget_ms: u32::try_from(self.config.budget.as_millis()).unwrap_or(u32::MAX),
            scale: self.config.scale,
            lr_pixels: self.config.lr_pixels,
            max_sections: self.config.max_sections,
            participants: entered
                .participants
                .into_iter()
                .map(|(id, info)| convert::participant(id, info))
                .collect(),
            tracks: entered.tracks.into_iter().map(convert::track).collect(),
            identity: entered.identity,
            grants: entered.ruling.grants.list(),
            locked: entered.ruling.entry.locked,
            lobby: entered.ruling.entry.lobby,
            recording: entered.ruling.recording,
            attributes: entered.attributes,
            seat: entered.seat,
            ice: entered.ice,
            others: entered.others,
        }));
    }

    /// Takes the answer to [`Action::Offer`].
    pub fn answered(&mut self, id: u32, result: Result<Answer, OfferError>) {
        match result {
            Ok(Answer { sdp, tracks }) => {
                if let Phase::Inside { own, .. } = &mut self.phase {
                    let former = std::mem::take(own);
                    let muted = |track| former.get(&track).copied().unwrap_or(false);
                    *own = tracks.iter().map(|(_, track)| (*track, muted(*track))).collect();
                }
                let tracks = tracks
                    .into_iter()
                    .map(|(mid, track)| OwnTrack { mid, track: track.to_string() })
                    .collect();
                self.send(ServerMessage::Answer { id, sdp, tracks });
            }
            Err(e) => self.refuse(convert::offer_error(&e).answering(Some(id))),
        }
    }

    /// Takes an event of the room. `who` gives name and identity of a participant, unless it has left.
    pub fn event(
        &mut self,
        event: SfuEvent,
        who: impl Fn(ParticipantId) -> Option<ParticipantInfo>,
    ) {
        let Phase::Inside { id, tracks, .. } = &mut self.phase else { return };
        let message = match event {
            SfuEvent::ParticipantJoined { participant } if participant == *id => return,
            SfuEvent::ParticipantJoined { participant } => {
                let info = who(participant).unwrap_or_else(ParticipantInfo::someone);
                convert::joined(participant, info)
            }
            SfuEvent::ParticipantChanged { participant } => {
                let Some(info) = who(participant) else { return };
                convert::changed(participant, info)
            }
            SfuEvent::Data(delivery) => convert::data(&delivery),
            SfuEvent::ParticipantLeft { participant } => {
                ServerMessage::ParticipantLeft { participant: participant.to_string() }
            }
            SfuEvent::TrackAdded(info) => {
                tracks.insert(info.track);
                ServerMessage::TrackAdded { track: convert::track(info) }
            }
            SfuEvent::TrackRemoved { track } => {
                tracks.remove(&track);
                ServerMessage::TrackRemoved { track: track.to_string() }
            }
            SfuEvent::TrackMuted { track, muted } => {
                ServerMessage::TrackMuted { track: track.to_string(), muted }
            }
            SfuEvent::Paused { track, paused } => {
                ServerMessage::Paused { track: track.to_string(), paused }
            }
            SfuEvent::Speaker { participant } => {
                ServerMessage::Speaker { participant: participant.to_string() }
            }
            SfuEvent::Quality { participant, quality } => {
                ServerMessage::Quality { participant: participant.to_string(), quality }
            }
            SfuEvent::RungChanged { track, rung, epoch, size, scale, spatial_layers } => {
                let (track, Size { width, height }) = (track.to_string(), size);
                ServerMessage::Rung { track, rung, epoch, width, height, scale, spatial_layers }
            }
            SfuEvent::Way { track, way, reason } => {
                ServerMessage::Way { track: track.to_string(), way, reason }
            }
            SfuEvent::Knobs { track, layers } => convert::knobs(track, layers),
            SfuEvent::BackupWanted { track, codecs } => {
                ServerMessage::BackupWanted { track: track.to_string(), codecs }
            }
            SfuEvent::Regions { track, request } => convert::regions(track, &request),
            SfuEvent::TrackStats(stats) => convert::stats(&stats),
            SfuEvent::Disconnected(why) => return self.media_ended(why),
        };
        self.send(message);
    }

    /// Takes the end of the room's events: the SFU removed the participant.
    pub fn media_ended(&mut self, why: DisconnectReason) {
        if matches!(self.phase, Phase::Inside { .. }) {
            let (error, close) = convert::ended(why);
            self.fail(error, close);
        }
    }

    /// Takes changed commands of others.
    pub fn commands(&mut self, now: Instant, commands: &Commands) {
        let Phase::Inside { own, held, moving, .. } = &mut self.phase else { return };
        let mut redirect = None;
        match &commands.end {
            Some(End::Moved { url, must }) => {
                // The participant is served here until its connection to the new server works.
                let until = must.then(|| now + self.config.moving);
                let known =
                    matches!(moving, Some((to, by)) if to == url && (by.is_some() || !must));
                if !known {
                    *moving = Some((url.clone(), until));
                    redirect = Some(url.clone());
                }
            }
            Some(End::AllMoved) => return self.moved(),
            Some(End::Replaced) => {
                let message = "your identity has joined this room with another client";
                let e = ProtocolError::new(ErrorCode::Replaced, message);
                return self.fail(e, close::REPLACED);
            }
            Some(End::Removed) => {
                let e = ProtocolError::new(ErrorCode::Removed, "you were removed from the room");
                return self.fail(e, close::REMOVED);
            }
            None => {}
        }
        let ordered: BTreeSet<_> =
            commands.held.iter().copied().filter(|track| own.contains_key(track)).collect();
        let changed: Vec<_> = ordered
            .symmetric_difference(held)
            .filter_map(|track| Some((*track, ordered.contains(track) || *own.get(track)?)))
            .collect();
        *held = ordered;
        self.actions.extend(redirect.map(Action::Moved));
        for (track, muted) in changed {
            self.actions.push_back(Action::SetMuted(track, muted));
            self.send(ServerMessage::TrackMuted { track: track.to_string(), muted });
        }
    }

    /// Takes changed rights of the participant.
    pub fn ruling(&mut self, now: Instant, ruling: &Ruling) {
        let Phase::Inside { ruled, own, attributes, .. } = &mut self.phase else { return };
        if let Some(out) = ruling.denied {
            return self.fail(out.into(), close::REMOVED);
        }
        let messages = ruled.change(now, ruling);
        if !ruled.grants.has(Grant::Data) && !attributes.is_empty() {
            attributes.clear();
            self.actions.push_back(Action::ClearAttributes);
        }
        if !ruled.grants.has(Grant::Publish) {
            own.clear();
        }
        for message in messages {
            self.send(message);
        }
    }

    /// Takes the answer to [`Action::Moderate`].
    pub fn moderated(&mut self, id: Option<u32>, result: Result<(), ProtocolError>) {
        match result {
            Ok(()) => self.send(ServerMessage::Done { id }),
            Err(error) => self.refuse(error.answering(id)),
        }
    }

    /// Takes the time. To be called at least each second.
    pub fn tick(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        let silent = now.saturating_duration_since(self.heard) >= self.config.idle;
        let outside = matches!(self.phase, Phase::Outside)
            && now.saturating_duration_since(self.outside) >= self.config.idle;
        if silent || outside {
            return self.close(close::IDLE, "idle");
        }
        if let Phase::Inside { moving: Some((_, Some(until))), .. } = &self.phase
            && now >= *until
        {
            return self.moved();
        }
        if let Phase::Inside { ruled, .. } = &mut self.phase
            && let Some(lobby) = ruled.lobby(now)
        {
            self.send(lobby);
        }
        if now.saturating_duration_since(self.pinged) >= self.config.ping {
            self.pinged = now;
            self.actions.push_back(Action::Ping);
        }
    }

    /// Tells the client that the server goes down, and closes the socket.
    pub fn shut_down(&mut self) {
        if !matches!(self.phase, Phase::Closed) {
            self.refuse(ProtocolError::new(ErrorCode::ShuttingDown, "the server is shutting down"));
        }
    }

    /// The tracks of the room. Fails outside a room.
    fn inside(&self) -> Result<&HashSet<TrackId>, ProtocolError> {
        match &self.phase {
            Phase::Inside { tracks, .. } => Ok(tracks),
            _ => Err(not_joined()),
        }
    }

    /// The client's published tracks, each with whether the client muted it, and the tracks that an operator muted.
    fn own(&mut self) -> Result<(&mut BTreeMap<TrackId, bool>, &BTreeSet<TrackId>), ProtocolError> {
        match &mut self.phase {
            Phase::Inside { own, held, .. } => Ok((own, held)),
            _ => Err(not_joined()),
        }
    }

    /// Refuses a message that the client's rights do not include.
    fn may(&self, grant: Grant) -> Result<(), ProtocolError> {
        match &self.phase {
            Phase::Inside { ruled, .. } => Ok(ruled.grants.check(grant)?),
            _ => Err(not_joined()),
        }
    }

    /// Whether a message may be handled: the socket is open, and the client within its rate.
    fn admit(&mut self, now: Instant) -> bool {
        if matches!(self.phase, Phase::Closed) {
            return false;
        }
        self.heard = now;
        if self.messages.take(now) {
            return true;
        }
        let second = Duration::from_secs(1);
        match &mut self.excess {
            Some((since, count)) if now.saturating_duration_since(*since) < second => {
                *count += 1;
                if *count > self.config.max_excess {
                    let message = "far too many messages";
                    let e = ProtocolError::new(ErrorCode::RateLimited, message);
                    self.fail(e, close::REFUSED);
                }
            }
            excess => {
                *excess = Some((now, 1));
                let message =
                    format!("more than {} messages a second", self.config.messages.per_second);
                self.refuse(ProtocolError::new(ErrorCode::RateLimited, message));
            }
        }
        false
    }

    /// Answers with an error; the socket stays open.
    fn refuse(&mut self, error: ProtocolError) {
        if error.code.fatal() {
            let goes_down = error.code == ErrorCode::ShuttingDown;
            return self.fail(error, if goes_down { close::RESTART } else { close::REMOVED });
        }
        self.send(error.into());
    }

    /// Answers with an error and closes the socket.
    fn fail(&mut self, error: ProtocolError, code: u16) {
        self.send(ServerMessage::Error(Error { fatal: true, ..error.into() }));
        self.close(code, "see the error message");
    }

    fn send(&mut self, message: ServerMessage) {
        if !matches!(self.phase, Phase::Closed) {
            self.actions.push_back(Action::Send(message));
        }
    }

    fn close(&mut self, code: u16, reason: &'static str) {
        if let Phase::Inside { .. } = std::mem::replace(&mut self.phase, Phase::Closed) {
            self.actions.push_back(Action::Leave);
        }
        self.actions.push_back(Action::Close { code, reason });
    }
}

fn not_joined() -> ProtocolError {
    ProtocolError::new(ErrorCode::NotJoined, "join a room first")
}

#[cfg(test)]
mod tests;
