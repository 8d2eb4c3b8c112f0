//! A worker's side: an enhancer behind gRPC, for publishers of several SFUs.
//!
//! Each gRPC stream is a stream of the enhancer, under a number that is given here. What the enhancer says goes to the stream that it is
//! about; where that takes nothing any more, it is dropped and counted.

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
use windlass_types::{EnhancerOutput, StreamId, TapInput};

use crate::clock;
use crate::proto::enhancer_server::Enhancer as Service;
use crate::proto::{FromWorker, Ping, Pong, ToWorker, from_worker, to_worker};
use crate::wire;

/// Messages that may wait for a stream's way back: some seconds of anchors.
const OUTPUTS: usize = 32;

/// An enhancer that works for others.
pub trait Offered: Send + Sync + 'static {
    /// Takes what a tap says; never waits.
    fn push(&self, input: TapInput);
    /// From a frame's arrival to its anchor handed over, at most.
    fn deadline(&self) -> Duration;
    /// The share of its accelerators' time that is taken, 0 to 1.
    fn load(&self) -> f64;
    /// Width of its anchors over their frames', at the least.
    fn scale(&self) -> usize;
}

/// What a worker has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerStats {
    /// Publishers that are enhanced now.
    pub streams: usize,
    /// Those that were refused, because there were too many.
    pub refused: u64,
    /// Messages that made no sense; each ended its stream.
    pub malformed: u64,
    /// What the enhancer said that its stream had no room for.
    pub dropped: u64,
}

/// See the module.
pub struct Worker {
    offered: Arc<dyn Offered>,
    most: usize,
    next: AtomicU32,
    ways_back: Mutex<HashMap<StreamId, Sender<Result<FromWorker, Status>>>>,
    refused: AtomicU64,
    malformed: AtomicU64,
    dropped: AtomicU64,
    draining: AtomicBool,
}

impl Worker {
    /// For at most `most` publishers at once.
    pub fn new(offered: Arc<dyn Offered>, most: usize) -> Arc<Worker> {
        Arc::new(Worker {
            offered,
            most,
            next: AtomicU32::new(1),
            ways_back: Mutex::default(),
            refused: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            draining: AtomicBool::new(false),
        })
    }

    /// Publishers that it takes.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Takes no more streams, and asks those that there are to go elsewhere.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether it ends soon.
    pub fn drains(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Hands what the enhancer says to its stream.
    pub fn say(&self, output: &EnhancerOutput) {
        let way = self.ways_back.lock().get(&output.stream()).cloned();
        // A stream that has just ended wants nothing any more.
        let Some(way) = way else { return };
        if way.try_send(Ok(wire::from_worker(output))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What it has done so far.
    pub fn stats(&self) -> WorkerStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WorkerStats {
            streams: self.ways_back.lock().len(),
            refused: count(&self.refused),
            malformed: count(&self.malformed),
            dropped: count(&self.dropped),
        }
    }

    /// Begins a stream; `None` where there are too many.
    fn begin(&self, way: Sender<Result<FromWorker, Status>>) -> Option<StreamId> {
        let mut ways = self.ways_back.lock();
        if ways.len() >= self.most {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        // After four thousand million streams a number may be in use.
        loop {
            let stream = StreamId(self.next.fetch_add(1, Ordering::Relaxed));
            if let std::collections::hash_map::Entry::Vacant(free) = ways.entry(stream) {
                free.insert(way);
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
                    load: self.offered.load(),
                    streams: u32::try_from(self.ways_back.lock().len()).unwrap_or(u32::MAX),
                    scale: u32::try_from(self.offered.scale()).unwrap_or(u32::MAX),
                    draining: self.drains(),
                };
                // Who has no room for an answer will find it missing.
                let _ = back.try_send(Ok(FromWorker { what: Some(from_worker::What::Pong(pong)) }));
                continue;
            }
            let arrival = |age, within| {
                clock::arrival(Instant::now(), (age, within), round_trip, self.offered.deadline())
            };
            match wire::tap_input(message, stream, &arrival) {
                Ok(Some(input)) => self.offered.push(input),
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

/// Ends a stream, however its task ended.
struct Ending {
    worker: Arc<Worker>,
    stream: StreamId,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.worker.offered.push(TapInput::Stop { stream: self.stream });
        self.worker.ways_back.lock().remove(&self.stream);
    }
}

/// The service, to be given to tonic's server.
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
        if worker.drains() {
            return Err(Status::unavailable("this worker ends soon"));
        }
        let (back, outputs) = mpsc::channel(OUTPUTS);
        let Some(stream) = worker.begin(back.clone()) else {
            return Err(Status::resource_exhausted(
                "this worker has as many streams as it may have",
            ));
        };
        let ending = Ending { worker: worker.clone(), stream };
        let messages = request.into_inner();
        tokio::spawn(async move {
            // Who does not read any more has gone.
            tokio::select! {
                () = worker.read(stream, messages, back.clone()) => {}
                () = back.closed() => {}
            }
            drop(ending);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(outputs))))
    }
}
