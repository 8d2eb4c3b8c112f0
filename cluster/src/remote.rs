//! The SFU's side of remote enhancement: inputs of taps go to workers, and their outputs come back. Nothing waits for a
//! worker.
//!
//! Each stream has a task, which forwards the stream's queue to its worker. The task changes the worker when pings stay
//! unanswered ([`Liveness`]), the connection fails, or another worker is better ([`Workers::should_move`]). After a
//! change of the worker or a dropped frame the task asks for a key frame, and sends no frames until that arrives.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use windlass_types::{EnhancerOutput, EnhancerRequest, StreamId, TapInput};

use crate::choice::{Name, WorkerState, Workers};
use crate::clock::Arrivals;
use crate::key_frame_request::KeyFrameRequest;
use crate::lease::Lease;
use crate::liveness::{Liveness, PING_INTERVAL};
use crate::mutual::{Mutual, Role};
use crate::nats::{self, BucketEvent, Client};
use crate::proto::enhancer::enhancer_client::EnhancerClient;
use crate::proto::enhancer::{FromWorker, Ping, ToWorker, from_worker, to_worker};
use crate::token::{ClusterToken, HEADER};
use crate::wire::{self, ToEnhancer};

/// Capacity of a stream's queue of the tap's inputs: half a second of frames.
const INPUT_QUEUE: usize = 32;
/// Capacity of a stream's queue of requests and reports. The queue is emptied at once; where many viewers report at the
/// same time, some are lost.
const REQUEST_QUEUE: usize = 32;
/// Capacity of the queue to a connection, in messages.
const SEND_QUEUE: usize = 16;
/// Time that a worker has to accept a stream.
const ACCEPT_TIMEOUT: Duration = Duration::from_millis(500);
/// Time until the next attempt where no worker is available.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// The workers of an SFU, and how to connect to them.
#[derive(Clone)]
pub struct RemoteConfig {
    /// Addresses (`https://host:port`) of configured workers; others are found by their leases.
    pub workers: Vec<String>,
    /// The cluster's token. Each stream authenticates with the token of enhancers that is derived from it.
    pub token: Option<ClusterToken>,
    /// Certificates for mutual TLS; `None`: connections are plaintext.
    pub tls: Option<Mutual>,
    /// Maximum time from a frame's arrival at the SFU to its anchor's arrival there.
    pub within: Duration,
}

/// Why remote enhancers or links cannot be used.
#[derive(Debug, Error)]
pub enum RemoteError {
    /// The address is not a URL, or not `https` where that is needed.
    #[error("`{0}` is not the address of a worker: write https://host:port")]
    Address(String),
    /// The token is no header value.
    #[error("the cluster's token may only have visible ASCII characters")]
    Token,
    /// The certificates cannot be used.
    #[error("cannot use the cluster's certificates: {0}")]
    Tls(String),
}

/// Counters of the SFU's side.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemoteStats {
    /// The known workers.
    pub workers: Vec<WorkerState>,
    /// Number of messages for which the queue of a stream or of its connection had no room.
    pub dropped: u64,
    /// Number of frames that were not sent while the stream waited for a key frame.
    pub skipped: u64,
    /// Number of anchors that came too late, or that belong to unknown frames.
    pub late: u64,
    /// Number of streams that changed their worker because it failed.
    pub moved: u64,
    /// Number of streams that changed their worker because it was draining or overloaded.
    pub balanced: u64,
    /// Number of refused leases: malformed ones, and those of too many workers.
    pub leases_refused: u64,
    /// Number of malformed messages of workers.
    pub malformed: u64,
    /// Number of anchors that arrived in time.
    pub anchors: u64,
}

#[derive(Default)]
struct Counters {
    dropped: AtomicU64,
    skipped: AtomicU64,
    late: AtomicU64,
    moved: AtomicU64,
    balanced: AtomicU64,
    leases_refused: AtomicU64,
    malformed: AtomicU64,
    anchors: AtomicU64,
}

