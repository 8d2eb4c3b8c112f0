//! The inference workers: a chosen frame in, a coded anchor out.
//!
//! What is past its deadline is dropped before inference, before it is coded ([`Slots`]), and again before it is handed over.
//! A panic of the engine costs its frame: the worker goes on with a new engine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use crossbeam_channel::Sender;
use windlass_hybrid::anchor::codec::detail_of;
use windlass_hybrid::anchor::colour;
use windlass_hybrid::anchor::prior::Prior;
use windlass_hybrid::resample::Samples;
use windlass_hybrid::simd::Isa;
use windlass_hybrid::vp9::FrameBuffer;
use windlass_hybrid::{Detail, Plane};
use windlass_types::message::HTJ2K;
use windlass_types::tiles::{TILE, TileMap};
use windlass_types::{Anchor, AnchorSource, EnhancerOutput, StageTimes};

use super::Network;
use super::anchors::{CodeError, OnProcessor, Stills, arrived, code, send_still};
use super::jobs::Jobs;
use super::learn::{Desk, equip, of};
use super::on_card::{OnCard, Stay, Unfit};
use super::select::{Finished, Job, within};
use super::slots::{Slots, Stage};
use super::stills::OnGpu;
use super::tuning::Live;
use crate::engine::cuda::coder::SharedCoder;
use crate::engine::{Engine, InferError, Inputs, Residual, infer_tiles, infer_tiles_fused};
use crate::stats::{Stats, count};
use crate::tiles::energy_by_tile;
use windlass_scheduler::worth::{AGAIN_DB, Belief, Change};

/// Of all networks.
pub(super) const MOST_SCALE: usize = *windlass_types::SCALES.end();
/// Greatest payload of an anchor in bytes: what the messages to the browser can carry.
const MAX_PAYLOAD: usize = 1 << 20;

/// How a job went.
#[derive(Default)]
struct Run {
    /// How long it waited for a slot.
    waited: Duration,
    /// It was given up because it was late.
    late: bool,
    /// What inference took of an accelerator that workers share: not this worker's time, but all that it costs others.
    charged: Option<Duration>,
    /// What its enhanced anchor is worth, in dB.
    worth: Option<f64>,
    /// Whether its picture may stay on the GPU; not any more once it could not be measured or coded there.
    stays: bool,
}

/// What was made of a frame.
enum Made {
    Here(Detail),
    /// It stays on the GPU that super-resolved it.
    There(OnCard),
}

/// One worker and its queues.
pub(super) struct Worker {
    pub jobs: Arc<Jobs>,
    pub finished: Sender<Finished>,
    pub output: Sender<EnhancerOutput>,
    pub enabled: Arc<AtomicBool>,
    /// What codes anchors of networks that run on the GPU.
    pub gpu: Option<Arc<SharedCoder>>,
    pub stats: Arc<Stats>,
    pub slots: Arc<Slots>,
    pub networks: Vec<Network>,
    /// Most anchors by frame, for the policy that chooses by what inference gave, and the anchors' quality.
    pub live: Live,
    /// Where lessons go, if networks learn.
    pub desk: Option<Desk>,
}

impl Worker {
    /// Runs until the scheduler is gone.
    pub fn run(self) {
        let mut engines: Vec<Option<Box<dyn Engine>>> =
            self.networks.iter().map(|_| None).collect();
        let mut residual = Residual::default();
        let mut priors: [Option<Prior>; MOST_SCALE + 1] = [const { None }; MOST_SCALE + 1];
        let (mut last, mut stay) = (None, Stay::default());
        while let Some((shape, job)) = self.jobs.take(last) {
            let chosen = job.chosen;
            let started = Instant::now();
            let stays = stay.is_tried();
            let (mut panicked, mut run) = (false, Run { stays, ..Run::default() });
            let live = self.enabled.load(Ordering::Relaxed)
                && started.saturating_duration_since(job.frame.arrival) + chosen.cost
                    <= job.within();
            if !live {
                job.frame.anchors.forget(&job.choice);
                count(&self.stats.counters.late_infer);
                run.late = true;
            } else if catch_unwind(AssertUnwindSafe(|| {
                let (engine, network) =
                    (&mut engines[chosen.network], &self.networks[chosen.network]);
                let engine = engine.get_or_insert_with(|| (network.engines)());
                let scale = engine.scale();
                let prior = &mut priors[scale.min(MOST_SCALE)];
                let prior = prior.get_or_insert_with(|| Prior::new(Isa::detect(), scale));
                if !self.enhance(&job, engine.as_mut(), prior, &mut residual, &mut run) {
                    job.frame.anchors.forget(&job.choice);
                }
            }))
            .is_err()
            {
                job.frame.anchors.forget(&job.choice);
                count(&self.stats.counters.panics);
                engines[chosen.network] = None;
                panicked = true;
            }
            if stays && !run.stays {
                stay.failed();
            }
            // What a panic takes, its report above all, says nothing about inference.
            // Waiting for a slot is no work of an accelerator.
            let took = (live && !panicked).then(|| started.elapsed().saturating_sub(run.waited));
            let inferred = job.captured.is_none();
            if let Some(took) = took {
                self.jobs.done(shape, last, took);
            }
            let took = took.map(|took| run.charged.unwrap_or(took));
            if let Some(took) = took {
                self.stats.compute.record(took);
            }
            last = Some(shape);
            let Run { late, worth, .. } = run;
            if self.finished.send(Finished { chosen, took, inferred, late, worth }).is_err() {
                return;
            }
        }
    }

