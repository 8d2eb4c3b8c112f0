//! One run: who comes when, what is looked at each second, and the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::args::LoadtestArgs;
use super::media;
use super::process::{Own, Usage};
use super::publisher::Publisher;
use super::recording::Recording;
use super::report::{Report, Seen};
use super::scrape::Figures;
use super::signal::ServerUrl;
use super::subscriber::Subscriber;
use super::table::table;
use super::tally::{Tally, Totals};

/// From the last publisher's coming to the beginning of what is measured: connections and rungs settle.
const SETTLE: Duration = Duration::from_secs(3);
/// How long clients may take to leave.
const LEAVE: Duration = Duration::from_secs(5);
/// From one look to the next.
const TICK: Duration = Duration::from_secs(1);

/// Runs the test and prints its report.
pub fn run(args: &LoadtestArgs) -> Result<()> {
    ensure!(args.subscribers <= 255, "at most 255 subscribers in a room");
    // Before any server is loaded: coding takes processor time.
    let recording = Arc::new(media::recording(args)?);
    let layers: Vec<String> = recording
        .layers()
        .map(|l| format!("{} {:.0} kbit/s", l.rid(), recording.kbps(l)))
        .collect();
    eprintln!(
        "recording: {} pictures at {:.3} a second, a key frame every {:.1} s at most; {}",
        recording.len(),
        recording.fps,
        recording.key_every_s(),
        layers.join(", ")
    );
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(args.threads.get())
        .thread_name("loadtest")
        .enable_all()
        .build()
        .context("cannot start the clients' threads")?;
    runtime.block_on(async {
        let own = if args.own { Some(Own::start(&args.serve).await?) } else { None };
        let url = own.as_ref().map_or(args.server.as_str(), |own| own.url.as_str());
        let server = ServerUrl::parse(url)?;
        let pid = own.as_ref().map_or(args.pid, Own::pid);
        let report = measure(args, &server, pid, &recording).await;
        if let Some(own) = own {
            own.stop().await;
        }
        let report = report?;
        if args.json {
            println!("{}", report.json()?);
        } else {
            print!("{}", table(&report));
        }
        let why = report.failure.as_deref().unwrap_or("they did not say why");
        ensure!(report.row.publishers > 0, "no publisher could send: {why}");
        Ok(())
    })
}

async fn measure(
    args: &LoadtestArgs,
    server: &ServerUrl,
    pid: Option<u32>,
    recording: &Arc<Recording>,
) -> Result<Report> {
    // Says at once if there is no server.
    Figures::of(server).await?;
    let tally = Tally::default();
    let (stop, stopped) = watch::channel(false);
    let mut clients = spawn(args, server, recording, &tally, &stopped);
    let begun = Instant::now();
    let settled = begun + Duration::from_secs_f64(args.ramp) + SETTLE;
    let end = settled + Duration::from_secs_f64(args.seconds);
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);

    let mut seen: Option<Seen> = None;
    let mut latest: Option<(Figures, Totals)> = None;
    let mut second = tokio::time::interval(TICK);
    let mut early = false;
    while !early && Instant::now() < end {
        tokio::select! {
            _ = second.tick() => {}
            _ = &mut interrupt => {
                eprintln!("ended early, here is what came so far");
                early = true;
            }
        }
        let figures = match Figures::of(server).await {
            Ok(figures) => figures,
            Err(error) => {
                eprintln!("{error:#}");
                continue;
            }
        };
        // What was before is no part of the measurement.
        if Instant::now() >= settled && seen.is_none() {
            let mut totals = tally.lock();
            totals.begin_latencies();
            seen = Some(Seen::new(figures.clone(), totals.clone()));
        }
        let totals = tally.lock().clone();
        let usage = pid.and_then(Usage::of);
        progress(begun, &totals, latest.as_ref(), &figures);
        if let Some(seen) = &mut seen {
            seen.second(&figures, &totals, usage);
        }
        latest = Some((figures, totals));
    }
    let _ = stop.send(true);
    let ended = tokio::time::timeout(LEAVE, async { while clients.join_next().await.is_some() {} });
    if ended.await.is_err() {
        tracing::warn!("some clients did not end in time");
    }
    let seen = seen.context("it ended before anything could be measured; give it longer")?;
    Ok(Report::new(args, recording, &seen))
}

/// Clients come by themselves, spread over the ramp.
fn spawn(
    args: &LoadtestArgs,
    server: &ServerUrl,
    recording: &Arc<Recording>,
    tally: &Tally,
    stopped: &watch::Receiver<bool>,
) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    let of = args.publishers.get();
    // Another test on the same server has other rooms.
    let epoch = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_millis() as u64);
    let run = format!("{:x}-{}", epoch, std::process::id());
    let (budget_ms, rung) = (f64::from(args.budget_ms.get()), args.rung());
    let after = |share: f64| Duration::from_secs_f64(args.ramp * share);
    for number in 0..of {
        let publisher = Publisher {
            server: server.clone(),
            room: format!("loadtest-{run}-{}", number / args.per_room),
            number,
            of,
            recording: recording.clone(),
            tally: tally.clone(),
            stop: stopped.clone(),
        };
        let delay = after(number as f64 / of as f64);
        let client = async move { publisher.run().await };
        clients.spawn(guard(delay, client, tally.clone(), stopped.clone()));
    }
    for room in 0..args.rooms() {
        for n in 0..args.subscribers {
            let subscriber = Subscriber {
                server: server.clone(),
                room: format!("loadtest-{run}-{room}"),
                number: room * args.subscribers + n,
                rung,
                budget_ms,
                tally: tally.clone(),
                stop: stopped.clone(),
            };
            let delay = after(room as f64 / args.rooms() as f64);
            let client = async move { subscriber.run().await };
            clients.spawn(guard(delay, client, tally.clone(), stopped.clone()));
        }
    }
    clients
}

/// Runs a client after a delay; what fails is counted, and said once.
async fn guard(
    delay: Duration,
    client: impl Future<Output = Result<()>>,
    tally: Tally,
    mut stop: watch::Receiver<bool>,
) {
    tokio::select! {
        () = tokio::time::sleep(delay) => {}
        _ = stop.changed() => return,
    }
    if let Err(error) = client.await {
        let mut totals = tally.lock();
        totals.failed += 1;
        if totals.failure.is_none() {
            eprintln!("a client failed: {error:#}");
            totals.failure = Some(format!("{error:#}"));
        }
    }
}

/// A line for whoever waits.
fn progress(begun: Instant, now: &Totals, before: Option<&(Figures, Totals)>, figures: &Figures) {
    let none = Totals::default();
    let before = before.map_or(&none, |(_, totals)| totals);
    eprintln!(
        "{:4.0} s  {} publishers, {} subscriptions ({} enhanced), {} failed; this second {} pictures sent, {} received, \
         {} lost, {} anchors; taps {}",
        begun.elapsed().as_secs_f64(),
        now.publishers,
        now.subscriptions,
        now.enhanced,
        now.failed,
        now.pictures_sent - before.pictures_sent,
        now.frames - before.frames,
        now.lost.saturating_sub(before.lost),
        now.anchors - before.anchors,
        figures.get("sfu_taps"),
    );
}
