//! Encodes anchors where their network runs: on the GPU while that works, else on the CPU.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_hybrid::Detail;
use windlass_sr::cuda::coder::{AnchorError, Encoding, SharedCoder};

use super::anchors::{EncodeError, Stills, encode_still};
use super::clock::Clock;
use super::slots::{Slots, Stage};
use crate::stats::{Counters, count};

/// The process's coder on the GPU, if there is one.
pub(super) fn on_gpu() -> Option<Arc<SharedCoder>> {
    let coder = SharedCoder::of_process();
    coder
        .inspect_err(
            |why| tracing::warn!(%why, "anchor encoding not available on the GPU: the CPU encodes anchors; check the GPU with `windlass devices`, and restart to try it again"),
        )
        .ok()
}

/// Encodes one anchor on the GPU, or on the CPU if that fails.
pub(super) struct GpuStills<'a> {
    pub coder: &'a SharedCoder,
    pub slots: &'a Slots,
    pub clock: &'a Clock,
    /// HR samples of the anchor, for a CPU slot if the GPU fails. `deadline` and `key` are for it as well.
    pub samples: u64,
    pub deadline: Instant,
    pub key: u64,
    pub counters: &'a Counters,
    /// Time that the anchor waited for a CPU slot.
    pub waited: Duration,
}

impl Stills for GpuStills<'_> {
    fn encode(&mut self, image: Detail, coding: Encoding) -> Result<Vec<u8>, EncodeError> {
        let image = Arc::new(image);
        match self.coder.code(&image, coding) {
            Ok(coded) => {
                count(&self.counters.gpu_coded);
                Ok(coded)
            }
            Err(AnchorError::Codec(_)) => Err(EncodeError::Failed),
            Err(AnchorError::Device(why)) => {
                tracing::debug!(%why, "anchor encoded on the CPU: the GPU failed");
                count(&self.counters.gpu_not_coded);
                let asked = self.clock.now();
                let slot = self.slots.take(Stage::Encode, self.samples, self.deadline, self.key);
                self.waited += self.clock.since(asked);
                let _slot = slot.ok_or(EncodeError::Late)?;
                encode_still(&image, None, coding)
            }
        }
    }
}
