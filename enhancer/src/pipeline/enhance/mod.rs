//! One chosen frame becomes an anchor: [`infer`] or the publisher's own picture, then [`encode`], then [`send`].
//!
//! Each step takes what the one before made, and stops with [`Unmade`]: the reason, by which it is counted.

mod encode;
mod high;
mod infer;
mod made;
mod send;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use high::HighPicture;
pub(super) use infer::super_resolve;
use made::Made;
use windlass_hybrid::Detail;
use windlass_hybrid::anchor::prior::Prior;
use windlass_sr::cuda::coder::SharedCoder;
use windlass_sr::{Engine, InferError, Residual};
use windlass_types::AnchorSource;
use windlass_types::tiles::TileMap;
use windlass_vp9::Samples;

use super::anchors::EncodeError;
use super::job::{Job, within};
use super::slots::Slot;
use super::worker::Worker;
use crate::stats::{Counters, count};

/// Measurements of a job's run.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Time that the job waited for slots or spent on measuring. It is no part of what inference costs.
    pub waited: Duration,
    /// Whether the job was given up because it was late.
    pub late: bool,
    /// Time that inference took of an accelerator shared by workers. It counts instead of the worker's own time.
    pub charged: Option<Duration>,
    /// Worth of the job's enhanced anchor, in dB.
    pub worth: Option<f64>,
    /// Whether the picture may stay on the GPU. It may not once it could not be measured or encoded there.
    pub stays: bool,
}

/// Engine and working memory that a worker keeps from job to job.
pub(super) struct Tools<'a> {
    pub engine: &'a mut dyn Engine,
    pub prior: &'a mut Prior,
    pub residual: &'a mut Residual,
}

/// A job, and what is known of it before inference.
struct PreparedJob<'a> {
    job: &'a Job,
    low: Samples<'a>,
    scale: usize,
    source: AnchorSource,
    /// The publisher's own picture; `None` if it has not come.
    high: Option<HighPicture<'a>>,
    /// Maximum time from the frame's arrival until its anchor is handed over.
    within: Duration,
    deadline: Instant,
    /// Order among tasks that are otherwise alike.
    key: u64,
}

impl<'a> PreparedJob<'a> {
    fn new(job: &'a Job, scale: usize) -> Self {
        let frame = &job.frame;
        let sent = job.captured.as_deref();
        let high = sent.and_then(|sent| HighPicture::of(sent, &frame.picture, scale));
        let source = if high.is_some() { AnchorSource::Captured } else { AnchorSource::Enhanced };
        let within = within(job.chosen.deadline, source == AnchorSource::Captured);
        PreparedJob {
            job,
            low: Samples::from(&frame.picture.planes()[0]),
            scale,
            source,
            high,
            within,
            deadline: frame.arrival + within.min(Duration::from_secs(3_600)),
            key: u64::from(frame.stream.0),
        }
    }
}

/// A picture that is to be encoded: inferred, or the publisher's own.
struct Draft<'w> {
    made: Made,
    /// Tiles that are worth sending.
    tiles: TileMap,
    /// Whether weights that the stream has learned made the detail.
    learned: bool,
    /// Details to measure once the anchor has left: the anchor's, and what subscribers have without it.
    to_weigh: Option<(Detail, Detail)>,
    /// Slot of the inference, if it ran on the CPU.
    slot: Option<Slot<'w>>,
    /// Coder of the GPU that the network runs on.
    gpu: Option<&'w SharedCoder>,
}

/// Why a job gave no anchor.
#[derive(Debug)]
enum Unmade {
    /// There is no time for inference.
    LateInfer,
    /// Subscribers have forgotten the frame.
    Forgotten,
    /// The probe is worth too little.
    Worthless,
    /// Subscribers have all of the anchor's detail.
    Known,
    Infer(InferError),
    /// The GPU that has the picture cannot encode it.
    LeavesGpu,
    /// There is no time to encode or send the anchor.
    LateEncode,
    Encode(EncodeError),
    /// The anchor's code is larger than messages to the browser can carry.
    TooLarge,
    /// The SFU's queue is full.
    QueueFull,
}

impl Worker {
    /// Makes the anchor of a job. Returns whether subscribers have it, or need none.
    pub(super) fn enhance(&self, job: &Job, tools: &mut Tools<'_>, run: &mut Run) -> bool {
        let mut made = self.make(job, tools, run);
        if matches!(made, Err(Unmade::LeavesGpu)) {
            // Once more, by way of the CPU.
            run.stays = false;
            made = self.make(job, tools, run);
        }
        made.map_or_else(
            |unmade| unmade.report(job.frame.stream.0, &self.stats.counters, run),
            |()| true,
        )
    }

