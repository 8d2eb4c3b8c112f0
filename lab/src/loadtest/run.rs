//! One run of the load test: when each client comes, what is sampled each second, and the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::sync::watch;
use tokio::task::JoinSet;
use windlass_netem::Profile;
use windlass_types::VideoCodec;

use super::args::{LoadArgs, LoadtestArgs, Peer, ServerArgs, Stack};
use super::balance::{self, Balance};
use super::children::{self, Children};
use super::course::Course;
use super::measurement::Measurement;
use super::media;
use super::process::{Own, Usage};
use super::publisher::Publisher;
use super::recording::Recording;
use super::report::Report;
use super::scrape::Figures;
use super::signal::ServerUrl;
use super::stalls::Stalls;
use super::subscriber::Subscriber;
use super::table::{clients, server, table};
use super::tally::{Tally, Totals};
use super::trace;
use super::visits::{Parting, Stop, Visit, Visits, told};
use crate::interrupt::{self, Interrupted};
use crate::page::Contents;
use crate::progress::Progress;

/// Maximum time for clients to leave.
const LEAVE: Duration = Duration::from_secs(5);
/// Time between two samples.
const TICK: Duration = Duration::from_secs(1);

/// The results of a run.
pub(crate) struct Outcome {
    /// The report of the run.
    pub(super) report: Report,
    /// The figures of every second.
    course: Course,
    /// How far the run came, if Ctrl-C ended it early.
    pub interrupted: Option<Interrupted>,
}

/// Runs the test and prints its report.
pub(crate) fn run(args: &LoadtestArgs) -> Result<()> {
    if let Some(part) = &args.load.part {
        return runtime(&args.load)?.block_on(run_part(args, part));
    }
    let Outcome { report, course, interrupted } = play(args)?;
    let row = &report.row;
    args.report.output.put(&report, interrupted, &table(&report), || Contents {
        facts: clients(row).into_iter().chain(server(row)).collect(),
        plots: course.plots(),
        ..Contents::default()
    })?;
    if interrupted.is_none() { verdict(&report, args.times.stay.is_some()) } else { Ok(()) }
}

/// Whether the server did what it must, whatever its CPU time and memory. `visits` says that clients came and went.
fn verdict(report: &Report, visits: bool) -> Result<()> {
    let why = report.failure.as_deref().unwrap_or("they did not say why");
    // Where they come and go, there may be none in the end.
    let sends = report.row.setup.publishers > 0 || (visits && report.row.sent.sent > 0);
    ensure!(sends, "no publisher could send: {why}");
    let Some(balance) = &report.row.balance else { return Ok(()) };
    ensure!(balance.empty(), "the server still holds something though nobody is there; see above");
    ensure!(balance.wrong().next().is_none(), "what the server counted does not add up; see above");
    ensure!(
        balance.gave_back(),
        "the server keeps most of the memory that its clients took; see above"
    );
    Ok(())
}

/// Runs the test.
pub(crate) fn play(args: &LoadtestArgs) -> Result<Outcome> {
    ensure!(args.rooms.subscribers <= 1000, "at most 1000 subscribers in a room");
    ensure!(
        args.server.peer == Peer::Windlass || args.sent.layers.len() == 1,
        "Janus is sent one layer: give one with --layers"
    );
    ensure!(
        args.load.client == Stack::Str0m || args.server.peer == Peer::Windlass,
        "the client on webrtc-rs only offers, and Janus offers to its subscribers: leave --client out with --peer janus"
    );
    ensure!(
        args.load.client == Stack::Str0m || args.times.stay.is_none(),
        "what --stay adds up includes each datagram sent, which webrtc-rs does not count: leave --client out"
    );
    ensure!(
        args.server.peer == Peer::Windlass || !args.watched.idle,
        "--idle is for servers of ours"
    );
    let knows_any = args.server.peer == Peer::Windlass && args.load.client == Stack::Str0m;
    ensure!(
        args.sent.codec == VideoCodec::Vp9 || knows_any,
        "Janus's rooms here and the client on webrtc-rs are for VP9: leave --codec out"
    );
    ensure!(
        args.sent.codec == VideoCodec::Vp9 || args.sent.media.is_none(),
        "the files of --media are of VP9: leave --codec out"
    );
    // Before any server is loaded: encoding takes CPU time.
    let recording = Arc::new(media::recording(&args.sent)?);
    let layers: Vec<String> = recording
        .layers()
        .map(|l| format!("{} {:.0} kbit/s", l.rid(), recording.kbps(l)))
        .collect();
    eprintln!(
        "recording: {}, {} pictures at {:.3} a second, a key frame every {:.1} s at most; {}",
        recording.codec.name(),
        recording.len(),
        recording.fps,
        recording.key_every_s(),
        layers.join(", ")
    );
    runtime(&args.load)?.block_on(async {
        let own = match (args.server.own, args.server.peer) {
            (false, _) => None,
            (true, Peer::Windlass) => Some(Own::start(&args.server.serve).await?),
            (true, Peer::Janus) => Some(Own::janus().await?),
        };
        let url = own.as_ref().map_or(args.server.url.as_str(), |own| own.url.as_str());
        let server = args.server.at(url)?;
        let pid = own.as_ref().map_or(args.server.pid, Own::pid);
        let outcome = measure(args, &server, pid, &recording).await;
        if let Some(own) = own {
            own.stop().await;
        }
        outcome
    })
}

