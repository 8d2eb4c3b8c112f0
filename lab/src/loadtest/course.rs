//! Samples a run second by second, for the curves of its page.

use std::time::Instant;

use super::given_up::given_up;
use super::process::Usage;
use super::scrape::Figures;
use super::tally::Totals;
use crate::plot::{Curve, Plot};

/// The figures of a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Second {
    /// Seconds since the beginning of the measured time.
    at_s: f64,
    anchor_p50_ms: Option<f64>,
    anchor_p95_ms: Option<f64>,
    transit_p95_ms: Option<f64>,
    /// Share of the chosen anchors that missed the budget, in percent.
    late_percent: Option<f64>,
    server_cores: Option<f64>,
    clients_cores: Option<f64>,
    video_kbps: f64,
    anchor_kbps: f64,
}

/// A sample of the totals, which the next one is compared with.
struct Sample {
    at: Instant,
    totals: Totals,
    given_up: f64,
    server: Option<Usage>,
    clients: Option<Usage>,
}

/// The seconds of a run.
pub(super) struct Course {
    begun: Instant,
    /// Number of subscribers in a room: each of them goes without an anchor that the server gave up.
    subscribers: usize,
    last: Option<Sample>,
    seconds: Vec<Second>,
}

impl Course {
    /// A course that begins now.
    pub(super) fn new(subscribers: usize) -> Course {
        Course { begun: Instant::now(), subscribers, last: None, seconds: Vec::new() }
    }

    /// Adds what came since the last sample.
    pub(super) fn sample(
        &mut self,
        figures: &Figures,
        totals: &Totals,
        server: Option<Usage>,
        clients: Option<Usage>,
    ) {
        let now = Sample {
            at: Instant::now(),
            totals: totals.clone(),
            given_up: given_up(|name| figures.get(name), self.subscribers),
            server,
            clients,
        };
        if let Some(before) = &self.last {
            self.seconds.push(Second::between(before, &now, self.begun));
        }
        self.last = Some(now);
    }

    /// Plots over time: latency, late anchors, CPU cores and bitrates. Figures that never came are left out.
    pub(super) fn plots(&self) -> Vec<Plot> {
        let curve = |name: &str, of: fn(&Second) -> Option<f64>| Curve {
            name: name.to_owned(),
            line: self.seconds.iter().filter_map(|s| Some((s.at_s, of(s)?))).collect(),
            dots: Vec::new(),
        };
        let plot = |title: &str, unit: &str, curves: Vec<Curve>| Plot {
            title: title.to_owned(),
            x_title: "time (s)".to_owned(),
            x_log: false,
            y_title: unit.to_owned(),
            curves,
        };
        vec![
            plot(
                "Latency",
                "ms",
                vec![
                    curve("anchor after frame, p50", |s| s.anchor_p50_ms),
                    curve("anchor after frame, p95", |s| s.anchor_p95_ms),
                    curve("packet, p95", |s| s.transit_p95_ms),
                ],
            ),
            plot(
                "Anchors past the budget",
                "% of those chosen",
                vec![curve("late or given up", |s| s.late_percent)],
            ),
            plot(
                "CPU",
                "cores",
                vec![curve("server", |s| s.server_cores), curve("clients", |s| s.clients_cores)],
            ),
            plot(
                "At all subscribers",
                "kbit/s",
                vec![
                    curve("video", |s| Some(s.video_kbps)),
                    curve("anchors", |s| Some(s.anchor_kbps).filter(|kbps| *kbps > 0.0)),
                ],
            ),
        ]
    }
}

impl Second {
    fn between(before: &Sample, now: &Sample, begun: Instant) -> Second {
        let span_s = (now.at - before.at).as_secs_f64().max(f64::EPSILON);
        let (old, new) = (&before.totals, &now.totals);
        let lag = new.anchors.lag.since(&old.anchors.lag);
        let cores = |old: Option<Usage>, new: Option<Usage>| {
            let (old, new) = old.zip(new)?;
            Some((new.cpu_s - old.cpu_s) / (new.at - old.at).as_secs_f64().max(f64::EPSILON))
        };
        let kbps = |bytes: u64| bytes as f64 * 8.0 / 1000.0 / span_s;
        let missed = (new.anchors.late - old.anchors.late) as f64 + now.given_up - before.given_up;
        let chosen =
            (new.anchors.whole - old.anchors.whole) as f64 + now.given_up - before.given_up;
        Second {
            at_s: (now.at - begun).as_secs_f64(),
            anchor_p50_ms: lag.percentile(50.0),
            anchor_p95_ms: lag.percentile(95.0),
            transit_p95_ms: new.transit.since(&old.transit).percentile(95.0),
            late_percent: (chosen > 0.0).then(|| 100.0 * missed / chosen),
            server_cores: cores(before.server, now.server),
            clients_cores: cores(before.clients, now.clients),
            video_kbps: kbps(new.received.bytes - old.received.bytes),
            anchor_kbps: kbps(new.anchors.bytes - old.anchors.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_what_came_since_the_last_and_curves_leave_out_what_was_not_seen() {
        let mut course = Course::new(2);
        let mut totals = Totals::default();
        let figures = |n| Figures::parse(&format!("windlass_enhancer_late_infer_total {n}"));
        totals.anchors.whole = 10;
        course.sample(&figures(1), &totals, None, None);
        totals.anchors.whole += 6;
        totals.anchors.late += 1;
        (0..6).for_each(|_| totals.anchors.lag.record(80.0));
        course.sample(&figures(2), &totals, None, None);
        let second = course.seconds[0];
        // Six came, and two subscribers went without another.
        assert_eq!(second.late_percent, Some(100.0 * 3.0 / 8.0));
        assert_eq!((second.server_cores, second.transit_p95_ms), (None, None));
        assert!((second.anchor_p50_ms.unwrap() - 80.0).abs() < 1.0, "{second:?}");
        let plots = course.plots();
        assert_eq!(plots[0].curves[2].line, []);
        assert!(plots[2].is_empty() && !plots[1].is_empty());
    }
}
