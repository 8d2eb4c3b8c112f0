//! True gains of anchors, as NEMO's selection needs them: every candidate frame as the only anchor.
//!
//! Source: NeuroScaler §2. For each candidate the whole clip is rebuilt and every frame's PSNR taken:
//! work that grows with the square of the clip's length, which is why the product predicts gains
//! instead. Anchors have their delay here too.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use windlass_hybrid::HybridConfig;
use windlass_vp9::Plane;

use super::anchors::AnchorTrack;
use super::clip::Clip;
use super::low_layer::Coded;
use super::rebuild;
use crate::interrupt;

/// PSNR of luma of every frame in dB, without anchors and with single ones.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gains {
    /// PSNR of each frame without any anchor, in dB.
    pub without: Vec<f64>,
    /// PSNR of each frame with the anchor of one frame alone, in dB, by that frame. `None` where the frame is no
    /// candidate.
    pub with: Vec<Option<Vec<f64>>>,
}

/// Frames, with the PSNR of all frames that their anchors give.
type Found = Vec<(usize, Vec<f64>)>;

/// Measures every anchor of `all` alone.
pub(super) fn measure(
    clip: &Clip,
    low: &Coded,
    all: &AnchorTrack,
    config: HybridConfig,
) -> Result<Gains> {
    let originals: Vec<Plane> =
        clip.frames.frames()?.map(|picture| Ok(picture?.y)).collect::<Result<_>>()?;
    let rebuilt = |candidate: usize| -> Result<Vec<f64>> {
        let anchors = all.anchors.get(candidate).map_or(&[][..], std::slice::from_ref);
        let mut psnr = Vec::with_capacity(originals.len());
        rebuild::play(low, clip.fps, anchors, config, |n, picture| {
            psnr.push(windlass_scores::psnr_db(&originals[n], &picture.y));
            Ok(())
        })?;
        Ok(psnr)
    };
    let without = rebuilt(usize::MAX)?;
    let next = AtomicUsize::new(0);
    let worker = || -> Result<Found> {
        let mut found = Vec::new();
        loop {
            interrupt::check()?;
            let candidate = next.fetch_add(1, Ordering::Relaxed);
            let Some(anchor) = all.anchors.get(candidate) else {
                return Ok(found);
            };
            found.push((anchor.frame, rebuilt(candidate)?));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let found: Vec<Result<Found>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let ended = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended.map(|found| found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let mut with = vec![None; low.frames.len()];
    for found in found {
        for (frame, psnr) in found? {
            with[frame] = Some(psnr);
        }
    }
    Ok(Gains { without, with })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::synthetic;

    #[test]
    fn an_anchor_changes_nothing_before_it_is_there() {
        let clip = synthetic::panning(10);
        let low = synthetic::low_layer(&clip, 300);
        let track = synthetic::track(&clip, &low, 66);
        let gains = measure(&clip, &low, &track, HybridConfig::default()).unwrap();
        let first = track.anchors[0].frame;
        let with = gains.with[first].as_ref().unwrap();
        assert_eq!(with[..first + 2], gains.without[..first + 2]);
        assert_ne!(with[first + 2..], gains.without[first + 2..]);
        assert_eq!(gains.with.iter().flatten().count(), track.anchors.len());
    }
}
