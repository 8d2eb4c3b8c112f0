//! What a metric is, and a figure of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use windlass_types::Latencies;

/// How figures of a metric are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A total since the start; the name ends in `_total`.
    Counter,
    /// A figure of now.
    Gauge,
    /// Latencies since the start, in buckets, with their sum and their count.
    Histogram,
}

impl MetricKind {
    /// Its name, as Prometheus has it.
    pub fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// What a metric is. A program has one table of all, from which its page and its reference are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// The whole name, with its unit at the end, and `_total` behind it for counters.
    pub name: &'static str,
    /// How its figures are read.
    pub kind: MetricKind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it means, a sentence.
    pub help: &'static str,
    /// What a server tells it with; empty: always.
    pub with: &'static str,
}

impl Family {
    /// A total since the start.
    pub const fn counter(name: &'static str, help: &'static str) -> Family {
        Family { name, kind: MetricKind::Counter, labels: &[], help, with: "" }
    }

    /// A figure of now.
    pub const fn gauge(name: &'static str, help: &'static str) -> Family {
        Family { kind: MetricKind::Gauge, ..Family::counter(name, help) }
    }

    /// Latencies in buckets.
    pub const fn histogram(name: &'static str, help: &'static str) -> Family {
        Family { kind: MetricKind::Histogram, ..Family::counter(name, help) }
    }

    /// Sets the names of its labels.
    #[must_use]
    pub const fn by(self, labels: &'static [&'static str]) -> Family {
        Family { labels, ..self }
    }

    /// Sets what a server tells it with.
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
    /// The name of its [`Family`].
    pub name: &'static str,
    /// Names and values of labels.
    pub labels: Vec<(&'static str, String)>,
    /// The figure.
    pub value: Value,
}

impl Metric {
    /// A figure without labels; durations are told in seconds, and whether something is so as 0 or 1.
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

/// What a metric tells.
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
