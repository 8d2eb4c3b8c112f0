//! The pipeline's choices without its threads, for `windlass-lab eval` and simulations.
//!
//! [`AnchorPlanner`] runs the same [`Scheduler`] on a list of frames with their arrival times and a
//! given cost per inference, and says which frames become anchors and when each would be ready.
//! Deterministic: the same frames give the same plan. The pictures themselves come from
//! [`windlass_sr::Engine::infer`].

use std::time::Duration;

use windlass_scheduler::{Candidate, Chosen, Scheduler, SchedulerConfig, SchedulerCounters};

/// A frame that becomes an anchor, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedAnchor {
    /// Index of the anchor's frame in the given list.
    pub index: usize,
    /// Time at which the scheduler chose the frame.
    pub chosen_at: Duration,
    /// Time at which inference and encoding would end, with the wait for a device.
    pub ready_at: Duration,
}

/// Runs selection over a recorded stream, or several.
///
/// ```
/// use std::time::Duration;
/// use windlass_enhancer::offline::AnchorPlanner;
/// use windlass_scheduler::{Candidate, SchedulerConfig, Tier};
/// use windlass_types::{Size, StreamId};
///
/// // Ten seconds of a stream with 30 frames a second, its first one a key frame.
/// let frames: Vec<_> = (0..300)
///     .map(|n| Candidate {
///         id: n,
///         stream: StreamId(1),
///         tier: if n == 0 { Tier::Key } else { Tier::Normal },
///         bytes: 900,
///         size: Size::new(320, 180),
///         arrival: Duration::from_millis(33 * n),
///         per_mille: 1000,
///         scale: 2,
///         max_scale: 2,
///     })
///     .collect();
/// let planner = AnchorPlanner::new(SchedulerConfig { anchor_fraction: 0.1, ..Default::default() });
/// let (anchors, _) = planner.plan(&frames, |_| Duration::from_millis(12));
/// assert_eq!(anchors[0].index, 0);
/// assert!(anchors.len() <= 30);
/// assert!(anchors.iter().all(|anchor| anchor.ready_at >= anchor.chosen_at + Duration::from_millis(12)));
/// ```
#[derive(Debug, Clone, Default)]
pub struct AnchorPlanner {
    config: SchedulerConfig,
}

impl AnchorPlanner {
    /// Creates a planner under the given limits.
    pub fn new(config: SchedulerConfig) -> Self {
        AnchorPlanner { config }
    }

    /// Chooses anchors among `frames` (sorted by arrival; ids are not looked at) when an anchor of
    /// a frame costs `cost(frame)`. Anchors come in the order of their choice.
    pub fn plan(
        &self,
        frames: &[Candidate],
        mut cost: impl FnMut(&Candidate) -> Duration,
    ) -> (Vec<PlannedAnchor>, SchedulerCounters) {
        let mut scheduler = Scheduler::new(self.config.clone());
        let mut devices = vec![Duration::ZERO; self.config.devices.max(1) as usize];
        let mut running: Vec<(Duration, Chosen, Duration)> = Vec::new();
        let mut plan = Vec::new();
        let mut chosen = Vec::new();
        let interval = self.config.interval.max(Duration::from_millis(1));
        let mut now = frames.first().map_or(Duration::ZERO, |f| f.arrival) + interval;
        let mut next = 0;
        while next < frames.len() {
            while let Some(frame) = frames.get(next).filter(|f| f.arrival <= now) {
                scheduler.push(Candidate { id: next as u64, ..*frame });
                next += 1;
            }
            running.retain(|(ready_at, job, took)| {
                if *ready_at <= now {
                    scheduler.finished(job, Some(*took));
                }
                *ready_at > now
            });
            chosen.clear();
            scheduler.tick(now, &mut chosen);
            for job in &chosen {
                let index = job.id as usize;
                let took = cost(&frames[index]);
                let Some(device) = devices.iter_mut().min() else { break };
                let ready_at = (*device).max(now) + took;
                *device = ready_at;
                running.push((ready_at, *job, took));
                plan.push(PlannedAnchor { index, chosen_at: now, ready_at });
            }
            now += interval;
        }
        (plan, scheduler.counters())
    }
}

#[cfg(test)]
mod tests {
    use windlass_types::{Size, StreamId};

    use super::*;
    use windlass_scheduler::Tier;

    fn clip(frames: u32) -> Vec<Candidate> {
        (0..frames)
            .map(|n| Candidate {
                id: 0,
                stream: StreamId(1),
                tier: if n == 0 { Tier::Key } else { Tier::Normal },
                bytes: 400 + (n * 37) % 300,
                size: Size::new(320, 180),
                arrival: Duration::from_millis(u64::from(n) * 33),
                per_mille: 1000,
                scale: 2,
                max_scale: 2,
            })
            .collect()
    }

    #[test]
    fn a_plan_starts_with_the_key_frame_and_keeps_to_the_anchor_fraction() {
        let planner = AnchorPlanner::new(SchedulerConfig {
            anchor_fraction: 0.1,
            ..SchedulerConfig::default()
        });
        let (plan, counters) = planner.plan(&clip(300), |_| Duration::from_millis(12));
        assert_eq!(plan[0].index, 0);
        assert!((28..=32).contains(&plan.len()), "{} anchors", plan.len());
        assert_eq!(counters.chosen, plan.len() as u64);
    }

    #[test]
    fn anchors_are_ready_after_their_choice_and_within_the_deadline() {
        let planner = AnchorPlanner::default();
        let frames = clip(300);
        let (plan, _) = planner.plan(&frames, |_| Duration::from_millis(30));
        assert!(!plan.is_empty());
        for anchor in plan {
            assert!(anchor.ready_at >= anchor.chosen_at + Duration::from_millis(30));
            let age = anchor.ready_at.saturating_sub(frames[anchor.index].arrival);
            assert!(age <= SchedulerConfig::default().deadline, "{age:?}");
        }
    }

    #[test]
    fn the_same_frames_give_the_same_plan() {
        let planner = AnchorPlanner::default();
        let cost = |c: &Candidate| Duration::from_micros(u64::from(c.bytes) * 20);
        assert_eq!(planner.plan(&clip(200), cost), planner.plan(&clip(200), cost));
    }
}
