//! One client's socket as a state machine, without I/O.
//!
//! Texts, the SFU's answers and events, and time go in; [`Action`]s come out of [`Session::poll`],
//! to be carried out in order. A session is outside a room, entering one, inside one, or closed.
//! It bounds how fast a client may talk, how long it may be silent, and never fails: what cannot
//! be used becomes an `error` message.

mod ruled;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::time::{Duration, Instant};

use windlass_protocol::View as ViewMessage;
use windlass_protocol::{
    AccessToken, ClientMessage, Error, ErrorCode, Grant, IceServers, Join, Moderate, OwnTrack,
    Participant, ProtocolError, Report, Request, ServerMessage, SetRung, Uplink, VERSION, Welcome,
};
use windlass_sfu::{
    Answer, DisconnectReason, JoinError, JoinOptions, OfferError, ParticipantId, Publish, SfuEvent,
    Subscribe, TrackId, TrackInfo, UplinkReport, View,
};
use windlass_types::Rung;

use self::ruled::Ruled;
use crate::access::AccessError;
use crate::convert;
use crate::door::Refused;
use crate::rate::TokenBucket;
use crate::rights::{Out, Ruling};

/// Bounds and times of a socket.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// The latency budget that clients are told.
    pub budget: Duration,
    /// HR size / LR size that clients are told.
    pub scale: u32,
    /// Most pixels of a layer that is enhanced, as clients are told.
    pub lr_pixels: u32,
    /// Most sections with media that an offer may have, as clients are told.
    pub max_sections: u32,
    /// Silence, or time without a room, after which a socket is closed.
    pub idle: Duration,
    /// Between two pings of the server.
    pub ping: Duration,
    /// How long whoever is sent to another server is served here for those who are not there yet.
    pub moving: Duration,
    /// Messages that a client may send at once.
    pub burst: u32,
    /// Messages that a client may send each second for long.
    pub per_second: u32,
    /// Offers that a client may send at once, and each second for long: each costs the media thread time.
    pub offers: (u32, u32),
    /// Tracks that a client may begin to publish at once, and each second for long: everybody else negotiates anew for each.
    pub tracks: (u32, u32),
    /// Changes of `mute` at once, and each second for long: everybody else is told of each.
    pub mutes: (u32, u32),
    /// Messages over the rate within a second after which the socket is closed.
    pub patience: u32,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            budget: Duration::from_millis(200),
            scale: 2,
            lr_pixels: windlass_types::MAX_LR_PIXELS,
            max_sections: 64,
            idle: Duration::from_secs(30),
            ping: Duration::from_secs(10),
            moving: Duration::from_secs(6),
            burst: 120,
            per_second: 40,
            offers: (30, 5),
            tracks: (16, 1),
            mutes: (20, 4),
            patience: 1000,
        }
    }
}

/// WebSocket close codes that clients see.
pub mod close {
    /// The client was silent, or in no room, for too long.
    pub const IDLE: u16 = 1001;
    /// The client sends far too much, or too many messages.
    pub const REFUSED: u16 = 1008;
    /// A message was too large to be read.
    pub const TOO_LARGE: u16 = 1009;
    /// The media connection was lost, or never came up; join again.
    pub const MEDIA_LOST: u16 = 1011;
    /// The server goes down; reconnect in a few seconds.
    pub const RESTART: u16 = 1012;
    /// The same identity joined again elsewhere; do not reconnect.
    pub const REPLACED: u16 = 4001;
    /// An operator removed the participant; do not reconnect.
    pub const REMOVED: u16 = 4002;
    /// The room lives on another server; go there.
    pub const MOVED: u16 = 4003;
}

