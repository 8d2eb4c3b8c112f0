//! The shell of a [`Session`]: one WebSocket, one task.
//!
//! There is no queue here. While a message is being sent, further events wait in the SFU's bounded event queue (which
//! removes a participant that does not take them). A message that the client does not
//! take within the send timeout ends the socket.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::tungstenite;
use windlass_protocol::{
    AccessToken, Attributes, ErrorCode, Grant, IceServers, Moderate, ProtocolError, ServerMessage,
};
use windlass_sfu::{DisconnectReason, JoinOptions, Joined, ParticipantId, SfuEvent};
use windlass_types::attributes::sent_len;

use crate::access::Admission;
use crate::admission::{Permit, Refused};
use crate::client::ClientAddr;
use crate::clock::unix_now;
use crate::cluster::{Mover, RoomServer};
use crate::convert;
use crate::entry::{self, Entry, Inside};
use crate::intake::Intake;
use crate::redact::pseudonym;
use crate::rights::{self, Denied, EntryMode, Member, Waiting, unix_now_ms};
use crate::session::{Action, Commands, EnterError, Entered, Session, close};
use crate::shared::Shared;

/// Maximum size of a message that is read, in bytes. Messages between the protocol's bound and this one are answered
/// with an error. Larger ones end the socket.
const MAX_READ_BYTES: usize = 256 * 1024;
/// Time for which a socket is read after the last message to the client. TCP resets a connection that is closed with
/// unread data, and what was not sent by then is lost.
const LINGER: Duration = Duration::from_millis(50);
/// Initial size of the read buffer, in bytes: most messages are shorter.
const READ_BUFFER_BYTES: usize = 8 * 1024;

/// Open the WebSocket of signalling; its messages are described in docs/signaling.md.
#[utoipa::path(get, path = "/ws", tag = "calls", responses(
    (status = 101, description = "The socket is open"),
    (status = 503, description = "The server has as many sockets as it may"),
    (status = 429, description = "The client's address has as many sockets as it may")))]
pub(crate) async fn upgrade(
    State(shared): State<Arc<Shared>>,
    Extension(ClientAddr(client)): Extension<ClientAddr>,
    Extension(intake): Extension<Arc<Intake>>,
    ws: WebSocketUpgrade,
) -> Response {
    let permit = match entry::socket(&shared, client) {
        Ok(permit) => permit,
        Err(refused) => {
            let status = match refused {
                Refused::Full => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::TOO_MANY_REQUESTS,
            };
            return (status, format!("{refused}\n")).into_response();
        }
    };
    shared.counters.sockets.fetch_add(1, Ordering::Relaxed);
    ws.max_message_size(MAX_READ_BYTES)
        .max_frame_size(MAX_READ_BYTES)
        .read_buffer_size(READ_BUFFER_BYTES)
        .on_upgrade(move |ws| async move {
            intake.begin(Instant::now());
            Socket::new(ws, shared, permit, intake).run().await;
        })
}

struct Socket {
    ws: WebSocket,
    shared: Arc<Shared>,
    session: Session,
    /// Byte rate of the connection.
    intake: Arc<Intake>,
    /// Slot of admission control that the socket holds.
    permit: Permit,
    /// The participant in its room, and the room's events.
    inside: Option<(ParticipantId, mpsc::Receiver<SfuEvent>)>,
    /// Commands of operators and other participants.
    commands: Option<watch::Receiver<Commands>>,
    /// Registration of the participant, with its rights.
    member: Option<Member>,
    /// Place in a lobby, and the `join` message that waits for an answer there.
    waiting: Option<(Waiting, Authorized)>,
}

/// A `join` message.
struct JoinRequest {
    room: String,
    name: String,
    ticket: Option<String>,
    seat: Option<String>,
    attributes: Attributes,
    options: JoinOptions,
}

/// A `join` message with a valid access token.
struct Authorized {
    request: JoinRequest,
    admission: Admission,
}

