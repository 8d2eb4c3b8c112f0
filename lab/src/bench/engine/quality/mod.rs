//! `windlass-lab bench engine --quality`: what trained networks cost and what they gain, in one table.
//!
//! In: clips and networks. Clips are encoded, decoded and scored by `eval`'s own machinery
//! ([`networks`]); networks are timed by [`measure`] on the low picture of the
//! first clip. Out: a row by network ([`mod@row`]), and with `--crops` pictures ([`crops`]).

mod args;
mod crops;
mod models;
mod report;
mod row;

pub(super) use args::QualityArgs;

use anyhow::{Context, Result};
use windlass_sr::Simd;

use self::report::Report;
use self::row::{Plain, Row};
use super::args::{Case, EngineArgs};
use super::measure::{self, Peaks};
use crate::bench::networks::Weights;
use crate::eval::clip::{self, Clip};
use crate::eval::ffmpeg::{self, Ffmpeg};
use crate::eval::frames::Size;
use crate::eval::networks::{self, BICUBIC, Call, LANCZOS, Network, SHARPENED, Shown};
use crate::eval::report::Machine;
use crate::eval::row::Row as Scored;
use crate::eval::scale::Scale;
use crate::interrupt;
use crate::page::Contents;
use crate::progress::Progress;

/// The results at one scale: the rows of all clips, and the size of the first clip's low picture.
struct Found {
    scale: Scale,
    low: Size,
    rows: Vec<Scored>,
}

/// Runs the bench and prints its report.
pub(super) fn run(args: &EngineArgs) -> Result<()> {
    let wanted = &args.quality;
    wanted.check()?;
    let simd = if args.backends.is_empty() {
        None
    } else {
        let found = args.forms().pop();
        Some(found.context("the CPU has none of the backends that were named")?)
    };
    let mut networks = models::read(&wanted.models, simd)?;
    let tools = ffmpeg::find(wanted.ffmpeg.as_deref())?;
    let progress = Progress::new(wanted.quality.len() + networks.len(), "clips and networks");
    let mut found: Vec<Found> = Vec::new();
    for number in 0..wanted.quality.len() {
        let played = play(number, wanted, &tools, &mut networks, &progress, &mut found);
        if interrupt::kept(played)?.is_none() {
            break;
        }
        progress.done();
    }
    let mut peaks = Peaks::default();
    let mut rows = Vec::new();
    for network in &networks {
        if progress.begin(format!("timing {}", network.name)).is_err() {
            break;
        }
        rows.push(row(network, &found, args, &mut peaks)?);
        progress.done();
    }
    let plain = found.iter().flat_map(plain).collect();
    let report = Report {
        command: "bench engine --quality",
        machine: Machine::here(),
        clip_seconds: wanted.clip_seconds,
        passes: args.passes.get(),
        rows,
        plain,
    };
    args.output.put(&report, progress.interrupted(), &report.markdown(), Contents::default)
}

/// Plays one clip at every scale and uplink, and writes its picture.
fn play(
    number: usize,
    args: &QualityArgs,
    tools: &Ffmpeg,
    networks: &mut [Network],
    progress: &Progress,
    found: &mut Vec<Found>,
) -> Result<()> {
    let spec = &args.quality[number];
    let name = crate::eval::name(&args.quality, number);
    let uplinks = args.uplinks();
    let highest = uplinks.last().copied();
    let mut shown = Vec::new();
    for scale in scales(networks) {
        let clip = clip::read(&tools.reader, &spec.path, &args.wanted(spec, scale))?;
        let keep = args.crops.is_some().then(|| clip.frames.len() / 2);
        for &uplink_kbps in &uplinks {
            let (vmaf, screen) = (tools.vmaf.as_deref(), spec.screen);
            let call = Call { name: &name, clip: &clip, screen, uplink_kbps, vmaf, progress };
            let keep = keep.filter(|_| Some(uplink_kbps) == highest);
            let played = networks::play(&call, scale, networks, keep)?;
            if let Some(frame) = keep {
                shown.push(panels(&clip, scale, frame, &played)?);
            }
            add(found, scale, &clip, played);
        }
    }
    if let (Some(folder), Some(kbps)) = (&args.crops, highest) {
        let path = crops::write(folder, &format!("{name}_{kbps}k"), &shown, args.crop_at)?;
        progress.note(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// The scales of the networks, each once, the smallest first.
fn scales(networks: &[Network]) -> Vec<Scale> {
    let mut scales: Vec<Scale> = networks.iter().map(|network| network.upscaler.scale()).collect();
    scales.sort_by_key(|scale| scale.factor());
    scales.dedup();
    scales
}

/// Adds the rows of a call to the results at its scale.
fn add(found: &mut Vec<Found>, scale: Scale, clip: &Clip, played: Vec<Shown>) {
    let rows = played.into_iter().map(|(row, _)| row);
    if let Some(found) = found.iter_mut().find(|found| found.scale == scale) {
        found.rows.extend(rows);
    } else {
        let low = scale.low(clip.frames.size());
        found.push(Found { scale, low, rows: rows.collect() });
    }
}

/// The panels of a clip: the source's frame, and what each method made of it.
fn panels(clip: &Clip, scale: Scale, frame: usize, played: &[Shown]) -> Result<crops::Shown> {
    let source = clip.frames.frames()?.nth(frame).context("the clip has no such frame")??;
    let made =
        played.iter().filter_map(|(row, picture)| Some((row.method.clone(), picture.clone()?)));
    Ok([(format!("source ×{scale}"), source)].into_iter().chain(made).collect())
}

/// The row of one network.
fn row(network: &Network, found: &[Found], args: &EngineArgs, peaks: &mut Peaks) -> Result<Row> {
    let Network { name, upscaler } = network;
    let own = found.iter().find(|found| found.scale == upscaler.scale());
    let Found { low, rows, .. } = own.with_context(|| format!("{name} was not played"))?;
    let model = upscaler.model().clone();
    let case = Case { network: model.architecture(), size: *low, threads: 1 };
    let backend = upscaler.backend();
    let simd = Simd::available().into_iter().find(|simd| simd.name() == backend);
    let simd = simd.with_context(|| format!("{backend} is no backend of this CPU"))?;
    let weights = Weights { model, trained: true };
    let speeds = measure::rows_with(&weights, &[simd], &case, args, peaks)?;
    let speed = speeds.first().with_context(|| format!("{name} was not timed"))?;
    Ok(Row::new(name, case.network, speed, row::gains(rows, name)))
}

/// The rows of the methods that need no network, at one scale.
fn plain(found: &Found) -> [Plain; 3] {
    [BICUBIC, LANCZOS, SHARPENED].map(|method| Plain {
        method: method.to_owned(),
        scale: found.scale.factor(),
        quality: row::gains(&found.rows, method),
    })
}
