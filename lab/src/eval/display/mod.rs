//! `windlass-lab eval --display WxH`: what a viewer sees, at the size shown, for equal bits.
//!
//! Two sides are given every clip. *Plain*: VP9 of every size from a quarter of the shown one up to all of it, enlarged
//! as browsers do ([`resize`]) and sharpened. *Windlass*: the low layers `q` (a quarter) and `h` (half), rebuilt at the
//! shown size by the product's decoder, alone and with stills of the publisher's own ([`ours`]); and the full size as
//! it is. All bits that reach the viewer count: key frames, stills and their headers. Scored at the shown size → rows →
//! [`compare`]d hull with hull → a table, JSON, or a [`page`] for people.

pub(super) mod args;
mod compare;
mod ours;
mod page;
mod quality;
mod report;
mod resize;
mod row;

use std::path::Path;

use anyhow::{Context, Result};
use windlass_hybrid::HybridConfig;
use windlass_network::Tier;
use windlass_vp9::Picture;

use self::args::DisplaySize;
use self::ours::{Maker, Stills, StillsFrom};
use self::page::{Shown, Sight};
use self::quality::Quality;
use self::report::Report;
use self::row::{Row, ShownBy, Side};
use super::args::{EvalArgs, name};
use super::captured::rates;
use super::clip::{self, Clip, Wanted};
use super::ffmpeg;
use super::frames::Size;
use super::low_layer::{self, Coded};
use super::report::Machine;
use super::scale::Scale;
use super::score::{Besides, Scorer};
use crate::interrupt;
use crate::output::Output;
use crate::page::Contents;
use crate::progress::Progress;

/// Sizes at which plain video is encoded, in eighths of the shown size in both directions.
const EIGHTHS: [usize; 5] = [2, 3, 4, 6, 8];
/// Rates at which every size is encoded, over the one that Chromium gives it.
const RATES: [f64; 4] = [0.5, 1.0, 1.5, 2.5];
/// Bits of the stills, over those of the low layer.
const SHARES: [f64; 3] = [0.1, 0.2, 0.4];
/// The share of stills that the page shows, at Chromium's rate.
const SHOWN_SHARE: f64 = 0.2;

/// Runs the comparison and prints it.
pub(super) fn run(args: &EvalArgs, display: DisplaySize) -> Result<()> {
    let tools = ffmpeg::find(args.output.ffmpeg.as_deref())?;
    if tools.vmaf.is_none() {
        eprintln!("note: no ffmpeg with libvmaf here, so VMAF stays empty; name one with --ffmpeg");
    }
    let (mut rows, mut sights) = (Vec::new(), Vec::new());
    // Hulls of a clip that was left in the middle would compare other rates than those asked for.
    let mut whole = 0;
    let settings = EIGHTHS.len() * RATES.len();
    let progress = Progress::new(args.input.clips.len() * settings, "sizes and rates");
    for (number, spec) in args.input.clips.iter().enumerate() {
        let name = name(&args.input.clips, number);
        if progress.begin(format!("{name}: reading")).is_err() {
            break;
        }
        let quarter: Scale = "4".parse()?;
        let wanted = Wanted { height: display.0.height as u32, ..args.input.wanted(spec, quarter) };
        let clip = clip::read(&tools.reader, &spec.path, &wanted)
            .with_context(|| format!("evaluating {}", spec.path.display()))?;
        let size = clip.frames.size();
        if size != display.0 {
            let wanted = display.0;
            progress
                .note(&format!("{name}: shown at {size}, the most that the clip has of {wanted}"));
        }
        let bench = Bench {
            name: &name,
            clip: &clip,
            screen: args.input.screen || spec.screen,
            vmaf: tools.vmaf.as_deref(),
            network: args.display.frame_network,
            progress: &progress,
        };
        let done = bench.evaluate(&mut rows, &mut sights);
        if interrupt::kept(done.with_context(|| format!("evaluating {name}")))?.is_none() {
            break;
        }
        whole = rows.len();
    }
    let report = Report {
        command: "eval",
        machine: Machine::here(),
        display: display.0.to_string(),
        frame_network: args.display.frame_network.map(|tier| tier.to_string()),
        comparisons: compare::compare(&rows[..whole]),
        gaps: compare::gaps(&rows[..whole]),
        rows,
    };
    let interrupted = progress.interrupted();
    if let Some(folder) = &args.output.html {
        let path = page::write(folder, &report, &sights, interrupted)?;
        progress.note(&format!("wrote {}", path.display()));
    }
    let printed = Output { json: args.output.json, html: None };
    printed.put(&report, interrupted, &report.table(), Contents::default)
}

