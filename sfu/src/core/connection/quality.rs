//! The quality of one participant's connection, as its server measures it.
//!
//! Once a second [`ConnectionMeter::assess`] evaluates the signs of that second. The worst of them counts:
//!
//! | sign | fair | poor | lost |
//! | --- | --- | --- | --- |
//! | packets lost on the uplink or on the downlink, before repairs: mean of about two seconds | [`FAIR_LOSS`] | [`POOR_LOSS`] | |
//! | round trip between server and client: mean of about a second | [`FAIR_RTT`] | [`POOR_RTT`] | |
//! | layers above the largest one that comes, which are asked for and do not come | one | two; or one, and what comes is starved | |
//! | downlink | its estimate is below half of what the best rungs take | a video is paused | |
//! | nothing comes from the client | | | for [`SILENCE`] |
//!
//! A browser with a narrow uplink loses few packets: it sends fewer layers. So layers count. Asked for are the layers
//! that the client says that it may send (or has sent), without those that nobody needs.
//!
//! The reported quality has hysteresis, so that it does not flicker. It gets worse after [`WORSE_AFTER`] worse
//! assessments in a row, and better after [`BETTER_AFTER`] better ones. It changes at most once in [`MIN_INTERVAL`].
//! `lost` is reported at once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use windlass_types::{Bitrate, ConnectionQuality};

use crate::core::publisher::dynacast::STARVED;

/// Loss (0 to 1) from which on pictures suffer.
const FAIR_LOSS: f64 = 0.02;
/// Loss (0 to 1) from which on speech suffers too.
const POOR_LOSS: f64 = 0.08;
/// Weight of one feedback in the mean of the loss: with ten feedbacks a second a time constant of two seconds.
const LOSS_WEIGHT: f64 = 0.05;
/// Round trip that is heard in a conversation (two of them are between two people). With up to 250 ms of it the client
/// may hold back its feedback.
const FAIR_RTT: Duration = Duration::from_millis(400);
/// Round trip with which people begin to speak at the same time.
const POOR_RTT: Duration = Duration::from_millis(800);
/// Weight of one feedback in the mean of the round trip.
const RTT_WEIGHT: f64 = 0.1;
/// Time without anything from the client after which the connection is lost. Clients send something each second.
const SILENCE: Duration = Duration::from_secs(5);
/// Time after the connection came up in which nothing is assessed: estimates and layers begin low.
const SETTLING: Duration = Duration::from_secs(3);
/// Number of assessments in a row that make the reported quality worse.
const WORSE_AFTER: usize = 3;
/// Number of assessments in a row that make the reported quality better.
const BETTER_AFTER: usize = 5;
/// Minimum time between two changes of the reported quality.
const MIN_INTERVAL: Duration = Duration::from_secs(2);

/// Signs of a connection's quality beside loss and round trip.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Signs {
    /// Time since anything came from the client.
    pub silent: Duration,
    /// Shortfall of the worst of the client's published videos.
    pub uplink: Shortfall,
    /// Desired bitrate against the downlink estimate.
    pub downlink: Fit,
}

/// Layers of one video that its publisher does not send though they are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shortfall {
    /// Number of layers above the largest one that comes, of those that are asked for.
    pub missing: usize,
    /// Whether the largest bitrate of the layers that come is at most [`STARVED`], so that the picture hardly moves.
    pub starved: bool,
}

impl Shortfall {
    /// A shortfall by layer, smallest first: whether the layer is asked for (`asked`), and the bitrate that comes
    /// (`sent`).
    pub(crate) fn new(asked: [bool; 3], sent: [Option<Bitrate>; 3]) -> Shortfall {
        // Where nothing comes, there may be nothing to send: a screen that stands still.
        let Some(largest) = sent.iter().rposition(Option::is_some) else {
            return Shortfall::default();
        };
        Shortfall {
            missing: asked[largest + 1..].iter().filter(|&&asked| asked).count(),
            starved: sent.into_iter().flatten().max().is_some_and(|rate| rate <= STARVED),
        }
    }

