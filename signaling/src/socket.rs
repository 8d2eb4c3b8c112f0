//! The shell of a session: one WebSocket, one task.
//!
//! Nothing queues here. Messages to the client wait in the SFU's bounded event queue (which
//! removes a participant that does not take them) while one is being sent, and one that is not
//! taken within the send timeout ends the socket.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::tungstenite;
use windlass_protocol::{
    AccessToken, ErrorCode, Grant, IceServers, Moderate, ProtocolError, ServerMessage,
};
use windlass_sfu::{DisconnectReason, JoinOptions, Joined, Offer, ParticipantId, SfuEvent};

use crate::Shared;
use crate::access::Admission;
use crate::client::ClientAddr;
use crate::cluster::{Mover, Place};
use crate::convert;
use crate::door::{Permit, Refused};
use crate::entry::{self, Entry, Inside};
use crate::intake::Intake;
use crate::redact::pseudonym;
use crate::rights::{self, Member, Out, Waiting, Way, unix_now_ms};
use crate::session::{Action, EnterError, Entered, Orders, Session, close};

/// Messages above the protocol's bound but below this are answered; larger ones end the socket. So much of an unfinished one
/// is held.
const READABLE_BYTES: usize = 160 * 1024;
/// After its last words a socket is read for as long, unless the client closes it before: one that is closed while something is unread is
/// reset, and what has not left by then is lost.
const LINGER: Duration = Duration::from_millis(50);
/// Read at once: most messages are shorter.
const READ_BYTES: usize = 8 * 1024;

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
    let permit = match entry::at_door(&shared, client) {
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
    ws.max_message_size(READABLE_BYTES)
        .max_frame_size(READABLE_BYTES)
        .read_buffer_size(READ_BYTES)
        .on_upgrade(move |ws| async move {
            intake.begin(Instant::now());
            Socket::new(ws, shared, permit, intake).run().await;
        })
}

struct Socket {
    ws: WebSocket,
    shared: Arc<Shared>,
    session: Session,
    /// What comes in.
    intake: Arc<Intake>,
    /// Its place, and how often its address may join.
    permit: Permit,
    /// Who the client is in its room, and what happens there.
    inside: Option<(ParticipantId, mpsc::Receiver<SfuEvent>)>,
    /// What others want of it there.
    orders: Option<watch::Receiver<Orders>>,
    /// What holds for it there.
    member: Option<Member>,
    /// Its place in a lobby, and how it wants to enter.
    waiting: Option<(Waiting, Knocking)>,
}

/// How somebody wants to enter a room.
struct Knocking {
    room: String,
    name: String,
    ticket: Option<String>,
    seat: Option<String>,
    admission: Admission,
    options: JoinOptions,
}

impl Knocking {
    fn entry<'a>(&'a self, permit: &'a Permit, admitted: bool) -> Entry<'a> {
        Entry {
            room: &self.room,
            name: self.name.clone(),
            ticket: self.ticket.clone(),
            admission: self.admission.clone(),
            permit,
            seat: self.seat.clone(),
            admitted,
            options: self.options,
        }
    }
}

