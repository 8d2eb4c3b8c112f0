//! The handle through which callers use the SFU's threads.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{mpsc, oneshot};
use windlass_types::rendition::RendererAnswer;
use windlass_types::{AnchorPolicy, EnhancerOutput, Rung};

use super::room_threads::RoomThreads;
use super::watchdog::{ThreadFault, Watchdog};
use super::{Command, Shared};
use crate::api::{
    Answer, DataError, DataMessage, JoinError, JoinOptions, Joined, Offer, OfferError,
    ParticipantId, Permissions, RenditionError, ReportError, SfuClosed, TakenReport, TrackId,
    TrackReport, UplinkReport,
};
use crate::config::Tuning;
use crate::core::{ReadOffer, Recorded, Shard, View, contained};
use crate::relay::{FromNode, NodeId, Relayed};
use crate::stats::SfuStats;

/// A handle to a running SFU.
///
/// ```
/// use windlass_sfu::{EnhancerSinks, JoinOptions, ParticipantId, Sfu, SfuClosed, SfuConfig, SfuEvent};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let config = SfuConfig { udp: ([127, 0, 0, 1], 0).into(), ..SfuConfig::default() };
/// let sfu = Sfu::start(&config, &EnhancerSinks::none())?;
/// let (handle, ana, ben) = (sfu.handle(), ParticipantId(1), ParticipantId(2));
/// let mut at_ana = handle.join("tea", ana, JoinOptions::default()).await?;
/// let at_ben = handle.join("tea", ben, JoinOptions::default()).await?;
/// assert_eq!(at_ben.participants, [ana]);
/// let event = at_ana.events.recv().await;
/// assert_eq!(event, Some(SfuEvent::ParticipantJoined { participant: ben }));
/// assert_eq!(handle.stats().await?.participants, 2);
///
/// drop(sfu);
/// assert_eq!(handle.stats().await.err(), Some(SfuClosed));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SfuHandle {
    threads: Arc<[ThreadSenders]>,
    room_threads: Arc<RoomThreads>,
    shared: Arc<Shared>,
    watchdog: Arc<Watchdog>,
}

/// The queues of one media thread.
#[derive(Debug)]
pub(super) struct ThreadSenders {
    /// Commands for the thread. Senders wait for room in the queue.
    pub(super) commands: mpsc::Sender<Command>,
    /// Outputs of the enhancer. They are dropped and counted when the queue is full.
    pub(super) anchors: mpsc::Sender<EnhancerOutput>,
    /// Messages of other SFUs. Media is dropped and counted when the queue is full; other messages wait for room.
    pub(super) relayed: mpsc::Sender<FromNode>,
}

impl SfuHandle {
    pub(super) fn new(
        threads: Vec<ThreadSenders>,
        room_threads: Arc<RoomThreads>,
        shared: Arc<Shared>,
        watchdog: Arc<Watchdog>,
    ) -> SfuHandle {
        SfuHandle { threads: threads.into(), room_threads, shared, watchdog }
    }

    /// A fault of a media thread: it has ended, or does not respond. Never waits.
    pub fn thread_fault(&self) -> Option<ThreadFault> {
        self.watchdog.fault()
    }

    /// Watches the media threads, on the caller's thread. Returns a fault when a thread has ended or hangs for good,
    /// and `None` when the SFU has stopped. Calls `on_hang` for a thread that does not respond; without a watch that is
    /// not noticed.
    pub fn watch(&self, on_hang: impl Fn(ThreadFault)) -> Option<ThreadFault> {
        self.watchdog.watch(on_hang)
    }

    /// Ends [`SfuHandle::watch`]. To be called when all threads have stopped.
    pub(super) fn on_stopped(&self) {
        self.watchdog.stop();
    }

    /// The command queue of a participant's thread.
    fn commands(&self, id: ParticipantId) -> &mpsc::Sender<Command> {
        &self.threads[self.room_threads.thread_of(id)].commands
    }

    /// Sends a command to all threads.
    async fn send_to_all(&self, command: impl Fn() -> Command) -> Result<(), SfuClosed> {
        for thread in self.threads.iter() {
            thread.commands.send(command()).await.map_err(|_| SfuClosed)?;
        }
        Ok(())
    }