    fn make(&self, job: &Job, tools: &mut Tools<'_>, run: &mut Run) -> Result<(), Unmade> {
        let scale = tools.engine.scale();
        let prepared = PreparedJob::new(job, scale);
        let draft = match &prepared.high {
            Some(high) => self.captured(&prepared, high, tools.engine, run)?,
            None => self.infer(&prepared, tools, run)?,
        };
        let inferred = self.clock.now();
        let regions = job.frame.captures.regions.load(Ordering::Relaxed);
        if prepared.source == AnchorSource::Enhanced && regions {
            let energies = draft.made.energies(&draft.tiles, scale);
            job.frame.anchors.note_uncertainty(&draft.tiles, energies.into_iter());
        }
        self.encode(&prepared, draft, inferred, tools, run)
    }

    /// Drafts an anchor from the publisher's own picture, without inference.
    fn captured(
        &self,
        prepared: &PreparedJob<'_>,
        high: &HighPicture<'_>,
        engine: &dyn Engine,
        run: &mut Run,
    ) -> Result<Draft<'_>, Unmade> {
        let job = prepared.job;
        let detail = high.detail(prepared.low, prepared.scale);
        let detail = detail.ok_or(Unmade::Encode(EncodeError::Failed))?;
        if let Some(samples) = self.samples.as_ref().filter(|_| high.is_as_sent()) {
            samples.submit(job, &self.networks[job.chosen.network]);
        }
        // The workers' time is not what accelerators are short of.
        run.charged = engine.accelerators().map(|_| Duration::ZERO);
        Ok(Draft {
            made: Made::OnCpu(detail),
            tiles: job.choice.tiles.clone(),
            learned: false,
            to_weigh: None,
            slot: None,
            gpu: self.gpu_of(engine),
        })
    }

    /// Coder of the GPU, if the network runs there.
    fn gpu_of(&self, engine: &dyn Engine) -> Option<&SharedCoder> {
        self.gpu.as_deref().filter(|_| !engine.on_cpu())
    }
}

impl Unmade {
    /// Counts the reason. Returns whether subscribers need no anchor.
    fn report(self, stream: u32, counters: &Counters, run: &mut Run) -> bool {
        run.late |= matches!(
            self,
            Unmade::LateInfer | Unmade::LateEncode | Unmade::Encode(EncodeError::Late)
        );
        match &self {
            Unmade::Infer(error) => tracing::debug!(stream, %error, "picture refused"),
            Unmade::Encode(error) => tracing::debug!(stream, %error, "anchor not encoded"),
            _ => {}
        }
        count(match self {
            Unmade::LateInfer | Unmade::Forgotten => &counters.late_infer,
            Unmade::Worthless => &counters.worthless,
            Unmade::Known => &counters.known,
            Unmade::Infer(_) => &counters.infer_errors,
            Unmade::LateEncode | Unmade::Encode(EncodeError::Late) => &counters.late_encode,
            Unmade::TooLarge | Unmade::LeavesGpu | Unmade::Encode(EncodeError::Failed) => {
                &counters.encode_errors
            }
            Unmade::QueueFull => &counters.dropped_anchors,
        });
        matches!(self, Unmade::Known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_and_only_late_ones_say_so() {
        let counters = Counters::default();
        let reported = |unmade: Unmade| {
            let mut run = Run::default();
            (unmade.report(1, &counters, &mut run), run.late)
        };
        assert_eq!(reported(Unmade::LateInfer), (false, true));
        assert_eq!(reported(Unmade::Forgotten), (false, false));
        assert_eq!(reported(Unmade::Known), (true, false));
        assert_eq!(reported(Unmade::Encode(EncodeError::Late)), (false, true));
        assert_eq!(reported(Unmade::Encode(EncodeError::Failed)), (false, false));
        assert_eq!(reported(Unmade::QueueFull), (false, false));
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        assert_eq!((load(&counters.late_infer), load(&counters.known)), (2, 1));
        assert_eq!((load(&counters.late_encode), load(&counters.encode_errors)), (1, 1));
        assert_eq!(load(&counters.dropped_anchors), 1);
    }
}