    fn quality(self) -> ConnectionQuality {
        match self.missing {
            0 => ConnectionQuality::Good,
            1 if !self.starved => ConnectionQuality::Fair,
            _ => ConnectionQuality::Poor,
        }
    }
}

/// Desired bitrate of a subscriber against its downlink estimate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The downlink carries at least half of what the best rungs take.
    #[default]
    Fits,
    /// The downlink carries less than half of what the best rungs take.
    Half,
    /// The downlink does not carry the lowest rung of each video.
    Paused,
}

impl Fit {
    /// Compares the downlink estimate (`available`, if there is one) with the bitrate of the best rungs (`best`).
    /// `paused`: a video is paused.
    pub(crate) fn new(paused: bool, available: Option<Bitrate>, best: Bitrate) -> Fit {
        match available {
            _ if paused => Fit::Paused,
            Some(available) if available < best.mul_f64(0.5) => Fit::Half,
            _ => Fit::Fits,
        }
    }

    fn quality(self) -> ConnectionQuality {
        match self {
            Fit::Fits => ConnectionQuality::Good,
            Fit::Half => ConnectionQuality::Fair,
            Fit::Paused => ConnectionQuality::Poor,
        }
    }
}

/// Measures the quality of one connection; the module's documentation has its method.
#[derive(Debug, Default)]
pub(crate) struct ConnectionMeter {
    uplink_loss: f64,
    downlink_loss: f64,
    /// Mean of the round trip, in seconds; `None` before the first.
    rtt: Option<f64>,
    /// Time of the first assessment.
    since: Option<Instant>,
    /// The last assessments, at most [`BETTER_AFTER`].
    recent: VecDeque<ConnectionQuality>,
    reported: Option<(Instant, ConnectionQuality)>,
}

impl ConnectionMeter {
    /// Takes what the stack has measured since the last feedback. Where nothing was sent, nothing was lost.
    pub(crate) fn on_feedback(
        &mut self,
        uplink_loss: Option<f32>,
        downlink_loss: Option<f32>,
        rtt: Option<Duration>,
    ) {
        for (mean, loss) in
            [(&mut self.uplink_loss, uplink_loss), (&mut self.downlink_loss, downlink_loss)]
        {
            *mean += (f64::from(loss.unwrap_or(0.0)) - *mean) * LOSS_WEIGHT;
        }
        if let Some(rtt) = rtt.map(|rtt| rtt.as_secs_f64()) {
            let mean = self.rtt.unwrap_or(rtt);
            self.rtt = Some(mean + (rtt - mean) * RTT_WEIGHT);
        }
    }

    /// Assesses the connection, once a second while it is up. Returns its quality if that has changed.
    pub(crate) fn assess(&mut self, now: Instant, signs: Signs) -> Option<ConnectionQuality> {
        let since = *self.since.get_or_insert(now);
        if now.saturating_duration_since(since) < SETTLING {
            return None;
        }
        let quality = self.quality(signs);
        if self.recent.len() == BETTER_AFTER {
            self.recent.pop_front();
        }
        self.recent.push_back(quality);
        let next = self.next(now, quality)?;
        self.reported = Some((now, next));
        Some(next)
    }

    /// The quality that was last reported; `None`: none yet.
    pub(crate) fn last_sent(&self) -> Option<ConnectionQuality> {
        self.reported.map(|(_, quality)| quality)
    }

    fn quality(&self, signs: Signs) -> ConnectionQuality {
        if signs.silent >= SILENCE {
            return ConnectionQuality::Lost;
        }
        let level = |value: f64, fair: f64, poor: f64| match value {
            value if value >= poor => ConnectionQuality::Poor,
            value if value >= fair => ConnectionQuality::Fair,
            _ => ConnectionQuality::Good,
        };
        let loss = level(self.uplink_loss.max(self.downlink_loss), FAIR_LOSS, POOR_LOSS);
        let (fair, poor) = (FAIR_RTT.as_secs_f64(), POOR_RTT.as_secs_f64());
        let rtt = level(self.rtt.unwrap_or(0.0), fair, poor);
        loss.max(rtt).max(signs.uplink.quality()).max(signs.downlink.quality())
    }

