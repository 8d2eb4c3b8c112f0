//! What became of all candidates so far.

use std::ops::AddAssign;

/// Counts of candidates by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SchedulerCounters {
    /// Candidates pushed.
    pub considered: u64,
    /// Candidates chosen.
    pub chosen: u64,
    /// Passed over: the stream had its share of anchors.
    pub over_fraction: u64,
    /// Passed over: hardly anything had changed since the stream's last anchor.
    pub unchanged: u64,
    /// Passed over: the interval's compute was spent.
    pub over_capacity: u64,
    /// Dropped: could not have met the deadline even if started at once.
    pub lost_causes: u64,
    /// Dropped before the tick: more candidates than a stream may keep.
    pub overflowed: u64,
    /// Not chosen: the plan of the quality SLA uses other frames of the stream.
    pub not_planned: u64,
    /// Not chosen: the stream's anchors would break the quality SLA of others.
    pub refused: u64,
    /// Not chosen: the stream's recent anchors had no worth. Counts the anchors that it would have had otherwise.
    pub worthless: u64,
}

impl AddAssign for SchedulerCounters {
    fn add_assign(&mut self, other: SchedulerCounters) {
        self.considered += other.considered;
        self.chosen += other.chosen;
        self.over_fraction += other.over_fraction;
        self.unchanged += other.unchanged;
        self.over_capacity += other.over_capacity;
        self.lost_causes += other.lost_causes;
        self.overflowed += other.overflowed;
        self.not_planned += other.not_planned;
        self.refused += other.refused;
        self.worthless += other.worthless;
    }
}