fn runtime(load: &LoadArgs) -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(load.threads.get())
        .thread_name("loadtest")
        .enable_all()
        .build()
        .context("cannot start the clients' threads")
}

/// Runs a child process of subscribers.
async fn run_part(args: &LoadtestArgs, part: &children::Part) -> Result<()> {
    let server = args.server.at(&args.server.url)?;
    let tally = Tally::default();
    let (stop, stopped) = watch::channel(None);
    let spawner =
        Spawner { args, server: &server, run: &part.run, tally: &tally, stopped: &stopped };
    let mut clients = JoinSet::new();
    spawner.subscribers(&mut clients, |number| number % part.of == part.number);
    children::tell(clients, &tally, stop).await
}

/// The server's own metrics.
async fn figures_of(args: &ServerArgs, server: &ServerUrl) -> Result<Figures> {
    match args.peer {
        Peer::Windlass if !args.no_metrics => Figures::of(server).await,
        _ => Ok(Figures::default()),
    }
}

async fn measure(
    args: &LoadtestArgs,
    server: &ServerUrl,
    pid: Option<u32>,
    recording: &Arc<Recording>,
) -> Result<Outcome> {
    // Says at once if there is no server.
    let untouched = figures_of(&args.server, server).await?;
    ensure!(
        args.times.stay.is_none() || untouched.get("sfu_participants") < 1.0,
        "somebody is on that server: what it counts would not be of this test alone"
    );
    let empty = pid.and_then(Usage::of);
    let stalls = Stalls::watch();
    let tally = Tally::default();
    let (stop, stopped) = watch::channel(None);
    let run = run_name(args.server.peer);
    let spawner = Spawner { args, server, run: &run, tally: &tally, stopped: &stopped };
    let mut clients = JoinSet::new();
    spawner.publishers(&mut clients, recording);
    let processes = usize::from(args.load.client_processes);
    let url = format!("http://{}", server.authority);
    let children = Children::start(processes, &run, &url)?;
    if processes == 0 {
        spawner.subscribers(&mut clients, |_| true);
    }
    let mut lines = JoinSet::new();
    if args.report.trace {
        lines.spawn(trace::say(tally.clone()));
    }
    let totals_of = || {
        let mut totals = tally.lock().clone();
        children.add_to(&mut totals);
        totals
    };
    let begun = Instant::now();
    let settled = begun + Duration::from_secs_f64(args.times.ramp + args.times.settle);
    let end = settled + Duration::from_secs_f64(args.times.seconds);
    let progress = Progress::new((end - begun).as_secs_f64().ceil() as usize, "s");

    let mut measurement: Option<Measurement> = None;
    let mut latest: Option<Totals> = None;
    let mut second = tokio::time::interval(TICK);
    let mut early = false;
    while !early && Instant::now() < end {
        tokio::select! {
            _ = second.tick() => {}
            () = interrupt::wait() => {}
        }
        early = interrupt::pressed();
        let figures = match figures_of(&args.server, server).await {
            Ok(figures) => figures,
            Err(error) => {
                progress.note(&format!("{error:#}"));
                continue;
            }
        };
        // What came before is no part of the measurement. If the run ends earlier, the measurement has no length.
        if (early || Instant::now() >= settled) && measurement.is_none() {
            let totals = totals_of();
            measurement =
                Some(Measurement::new(figures.clone(), totals, empty, args.rooms.subscribers));
        }
        let totals = totals_of();
        let usage = pid.and_then(Usage::of);
        progress.reached(begun.elapsed().as_secs());
        progress.say(state(&totals, latest.as_ref(), &figures));
        if let Some(measurement) = &mut measurement {
            measurement.sample(&figures, &totals, usage, &children.usage());
            measurement.stall_max = stalls.max();
        }
        latest = Some(totals);
    }
    drop(progress);
    drop(lines);
    let _ = stop.send(Some(Parting::Goodbye));
    children.stop().await;
    let ended = tokio::time::timeout(LEAVE, async { while clients.join_next().await.is_some() {} });
    if ended.await.is_err() {
        tracing::warn!("some clients did not end in time");
    }
    let measurement =
        measurement.context("it ended before anything could be measured; give it longer")?;
    let balance = match args.times.stay {
        Some(_) => {
            Some(balance(&args.server, server, pid, &untouched, &tally, &measurement).await?)
        }
        None => None,
    };
    let (after, of) = (measurement.seconds().round() as u64, args.times.seconds.ceil() as u64);
    let report = Report::new(args, recording, &measurement, balance);
    let interrupted = early.then_some(Interrupted { after, of, unit: "s" });
    Ok(Outcome { report, course: measurement.course, interrupted })
}

