//! Which layers a publisher really sends, and how many bits they take.

use std::time::{Duration, Instant};

use windlass_media::Layer;

/// A layer without packets for this long is not being sent.
const SILENCE: Duration = Duration::from_secs(1);
/// Nor is one without them for this long, and for several times its usual pauses, while others of its track go on: browsers code all layers of
/// a frame together, and whoever watches it sees a still picture until another is chosen.
const LEFT_OUT: Duration = Duration::from_millis(400);
/// Of its usual pauses.
const PAUSES: u32 = 4;
/// Packets of others by which they go on.
const OTHERS: u32 = 8;
/// By how much each packet shortens what is taken for the usual pause: those of a second are forgotten after some.
const FORGETS: f64 = 0.97;
/// What one measurement of the rate covers.
const WINDOW: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
struct Meter {
    last: Option<Instant>,
    /// The longest time between two packets lately.
    pause: Duration,
    /// Packets of other layers since the last one.
    others: u32,
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
        let pause = meter.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        meter.pause = meter.pause.mul_f64(FORGETS).max(pause);
        (meter.last, meter.others) = (Some(now), 0);
        let begun = *meter.begun.get_or_insert(now);
        meter.bytes += bytes as u64;
        let span = now.saturating_duration_since(begun);
        if span >= WINDOW {
            let bps = (meter.bytes as f64 * 8.0 / span.as_secs_f64()) as u64;
            meter.bps = Some(meter.bps.map_or(bps, |old| u64::midpoint(old, bps)));
            meter.begun = Some(now);
            meter.bytes = 0;
        }
        for (at, other) in self.0.iter_mut().enumerate() {
            if at != layer as usize {
                other.others = other.others.saturating_add(1);
            }
        }
    }

    /// The rate of a layer in bits per second; `None` when it is not being sent. A layer that has just begun is
    /// taken for what Chromium gives it.
    pub fn rate(&self, layer: Layer, now: Instant) -> Option<u64> {
        let meter = &self.0[layer as usize];
        let most = if meter.others >= OTHERS {
            (meter.pause * PAUSES).clamp(LEFT_OUT, SILENCE)
        } else {
            SILENCE
        };
        meter.last.filter(|&last| now.saturating_duration_since(last) <= most)?;
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

    /// Frames of both layers, `every` so long: the upper one ends at `end`, and is said to at the time that is given.
    fn ends(every: Duration, end: Duration) -> Duration {
        let begun = Instant::now();
        let mut layers = Layers::default();
        for i in 1.. {
            let now = begun + every * i;
            for _ in 0..3 {
                layers.count(Layer::Q, 200, now);
            }
            if every * i <= end {
                layers.count(Layer::H, 1000, now);
            } else if layers.rate(Layer::H, now).is_none() {
                return (every * i).saturating_sub(end);
            }
        }
        unreachable!("the loop has no end")
    }

    #[test]
    fn a_layer_that_ends_while_others_go_on_is_missed_sooner() {
        let second = Duration::from_secs(1);
        assert!(ends(second / 30, second) < LEFT_OUT + second / 10);
        assert!(ends(second / 5, second) > 3 * second / 4, "its pauses are longer");
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
