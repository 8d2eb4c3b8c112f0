//! One figure for `/metrics`.

/// Whether a metric only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A total since the start; its name ends in `_total`.
    Counter,
    /// A figure of now.
    Gauge,
    /// A quantile since the start, with the label `quantile`.
    Summary,
}

/// One figure for `/metrics`.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The name after `windlass_`, with its unit at the end.
    pub name: String,
    /// Whether it only grows.
    pub kind: MetricKind,
    /// Labels, such as `stage="decode"`; may be empty.
    pub labels: String,
    /// The figure.
    pub value: f64,
    /// Its help text, a sentence.
    pub help: &'static str,
}

impl Metric {
    /// A total since the start; `_total` is added to the name.
    pub fn counter(name: &str, value: u64) -> Self {
        Metric {
            name: format!("{name}_total"),
            kind: MetricKind::Counter,
            labels: String::new(),
            value: value as f64,
            help: "",
        }
    }

    /// A quantile since the start; label it with `quantile`.
    pub fn summary(name: &str, value: f64) -> Self {
        Metric { kind: MetricKind::Summary, ..Metric::gauge(name, value) }
    }

    /// A figure of now.
    pub fn gauge(name: &str, value: f64) -> Self {
        Metric {
            name: name.to_owned(),
            kind: MetricKind::Gauge,
            labels: String::new(),
            value,
            help: "",
        }
    }

    /// Sets the help text.
    #[must_use]
    pub fn help(mut self, help: &'static str) -> Self {
        self.help = help;
        self
    }

    /// Sets the labels.
    #[must_use]
    pub fn labelled(mut self, labels: String) -> Self {
        self.labels = labels;
        self
    }
}
