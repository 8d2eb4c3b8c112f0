//! The scheduler's thread: collects decoded frames, and every interval hands the chosen ones to the
//! workers. All decisions are [`Scheduler`]'s; here are its clock and its queues.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use windlass_types::{EnhancerOutput, Size, StreamId};
use windlass_vp9::FrameBuffer;

use super::SCHEDULE_QUEUE;
use super::awaited::Awaited;
use super::clock::Clock;
use super::decode::Decoded;
use super::input::Decays;
use super::job::{Finished, Job};
use super::jobs::JobsIn;
use super::tuning::Live;
use crate::stats::{Stats, count};
use crate::tiles::RegionConfig;
use windlass_scheduler::{Candidate, Captured, Chosen, Scheduler, SchedulerConfig};

/// The scheduler with its queues.
pub(super) struct Selector {
    pub config: SchedulerConfig,
    pub live: Live,
    pub regions: RegionConfig,
    pub clock: Clock,
    pub output: Sender<EnhancerOutput>,
    pub frames: Receiver<Decoded>,
    pub finished: Receiver<Finished>,
    pub jobs: JobsIn,
    pub decays: Arc<Decays>,
    pub enabled: Arc<AtomicBool>,
    pub stats: Arc<Stats>,
}

/// State that lives from tick to tick.
struct State {
    scheduler: Scheduler,
    /// Frames that the scheduler holds as candidates, by their ids.
    waiting: HashMap<u64, Decoded>,
    /// Chosen frames that wait for their publisher's picture.
    awaited: Awaited,
    next_id: u64,
    chosen: Vec<Chosen>,
}

