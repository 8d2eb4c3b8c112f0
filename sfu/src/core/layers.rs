//! Which simulcast layers a publisher sends, and their bitrates.

use std::time::{Duration, Instant};

use windlass_types::{Bitrate, Layer};

use super::publisher_params::SDK_MAX;

/// Time without packets after which a layer counts as not sent.
const SILENCE: Duration = Duration::from_secs(1);
/// Length of one bitrate measurement. The rate is the mean of the last one and the rate before it.
const WINDOW: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
struct Meter {
    last_packet: Option<Instant>,
    window_begin: Option<Instant>,
    window_bytes: u64,
    rate: Option<Bitrate>,
}

/// The layers of one track.
#[derive(Debug, Default)]
pub(super) struct Layers([Meter; 3]);

impl Layers {
    /// Counts a packet.
    pub(super) fn count(&mut self, layer: Layer, bytes: usize, now: Instant) {
        let meter = &mut self.0[layer as usize];
        if meter.last_packet.is_none_or(|last| now.saturating_duration_since(last) > SILENCE) {
            *meter = Meter::default();
        }
        meter.last_packet = Some(now);
        let begin = *meter.window_begin.get_or_insert(now);
        meter.window_bytes += bytes as u64;
        let span = now.saturating_duration_since(begin);
        if span >= WINDOW {
            let bps = (meter.window_bytes as f64 * 8.0 / span.as_secs_f64()) as u64;
            let mean = meter.rate.map_or(bps, |old| u64::midpoint(old.as_bps(), bps));
            meter.rate = Some(Bitrate::bps(mean));
            meter.window_begin = Some(now);
            meter.window_bytes = 0;
        }
    }

    /// Moves the measurements of one layer to another: a single encoding has changed its size.
    pub(super) fn rename(&mut self, from: Layer, to: Layer) {
        self.0[to as usize] = std::mem::take(&mut self.0[from as usize]);
    }

    /// The bitrate of a layer; `None` if it is not sent. Before the first measurement, what Chromium gives the layer.
    pub(super) fn rate(&self, layer: Layer, now: Instant) -> Option<Bitrate> {
        let meter = &self.0[layer as usize];
        meter.last_packet.filter(|&last| now.saturating_duration_since(last) <= SILENCE)?;
        Some(meter.rate.unwrap_or(SDK_MAX[layer as usize]))
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
        let bps = layers.rate(Layer::H, now + Duration::from_secs(2)).expect("active").as_bps();
        assert!((450_000..550_000).contains(&bps), "{bps}");
    }
}
