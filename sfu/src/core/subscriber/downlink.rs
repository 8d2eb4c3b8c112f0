//! The congestion controller of one subscriber's downlink, on top of the stack's GoogCC.
//!
//! # Overview
//!
//! The stack (str0m) estimates the bandwidth by GoogCC over transport-wide feedback. Its estimate rises well and falls
//! late: where a link narrows and its buffer is short, the delay gradient is over before it is detected. Then the
//! estimate falls by losses alone, over seconds in which the queue stays full. It also falls where nothing is
//! congested: after a burst of losses on a wireless link, or because little was sent.
//!
//! [`Downlink`] corrects both errors. It reads the estimate, the round trip and the loss each [`FEEDBACK_INTERVAL`]:
//!
//! * A full queue caps the estimate at once, below the rate that is delivered (*cap*).
//! * A drop of the estimate without a queue is undone: the stack's estimator is reset to a higher rate (*reset*).
//! * A standing queue that is not full yet takes up to [`BACKOFF`] off the rate (*back-off*).
//! * While a better rung does not fit, the stack sends padding and probes for more bandwidth (*targets*).
//!
//! The result, [`Downlink::available`], is what the allocator shares among video and anchors. Anchors go by SCTP, which
//! transport-wide feedback does not cover; they are paced within the rest of the estimate (`anchors`).
//!
//! # Signals
//!
//! | signal | formula | unit |
//! | --- | --- | --- |
//! | queue delay | RTT − min(RTT of the last [`MIN_RTT_WINDOW`]) | ms |
//! | delivered rate | bits sent in the last [`RATE_WINDOW`] / that time × (1 − loss) | bit/s |
//! | quiet | queue delay < [`QUIET_QUEUE_DELAY`] and loss < [`QUIET_LOSS`] | |
//! | full | queue delay > [`FULL_QUEUE_DELAY`], or more than half of that with loss > [`HALF_FULL_LOSS`], or loss > [`FULL_LOSS`] | |
//! | certainly full | queue delay > [`FULL_QUEUE_DELAY`] with loss > [`CERTAIN_LOSS`] | |
//!
//! # States
//!
//! ```text
//!              full 3 × in a row, or certainly full
//!   Normal ───────────────────────────────────────────▶ Congested
//!     ▲                                                  │     ▲
//!     │ cap ≥ link rate, and no congestion               │     │ full
//!     │ for CONGESTION_HOLD        not full any more     ▼     │
//!     └──────────────────────────────────────────────── Recovering
//! ```
//!
//! * [`State::Normal`]: no cap.
//! * [`State::Congested`]: cap = max([`DRAIN_SHARE`] × delivered rate, [`MIN_CAP`]), and not above half of the estimate
//!   at first if the queue is certainly full. It falls again only after [`CAP_HOLD`], and not while the queue drains.
//! * [`State::Recovering`]: the cap stays until the queue delay is below [`DRAINED_QUEUE_DELAY`]. Then it is multiplied
//!   by [`CAP_GROWTH`] with each feedback, up to the link rate = [`LINK_SHARE`] × the rate delivered while the queue
//!   was full.
//!
//! # Output
//!
//! `available = min(estimate, cap) × (1 − BACKOFF × clamp((queue delay − BACKOFF_QUEUE_DELAY) / (FULL_QUEUE_DELAY −
//! BACKOFF_QUEUE_DELAY), 0, 1))`
//!
//! # Resets
//!
//! Without a full queue, and [`CONGESTION_HOLD`] after one, the floor of a plausible estimate is the greater of
//!
//! * 0.9 × the best estimate of the last [`STABLE_ESTIMATE_AGE`], if the estimate fell below [`SPURIOUS_DROP`] of that
//!   while quiet;
//! * [`DELIVERED_FLOOR_QUIET`] (quiet) or [`DELIVERED_FLOOR`] (not quiet) × the delivered rate.
//!
//! An estimate below 0.9 × the floor is reset to the floor. And an estimate that probes do not raise is reset to itself
//! after [`MIN_STAGNATION`], as a reset makes the stack probe; the time doubles up to [`MAX_STAGNATION`].
//!
//! # Sources
//!
//! * GoogCC: draft-ietf-rmcat-gcc-02 and libwebrtc's `modules/congestion_controller/goog_cc`, as in `str0m::bwe`. The
//!   cap has the form of its decrease (§5.5: a share of the received rate), with a smaller share, so that the queue
//!   drains.
//! * The minimum of the round trip over ten seconds, as BBR has it (draft-cardwell-iccrg-bbr-congestion-control,
//!   `MinRTTFilterLen`).
//! * All other constants were tuned with `windlass-lab bench links` (`lab/notes/links.md`).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use windlass_types::Bitrate;

