//! OpenTelemetry traces of an anchor's way through the server, sent by OTLP.
//!
//! Each anchor is a trace. Its root span `anchor` begins when the frame arrives at the SFU, and ends when the SFU takes
//! the anchor. Its children are the stages, one after the other: `decode`, `schedule`, `infer`, `encode`, and `deliver`
//! for what follows them, such as the way from another machine. The attributes of the root tell of the anchor.
//!
//! The environment's `OTEL_…` variables are those of OpenTelemetry's specification. Spans wait in a bounded queue, and
//! are dropped where it is full: no anchor waits for a collector.

use std::time::{Duration, Instant, SystemTime};

use opentelemetry::trace::{Span, SpanBuilder, SpanKind, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use windlass_types::{Anchor, AnchorSource};

/// Variables that name a collector. Without any of them, nothing is traced.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// Error of traces that cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("{variable}: {source}; name a collector of OTLP over gRPC, such as http://localhost:4317")]
pub struct TracesError {
    variable: &'static str,
    source: ExporterBuildError,
}

/// Traces anchors. Clones share one queue.
#[derive(Debug, Clone)]
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Traces {
    /// Starts to send traces to the collector that the environment names; `None` if it names none. Must be called in a
    /// tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if the collector's address cannot be used.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// // Where no variable names a collector, nothing is traced.
    /// let traces = windlass_traces::Traces::from_environment()?;
    /// assert!(traces.is_none());
    /// # Ok::<(), windlass_traces::TracesError>(())
    /// ```
    pub fn from_environment() -> Result<Option<Traces>, TracesError> {
        let named = |name: &&str| std::env::var(name).is_ok_and(|value| !value.trim().is_empty());
        let Some(variable) = ENDPOINTS.into_iter().find(named) else { return Ok(None) };
        let exporter = SpanExporter::builder().with_tonic().build();
        let exporter = exporter.map_err(|source| TracesError { variable, source })?;
        // A name in `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` counts.
        let named = ["OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"].iter().any(named);
        let resource = Resource::builder();
        let resource = if named { resource } else { resource.with_service_name("windlass") };
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
        Ok(Some(Traces::of(provider.with_resource(resource.build()).build())))
    }

    fn of(provider: SdkTracerProvider) -> Traces {
        let tracer = provider.tracer("windlass");
        Traces { provider, tracer }
    }

    /// Traces an anchor that the SFU takes now.
    pub fn anchor(&self, anchor: &Anchor) {
        self.anchor_at(anchor, Instant::now(), SystemTime::now());
    }

    fn anchor_at(&self, anchor: &Anchor, now: Instant, wall: SystemTime) {
        let whole = now.saturating_duration_since(anchor.arrival);
        let begin = wall.checked_sub(whole).unwrap_or(wall);
        let source = match anchor.source {
            AnchorSource::Enhanced => "enhanced",
            AnchorSource::Captured => "captured",
        };
        let root = SpanBuilder::from_name("anchor")
            .with_kind(SpanKind::Internal)
            .with_start_time(begin)
            .with_attributes([
                KeyValue::new("windlass.stream", anchor.stream.0.to_string()),
                KeyValue::new("windlass.anchor.source", source),
                KeyValue::new("windlass.anchor.width", i64::from(anchor.size.width)),
                KeyValue::new("windlass.anchor.height", i64::from(anchor.size.height)),
                KeyValue::new("windlass.anchor.bytes", anchor.payload.len() as i64),
                KeyValue::new("windlass.anchor.tiled", anchor.tiled),
            ]);
        let root = self.tracer.build_with_context(root, &Context::new());
        if !root.is_recording() {
            // The sampler has left this one out.
            return;
        }
        let within = Context::new().with_span(root);
        let times = anchor.times;
        let stages = times.decode + times.schedule + times.infer + times.encode;
        let mut at = begin;
        for (stage, took) in [
            ("decode", times.decode),
            ("schedule", times.schedule),
            ("infer", times.infer),
            ("encode", times.encode),
            ("deliver", whole.saturating_sub(stages)),
        ] {
            // A stage of another machine's clock may seem to end later than the whole.
            let end = (at + took).min(wall);
            self.tracer
                .build_with_context(SpanBuilder::from_name(stage).with_start_time(at), &within)
                .end_with_timestamp(end);
            at = end;
        }
        within.span().end_with_timestamp(wall);
    }

    /// Sends what waits, for at most two seconds. The process then may end.
    ///
    /// # Errors
    ///
    /// Fails if the collector does not take it in time.
    pub fn stop(&self) -> OTelSdkResult {
        self.provider.shutdown_with_timeout(Duration::from_secs(2))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use opentelemetry_sdk::trace::{InMemorySpanExporter, Sampler, SpanData};
    use windlass_types::{Epoch, Size, StageTimes, StreamId};

    use super::*;

    fn anchor(arrival: Instant) -> Anchor {
        let ms = Duration::from_millis;
        Anchor {
            stream: StreamId(7),
            epoch: Epoch(1),
            rtp_timestamp: 90_000,
            arrival,
            source: AnchorSource::Enhanced,
            codec: 1,
            tiled: false,
            size: Size::new(640, 360),
            beyond_prior: false,
            payload: Bytes::from_static(&[0; 1200]),
            times: StageTimes { decode: ms(1), schedule: ms(10), infer: ms(40), encode: ms(9) },
        }
    }

    fn spans(sampler: Sampler) -> Vec<SpanData> {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone());
        let traces = Traces::of(provider.with_sampler(sampler).build());
        let arrival = Instant::now();
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        traces.anchor_at(&anchor(arrival), arrival + Duration::from_millis(75), wall);
        exporter.get_finished_spans().unwrap()
    }

    #[test]
    fn stages_follow_each_other_and_fill_the_anchors_time() {
        let spans = spans(Sampler::AlwaysOn);
        let root = spans.iter().find(|span| span.name == "anchor").unwrap();
        assert_eq!(root.end_time.duration_since(root.start_time).unwrap().as_millis(), 75);
        let bytes = root.attributes.iter().find(|one| one.key.as_str() == "windlass.anchor.bytes");
        assert_eq!(bytes.unwrap().value, 1200.into());
        let mut at = root.start_time;
        let stages =
            [("decode", 1), ("schedule", 10), ("infer", 40), ("encode", 9), ("deliver", 15)];
        for (name, ms) in stages {
            let stage = spans.iter().find(|span| span.name == name).unwrap();
            assert_eq!(stage.parent_span_id, root.span_context.span_id());
            assert_eq!(stage.span_context.trace_id(), root.span_context.trace_id());
            assert_eq!(stage.start_time, at, "{name}");
            at = stage.end_time;
            assert_eq!(at.duration_since(stage.start_time).unwrap().as_millis(), ms, "{name}");
        }
        assert_eq!(at, root.end_time);
    }

    #[test]
    fn what_the_sampler_leaves_out_costs_no_spans() {
        assert!(spans(Sampler::AlwaysOff).is_empty());
    }
}
