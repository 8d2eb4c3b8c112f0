//! Which layers a publisher really sends, and how many bits they take.

use std::time::{Duration, Instant};

use windlass_types::Layer;

/// A layer without packets for this long is not being sent.
const SILENCE: Duration = Duration::from_secs(1);
/// What one measurement of the rate covers.
const WINDOW: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
struct Meter {
    last: Option<Instant>,
    begun: Option<Instant>,
    bytes: u64,
    bps: Option<u64>,
}

/// The layers of one track.
#[derive(Debug, Default)]
pub struct Layers([Meter; 3]);

impl Layers {
    /// Counts a packet.
    pub fn count(&mut self, layer: Layer, bytes: usize, now: Instant) {
        let meter = &mut self.0[layer as usize];
        if meter.last.is_none_or(|last| now.saturating_duration_since(last) > SILENCE) {
            *meter = Meter::default();
        }
        meter.last = Some(now);
        let begun = *meter.begun.get_or_insert(now);
        meter.bytes += bytes as u64;
        let span = now.saturating_duration_since(begun);
        if span >= WINDOW {
            let bps = (meter.bytes as f64 * 8.0 / span.as_secs_f64()) as u64;
            meter.bps = Some(meter.bps.map_or(bps, |old| u64::midpoint(old, bps)));
            meter.begun = Some(now);
            meter.bytes = 0;
        }
    }

    /// A layer has another name from now on.
    pub fn rename(&mut self, from: Layer, to: Layer) {
        self.0[to as usize] = std::mem::take(&mut self.0[from as usize]);
    }

    /// The rate of a layer in bits per second; `None` when it is not being sent. A layer that has just begun is
    /// taken for what Chromium gives it.
    pub fn rate(&self, layer: Layer, now: Instant) -> Option<u64> {
        let meter = &self.0[layer as usize];
        meter.last.filter(|&last| now.saturating_duration_since(last) <= SILENCE)?;
        let assumed = match layer {
            Layer::Q => 150_000,
            Layer::H => 500_000,
            Layer::F => 1_500_000,
        };
        Some(meter.bps.unwrap_or(assumed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_layer_is_not_offered() {
        let now = Instant::now();
        let mut layers = Layers::default();
        layers.count(Layer::Q, 1000, now);
        assert!(layers.rate(Layer::Q, now + SILENCE).is_some());
        assert!(layers.rate(Layer::Q, now + SILENCE * 2).is_none());
        assert!(layers.rate(Layer::H, now).is_none());
    }

    #[test]
    fn the_rate_is_that_of_the_packets() {
        let now = Instant::now();
        let mut layers = Layers::default();
        for i in 0..200 {
            layers.count(Layer::H, 625, now + Duration::from_millis(10) * i);
        }
        let bps = layers.rate(Layer::H, now + Duration::from_secs(2)).expect("active");
        assert!((450_000..550_000).contains(&bps), "{bps}");
    }
}