impl Authorized {
    fn entry<'a>(&'a self, permit: &'a Permit, admitted: bool) -> Entry<'a> {
        let JoinRequest { room, name, ticket, seat, attributes, options } = &self.request;
        Entry {
            room,
            name: name.clone(),
            ticket: ticket.clone(),
            admission: self.admission.clone(),
            permit,
            seat: seat.clone(),
            admitted,
            attributes: attributes.clone(),
            options: *options,
        }
    }
}

/// An input of a socket's task.
enum Input {
    Message(Option<Result<Message, axum::Error>>),
    Event(Option<SfuEvent>),
    Commands,
    LobbyAnswer(Result<(), Denied>),
    Tick,
    ShutDown,
}

impl Socket {
    fn new(ws: WebSocket, shared: Arc<Shared>, permit: Permit, intake: Arc<Intake>) -> Self {
        let session = Session::new(shared.config.session.clone(), Instant::now());
        Self {
            ws,
            shared,
            session,
            intake,
            permit,
            inside: None,
            commands: None,
            member: None,
            waiting: None,
        }
    }

    async fn run(mut self) {
        let mut stop = self.shared.stop.subscribe();
        let mut stopping = false;
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        loop {
            let input = tokio::select! {
                _ = stop.wait_for(|stop| *stop), if !stopping => Input::ShutDown,
                message = self.ws.next() => Input::Message(message),
                event = next_event(&mut self.inside) => Input::Event(event),
                () = next_commands(&mut self.commands) => Input::Commands,
                () = next_ruling(&mut self.member) => Input::Commands,
                answer = next_answer(&mut self.waiting) => Input::LobbyAnswer(answer),
                _ = ticks.tick() => Input::Tick,
            };
            let now = Instant::now();
            let mut open = true;
            if matches!(input, Input::Event(_) | Input::Commands) {
                // Before the end of the events, so that the client learns why it was removed.
                self.apply_commands();
            }
            match input {
                Input::Message(None) => open = false,
                Input::Message(Some(Ok(message))) => open = self.message(now, message),
                Input::Message(Some(Err(error))) => {
                    match error.into_inner().downcast_ref::<tungstenite::Error>() {
                        Some(tungstenite::Error::Capacity(_)) => self.session.unreadable(true),
                        Some(tungstenite::Error::Utf8(_)) => self.session.unreadable(false),
                        _ => open = false,
                    }
                }
                Input::Event(Some(event)) => {
                    let directory = &self.shared.directory;
                    if let Some((participant, _)) = self.inside {
                        convert::note(directory, participant, &event);
                    }
                    self.session.event(event, |id| directory.find(id));
                }
                Input::Event(None) => {
                    self.forget();
                    self.session.media_ended(DisconnectReason::Lost);
                }
                Input::Commands => {}
                Input::LobbyAnswer(answer) => self.on_lobby_answer(answer).await,
                Input::Tick if self.intake.floods(now) => self.session.flooded(),
                Input::Tick => self.session.tick(now),
                Input::ShutDown => {
                    stopping = true;
                    self.session.shut_down();
                }
            }
            if !open || !self.act().await {
                break;
            }
        }
        self.leave().await;
        let rest = async { while let Some(Ok(_)) = self.ws.next().await {} };
        let _ = tokio::time::timeout(LINGER, rest).await;
    }

    /// Handles a message. Returns `false` if the socket ends.
    fn message(&mut self, now: Instant, message: Message) -> bool {
        match message {
            Message::Text(text) => {
                self.shared.counters.messages_in.fetch_add(1, Ordering::Relaxed);
                self.session.text(now, text.as_str());
            }
            Message::Binary(_) => {
                self.shared.counters.messages_in.fetch_add(1, Ordering::Relaxed);
                self.session.binary(now);
            }
            Message::Ping(_) | Message::Pong(_) => self.session.heard(now),
            Message::Close(_) => return false,
        }
        true
    }