/// Interval of the stack's statistics, each of which is one feedback. Short, so that a full queue is seen before it is
/// felt.
pub(crate) const FEEDBACK_INTERVAL: Duration = Duration::from_millis(100);
/// Window of the minimum round trip. As long as BBR's: a path that became longer counts as congested for this time at
/// most.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// Queue delay (RTT − min RTT) above which the queue is full. Below the shortest buffer of the test links (200 ms),
/// above their jitter.
const FULL_QUEUE_DELAY: Duration = Duration::from_millis(120);
/// Queue delay below which a full queue has drained. Above the jitter of the test links (at most 15 ms each way).
const DRAINED_QUEUE_DELAY: Duration = Duration::from_millis(50);
/// Queue delay at which the available rate starts to fall, linearly up to [`BACKOFF`] at [`FULL_QUEUE_DELAY`].
const BACKOFF_QUEUE_DELAY: Duration = Duration::from_millis(35);
/// Largest share of the rate that the back-off takes: it drains a short queue and costs few changes of rung.
const BACKOFF: f64 = 0.2;
/// Loss (0 to 1) that makes a full queue certain at the first feedback, without waiting for [`FULL_FEEDBACKS`].
const CERTAIN_LOSS: f32 = 0.08;
/// Loss (0 to 1) that means a full queue beside half of [`FULL_QUEUE_DELAY`]. At 8 % bursts of a wireless link were
/// taken for it.
const HALF_FULL_LOSS: f32 = 0.2;
/// Loss (0 to 1) that means a full queue at any delay: links with short buffers drop before the delay grows.
const FULL_LOSS: f32 = 0.35;
/// Consecutive feedbacks with a full queue that mean congestion. One or two long round trips are jitter.
const FULL_FEEDBACKS: u32 = 3;
/// Cap as a share of the delivered rate, which has no headers of RTP, UDP and IP (about a tenth). The rest drains the
/// queue.
const DRAIN_SHARE: f64 = 0.68;
/// Link rate as a share of the rate delivered while the queue was full. The rest is for headers and for swings.
const LINK_SHARE: f64 = 0.85;
/// Time after a fall of the cap in which it does not fall again: feedback takes so long to show the effect.
const CAP_HOLD: Duration = Duration::from_millis(500);
/// Averaging window for the send rate. The stack averages loss over the same time, so both can be multiplied.
const RATE_WINDOW: Duration = Duration::from_secs(1);
/// Growth of the cap with each feedback once the queue has drained: doubles in 0.7 s.
const CAP_GROWTH: f64 = 1.1;
/// Lower bound of the cap. About one audio track, which must go on.
const MIN_CAP: Bitrate = Bitrate::bps(30_000);
/// The cap where nothing that could bound it is known.
const UNLIMITED: Bitrate = Bitrate::bps(u64::MAX);
/// Ratio of two successive queue delays below which the queue drains.
const DRAINING: f64 = 0.85;
/// Time between two probes for more bandwidth, so that each has had its feedback and shown its effect.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Growth of the estimate between two feedbacks that only a successful probe makes: GoogCC's own increase is 8 % a
/// second.
const PROBE_SUCCESS_GROWTH: f64 = 1.25;
/// Time for which padding holds an estimate that a probe has found. Rungs rise meanwhile; an unused estimate would
/// fall.
const PROBE_SUCCESS_HOLD: Duration = Duration::from_secs(2);
/// Queue delay below which the link is quiet, so that drops of the estimate are not caused by a queue.
const QUIET_QUEUE_DELAY: Duration = Duration::from_millis(40);
/// Loss (0 to 1) below which the link is quiet.
const QUIET_LOSS: f32 = 0.05;
/// Share of the best recent estimate below which a drop is spurious while the link is quiet.
const SPURIOUS_DROP: f64 = 0.8;
/// Age up to which a quiet estimate counts as recent.
const STABLE_ESTIMATE_AGE: Duration = Duration::from_secs(2);
/// Factor by which a floor falls with each reset, and the tolerance below it. A wrong floor ends in a queue, or decays.
const FLOOR_DECAY: f64 = 0.9;
/// First time without growth, while more is wanted, after which the estimator is reset, so that it probes again.
const MIN_STAGNATION: Duration = Duration::from_secs(2);
/// Maximum time without growth after which the estimator is reset. The time doubles with each reset, as each costs a
/// burst of probes.
const MAX_STAGNATION: Duration = Duration::from_secs(8);
/// Growth of the estimate that ends a stagnation.
const STAGNATION_GROWTH: f64 = 1.1;
/// Share of the rate delivered without a full queue below which a drop of the estimate is spurious.
const DELIVERED_FLOOR: f64 = 0.55;
/// [`DELIVERED_FLOOR`] while the link is quiet, when the delivered rate proves more.
const DELIVERED_FLOOR_QUIET: f64 = 0.75;
/// Time between two resets of a spurious drop: three feedbacks, until the first has shown its effect.
const RESET_INTERVAL: Duration = Duration::from_millis(300);
/// Largest share of the available rate that padding fills.
const PADDING_SHARE: f64 = 0.95;
/// Time for which the link must be quiet before packets bypass the stack's pacer.
const UNPACED_AFTER: Duration = Duration::from_secs(2);
/// Time after congestion in which there is no reset, no probe and no end of the cap.
const CONGESTION_HOLD: Duration = Duration::from_secs(2);