impl Selector {
    /// Runs until every decoder and the input are gone.
    pub(super) fn run(self) {
        let mut state = State {
            scheduler: Scheduler::new(self.config.clone()),
            waiting: HashMap::new(),
            awaited: Awaited::default(),
            next_id: 0,
            chosen: Vec::new(),
        };
        let mut next_tick = self.clock.origin() + self.config.interval;
        loop {
            match self.frames.recv_timeout(self.clock.until(next_tick)) {
                Ok(frame) => accept(&mut state, frame, &self.clock),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = self.clock.now();
            if now < next_tick {
                continue;
            }
            // All that are here take part.
            for frame in self.frames.try_iter().take(SCHEDULE_QUEUE) {
                accept(&mut state, frame, &self.clock);
            }
            if catch_unwind(AssertUnwindSafe(|| self.tick(&mut state, now))).is_err() {
                count(&self.stats.counters.panics);
                state.scheduler = Scheduler::new(self.config.clone());
                state.waiting.clear();
                for job in state.awaited.take() {
                    job.frame.anchors.forget(&job.choice);
                }
            }
            // A tick that came late does not make the next one hurry.
            next_tick = (next_tick + self.config.interval).max(now + self.config.interval / 2);
        }
    }

    fn tick(&self, state: &mut State, now: Instant) {
        for Finished { chosen, took, inferred, late, worth } in self.finished.try_iter() {
            state.scheduler.was_late(late);
            if let Some(db) = worth {
                state.scheduler.measured(chosen.stream, db, self.clock.span_to(now));
            }
            if took.is_some() && !late {
                state.scheduler.served(chosen.stream);
            }
            match took {
                Some(took) if !inferred => state.scheduler.finished_without_network(&chosen, took),
                took => state.scheduler.finished(&chosen, took),
            }
        }
        let since_origin = self.clock.span_to(now);
        for ((stream, viewer), decay) in self.decays.lock().drain() {
            state.scheduler.report_decay(stream, viewer, since_origin, decay);
        }
        state.scheduler.retune(|config| self.live.apply(config));
        let tiles = self.live.get().tiles;
        state.chosen.clear();
        state.scheduler.tick(since_origin, &mut state.chosen);
        in_decoding_order(&mut state.chosen);
        let others: HashSet<u64> = state.chosen.iter().map(|chosen| chosen.id).collect();
        for &chosen in &state.chosen {
            let frame = state.waiting.remove(&chosen.id);
            let frame = frame.filter(|_| self.enabled.load(Ordering::Relaxed));
            let Some(frame) = frame else {
                count(&self.stats.counters.dropped_infer_queue);
                state.scheduler.finished(&chosen, None);
                continue;
            };
            let (frame, captured) = captured(frame, &mut state.waiting, &others);
            let choice = frame.anchors.choose(&frame.energy, since_origin, &tiles);
            let Some(choice) = choice else {
                count(&self.stats.counters.unchanged);
                state.scheduler.finished(&chosen, None);
                continue;
            };
            state.awaited.push(Job { frame, chosen, chosen_at: now, choice, captured });
        }
        for job in state.awaited.release(now, self.config.interval) {
            // Its publisher's picture did not come after all.
            let chosen = job.chosen;
            if job.captured.is_none()
                && !chosen.probe
                && state.scheduler.runs_no_network(chosen.stream)
            {
                job.frame.anchors.forget(&job.choice);
                count(&self.stats.counters.worthless);
                state.scheduler.finished(&chosen, None);
                continue;
            }
            if let Some(refused) = self.jobs.push(job) {
                refused.frame.anchors.forget(&refused.choice);
                count(&self.stats.counters.dropped_infer_queue);
                state.scheduler.finished(&refused.chosen, None);
            }
        }
        self.notify_refusals(&mut state.scheduler);
        self.ask_for_regions(state, since_origin);
        // Whatever was decided and not chosen is never looked at again.
        let State { scheduler, waiting, .. } = &mut *state;
        waiting.retain(|&id, frame| scheduler.holds(frame.stream, id));
        *self.stats.scheduler.lock() = state.scheduler.counters();
        let wanted = state.scheduler.devices_wanted().into();
        self.stats.devices_wanted.store(wanted, Ordering::Relaxed);
        self.stats.held_back.store(state.scheduler.held_back() as u64, Ordering::Relaxed);
        *self.stats.worth_db.lock() = state.scheduler.worth_db();
        let demand_us = (state.scheduler.demand() * 1e6) as u64;
        self.stats.compute_demand_us.store(demand_us, Ordering::Relaxed);
        let assigned = state.scheduler.assigned();
        for (network, &streams) in self.stats.networks.lock().iter_mut().zip(assigned) {
            network.streams = streams;
        }
    }
}

impl Selector {
    /// Tells the SFU which streams are refused enhancement, and why.
    fn notify_refusals(&self, scheduler: &mut Scheduler) {
        for (stream, reason) in scheduler.take_refusals() {
            let refused = EnhancerOutput::Refused { stream, reason };
            if self.output.try_send(refused).is_err() {
                count(&self.stats.counters.dropped_output_queue);
            }
        }
        let promised = scheduler.promised();
        self.stats.promised.store(promised.kept as u64, Ordering::Relaxed);
        self.stats.refused.store(promised.refused as u64, Ordering::Relaxed);
    }

