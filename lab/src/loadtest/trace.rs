//! Prints what subscribers got in each tenth of a second, a line of JSON each.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;
use windlass_types::Rung;

use super::tally::{Tally, Totals};

/// Time between two lines.
const EVERY: Duration = Duration::from_millis(100);

/// A line: counts are of its tenth of a second, tracks are those at its end.
#[derive(Debug, PartialEq, Serialize)]
struct Line {
    at_s: f64,
    kbps: f64,
    frames: u64,
    shown: u64,
    freezes: u64,
    lost: u64,
    anchors: u64,
    anchor_max_ms: Option<f64>,
    transit_p95_ms: Option<f64>,
    paused: usize,
    rungs: BTreeMap<Rung, usize>,
}

impl Line {
    fn new(at_s: f64, span_s: f64, before: &Totals, now: &Totals) -> Line {
        Line {
            at_s,
            kbps: (now.received.media_bytes - before.received.media_bytes) as f64 * 8.0
                / 1000.0
                / span_s,
            frames: now.received.frames - before.received.frames,
            shown: now.display.shown - before.display.shown,
            freezes: now.display.freezes - before.display.freezes,
            lost: now.received.lost.saturating_sub(before.received.lost),
            anchors: now.anchors.whole - before.anchors.whole,
            anchor_max_ms: now.anchors.lag.since(&before.anchors.lag).percentile(100.0),
            transit_p95_ms: now.transit.since(&before.transit).percentile(95.0),
            paused: now.subscriptions.paused,
            rungs: now
                .subscriptions
                .rungs
                .iter()
                .filter(|(_, n)| **n > 0)
                .map(|(r, n)| (*r, *n))
                .collect(),
        }
    }
}

/// Prints a line each tenth of a second, until the future is dropped.
pub(super) async fn say(tally: Tally) {
    let begun = Instant::now();
    let mut tick = tokio::time::interval(EVERY);
    tick.tick().await;
    let (mut before, mut last) = (tally.lock().clone(), begun);
    loop {
        tick.tick().await;
        let (totals, now) = (tally.lock().clone(), Instant::now());
        let span_s = (now - last).as_secs_f64().max(f64::EPSILON);
        let line = Line::new((now - begun).as_secs_f64(), span_s, &before, &totals);
        if let Ok(line) = serde_json::to_string(&line) {
            eprintln!("{line}");
        }
        (before, last) = (totals, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_came_since_the_last_one() {
        let mut before = Totals::default();
        (before.received.media_bytes, before.received.frames) = (1000, 7);
        before.anchors.lag.record(900.0);
        let mut now = before.clone();
        (now.received.media_bytes, now.received.frames) = (13_500, 10);
        now.subscriptions.paused = 1;
        now.anchors.lag.record(80.0);
        now.subscriptions.rungs = BTreeMap::from([(Rung::Q, 0), (Rung::HPlus, 2)]);
        let line = Line::new(3.0, 0.1, &before, &now);
        assert!((line.kbps - 1000.0).abs() < 1e-6);
        assert_eq!((line.frames, line.anchor_max_ms, line.transit_p95_ms), (3, Some(80.0), None));
        assert_eq!(serde_json::to_value(&line).unwrap()["rungs"], serde_json::json!({"h+": 2}));
    }
}