/// One clip, at the size that it is shown at.
struct Bench<'a> {
    name: &'a str,
    clip: &'a Clip,
    screen: bool,
    vmaf: Option<&'a Path>,
    /// The network that runs on every picture of the product's side.
    network: Option<Tier>,
    progress: &'a Progress,
}

impl Bench<'_> {
    /// Adds the rows of the clip, and the pictures to look at.
    fn evaluate(&self, rows: &mut Vec<Row>, sights: &mut Vec<Sight>) -> Result<()> {
        let shown = self.clip.frames.size();
        let full = self.code(shown, f64::from(rates::layer_kbps(shown)))?;
        let full = Clip { frames: full.pictures, fps: self.clip.fps };
        let mut maker = Maker::new(self.clip, &full)?;
        for eighths in EIGHTHS {
            let size = part(shown, eighths);
            let usual = f64::from(rates::layer_kbps(size));
            for rate in RATES {
                let coded = self.code(size, usual * rate)?;
                rows.extend(self.plain(&coded, size)?.into_iter().map(|shown| shown.row));
                if size == shown {
                    let itself = rows.last().cloned();
                    rows.extend(itself.map(|row| Row { side: Side::Windlass, ..row }));
                }
                let Some(scale) = scale_of(eighths) else {
                    self.progress.done();
                    continue;
                };
                rows.push(self.ours(&coded, size, scale, None)?.row);
                for (from, share) in [StillsFrom::F, StillsFrom::Publisher]
                    .into_iter()
                    .flat_map(|f| SHARES.map(|s| (f, s)))
                {
                    let stills = maker.make(from, &coded, scale, share)?;
                    let ours = self.ours(&coded, size, scale, Some((from, &stills)))?;
                    let row = ours.row.clone();
                    let usual = (rate - 1.0).abs() < 1e-9 && (share - SHOWN_SHARE).abs() < 1e-9;
                    if usual && from == StillsFrom::F {
                        // Plain video with as many bits, to look at beside it.
                        let equal = self.code(size, row.total_kbps)?;
                        let mut plain = self.plain(&equal, size)?;
                        let sharpened = plain.pop().context("nothing was shown")?;
                        let bicubic = plain.pop().context("nothing was shown")?;
                        rows.extend([bicubic.row, sharpened.row.clone()]);
                        sights.push(self.sight(ours, sharpened, bicubic.picture)?);
                    }
                    rows.push(row);
                }
                self.progress.done();
            }
        }
        Ok(())
    }

    fn code(&self, size: Size, kbps: f64) -> Result<Coded> {
        self.progress.begin(format!("{}: {size} at {kbps:.0} kbit/s", self.name))?;
        let shown = self.clip.frames.size();
        low_layer::encode(self.clip, kbps.round().max(1.0) as u32, self.screen, |picture| {
            if size == shown { picture } else { resize::down(&picture, size) }
        })
    }

    /// Every way to show a plain picture. The row of a full-size picture is taken from the last one.
    fn plain(&self, coded: &Coded, size: Size) -> Result<Vec<Shown>> {
        let shown = self.clip.frames.size();
        let ways = if size == shown {
            [ShownBy::Sharpened, ShownBy::Itself]
        } else {
            [ShownBy::Bicubic, ShownBy::Sharpened]
        };
        let show = |by: ShownBy| -> Result<Shown> {
            let keep = [self.kept_frame()];
            let mut scorer = self.scorer(&keep)?;
            for picture in coded.pictures.frames()? {
                scorer.push(&resize::shown(&picture?, shown, by))?;
            }
            let (quality, picture) = scored(scorer)?;
            let row = self.row(Side::Plain, size, by, coded.kbps, quality);
            Ok(Shown { row, picture })
        };
        ways.into_iter().map(show).collect()
    }

    fn ours(
        &self,
        coded: &Coded,
        size: Size,
        scale: Scale,
        stills: Option<(StillsFrom, &Stills)>,
    ) -> Result<Shown> {
        let none = Stills::default();
        let keep = [self.kept_frame()];
        let mut scorer = self.scorer(&keep)?;
        let shown = stills.map_or(&none, |(_, stills)| stills);
        let config =
            HybridConfig { scale: scale.factor(), network: self.network, ..Default::default() };
        let applied =
            ours::play(self.clip.fps, coded, config, shown, |picture| scorer.push(picture))?;
        let (quality, picture) = scored(scorer)?;
        let by = if stills.is_some() { ShownBy::Stills } else { ShownBy::Filters };
        let row = self.row(Side::Windlass, size, by, coded.kbps, quality);
        let row = Row {
            stills_from: stills.map(|(from, _)| from),
            still_kbps: shown.kbps(),
            total_kbps: coded.kbps + shown.kbps(),
            stills: applied,
            ..row
        };
        Ok(Shown { row, picture })
    }

    fn scorer<'a>(&'a self, keep: &'a [usize]) -> Result<Scorer<'a>> {
        Scorer::new(&self.clip.frames, self.vmaf, Besides::Ssimulacra2, keep)
    }

    /// The number of the frame that is kept to be looked at.
    fn kept_frame(&self) -> usize {
        self.clip.frames.len() * 3 / 4
    }

    fn row(
        &self,
        side: Side,
        size: Size,
        shown_by: ShownBy,
        video_kbps: f64,
        quality: Quality,
    ) -> Row {
        let shown = self.clip.frames.size();
        let layer = match () {
            () if size == part(shown, 2) => "q",
            () if size == part(shown, 4) => "h",
            () => "",
        };
        Row {
            clip: self.name.to_owned(),
            side,
            size: size.to_string(),
            layer,
            shown_by,
            stills_from: None,
            video_kbps,
            still_kbps: 0.0,
            total_kbps: video_kbps,
            stills: 0,
            quality,
        }
    }

    fn sight(&self, ours: Shown, plain: Shown, bicubic: Picture) -> Result<Sight> {
        let frame = self.kept_frame();
        let original =
            self.clip.frames.frames()?.nth(frame).context("the clip became shorter")??;
        Ok(Sight {
            clip: self.name.to_owned(),
            layer: ours.row.layer,
            frame,
            original,
            bicubic,
            plain,
            ours,
        })
    }
}