    /// Carries out the session's actions. Returns `false` if the socket ends.
    async fn act(&mut self) -> bool {
        while let Some(action) = self.session.poll() {
            let is_open = match action {
                Action::Send(message) => self.send(&message).await,
                Action::Moved(url) => self.send(&self.moved(url)).await,
                Action::Ping => self.put(Message::Ping(Vec::new().into())).await,
                Action::Close { code, reason } => {
                    if code == close::REFUSED {
                        self.shared.counters.sockets_flooded.fetch_add(1, Ordering::Relaxed);
                    }
                    self.put(Message::Close(Some(CloseFrame { code, reason: reason.into() })))
                        .await;
                    false
                }
                Action::Join { room, name, token, ticket, seat, attributes, options } => {
                    let request = JoinRequest { room, name, ticket, seat, attributes, options };
                    let came = Instant::now();
                    self.authorize(request, token).await;
                    self.shared.counters.joins.record(came.elapsed());
                    true
                }
                Action::Moderate { id, request } => {
                    let result = self.moderate(request);
                    self.session.moderated(id, result);
                    true
                }
                Action::Leave => {
                    self.leave().await;
                    true
                }
                action => match self.inside {
                    Some((participant, _)) => self.act_inside(participant, action).await,
                    None => true,
                },
            };
            if !is_open {
                return false;
            }
        }
        true
    }

    /// Carries out an action about a participant in a room. Returns `false` if the socket ends.
    async fn act_inside(&mut self, id: ParticipantId, action: Action) -> bool {
        let Shared { services, directory, counters, .. } = &*self.shared;
        let sfu = &services.sfu;
        // The errors of a stopped SFU are ignored: it ends the event queue too, which closes the socket.
        match action {
            Action::Offer { id: request, offer } => {
                let lists = convert::Lists::of(&offer);
                let result = sfu.offer(id, offer).await;
                if let Ok(answer) = &result {
                    directory.negotiated(id, lists.agreed(answer));
                }
                self.session.answered(request, result);
            }
            Action::SetMaxRung(track, max) => {
                let _ = sfu.set_max_rung(id, track, max).await;
            }
            Action::SetView(track, view) => {
                let _ = sfu.set_view(id, track, view).await;
            }
            Action::KeyAnchor(track) => {
                let _ = sfu.request_key_anchor(id, track).await;
            }
            Action::Uplink(track, report) => {
                let _ = sfu.uplink(id, track, report).await;
            }
            Action::SetMuted(track, muted) => {
                let _ = sfu.set_muted(id, track, muted).await;
                directory.muted(id, track, muted);
            }
            Action::Report(track, report) => {
                let taken = sfu.report(id, track, convert::report(&report)).await;
                counters.reported.count(taken, report.network);
            }
            Action::SendData { id: request, to, message } => {
                let result = sfu.send_data(id, to, message).await;
                self.session.sent(request, result);
            }
            Action::SetAttributes { id: request, name, attributes } => {
                let bytes = name.as_ref().map_or(0, String::len) + sent_len(&attributes);
                let result = sfu.admit_change(id, bytes).await;
                if result.is_ok() {
                    directory.set_attributes(id, name, attributes.clone());
                    let _ = sfu.participant_changed(id).await;
                }
                self.session.changed(request, result.map(|()| attributes));
            }
            Action::ClearAttributes => {
                directory.set_attributes(id, None, Attributes::new());
                let _ = sfu.participant_changed(id).await;
            }
            Action::IceServers => {
                let ice = self.ice_servers(id);
                return self.send(&ServerMessage::IceServers { ice }).await;
            }
            Action::Arrived => directory.arrived(id),
            Action::Send(_)
            | Action::Moved(_)
            | Action::Ping
            | Action::Close { .. }
            | Action::Join { .. }
            | Action::Moderate { .. }
            | Action::Leave => {}
        }
        true
    }