/// Measurements of the stack, taken once each [`FEEDBACK_INTERVAL`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Feedback {
    /// GoogCC's estimate now. (The stack's own event is a mean of three seconds.)
    pub estimate: Option<Bitrate>,
    /// Round trip of the latest packet that the client reported.
    pub rtt: Option<Duration>,
    /// Share of the last second's packets that the client reported missing, 0 to 1.
    pub loss: Option<f32>,
    /// Bytes of all datagrams sent to the client so far.
    pub bytes_sent: u64,
}

/// Rates that the stack's estimator is to sustain and to probe for (`str0m::bwe::Bwe::set_bitrate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BitrateTargets {
    /// Rate up to which padding fills what is sent.
    pub minimum: Bitrate,
    /// Rate up to which the stack probes.
    pub desired: Bitrate,
}

/// State of the congestion controller; the module's documentation has the transitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The estimate holds.
    Normal,
    /// The queue is full: the estimate is capped, and repairs would only fill the queue.
    Congested,
    /// The queue drains or has drained: the cap grows until it can go.
    Recovering,
}

/// The signals that one feedback yields; the module's documentation has their formulas.
#[derive(Debug, Clone, Copy)]
struct Signals {
    queue_delay: Duration,
    loss: f32,
    /// Whether the queue delay fell by more than 15 % since the last feedback.
    draining: bool,
    delivered: Bitrate,
}

impl Signals {
    fn is_quiet(&self) -> bool {
        self.queue_delay < QUIET_QUEUE_DELAY && self.loss < QUIET_LOSS
    }

    fn is_full(&self) -> bool {
        self.queue_delay > FULL_QUEUE_DELAY
            || (self.queue_delay > FULL_QUEUE_DELAY / 2 && self.loss > HALF_FULL_LOSS)
            || self.loss > FULL_LOSS
    }