/// What the socket waits for.
enum Input {
    Message(Option<Result<Message, axum::Error>>),
    Event(Option<SfuEvent>),
    Orders,
    Answered(Result<(), Out>),
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
            orders: None,
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
                () = next_orders(&mut self.orders) => Input::Orders,
                () = next_ruling(&mut self.member) => Input::Orders,
                answer = next_answer(&mut self.waiting) => Input::Answered(answer),
                _ = ticks.tick() => Input::Tick,
            };
            let now = Instant::now();
            let mut open = true;
            if matches!(input, Input::Event(_) | Input::Orders) {
                // Whoever was ordered to go hears that, not that its events have ended.
                self.obey();
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
                    self.session.event(event, |id| directory.get(id));
                }
                Input::Event(None) => {
                    self.forget();
                    self.session.media_ended(DisconnectReason::Lost);
                }
                Input::Orders => {}
                Input::Answered(answer) => self.answered(answer).await,
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

    /// Whether the socket goes on after the message.
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

    /// Does what the session asks for. Whether the socket goes on.
    async fn act(&mut self) -> bool {
        while let Some(action) = self.session.poll() {
            match action {
                Action::Send(message) => {
                    if !self.send(&message).await {
                        return false;
                    }
                }
                Action::Moved(url) => {
                    if !self.send(&self.moved(url)).await {
                        return false;
                    }
                }
                Action::Ping => {
                    if !self.put(Message::Ping(Vec::new().into())).await {
                        return false;
                    }
                }
                Action::Close { code, reason } => {
                    if code == close::REFUSED {
                        self.shared.counters.sockets_flooded.fetch_add(1, Ordering::Relaxed);
                    }
                    self.put(Message::Close(Some(CloseFrame { code, reason: reason.into() })))
                        .await;
                    return false;
                }
                Action::Join { room, name, token, ticket, seat, options } => {
                    if let Err(refused) = entry::count_join(&self.shared, &self.permit) {
                        self.session.joins_limited(&refused.to_string());
                        continue;
                    }
                    let token = token.as_ref().map(AccessToken::reveal);
                    // In a room of its own nobody is but who sends and watches.
                    let needed: &[Grant] =
                        if options.loopback { &[Grant::Publish, Grant::Subscribe] } else { &[] };
                    let admitted = entry::admit(&self.shared, &room, token, needed);
                    match admitted {
                        Ok(admission) => {
                            let owner = self.permit.owner(admission.identity.as_deref());
                            let options = JoinOptions { owner, ..options };
                            let who = Knocking { room, name, ticket, seat, admission, options };
                            self.come(who).await;
                        }
                        Err(error) => self.session.joined(Err(error)),
                    }
                }
                Action::Offer { id, sdp, publish, subscribe } => {
                    let Some((participant, _)) = self.inside else { continue };
                    let offer = Offer { sdp, publish, subscribe };
                    let lists = convert::Lists::of(&offer);
                    let result = self.shared.services.sfu.offer(participant, offer).await;
                    if let Ok(answer) = &result {
                        let (published, subscribed) = lists.agreed(answer);
                        self.shared.directory.negotiated(participant, published, &subscribed);
                    }
                    self.session.answered(id, result);
                }
                Action::SetMaxRung(track, max) => {
                    if let Some((participant, _)) = self.inside {
                        let sfu = &self.shared.services.sfu;
                        // A stopped SFU ends the event queue too, which closes the socket.
                        let _ = sfu.set_max_rung(participant, track, max).await;
                    }
                }
                Action::SetView(track, view) => {
                    if let Some((participant, _)) = self.inside {
                        let _ = self.shared.services.sfu.set_view(participant, track, view).await;
                    }
                }
                Action::WholeAnchor(track) => {
                    if let Some((participant, _)) = self.inside {
                        let sfu = &self.shared.services.sfu;
                        let _ = sfu.request_whole_anchor(participant, track).await;
                    }
                }
                Action::Uplink(track, report) => {
                    if let Some((participant, _)) = self.inside {
                        let _ = self.shared.services.sfu.uplink(participant, track, report).await;
                    }
                }
                Action::SetMuted(track, muted) => {
                    if let Some((participant, _)) = self.inside {
                        let sfu = &self.shared.services.sfu;
                        let _ = sfu.set_muted(participant, track, muted).await;
                        self.shared.directory.muted(participant, track, muted);
                    }
                }
                Action::IceServers => {
                    let Some((participant, _)) = self.inside else { continue };
                    let ice = self.ice_servers(participant);
                    if !self.send(&ServerMessage::IceServers { ice }).await {
                        return false;
                    }
                }
                Action::Arrived => {
                    if let Some((participant, _)) = self.inside {
                        self.shared.directory.arrived(participant);
                    }
                }
                Action::Moderate { id, order } => {
                    let result = self.moderate(order);
                    self.session.moderated(id, result);
                }
                Action::Leave => self.leave().await,
                Action::Report(track, report) => {
                    let Some((participant, _)) = self.inside else { continue };
                    let (said, decay) = convert::report(&report);
                    let sfu = &self.shared.services.sfu;
                    let taken = sfu.report(participant, track, said, decay).await;
                    self.shared.counters.reported.count(taken);
                }
            }
        }
        true
    }

    /// Lets somebody in whose token is good, or wait where a moderator must say so.
    async fn come(&mut self, who: Knocking) {
        let Knocking { room, name, seat, admission, options, .. } = &who;
        // Nothing is done for whoever may be nowhere: no room begins here.
        let way = entry::way_in(&self.shared, room, options.loopback, admission, seat.as_deref());
        if let Err(out @ (Out::Banned | Out::Revoked)) = way {
            return self.session.joined(Err(out.into()));
        }
        if let Place::At(url) = entry::place(&self.shared, room, options).await {
            return self.session.elsewhere(url);
        }
        let way = entry::way_in(&self.shared, room, options.loopback, admission, seat.as_deref());
        if way == Ok(Way::Lobby) {
            let shown = admission.name.as_ref().unwrap_or(name);
            let identity = admission.identity.as_deref();
            match self.shared.rights.knock(room, shown, identity, unix_now_ms()) {
                Ok(waiting) => {
                    tracing::info!(room = %pseudonym(room), "waits to be let in");
                    self.session.waits();
                    self.waiting = Some((waiting, who));
                }
                Err(out) => self.session.joined(Err(out.into())),
            }
            return;
        }
        let result = self.join(&who, false).await;
        self.session.joined(result);
    }

    /// A moderator has answered.
    async fn answered(&mut self, answer: Result<(), Out>) {
        let Some((_waiting, who)) = self.waiting.take() else { return };
        if let Err(out) = answer {
            return self.session.joined(Err(out.into()));
        }
        // The room may have moved meanwhile.
        if let Place::At(url) = entry::place(&self.shared, &who.room, &who.options).await {
            return self.session.elsewhere(url);
        }
        let result = self.join(&who, true).await;
        self.session.joined(result);
    }

    /// Does what a moderator asks for.
    fn moderate(&self, order: Moderate) -> Result<(), ProtocolError> {
        let not_there = || ProtocolError::new(ErrorCode::NotJoined, "join a room first");
        let room = self.member.as_ref().map(|member| member.room.as_str()).ok_or_else(not_there)?;
        let Shared { rights, directory, .. } = &*self.shared;
        rights::Orders { rights, directory, room }.follow(order)?;
        tracing::info!(room = %pseudonym(room), "a moderator's order is followed");
        Ok(())
    }

    async fn join(&mut self, who: &Knocking, admitted: bool) -> Result<Entered, EnterError> {
        let shared = self.shared.clone();
        let entry = who.entry(&self.permit, admitted);
        let Inside { id, identity, mut member, seat, orders, joined } =
            entry::enter(&shared, entry).await?;
        let Joined { participants, tracks, events } = joined;
        self.inside = Some((id, events));
        self.orders = Some(orders);
        let ruling = member.ruling.borrow_and_update().clone();
        self.member = Some(member);
        let others = participants.into_iter().filter(|p| *p != id);
        let participants = others.map(|p| (p, shared.directory.get(p))).collect();
        let ice = self.ice_servers(id);
        let others = shared.services.cluster.as_ref().map_or_else(Vec::new, |c| c.others());
        Ok(Entered { id, identity, ruling, seat, participants, tracks, ice, others })
    }

    /// Those servers know the participant by its id, which says nothing to anybody else.
    fn ice_servers(&self, id: ParticipantId) -> IceServers {
        self.shared.config.turn.servers(&id.to_string(), unix_now())
    }

    /// That the room is elsewhere; for whoever is in it, with a ticket that says there who it was.
    fn moved(&self, url: String) -> ServerMessage {
        let cluster = self.shared.services.cluster.as_ref();
        let who = self.inside.as_ref().and_then(|(id, _)| self.shared.directory.in_room(*id));
        let ticket = who.zip(cluster).and_then(|((id, room, person), cluster)| {
            cluster.ticket(&Mover { room: &room, person: &person }, id)
        });
        let others = cluster.map_or_else(Vec::new, |cluster| cluster.others());
        ServerMessage::Moved { url, ticket, others }
    }

    fn obey(&mut self) {
        if let Some(orders) = &mut self.orders
            && orders.has_changed().unwrap_or(true)
        {
            self.session.orders(Instant::now(), &orders.borrow_and_update());
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
        self.orders = None;
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
            tracing::debug!(code = ?error.code, "refused a message");
        }
        self.put(Message::Text(message.to_json().into())).await
    }

    /// Sends a frame; `false` when the client did not take it in time.
    async fn put(&mut self, message: Message) -> bool {
        let sent = tokio::time::timeout(self.shared.config.send_timeout, self.ws.send(message));
        matches!(sent.await, Ok(Ok(())))
    }
}

