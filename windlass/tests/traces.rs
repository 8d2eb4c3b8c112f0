//! Traces of a real server's anchors. The collector is a double: OpenTelemetry's own service, which keeps what it gets.

mod cluster;
mod server;

use std::sync::{Arc, Mutex};

use cluster::{alone, call};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use server::free::free_address;
use server::{Server, eventually};
use tonic::{Request, Response, Status};

const STAGES: [&str; 5] = ["decode", "schedule", "infer", "encode", "deliver"];

/// Keeps spans, and the names of the services that they are of.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<(Vec<Span>, Vec<String>)>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let (spans, services) = &mut *self.0.lock().unwrap();
        for of_service in request.into_inner().resource_spans {
            let attributes = of_service.resource.unwrap_or_default().attributes;
            let named = attributes.into_iter().find(|one| one.key == "service.name");
            services.extend(named.map(|one| format!("{:?}", one.value)));
            spans.extend(of_service.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_anchor_of_a_call_is_a_trace_of_its_stages() {
    let _turn = alone();
    let (collector, addr) = (Collector::default(), free_address());
    let service = TraceServiceServer::new(collector.clone());
    tokio::spawn(tonic::transport::Server::builder().add_service(service).serve(addr));
    let url = format!("http://{addr}");
    let env = [("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()), ("OTEL_BSP_SCHEDULE_DELAY", "200")];
    let server = Server::start_enhanced_with(&[], &env);
    let load = call(&server);
    eventually(&server, "traces four anchors", || {
        let roots = |spans: &[Span]| spans.iter().filter(|span| span.name == "anchor").count();
        roots(&collector.0.lock().unwrap().0) >= 4
    });
    assert_eq!(load.ended()["anchors_broken"], 0);
    let (spans, services) = collector.0.lock().unwrap().clone();
    assert!(services.iter().all(|name| name.contains("windlass")), "{services:?}");
    for root in spans.iter().filter(|span| span.name == "anchor") {
        let took = root.end_time_unix_nano - root.start_time_unix_nano;
        assert!((1_000_000..10_000_000_000).contains(&took), "{took} ns");
        let mut at = root.start_time_unix_nano;
        for name in STAGES {
            let of_root = |span: &&Span| span.name == name && span.parent_span_id == root.span_id;
            let stage = spans.iter().find(of_root).expect(name);
            assert_eq!((stage.start_time_unix_nano, &stage.trace_id), (at, &root.trace_id));
            at = stage.end_time_unix_nano;
        }
        assert_eq!(at, root.end_time_unix_nano);
    }
}