    /// Makes the anchor of a job; whether it went out.
    fn enhance(
        &self,
        job: &Job,
        engine: &mut dyn Engine,
        prior: &mut Prior,
        residual: &mut Residual,
        run: &mut Run,
    ) -> bool {
        let counters = &self.stats.counters;
        let frame = &job.frame;
        let scale = engine.scale();
        let low = Samples::from(&frame.picture.planes()[0]);
        let captured = job.captured.as_ref().map(|high| Samples::from(&high.planes()[0]));
        // A picture of another size is of another time: the publisher is changing its layers.
        let captured = captured.and_then(|high| detail_of(high, low, scale).ok());
        let source =
            if captured.is_some() { AnchorSource::Captured } else { AnchorSource::Enhanced };
        let within = within(job.chosen.deadline, captured.is_some());
        let deadline = frame.arrival + within.min(Duration::from_secs(3_600));
        let (asked, key) = (Instant::now(), u64::from(frame.stream.0));
        // Where it runs on the processor, inference is one of its stages (ZARN §3.2), and the coding that follows a part of it.
        let mut slot = None;
        if captured.is_none() && engine.on_processor() {
            let work = (job.choice.tiles.count() as u64, job.chosen.cost);
            slot = self.slots.take_for(Stage::Infer, work, deadline, key);
            run.waited = asked.elapsed();
            if slot.is_none() {
                run.late = true;
                count(&counters.late_infer);
                return false;
            }
        }
        let mut choice = job.choice.clone();
        let network = &self.networks[job.chosen.network];
        let mut learned = false;
        // What an anchor is worth is measured of this detail, and what is known without it.
        let mut to_weigh: Option<(Detail, Detail)> = None;
        let gpu = self.gpu.as_deref().filter(|_| !engine.on_processor());
        let made = if let Some(detail) = captured {
            if let Some(desk) = &self.desk {
                desk.hand_in(job, network);
            }
            // The workers' time is not what accelerators are short of.
            run.charged = engine.accelerators().map(|_| Duration::ZERO);
            Ok(Made::Here(detail))
        } else {
            let start = frame.twin.start(frame.rtp_timestamp).map(Arc::new);
            let Some(start) = start else {
                // Subscribers have forgotten it as well.
                count(&counters.late_infer);
                return false;
            };
            engine.take_time();
            let made = equip(engine, network, job).and_then(|own| {
                learned = own;
                if let Some(gpu) = gpu.filter(|_| run.stays) {
                    match OnCard::infer(gpu, engine, low, &start) {
                        Ok(Some(there)) => return Ok(Made::There(there)),
                        Ok(None) => {}
                        Err(Unfit) => run.stays = false,
                    }
                }
                infer(&frame.picture, &start, &choice.tiles, engine, residual).map(Made::Here)
            });
            // Also what it took before it had to come back.
            let took = engine.take_time();
            run.charged = took.map(|took| took + run.charged.unwrap_or_default());
            let known = match &made {
                Ok(Made::Here(_)) => detail_of(Samples::from(&*start), low, scale).ok(),
                _ => None,
            };
            if job.chosen.probe {
                count(&counters.probes);
                // It is weighed whether or not that is due, and the next not before long.
                frame.twin.weighs(frame.rtp_timestamp);
                run.weigh(job, made.as_ref().ok(), known.as_ref(), low);
                if run.worth.is_none_or(|db| db < AGAIN_DB) {
                    count(&counters.worthless);
                    return false;
                }
            }
            let worthwhile = match &made {
                // Whoever lost an anchor needs the next: what they have by anchors is not looked at.
                _ if choice.whole => None,
                Ok(Made::Here(detail)) => {
                    let known = known.as_ref();
                    known.map(|known| frame.twin.worthwhile(detail, known, &choice.tiles))
                }
                Ok(Made::There(there)) => {
                    let differences = there.by_tile(&choice.tiles, |tile| tile.new);
                    Some(frame.twin.worthwhile_by(&differences, &choice.tiles))
                }
                Err(_) => None,
            };
            if let Some(tiles) = worthwhile {
                choice.tiles = tiles;
                let left_out = job.choice.tiles.count() - choice.tiles.count();
                counters.tiles_known.fetch_add(left_out as u64, Ordering::Relaxed);
                if choice.tiles.count() == 0 {
                    count(&counters.known);
                    drop(slot);
                    if !job.chosen.probe && frame.twin.weighs(frame.rtp_timestamp) {
                        run.weigh(job, made.as_ref().ok(), known.as_ref(), low);
                    }
                    return true;
                }
            }
            // Pictures are painted for that, for which there is time when the anchor has left.
            if !job.chosen.probe && frame.twin.weighs(frame.rtp_timestamp) {
                match &made {
                    Ok(Made::Here(detail)) => to_weigh = known.map(|known| (detail.clone(), known)),
                    there => run.weigh(job, there.as_ref().ok(), None, low),
                }
            }
            made
        };
        let made = match made {
            Ok(made) => made,
            Err(error) => {
                tracing::debug!(stream = frame.stream.0, %error, "picture refused");
                count(&counters.infer_errors);
                return false;
            }
        };
        let inferred = Instant::now();
        if source == AnchorSource::Enhanced && frame.captures.regions.load(Ordering::Relaxed) {
            let energies = match &made {
                Made::Here(detail) => energy_by_tile(detail, &choice.tiles, scale).collect(),
                Made::There(there) => there.by_tile(&choice.tiles, |tile| tile.all),
            };
            frame.anchors.note_uncertainty(&choice.tiles, energies.into_iter());
        }
        let samples = (choice.tiles.count() * TILE * TILE * scale * scale) as u64;
        // Only the processor codes colour.
        let colour = match &job.captured {
            Some(high) if source == AnchorSource::Captured => {
                let [_, u, v] = high.samples();
                Some(colour::image([u, v], frame.picture.samples(), &choice.tiles, scale))
            }
            _ => None,
        };
        let mut on_gpu = gpu.filter(|_| colour.is_none()).map(|coder| OnGpu {
            coder,
            slots: &self.slots,
            work: (samples, deadline, key),
            counters,
            waited: Duration::ZERO,
        });
        // What the GPU codes takes nothing of the processor.
        if slot.is_none() && on_gpu.is_none() {
            let asked = Instant::now();
            slot = self.slots.take(Stage::Encode, samples, deadline, key);
            run.waited += asked.elapsed();
            if slot.is_none() {
                run.late = true;
                count(&counters.late_encode);
                return false;
            }
        }
        let quality = self.live.get().anchor_quality;
        // To search for what fits takes several codings, for which pictures of the publisher's own have the time.
        let most_bytes = match source {
            AnchorSource::Captured => frame.anchors.most_bytes(Instant::now()),
            AnchorSource::Enhanced => frame.anchors.limits().bytes,
        };
        let (width, height) = match &made {
            Made::Here(detail) => (detail.width(), detail.height()),
            Made::There(there) => there.size(),
        };
        let side = |v: usize| u16::try_from(v).unwrap_or(u16::MAX);
        let mut departed = None;
        let mut send = |payload: Vec<u8>, tiled: bool, wanted: Option<&Detail>| {
            let encoded = Instant::now();
            let age = encoded.saturating_duration_since(frame.arrival);
            if age > within || !self.enabled.load(Ordering::Relaxed) {
                run.late = true;
                count(&counters.late_encode);
                return false;
            }
            if payload.len() > MAX_PAYLOAD {
                count(&counters.encode_errors);
                return false;
            }
            let times = StageTimes {
                decode: frame.ready_at.saturating_duration_since(frame.arrival),
                schedule: job.chosen_at.saturating_duration_since(frame.ready_at),
                infer: inferred.saturating_duration_since(job.chosen_at),
                encode: encoded.saturating_duration_since(inferred),
            };
            let bytes = payload.len() as u64;
            let anchor = Anchor {
                stream: frame.stream,
                epoch: frame.epoch,
                rtp_timestamp: frame.rtp_timestamp,
                arrival: frame.arrival,
                source,
                codec: HTJ2K,
                tiled,
                width: side(width),
                height: side(height),
                beyond_prior: true,
                payload: Bytes::from(payload),
                times,
            };
            let sent = self.output.try_send(EnhancerOutput::Anchor(anchor.clone()));
            if sent.is_err() {
                count(&counters.dropped_anchors);
                return false;
            }
            self.stats.schedule.record(times.schedule);
            self.stats.infer.record(times.infer);
            self.stats.encode.record(times.encode);
            self.stats.total.record(age);
            frame.anchors.took(bytes as usize);
            count(&counters.anchors);
            let captured = u64::from(source == AnchorSource::Captured);
            if source == AnchorSource::Enhanced
                && let Some(network) = self.stats.networks.lock().get_mut(job.chosen.network)
            {
                network.anchors += 1;
            }
            counters.captured_anchors.fetch_add(captured, Ordering::Relaxed);
            counters.learned_anchors.fetch_add(u64::from(learned), Ordering::Relaxed);
            counters.whole_anchors.fetch_add(u64::from(job.choice.whole), Ordering::Relaxed);
            counters.anchor_bytes.fetch_add(bytes, Ordering::Relaxed);
            departed = Some((arrived(&anchor), wanted.cloned()));
            true
        };
        let sent = match made {
            Made::There(there) => {
                let wants_detail = frame.twin.measures();
                let how = (quality, most_bytes);
                let coded = gpu.and_then(|gpu| there.code(gpu, &choice.tiles, how, wants_detail));
                let Some(coded) = coded else {
                    // Once more, by way of the processor.
                    run.stays = false;
                    return self.enhance(job, engine, prior, residual, run);
                };
                coded.map(|(code, wanted)| {
                    count(&counters.gpu_coded);
                    count(&counters.gpu_held);
                    let send = |payload, tiled| send(payload, tiled, wanted.as_ref());
                    send_still(&choice.tiles, code, send)
                })
            }
            Made::Here(mut detail) => {
                prior.take_out(low, &mut detail);
                let wanted = frame.twin.measures().then(|| detail.clone());
                let mut on_processor = OnProcessor;
                let stills: &mut dyn Stills = match &mut on_gpu {
                    Some(on_gpu) => on_gpu,
                    None => &mut on_processor,
                };
                let send = |payload, tiled| send(payload, tiled, wanted.as_ref());
                let how = (quality, most_bytes);
                code(how, (detail, colour), &choice.tiles, scale, stills, send)
            }
        };
        run.waited += on_gpu.map_or(Duration::ZERO, |on_gpu| on_gpu.waited);
        drop(slot);
        if let Some((anchor, wanted)) = departed {
            // Before the twin has it: what it changes.
            if let Some((detail, known)) = to_weigh {
                run.weigh(job, Some(&Made::Here(detail)), Some(&known), low);
            }
            frame.twin.sent(&anchor, wanted.as_ref());
        }
        sent.unwrap_or_else(|error| {
            tracing::debug!(stream = frame.stream.0, %error, "anchor not coded");
            match error {
                CodeError::Failed => count(&counters.encode_errors),
                CodeError::Late => {
                    run.late = true;
                    count(&counters.late_encode);
                }
            }
            false
        })
    }
}