    /// The quality to report now, if it differs from the one last reported.
    fn next(&self, now: Instant, quality: ConnectionQuality) -> Option<ConnectionQuality> {
        let last = |count: usize| self.recent.iter().rev().take(count).copied();
        let enough = |count: usize| self.recent.len() >= count;
        // The best of the last assessments, and the worst: all of them are at least that bad, or at least that good.
        let at_least = last(WORSE_AFTER).min().filter(|_| enough(WORSE_AFTER));
        let at_most = last(BETTER_AFTER).max().filter(|_| enough(BETTER_AFTER));
        let Some((at, reported)) = self.reported else {
            return at_least;
        };
        if quality == ConnectionQuality::Lost {
            return (reported != quality).then_some(quality);
        }
        if now.saturating_duration_since(at) < MIN_INTERVAL {
            return None;
        }
        let worse = at_least.filter(|quality| *quality > reported);
        worse.or(at_most.filter(|quality| *quality < reported))
    }
}

#[cfg(test)]
mod tests {
    use windlass_types::ConnectionQuality::{Fair, Good, Lost, Poor};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A connection in a time of its own.
    struct Connection {
        meter: ConnectionMeter,
        now: Instant,
    }

    impl Connection {
        fn new() -> Connection {
            Connection { meter: ConnectionMeter::default(), now: Instant::now() }
        }

        /// A connection that is known to be good.
        fn good() -> Connection {
            let mut connection = Connection::new();
            connection.run(8, Signs::default(), 0.0, 0.0);
            assert_eq!(connection.meter.last_sent(), Some(Good));
            connection
        }

        /// Runs some seconds; returns what was told, and in which of them.
        fn run(
            &mut self,
            seconds: u32,
            signs: Signs,
            up: f32,
            down: f32,
        ) -> Vec<(u32, ConnectionQuality)> {
            let mut reported = Vec::new();
            for second in 1..=seconds {
                self.now += SECOND;
                for _ in 0..10 {
                    self.meter.on_feedback(Some(up), Some(down), Some(SECOND / 20));
                }
                reported
                    .extend(self.meter.assess(self.now, signs).map(|quality| (second, quality)));
            }
            reported
        }
    }

    fn missing(missing: usize, starved: bool) -> Signs {
        Signs { uplink: Shortfall { missing, starved }, ..Signs::default() }
    }

    #[test]
    fn it_is_told_soon_after_the_beginning_and_then_not_again() {
        let mut connection = Connection::new();
        assert_eq!(connection.run(60, Signs::default(), 0.0, 0.0), [(6, Good)]);
    }

    #[test]
    fn losses_of_either_direction_make_it_worse_and_it_is_good_again_without() {
        for (up, down) in [(0.04, 0.0), (0.0, 0.04)] {
            let mut connection = Connection::good();
            let reported = connection.run(20, Signs::default(), up, down);
            assert!(matches!(reported[..], [(4..=6, Fair)]), "{reported:?}");
            let reported = connection.run(20, Signs::default(), 0.0, 0.0);
            assert!(matches!(reported[..], [(5..=8, Good)]), "{reported:?}");
        }
        let reported = Connection::good().run(20, Signs::default(), 0.2, 0.0);
        assert_eq!(reported.last().map(|(_, quality)| *quality), Some(Poor), "{reported:?}");
    }

    #[test]
    fn single_losses_and_single_bad_seconds_are_not_told() {
        let mut connection = Connection::good();
        for _ in 0..10 {
            assert_eq!(connection.run(1, Signs::default(), 0.05, 0.0), []);
            assert_eq!(connection.run(5, Signs::default(), 0.0, 0.0), []);
            assert_eq!(connection.run(2, missing(2, true), 0.0, 0.0), []);
            assert_eq!(connection.run(5, Signs::default(), 0.0, 0.0), []);
        }
    }

