//! The worker's side: an enhancer behind gRPC, for publishers of several SFUs.
//!
//! Each gRPC stream is one stream of the enhancer, numbered here. The enhancer's outputs go to the gRPC stream that
//! they belong to; where that has no room, they are dropped and counted.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::mpsc::{self, Sender};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};
use windlass_types::{EnhancerOutput, EnhancerRequest, StreamId, TapInput};

use crate::clock::{self, FrameAge};
use crate::proto::enhancer::enhancer_server::Enhancer as Service;
use crate::proto::enhancer::{FromWorker, Ping, Pong, ToWorker, from_worker, to_worker};
use crate::wire::{self, ToEnhancer};

/// Capacity of a stream's queue of outputs, in messages: some seconds of anchors.
const OUTPUT_QUEUE: usize = 32;

/// The enhancer that a worker offers to SFUs.
pub trait OfferedEnhancer: Send + Sync + 'static {
    /// Takes a tap's input. Never blocks.
    fn push(&self, input: TapInput);
    /// Takes a request to a stream's enhancement, or a report. Never blocks.
    fn request(&self, stream: StreamId, request: EnhancerRequest);
    /// Maximum time from a frame's arrival to the output of its anchor.
    fn deadline(&self) -> Duration;
    /// Share of the worker's capacity in use, 0 to 1.
    fn load(&self) -> f64;
    /// Minimum scale of the worker's anchors: their width over the width of their frames.
    fn scale(&self) -> usize;
}

/// Counters of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerStats {
    /// Number of streams now.
    pub streams: usize,
    /// Number of streams that were refused because the worker was full.
    pub refused: u64,
    /// Number of malformed messages. Each ended its stream.
    pub malformed: u64,
    /// Number of outputs for which the stream's queue had no room.
    pub dropped: u64,
}

/// An enhancer that publishers of several SFUs use over gRPC.
pub struct Worker {
    enhancer: Arc<dyn OfferedEnhancer>,
    max_streams: usize,
    next_stream: AtomicU32,
    outputs: Mutex<HashMap<StreamId, Sender<Result<FromWorker, Status>>>>,
    refused: AtomicU64,
    malformed: AtomicU64,
    dropped: AtomicU64,
    draining: AtomicBool,
}

impl Worker {
    /// A worker of at most `max_streams` streams at once.
    pub fn new(enhancer: Arc<dyn OfferedEnhancer>, max_streams: usize) -> Arc<Worker> {
        Arc::new(Worker {
            enhancer,
            max_streams,
            next_stream: AtomicU32::new(1),
            outputs: Mutex::default(),
            refused: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            draining: AtomicBool::new(false),
        })
    }

    /// Maximum number of streams at once.
    pub fn max_streams(&self) -> usize {
        self.max_streams
    }

    /// Takes no more streams, and asks SFUs to move theirs to other workers.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether the worker is about to stop.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Sends an output of the enhancer to its stream.
    pub fn send(&self, output: &EnhancerOutput) {
        let queue = self.outputs.lock().get(&output.stream()).cloned();
        // `None`: the stream has just ended.
        let Some(queue) = queue else { return };
        if queue.try_send(Ok(wire::from_worker(output))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The worker's counters.
    pub fn stats(&self) -> WorkerStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WorkerStats {
            streams: self.outputs.lock().len(),
            refused: count(&self.refused),
            malformed: count(&self.malformed),
            dropped: count(&self.dropped),
        }
    }

    /// Begins a stream; `None`: the worker is full.
    fn begin(&self, queue: Sender<Result<FromWorker, Status>>) -> Option<StreamId> {
        let mut outputs = self.outputs.lock();
        if outputs.len() >= self.max_streams {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        // Numbers are reused after 2³² streams.
        loop {
            let stream = StreamId(self.next_stream.fetch_add(1, Ordering::Relaxed));
            if let std::collections::hash_map::Entry::Vacant(free) = outputs.entry(stream) {
                free.insert(queue);
                return Some(stream);
            }
        }
    }

    /// Reads a stream to its end.
    async fn read(
        &self,
        stream: StreamId,
        mut messages: Streaming<ToWorker>,
        back: Sender<Result<FromWorker, Status>>,
    ) {
        let mut round_trip = Duration::ZERO;
        while let Some(Ok(message)) = messages.next().await {
            if let Some(to_worker::What::Ping(Ping { number, round_trip_us })) = message.what {
                round_trip = Duration::from_micros(round_trip_us);
                let pong = Pong {
                    number,
                    load: self.enhancer.load(),
                    streams: u32::try_from(self.outputs.lock().len()).unwrap_or(u32::MAX),
                    scale: u32::try_from(self.enhancer.scale()).unwrap_or(u32::MAX),
                    draining: self.is_draining(),
                };
                // Without room for the answer the ping stays unanswered.
                let _ = back.try_send(Ok(FromWorker { what: Some(from_worker::What::Pong(pong)) }));
                continue;
            }
            let arrival = |age: FrameAge| {
                clock::arrival(Instant::now(), age, round_trip, self.enhancer.deadline())
            };
            match wire::to_enhancer(message, stream, &arrival) {
                Ok(Some(ToEnhancer::Input(input))) => self.enhancer.push(input),
                Ok(Some(ToEnhancer::Request(request))) => self.enhancer.request(stream, request),
                Ok(None) => {}
                Err(why) => {
                    self.malformed.fetch_add(1, Ordering::Relaxed);
                    let _ = back.try_send(Err(Status::invalid_argument(why.to_string())));
                    break;
                }
            }
        }
    }
}

/// Ends a stream when it is dropped.
struct StreamGuard {
    worker: Arc<Worker>,
    stream: StreamId,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.worker.enhancer.push(TapInput::Stop { stream: self.stream });
        self.worker.outputs.lock().remove(&self.stream);
    }
}

/// The gRPC service.
#[derive(Clone)]
pub struct WorkerService(pub Arc<Worker>);

#[tonic::async_trait]
impl Service for WorkerService {
    type EnhanceStream = Pin<Box<dyn Stream<Item = Result<FromWorker, Status>> + Send>>;

    async fn enhance(
        &self,
        request: Request<Streaming<ToWorker>>,
    ) -> Result<Response<Self::EnhanceStream>, Status> {
        let worker = self.0.clone();
        if worker.is_draining() {
            return Err(Status::unavailable("the worker is draining; use another one"));
        }
        let (back, outputs) = mpsc::channel(OUTPUT_QUEUE);
        let Some(stream) = worker.begin(back.clone()) else {
            return Err(Status::resource_exhausted("the worker has its maximum number of streams"));
        };
        let guard = StreamGuard { worker: worker.clone(), stream };
        let messages = request.into_inner();
        tokio::spawn(async move {
            // The queue closes when the SFU stops reading.
            tokio::select! {
                () = worker.read(stream, messages, back.clone()) => {}
                () = back.closed() => {}
            }
            drop(guard);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(outputs))))
    }
}
