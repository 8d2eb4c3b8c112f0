//! The handle through which everybody else talks to the SFU's threads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use windlass_types::{AnchorPolicy, EnhancerOutput, Rung};

use super::places::Places;
use super::vitals::{Ill, Vitals};
use super::{Command, Shared};
use crate::api::{
    AnchorReport, Answer, JoinError, JoinOptions, Joined, May, Offer, OfferError, ParticipantId,
    ReportError, SfuClosed, TakenReport, TrackId, UplinkReport,
};
use crate::config::Tuning;
use crate::core::{ReadOffer, Shard, View, contained};
use crate::latency::Latencies;
use crate::relay::{FromNode, NodeId, Relayed};
use crate::stats::SfuStats;

/// Talks to the SFU from anywhere.
#[derive(Debug, Clone)]
pub struct SfuHandle {
    threads: Arc<[Way]>,
    places: Arc<Places>,
    shared: Arc<Shared>,
    vitals: Arc<Vitals>,
}

/// What leads to one of the threads.
#[derive(Debug)]
pub(super) struct Way {
    /// Callers wait for room.
    pub(super) commands: mpsc::Sender<Command>,
    /// Dropped and counted when full.
    pub(super) anchors: mpsc::Sender<EnhancerOutput>,
    /// Media is dropped and counted when full; for the rest callers wait.
    pub(super) relayed: mpsc::Sender<FromNode>,
}

impl SfuHandle {
    pub(super) fn new(
        threads: Vec<Way>,
        places: Arc<Places>,
        shared: Arc<Shared>,
        vitals: Arc<Vitals>,
    ) -> SfuHandle {
        SfuHandle { threads: threads.into(), places, shared, vitals }
    }

    /// What is wrong with the SFU's threads: one that has ended, or says nothing any more. Never waits.
    pub fn ill(&self) -> Option<Ill> {
        self.vitals.ill()
    }

    /// Watches the threads, on a thread of the caller's: gives what is wrong as soon as one has ended or does not come back, and nothing
    /// when the SFU has stopped as it was told. Without it nobody notices that one says nothing any more, of which `told` hears.
    pub fn watch(&self, told: impl Fn(Ill)) -> Option<Ill> {
        self.vitals.watch(told)
    }

    /// All threads have ended as they were told.
    pub(super) fn ended(&self) {
        self.vitals.stop();
    }

    /// The thread at which a participant is.
    fn at(&self, id: ParticipantId) -> &mpsc::Sender<Command> {
        &self.threads[self.places.of(id)].commands
    }

    /// Says something to all threads.
    async fn to_all(&self, command: impl Fn() -> Command) -> Result<(), SfuClosed> {
        for thread in self.threads.iter() {
            thread.commands.send(command()).await.map_err(|_| SfuClosed)?;
        }
        Ok(())
    }

    /// Asks all threads something.
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

    /// Ends the threads. A full queue is being emptied by its thread: it is tried again rather than waited for without a runtime.
    pub(super) fn stop(&self) {
        for thread in self.threads.iter() {
            while let Err(mpsc::error::TrySendError::Full(_)) =
                thread.commands.try_send(Command::Stop)
            {
                std::thread::yield_now();
            }
        }
    }

    /// Lets a participant into a room, which begins with its first participant.
    pub async fn join(
        &self,
        room: &str,
        id: ParticipantId,
        options: JoinOptions,
    ) -> Result<Joined, JoinError> {
        let (answer, answered) = oneshot::channel();
        let command = Command::Join(room.to_owned(), id, options, answer);
        let joining = self.places.join(room, id);
        let thread = &self.threads[joining.thread()];
        thread.commands.send(command).await.map_err(|_| JoinError::Closed)?;
        joining.begun();
        answered.await.unwrap_or(Err(JoinError::Closed))
    }