/// Waits for a limited time until the server holds nothing any more, and returns the balance.
async fn balance(
    args: &ServerArgs,
    server: &ServerUrl,
    pid: Option<u32>,
    untouched: &Figures,
    tally: &Tally,
    measurement: &Measurement,
) -> Result<Balance> {
    let begun = Instant::now();
    eprintln!("all have gone; waiting until the server has noticed");
    loop {
        let mut balance = Balance::of(untouched, &figures_of(args, server).await?, &tally.lock());
        measurement.add_process_to(&mut balance, pid.and_then(Usage::of));
        if balance.settled() || begun.elapsed() > balance::TIMEOUT {
            return Ok(balance);
        }
        tokio::time::sleep(TICK).await;
    }
}

/// The name of this run, from which rooms are named: another test on the same server has other rooms.
fn run_name(peer: Peer) -> String {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_millis() as u64);
    match peer {
        Peer::Windlass => format!("{now:x}-{}", std::process::id()),
        // Janus' rooms have numbers.
        Peer::Janus => (now % 1_000_000_000 * 10_000).to_string(),
    }
}

/// Starts clients, spread over the ramp.
struct Spawner<'a> {
    args: &'a LoadtestArgs,
    server: &'a ServerUrl,
    run: &'a str,
    tally: &'a Tally,
    stopped: &'a Stop,
}

impl Spawner<'_> {
    fn room(&self, number: usize) -> String {
        match self.args.server.peer {
            Peer::Windlass => format!("loadtest-{}-{number}", self.run),
            Peer::Janus => (self.run.parse().unwrap_or(0) + number as u64 + 1).to_string(),
        }
    }

    /// Starts a client, which comes after its share of the ramp.
    fn start<F: Future<Output = Result<()>> + Send>(
        &self,
        clients: &mut JoinSet<()>,
        share: f64,
        links: &[Profile],
        number: u64,
        client: impl Fn(Visit) -> F + Send + Sync + 'static,
    ) {
        let delay = Duration::from_secs_f64(self.args.times.ramp * share);
        let visits = Visits {
            stay: self.args.times.stay.map(Duration::from_secs_f64),
            links: links.to_vec(),
            seed: self.args.links.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number),
        };
        let (tally, mut end) = (self.tally.clone(), self.stopped.clone());
        clients.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(delay) => visits.run(tally, end, client).await,
                _ = told(&mut end) => {}
            }
        });
    }

    fn publishers(&self, clients: &mut JoinSet<()>, recording: &Arc<Recording>) {
        let args = self.args;
        let of = args.rooms.publishers.get();
        for number in 0..of {
            let publisher = Publisher {
                server: self.server.clone(),
                peer: args.server.peer,
                stack: args.load.client,
                room: self.room(number / args.rooms.per_room),
                per_room: args.rooms.per_room.get(),
                stamps: args.stamps(),
                number,
                of,
                recording: recording.clone(),
                tally: self.tally.clone(),
                access: None,
                stop: self.stopped.clone(),
            };
            let client =
                move |Visit { access, stop }| Publisher { access, stop, ..publisher.clone() }.run();
            let links = args.links.of_publishers();
            self.start(clients, number as f64 / of as f64, links, number as u64, client);
        }
    }

    /// Starts the subscribers whose numbers are `ours`.
    fn subscribers(&self, clients: &mut JoinSet<()>, ours: impl Fn(usize) -> bool) {
        let args = self.args;
        let all = args.rooms.count() * args.rooms.subscribers;
        for number in (0..all).filter(|&number| ours(number)) {
            let room = number / args.rooms.subscribers;
            let rest = args.rooms.publishers.get() - room * args.rooms.per_room.get();
            let subscriber = Subscriber {
                server: self.server.clone(),
                peer: args.server.peer,
                stack: args.load.client,
                codec: args.sent.codec,
                room: self.room(room),
                publishers: rest.min(args.rooms.per_room.get()),
                idle: args.watched.idle,
                number,
                rung: args.rung(),
                budget_ms: f64::from(args.report.budget_ms.get()),
                tally: self.tally.clone(),
                access: None,
                stop: self.stopped.clone(),
            };
            let client = move |Visit { access, stop }| {
                Subscriber { access, stop, ..subscriber.clone() }.run()
            };
            let share = number as f64 / all as f64;
            self.start(clients, share, &args.links.profiles, !(number as u64), client);
        }
    }
}

/// The present state as a line of text, for whoever waits.
fn state(now: &Totals, before: Option<&Totals>, figures: &Figures) -> String {
    let none = Totals::default();
    let before = before.unwrap_or(&none);
    format!(
        "{} publishers, {} subscriptions ({} enhanced), {} failed; this second {} pictures sent, {} received, \
         {} lost, {} anchors; taps {}",
        now.clients.publishers,
        now.subscriptions.all,
        now.subscriptions.enhanced,
        now.clients.failed,
        now.sent.pictures - before.sent.pictures,
        now.received.frames - before.received.frames,
        now.received.lost.saturating_sub(before.received.lost),
        now.anchors.whole - before.anchors.whole,
        figures.get("sfu_taps"),
    )
}
