//! The number of workers that an autoscaler keeps: Kubernetes' rule for a metric by replica, with the chart's
//! settings.
//!
//! In: the wanted number, at each evaluation. Out: the number that there should be. Source: the
//! HorizontalPodAutoscaler's documentation (tolerance, stabilisation, policies), which KEDA uses too;
//! `deploy/helm/windlass/templates/autoscaling.yaml` sets the same.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Maximum distance of the ratio from 1 that changes nothing.
const TOLERANCE: f64 = 0.1;
/// Maximum number of workers that one evaluation adds, unless doubling their number adds more.
const UP: u32 = 4;
/// Minimum time from one removal of a worker to the next, in seconds.
const DOWN_EVERY_S: u64 = 60;

/// An autoscaler's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Scaling {
    /// Share of its accelerators' time that each worker is to have given out.
    pub target: f64,
    /// Number of publishers that each worker is to have: as many as its CPU can decode.
    pub streams: f64,
    /// Seconds between two evaluations of the rule.
    pub poll_s: u64,
    /// Time for which an idle worker is kept, in seconds.
    pub cooldown_s: u64,
    /// Minimum number of workers.
    pub min: u32,
    /// Maximum number of workers.
    pub max: u32,
}

impl Default for Scaling {
    fn default() -> Self {
        Scaling { target: 0.7, streams: 50.0, poll_s: 15, cooldown_s: 300, min: 1, max: 1_000 }
    }
}

/// An autoscaler.
#[derive(Debug, Clone)]
pub(crate) struct Autoscaler {
    scaling: Scaling,
    /// The numbers that were wanted at the evaluations of the last `cooldown_s`, with their seconds.
    wanted: VecDeque<(u64, u32)>,
    /// The second at which a worker was last removed.
    fell: Option<u64>,
}

impl Autoscaler {
    /// An autoscaler that has not evaluated anything yet.
    pub(crate) fn new(scaling: &Scaling) -> Self {
        Autoscaler { scaling: scaling.clone(), wanted: VecDeque::new(), fell: None }
    }

    /// Evaluates the rule at a second, and returns how many workers there should be. `current` workers exist, those
    /// that are starting included. `ratio` times as many would just do; rounded up, that is `wanted`.
    pub(crate) fn look(&mut self, now_s: u64, current: u32, ratio: f64, wanted: u32) -> u32 {
        let Scaling { cooldown_s, min, max, .. } = self.scaling;
        let steady = (ratio - 1.0).abs() <= TOLERANCE;
        let wanted = if steady { current } else { wanted };
        self.wanted.push_back((now_s, wanted));
        while self.wanted.front().is_some_and(|&(then, _)| now_s - then > cooldown_s) {
            self.wanted.pop_front();
        }
        let bounded = |count: u32| count.clamp(min, max.max(min));
        if wanted > current {
            return bounded(wanted.min((current * 2).max(current + UP)));
        }
        let lately = self.wanted.iter().map(|&(_, wanted)| wanted).max().unwrap_or(current);
        let may_fall = self.fell.is_none_or(|then| now_s - then >= DOWN_EVERY_S);
        if lately < current && may_fall {
            self.fell = Some(now_s);
            return bounded(current - 1);
        }
        bounded(current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(scaler: &mut Autoscaler, now_s: u64, current: u32, wanted: u32) -> u32 {
        scaler.look(now_s, current, f64::from(wanted) / f64::from(current), wanted)
    }

    #[test]
    fn more_come_at_once_and_no_more_than_twice_as_many() {
        let mut scaler = Autoscaler::new(&Scaling::default());
        assert_eq!(look(&mut scaler, 0, 1, 40), 5);
        assert_eq!(look(&mut scaler, 15, 5, 40), 10);
        assert_eq!(look(&mut scaler, 30, 10, 12), 12);
    }

    #[test]
    fn they_go_one_by_one_after_nobody_has_wanted_them_for_a_while() {
        let mut scaler = Autoscaler::new(&Scaling { cooldown_s: 120, ..Scaling::default() });
        let (mut current, mut fell) = (look(&mut scaler, 0, 8, 8), Vec::new());
        for now_s in (15..600).step_by(15) {
            let after = look(&mut scaler, now_s, current, 4);
            if after < current {
                fell.push(now_s);
            }
            current = after;
        }
        assert_eq!((fell, current), (vec![135, 195, 255, 315], 4));
    }

    #[test]
    fn a_tenth_more_or_less_changes_nothing() {
        let mut scaler = Autoscaler::new(&Scaling { cooldown_s: 0, ..Scaling::default() });
        assert_eq!(scaler.look(0, 20, 1.09, 22), 20);
        assert_eq!(scaler.look(60, 20, 0.92, 19), 20);
        assert_eq!(scaler.look(120, 20, 1.2, 24), 24);
    }

    #[test]
    fn there_are_never_fewer_than_the_least_nor_more_than_the_most() {
        let scaling = Scaling { min: 2, max: 6, cooldown_s: 0, ..Scaling::default() };
        let mut scaler = Autoscaler::new(&scaling);
        assert_eq!(look(&mut scaler, 0, 4, 100), 6);
        assert_eq!(look(&mut scaler, 100, 2, 0), 2);
    }

    #[test]
    fn the_chart_scales_as_the_simulation_does() {
        let values = include_str!("../../../../deploy/helm/windlass/values.yaml");
        let values: serde_json::Value = serde_saphyr::from_str(values).unwrap();
        let (said, played) = (&values["autoscaling"], Scaling::default());
        assert_eq!(said["target"], played.target);
        assert_eq!(said["streams"].as_f64(), Some(played.streams));
        assert_eq!(said["cooldownS"], played.cooldown_s);
        assert_eq!(said["keda"]["pollingS"], played.poll_s);
        assert_eq!(said["min"], played.min);
    }
}
