//! Settings that an operator may change while the enhancer runs.

use std::sync::Arc;

use parking_lot::RwLock;

use super::{EnhancerConfig, StartError};
use crate::tiles::TileConfig;
use windlass_scheduler::{SchedulerConfig, Terms, promise::promise_of_db};

/// The part of [`EnhancerConfig`] that takes effect at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// Share of the inference threads' time that inference may take, 0 to 1.
    pub compute_cap: f64,
    /// Maximum anchors per frame of a stream, 0 to 1. Streams whose publishers already adapt keep their own.
    pub anchor_fraction: f64,
    /// Promise of the policy `quality-sla`: maximum mean loss in dB.
    pub promise_db: f64,
    /// Quality of the encoded anchors, 1 to 100.
    pub anchor_quality: u8,
    /// Settings of which tiles of a chosen frame are worth sending.
    pub tiles: TileConfig,
    /// Maximum streams decoded at once. After a lower bound is set, streams above it go on.
    pub max_streams: usize,
}

impl EnhancerConfig {
    /// The settings of this configuration that may be changed while the enhancer runs.
    pub fn tuning(&self) -> Tuning {
        Tuning {
            compute_cap: self.compute_cap,
            anchor_fraction: self.anchor_fraction,
            promise_db: self.promise_db,
            anchor_quality: self.anchor_quality,
            tiles: self.tiles,
            max_streams: self.max_streams,
        }
    }

    /// Returns this configuration with another tuning.
    #[must_use]
    pub fn tuned(self, t: Tuning) -> EnhancerConfig {
        EnhancerConfig {
            compute_cap: t.compute_cap,
            anchor_fraction: t.anchor_fraction,
            promise_db: t.promise_db,
            anchor_quality: t.anchor_quality,
            tiles: t.tiles,
            max_streams: t.max_streams,
            ..self
        }
    }
}

/// The tuning as all threads read it. A thread reads it once for each thing that it does.
#[derive(Debug, Clone)]
pub(super) struct Live(Arc<RwLock<Tuning>>);

impl Live {
    pub(super) fn new(config: &EnhancerConfig) -> Live {
        Live(Arc::new(RwLock::new(config.tuning())))
    }

    pub(super) fn get(&self) -> Tuning {
        *self.0.read()
    }

    /// Sets another tuning, unless it contradicts the rest of the configuration.
    pub(super) fn set(&self, config: &EnhancerConfig, tuning: Tuning) -> Result<(), StartError> {
        config.clone().tuned(tuning).validate()?;
        *self.0.write() = tuning;
        Ok(())
    }

    /// Applies the present tuning to the scheduler's configuration.
    pub(super) fn apply(&self, config: &mut SchedulerConfig) {
        let tuning = self.get();
        config.compute_cap = tuning.compute_cap;
        config.anchor_fraction = tuning.anchor_fraction;
        let promise = promise_of_db(tuning.promise_db);
        if (config.terms.promise - promise).abs() > f64::EPSILON {
            config.terms = Terms { promise, ..config.terms };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuning_out_of_range_changes_nothing() {
        let config = EnhancerConfig::default();
        let live = Live::new(&config);
        let tuning = Tuning { compute_cap: 1.5, ..config.tuning() };
        assert!(live.set(&config, tuning).is_err());
        assert_eq!(live.get(), config.tuning());
    }

    #[test]
    fn the_scheduler_works_by_the_last_tuning() {
        let config = EnhancerConfig::default();
        let live = Live::new(&config);
        let mut scheduler = config.scheduler(Vec::new());
        let tuning = Tuning { compute_cap: 0.25, promise_db: 2.0, ..config.tuning() };
        live.set(&config, tuning).expect("in range");
        live.apply(&mut scheduler);
        let expected = config.tuned(tuning).scheduler(Vec::new());
        assert!((scheduler.compute_cap - 0.25).abs() < 1e-9);
        assert!((scheduler.terms.promise - expected.terms.promise).abs() < 1e-9);
    }
}
