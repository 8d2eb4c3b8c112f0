//! The bitrate of the smallest layer, lowered to what the narrowest subscriber's connection carries.
//!
//! A subscriber's first track is never paused, so a connection that carries less than its smallest layer would show
//! nothing. That layer then costs everybody some quality, but only while such a subscriber is there. (Temporal layers
//! would cost more, and all the time: `lab/notes/links.md`.)

use std::time::{Duration, Instant};

use windlass_types::Bitrate;

/// Share of a subscriber's bandwidth that the layer may use: the rest is for its swings and for retransmissions.
const SHARE: f64 = 0.9;
/// Time constants of the mean of a bandwidth estimate while it falls, and while it rises: on narrow connections probes
/// find more than there is, for moments.
const MEAN_OVER: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(12)];
/// Bandwidth over that of the layer without a limit, beyond which more does not count. Above 1 / [`SHARE`], so that a
/// limit ends.
const MAX_ROOM: f64 = 1.25;
/// The least limit. Chromium sends no layer of 320×180 with less.
const MIN: Bitrate = Bitrate::bps(30_000);
/// Time for which a subscriber must be narrow before the limit falls: an estimate dips for moments.
const LOWER_DELAY: Duration = Duration::from_secs(3);
/// Time for which there must be more bandwidth before the limit rises.
const RAISE_DELAY: Duration = Duration::from_secs(6);
/// Share of the limit by which another one must differ: each costs the publisher a change of its encoder.
const TOLERANCE: f64 = 0.15;

/// The limit of the smallest layer's bitrate.
#[derive(Debug, Default)]
pub(crate) struct NarrowLimit {
    /// `None`: there is none.
    limit: Option<Bitrate>,
    /// Mean bandwidth of the narrowest subscriber in bit/s, and when it was updated; `None`: there is none.
    mean: Option<(f64, Instant)>,
    /// Since when the limit is too high or too low.
    wrong_since: Option<(Instant, bool)>,
}

impl NarrowLimit {
    /// A bitrate, or the limit if that is less.
    pub(crate) fn apply(&self, bitrate: Bitrate) -> Bitrate {
        self.limit.map_or(bitrate, |limit| limit.min(bitrate))
    }

    /// Whether there is a limit.
    pub(crate) fn is_on(&self) -> bool {
        self.limit.is_some()
    }

    /// Takes the bandwidth of the narrowest subscriber that must have the layer (`None`: there is none), the bitrate at
    /// which the layer comes, and what it may have without the limit. Returns whether the limit has changed.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        room: Option<Bitrate>,
        rate: Option<Bitrate>,
        full: Bitrate,
    ) -> bool {
        // A limit begins where the layer as it comes does not fit.
        let needed = |room: &Bitrate| self.is_on() || rate.is_some_and(|rate| rate > *room);
        // A bandwidth far beyond the layer must not count for long once it is gone.
        let room = room.filter(needed).map(|room| room.min(full.mul_f64(MAX_ROOM)));
        self.mean = room.map(|room| (self.mean_with(now, room), now));
        let wanted = self.mean.map(|(mean, _)| Bitrate::bps((mean * SHARE) as u64).max(MIN));
        let wanted = wanted.filter(|wanted| *wanted < full);
        let (held, right) = (self.apply(full), wanted.unwrap_or(full));
        let lowers = right < held;
        let close =
            right.as_bps().abs_diff(held.as_bps()) as f64 <= TOLERANCE * held.as_bps() as f64;
        // A limit that nobody needs ends, however close it is.
        if close && (lowers || wanted.is_some() == self.limit.is_some()) {
            self.wrong_since = None;
            return false;
        }
        let since = match self.wrong_since {
            Some((since, was_lower)) if was_lower == lowers => since,
            _ => now,
        };
        self.wrong_since = Some((since, lowers));
        let delay = if lowers { LOWER_DELAY } else { RAISE_DELAY };
        if now.saturating_duration_since(since) < delay {
            return false;
        }
        (self.limit, self.wrong_since) = (wanted, None);
        true
    }

    /// The mean after another estimate.
    fn mean_with(&self, now: Instant, room: Bitrate) -> f64 {
        let room = room.as_bps() as f64;
        let Some((mean, at)) = self.mean else { return room };
        let span = now.saturating_duration_since(at).as_secs_f64();
        let over = MEAN_OVER[usize::from(room > mean)].as_secs_f64();
        room + (mean - room) * (-span / over).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Bitrate = Bitrate::bps(150_000);

    /// The limit after `seconds` of a bandwidth, told five times a second.
    fn told(limit: &mut NarrowLimit, now: &mut Instant, seconds: u64, room: Option<u64>) -> u64 {
        for _ in 0..5 * seconds {
            *now += Duration::from_millis(200);
            limit.update(*now, room.map(Bitrate::bps), Some(FULL), FULL);
        }
        limit.apply(FULL).as_bps()
    }

    #[test]
    fn the_layer_is_lowered_while_a_subscriber_is_narrow() {
        let (mut limit, mut now) = (NarrowLimit::default(), Instant::now());
        assert_eq!(told(&mut limit, &mut now, 2, Some(100_000)), 150_000, "it may be a dip");
        assert_eq!(told(&mut limit, &mut now, 2, Some(100_000)), 90_000);
        assert_eq!(told(&mut limit, &mut now, 10, Some(95_000)), 90_000, "close enough");
        assert_eq!(told(&mut limit, &mut now, 3, Some(300_000)), 90_000, "it may be a probe");
        assert_eq!(told(&mut limit, &mut now, 7, None), 150_000);
    }

    #[test]
    fn an_estimate_that_swings_counts_by_its_mean() {
        let (mut limit, mut now) = (NarrowLimit::default(), Instant::now());
        for _ in 0..20 {
            told(&mut limit, &mut now, 1, Some(80_000));
            told(&mut limit, &mut now, 1, Some(120_000));
        }
        let limit = limit.apply(FULL).as_bps();
        assert!((70_000..90_000).contains(&limit), "{limit}");
    }

    #[test]
    fn a_layer_that_fits_as_it_comes_is_not_limited() {
        let (mut limit, mut now) = (NarrowLimit::default(), Instant::now());
        for _ in 0..50 {
            now += Duration::from_millis(200);
            let rate = Some(Bitrate::bps(40_000));
            assert!(!limit.update(now, Some(Bitrate::bps(60_000)), rate, FULL));
        }
    }

    #[test]
    fn a_wide_subscriber_does_not_delay_the_limit_for_a_narrow_one() {
        let (mut limit, mut now) = (NarrowLimit::default(), Instant::now());
        assert_eq!(told(&mut limit, &mut now, 10, Some(90_000)), 81_000);
        assert_eq!(told(&mut limit, &mut now, 60, Some(5_000_000)), 150_000);
        assert_eq!(told(&mut limit, &mut now, 5, Some(90_000)), 81_000);
    }

    #[test]
    fn the_limit_has_a_floor() {
        let (mut limit, mut now) = (NarrowLimit::default(), Instant::now());
        assert_eq!(told(&mut limit, &mut now, 4, Some(1000)), 30_000);
    }

    #[test]
    fn a_dip_lowers_nothing() {
        let (mut limit, mut now) = (NarrowLimit::default(), Instant::now());
        for _ in 0..10 {
            assert_eq!(told(&mut limit, &mut now, 2, Some(70_000)), 150_000);
            assert_eq!(told(&mut limit, &mut now, 1, None), 150_000);
        }
    }
}
