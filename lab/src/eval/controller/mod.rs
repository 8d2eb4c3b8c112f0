//! `windlass-lab eval --controller`: knobs by gradient, against fixed settings and exhaustive search.
//!
//! A scene (a clip, or several chained for changes of content) goes through a publisher's encoders and a subscriber's
//! decoder in intervals of a second ([`play`]), under an uplink that may change ([`trace`]). It is played with
//! every [`setting`] of a grid and with the [`Controller`], which is told what a server would measure and nothing
//! else. All runs end in the same [`summary`]. It has the controller's share of what exhaustive search gains over a
//! server that adapts bitrates alone, and its distance from the best fixed setting. It also has the bits that the
//! controller saves, how fast it converges, and its CPU time. Runs with fixed settings do not depend on the
//! controller and can be kept ([`cache`]).

pub(super) mod args;
mod cache;
mod play;
mod publisher;
mod report;
mod scene;
mod setting;
mod summary;
pub(super) mod trace;
mod viewer;

use std::time::Duration;

use anyhow::{Result, ensure};
use windlass_enhancer::control::{Controller, ControllerConfig, Measurements};
use windlass_types::{Bitrate, Layer};

use super::args::{ClipSpec, EvalArgs};
use super::cpu_clock::CpuClock;
use super::ffmpeg;
use super::report::Machine;
use crate::interrupt;
use crate::page::Contents;
use crate::progress::Progress;
use cache::Cache;
use play::{Call, Run};
use report::{Report, Settings};
use scene::Scene;
use setting::{PLAIN, Setting};
use summary::Cell;

/// How long knobs stay: a second, as in OneAdapt (§4.1.1).
const INTERVAL: Duration = Duration::from_secs(1);

/// Runs the command and prints its report on standard output.
pub(super) fn run(args: &EvalArgs) -> Result<()> {
    let tools = ffmpeg::find(args.output.ffmpeg.as_deref())?;
    let cache = Cache::new(args.controller.cache.as_deref())?;
    let max = Layer::from_rid(&args.controller.max_layer);
    ensure!(max.is_some(), "--most-layer is q, h or f, not {:?}", args.controller.max_layer);
    let layers: Vec<Layer> = Layer::ALL.into_iter().filter(|&layer| Some(layer) <= max).collect();
    let scenes: Vec<&[ClipSpec]> = if args.controller.chain {
        vec![&args.input.clips]
    } else {
        args.input.clips.chunks(1).collect()
    };
    let traces = args.traces()?;
    let progress = Progress::new(scenes.len() * traces.len(), "calls");
    let mut cells = Vec::new();
    for specs in scenes {
        if interrupt::pressed() {
            break;
        }
        let scene = Scene::read(&tools.reader, specs, &args.input)?;
        for trace in &traces {
            let call =
                Call { scene: &scene, trace, interval: INTERVAL, vmaf: tools.vmaf.as_deref() };
            let Some(found) = interrupt::kept(cell(&call, &layers, &cache, &progress))? else {
                break;
            };
            cells.push(found);
            progress.done();
        }
    }
    let report = Report {
        command: "eval",
        machine: Machine::here(),
        settings: Settings {
            controller: true,
            interval_ms: INTERVAL.as_millis() as u32,
            lambda: ControllerConfig::default().bits_price,
            best_fixed: summary::best_overall(&cells).map(|setting| setting.to_string()),
        },
        rows: summary::lines(&cells),
    };
    let table = report.table(&PLAIN.to_string());
    args.output.rows().put(&report, progress.interrupted(), &table, Contents::default)
}

/// All runs of one scene under one uplink.
fn cell(call: &Call<'_>, layers: &[Layer], cache: &Cache, progress: &Progress) -> Result<Cell> {
    let Call { scene, trace, .. } = call;
    let mut fixed = Vec::new();
    for setting in Setting::grid().into_iter().filter(|s| layers.contains(&s.layer)) {
        let key =
            format!("{} {} {trace} {setting} {}", scene.identity, scene.fps, call.vmaf.is_some());
        let run = cache.run(&key, || {
            progress.begin(format!("{} at {trace} kbit/s: {setting}", scene.name))?;
            play::play(call, |_, uplink, _| setting.knobs(uplink, scene.fps))
        })?;
        fixed.push((setting, run));
    }
    progress.begin(format!("{} at {trace} kbit/s: controller", scene.name))?;
    let (controller, core_percent) = controlled(call, layers)?;
    let changes = changes(call, call.interval.as_secs_f64());
    let lambda = ControllerConfig::default().bits_price;
    let best = summary::best_by_change(&fixed, &changes, controller.intervals.len(), lambda);
    let names: Vec<String> = best.iter().map(Setting::to_string).collect();
    let key = format!("{} {} {trace} {names:?} {}", scene.identity, scene.fps, call.vmaf.is_some());
    let by_change = cache.run(&key, || {
        progress.begin(format!("{} at {trace} kbit/s: the best by change", scene.name))?;
        play::play(call, |n, uplink, _| best.get(n).unwrap_or(&PLAIN).knobs(uplink, scene.fps))
    })?;
    Ok(Cell {
        scene: scene.name.clone(),
        uplink: trace.to_string(),
        fixed,
        controller,
        core_percent,
        by_change,
        changes,
        lambda,
    })
}

/// Plays the scene with the controller. Returns the run, and the controller's CPU time in percent of a core.
fn controlled(call: &Call<'_>, layers: &[Layer]) -> Result<(Run, f64)> {
    let mut controller = Controller::new(ControllerConfig {
        layers: layers.to_vec(),
        camera_fps: call.scene.fps,
        screen: call.scene.is_screen(0),
        ..ControllerConfig::default()
    });
    let mut clock = CpuClock::default();
    let size = call.scene.frames.size().into();
    let mut knobs = None;
    let run = play::play(call, |n, uplink, measured| {
        let uplink = Bitrate::kbps(uplink);
        let Some(measured) = measured else {
            return *knobs.insert(controller.start(uplink, size));
        };
        // The estimate is the one at the moment of decision.
        let measured = Measurements { uplink, ..*measured };
        let now = call.interval * n as u32;
        let answer = clock.measure(|| controller.observe(now, &measured));
        let kept = knobs.unwrap_or_else(|| controller.start(uplink, size));
        *knobs.insert(answer.unwrap_or(kept))
    })?;
    let deciding_ms = clock.mean_run_ms().unwrap_or(0.0) / call.interval.as_secs_f64();
    let percent = (run.metering_ms_per_s + deciding_ms) / 10.0;
    Ok((run, percent))
}

/// The intervals in which the clip or the uplink changes, and the first interval.
fn changes(call: &Call<'_>, seconds: f64) -> Vec<usize> {
    let fps = call.scene.fps;
    let clips = call.scene.parts.iter().map(|(frame, _)| *frame as f64 / fps);
    let count = (call.scene.frames.len() as f64 / fps / seconds).ceil() as usize;
    let mut found: Vec<usize> = clips.map(|at| (at / seconds) as usize).collect();
    found.extend((1..count).filter(|&n| {
        let rate = |n: usize| call.trace.at(n as f64 * seconds);
        (rate(n) - rate(n - 1)).abs() > 1e-9
    }));
    found.sort_unstable();
    found.dedup();
    found
}
