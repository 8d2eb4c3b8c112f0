//! Super-resolves a chosen frame, and finds which of its tiles are worth sending.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec::detail_of;
use windlass_scheduler::worth::RESUME_DB;
use windlass_sr::cuda::coder::SharedCoder;
use windlass_sr::{Engine, InferError, Inputs, Residual, infer_tiles, infer_tiles_fused};
use windlass_types::tiles::TileMap;
use windlass_vp9::FrameBuffer;
use windlass_vp9::Plane;
use windlass_vp9::Samples;

use super::super::gpu_picture::{GpuPicture, Unfit};
use super::super::learn::equip;
use super::super::slots::{Slot, Stage};
use super::super::worker::Worker;
use super::{Draft, Made, PreparedJob, Run, Tools, Unmade};
use crate::stats::count;

/// Result of a network for one frame.
struct Inferred {
    made: Result<Made, InferError>,
    /// Detail that subscribers see of the frame without the anchor; `None` for pictures that stay on the GPU.
    known: Option<Detail>,
    /// Whether weights that the stream has learned made the picture.
    learned: bool,
}

/// Tiles of a super-resolved picture that are to be sent, and the details to weigh.
struct Judged {
    tiles: TileMap,
    to_weigh: Option<(Detail, Detail)>,
}

impl Worker {
    /// Super-resolves the frame of a job into a draft that is ready to encode.
    pub(super) fn infer(
        &self,
        prepared: &PreparedJob<'_>,
        tools: &mut Tools<'_>,
        run: &mut Run,
    ) -> Result<Draft<'_>, Unmade> {
        let mut slot = self.slot_for_inference(prepared, tools.engine, run)?;
        let gpu = self.gpu_of(tools.engine);
        let Inferred { made, known, learned } = self.run_network(prepared, gpu, tools, run)?;
        let Judged { tiles, to_weigh } = self.judge(prepared, &made, known, &mut slot, run)?;
        let made = made.map_err(Unmade::Infer)?;
        Ok(Draft { made, tiles, learned, to_weigh, slot, gpu })
    }

    /// Takes a CPU slot for inference and the encoding that follows, if the network runs on the CPU (ZARN §3.2).
    fn slot_for_inference(
        &self,
        prepared: &PreparedJob<'_>,
        engine: &dyn Engine,
        run: &mut Run,
    ) -> Result<Option<Slot<'_>>, Unmade> {
        if !engine.on_cpu() {
            return Ok(None);
        }
        let (job, asked) = (prepared.job, self.clock.now());
        let (work, expected) = (job.choice.tiles.count() as u64, job.chosen.cost);
        let slot =
            self.slots.take_for(Stage::Infer, work, expected, prepared.deadline, prepared.key);
        run.waited = self.clock.since(asked);
        slot.map(Some).ok_or(Unmade::LateInfer)
    }

    fn run_network(
        &self,
        prepared: &PreparedJob<'_>,
        gpu: Option<&SharedCoder>,
        tools: &mut Tools<'_>,
        run: &mut Run,
    ) -> Result<Inferred, Unmade> {
        let PreparedJob { job, low, scale, .. } = *prepared;
        let (frame, network) = (&job.frame, &self.networks[job.chosen.network]);
        let start = frame.twin.start(frame.rtp_timestamp).map(Arc::new);
        let start = start.ok_or(Unmade::Forgotten)?;
        let engine = &mut *tools.engine;
        engine.take_time();
        let mut learned = false;
        let made = equip(engine, network, job).and_then(|own| {
            learned = own;
            if let Some(gpu) = gpu.filter(|_| run.stays) {
                match GpuPicture::infer(gpu, engine, low, &start) {
                    Ok(Some(picture)) => return Ok(Made::OnGpu(picture)),
                    Ok(None) => {}
                    Err(Unfit) => run.stays = false,
                }
            }
            let tiles = &job.choice.tiles;
            super_resolve(&frame.picture, &start, tiles, engine, tools.residual).map(Made::OnCpu)
        });
        // Also what it took before it had to come back.
        let took = engine.take_time();
        run.charged = took.map(|took| took + run.charged.unwrap_or_default());
        let known = match &made {
            Ok(Made::OnCpu(_)) => detail_of(Samples::from(&*start), low, scale).ok(),
            _ => None,
        };
        Ok(Inferred { made, known, learned })
    }

    /// Finds the tiles that are worth sending, and measures what the anchor is worth where that is due.
    fn judge<'w>(
        &'w self,
        prepared: &PreparedJob<'_>,
        made: &Result<Made, InferError>,
        known: Option<Detail>,
        slot: &mut Option<Slot<'w>>,
        run: &mut Run,
    ) -> Result<Judged, Unmade> {
        let counters = &self.stats.counters;
        let PreparedJob { job, low, .. } = *prepared;
        let (frame, made) = (&job.frame, made.as_ref().ok());
        if job.chosen.probe {
            count(&counters.probes);
            // It is weighed whether or not that is due, and the next not before long.
            frame.twin.weighs(frame.rtp_timestamp);
            run.weigh(&self.clock, job, made, known.as_ref(), low);
            if run.worth.is_none_or(|db| db < RESUME_DB) {
                return Err(Unmade::Worthless);
            }
        }
        let weighs = || !job.chosen.probe && frame.twin.weighs(frame.rtp_timestamp);
        let mut tiles = job.choice.tiles.clone();
        if let Some(worthwhile) = worthwhile(prepared, made, known.as_ref()) {
            let left_out = tiles.count() - worthwhile.count();
            tiles = worthwhile;
            counters.tiles_known.fetch_add(left_out as u64, Ordering::Relaxed);
            if tiles.count() == 0 {
                *slot = None;
                if weighs() {
                    run.weigh(&self.clock, job, made, known.as_ref(), low);
                }
                return Err(Unmade::Known);
            }
        }
        let mut to_weigh = None;
        if weighs() {
            match made {
                // Pictures are painted for that, for which there is time when the anchor has left.
                Some(Made::OnCpu(detail)) => {
                    to_weigh = known.map(|known| (detail.clone(), known));
                }
                made => run.weigh(&self.clock, job, made, None, low),
            }
        }
        Ok(Judged { tiles, to_weigh })
    }
}

/// Tiles whose detail differs from what subscribers have by more than encoding would lose; `None` for all tiles.
fn worthwhile(
    prepared: &PreparedJob<'_>,
    made: Option<&Made>,
    known: Option<&Detail>,
) -> Option<TileMap> {
    let (choice, twin) = (&prepared.job.choice, &prepared.job.frame.twin);
    // Whoever lost an anchor needs the next: what subscribers have by anchors is not looked at.
    if choice.key {
        return None;
    }
    match made? {
        Made::OnCpu(detail) => known.map(|known| twin.worthwhile(detail, known, &choice.tiles)),
        Made::OnGpu(picture) => {
            let differences = picture.by_tile(&choice.tiles, |tile| tile.new);
            Some(twin.worthwhile_by(&differences, &choice.tiles))
        }
    }
}

/// Super-resolves tiles of a picture's luma. `seen` is the luma that subscribers see without the anchor.
pub(in super::super) fn super_resolve(
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