    /// Counts a join, checks its access token, and goes on with [`Self::enter`].
    async fn authorize(&mut self, request: JoinRequest, token: Option<AccessToken>) {
        if let Err(refused) = entry::count_join(&self.shared, &self.permit) {
            return self.session.joins_limited(&refused.to_string());
        }
        // In a loopback room the participant publishes and subscribes to itself.
        let needed: &[Grant] =
            if request.options.loopback { &[Grant::Publish, Grant::Subscribe] } else { &[] };
        let token = token.as_ref().map(AccessToken::reveal);
        match entry::admit(&self.shared, &request.room, token, needed) {
            Ok(admission) => {
                let owner = self.permit.owner(admission.identity.as_deref());
                let options = JoinOptions { owner, ..request.options };
                let request = JoinRequest { options, ..request };
                self.enter(Authorized { request, admission }).await;
            }
            Err(error) => self.session.joined(Err(error)),
        }
    }

    /// Lets a participant enter, or wait in the lobby.
    async fn enter(&mut self, join: Authorized) {
        let Authorized { request: JoinRequest { room, name, seat, options, .. }, admission } =
            &join;
        let mode = |shared: &Shared| {
            entry::check_entry(shared, room, options.loopback, admission, seat.as_deref())
        };
        // Checked before the placement, which may claim the room: banned participants begin no rooms.
        if let Err(denied @ (Denied::Banned | Denied::Revoked)) = mode(&self.shared) {
            return self.session.joined(Err(denied.into()));
        }
        if let RoomServer::Redirect(url) = entry::place(&self.shared, room, options).await {
            return self.session.redirect(url);
        }
        if mode(&self.shared) == Ok(EntryMode::Lobby) {
            let shown = admission.name.as_ref().unwrap_or(name);
            let identity = admission.identity.as_deref();
            match self.shared.rights.knock(room, shown, identity, unix_now_ms()) {
                Ok(waiting) => {
                    tracing::info!(room = %pseudonym(room), "waiting in the lobby");
                    self.session.waits();
                    self.waiting = Some((waiting, join));
                }
                Err(denied) => self.session.joined(Err(denied.into())),
            }
            return;
        }
        let result = self.join(&join, false).await;
        self.session.joined(result);
    }

    /// Handles a moderator's answer to the participant in the lobby.
    async fn on_lobby_answer(&mut self, answer: Result<(), Denied>) {
        let Some((_waiting, join)) = self.waiting.take() else { return };
        if let Err(denied) = answer {
            return self.session.joined(Err(denied.into()));
        }
        // The room may have moved meanwhile.
        let JoinRequest { room, options, .. } = &join.request;
        if let RoomServer::Redirect(url) = entry::place(&self.shared, room, options).await {
            return self.session.redirect(url);
        }
        let result = self.join(&join, true).await;
        self.session.joined(result);
    }

    /// Applies a moderator's request.
    fn moderate(&self, request: Moderate) -> Result<(), ProtocolError> {
        let not_joined = || ProtocolError::new(ErrorCode::NotJoined, "join a room first");
        let room =
            self.member.as_ref().map(|member| member.room.as_str()).ok_or_else(not_joined)?;
        let Shared { rights, directory, .. } = &*self.shared;
        rights::Moderation { rights, directory, room }.apply(request)?;
        tracing::info!(room = %pseudonym(room), "applied a moderator's request");
        Ok(())
    }

    async fn join(&mut self, join: &Authorized, admitted: bool) -> Result<Entered, EnterError> {
        let shared = self.shared.clone();
        let entry = join.entry(&self.permit, admitted);
        let Inside { id, identity, mut member, seat, attributes, commands, joined } =
            entry::enter(&shared, entry).await?;
        let Joined { participants, tracks, events } = joined;
        self.inside = Some((id, events));
        self.intake.joined(Instant::now());
        self.commands = Some(commands);
        let ruling = member.ruling.borrow_and_update().clone();
        self.member = Some(member);
        let others = participants.into_iter().filter(|p| *p != id);
        let participants = others.map(|p| (p, shared.directory.get(p))).collect();
        let ice = self.ice_servers(id);
        let others = shared.services.cluster.as_ref().map_or_else(Vec::new, |c| c.others());
        Ok(Entered {
            id,
            identity,
            name_is_fixed: join.admission.name.is_some(),
            attributes,
            ruling,
            seat,
            participants,
            tracks,
            ice,
            others,
        })
    }

