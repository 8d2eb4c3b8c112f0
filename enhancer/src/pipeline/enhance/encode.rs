//! Encodes what was made of a frame: on the GPU that has it or runs its network, or on the CPU.

use std::time::{Duration, Instant};

use windlass_hybrid::Detail;
use windlass_hybrid::anchor::colour;
use windlass_hybrid::anchor::payload::{self, Packed};
use windlass_sr::cuda::coder::{Encoding, SharedCoder};
use windlass_types::AnchorSource;
use windlass_types::tiles::{TILE, TileMap};

use super::super::anchors::{Content, CpuStills, Stills, encode};
use super::super::gpu_picture::GpuPicture;
use super::super::slots::Stage;
use super::super::stills::GpuStills;
use super::super::worker::Worker;
use super::send::Outgoing;
use super::{Draft, Made, PreparedJob, Run, Tools, Unmade};
use crate::stats::count;

/// An encoded anchor's payload.
pub(super) struct Encoded {
    pub payload: Vec<u8>,
    /// Whether the payload begins with a map of its tiles.
    pub tiled: bool,
    /// Detail that was encoded, if the loss of encoding is to be measured.
    pub wanted: Option<Detail>,
}

impl Worker {
    /// Encodes a draft, sends it, and shows it to the subscribers' twin.
    pub(super) fn encode(
        &self,
        prepared: &PreparedJob<'_>,
        draft: Draft<'_>,
        inferred: Instant,
        tools: &mut Tools<'_>,
        run: &mut Run,
    ) -> Result<(), Unmade> {
        let Draft { made, tiles, learned, to_weigh, mut slot, gpu } = draft;
        let (size, twin) = (made.size(), &prepared.job.frame.twin);
        let samples = (tiles.count() * TILE * TILE * prepared.scale * prepared.scale) as u64;
        let colour = colour_of(prepared, &tiles);
        // Only the CPU encodes colour.
        let mut on_gpu = gpu.filter(|_| colour.is_none()).map(|coder| GpuStills {
            coder,
            slots: &self.slots,
            clock: &self.clock,
            samples,
            deadline: prepared.deadline,
            key: prepared.key,
            counters: &self.stats.counters,
            waited: Duration::ZERO,
        });
        // What the GPU encodes takes nothing of the CPU.
        if slot.is_none() && on_gpu.is_none() {
            let asked = self.clock.now();
            slot = self.slots.take(Stage::Encode, samples, prepared.deadline, prepared.key);
            run.waited += self.clock.since(asked);
            if slot.is_none() {
                return Err(Unmade::LateEncode);
            }
        }
        let coding = self.coding(prepared);
        let encoded = match made {
            Made::OnGpu(picture) => {
                self.encode_on_gpu(&picture, gpu, &tiles, coding, twin.measures())
            }
            Made::OnCpu(mut detail) => {
                tools.prior.take_out(prepared.low, &mut detail);
                let wanted = twin.measures().then(|| detail.clone());
                let mut on_cpu = CpuStills;
                let stills: &mut dyn Stills = match &mut on_gpu {
                    Some(on_gpu) => on_gpu,
                    None => &mut on_cpu,
                };
                let coded =
                    encode(coding, Content { detail, colour }, &tiles, prepared.scale, stills);
                coded
                    .map(|Packed { payload, tiled }| Encoded { payload, tiled, wanted })
                    .map_err(Unmade::Encode)
            }
        };
        run.waited += on_gpu.map_or(Duration::ZERO, |on_gpu| on_gpu.waited);
        let Encoded { payload, tiled, wanted } = encoded?;
        let sent = self.send(prepared, Outgoing { payload, tiled, size, learned, inferred })?;
        drop(slot);
        // Before the twin has it: what it changes.
        if let Some((detail, known)) = to_weigh {
            let made = Made::OnCpu(detail);
            run.weigh(&self.clock, prepared.job, Some(&made), Some(&known), prepared.low);
        }
        twin.sent(&sent, wanted.as_ref());
        Ok(())
    }

    /// Encodes a picture on the GPU that holds it.
    fn encode_on_gpu(
        &self,
        picture: &GpuPicture,
        gpu: Option<&SharedCoder>,
        tiles: &TileMap,
        coding: Encoding,
        wants_detail: bool,
    ) -> Result<Encoded, Unmade> {
        let coded = gpu.and_then(|gpu| picture.code(gpu, tiles, coding, wants_detail));
        let (code, wanted) = coded.ok_or(Unmade::LeavesGpu)?.map_err(Unmade::Encode)?;
        count(&self.stats.counters.gpu_coded);
        count(&self.stats.counters.gpu_held);
        let Packed { payload, tiled } = payload::pack(tiles, code);
        Ok(Encoded { payload, tiled, wanted })
    }

    /// Quality and maximum bytes of an anchor. A search for what fits takes several encodings; captured anchors have
    /// the time for them.
    fn coding(&self, prepared: &PreparedJob<'_>) -> Encoding {
        let anchors = &prepared.job.frame.anchors;
        let quality = self.live.get().anchor_quality;
        let max_bytes = match prepared.source {
            AnchorSource::Captured => anchors.max_bytes(self.clock.now()),
            AnchorSource::Enhanced => anchors.limits().bytes,
        };
        Encoding { quality, max_bytes }
    }
}

/// Colour of some tiles of the publisher's own picture.
fn colour_of(prepared: &PreparedJob<'_>, tiles: &TileMap) -> Option<Detail> {
    let [_, u, v] = prepared.high.as_ref()?.samples();
    Some(colour::image([u, v], prepared.job.frame.picture.samples(), tiles, prepared.scale))
}