/// The next event of the room; outside of one there is none, ever.
async fn next_event(
    inside: &mut Option<(ParticipantId, mpsc::Receiver<SfuEvent>)>,
) -> Option<SfuEvent> {
    match inside {
        Some((_, events)) => events.recv().await,
        None => std::future::pending().await,
    }
}

/// Until others want something of the participant; the directory lets go of one whose seat was taken, after its last word.
async fn next_orders(orders: &mut Option<watch::Receiver<Orders>>) {
    if let Some(orders) = orders
        && orders.changed().await.is_ok()
    {
        // `changed` marks it as seen.
        orders.mark_changed();
        return;
    }
    std::future::pending::<()>().await;
}

/// Until something else holds for the participant.
async fn next_ruling(member: &mut Option<Member>) {
    if let Some(member) = member
        && member.ruling.changed().await.is_ok()
    {
        // `changed` marks it as seen.
        member.ruling.mark_changed();
        return;
    }
    std::future::pending::<()>().await;
}

/// What a moderator says to one who waits.
async fn next_answer(waiting: &mut Option<(Waiting, Knocking)>) -> Result<(), Out> {
    if let Some((waiting, _)) = waiting
        && let Ok(answer) = waiting.answer.wait_for(Option::is_some).await
        && let Some(answer) = *answer
    {
        return answer;
    }
    std::future::pending().await
}

/// Seconds since 1970, by which tokens' times are.
pub(crate) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
