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
use windlass_protocol::{AccessToken, IceServers, Report, ServerMessage};
use windlass_sfu::{Ended, Joined, Offer, ParticipantId, SfuEvent};

use crate::Shared;
use crate::client::ClientAddr;
use crate::cluster::{Mover, Place};
use crate::convert;
use crate::door::{Permit, Refused};
use crate::entry::{self, Entry, Inside};
use crate::session::{Action, EnterError, Entered, Orders, Session};

/// Messages above the protocol's bound but below this are answered; larger ones end the socket.
const READABLE_BYTES: usize = 1024 * 1024;

/// Open the WebSocket of signalling; its messages are described in docs/signaling.md.
#[utoipa::path(get, path = "/ws", tag = "calls", responses(
    (status = 101, description = "The socket is open"),
    (status = 503, description = "The server has as many sockets as it may"),
    (status = 429, description = "The client's address has as many sockets as it may")))]
pub(crate) async fn upgrade(
    State(shared): State<Arc<Shared>>,
    Extension(ClientAddr(client)): Extension<ClientAddr>,
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
    ws.max_message_size(READABLE_BYTES).max_frame_size(READABLE_BYTES).on_upgrade(
        move |ws| async move {
            Socket::new(ws, shared, permit).run().await;
        },
    )
}

struct Socket {
    ws: WebSocket,
    shared: Arc<Shared>,
    session: Session,
    /// Its place, and how often its address may join.
    permit: Permit,
    /// Who the client is in its room, and what happens there.
    inside: Option<(ParticipantId, mpsc::Receiver<SfuEvent>)>,
    /// What others want of it there.
    orders: Option<watch::Receiver<Orders>>,
}

/// What the socket waits for.
enum Input {
    Message(Option<Result<Message, axum::Error>>),
    Event(Option<SfuEvent>),
    Orders,
    Tick,
    ShutDown,
}

impl Socket {
    fn new(ws: WebSocket, shared: Arc<Shared>, permit: Permit) -> Self {
        let session = Session::new(shared.config.session.clone(), Instant::now());
        Self { ws, shared, session, permit, inside: None, orders: None }
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
                    self.session.media_ended(Ended::Lost);
                }
                Input::Orders => {}
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
                    self.put(Message::Close(Some(CloseFrame { code, reason: reason.into() })))
                        .await;
                    return false;
                }
                Action::Join { room, name, token, ticket, options } => {
                    if let Err(refused) = entry::count_join(&self.shared, &self.permit) {
                        self.session.joins_limited(&refused.to_string());
                        continue;
                    }
                    let token = token.as_ref().map(AccessToken::reveal);
                    let admitted = entry::admit(&self.shared, &room, token, None);
                    let result = match admitted {
                        Ok(admission) => {
                            if let Place::At(url) =
                                entry::place(&self.shared, &room, &options).await
                            {
                                self.session.elsewhere(url);
                                continue;
                            }
                            let entry = Entry { room: &room, name, ticket, admission, options };
                            self.join(entry).await
                        }
                        Err(error) => Err(error),
                    };
                    self.session.joined(result);
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
                Action::WholeAnchor(track, source) => {
                    if let Some((participant, _)) = self.inside {
                        let sfu = &self.shared.services.sfu;
                        let _ = sfu.want_whole_anchor(participant, track, source).await;
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
                Action::Leave => self.leave().await,
                Action::Report(track, report) => {
                    self.count(&report);
                    let decay = report.decay.zip(report.decay_frames);
                    if let (Some((participant, _)), Some(decay)) = (&self.inside, decay) {
                        let participant = *participant;
                        let _ = self.shared.services.sfu.decay(participant, track, decay).await;
                    }
                }
            }
        }
        true
    }

    async fn join(&mut self, entry: Entry<'_>) -> Result<Entered, EnterError> {
        let shared = self.shared.clone();
        let Inside { id, identity, grants, orders, joined } = entry::enter(&shared, entry).await?;
        let Joined { participants, tracks, events } = joined;
        self.inside = Some((id, events));
        self.orders = Some(orders);
        let others = participants.into_iter().filter(|p| *p != id);
        let participants = others.map(|p| (p, shared.directory.get(p))).collect();
        let ice = self.ice_servers(id);
        let others = shared.services.cluster.as_ref().map_or_else(Vec::new, |c| c.others());
        Ok(Entered { id, identity, grants, participants, tracks, ice, others })
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
    }

    async fn leave(&mut self) {
        if let Some(id) = self.forget() {
            let _ = self.shared.services.sfu.leave(id).await;
        }
    }

    fn forget(&mut self) -> Option<ParticipantId> {
        let (id, _) = self.inside.take()?;
        self.orders = None;
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

    fn count(&self, report: &Report) {
        let counters = &self.shared.counters;
        counters.reports.fetch_add(1, Ordering::Relaxed);
        counters.anchors_used.fetch_add(report.anchors_used.into(), Ordering::Relaxed);
        counters.anchors_late.fetch_add(report.anchors_late.into(), Ordering::Relaxed);
        counters.anchors_lost.fetch_add(report.anchors_lost.into(), Ordering::Relaxed);
        counters.anchors_duplicate.fetch_add(report.anchors_duplicate.into(), Ordering::Relaxed);
        let former = report.anchors_former_epoch.into();
        counters.anchors_former_epoch.fetch_add(former, Ordering::Relaxed);
        let needing = report.anchors_needing_whole.into();
        counters.anchors_needing_whole.fetch_add(needing, Ordering::Relaxed);
        tracing::debug!(?report, "report");
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

/// Seconds since 1970, by which tokens' times are.
pub(crate) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