/// What the shell has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send a message to the client.
    Send(ServerMessage),
    /// Tell the client at which address the room is.
    Moved(String),
    /// Send a WebSocket ping.
    Ping,
    /// Close the socket, when everything before is sent.
    Close {
        /// One of [`close`].
        code: u16,
        /// Why, for a developer who reads the close frame.
        reason: &'static str,
    },
    /// Enter the room; answer with [`Session::joined`].
    Join {
        /// The room as the client calls it.
        room: String,
        /// The participant's name, where the token does not say another.
        name: String,
        /// What is to let it in.
        token: Option<AccessToken>,
        /// By what another server has sent it here.
        ticket: Option<String>,
        /// By which it comes back where nobody new may.
        seat: Option<String>,
        /// A room of its own, and what the client can decode.
        options: JoinOptions,
    },
    /// Answer the offer; answer with [`Session::answered`].
    Offer {
        /// The client's id of the offer.
        id: u32,
        /// The session description.
        sdp: String,
        /// The sections that send.
        publish: Vec<Publish>,
        /// The sections that receive.
        subscribe: Vec<Subscribe>,
    },
    /// Cap a subscription.
    SetMaxRung(TrackId, Rung),
    /// Say how the participant shows a track.
    SetView(TrackId, View),
    /// Ask for an anchor of a track that rests on no other.
    WholeAnchor(TrackId),
    /// Take what the client says of the uplink of a track of its own.
    Uplink(TrackId, UplinkReport),
    /// Mute a track of the client's own, or end that.
    SetMuted(TrackId, bool),
    /// Tell the client what helps it to reach this server from now on.
    IceServers,
    /// The client is on the server that it was sent to: answer with [`End::AllMoved`] where all are.
    Arrived,
    /// Do what a moderator asks for; answer with [`Session::moderated`].
    Moderate {
        /// The client's id of the message.
        id: Option<u32>,
        /// What.
        order: Moderate,
    },
    /// Leave the room, or the lobby.
    Leave,
    /// Count what the browser made of a track.
    Report(TrackId, Report),
}

/// A participant as others know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The name to show.
    pub name: String,
    /// Who that is by an access token.
    pub identity: Option<String>,
    /// Its id at the server that its room was on before, as that one's ticket says.
    pub was: Option<String>,
}

impl Person {
    /// One who has just gone.
    pub fn someone() -> Self {
        Person { name: "Someone".to_owned(), identity: None, was: None }
    }
}

/// What the shell found when it entered the room.
#[derive(Debug, Clone)]
pub struct Entered {
    /// The client's own id.
    pub id: ParticipantId,
    /// Its identity by its token.
    pub identity: Option<String>,
    /// What holds for it.
    pub ruling: Ruling,
    /// By which it comes back.
    pub seat: Option<String>,
    /// Who else is there.
    pub participants: Vec<(ParticipantId, Person)>,
    /// What they publish.
    pub tracks: Vec<TrackInfo>,
    /// Servers that help it to reach this one.
    pub ice: IceServers,
    /// Other servers of the cluster.
    pub others: Vec<String>,
}

/// Why the shell did not enter the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EnterError {
    /// The token does not let the client in.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A moderator or operator does not.
    #[error(transparent)]
    Out(#[from] Out),
    /// The SFU does not.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The client, its address or its identity has as much as one may have.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// What others than the client want of a participant, all of it at any time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Orders {
    /// To go.
    pub end: Option<End>,
    /// Of its own tracks, those that stay muted whatever it says.
    pub held: BTreeSet<TrackId>,
}

/// Why a participant has to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Its identity has come again.
    Replaced,
    /// An operator wants it.
    Removed,
    /// Its room lives on another server, or there is more of it there.
    Moved {
        /// That server's signalling.
        url: String,
        /// Whether it is served here for some seconds only.
        must: bool,
    },
    /// And all who were here are there.
    AllMoved,
}

