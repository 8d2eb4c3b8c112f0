//! An SFU's side: taps go to workers, and what these say comes back, without anybody waiting for it.
//!
//! A task for each stream reads its queue, sends to its worker what that takes, and moves to another when the [`Judge`] condemns it, the
//! connection fails, or another is to be preferred ([`Workers::should_leave`]). A stream that moves, or of which frames were dropped,
//! asks for one key frame, and sends nothing that cannot be decoded until that comes.

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
use crate::judge::{Judge, PING_EVERY};
use crate::key_wish::KeyWish;
use crate::lease::Lease;
use crate::mutual::{Mutual, Role};
use crate::proto::enhancer_client::EnhancerClient;
use crate::proto::{FromWorker, Ping, ToWorker, from_worker, to_worker};
use crate::token::{ClusterToken, HEADER};
use crate::wire;

/// What may wait for a stream's task: half a second of frames and what is said beside them.
const INPUTS: usize = 32;
/// What may wait for the connection to take it.
const OUTPUTS: usize = 16;
/// How long a worker may take to accept a stream.
const ACCEPT: Duration = Duration::from_millis(500);
/// Where no worker works, after so long they are tried again.
const RETRY: Duration = Duration::from_millis(250);

/// Which workers, and how they are spoken to.
#[derive(Clone)]
pub struct RemoteConfig {
    /// Addresses (`https://host:port`) of those that are always there; others come by their leases.
    pub workers: Vec<String>,
    /// The cluster's, which every stream shows.
    pub token: Option<ClusterToken>,
    /// The cluster's authority and this SFU's own certificate; without, connections are plain.
    pub tls: Option<Mutual>,
    /// From a frame's arrival to its anchor here, at most.
    pub within: Duration,
}

/// Why there are no remote enhancers.
#[derive(Debug, Error)]
pub enum RemoteError {
    /// Something else than an address.
    #[error("`{0}` is no worker's address: write https://host:port")]
    Address(String),
    /// A token that cannot be sent.
    #[error("the cluster's token may only have visible ASCII characters")]
    Token,
    /// The certificates do not go together.
    #[error("the cluster's certificates: {0}")]
    Tls(String),
}

/// What an SFU's side has done so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemoteStats {
    /// The workers that are known.
    pub workers: Vec<WorkerState>,
    /// Frames that found a stream's queue, or its connection, full.
    pub dropped: u64,
    /// Frames that were left out while a key frame was waited for.
    pub skipped: u64,
    /// Anchors that came too late, or of frames that nobody remembers.
    pub late: u64,
    /// Times that a stream was taken from a worker that failed or was silent.
    pub moved: u64,
    /// Times that a stream went to another worker while its own still answered.
    pub balanced: u64,
    /// Leases that made no sense, or were too many.
    pub leases_refused: u64,
    /// Messages that made no sense.
    pub malformed: u64,
    /// Anchors that came in time.
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

/// What takes what workers say; never waits.
pub type Output = Arc<dyn Fn(EnhancerOutput) + Send + Sync>;

struct Shared {
    within: Duration,
    token: Option<MetadataValue<Ascii>>,
    tls: Option<Mutual>,
    /// Connections, by address, each with the generation of the certificate that it shows; kept while the worker is known.
    channels: Mutex<HashMap<Arc<str>, (u64, Channel)>>,
    workers: Mutex<Workers>,
    counters: Counters,
    output: Output,
}

/// See the module.
pub struct Remote {
    shared: Arc<Shared>,
    streams: Mutex<HashMap<StreamId, Sender<TapInput>>>,
    runtime: Handle,
}

