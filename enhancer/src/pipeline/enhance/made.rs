//! The HR picture of a frame, and what it is worth.

use windlass_hybrid::Detail;
use windlass_scheduler::worth::{Belief, Change};
use windlass_sr::{EnergyOfTile, energy_by_tile};
use windlass_types::Size;
use windlass_types::tiles::TileMap;
use windlass_vp9::Samples;

use super::super::clock::Clock;
use super::super::gpu_picture::GpuPicture;
use super::super::job::Job;
use super::super::learn::of;
use super::Run;

/// The HR picture of a frame, on the CPU or on the GPU.
pub(super) enum Made {
    OnCpu(Detail),
    /// A picture that stays on the GPU that super-resolved it.
    OnGpu(GpuPicture),
}

impl Made {
    /// Size in HR samples.
    pub(super) fn size(&self) -> Size {
        let size = match self {
            Made::OnCpu(detail) => detail.size(),
            Made::OnGpu(picture) => picture.size(),
        };
        Size::saturating(size.width, size.height)
    }

    /// Energy of the detail in each of `tiles`.
    pub(super) fn energies(&self, tiles: &TileMap, scale: usize) -> Vec<EnergyOfTile> {
        match self {
            Made::OnCpu(detail) => energy_by_tile(detail, tiles, scale).collect(),
            Made::OnGpu(picture) => picture.by_tile(tiles, |tile| tile.all),
        }
    }
}

impl Run {
    /// Measures the worth of a job's enhanced anchor. `known` is the detail that viewers see of the frame without
    /// enhanced anchors. The time for it does not count as inference.
    pub(super) fn weigh(
        &mut self,
        clock: &Clock,
        job: &Job,
        made: Option<&Made>,
        known: Option<&Detail>,
        low: Samples<'_>,
    ) {
        let started = clock.now();
        self.worth = made.and_then(|made| weigh(job, made, known, low));
        self.waited += clock.since(started);
    }
}

/// Worth of a job's enhanced anchor, in dB.
fn weigh(job: &Job, made: &Made, known: Option<&Detail>, low: Samples<'_>) -> Option<f64> {
    let (frame, tiles) = (&job.frame, &job.choice.tiles);
    let change = match made {
        Made::OnCpu(detail) => {
            frame.twin.change(frame.rtp_timestamp, low, detail, known?, tiles)?
        }
        // What was carried there is not on the GPU.
        Made::OnGpu(picture) => {
            let whole =
                TileMap::full(Size::saturating(low.width, low.height)).count().max(1) as f64;
            let differences = picture.by_tile(tiles, |tile| tile.new);
            let new = differences.iter().map(|tile| tile.energy).sum::<f64>() / whole;
            Change { new, old: None }
        }
    };
    let worth = |belief: &mut Belief| (belief.own_db(change.new), belief.mean_db(&change));
    let (own, mean) = frame.progress.belief(of(job), worth);
    frame.twin.raised(own);
    // What was seen goes before what is believed: stills come at any age of the anchors before them.
    Some(frame.progress.take_seen().unwrap_or(mean))
}
