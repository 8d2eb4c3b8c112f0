//! Which network runs on the pictures of a rendition: the largest for which there is time between two frames.
//!
//! A rendition begins without one, and measures how long its pictures take. Once a second the next larger network is
//! tried on one picture. It goes on if what it took, and the encoder, leave some of the time between frames. One that
//! takes more, or with which many frames are late, gives way to the next smaller within two seconds, and is not tried
//! for a while.

use std::time::{Duration, Instant};

use windlass_transcode::{Effort, Tier, Work};

/// The networks, from none to the largest.
const NETWORKS: [Option<Tier>; 3] = [None, Some(Tier::Xxs), Some(Tier::Xs)];
/// Pictures between two decisions: those of a second.
const WINDOW: u32 = 30;
/// Late frames of these for which a network gives way.
const MANY_LATE: u32 = 8;
/// Time between frames beyond which there was a pause.
const LONG: Duration = Duration::from_millis(500);
/// Share of the time between frames that a picture may take for its network to go on.
const MAX_SHARE: f64 = 0.8;
/// Decisions after which a network that took too long is tried again: those of half a minute.
const PAUSE: u32 = 30;
/// Weight of a new measurement in a mean.
const WEIGHT: f64 = 0.1;

/// Chooses the network.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    last: Option<Instant>,
    /// Means, in seconds, of the time between frames and of the encoder's work on one.
    interval: Mean,
    encode: Mean,
    /// The network of now, as a place in [`NETWORKS`].
    at: usize,
    /// Work of rebuilding a picture with it.
    rebuild: Mean,
    /// Whether the next picture tries the next larger network.
    tries: bool,
    /// Frames since the last decision, and the late ones of them.
    frames: u32,
    late: u32,
    /// Decisions until a larger network may be tried.
    pause: u32,
}

impl Pace {
    /// The network for a frame that arrived then.
    pub(crate) fn begin(&mut self, arrival: Instant) -> Option<Tier> {
        let since = self.last.replace(arrival).map(|last| arrival.saturating_duration_since(last));
        if let Some(since) = since.filter(|since| *since < LONG) {
            self.interval.add(since);
        }
        NETWORKS[self.at + usize::from(self.tries)]
    }

    /// Takes what a frame took. A late frame says no more than that it is late.
    pub(crate) fn end(&mut self, effort: Effort, work: Work) {
        self.frames += 1;
        self.late += u32::from(!effort.encode);
        if let Some(encode) = work.encode.filter(|_| effort.encode) {
            self.encode.add(encode);
            if std::mem::take(&mut self.tries) {
                self.tried(work.rebuild);
            } else {
                self.rebuild.add(work.rebuild);
            }
        }
        if self.frames < WINDOW {
            return;
        }
        let many_late = self.late >= MANY_LATE;
        (self.frames, self.late) = (0, 0);
        self.pause = self.pause.saturating_sub(1);
        if self.at > 0 && (many_late || !self.fits(self.rebuild.get())) {
            self.set(self.at - 1);
            self.pause = PAUSE;
        } else {
            self.tries = self.pause == 0 && !many_late && self.at + 1 < NETWORKS.len();
        }
    }

    /// Takes how long it took to rebuild a picture with the next larger network.
    fn tried(&mut self, rebuild: Duration) {
        if self.fits(rebuild.as_secs_f64()) {
            self.set(self.at + 1);
            self.rebuild.add(rebuild);
        } else {
            self.pause = PAUSE;
        }
    }

    /// Whether rebuilding in so many seconds leaves time.
    fn fits(&self, rebuild: f64) -> bool {
        rebuild + self.encode.get() <= MAX_SHARE * self.interval.get()
    }

    fn set(&mut self, at: usize) {
        (self.at, self.rebuild, self.tries) = (at, Mean::default(), false);
    }
}

/// A mean in which later values weigh more.
#[derive(Debug, Default)]
struct Mean(Option<f64>);

impl Mean {
    fn add(&mut self, value: Duration) {
        let value = value.as_secs_f64();
        self.0 = Some(self.0.map_or(value, |mean| mean + WEIGHT * (value - mean)));
    }

    fn get(&self) -> f64 {
        self.0.unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The networks of ten seconds of pictures that come every 33 ms, on a machine whose work takes `slow` times as
    /// long as on another: 10 ms for the encoder, and 1, 5 or 15 for the networks.
    fn play(pace: &mut Pace, now: &mut Instant, slow: f64) -> Vec<Option<Tier>> {
        let mut networks = Vec::new();
        for _ in 0..300 {
            *now += Duration::from_millis(33);
            let network = pace.begin(*now);
            let cost = match network {
                None => 0.001,
                Some(Tier::Xxs) => 0.005,
                Some(_) => 0.015,
            };
            let (rebuild, encode) = (slow * cost, Some(Duration::from_secs_f64(slow * 0.01)));
            let effort = Effort { network, encode: true };
            pace.end(effort, Work { rebuild: Duration::from_secs_f64(rebuild), encode });
            networks.push(network);
        }
        networks
    }

    #[test]
    fn the_largest_network_runs_that_leaves_time() {
        for (slow, largest) in [(0.5, 2), (1.0, 2), (1.5, 1), (2.0, 0), (5.0, 0)] {
            let (mut pace, mut now) = (Pace::default(), Instant::now());
            let networks = play(&mut pace, &mut now, slow);
            assert_eq!(networks.last(), Some(&NETWORKS[largest]), "{slow}");
            let above = NETWORKS.get(largest + 1);
            let tried = networks.iter().filter(|network| Some(*network) == above).count();
            assert!(tried <= 1, "{tried} times at {slow}");
        }
    }

    #[test]
    fn a_machine_that_gets_busy_ends_the_network_within_a_second_or_two_and_it_comes_back() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        play(&mut pace, &mut now, 1.0);
        let busy = play(&mut pace, &mut now, 2.5);
        let ended = busy.iter().position(Option::is_none);
        assert!(ended.is_some_and(|at| at < 75), "{ended:?}");
        for _ in 0..5 {
            play(&mut pace, &mut now, 1.0);
        }
        assert_eq!(play(&mut pace, &mut now, 1.0).last(), Some(&NETWORKS[2]));
    }

    #[test]
    fn late_frames_end_a_network_and_pauses_say_nothing_of_the_time_between_frames() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        play(&mut pace, &mut now, 1.0);
        now += Duration::from_secs(60);
        play(&mut pace, &mut now, 1.0);
        assert!(pace.interval.get() < 0.034, "{}", pace.interval.get());
        for _ in 0..2 * WINDOW {
            now += Duration::from_millis(33);
            pace.begin(now);
            let late = Effort { network: None, encode: false };
            pace.end(late, Work { rebuild: Duration::from_millis(1), encode: None });
        }
        assert_eq!(pace.at, 0);
    }
}
