//! Descriptions of metrics, and their figures.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use windlass_types::Latencies;

/// Way in which figures of a metric are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A total since the start. The metric's name ends in `_total`.
    Counter,
    /// A value that may rise and fall.
    Gauge,
    /// Latencies since the start, in buckets, with their sum and their count.
    Histogram,
}

impl MetricKind {
    /// Name of the kind, as Prometheus has it.
    pub fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// Description of a metric. A program has one table of all, from which its page and its reference are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// Name of the metric, with its unit at the end, and `_total` behind the unit for counters.
    pub name: &'static str,
    /// Way in which the metric's figures are read.
    pub kind: MetricKind,
    /// Names of the metric's labels.
    pub labels: &'static [&'static str],
    /// Meaning of the metric, as one sentence.
    pub help: &'static str,
    /// Setting or part with which a server has the metric; empty: always.
    pub with: &'static str,
}

impl Family {
    /// Describes a counter: a total since the start.
    pub const fn counter(name: &'static str, help: &'static str) -> Family {
        Family { name, kind: MetricKind::Counter, labels: &[], help, with: "" }
    }

    /// Describes a gauge: a value that may rise and fall.
    pub const fn gauge(name: &'static str, help: &'static str) -> Family {
        Family { kind: MetricKind::Gauge, ..Family::counter(name, help) }
    }

    /// Describes a histogram: latencies in buckets.
    pub const fn histogram(name: &'static str, help: &'static str) -> Family {
        Family { kind: MetricKind::Histogram, ..Family::counter(name, help) }
    }

    /// Sets the names of the metric's labels.
    #[must_use]
    pub const fn by(self, labels: &'static [&'static str]) -> Family {
        Family { labels, ..self }
    }

    /// Sets the setting or part with which a server has the metric.
    #[must_use]
    pub const fn with(self, with: &'static str) -> Family {
        Family { with, ..self }
    }

    /// The name without unit and `_total`, and the unit, if it has one.
    pub fn name_and_unit(&self) -> (&'static str, Option<&'static str>) {
        let name = self.name.strip_suffix("_total").unwrap_or(self.name);
        match name.rsplit_once('_') {
            Some((stem, unit @ ("seconds" | "bytes"))) => (stem, Some(unit)),
            _ => (name, None),
        }
    }
}

/// A figure of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Name of the metric's [`Family`].
    pub name: &'static str,
    /// Names and values of labels.
    pub labels: Vec<(&'static str, String)>,
    /// The figure.
    pub value: Value,
}

impl Metric {
    /// A figure without labels. Durations become seconds, and a `bool` becomes 0 or 1.
    pub fn new(name: &'static str, value: impl Into<Value>) -> Metric {
        Metric { name, labels: Vec::new(), value: value.into() }
    }

    /// Adds a label.
    #[must_use]
    pub fn label(mut self, name: &'static str, value: impl Into<String>) -> Metric {
        self.labels.push((name, value.into()));
        self
    }
}

/// Value of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A count.
    Whole(u64),
    /// Another number.
    Real(f64),
    /// Latencies.
    Latencies(Latencies),
}

macro_rules! values {
    ($($of:ty: $from:ident => $value:expr;)*) => {
        $(impl From<$of> for Value {
            fn from($from: $of) -> Value {
                $value
            }
        })*
    };
}

values! {
    u64: n => Value::Whole(n);
    usize: n => Value::Whole(n as u64);
    &AtomicU64: n => Value::Whole(n.load(Ordering::Relaxed));
    bool: is => Value::Whole(is.into());
    f64: n => Value::Real(n);
    Duration: took => Value::Real(took.as_secs_f64());
    Latencies: latencies => Value::Latencies(latencies);
}