    fn is_certainly_full(&self) -> bool {
        self.queue_delay > FULL_QUEUE_DELAY && self.loss > CERTAIN_LOSS
    }
}

/// The congestion controller of one subscriber's downlink; the module's documentation has its method.
#[derive(Debug, Default)]
pub(crate) struct Downlink {
    /// GoogCC's estimate, or the value that it is being reset to.
    estimate: Option<Bitrate>,
    /// Upper bound of the estimate; `None` in [`State::Normal`].
    cap: Option<Bitrate>,
    /// Round trips of the last [`MIN_RTT_WINDOW`], each shorter than all later ones; the first is the minimum.
    min_rtts: VecDeque<(Instant, Duration)>,
    /// Total bytes sent, at each feedback of the last [`RATE_WINDOW`].
    bytes_sent: VecDeque<(Instant, u64)>,
    /// Consecutive feedbacks with a full queue.
    full_feedbacks: u32,
    queue_delay: Duration,
    last_congestion: Option<Instant>,
    /// When the cap fell last.
    last_cap_fall: Option<Instant>,
    /// Rate delivered while the queue was last full.
    full_delivered: Bitrate,
    /// Rate to which the stack's estimator is to be reset.
    pending_reset: Option<Bitrate>,
    last_reset: Option<Instant>,
    last_probe: Option<Instant>,
    last_probe_success: Option<Instant>,
    /// Best estimate of the last [`STABLE_ESTIMATE_AGE`] while the link was quiet.
    stable_estimate: Option<(Instant, Bitrate)>,
    /// Since when the link has been quiet.
    quiet_since: Option<Instant>,
    /// Whether a better rung does not fit.
    bandwidth_limited: bool,
    /// Since when the estimate has not grown while more was wanted, and its value then.
    stagnation: Option<(Instant, Bitrate)>,
    stagnation_timeout: Duration,
    last_targets: Option<BitrateTargets>,
}

impl Downlink {
    /// Takes the stack's measurements. Returns whether the cap has just fallen, so that rungs must be allocated at
    /// once.
    pub(crate) fn on_feedback(&mut self, now: Instant, feedback: Feedback) -> bool {
        if let Some(estimate) = feedback.estimate {
            if self.estimate.is_some_and(|last| estimate > last.mul_f64(PROBE_SUCCESS_GROWTH)) {
                self.last_probe_success = Some(now);
            }
            self.estimate = Some(estimate);
        }
        let signals = self.signals(now, feedback);
        let full = signals.is_full();
        self.full_feedbacks = if full { self.full_feedbacks + 1 } else { 0 };
        self.quiet_since = signals.is_quiet().then(|| self.quiet_since.unwrap_or(now));
        self.reset_if_implausible(now, &signals);
        if full && (self.full_feedbacks >= FULL_FEEDBACKS || signals.is_certainly_full()) {
            return self.on_congestion(now, &signals);
        }
        if !full && signals.queue_delay < DRAINED_QUEUE_DELAY {
            self.recover(now);
        }
        false
    }

    fn signals(&mut self, now: Instant, feedback: Feedback) -> Signals {
        let sent = self.sent(now, feedback.bytes_sent);
        let queue_delay = feedback.rtt.map_or(Duration::ZERO, |rtt| self.queue_delay(now, rtt));
        let last = std::mem::replace(&mut self.queue_delay, queue_delay);
        let loss = feedback.loss.unwrap_or(0.0);
        Signals {
            queue_delay,
            loss,
            draining: queue_delay < last.mul_f64(DRAINING),
            delivered: sent.mul_f64(f64::from(1.0 - loss)),
        }
    }