/// Takes outputs of workers. The function must not block.
pub type OutputSink = Arc<dyn Fn(EnhancerOutput) + Send + Sync>;

struct Shared {
    within: Duration,
    token: Option<MetadataValue<Ascii>>,
    tls: Option<Mutual>,
    /// Connections by address, each with the generation of its certificate. They are kept while the worker is known.
    channels: Mutex<HashMap<Arc<str>, (u64, Channel)>>,
    workers: Mutex<Workers>,
    counters: Counters,
    output: OutputSink,
}

/// All streams that remote workers enhance; the module's documentation has the method.
pub struct Remote {
    shared: Arc<Shared>,
    streams: Mutex<HashMap<StreamId, Queues>>,
    runtime: Handle,
}

impl Remote {
    /// Makes the SFU's side without connections: the first stream of a worker connects. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    ///
    /// The token, a configured address or the certificates cannot be used.
    pub fn new(config: &RemoteConfig, output: OutputSink) -> Result<Remote, RemoteError> {
        let token = config.token.as_ref().map(|token| token.of_enhancers().header().parse());
        let shared = Shared {
            within: config.within,
            token: token.transpose().map_err(|_| RemoteError::Token)?,
            tls: config.tls.clone(),
            channels: Mutex::default(),
            workers: Mutex::new(Workers::named(config.workers.iter().map(String::as_str))),
            counters: Counters::default(),
            output,
        };
        for address in &config.workers {
            shared.channel(&address.as_str().into())?;
        }
        let runtime = Handle::current();
        Ok(Remote { shared: Arc::new(shared), streams: Mutex::default(), runtime })
    }

    /// Takes a tap's input; `false`: the stream's queue is full. Never blocks.
    pub fn push(&self, input: TapInput) -> bool {
        let stream = input.stream();
        if matches!(input, TapInput::Stop { .. }) {
            // The task ends when its queues are closed.
            self.streams.lock().remove(&stream);
            return true;
        }
        self.give(stream, |queues| queues.inputs.try_send(input).is_ok())
    }

    /// Takes a request to a stream's enhancement, or a report. Returns `false` if the stream's queue of requests is
    /// full. Never blocks. Must not be called for a stream that has stopped, because that would start it again.
    pub fn request(&self, stream: StreamId, request: EnhancerRequest) -> bool {
        self.give(stream, |queues| queues.requests.try_send(request).is_ok())
    }

    /// Puts something into a stream's queues. The first frame or request begins the stream.
    fn give(&self, stream: StreamId, put: impl FnOnce(&Queues) -> bool) -> bool {
        let mut streams = self.streams.lock();
        let queues = streams.entry(stream).or_insert_with(|| {
            let (queues, intake) = queues();
            self.runtime.spawn(Task::new(self.shared.clone(), stream).run(intake));
            queues
        });
        let taken = put(queues);
        if !taken {
            count(&self.shared.counters.dropped);
        }
        taken
    }

    /// Takes a lease that a worker has written.
    fn on_lease(&self, name: &str, bytes: &[u8], now: Instant) {
        let accepted = Lease::read(bytes).map(|lease| {
            let mut workers = self.shared.workers.lock();
            workers.on_lease(name, &lease, now)
        });
        match accepted {
            Ok(true) => {}
            Ok(false) => count(&self.shared.counters.leases_refused),
            Err(why) => {
                tracing::debug!(name, %why, "refused the lease of a worker");
                count(&self.shared.counters.leases_refused);
            }
        }
    }

    /// Notes that a worker has released its lease.
    fn on_lease_released(&self, name: &str) {
        self.shared.workers.lock().on_lease_released(name);
        self.shared.close_unused();
    }

