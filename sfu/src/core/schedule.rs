//! When the core's periodic work is due.

use std::time::{Duration, Instant};

/// Longest time between two allocations.
const ALLOCATION_INTERVAL: Duration = Duration::from_millis(200);
/// Interval of statistics for clients, and longest time without work.
pub(crate) const STATS_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time between two checks for key frames that subscribers wait for.
const KEY_FRAME_INTERVAL: Duration = Duration::from_millis(5);

/// The timers of a core.
pub(crate) struct Schedule {
    /// When the core has work again.
    due: Instant,
    next_allocation: Instant,
    next_key_frames: Instant,
    /// Whether key frames were checked in the current step.
    key_frames_checked: bool,
    next_stats: Instant,
    last_stats: Instant,
    /// Time of the last step: connections' time must not go back behind it.
    last_step: Instant,
    /// Time from the arrival of the current datagram at the machine to `last_step`.
    handover_delay: Duration,
}

impl Schedule {
    /// A schedule at the start: all work but statistics is due.
    pub(crate) fn new(now: Instant) -> Schedule {
        Schedule {
            due: now,
            next_allocation: now,
            next_key_frames: now,
            key_frames_checked: true,
            next_stats: now + STATS_INTERVAL,
            last_stats: now,
            last_step: now,
            handover_delay: Duration::ZERO,
        }
    }

    /// Begins a step.
    pub(crate) fn begin_step(&mut self, now: Instant) {
        (self.last_step, self.handover_delay) = (now, Duration::ZERO);
    }

    /// Time at which a datagram counts as arrived that came to the machine at `arrival`: not before the last step.
    pub(crate) fn arrive(&mut self, arrival: Instant) -> Instant {
        let counted = arrival.max(self.last_step);
        self.handover_delay = counted.duration_since(arrival);
        counted
    }

    /// Time from the arrival of the current datagram at the machine to the last step.
    pub(crate) fn handover_delay(&self) -> Duration {
        self.handover_delay
    }

    /// When the core has work again.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Makes work due now.
    pub(crate) fn wake(&mut self, now: Instant) {
        self.due = now;
    }

    /// Makes an allocation due with the next step.
    pub(crate) fn request_allocation(&mut self, now: Instant) {
        self.next_allocation = now;
    }

    /// Makes an allocation due at once, and a step of the SFU that performs it.
    pub(crate) fn allocate_now(&mut self, now: Instant) {
        (self.next_allocation, self.due) = (now, now);
    }

    /// Whether an allocation is due; sets the time of the next one.
    pub(crate) fn take_allocation(&mut self, now: Instant) -> bool {
        let is_due = now >= self.next_allocation;
        if is_due {
            self.next_allocation = now + ALLOCATION_INTERVAL;
        }
        is_due
    }

    /// Makes a check for key frames due: an allocation has changed what subscribers wait for.
    pub(crate) fn request_key_frames(&mut self, now: Instant) {
        self.next_key_frames = now;
    }

    /// Whether key frames are to be checked in this step. `tracks_due`: a track has set a time that has come.
    pub(crate) fn take_key_frames(&mut self, now: Instant, tracks_due: bool) -> bool {
        self.key_frames_checked = now >= self.next_key_frames || tracks_due;
        if self.key_frames_checked {
            self.next_key_frames = now + KEY_FRAME_INTERVAL;
        }
        self.key_frames_checked
    }

    /// Time since the last statistics, if they are due; sets the time of the next ones.
    pub(crate) fn take_stats(&mut self, now: Instant) -> Option<Duration> {
        (now >= self.next_stats).then(|| {
            let span = now.saturating_duration_since(self.last_stats);
            (self.last_stats, self.next_stats) = (now, now + STATS_INTERVAL);
            span
        })
    }

    /// Ends a step. `others`: when peers and tracks are due; `None` without participants.
    pub(crate) fn end_step(&mut self, now: Instant, others: Option<Instant>) {
        let timers = self.next_allocation.min(self.next_stats);
        self.due = others.map_or(now + STATS_INTERVAL, |due| due.min(timers));
        if !self.key_frames_checked {
            self.due = self.due.min(self.next_key_frames);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_is_due_when_requested_and_after_the_interval() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start);
        assert!(schedule.take_allocation(start) && !schedule.take_allocation(start));
        schedule.request_allocation(start);
        assert!(schedule.take_allocation(start));
        assert!(schedule.take_allocation(start + ALLOCATION_INTERVAL));
    }

    #[test]
    fn a_step_without_a_check_for_key_frames_is_followed_by_one_with() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start);
        assert!(schedule.take_key_frames(start, false));
        assert!(!schedule.take_key_frames(start, false));
        schedule.end_step(start, Some(start + STATS_INTERVAL));
        assert_eq!(schedule.due(), start, "the requested allocation comes first");
        schedule.take_allocation(start);
        schedule.end_step(start, Some(start + STATS_INTERVAL));
        assert_eq!(schedule.due(), start + KEY_FRAME_INTERVAL);
        assert!(schedule.take_key_frames(start + KEY_FRAME_INTERVAL, false));
    }

    #[test]
    fn statistics_cover_the_time_since_the_last_ones() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start);
        assert_eq!(schedule.take_stats(start), None);
        assert_eq!(schedule.take_stats(start + 2 * STATS_INTERVAL), Some(2 * STATS_INTERVAL));
        assert_eq!(schedule.take_stats(start + 2 * STATS_INTERVAL), None);
    }

    #[test]
    fn a_datagram_from_before_the_last_step_arrives_with_it() {
        let (start, mut schedule) = (Instant::now(), Schedule::new(Instant::now()));
        let step = start + Duration::from_millis(5);
        schedule.begin_step(step);
        assert_eq!(schedule.arrive(start), step);
        assert_eq!(schedule.handover_delay(), Duration::from_millis(5));
        let later = step + Duration::from_millis(1);
        assert_eq!((schedule.arrive(later), schedule.handover_delay()), (later, Duration::ZERO));
    }
}