    /// Sends a command to all threads, and collects their answers.
    async fn ask_all<T>(
        &self,
        command: impl Fn(oneshot::Sender<T>) -> Command,
    ) -> Result<Vec<T>, SfuClosed> {
        let mut answers = Vec::with_capacity(self.threads.len());
        for thread in self.threads.iter() {
            let (answer, answered) = oneshot::channel();
            thread.commands.send(command(answer)).await.map_err(|_| SfuClosed)?;
            answers.push(answered);
        }
        let mut all = Vec::with_capacity(answers.len());
        for answered in answers {
            all.push(answered.await.map_err(|_| SfuClosed)?);
        }
        Ok(all)
    }

    /// Stops the threads. A full queue is tried again, as there may be no runtime to wait in.
    pub(super) fn stop(&self) {
        for thread in self.threads.iter() {
            while let Err(mpsc::error::TrySendError::Full(_)) =
                thread.commands.try_send(Command::Stop)
            {
                std::thread::yield_now();
            }
        }
    }

    /// Adds a participant to a room. A room begins with its first participant.
    ///
    /// # Errors
    ///
    /// Fails if the id is in use, the room or the server is full, the room is new and the SFU takes no new rooms, or it
    /// has stopped.
    pub async fn join(
        &self,
        room: &str,
        id: ParticipantId,
        options: JoinOptions,
    ) -> Result<Joined, JoinError> {
        let (answer, answered) = oneshot::channel();
        let command = Command::Join(room.to_owned(), id, options, answer);
        let reservation = self.room_threads.join(room, id);
        let thread = &self.threads[reservation.thread()];
        thread.commands.send(command).await.map_err(|_| JoinError::Closed)?;
        reservation.confirm();
        answered.await.unwrap_or(Err(JoinError::Closed))
    }

    /// Answers an offer: the complete list of what the participant publishes and subscribes to from now on.
    ///
    /// # Errors
    ///
    /// Fails if the participant has not joined, the description or a list is malformed or asks for what is not
    /// supported, not permitted or beyond the limits, the SFU panics at it, which removes the participant, or it has
    /// stopped.
    pub async fn offer(&self, id: ParticipantId, offer: Offer) -> Result<Answer, OfferError> {
        // Parsing may take milliseconds, so it runs neither on a media thread nor on a runtime's worker.
        let sdp_bytes = self.shared.sdp_bytes;
        let read = move || contained(|| ReadOffer::new(offer, sdp_bytes));
        let read = tokio::task::spawn_blocking(read).await;
        let offer = match read.map_err(|_| OfferError::Closed)? {
            Ok(offer) => offer,
            Err(fault) => {
                let _ = self.commands(id).send(Command::Fault(id, fault)).await;
                return Err(OfferError::Fault);
            }
        };
        let (answer, answered) = oneshot::channel();
        self.commands(id)
            .send(Command::Offer(id, Box::new(offer), answer))
            .await
            .map_err(|_| OfferError::Closed)?;
        let answered = answered.await.unwrap_or(Err(OfferError::Closed))?;
        match contained(|| answered.write()) {
            Ok(answer) => Ok(answer),
            Err(fault) => {
                let _ = self.commands(id).send(Command::Fault(id, fault)).await;
                Err(OfferError::Fault)
            }
        }
    }

    /// Sets the maximum rung that the participant wants of a track. The default is [`Rung::F`].
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn set_max_rung(
        &self,
        id: ParticipantId,
        track: TrackId,
        max: Rung,
    ) -> Result<(), SfuClosed> {
        self.commands(id).send(Command::SetMaxRung(id, track, max)).await.map_err(|_| SfuClosed)
    }