    /// Follows the bucket of workers' leases for as long as the future is polled.
    pub async fn watch_leases(&self, client: Client) {
        nats::watch_worker_leases(client, |event| {
            let now = Instant::now();
            match event {
                BucketEvent::Written { key, value, .. } => self.on_lease(key, value, now),
                BucketEvent::Released { key, .. } => self.on_lease_released(key),
                BucketEvent::Readable { since } => self.expire_leases(since, now),
                BucketEvent::Rejected { .. } | BucketEvent::Reset | BucketEvent::Unreadable => {}
            }
        })
        .await;
    }

    /// Ends leases that were not renewed. To be called repeatedly while leases are readable. `since` is the time since
    /// which they are readable without interruption.
    fn expire_leases(&self, since: Instant, now: Instant) {
        self.shared.workers.lock().expire(since, now);
        self.shared.close_unused();
    }

    /// Counters of the streams to workers.
    pub fn stats(&self) -> RemoteStats {
        let Shared { workers, counters, .. } = &*self.shared;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RemoteStats {
            workers: workers.lock().states().collect(),
            dropped: count(&counters.dropped),
            skipped: count(&counters.skipped),
            late: count(&counters.late),
            moved: count(&counters.moved),
            balanced: count(&counters.balanced),
            leases_refused: count(&counters.leases_refused),
            malformed: count(&counters.malformed),
            anchors: count(&counters.anchors),
        }
    }
}

impl Shared {
    /// The connection to a worker, which is made at first use.
    fn channel(&self, address: &Arc<str>) -> Result<Channel, RemoteError> {
        let mut channels = self.channels.lock();
        let generation = self.tls.as_ref().map_or(0, Mutual::generation);
        if let Some((known, channel)) = channels.get(address)
            && *known == generation
        {
            return Ok(channel.clone());
        }
        // A lease must not be able to downgrade a connection to plaintext.
        if self.tls.is_some() && !address.starts_with("https://") {
            return Err(RemoteError::Address(address.to_string()));
        }
        let endpoint = Endpoint::from_shared(address.to_string());
        let endpoint = endpoint.map_err(|_| RemoteError::Address(address.to_string()))?;
        let endpoint = match &self.tls {
            None => endpoint,
            Some(tls) => {
                let secured = endpoint.tls_config(tls.to(Role::Enhancer));
                secured.map_err(|error| RemoteError::Tls(error.to_string()))?
            }
        };
        let channel = endpoint.tcp_nodelay(true).connect_timeout(ACCEPT_TIMEOUT).connect_lazy();
        channels.insert(address.clone(), (generation, channel.clone()));
        Ok(channel)
    }

