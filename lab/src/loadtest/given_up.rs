//! Chosen anchors that never reached a viewer, by the server's counters.

/// Counters of chosen anchors that the enhancer dropped because the budget was over or would have been.
const GIVEN_UP: [&str; 2] = ["enhancer_late_infer_total", "enhancer_late_encode_total"];
/// Counter of finished anchors that the SFU dropped as late, once for each subscriber.
const DROPPED: &str = "sfu_anchors_dropped_late_total";

/// Number of chosen anchors that did not reach a subscriber because of the budget; each counts once for every
/// subscriber.
pub(super) fn given_up(counter: impl Fn(&str) -> f64, subscribers: usize) -> f64 {
    let each = subscribers.max(1) as f64;
    GIVEN_UP.iter().map(|name| each * counter(name)).sum::<f64>() + counter(DROPPED)
}