    /// Caps the estimate; returns whether the cap has fallen.
    fn on_congestion(&mut self, now: Instant, signals: &Signals) -> bool {
        let is_new = self.cap.is_none();
        self.last_congestion = Some(now);
        let held =
            self.last_cap_fall.is_some_and(|at| now.saturating_duration_since(at) < CAP_HOLD);
        let before = self.capped_estimate().unwrap_or(UNLIMITED);
        let mut cap = signals.delivered.mul_f64(DRAIN_SHARE).max(MIN_CAP);
        if !signals.draining {
            // The longer the queue is full, the less of the time before it is in the averaging window.
            self.full_delivered = signals.delivered.min(before);
        }
        if is_new && signals.is_certainly_full() {
            // The averaging window still holds the time before: the delivered rate is too high.
            cap = cap.min(before.mul_f64(0.5));
        }
        if signals.draining || held || cap >= before {
            self.cap.get_or_insert(before);
            return false;
        }
        (self.last_cap_fall, self.cap) = (Some(now), Some(cap));
        true
    }

    /// Raises the cap, and removes it once it has reached the link rate.
    fn recover(&mut self, now: Instant) {
        let Some(cap) = self.cap else { return };
        let link = self.full_delivered.mul_f64(LINK_SHARE);
        // GoogCC also counts what the full queue dropped, and may have fallen much further than the link.
        if self.estimate.is_some_and(|estimate| estimate < link.mul_f64(0.5)) {
            self.reset_to(link);
        }
        let grown = cap.mul_f64(CAP_GROWTH);
        let stays = !self.is_congestion_over(now) || grown < link;
        self.cap = stays.then_some(grown.min(link.max(cap)));
    }

    /// Resets the estimator where its estimate is lower than can be true, or has not grown for long.
    fn reset_if_implausible(&mut self, now: Instant, signals: &Signals) {
        let Some(estimate) = self.estimate else { return };
        if signals.is_full() || !self.is_congestion_over(now) {
            (self.stable_estimate, self.stagnation) = (None, None);
            return;
        }
        let quiet = signals.is_quiet();
        let stable = self.stable_estimate;
        let stable =
            stable.filter(|(at, _)| now.saturating_duration_since(*at) < STABLE_ESTIMATE_AGE);
        let floor = floor(estimate, stable.map(|(_, best)| best), signals);
        if estimate < floor.mul_f64(FLOOR_DECAY) {
            let last = self.last_reset;
            if last.is_none_or(|at| now.saturating_duration_since(at) >= RESET_INTERVAL) {
                self.reset_to(floor);
                self.stable_estimate = None;
                self.last_reset = Some(now);
            }
            return;
        }
        if !quiet {
            self.stagnation = None;
            return;
        }
        if stable.is_none_or(|(_, best)| estimate >= best) {
            self.stable_estimate = Some((now, estimate));
        }
        self.reset_if_stagnant(now, estimate);
    }

    /// Resets the estimator to its own estimate where that does not grow although more is wanted. The reset makes the
    /// stack probe again.
    fn reset_if_stagnant(&mut self, now: Instant, estimate: Bitrate) {
        let wanted = self.last_targets.is_some_and(|targets| targets.minimum > Bitrate::ZERO);
        let timeout = self.stagnation_timeout.max(MIN_STAGNATION);
        let (since, before) = *self.stagnation.get_or_insert((now, estimate));
        if !wanted || estimate > before.mul_f64(STAGNATION_GROWTH) {
            self.stagnation = Some((now, estimate));
            self.stagnation_timeout = MIN_STAGNATION;
        } else if now.saturating_duration_since(since) >= timeout {
            self.stagnation = Some((now, estimate));
            self.stagnation_timeout = (timeout * 2).min(MAX_STAGNATION);
            self.pending_reset = Some(estimate);
        }
    }

    fn reset_to(&mut self, rate: Bitrate) {
        (self.estimate, self.pending_reset) = (Some(rate), Some(rate));
    }

    /// Takes the rate to which the stack's estimator is to be reset.
    pub(crate) fn take_reset(&mut self) -> Option<Bitrate> {
        self.pending_reset.take()
    }