    /// Closes connections to workers that are no longer known.
    fn close_unused(&self) {
        let known: HashSet<Arc<str>> = self.workers.lock().states().map(|s| s.address).collect();
        self.channels.lock().retain(|address, _| known.contains(address));
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The queues into a stream's task. Where one is full, the other still has room.
struct Queues {
    inputs: Sender<TapInput>,
    requests: Sender<EnhancerRequest>,
}

/// The receivers of [`Queues`] in the task.
struct Intake {
    inputs: Receiver<TapInput>,
    requests: Receiver<EnhancerRequest>,
}

fn queues() -> (Queues, Intake) {
    let (to_inputs, inputs) = mpsc::channel(INPUT_QUEUE);
    let (to_requests, requests) = mpsc::channel(REQUEST_QUEUE);
    (Queues { inputs: to_inputs, requests: to_requests }, Intake { inputs, requests })
}

impl Intake {
    /// The next input or request; `None`: the stream has ended. Inputs go first, so that a given anchor still finds its
    /// frame. No more order is needed: the end is no message, and other requests hold from any frame on.
    async fn next(&mut self) -> Option<ToEnhancer> {
        tokio::select! {
            biased;
            input = self.inputs.recv() => input.map(ToEnhancer::Input),
            Some(request) = self.requests.recv() => Some(ToEnhancer::Request(request)),
        }
    }
}

/// Why a stream left its worker.
enum End {
    /// The stream has ended.
    Stopped,
    /// Another worker is better.
    Rebalanced,
    /// The worker failed, for this reason.
    Failed(String),
}

/// The task of one stream.
struct Task {
    shared: Arc<Shared>,
    stream: StreamId,
    arrivals: Arrivals,
    key_frame: KeyFrameRequest,
    /// The last [`EnhancerRequest::Regions`]: a state that the next worker needs too.
    regions: Option<EnhancerRequest>,
    uplink: Option<EnhancerRequest>,
}

impl Task {
    fn new(shared: Arc<Shared>, stream: StreamId) -> Self {
        Task {
            shared,
            stream,
            arrivals: Arrivals::default(),
            key_frame: KeyFrameRequest::new(Instant::now()),
            regions: None,
            uplink: None,
        }
    }

    async fn run(mut self, mut intake: Intake) {
        loop {
            let assigned = self.shared.workers.lock().assign(Instant::now());
            let Some((worker, address)) = assigned else {
                if self.discard(&mut intake).await {
                    return;
                }
                continue;
            };
            let end = self.serve(&worker, &address, &mut intake).await;
            if let End::Failed(_) = &end {
                self.shared.workers.lock().on_failure(&worker, Instant::now());
            }
            self.shared.workers.lock().unassign(&worker);
            let stream = self.stream.0;
            match end {
                End::Stopped => return,
                End::Rebalanced => {
                    tracing::info!(stream, worker = &*address, "stream moves to another worker");
                    count(&self.shared.counters.balanced);
                }
                End::Failed(why) => {
                    tracing::warn!(
                        stream,
                        worker = &*address,
                        why,
                        "worker failed: the stream moves to another; check the log of the worker"
                    );
                    count(&self.shared.counters.moved);
                }
            }
            self.need_key();
        }
    }

    /// Asks for a key frame, since nothing can be decoded before one.
    fn need_key(&mut self) {
        if self.key_frame.need(Instant::now()) {
            (self.shared.output)(EnhancerOutput::NeedKeyFrame { stream: self.stream });
        }
    }

    /// Discards inputs while no worker is available, for [`RETRY_INTERVAL`]; returns whether the stream has ended.
    async fn discard(&mut self, intake: &mut Intake) -> bool {
        let until = tokio::time::sleep(RETRY_INTERVAL);
        tokio::pin!(until);
        loop {
            tokio::select! {
                () = &mut until => return false,
                taken = intake.next() => match taken {
                    None => return true,
                    Some(ToEnhancer::Request(request)) => self.remember(&request),
                    Some(ToEnhancer::Input(TapInput::Frame(_))) => {
                        count(&self.shared.counters.skipped);
                        self.need_key();
                    }
                    Some(ToEnhancer::Input(_)) => {}
                },
            }
        }
    }

    /// Remembers a request that the next worker needs too.
    fn remember(&mut self, request: &EnhancerRequest) {
        match request {
            EnhancerRequest::Regions(_) => self.regions = Some(request.clone()),
            EnhancerRequest::Uplink(_) => self.uplink = Some(request.clone()),
            EnhancerRequest::KeyAnchor
            | EnhancerRequest::Decay { .. }
            | EnhancerRequest::Given(_) => {}
        }
    }

    async fn serve(&mut self, worker: &Name, address: &Arc<str>, intake: &mut Intake) -> End {
        let (to, requests) = mpsc::channel(SEND_QUEUE);
        let channel = match self.shared.channel(address) {
            Ok(channel) => channel,
            Err(why) => return End::Failed(why.to_string()),
        };
        let mut client = EnhancerClient::new(channel);
        let mut request = Request::new(ReceiverStream::new(requests));
        if let Some(token) = &self.shared.token {
            request.metadata_mut().insert(HEADER, token.clone());
        }
        let mut responses = match timeout(ACCEPT_TIMEOUT, client.enhance(request)).await {
            Ok(Ok(response)) => response.into_inner(),
            Ok(Err(status)) => return End::Failed(status.message().to_owned()),
            Err(_) => {
                return End::Failed("the worker did not accept the stream in time".to_owned());
            }
        };
        for known in [self.regions.clone(), self.uplink.clone()].into_iter().flatten() {
            self.request(&to, &known);
        }
        let mut liveness = Liveness::new(Instant::now());
        let mut pings = interval(PING_INTERVAL);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                taken = intake.next() => match taken {
                    None => return End::Stopped,
                    Some(ToEnhancer::Input(input)) => self.input(&to, &input),
                    Some(ToEnhancer::Request(request)) => {
                        self.remember(&request);
                        self.request(&to, &request);
                    }
                },
                message = responses.message() => match message {
                    Ok(Some(message)) => {
                        if let Err(why) = self.message(worker, message, &mut liveness) {
                            count(&self.shared.counters.malformed);
                            return End::Failed(why.to_string());
                        }
                    }
                    Ok(None) => return End::Failed("the worker ended the stream".to_owned()),
                    Err(status) => return End::Failed(status.message().to_owned()),
                },
                _ = pings.tick() => {
                    let now = Instant::now();
                    if liveness.has_timed_out(now) {
                        return End::Failed("the worker does not answer".to_owned());
                    }
                    if self.shared.workers.lock().should_move(worker, now) {
                        return End::Rebalanced;
                    }
                    let round_trip_us = liveness.round_trip().as_micros() as u64;
                    let ping = Ping { number: liveness.ping(now), round_trip_us };
                    // Without room for the ping it stays unanswered.
                    let _ = to.try_send(ToWorker { what: Some(to_worker::What::Ping(ping)), request: None });
                }
            }
        }
    }