#[derive(Debug)]
enum Phase {
    Outside,
    Entering {
        request: Option<u32>,
        room: String,
        loopback: bool,
        /// In the lobby.
        waits: bool,
    },
    Inside {
        id: ParticipantId,
        loopback: bool,
        /// What holds for it.
        ruled: Ruled,
        /// The tracks of the room.
        tracks: HashSet<TrackId>,
        /// The client's own tracks, and whether it muted them.
        own: BTreeMap<TrackId, bool>,
        /// Of these, those that stay muted whatever it says.
        held: BTreeSet<TrackId>,
        /// Where it was sent, and until when it is served here still, if it must go.
        moving: Option<(String, Option<Instant>)>,
    },
    Closed,
}

/// One client's socket.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    phase: Phase,
    bucket: TokenBucket,
    offers: TokenBucket,
    tracks: TokenBucket,
    mutes: TokenBucket,
    /// The sections in which the last offer published.
    publishing: HashSet<String>,
    /// When the current second of messages over the rate began, and how many they are.
    refused: Option<(Instant, u32)>,
    heard: Instant,
    pinged: Instant,
    /// Since when the session has been outside a room.
    outside: Instant,
    actions: VecDeque<Action>,
}

impl Session {
    /// The session of a socket that has just been opened.
    pub fn new(config: SessionConfig, now: Instant) -> Self {
        let bucket = TokenBucket::new(config.burst, config.per_second, now);
        let offers = TokenBucket::new(config.offers.0, config.offers.1, now);
        let tracks = TokenBucket::new(config.tracks.0, config.tracks.1, now);
        let mutes = TokenBucket::new(config.mutes.0, config.mutes.1, now);
        Self {
            config,
            phase: Phase::Outside,
            bucket,
            offers,
            tracks,
            mutes,
            publishing: HashSet::new(),
            refused: None,
            heard: now,
            pinged: now,
            outside: now,
            actions: VecDeque::new(),
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// A text message came.
    pub fn text(&mut self, now: Instant, text: &str) {
        if !self.admit(now) {
            return;
        }
        match Request::parse(text) {
            Ok(Request { id, message }) => {
                if let Err(e) = self.message(now, id, message) {
                    self.refuse(e.answering(id));
                }
            }
            Err(e) => self.refuse(e),
        }
    }

    /// A binary message came. The protocol has none.
    pub fn binary(&mut self, now: Instant) {
        if self.admit(now) {
            self.refuse(ProtocolError::new(
                ErrorCode::Malformed,
                "messages are JSON texts; this one was binary",
            ));
        }
    }

    /// The socket cannot be read on: a message was too large for it, or no WebSocket message.
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

    /// A ping or pong came: they count as messages do.
    pub fn heard(&mut self, now: Instant) {
        self.admit(now);
    }

    /// More bytes come than may, and have for long.
    pub fn flooded(&mut self) {
        if !matches!(self.phase, Phase::Closed) {
            let e = ProtocolError::new(ErrorCode::RateLimited, "too much comes on this socket");
            self.fail(e, close::REFUSED);
        }
    }

    /// The answer to [`Action::Join`] of an address that joins too often.
    pub fn joins_limited(&mut self, why: &str) {
        let Phase::Entering { request, .. } = self.phase else { return };
        self.phase = Phase::Outside;
        self.refuse(ProtocolError::new(ErrorCode::RateLimited, why).answering(request));
    }

    /// The room is on another server: also an answer to [`Action::Join`].
    pub fn elsewhere(&mut self, url: String) {
        self.actions.push_back(Action::Moved(url));
        self.moved();
    }

    fn moved(&mut self) {
        self.close(close::MOVED, "the room is on another server");
    }

    /// The client waits in the lobby: the answer to [`Action::Join`] comes later.
    pub fn waits(&mut self) {
        if let Phase::Entering { waits, .. } = &mut self.phase {
            *waits = true;
            self.send(ServerMessage::Waiting {});
        }
    }

    /// The answer to [`Action::Join`].
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
                .map(|(id, Person { name, identity, was })| Participant {
                    id: id.to_string(),
                    name,
                    identity,
                    was,
                })
                .collect(),
            tracks: entered.tracks.into_iter().map(convert::track).collect(),
            identity: entered.identity,
            grants: entered.ruling.grants.list(),
            locked: entered.ruling.door.0,
            lobby: entered.ruling.door.1,
            seat: entered.seat,
            ice: entered.ice,
            others: entered.others,
        }));
    }

    /// The answer to [`Action::Offer`].
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

    /// Something happened in the room; `who` tells who a participant is.
    pub fn event(&mut self, event: SfuEvent, who: impl Fn(ParticipantId) -> Person) {
        let Phase::Inside { id, tracks, .. } = &mut self.phase else { return };
        let message = match event {
            SfuEvent::ParticipantJoined { participant } if participant == *id => return,
            SfuEvent::ParticipantJoined { participant } => {
                let Person { name, identity, was } = who(participant);
                let participant = participant.to_string();
                ServerMessage::ParticipantJoined { participant, name, identity, was }
            }
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
            SfuEvent::RungChanged { track, rung, epoch, width, height, scale } => {
                ServerMessage::Rung { track: track.to_string(), rung, epoch, width, height, scale }
            }
            SfuEvent::Knobs { track, layers } => convert::knobs(track, layers),
            SfuEvent::Regions { track, request } => convert::regions(track, &request),
            SfuEvent::TrackStats(stats) => convert::stats(&stats),
            SfuEvent::Disconnected(why) => return self.media_ended(why),
        };
        self.send(message);
    }

    /// The room's events have ended: the SFU removed the participant.
    pub fn media_ended(&mut self, why: DisconnectReason) {
        if matches!(self.phase, Phase::Inside { .. }) {
            let (error, close) = convert::ended(why);
            self.fail(error, close);
        }
    }

    /// Others want something of the participant: it goes, or its tracks stay muted.
    pub fn orders(&mut self, now: Instant, orders: &Orders) {
        let Phase::Inside { own, held, moving, .. } = &mut self.phase else { return };
        let mut told = None;
        match &orders.end {
            Some(End::Moved { url, must }) => {
                // It is served until it has what it needs there.
                let until = must.then(|| now + self.config.moving);
                let known =
                    matches!(moving, Some((to, by)) if to == url && (by.is_some() || !must));
                if !known {
                    *moving = Some((url.clone(), until));
                    told = Some(url.clone());
                }
            }
            Some(End::AllMoved) => return self.moved(),
            Some(End::Replaced) => {
                let message = "you have joined this room again from elsewhere";
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
            orders.held.iter().copied().filter(|track| own.contains_key(track)).collect();
        let changed: Vec<_> = ordered
            .symmetric_difference(held)
            .filter_map(|track| Some((*track, ordered.contains(track) || *own.get(track)?)))
            .collect();
        *held = ordered;
        self.actions.extend(told.map(Action::Moved));
        for (track, muted) in changed {
            self.actions.push_back(Action::SetMuted(track, muted));
            self.send(ServerMessage::TrackMuted { track: track.to_string(), muted });
        }
    }

    /// Something else holds for the participant.
    pub fn ruling(&mut self, now: Instant, ruling: &Ruling) {
        let Phase::Inside { ruled, own, .. } = &mut self.phase else { return };
        if let Some(out) = ruling.out {
            return self.fail(out.into(), close::REMOVED);
        }
        let told = ruled.change(now, ruling);
        if !ruled.grants.has(Grant::Publish) {
            own.clear();
        }
        for message in told {
            self.send(message);
        }
    }

    /// The answer to [`Action::Moderate`].
    pub fn moderated(&mut self, id: Option<u32>, result: Result<(), ProtocolError>) {
        match result {
            Ok(()) => self.send(ServerMessage::Done { id }),
            Err(error) => self.refuse(error.answering(id)),
        }
    }

    /// Time has passed. Call at least each second.
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

    /// The server goes down.
    pub fn shut_down(&mut self) {
        if !matches!(self.phase, Phase::Closed) {
            self.refuse(ProtocolError::new(ErrorCode::ShuttingDown, "the server is shutting down"));
        }
    }

    fn message(
        &mut self,
        now: Instant,
        id: Option<u32>,
        message: ClientMessage,
    ) -> Result<(), ProtocolError> {
        match message {
            ClientMessage::Join(join) => return self.join(id, join),
            ClientMessage::Ping { time } => self.send(ServerMessage::Pong { time }),
            ClientMessage::IceServers {} => {
                self.inside()?;
                self.actions.push_back(Action::IceServers);
            }
            ClientMessage::Arrived {} => {
                self.inside()?;
                if matches!(self.phase, Phase::Inside { moving: Some(_), .. }) {
                    self.actions.push_back(Action::Arrived);
                }
            }
            ClientMessage::Moderate(order) => {
                self.inside()?;
                self.may(Grant::Moderate)?;
                if matches!(self.phase, Phase::Inside { loopback: true, .. }) {
                    let message = "nobody else is in a room of one's own";
                    return Err(ProtocolError::new(ErrorCode::Forbidden, message));
                }
                self.actions.push_back(Action::Moderate { id, order });
            }
            ClientMessage::Leave {} => {
                if !matches!(self.phase, Phase::Entering { waits: true, .. }) {
                    self.inside()?;
                }
                self.phase = Phase::Outside;
                self.outside = now;
                self.publishing.clear();
                self.actions.push_back(Action::Leave);
            }
            ClientMessage::Offer(offer) => {
                self.inside()?;
                if !offer.publish.is_empty() {
                    self.may(Grant::Publish)?;
                }
                if !offer.subscribe.is_empty() {
                    self.may(Grant::Subscribe)?;
                }
                rated(self.offers.take(now), self.config.offers.1, "offers")?;
                let begun =
                    offer.publish.iter().filter(|p| !self.publishing.contains(&p.mid)).count();
                let all = (0..begun).all(|_| self.tracks.take(now));
                rated(all, self.config.tracks.1, "new tracks")?;
                self.publishing = offer.publish.iter().map(|p| p.mid.clone()).collect();
                let (sdp, publish, subscribe) = convert::offer(offer)?;
                // `Request::parse` lets no offer pass without an id.
                let id = id.unwrap_or_default();
                self.actions.push_back(Action::Offer { id, sdp, publish, subscribe });
            }
            ClientMessage::SetRung(SetRung { track, max }) => {
                let tracks = self.inside()?;
                let id = convert::track_id(&track, |id| tracks.contains(id))?;
                self.actions.push_back(Action::SetMaxRung(id, max));
            }
            ClientMessage::View(view) => {
                let tracks = self.inside()?;
                // One about a track that has just gone is no error: the two crossed.
                if let Ok(id) = convert::track_id(&view.track, |id| tracks.contains(id)) {
                    let ViewMessage { width, height, pinned, .. } = view;
                    self.actions.push_back(Action::SetView(id, View { width, height, pinned }));
                }
            }
            ClientMessage::WholeAnchor { track } => {
                let tracks = self.inside()?;
                // A wish about a track that has just gone is no error: the two crossed.
                if let Ok(id) = convert::track_id(&track, |id| tracks.contains(id)) {
                    self.may(Grant::Enhance)?;
                    self.actions.push_back(Action::WholeAnchor(id));
                }
            }
            ClientMessage::Uplink(uplink) => {
                let (own, _) = self.own()?;
                // One about a track that has just gone is no error: the two crossed.
                if let Ok(id) = convert::track_id(&uplink.track, |id| own.contains_key(id)) {
                    let Uplink { kbps, width, height, fps, .. } = uplink;
                    let report = UplinkReport { kbps, size: (width, height), fps };
                    self.actions.push_back(Action::Uplink(id, report));
                }
            }
            ClientMessage::Mute { track, muted } => {
                self.inside()?;
                rated(self.mutes.take(now), self.config.mutes.1, "mutes")?;
                let (own, held) = self.own()?;
                let id = convert::track_id(&track, |id| own.contains_key(id))?;
                if held.contains(&id) && !muted {
                    let message = "an operator has muted this track";
                    return Err(ProtocolError::new(ErrorCode::Forbidden, message));
                }
                own.insert(id, muted);
                if !held.contains(&id) {
                    self.actions.push_back(Action::SetMuted(id, muted));
                }
            }
            ClientMessage::Report(report) => {
                let tracks = self.inside()?;
                // A report about a track that has just gone is no error: the two crossed.
                if let Ok(id) = convert::track_id(&report.track, |id| tracks.contains(id)) {
                    self.actions.push_back(Action::Report(id, report));
                }
            }
        }
        Ok(())
    }

    fn join(&mut self, request: Option<u32>, join: Join) -> Result<(), ProtocolError> {
        if !matches!(self.phase, Phase::Outside) {
            let message = "this socket has joined a room already";
            return Err(ProtocolError::new(ErrorCode::AlreadyJoined, message));
        }
        let decodes_anchors = join.decodes_anchors();
        let Join { room, name, loopback, token, ticket, seat, .. } = join;
        self.phase = Phase::Entering { request, room: room.clone(), loopback, waits: false };
        let options = JoinOptions { loopback, decodes_anchors, ..JoinOptions::default() };
        self.actions.push_back(Action::Join { room, name, token, ticket, seat, options });
        Ok(())
    }

    /// The tracks of the room, if the session is inside one.
    fn inside(&self) -> Result<&HashSet<TrackId>, ProtocolError> {
        match &self.phase {
            Phase::Inside { tracks, .. } => Ok(tracks),
            _ => Err(not_joined()),
        }
    }

    /// The client's own tracks, each with whether it muted it, and those that stay muted whatever it says.
    fn own(&mut self) -> Result<(&mut BTreeMap<TrackId, bool>, &BTreeSet<TrackId>), ProtocolError> {
        match &mut self.phase {
            Phase::Inside { own, held, .. } => Ok((own, held)),
            _ => Err(not_joined()),
        }
    }

    /// Refuses what the client's token does not grant.
    fn may(&self, grant: Grant) -> Result<(), ProtocolError> {
        match &self.phase {
            Phase::Inside { ruled, .. } => Ok(ruled.grants.check(grant)?),
            _ => Err(not_joined()),
        }
    }

    /// Whether a message may be looked at: the socket is open and the client within its rate.
    fn admit(&mut self, now: Instant) -> bool {
        if matches!(self.phase, Phase::Closed) {
            return false;
        }
        self.heard = now;
        if self.bucket.take(now) {
            return true;
        }
        let second = Duration::from_secs(1);
        match &mut self.refused {
            Some((since, count)) if now.saturating_duration_since(*since) < second => {
                *count += 1;
                if *count > self.config.patience {
                    let message = "far too many messages";
                    let e = ProtocolError::new(ErrorCode::RateLimited, message);
                    self.fail(e, close::REFUSED);
                }
            }
            refused => {
                *refused = Some((now, 1));
                let message = format!("more than {} messages a second", self.config.per_second);
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

/// Refuses what comes more often than so many times a second.
fn rated(allowed: bool, per_second: u32, what: &str) -> Result<(), ProtocolError> {
    let message = || format!("more than {per_second} {what} a second");
    allowed.then_some(()).ok_or_else(|| ProtocolError::new(ErrorCode::RateLimited, message()))
}

fn not_joined() -> ProtocolError {
    ProtocolError::new(ErrorCode::NotJoined, "join a room first")
}

#[cfg(test)]
mod tests;