    /// Send rate of the last [`RATE_WINDOW`].
    fn sent(&mut self, now: Instant, bytes: u64) -> Bitrate {
        self.bytes_sent.push_back((now, bytes));
        while self.bytes_sent.len() > 2
            && now.saturating_duration_since(self.bytes_sent[1].0) >= RATE_WINDOW
        {
            self.bytes_sent.pop_front();
        }
        let (at, before) = self.bytes_sent[0];
        let seconds = now.saturating_duration_since(at).as_secs_f64().max(0.001);
        Bitrate::bps((bytes.saturating_sub(before) as f64 * 8.0 / seconds) as u64)
    }

    /// Rate for video and anchors, of payload; `None` before the first estimate.
    pub(crate) fn available(&self) -> Option<Bitrate> {
        let rate = self.capped_estimate()?;
        let over = self.queue_delay.saturating_sub(BACKOFF_QUEUE_DELAY).as_secs_f64()
            / FULL_QUEUE_DELAY.saturating_sub(BACKOFF_QUEUE_DELAY).as_secs_f64();
        Some(rate.mul_f64(1.0 - BACKOFF * over.min(1.0)))
    }

    fn capped_estimate(&self) -> Option<Bitrate> {
        match (self.estimate, self.cap) {
            (Some(estimate), Some(cap)) => Some(estimate.min(cap)),
            (estimate, cap) => estimate.or(cap),
        }
    }

    /// Whether the last congestion is [`CONGESTION_HOLD`] ago.
    fn is_congestion_over(&self, now: Instant) -> bool {
        self.last_congestion.is_none_or(|at| now.saturating_duration_since(at) >= CONGESTION_HOLD)
    }

    /// The controller's state.
    pub(crate) fn state(&self) -> State {
        match self.cap {
            None => State::Normal,
            Some(_) if self.full_feedbacks > 0 => State::Congested,
            Some(_) => State::Recovering,
        }
    }

    /// Whether packets may bypass the stack's pacer. Everything wanted fits, and the link has been quiet with the
    /// packets as the publishers' own pacers spread them.
    pub(crate) fn is_unpaced(&self, now: Instant) -> bool {
        let quiet_for = self.quiet_since.map(|since| now.saturating_duration_since(since));
        quiet_for.is_some_and(|quiet_for| quiet_for >= UNPACED_AFTER)
            && !self.bandwidth_limited
            && self.is_congestion_over(now)
            && self.state() == State::Normal
    }

    /// Returns new targets for the stack's estimator, if they differ from the last ones. `next` is what the next rung
    /// needs (zero: there is none), `best` what the best rungs need.
    pub(crate) fn update_targets(
        &mut self,
        now: Instant,
        next: Bitrate,
        best: Bitrate,
    ) -> Option<BitrateTargets> {
        self.bandwidth_limited = next > Bitrate::ZERO;
        let available = self.available().unwrap_or_default();
        let wants_more =
            self.bandwidth_limited && self.is_congestion_over(now) && self.state() == State::Normal;
        let since = |at: Option<Instant>| at.map(|at| now.saturating_duration_since(at));
        let targets = if wants_more {
            // GoogCC's estimate falls to what is sent, so padding sustains it until rungs have taken its place.
            let found =
                since(self.last_probe_success).is_some_and(|since| since < PROBE_SUCCESS_HOLD);
            let padding = if found { best } else { next };
            BitrateTargets {
                minimum: padding.min(available.mul_f64(PADDING_SHARE)),
                desired: best.max(next),
            }
        } else {
            BitrateTargets { minimum: Bitrate::ZERO, desired: best.min(available.max(MIN_CAP)) }
        };
        let is_due = since(self.last_probe).is_none_or(|since| since >= PROBE_INTERVAL);
        if wants_more && is_due && available < targets.desired {
            // The stack probes when the desired rate rises: it is lowered first, and raised with the next call.
            let is_high = self.last_targets.is_some_and(|last| last.desired > available);
            let desired = if is_high { available } else { targets.desired };
            self.last_probe = (!is_high).then_some(now);
            self.last_targets = Some(BitrateTargets { desired, ..targets });
            return self.last_targets;
        }
        let differs = |a: Bitrate, b: Bitrate| a.as_bps().abs_diff(b.as_bps()) * 10 > b.as_bps();
        let changed = self.last_targets.is_none_or(|last| {
            differs(targets.minimum, last.minimum)
                || targets.desired < last.desired && differs(targets.desired, last.desired)
        });
        if !changed {
            return None;
        }
        // The desired rate must not rise here, or the stack would probe.
        let desired =
            self.last_targets.map_or(targets.desired, |last| last.desired.min(targets.desired));
        self.last_targets = Some(BitrateTargets { desired, ..targets });
        self.last_targets
    }