    /// Forwards an input of the tap to the worker.
    fn input(&mut self, to: &Sender<ToWorker>, input: &TapInput) {
        if let TapInput::Frame(frame) = input {
            if !self.key_frame.on_frame(frame.key) {
                count(&self.shared.counters.skipped);
                return self.need_key();
            }
            self.arrivals.sent(frame.epoch, frame.rtp_timestamp, frame.arrival);
        }
        let message = wire::to_worker(input, Instant::now(), self.shared.within);
        if message.is_some_and(|message| to.try_send(message).is_err()) {
            count(&self.shared.counters.dropped);
            if matches!(input, TapInput::Frame(_)) {
                self.need_key();
            }
        }
    }

    /// Forwards a request to the worker.
    fn request(&self, to: &Sender<ToWorker>, request: &EnhancerRequest) {
        if to.try_send(wire::request_to_worker(request, Instant::now())).is_err() {
            count(&self.shared.counters.dropped);
        }
    }

    /// Handles a message of the worker.
    fn message(
        &self,
        worker: &Name,
        message: FromWorker,
        liveness: &mut Liveness,
    ) -> Result<(), wire::WireError> {
        let now = Instant::now();
        if let Some(from_worker::What::Pong(pong)) = &message.what {
            liveness.pong(pong.number, now);
            self.shared.workers.lock().on_answer(worker, pong.load, pong.draining);
            return Ok(());
        }
        let is_anchor = matches!(message.what, Some(from_worker::What::Anchor(_)));
        let output = wire::output(message, self.stream, &self.arrivals)?;
        let in_time = |output: &EnhancerOutput| match output {
            EnhancerOutput::Anchor(anchor) => {
                now.saturating_duration_since(anchor.arrival) <= self.shared.within
            }
            _ => true,
        };
        match output.filter(in_time) {
            Some(output) => {
                if is_anchor {
                    count(&self.shared.counters.anchors);
                }
                (self.shared.output)(output);
            }
            None => count(&self.shared.counters.late),
        }
        Ok(())
    }
}