    /// Asks publishers for tiles of their next frames that subscribers lack most.
    fn ask_for_regions(&self, state: &State, now: Duration) {
        let mut newest: HashMap<StreamId, &Decoded> = HashMap::new();
        for frame in state.waiting.values() {
            if frame.captures.regions.load(Ordering::Relaxed) {
                let known = newest.entry(frame.stream).or_insert(frame);
                if frame.arrival > known.arrival {
                    *known = frame;
                }
            }
        }
        for (&stream, frame) in &newest {
            let size = size(&frame.picture);
            let lost = || frame.twin.lost(frame.rtp_timestamp);
            let request = frame.anchors.regions(size, now, &self.regions, lost);
            let Some(request) = request else { continue };
            let (tiles, bytes) = (request.tiles.to_bytes().into(), request.bytes);
            let wanted = EnhancerOutput::WantRegions { stream, size, tiles, bytes };
            match self.output.try_send(wanted) {
                Ok(()) => count(&self.stats.counters.region_requests),
                Err(_) => count(&self.stats.counters.dropped_output_queue),
            }
        }
    }
}

/// Puts the frames of each stream in decoding order, at the places that the stream has among all frames: the residual
/// of tiles only grows.
fn in_decoding_order(chosen: &mut [Chosen]) {
    let mut places: Vec<usize> = (0..chosen.len()).collect();
    places.sort_by_key(|&at| (chosen[at].stream, at));
    let mut sorted = chosen.to_vec();
    sorted.sort_by_key(|chosen| (chosen.stream, chosen.id));
    for (at, frame) in places.into_iter().zip(sorted) {
        chosen[at] = frame;
    }
}

/// The chosen frame with the publisher's own picture of it. If that is not here, the newest frame of the same stream
/// and interval that has one: the picture counts more than which of two neighbours it is.
fn captured(
    chosen: Decoded,
    waiting: &mut HashMap<u64, Decoded>,
    chosen_too: &HashSet<u64>,
) -> (Decoded, Option<Arc<FrameBuffer>>) {
    if let Some(picture) = chosen.captures.get(chosen.rtp_timestamp) {
        return (chosen, Some(picture));
    }
    let span = |frame: &Decoded| (frame.stream, frame.epoch, frame.twin.scale());
    let of_stream = |frame: &Decoded| span(frame) == span(&chosen);
    let has = |frame: &Decoded| frame.captures.get(frame.rtp_timestamp).is_some();
    let newest = waiting
        .iter()
        .filter(|(id, frame)| of_stream(frame) && has(frame) && !chosen_too.contains(id))
        .max_by_key(|(_, frame)| frame.arrival)
        .map(|(&id, _)| id);
    let Some(other) = newest.and_then(|id| waiting.remove(&id)) else { return (chosen, None) };
    let picture = other.captures.get(other.rtp_timestamp);
    (other, picture)
}

fn accept(state: &mut State, frame: Decoded, clock: &Clock) {
    let id = state.next_id;
    state.next_id += 1;
    let arrival = clock.span_to(frame.arrival);
    state.scheduler.set_policy(frame.stream, frame.policy, arrival);
    state.scheduler.set_owner(frame.stream, frame.owner);
    let (at, now) = (frame.rtp_timestamp, clock.now());
    let captured = if frame.captures.get(at).is_some() || frame.captures.comes(at, now) {
        Captured::Pictures
    } else if frame.captures.regions.load(Ordering::Relaxed) {
        Captured::Stills
    } else {
        Captured::No
    };
    state.scheduler.set_captured(frame.stream, captured);
    let evicted = state.scheduler.push(Candidate {
        id,
        stream: frame.stream,
        tier: frame.tier,
        bytes: frame.bytes,
        size: size(&frame.picture),
        arrival,
        per_mille: frame.anchors.limits().per_mille,
        scale: frame.twin.scale(),
        max_scale: frame.max_scale,
    });
    if let Some(scale) = state.scheduler.scale(frame.stream) {
        frame.wanted_scale.store(scale, Ordering::Relaxed);
    }
    if let Some(evicted) = evicted {
        state.waiting.remove(&evicted.id);
    }
    state.waiting.insert(id, frame);
}

/// Size of a picture. Decoders give none that is too large for the type.
fn size(picture: &FrameBuffer) -> Size {
    Size::saturating(picture.width(), picture.height())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_stream_are_in_decoding_order_and_streams_where_they_were() {
        let chosen = |stream, id| Chosen {
            id,
            stream: StreamId(stream),
            size: Size::new(2, 2),
            network: 0,
            cost: Duration::ZERO,
            deadline: Duration::ZERO,
            probe: false,
        };
        let mut all = [chosen(2, 9), chosen(1, 5), chosen(2, 4), chosen(3, 1), chosen(2, 6)];
        in_decoding_order(&mut all);
        assert_eq!(all, [chosen(2, 4), chosen(1, 5), chosen(2, 6), chosen(3, 1), chosen(2, 9)]);
    }
}
