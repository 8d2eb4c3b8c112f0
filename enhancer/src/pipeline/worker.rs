//! The inference workers: a chosen frame in, an encoded anchor out.
//!
//! A frame past its deadline is dropped before inference, before encoding ([`Slots`]), and before it is handed over. A
//! panic of the engine costs its frame: the worker goes on with a new engine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::Sender;
use windlass_hybrid::anchor::prior::Prior;
use windlass_sr::cuda::coder::SharedCoder;
use windlass_sr::{Engine, Residual};
use windlass_types::EnhancerOutput;
use windlass_vp9::simd::Isa;

use super::clock::Clock;
use super::enhance::{Run, Tools};
use super::gpu_picture::Stay;
use super::job::{Finished, Job};
use super::jobs::Jobs;
use super::learn::SampleQueue;
use super::slots::Slots;
use super::tuning::Live;
use super::{MAX_SCALE, Network};
use crate::stats::{Stats, count};

/// A worker's queues and shared parts.
pub(super) struct Worker {
    pub jobs: Arc<Jobs>,
    pub finished: Sender<Finished>,
    pub output: Sender<EnhancerOutput>,
    pub enabled: Arc<AtomicBool>,
    /// Coder of anchors whose networks run on the GPU.
    pub gpu: Option<Arc<SharedCoder>>,
    pub clock: Clock,
    pub stats: Arc<Stats>,
    pub slots: Arc<Slots>,
    pub networks: Vec<Network>,
    /// Settings that may change while the enhancer runs, the anchors' quality among them.
    pub live: Live,
    /// Queue of training samples, if networks learn.
    pub samples: Option<SampleQueue>,
}

/// State that a worker keeps from job to job.
struct State {
    engines: Vec<Option<Box<dyn Engine>>>,
    residual: Residual,
    /// The built-in filters by scale, made when they are first needed.
    priors: [Option<Prior>; MAX_SCALE + 1],
}

impl Worker {
    /// Runs until the scheduler is gone.
    pub(super) fn run(self) {
        let mut state = State {
            engines: self.networks.iter().map(|_| None).collect(),
            residual: Residual::default(),
            priors: [const { None }; MAX_SCALE + 1],
        };
        let (mut last, mut stay) = (None, Stay::default());
        while let Some((shape, job)) = self.jobs.take(last) {
            let started = self.clock.now();
            let stays = stay.is_tried();
            let mut run = Run { stays, ..Run::default() };
            let ran = self.run_job(&job, &mut state, &mut run);
            if stays && !run.stays {
                stay.failed();
            }
            // Waiting for a slot is no work of an accelerator.
            let took = ran.then(|| self.clock.since(started).saturating_sub(run.waited));
            if let Some(took) = took {
                self.jobs.done(shape, last, took);
            }
            let took = took.map(|took| run.charged.unwrap_or(took));
            if let Some(took) = took {
                self.stats.compute.record(took);
            }
            last = Some(shape);
            let (chosen, inferred) = (job.chosen, job.captured.is_none());
            let Run { late, worth, .. } = run;
            if self.finished.send(Finished { chosen, took, inferred, late, worth }).is_err() {
                return;
            }
        }
    }

    /// Runs a job. Returns `false` if it was too late or the engine panicked: a panic's time, with its report, says
    /// nothing about inference.
    fn run_job(&self, job: &Job, state: &mut State, run: &mut Run) -> bool {
        let age = self.clock.since(job.frame.arrival);
        if !self.enabled.load(Ordering::Relaxed) || age + job.chosen.cost > job.within() {
            job.frame.anchors.forget(&job.choice);
            count(&self.stats.counters.late_infer);
            run.late = true;
            return false;
        }
        let index = job.chosen.network;
        let enhanced = catch_unwind(AssertUnwindSafe(|| {
            let State { engines, residual, priors } = state;
            let engine = engines[index].get_or_insert_with(|| (self.networks[index].engines)());
            let scale = engine.scale();
            let prior = priors[scale.min(MAX_SCALE)]
                .get_or_insert_with(|| Prior::new(Isa::detect(), scale));
            let mut tools = Tools { engine: engine.as_mut(), prior, residual };
            self.enhance(job, &mut tools, run)
        }));
        if !matches!(enhanced, Ok(true)) {
            job.frame.anchors.forget(&job.choice);
        }
        if enhanced.is_err() {
            count(&self.stats.counters.panics);
            state.engines[index] = None;
        }
        enhanced.is_ok()
    }
}