impl Run {
    /// Measures what the enhanced anchor of a job is worth; `known`: the detail that viewers see of the frame without enhanced anchors. That is
    /// no part of what inference costs.
    fn weigh(&mut self, job: &Job, made: Option<&Made>, known: Option<&Detail>, low: Samples<'_>) {
        let started = Instant::now();
        self.worth = made.and_then(|made| weigh(job, made, known, low));
        self.waited += started.elapsed();
    }
}

/// What the enhanced anchor of a job is worth, in dB.
fn weigh(job: &Job, made: &Made, known: Option<&Detail>, low: Samples<'_>) -> Option<f64> {
    let (frame, tiles) = (&job.frame, &job.choice.tiles);
    let change = match made {
        Made::Here(detail) => {
            frame.twin.change(frame.rtp_timestamp, low, (detail, known?), tiles)?
        }
        // What was carried there is not on the card.
        Made::There(there) => {
            let whole = TileMap::full(low.width, low.height).count().max(1) as f64;
            let differences = there.by_tile(tiles, |tile| tile.new);
            let new = differences.iter().map(|(_, e)| e).sum::<f64>() / whole;
            Change { new, old: None }
        }
    };
    let worth = |belief: &mut Belief| (belief.own_db(change.new), belief.mean_db(&change));
    let (own, mean) = frame.progress.belief(of(job), worth);
    frame.twin.raised(own);
    // What was seen goes before what is believed: stills come at any age of the anchors before them.
    Some(frame.progress.take_seen().unwrap_or(mean))
}

/// Super-resolves tiles of a picture's luma; `seen` is what subscribers would see without.
pub(super) fn infer(
    low: &FrameBuffer,
    seen: &Plane,
    tiles: &TileMap,
    engine: &mut dyn Engine,
    residual: &mut Residual,
) -> Result<Detail, InferError> {
    let low = Samples::from(&low.planes()[0]);
    let inferred = match engine.architecture().inputs {
        Inputs::Luma => infer_tiles(engine, low, tiles, residual),
        Inputs::LumaAndTwin => infer_tiles_fused(engine, low, seen.into(), tiles, residual),
    };
    inferred.map(|(detail, _)| detail)
}
