//! Simulates by which networks the anchors of many equal publishers would be made. It runs the scheduler itself,
//! without pictures.
//!
//! For operators who want to know what a machine can do before anyone calls (`--choose`). Deterministic: each anchor
//! takes the time that the networks' costs say.

use std::time::Duration;

use windlass_scheduler::{Candidate, Scheduler, SchedulerConfig, Tier};
use windlass_types::{Layer, Size, StreamId};

/// Simulated time before the result is read, so that the networks have settled.
const SETTLE: Duration = Duration::from_secs(4);
/// Simulated time after [`SETTLE`] during which anchors are counted.
const COUNT: Duration = Duration::from_secs(4);
/// Frames per second of each publisher.
const FPS: u32 = 30;
/// Bytes of each frame: 150 kbit/s.
const BYTES: u32 = 625;

/// Result of a simulation with many equal publishers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sustained {
    /// Number of publishers that each network serves.
    pub streams: Vec<usize>,
    /// Anchors per second of all publishers together.
    pub anchors_per_s: f64,
    /// Share of all inference threads' time that making the anchors takes.
    pub share: f64,
}

/// Simulates `publishers` publishers, each with a quarter layer of `size`, for some seconds.
pub(super) fn sustained(config: &SchedulerConfig, publishers: u32, size: Size) -> Sustained {
    let mut scheduler = Scheduler::new(config.clone());
    let frame = Duration::from_secs(1) / FPS;
    let (mut now, mut sent, mut id) = (Duration::ZERO, Duration::ZERO, 0);
    let (mut chosen, mut anchors, mut taken) = (Vec::new(), 0u32, Duration::ZERO);
    while now < SETTLE + COUNT {
        now += config.interval.max(Duration::from_millis(1));
        while sent <= now {
            for stream in (0..publishers).map(StreamId) {
                // Cameras do not keep step.
                let arrival = sent + frame * (stream.0 % 8) / 8;
                scheduler.push(Candidate {
                    id,
                    stream,
                    tier: if sent.is_zero() { Tier::Key } else { Tier::Normal },
                    bytes: BYTES,
                    size,
                    arrival: arrival.min(now),
                    per_mille: 1000,
                    scale: scheduler.scale(stream).unwrap_or_else(|| smallest_scale(config)),
                    max_scale: Layer::Q.max_scale().into(),
                });
                id += 1;
            }
            sent += frame;
        }
        chosen.clear();
        scheduler.tick(now, &mut chosen);
        for job in &chosen {
            scheduler.finished(job, Some(job.cost));
            if now > SETTLE {
                (anchors, taken) = (anchors + 1, taken + job.cost);
            }
        }
    }
    let counted = COUNT.as_secs_f64();
    Sustained {
        streams: scheduler.assigned().to_vec(),
        anchors_per_s: f64::from(anchors) / counted,
        share: taken.as_secs_f64() / (counted * f64::from(config.devices.max(1))),
    }
}

fn smallest_scale(config: &SchedulerConfig) -> usize {
    config.networks.first().map_or(2, |network| network.scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_scheduler::NetworkCost;

    const SIZE: Size = Size::new(320, 180);

    /// [`SIZE`] takes 2.9, 11.5 and 5.8 ms.
    fn config() -> SchedulerConfig {
        let network = |scale, nanos| NetworkCost { scale, per_pixel: Duration::from_nanos(nanos) };
        let networks = vec![network(2, 50), network(2, 200), network(4, 100)];
        SchedulerConfig { networks, ..SchedulerConfig::default() }
    }

    #[test]
    fn few_publishers_have_the_best_network_and_many_a_cheap_one() {
        let few = sustained(&config(), 2, SIZE);
        assert_eq!(few.streams, [0, 0, 2]);
        assert!((1.5..3.0).contains(&few.anchors_per_s), "{few:?}");
        let many = sustained(&config(), 200, SIZE);
        assert_eq!(many.streams.iter().sum::<usize>(), 200);
        assert!(many.streams[0] > 100, "{many:?}");
        assert!(many.share <= 1.0, "{many:?}");
    }

    #[test]
    fn two_threads_serve_more_publishers() {
        let of_two = SchedulerConfig { devices: 2, ..config() };
        let (one, two) = (sustained(&config(), 120, SIZE), sustained(&of_two, 120, SIZE));
        assert!(two.streams[2] > one.streams[2], "{one:?}, {two:?}");
    }

    #[test]
    fn no_publishers_are_no_load() {
        let none = sustained(&config(), 0, SIZE);
        assert_eq!((none.streams, none.anchors_per_s, none.share), (vec![0; 3], 0.0, 0.0));
    }
}