    /// Answers an offer: the complete list of what the participant publishes and subscribes to from now on.
    pub async fn offer(&self, id: ParticipantId, offer: Offer) -> Result<Answer, OfferError> {
        // Milliseconds where the description is long, so neither on a thread that forwards nor on one that has sockets.
        let sdp_bytes = self.shared.sdp_bytes;
        let read = move || contained(|| ReadOffer::new(offer, sdp_bytes));
        let read = tokio::task::spawn_blocking(read).await;
        let offer = match read.map_err(|_| OfferError::Closed)? {
            Ok(offer) => offer,
            Err(fault) => {
                let _ = self.at(id).send(Command::Faulted(id, fault)).await;
                return Err(OfferError::Fault);
            }
        };
        let (answer, answered) = oneshot::channel();
        self.at(id)
            .send(Command::Offer(id, Box::new(offer), answer))
            .await
            .map_err(|_| OfferError::Closed)?;
        let answered = answered.await.unwrap_or(Err(OfferError::Closed))?;
        match contained(|| answered.write()) {
            Ok(answer) => Ok(answer),
            Err(fault) => {
                let _ = self.at(id).send(Command::Faulted(id, fault)).await;
                Err(OfferError::Fault)
            }
        }
    }

    /// Sets the best rung that the participant wants of a track. The default is [`Rung::F`].
    pub async fn set_max_rung(
        &self,
        id: ParticipantId,
        track: TrackId,
        max: Rung,
    ) -> Result<(), SfuClosed> {
        self.at(id).send(Command::SetMaxRung(id, track, max)).await.map_err(|_| SfuClosed)
    }

    /// Says how the participant shows a track: what is enough for it, and how much it matters beside others.
    pub async fn set_view(
        &self,
        id: ParticipantId,
        track: TrackId,
        view: View,
    ) -> Result<(), SfuClosed> {
        self.at(id).send(Command::SetView(id, track, view)).await.map_err(|_| SfuClosed)
    }

    /// The participant has none of the anchors of a source that those of a track are added to: asks for one that rests on no other.
    /// One for all who ask, and not too often.
    pub async fn want_whole_anchor(
        &self,
        id: ParticipantId,
        track: TrackId,
    ) -> Result<(), SfuClosed> {
        self.at(id).send(Command::WholeAnchor(id, track)).await.map_err(|_| SfuClosed)
    }

    /// Takes what a publisher's browser says of its uplink, once a second at most.
    pub async fn uplink(
        &self,
        id: ParticipantId,
        track: TrackId,
        report: UplinkReport,
    ) -> Result<(), SfuClosed> {
        self.at(id).send(Command::Uplink(id, track, report)).await.map_err(|_| SfuClosed)
    }

    /// Takes what somebody who watches a track says of its anchors, and by how much its picture got worse with each of so many
    /// frames after one, in mean square grey levels of luma; once a second at most. Answers with what of it can be true.
    pub async fn report(
        &self,
        id: ParticipantId,
        track: TrackId,
        said: AnchorReport,
        decay: Option<(f64, f64)>,
    ) -> Result<TakenReport, ReportError> {
        let (answer, answered) = oneshot::channel();
        let command = Command::Report(id, track, said, decay, answer);
        self.at(id).send(command).await.map_err(|_| ReportError::Closed)?;
        answered.await.unwrap_or(Err(ReportError::Closed))
    }

    /// Tells the room that the participant muted or unmuted its own track; nothing of a muted track is forwarded.
    pub async fn set_muted(
        &self,
        id: ParticipantId,
        track: TrackId,
        muted: bool,
    ) -> Result<(), SfuClosed> {
        self.at(id).send(Command::SetMuted(id, track, muted)).await.map_err(|_| SfuClosed)
    }

    /// What the participant may do from now on; what it does and may not any more ends at once.
    pub async fn restrict(&self, id: ParticipantId, may: May) -> Result<(), SfuClosed> {
        self.at(id).send(Command::Restrict(id, may)).await.map_err(|_| SfuClosed)
    }

