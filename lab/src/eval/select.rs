//! Selects the frames that become anchors: by the product's scheduler, or by the two selections it is compared with.
//!
//! Source: NeuroScaler §2 and §5.1. *Key+Uniform* takes key frames and evenly spaced ones. *NEMO* knows the true
//! gains ([`gains`](super::gains)): it takes, one after the other, the frame that raises the sum over all frames of
//! the best quality so far. Both get as many anchors as the scheduler chose. All three return frame numbers,
//! ascending.

use windlass_enhancer::EnhancerConfig;
use windlass_enhancer::offline::AnchorPlanner;
use windlass_scheduler::{Candidate, SchedulerConfig, Tier};
use windlass_types::StreamId;

use super::anchors::{STREAM, shown_at};
use super::gains::Gains;
use super::low_layer::Coded;

/// The choice of the enhancer's own scheduler. Each picture has a fixed cost, so that the choice repeats.
pub(super) fn scheduled(low: &Coded, fps: f64, fraction: f64) -> Vec<usize> {
    let size = low.pictures.size();
    // One thread, and the cost that is expected before anything was measured: no clock decides.
    let limits =
        EnhancerConfig { anchor_fraction: fraction, threads: 1, ..EnhancerConfig::default() };
    let networks = SchedulerConfig::default().networks;
    let cost = networks.iter().map(|n| n.per_pixel).min().unwrap_or_default() * size.area() as u32;
    let candidates: Vec<Candidate> = low
        .frames
        .iter()
        .enumerate()
        .map(|(n, frame)| Candidate {
            id: n as u64,
            stream: StreamId(STREAM),
            tier: frame.tier,
            bytes: frame.data.len() as u32,
            size: size.into(),
            arrival: shown_at(n, fps),
            per_mille: 1000,
            scale: 2,
            max_scale: 2,
        })
        .collect();
    let (plan, _) = AnchorPlanner::new(limits.scheduler(networks)).plan(&candidates, |_| cost);
    let mut chosen: Vec<usize> = plan.into_iter().map(|anchor| anchor.index).collect();
    chosen.sort_unstable();
    chosen
}

/// Chooses `count` anchors: key frames first, the rest evenly over the clip.
pub(super) fn key_uniform(tiers: impl IntoIterator<Item = Tier>, count: usize) -> Vec<usize> {
    let tiers: Vec<Tier> = tiers.into_iter().collect();
    let keys = (0..tiers.len()).filter(|&n| tiers[n] == Tier::Key);
    let mut chosen: Vec<usize> = keys.take(count).collect();
    let rest = count.min(tiers.len()) - chosen.len();
    for i in 1..=rest {
        let even = i * tiers.len() / (rest + 1);
        // The next frame that is free; before it, where there is none.
        let free = (even..tiers.len()).chain((0..even).rev()).find(|n| !chosen.contains(n));
        chosen.extend(free);
    }
    chosen.sort_unstable();
    chosen
}

/// Chooses `count` anchors by NEMO's greedy choice; of equal ones, the earliest.
pub(super) fn nemo(gains: &Gains, count: usize) -> Vec<usize> {
    let mut best = gains.without.clone();
    let mut chosen: Vec<usize> = Vec::new();
    for _ in 0..count.min(gains.with.len()) {
        let rise = |with: &[f64]| -> f64 {
            with.iter().zip(&best).map(|(quality, best)| (quality - best).max(0.0)).sum()
        };
        let mut next: Option<(usize, f64)> = None;
        for (candidate, with) in gains.with.iter().enumerate() {
            let Some(with) = with else { continue };
            let rise = rise(with);
            if !chosen.contains(&candidate) && next.is_none_or(|(_, most)| rise > most) {
                next = Some((candidate, rise));
            }
        }
        let Some((candidate, _)) = next else { break };
        for (best, quality) in best.iter_mut().zip(gains.with[candidate].iter().flatten()) {
            *best = best.max(*quality);
        }
        chosen.push(candidate);
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_uniform_takes_key_frames_and_spaces_the_rest_evenly() {
        let mut tiers = [Tier::Normal; 100];
        tiers[0] = Tier::Key;
        assert_eq!(key_uniform(tiers, 5), [0, 20, 40, 60, 80]);
        tiers[40] = Tier::Key;
        assert_eq!(key_uniform(tiers, 2), [0, 40]);
        assert_eq!(key_uniform(tiers, 1), [0]);
        assert_eq!(key_uniform(tiers, 3), [0, 40, 50]);
        assert_eq!(key_uniform([Tier::Golden; 3], 9), [0, 1, 2]);
        assert!(key_uniform(tiers, 0).is_empty());
    }

    #[test]
    fn nemo_takes_the_frame_that_raises_the_sum_of_the_best_quality_most() {
        // Frame 1 helps all frames a little, 0 and 2 two frames each, and 2 what 1 left low.
        let gains = Gains {
            without: vec![30.0; 4],
            with: vec![
                Some(vec![33.0, 32.0, 30.0, 30.0]),
                Some(vec![32.0, 32.0, 31.0, 31.0]),
                Some(vec![30.0, 30.0, 33.0, 32.5]),
                None,
            ],
        };
        assert_eq!(nemo(&gains, 1), [1]);
        assert_eq!(nemo(&gains, 2), [1, 2]);
        assert_eq!(nemo(&gains, 9), [0, 1, 2]);
    }

    #[test]
    fn anchors_that_only_harm_raise_nothing_but_the_count_is_kept() {
        let harm = Some(vec![20.0, 20.0]);
        let gains = Gains { without: vec![30.0; 2], with: vec![harm.clone(), harm] };
        assert_eq!(nemo(&gains, 1), [0]);
    }
}