/// The mean qualities, and the picture that was kept.
fn scored(scorer: Scorer<'_>) -> Result<(Quality, Picture)> {
    let (scores, mut kept) = scorer.finish()?;
    Ok((Quality::of(&scores)?, kept.pop().context("no picture was kept")?))
}

/// A size that is `eighths` eighths of another, with even sides.
fn part(size: Size, eighths: usize) -> Size {
    let side = |full: usize| full * eighths / 16 * 2;
    Size { width: side(size.width), height: side(size.height) }
}

/// The scale by which the decoder enlarges a size in eighths; `None` for sizes that it does not take.
fn scale_of(eighths: usize) -> Option<Scale> {
    matches!(eighths, 2 | 4).then(|| (8 / eighths).to_string().parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::synthetic;

    #[test]
    fn sides_of_parts_are_even() {
        let shown = Size { width: 1080, height: 608 };
        assert_eq!(part(shown, 3), Size { width: 404, height: 228 });
        assert_eq!(part(shown, 8), shown);
    }

    #[test]
    fn a_clip_is_shown_by_both_sides_from_the_same_video() {
        let clip = synthetic::panning(30);
        let progress = &Progress::new(1, "rows");
        let (screen, vmaf, network) = (false, None, None);
        let bench = Bench { name: "panning", clip: &clip, screen, vmaf, network, progress };
        let size = part(clip.frames.size(), 4);
        let coded = bench.code(size, 300.0).unwrap();
        let plain = bench.plain(&coded, size).unwrap();
        let by = [plain[0].row.shown_by, plain[1].row.shown_by];
        assert_eq!(by, [ShownBy::Bicubic, ShownBy::Sharpened]);
        let mut maker = Maker::new(&clip, &clip).unwrap();
        for from in [StillsFrom::F, StillsFrom::Publisher] {
            let stills = maker.make(from, &coded, Scale::TWO, 0.4).unwrap();
            let ours = bench.ours(&coded, size, Scale::TWO, Some((from, &stills))).unwrap().row;
            assert_eq!((ours.layer, ours.shown_by, ours.stills), ("h", ShownBy::Stills, 1));
            assert!((ours.video_kbps - plain[0].row.video_kbps).abs() < 1e-9);
            assert!(ours.still_kbps > 0.0 && ours.total_kbps > plain[0].row.total_kbps);
            assert!(ours.quality.psnr_y_db > plain[0].row.quality.psnr_y_db, "{ours:?}");
        }
    }
}
