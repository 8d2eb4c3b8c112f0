//! Devices, and random numbers.

use std::time::Duration;

use super::scenario::Accelerator;

/// Random numbers from a seed (SplitMix64).
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// A random number from 0 to 1, without 1.
    pub(super) fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A random number about 1: the sum of some shares, with a standard deviation of `spread`.
    pub(super) fn about_one(&mut self, spread: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| self.share()).sum();
        (1.0 + spread * (sum - 6.0)).max(0.05)
    }
}

/// An accelerator at work.
#[derive(Debug, Clone)]
pub(super) struct Device {
    spec: Accelerator,
    /// When the device is free.
    pub free: Duration,
    /// The networks that the device has loaded, the one used last at the end.
    pub resident: Vec<usize>,
    pub busy: Duration,
    pub done: u64,
}

impl Device {
    pub(super) fn new(spec: &Accelerator) -> Self {
        Device {
            spec: spec.clone(),
            free: Duration::ZERO,
            resident: Vec::new(),
            busy: Duration::ZERO,
            done: 0,
        }
    }

    /// Whether the device is there at a time.
    pub(super) fn works_at(&self, time: Duration) -> bool {
        let lost = self.spec.fails_at_s.is_some_and(|at| time.as_secs_f64() >= at);
        let back = self.spec.returns_at_s.is_some_and(|at| time.as_secs_f64() >= at);
        !lost || back
    }

    /// Makes a lost device free at the time when it is back.
    pub(super) fn settle(&mut self) {
        if !self.works_at(self.free) {
            self.resident.clear();
            let back = self.spec.returns_at_s.and_then(|s| Duration::try_from_secs_f64(s).ok());
            self.free = back.unwrap_or(Duration::MAX);
        }
    }

    /// When the device is lost within a span, if it is.
    pub(super) fn fails_between(&self, from: Duration, to: Duration) -> Option<Duration> {
        let at = Duration::try_from_secs_f64(self.spec.fails_at_s?).ok()?;
        (from <= at && at < to).then_some(at)
    }

    /// Loses the device, and the networks that it had loaded.
    pub(super) fn fail(&mut self, at: Duration) {
        self.free = at;
        self.settle();
    }

    pub(super) fn has(&self, network: usize) -> bool {
        self.resident.contains(&network)
    }

    /// Time for work of so many seconds on a device of speed 1, by a network that takes `load_s` more to load than
    /// others.
    pub(super) fn takes(
        &self,
        seconds: f64,
        network: usize,
        load_s: f64,
        random: &mut Random,
    ) -> Duration {
        let load = if self.has(network) { 0.0 } else { self.spec.load_ms / 1e3 + load_s };
        let seconds = seconds / self.spec.speed * random.about_one(self.spec.spread) + load;
        Duration::from_secs_f64(seconds.clamp(0.0, 3_600.0))
    }

    pub(super) fn work(&mut self, took: Duration, network: usize) {
        self.free += took;
        self.busy += took;
        self.done += 1;
        // The network that was not used for the longest time makes room.
        self.resident.retain(|&other| other != network);
        if self.resident.len() >= self.spec.keeps {
            self.resident.remove(0);
        }
        self.resident.push(network);
    }
}