    /// Sets how the participant shows a track, which gives the track's weight and sufficient layer.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn set_view(
        &self,
        id: ParticipantId,
        track: TrackId,
        view: View,
    ) -> Result<(), SfuClosed> {
        self.commands(id).send(Command::SetView(id, track, view)).await.map_err(|_| SfuClosed)
    }

    /// Requests a key anchor of a track, for a participant without earlier anchors. One anchor serves all subscribers,
    /// at a limited rate.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn request_key_anchor(
        &self,
        id: ParticipantId,
        track: TrackId,
    ) -> Result<(), SfuClosed> {
        self.commands(id).send(Command::KeyAnchor(id, track)).await.map_err(|_| SfuClosed)
    }

    /// Takes a publisher's report on its uplink, at most once a second.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn uplink(
        &self,
        id: ParticipantId,
        track: TrackId,
        report: UplinkReport,
    ) -> Result<(), SfuClosed> {
        self.commands(id).send(Command::Uplink(id, track, report)).await.map_err(|_| SfuClosed)
    }

    /// Takes a subscriber's report on a track, at most once a second. Returns what the report says of its anchors,
    /// bounded by what was sent.
    ///
    /// # Errors
    ///
    /// Fails if the participant does not subscribe to the track, has sent a report on it less than a second ago, or the
    /// SFU has stopped.
    pub async fn report(
        &self,
        id: ParticipantId,
        track: TrackId,
        report: TrackReport,
    ) -> Result<TakenReport, ReportError> {
        let (answer, answered) = oneshot::channel();
        let command = Command::Report(id, track, report, answer);
        self.commands(id).send(command).await.map_err(|_| ReportError::Closed)?;
        answered.await.unwrap_or(Err(ReportError::Closed))
    }

    /// Mutes or unmutes a participant's own track. A muted track is not forwarded.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn set_muted(
        &self,
        id: ParticipantId,
        track: TrackId,
        muted: bool,
    ) -> Result<(), SfuClosed> {
        self.commands(id).send(Command::SetMuted(id, track, muted)).await.map_err(|_| SfuClosed)
    }

    /// Sends a message of a participant to others of its room; `None`: to all others. Receivers that are not in the
    /// room are passed over.
    ///
    /// # Errors
    ///
    /// Fails if the participant has not joined, more is sent than the limits allow, or the SFU has stopped.
    pub async fn send_data(
        &self,
        id: ParticipantId,
        to: Option<Vec<ParticipantId>>,
        message: DataMessage,
    ) -> Result<(), DataError> {
        let (answer, answered) = oneshot::channel();
        let command = Command::SendData(id, to, Box::new(message), answer);
        self.commands(id).send(command).await.map_err(|_| DataError::Closed)?;
        answered.await.unwrap_or(Err(DataError::Closed))
    }

    /// Counts a change of a participant's name or attributes as a message to all others. `bytes` is the size of both
    /// after the change. Ask before the others are told.
    ///
    /// # Errors
    ///
    /// Fails if the participant has not joined, more is sent than the limits allow, or the SFU has stopped.
    pub async fn admit_change(&self, id: ParticipantId, bytes: usize) -> Result<(), DataError> {
        let (answer, answered) = oneshot::channel();
        let command = Command::AdmitChange(id, bytes, answer);
        self.commands(id).send(command).await.map_err(|_| DataError::Closed)?;
        answered.await.unwrap_or(Err(DataError::Closed))
    }

    /// Tells the others of a participant's room that its name or attributes have changed.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn participant_changed(&self, id: ParticipantId) -> Result<(), SfuClosed> {
        self.commands(id).send(Command::Changed(id)).await.map_err(|_| SfuClosed)
    }

    /// Sets a participant's permissions. Tracks, subscriptions and anchors that are not permitted any more end at once.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn set_permissions(
        &self,
        id: ParticipantId,
        permissions: Permissions,
    ) -> Result<(), SfuClosed> {
        self.commands(id)
            .send(Command::SetPermissions(id, permissions))
            .await
            .map_err(|_| SfuClosed)
    }

    /// Sets the anchor policy of a room, or of all rooms without their own. `None` removes a room's own policy, or
    /// restores the configured one. False if too many rooms have their own policy.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn set_policy(
        &self,
        room: Option<String>,
        policy: Option<AnchorPolicy>,
    ) -> Result<bool, SfuClosed> {
        let set = self.ask_all(|answer| Command::SetPolicy(room.clone(), policy, answer)).await?;
        Ok(set.into_iter().all(|set| set))
    }

    /// Changes limits and policy.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn tune(&self, tuning: Tuning) -> Result<(), SfuClosed> {
        self.send_to_all(|| Command::Tune(tuning)).await
    }

    /// Refuses new rooms from now on.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn drain(&self) -> Result<(), SfuClosed> {
        self.send_to_all(|| Command::Drain).await
    }

    /// Removes the participant and its tracks.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn leave(&self, id: ParticipantId) -> Result<(), SfuClosed> {
        self.commands(id).send(Command::Leave(id)).await.map_err(|_| SfuClosed)
    }

    /// Begins or ends the recording of a room. Recorded are its tracks that are published here, now and later.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn set_recorded(
        &self,
        room: &str,
        recorded: Option<Recorded>,
    ) -> Result<(), SfuClosed> {
        self.send_to_all(|| Command::SetRecorded(room.to_owned(), recorded.clone())).await
    }

    /// Asks for a key frame of a recorded track. Never waits: a request that finds the queue full is lost.
    pub fn request_recorded_key_frame(&self, track: TrackId) {
        let thread = &self.threads[Shard::of_id(track.0, self.threads.len())];
        let _ = thread.commands.try_send(Command::RecordKeyFrame(track));
    }

    /// Begins a track's rendition for a participant, which may subscribe to it from now on. It ends when the last
    /// participant that asked for it leaves.
    ///
    /// # Errors
    ///
    /// Fails if the participant has not joined or may not have it, nothing or no more can be rendered, or the SFU has
    /// stopped.
    pub async fn render(
        &self,
        viewer: ParticipantId,
        track: TrackId,
    ) -> Result<TrackId, RenditionError> {
        let (answer, answered) = oneshot::channel();
        let command = Command::Render(viewer, track, answer);
        self.commands(viewer).send(command).await.map_err(|_| RenditionError::Closed)?;
        answered.await.unwrap_or(Err(RenditionError::Closed))
    }

    /// Takes an answer of the renderer. Never waits; `false` if the queue is full or the SFU has stopped: the answer is
    /// dropped.
    pub fn push_rendered(&self, rendered: RendererAnswer) -> bool {
        let thread = &self.threads[Shard::of_id(rendered.rendition().0, self.threads.len())];
        thread.relayed.try_send(FromNode::Renderer(rendered)).is_ok()
    }

    /// Sets the other SFUs that a room is on.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn share(&self, room: &str, nodes: &[NodeId]) -> Result<(), SfuClosed> {
        self.send_to_all(|| Command::Share(room.to_owned(), nodes.to_vec())).await
    }

    /// Sets whether there is a link to another SFU. Without one its participants are removed.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn linked(&self, node: NodeId, up: bool) -> Result<(), SfuClosed> {
        self.send_from_node(FromNode::Link(node, up)).await
    }

    /// Takes a message of another SFU about a room. What may be dropped is dropped and counted if the queue is full;
    /// other messages wait for room.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn relayed(
        &self,
        node: NodeId,
        room: &Arc<str>,
        message: Relayed,
    ) -> Result<(), SfuClosed> {
        if message.may_drop() {
            let Some(thread) = self.room_threads.thread_of_room(room) else { return Ok(()) };
            let message = FromNode::Message(node, room.clone(), message);
            return match self.threads[thread].relayed.try_send(message) {
                Ok(()) => Ok(()),
                Err(mpsc::error::TrySendError::Full(_)) => {
                    self.shared.relay_overflows.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }
                Err(mpsc::error::TrySendError::Closed(_)) => Err(SfuClosed),
            };
        }
        // To all threads, as the room's thread may change while the message is on its way.
        self.send_from_node(FromNode::Message(node, room.clone(), message)).await
    }

    /// Sends to all threads by the queue that keeps the order of a node's messages.
    async fn send_from_node(&self, message: FromNode) -> Result<(), SfuClosed> {
        for thread in self.threads.iter() {
            thread.relayed.send(message.clone()).await.map_err(|_| SfuClosed)?;
        }
        Ok(())
    }

    /// Takes an output of the enhancer. Never waits; `false` if the queue is full (dropped and counted) or the SFU has
    /// stopped.
    pub fn push(&self, output: EnhancerOutput) -> bool {
        let stream = u64::from(output.stream().0);
        let thread = &self.threads[Shard::of_id(stream, self.threads.len())];
        match thread.anchors.try_send(output) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.shared.overflows.fetch_add(1, Ordering::Relaxed);
                false
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }

    /// Sets whether an enhancer is available; at the start it is. Without one no enhanced rung is allocated, and no
    /// layer is tapped. Takes effect within a second.
    pub fn set_enhancement(&self, available: bool) {
        self.shared.enhancement.store(available, Ordering::Relaxed);
    }

    /// A snapshot of counts and counters.
    ///
    /// # Errors
    ///
    /// Fails if the SFU has stopped.
    pub async fn stats(&self) -> Result<SfuStats, SfuClosed> {
        let threads = self.ask_all(Command::Stats).await?;
        let mut all = threads.into_iter().fold(SfuStats::default(), SfuStats::plus);
        all.counters.relay_overflows = self.shared.relay_overflows.load(Ordering::Relaxed);
        all.counters.anchors_in_overflows = self.shared.overflows.load(Ordering::Relaxed);
        Ok(all)
    }
}