    /// Chooses anchors by another policy from now on, in a room, or in all rooms without one of their own; `None` takes a room's own
    /// policy back. False where too many rooms have one.
    pub async fn set_policy(
        &self,
        room: Option<String>,
        policy: Option<AnchorPolicy>,
    ) -> Result<bool, SfuClosed> {
        let set = self.ask_all(|answer| Command::SetPolicy(room.clone(), policy, answer)).await?;
        Ok(set.into_iter().all(|set| set))
    }

    /// Works by other bounds from now on.
    pub async fn tune(&self, tuning: Tuning) -> Result<(), SfuClosed> {
        self.to_all(|| Command::Tune(tuning)).await
    }

    /// Takes no new rooms from now on.
    pub async fn drain(&self) -> Result<(), SfuClosed> {
        self.to_all(|| Command::Drain).await
    }

    /// Removes the participant and its tracks.
    pub async fn leave(&self, id: ParticipantId) -> Result<(), SfuClosed> {
        self.at(id).send(Command::Leave(id)).await.map_err(|_| SfuClosed)
    }

    /// A room is on these other SFUs too, or on none.
    pub async fn share(&self, room: &str, nodes: &[NodeId]) -> Result<(), SfuClosed> {
        self.to_all(|| Command::Share(room.to_owned(), nodes.to_vec())).await
    }

    /// There is a way to another SFU now, or none any more: then its participants are gone.
    pub async fn linked(&self, node: NodeId, up: bool) -> Result<(), SfuClosed> {
        self.to_all_of_node(FromNode::Linked(node, up)).await
    }

    /// Takes what another SFU says of a room. Media for which there is no room is dropped and counted; the rest is waited for.
    pub async fn relayed(
        &self,
        node: NodeId,
        room: &Arc<str>,
        message: Relayed,
    ) -> Result<(), SfuClosed> {
        if message.is_media() {
            let Some(thread) = self.places.of_room(room) else { return Ok(()) };
            let said = FromNode::Said(node, room.clone(), message);
            return match self.threads[thread].relayed.try_send(said) {
                Ok(()) => Ok(()),
                Err(mpsc::error::TrySendError::Full(_)) => {
                    self.shared.relay_overflows.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }
                Err(mpsc::error::TrySendError::Closed(_)) => Err(SfuClosed),
            };
        }
        // Whether there is such a room may change while it is under way: its thread knows.
        self.to_all_of_node(FromNode::Said(node, room.clone(), message)).await
    }

    /// By the queue that keeps their order.
    async fn to_all_of_node(&self, said: FromNode) -> Result<(), SfuClosed> {
        for thread in self.threads.iter() {
            thread.relayed.send(said.clone()).await.map_err(|_| SfuClosed)?;
        }
        Ok(())
    }

    /// Takes what the enhancer made. Never waits; `false` when the queue is full (dropped and counted) or the SFU
    /// has stopped.
    pub fn push(&self, output: EnhancerOutput) -> bool {
        let stream = u64::from(output.stream().0);
        let thread = &self.threads[Shard::of_number(stream, self.threads.len())];
        match thread.anchors.try_send(output) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.shared.overflows.fetch_add(1, Ordering::Relaxed);
                false
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }

    /// Says whether there is an enhancer that works, which is taken for granted at the start. While there is none,
    /// nobody is given an enhanced rung and no layer is tapped. Takes effect within a fraction of a second.
    pub fn set_enhancement(&self, works: bool) {
        self.shared.enhancement.store(works, Ordering::Relaxed);
    }

    /// A snapshot of what there is and what has been counted.
    pub async fn stats(&self) -> Result<SfuStats, SfuClosed> {
        let mut forwarding = Latencies::new(Instant::now());
        let mut all = SfuStats::default();
        for (stats, latencies) in self.ask_all(Command::Stats).await? {
            forwarding.add(&latencies);
            all = all.plus(stats);
        }
        all.forwarding = forwarding.percentiles();
        all.counters.relay_overflows = self.shared.relay_overflows.load(Ordering::Relaxed);
        all.counters.anchors_in_overflows = self.shared.overflows.load(Ordering::Relaxed);
        Ok(all)
    }
}