    #[test]
    fn what_flickers_is_told_as_the_worse_of_it() {
        let mut connection = Connection::good();
        assert_eq!(connection.run(9, missing(2, false), 0.0, 0.0), [(3, Poor)]);
        for _ in 0..10 {
            assert_eq!(connection.run(4, Signs::default(), 0.0, 0.0), []);
            assert_eq!(connection.run(1, missing(2, false), 0.0, 0.0), []);
        }
        assert_eq!(connection.run(9, Signs::default(), 0.0, 0.0), [(5, Good)]);
    }

    #[test]
    fn layers_that_are_asked_for_and_do_not_come_make_it_worse() {
        let q = [Some(Bitrate::bps(120_000)), None, None];
        let starved = [Some(Bitrate::bps(40_000)), None, None];
        let h = [None, Some(Bitrate::bps(300_000)), None];
        let quality = |asked, sent| Shortfall::new(asked, sent).quality();
        assert_eq!(quality([true; 3], q), Poor);
        assert_eq!(quality([true, true, false], q), Fair);
        assert_eq!(quality([true, true, false], starved), Poor);
        assert_eq!(quality([true, false, false], q), Good);
        assert_eq!(quality([true, false, false], starved), Good, "a still picture takes few bits");
        assert_eq!(quality([true, false, true], h), Fair);
        assert_eq!(quality([true, true, false], h), Good, "smaller layers are not missed");
        assert_eq!(quality([true; 3], [None; 3]), Good, "nothing is sent of a screen at rest");
    }

    #[test]
    fn a_downlink_that_does_not_carry_what_is_wanted_makes_it_worse() {
        let rate = |bps| Some(Bitrate::bps(bps));
        let best = Bitrate::bps(1_000_000);
        assert_eq!(Fit::new(false, rate(600_000), best), Fit::Fits);
        assert_eq!(Fit::new(false, rate(400_000), best), Fit::Half);
        assert_eq!(Fit::new(true, rate(400_000), best), Fit::Paused);
        assert_eq!(Fit::new(false, None, best), Fit::Fits, "without congestion control");
        for (downlink, quality) in [(Fit::Half, Fair), (Fit::Paused, Poor)] {
            let signs = Signs { downlink, ..Signs::default() };
            assert_eq!(Connection::good().run(9, signs, 0.0, 0.0), [(3, quality)]);
        }
    }

    #[test]
    fn a_long_round_trip_makes_it_worse() {
        let mut meter = ConnectionMeter::default();
        let quality_at = |meter: &mut ConnectionMeter, rtt| {
            for _ in 0..100 {
                meter.on_feedback(None, None, Some(rtt));
            }
            meter.quality(Signs::default())
        };
        let ms = Duration::from_millis;
        assert_eq!(quality_at(&mut meter, ms(300)), Good);
        assert_eq!(quality_at(&mut meter, ms(500)), Fair);
        assert_eq!(quality_at(&mut meter, ms(900)), Poor);
    }

    #[test]
    fn silence_is_told_at_once_and_so_is_its_end_after_a_while() {
        let mut connection = Connection::good();
        let silent = Signs { silent: SILENCE, ..Signs::default() };
        assert_eq!(connection.run(3, silent, 0.0, 0.0), [(1, Lost)]);
        assert_eq!(connection.run(9, Signs::default(), 0.0, 0.0), [(5, Good)]);
    }

    #[test]
    fn it_is_told_once_in_two_seconds_at_most() {
        let mut connection = Connection::good();
        let mut before: Option<Instant> = None;
        let mut random = 7_u32;
        for _ in 0..2000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let signs = missing((random >> 30) as usize, false);
            if connection.run(1, signs, 0.0, 0.0).is_empty() {
                continue;
            }
            assert!(before.is_none_or(|at| connection.now - at >= MIN_INTERVAL));
            before = Some(connection.now);
        }
        assert!(before.is_some());
    }
}