    /// Time that a packet takes to the client now: half of the min RTT, and the queue delay.
    pub(crate) fn path_delay(&self) -> Duration {
        self.min_rtts.front().map_or(Duration::ZERO, |(_, min)| *min / 2) + self.queue_delay
    }

    /// RTT − min RTT of the last [`MIN_RTT_WINDOW`].
    fn queue_delay(&mut self, now: Instant, rtt: Duration) -> Duration {
        let is_old = |at: Instant| now.saturating_duration_since(at) > MIN_RTT_WINDOW;
        while self.min_rtts.front().is_some_and(|(at, _)| is_old(*at)) {
            self.min_rtts.pop_front();
        }
        while self.min_rtts.back().is_some_and(|(_, other)| *other >= rtt) {
            self.min_rtts.pop_back();
        }
        self.min_rtts.push_back((now, rtt));
        self.min_rtts.front().map_or(Duration::ZERO, |(_, min)| rtt.saturating_sub(*min))
    }
}

/// The least estimate that is plausible. `stable` is the best recent estimate while the link was quiet.
fn floor(estimate: Bitrate, stable: Option<Bitrate>, signals: &Signals) -> Bitrate {
    let quiet = signals.is_quiet();
    let dropped = |best: &Bitrate| quiet && estimate < best.mul_f64(SPURIOUS_DROP);
    let from_stable =
        stable.filter(dropped).map_or(Bitrate::ZERO, |best| best.mul_f64(FLOOR_DECAY));
    let share = if quiet { DELIVERED_FLOOR_QUIET } else { DELIVERED_FLOOR };
    from_stable.max(signals.delivered.mul_f64(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: Bitrate = Bitrate::bps(1_000_000);
    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A downlink with an estimate and a send rate of 1 Mbit/s, after two quiet seconds and feedbacks with these round
    /// trips (ms) and losses.
    fn after(at: &[(u64, f32)]) -> (Downlink, Instant) {
        let (mut downlink, mut now) = (Downlink::default(), Instant::now());
        let quiet = [(40, 0.0); 20];
        for (n, &(rtt, loss)) in quiet.iter().chain(at).enumerate() {
            now += FEEDBACK_INTERVAL;
            let (estimate, bytes_sent) = (Some(MBIT), 12_500 * n as u64);
            let (rtt, loss) = (Some(MS(rtt)), Some(loss));
            downlink.on_feedback(now, Feedback { estimate, rtt, loss, bytes_sent });
        }
        (downlink, now)
    }

    #[test]
    fn packets_bypass_the_pacer_once_the_link_has_been_quiet_for_a_while() {
        let unpaced = |at: &[(u64, f32)]| {
            let (downlink, now) = after(at);
            downlink.is_unpaced(now)
        };
        assert!(!unpaced(&[]), "19 feedbacks are not yet two seconds");
        assert!(unpaced(&[(40, 0.0), (70, 0.04)]));
        assert!(!unpaced(&[(40, 0.0), (90, 0.0)]), "a queue");
        assert!(!unpaced(&[(40, 0.06), (40, 0.0)]), "losses");
        let (mut downlink, now) = after(&[(40, 0.0); 5]);
        downlink.update_targets(now, Bitrate::bps(700_000), Bitrate::bps(1_500_000));
        assert!(!downlink.is_unpaced(now), "a better rung does not fit");
    }

    #[test]
    fn the_estimate_holds_while_nothing_queues() {
        let (downlink, _) = after(&[(60, 0.03), (50, 0.05), (70, 0.05)]);
        assert_eq!((downlink.available(), downlink.state()), (Some(MBIT), State::Normal));
    }

    #[test]
    fn a_little_less_is_sent_while_something_queues() {
        let available = after(&[(120, 0.0)]).0.available().expect("known").as_bps();
        assert!((850_000..950_000).contains(&available), "{available}");
    }

    #[test]
    fn a_full_queue_caps_the_estimate_below_the_delivered_rate() {
        let capped = after(&[(340, 0.3)]).0.capped_estimate().expect("known");
        assert!((450_000..500_000).contains(&capped.as_bps()), "{capped}");
        // The averaging window still has the losses of before: the cap must not fall by them again.
        let later = after(&[(340, 0.3), (340, 0.6), (340, 0.6)]).0.capped_estimate();
        assert_eq!(later, Some(capped));
    }

    #[test]
    fn a_few_long_round_trips_are_no_congestion() {
        assert!(after(&[(340, 0.0), (340, 0.0), (40, 0.0)]).0.state() == State::Normal);
        assert!(after(&[(340, 0.0), (340, 0.0), (340, 0.0)]).0.state() != State::Normal);
    }

    #[test]
    fn losses_of_a_wireless_link_are_no_congestion() {
        assert!(after(&[(40, 0.1), (40, 0.2), (45, 0.15), (40, 0.2)]).0.state() == State::Normal);
    }

    #[test]
    fn the_cap_goes_after_the_queue_has_drained() {
        let mut feedbacks = vec![(340, 0.3), (200, 0.2)];
        feedbacks.extend([(50, 0.0); 40]);
        assert!(after(&feedbacks).0.state() == State::Normal);
    }

    #[test]
    fn a_path_that_became_longer_is_no_congestion_in_the_end() {
        assert!(after(&[(200, 0.0); 200]).0.state() == State::Normal);
    }

    #[test]
    fn an_estimate_that_falls_without_a_queue_is_reset() {
        let (mut downlink, mut now) = after(&[]);
        now += FEEDBACK_INTERVAL;
        let feedback = Feedback {
            estimate: Some(Bitrate::bps(400_000)),
            rtt: Some(MS(45)),
            loss: Some(0.0),
            bytes_sent: 12_500 * 20,
        };
        downlink.on_feedback(now, feedback);
        let floor = Some(Bitrate::bps(900_000));
        assert_eq!((downlink.take_reset(), downlink.available()), (floor, floor));
        let (mut downlink, now) = after(&[(340, 0.3)]);
        let full = Feedback { rtt: Some(MS(340)), bytes_sent: 12_500 * 21, ..feedback };
        downlink.on_feedback(now + FEEDBACK_INTERVAL, full);
        assert_eq!(downlink.take_reset(), None, "the queue is full");
    }

    #[test]
    fn probes_for_more_are_repeated_but_not_while_the_queue_is_full() {
        let (mut downlink, start) = after(&[]);
        let (next, best) = (Bitrate::bps(1_400_000), Bitrate::bps(3_000_000));
        let (mut probes, mut desired) = (0, Bitrate::ZERO);
        for fifth in 0..60 {
            let now = start + MS(200) * fifth;
            if let Some(targets) = downlink.update_targets(now, next, best) {
                probes += u32::from(targets.desired > desired && targets.desired == best);
                desired = targets.desired;
            }
        }
        assert!((8..=12).contains(&probes), "{probes} in 12 s");
        let (mut downlink, now) = after(&[(340, 0.3)]);
        let targets = downlink.update_targets(now, next, best).expect("new");
        assert!(targets.minimum == Bitrate::ZERO && targets.desired < MBIT, "{targets:?}");
    }
}