impl Remote {
    /// Connects when the first stream needs it. To be called within tokio's runtime.
    pub fn new(config: &RemoteConfig, output: Output) -> Result<Remote, RemoteError> {
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

    /// Takes what a tap says; whether there was room. Never waits.
    pub fn push(&self, input: TapInput) -> bool {
        let stream = input.stream();
        let mut streams = self.streams.lock();
        if matches!(input, TapInput::Stop { .. }) {
            // Its task ends with its queue.
            streams.remove(&stream);
            return true;
        }
        let queue = streams.entry(stream).or_insert_with(|| {
            let (queue, inputs) = mpsc::channel(INPUTS);
            self.runtime.spawn(Task::new(self.shared.clone(), stream).run(inputs));
            queue
        });
        let taken = queue.try_send(input).is_ok();
        if !taken {
            count(&self.shared.counters.dropped);
        }
        taken
    }

    /// A worker's lease was renewed.
    pub fn lease_renewed(&self, name: &str, bytes: &[u8], now: Instant) {
        let room = Lease::read(bytes).map(|lease| {
            let mut workers = self.shared.workers.lock();
            workers.renewed(name, &lease, now)
        });
        match room {
            Ok(true) => {}
            Ok(false) => count(&self.shared.counters.leases_refused),
            Err(why) => {
                tracing::debug!(name, %why, "a worker's lease is refused");
                count(&self.shared.counters.leases_refused);
            }
        }
    }

    /// A worker's lease was given up.
    pub fn lease_given_up(&self, name: &str) {
        self.shared.workers.lock().given_up(name);
        self.shared.forget();
    }

    /// To be called now and then while leases can be read: since when they can without a break.
    pub fn leases_can_be_read(&self, since: Instant, now: Instant) {
        self.shared.workers.lock().expire(since, now);
        self.shared.forget();
    }

    /// What it has done so far.
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
    /// The connection to a worker, which is made when it is first used.
    fn channel(&self, address: &Arc<str>) -> Result<Channel, RemoteError> {
        let mut channels = self.channels.lock();
        let generation = self.tls.as_ref().map_or(0, Mutual::generation);
        if let Some((of, channel)) = channels.get(address)
            && *of == generation
        {
            return Ok(channel.clone());
        }
        // Whoever may write leases must not be able to have plain connections made.
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
        let channel = endpoint.tcp_nodelay(true).connect_timeout(ACCEPT).connect_lazy();
        channels.insert(address.clone(), (generation, channel.clone()));
        Ok(channel)
    }

    /// Closes connections to workers that nobody knows any more.
    fn forget(&self) {
        let known: HashSet<Arc<str>> = self.workers.lock().states().map(|s| s.address).collect();
        self.channels.lock().retain(|address, _| known.contains(address));
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// How a stream's time with a worker ended.
enum End {
    /// Nobody wants it enhanced any more.
    Stopped,
    /// Another worker is to be preferred.
    Better,
    /// The worker failed, in these words.
    Failed(String),
}

/// One stream.
struct Task {
    shared: Arc<Shared>,
    stream: StreamId,
    arrivals: Arrivals,
    wish: KeyWish,
    /// What holds until something else is said, for the next worker.
    regions: Option<TapInput>,
    uplink: Option<TapInput>,
}

impl Task {
    fn new(shared: Arc<Shared>, stream: StreamId) -> Self {
        Task {
            shared,
            stream,
            arrivals: Arrivals::default(),
            wish: KeyWish::new(Instant::now()),
            regions: None,
            uplink: None,
        }
    }

    async fn run(mut self, mut inputs: Receiver<TapInput>) {
        loop {
            let chosen = self.shared.workers.lock().take(Instant::now());
            let Some((worker, address)) = chosen else {
                if self.wait(&mut inputs).await {
                    return;
                }
                continue;
            };
            let end = self.serve(&worker, &address, &mut inputs).await;
            if let End::Failed(_) = &end {
                self.shared.workers.lock().failed(&worker, Instant::now());
            }
            self.shared.workers.lock().leave(&worker);
            let stream = self.stream.0;
            match end {
                End::Stopped => return,
                End::Better => {
                    tracing::info!(stream, worker = &*address, "the stream goes to another worker");
                    count(&self.shared.counters.balanced);
                }
                End::Failed(why) => {
                    tracing::warn!(stream, worker = &*address, why, "the stream leaves its worker");
                    count(&self.shared.counters.moved);
                }
            }
            self.need_key();
        }
    }

    /// Nothing can be decoded before the next key frame, which is asked for.
    fn need_key(&mut self) {
        if self.wish.wait(Instant::now()) {
            (self.shared.output)(EnhancerOutput::NeedKeyFrame { stream: self.stream });
        }
    }

    /// Lets go of what comes while no worker works; whether the stream has ended.
    async fn wait(&mut self, inputs: &mut Receiver<TapInput>) -> bool {
        let until = tokio::time::sleep(RETRY);
        tokio::pin!(until);
        loop {
            tokio::select! {
                () = &mut until => return false,
                input = inputs.recv() => match input {
                    None => return true,
                    Some(input) => {
                        self.keep(&input);
                        if matches!(input, TapInput::Frame(_)) {
                            count(&self.shared.counters.skipped);
                            self.need_key();
                        }
                    }
                },
            }
        }
    }

    /// Remembers what the next worker must know, too.
    fn keep(&mut self, input: &TapInput) {
        match input {
            TapInput::Request { request: EnhancerRequest::Regions(_), .. } => {
                self.regions = Some(input.clone());
            }
            TapInput::Request { request: EnhancerRequest::Uplink(_), .. } => {
                self.uplink = Some(input.clone());
            }
            _ => {}
        }
    }

    async fn serve(
        &mut self,
        worker: &Name,
        address: &Arc<str>,
        inputs: &mut Receiver<TapInput>,
    ) -> End {
        let (to, requests) = mpsc::channel(OUTPUTS);
        let channel = match self.shared.channel(address) {
            Ok(channel) => channel,
            Err(why) => return End::Failed(why.to_string()),
        };
        let mut client = EnhancerClient::new(channel);
        let mut request = Request::new(ReceiverStream::new(requests));
        if let Some(token) = &self.shared.token {
            request.metadata_mut().insert(HEADER, token.clone());
        }
        let mut responses = match timeout(ACCEPT, client.enhance(request)).await {
            Ok(Ok(response)) => response.into_inner(),
            Ok(Err(status)) => return End::Failed(status.message().to_owned()),
            Err(_) => return End::Failed("it does not accept the stream in time".to_owned()),
        };
        for known in [self.regions.clone(), self.uplink.clone()].into_iter().flatten() {
            self.send(&to, &known);
        }
        let mut judge = Judge::new(Instant::now());
        let mut pings = interval(PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                input = inputs.recv() => match input {
                    None => return End::Stopped,
                    Some(input) => self.input(&to, &input),
                },
                message = responses.message() => match message {
                    Ok(Some(message)) => {
                        if let Err(why) = self.message(worker, message, &mut judge) {
                            count(&self.shared.counters.malformed);
                            return End::Failed(why.to_string());
                        }
                    }
                    Ok(None) => return End::Failed("it ended the stream".to_owned()),
                    Err(status) => return End::Failed(status.message().to_owned()),
                },
                _ = pings.tick() => {
                    let now = Instant::now();
                    if judge.is_silent(now) {
                        return End::Failed("it does not answer".to_owned());
                    }
                    if self.shared.workers.lock().should_leave(worker, now) {
                        return End::Better;
                    }
                    let round_trip_us = judge.round_trip().as_micros() as u64;
                    let ping = Ping { number: judge.ping(now), round_trip_us };
                    // Where there is no room for it, it will not be answered.
                    let _ = to.try_send(ToWorker { what: Some(to_worker::What::Ping(ping)) });
                }
            }
        }
    }

    /// What the tap says, for the worker.
    fn input(&mut self, to: &Sender<ToWorker>, input: &TapInput) {
        self.keep(input);
        if let TapInput::Frame(frame) = input {
            if !self.wish.came(frame.key) {
                count(&self.shared.counters.skipped);
                return self.need_key();
            }
            self.arrivals.sent(frame.epoch, frame.rtp_timestamp, frame.arrival);
        }
        if !self.send(to, input) {
            count(&self.shared.counters.dropped);
            if matches!(input, TapInput::Frame(_)) {
                self.need_key();
            }
        }
    }

    fn send(&self, to: &Sender<ToWorker>, input: &TapInput) -> bool {
        let message = wire::to_worker(input, Instant::now(), self.shared.within);
        message.is_none_or(|message| to.try_send(message).is_ok())
    }

    /// What the worker says.
    fn message(
        &self,
        worker: &Name,
        message: FromWorker,
        judge: &mut Judge,
    ) -> Result<(), wire::WireError> {
        let now = Instant::now();
        if let Some(from_worker::What::Pong(pong)) = &message.what {
            judge.pong(pong.number, now);
            self.shared.workers.lock().says(worker, pong.load, pong.draining);
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
