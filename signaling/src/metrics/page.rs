//! Metrics as text, in OpenMetrics for clients that ask for it, as Prometheus does, and in Prometheus's older form for
//! others.

use std::fmt;

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::IntoResponse;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};

use crate::metric::{Family, Metric, MetricKind, Value};

/// Content type by which a client asks for OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text";
/// No exemplar: metrics have none.
const NO_EXEMPLAR: Option<&Exemplar<NoLabelSet, f64>> = None;

/// An HTTP answer with metrics. Families without figures are left out; each figure needs its family.
pub fn metrics_page(
    request: &HeaderMap,
    families: Vec<Family>,
    metrics: Vec<Metric>,
) -> impl IntoResponse + use<> {
    let accepted = request.get_all(ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    let open = accepted.into_iter().any(|accept| accept.contains(OPEN_METRICS));
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Page::new(families, metrics)));
    let mut page = String::new();
    // Writing to a string does not fail.
    let content_type = if open {
        let _ = text::encode(&mut page, &registry);
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    } else {
        let _ = prometheus_text::encode(&mut page, &registry);
        prometheus_text::CONTENT_TYPE
    };
    ([(CONTENT_TYPE, content_type)], page)
}

/// Families with their figures, in the order of the table.
#[derive(Debug)]
struct Page(Vec<(Family, Vec<Metric>)>);

impl Page {
    fn new(families: Vec<Family>, metrics: Vec<Metric>) -> Page {
        let mut page = Page(families.into_iter().map(|family| (family, Vec::new())).collect());
        for metric in metrics {
            let family = page.0.iter_mut().find(|(family, _)| family.name == metric.name);
            debug_assert!(family.is_some(), "{} is not in the table of metrics", metric.name);
            if let Some((family, of)) = family {
                let labels = metric.labels.iter().map(|(name, _)| name);
                debug_assert!(labels.eq(family.labels), "{metric:?} is not labelled as {family:?}");
                of.push(metric);
            }
        }
        page.0.retain(|(_, metrics)| !metrics.is_empty());
        page
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (family, metrics) in &self.0 {
            let kind = match family.kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
                MetricKind::Histogram => MetricType::Histogram,
            };
            let (name, unit) = family.name_and_unit();
            let unit = unit.map(|unit| Unit::Other(unit.to_owned()));
            let mut of = encoder.encode_descriptor(name, family.help, unit.as_ref(), kind)?;
            for metric in metrics {
                figure(of.encode_family(&metric.labels)?, family.kind, metric.value)?;
            }
        }
        Ok(())
    }
}

fn figure(mut encoder: MetricEncoder<'_>, kind: MetricKind, value: Value) -> fmt::Result {
    match (kind, value) {
        (MetricKind::Counter, Value::Whole(n)) => encoder.encode_counter(&n, NO_EXEMPLAR),
        (MetricKind::Counter, Value::Real(n)) => encoder.encode_counter(&n, NO_EXEMPLAR),
        (_, Value::Whole(n)) => encoder.encode_gauge(&n),
        (_, Value::Real(n)) => encoder.encode_gauge(&n),
        (_, Value::Latencies(latencies)) => {
            let buckets: Vec<_> = latencies.buckets().collect();
            let (sum, count) = (latencies.sum().as_secs_f64(), latencies.count());
            encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::to_bytes;
    use windlass_types::Latencies;

    use super::*;

    const FAMILIES: [Family; 4] = [
        Family::counter("windlass_cpu_seconds_total", "Time.").by(&["stage"]),
        Family::gauge("windlass_rooms", "Rooms."),
        Family::gauge("windlass_absent", "Nothing."),
        Family::histogram("windlass_wait_seconds", "Waiting."),
    ];

    async fn page(accept: &'static str) -> (String, String) {
        let mut waits = Latencies::default();
        waits.record(Duration::from_millis(40));
        waits.record(Duration::from_secs(60));
        let metrics = vec![
            Metric::new("windlass_rooms", 3u64),
            Metric::new("windlass_wait_seconds", waits),
            Metric::new("windlass_cpu_seconds_total", 0.5).label("stage", "a \"b\""),
        ];
        let mut request = HeaderMap::new();
        request.insert(ACCEPT, accept.parse().unwrap());
        let answer = metrics_page(&request, FAMILIES.to_vec(), metrics).into_response();
        let content_type = answer.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (content_type, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn who_asks_for_nothing_else_gets_prometheus_text() {
        let (content_type, page) = page("*/*").await;
        assert_eq!(content_type, "text/plain; version=0.0.4; charset=utf-8");
        let begins = "# HELP windlass_cpu_seconds_total Time.\n\
            # TYPE windlass_cpu_seconds_total counter\n\
            windlass_cpu_seconds_total{stage=\"a \\\"b\\\"\"} 0.5\n\
            # HELP windlass_rooms Rooms.\n# TYPE windlass_rooms gauge\nwindlass_rooms 3\n\
            # HELP windlass_wait_seconds Waiting.\n# TYPE windlass_wait_seconds histogram\n";
        let ends = "windlass_wait_seconds_bucket{le=\"5\"} 1\n\
            windlass_wait_seconds_bucket{le=\"+Inf\"} 2\n\
            windlass_wait_seconds_sum 60.04\nwindlass_wait_seconds_count 2\n";
        assert!(page.starts_with(begins) && page.ends_with(ends), "{page}");
        assert!(page.contains("\nwindlass_wait_seconds_bucket{le=\"0.02\"} 0\n"), "{page}");
        assert!(page.contains("\nwindlass_wait_seconds_bucket{le=\"0.05\"} 1\n"), "{page}");
    }

    #[tokio::test]
    async fn prometheus_gets_open_metrics_with_units() {
        let accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3";
        let (content_type, page) = page(accept).await;
        assert!(content_type.starts_with(OPEN_METRICS), "{content_type}");
        let begins = "# HELP windlass_cpu_seconds Time.\n# TYPE windlass_cpu_seconds counter\n\
            # UNIT windlass_cpu_seconds seconds\nwindlass_cpu_seconds_total{stage=";
        assert!(page.starts_with(begins) && page.ends_with("\n# EOF\n"), "{page}");
        assert!(page.contains("\n# UNIT windlass_wait_seconds seconds\n"), "{page}");
    }
}