    /// The ICE servers for a participant. The credentials contain the participant's id.
    fn ice_servers(&self, id: ParticipantId) -> IceServers {
        self.shared.config.turn.servers(&id.to_string(), unix_now())
    }

    /// The message that the room is on another server. A participant of the room gets a ticket in it.
    fn moved(&self, url: String) -> ServerMessage {
        let cluster = self.shared.services.cluster.as_ref();
        let ticket = self.inside.as_ref().zip(cluster).and_then(|((id, _), cluster)| {
            let (room, info) = self.shared.directory.room_of(*id)?;
            cluster.ticket(&Mover { room: &room, participant: &info }, *id)
        });
        let others = cluster.map_or_else(Vec::new, |cluster| cluster.others());
        ServerMessage::Moved { url, ticket, others }
    }

    fn apply_commands(&mut self) {
        if let Some(commands) = &mut self.commands
            && commands.has_changed().unwrap_or(true)
        {
            self.session.commands(Instant::now(), &commands.borrow_and_update());
        }
        if let Some(member) = &mut self.member
            && member.ruling.has_changed().unwrap_or(false)
        {
            let ruling = member.ruling.borrow_and_update();
            if let Some((participant, _)) = self.inside {
                self.shared.directory.set_grants(participant, &ruling.grants);
            }
            self.session.ruling(Instant::now(), &ruling);
        }
    }

    async fn leave(&mut self) {
        self.waiting = None;
        if let Some(id) = self.forget() {
            let _ = self.shared.services.sfu.leave(id).await;
        }
    }

    fn forget(&mut self) -> Option<ParticipantId> {
        let (id, _) = self.inside.take()?;
        self.commands = None;
        self.member = None;
        self.shared.directory.leave(id);
        tracing::info!(participant = %id, "left");
        Some(id)
    }

    async fn send(&mut self, message: &ServerMessage) -> bool {
        let counters = &self.shared.counters;
        counters.messages_out.fetch_add(1, Ordering::Relaxed);
        if let ServerMessage::Error(error) = message {
            counters.errors.fetch_add(1, Ordering::Relaxed);
            if error.code == ErrorCode::RateLimited {
                counters.rate_limited.fetch_add(1, Ordering::Relaxed);
            }
            tracing::debug!(code = ?error.code, "refused a message");
        }
        self.put(Message::Text(message.to_json().into())).await
    }

    /// Sends a frame. Returns `false` if the client did not take it in time.
    async fn put(&mut self, message: Message) -> bool {
        let sent = tokio::time::timeout(self.shared.config.send_timeout, self.ws.send(message));
        matches!(sent.await, Ok(Ok(())))
    }
}

/// The next event of the room; outside of a room it never comes.
async fn next_event(
    inside: &mut Option<(ParticipantId, mpsc::Receiver<SfuEvent>)>,
) -> Option<SfuEvent> {
    match inside {
        Some((_, events)) => events.recv().await,
        None => std::future::pending().await,
    }
}

/// Returns when the commands change. The directory drops the sender of a participant that was replaced, after its last
/// command.
async fn next_commands(commands: &mut Option<watch::Receiver<Commands>>) {
    if let Some(commands) = commands
        && commands.changed().await.is_ok()
    {
        // `changed` has marked the value as seen.
        commands.mark_changed();
        return;
    }
    std::future::pending::<()>().await;
}

/// Returns when the participant's rights change.
async fn next_ruling(member: &mut Option<Member>) {
    if let Some(member) = member
        && member.ruling.changed().await.is_ok()
    {
        // `changed` has marked the value as seen.
        member.ruling.mark_changed();
        return;
    }
    std::future::pending::<()>().await;
}

/// Waits for a moderator's answer to the participant in the lobby.
async fn next_answer(waiting: &mut Option<(Waiting, Authorized)>) -> Result<(), Denied> {
    if let Some((waiting, _)) = waiting
        && let Ok(answer) = waiting.answer.wait_for(Option::is_some).await
        && let Some(answer) = *answer
    {
        return answer;
    }
    std::future::pending().await
}
