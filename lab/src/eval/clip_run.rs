//! Runs every method on one clip at one uplink bitrate: on the same low layer, with every setting of anchors.

use std::path::Path;

use anyhow::{Context, Result};
use windlass_vp9::Picture;

use super::anchors::{self, AnchorSettings, AnchorTrack};
use super::captured::{CapturedSettings, Source, StillPath, rates, regions};
use super::clip::Clip;
use super::coding::Target;
use super::decay::{Bucket, decay};
use super::frame_worth::{self, FrameWorth};
use super::gains::{self, Gains};
use super::low_layer::{self, Coded};
use super::method::Method;
use super::methods::{self, Cost};
use super::nemo_style;
use super::rebuild::{self, Played};
use super::row::{AnchorKey, Quality, Row, Times};
use super::scale::Scale;
use super::score::{Besides, Scorer, Scores};
use super::select;
use super::sr::Upscaler;
use crate::interrupt;
use crate::progress::Progress;

/// The settings that all clips and uplinks of one command share.
#[derive(Debug, Clone)]
pub(super) struct RunSettings<'a> {
    /// HR size over LR size.
    pub scale: Scale,
    /// The methods, in the order of the report.
    pub methods: Vec<Method>,
    /// The settings of anchors to compare; at least one where a method has anchors.
    pub anchors: Vec<AnchorSettings>,
    /// The settings of captured anchors.
    pub captured: CapturedSettings,
    /// Step of the frames that `nemo` chooses among: 1 in `nemo_step`.
    pub nemo_step: usize,
    /// The path of an ffmpeg with libvmaf, if there is one.
    pub vmaf: Option<&'a Path>,
    /// Whether rows contain CPU times.
    pub times: bool,
    /// The progress that every row is reported to, if there is one.
    pub progress: Option<&'a Progress>,
}

/// One clip at one uplink bitrate: its encoded layers, on which every method is run.
pub(super) struct ClipRun<'a> {
    settings: &'a RunSettings<'a>,
    name: String,
    clip: &'a Clip,
    uplink_kbps: u32,
    screen: bool,
    low: Coded,
    /// The low layer at the bitrate that stills leave of the uplink.
    lean: Option<Coded>,
    /// The full layer, and its bitrate in kbit/s.
    full: Option<(Clip, f64)>,
    bicubic_db: Vec<f64>,
    lanczos_db: Vec<f64>,
    /// True gains of anchors, by the target that they were measured with.
    gains: Vec<(Target, Gains)>,
}

/// Pictures of one method that are shown beside the original.
pub(super) struct KeptPictures {
    /// The method that made them.
    pub method: Method,
    /// The kept frames, in their order.
    pub pictures: Vec<Picture>,
}

/// The scores and costs of one method on the clip.
struct MethodResult {
    scores: Scores,
    kept: Vec<Picture>,
    cost: Cost,
    /// The result of the reconstruction, where the method has one.
    played: Option<Played>,
    /// The stream that was shown, if it is not the low layer.
    video: Option<Coded>,
}

/// The anchors of every method under one setting of anchors.
#[derive(Default)]
struct MethodAnchors {
    /// Anchors of tiles on the frames that the product's scheduler chooses.
    scheduled: AnchorTrack,
    /// Bitrate of the anchors that the publisher sends in kbit/s, by source.
    sent_kbps: Vec<(Source, f64)>,
    /// Anchors of whole frames on the scheduled frames.
    whole: Option<AnchorTrack>,
    /// Anchors of whole frames on the scheduled frames, with all detail encoded as in the papers.
    papers: Option<AnchorTrack>,
    /// The anchors of methods that choose other frames.
    other: Vec<(Method, AnchorTrack)>,
}

impl RunSettings<'_> {
    /// The methods that run with the setting of anchors with this number. Methods without anchors run once.
    fn methods_with(&self, number: usize) -> Vec<Method> {
        let wanted = |method: &&Method| number == 0 || method.has_enhanced();
        self.methods.iter().filter(wanted).copied().collect()
    }

    /// Number of rows of one clip at one uplink.
    pub(super) fn rows(&self) -> usize {
        (0..self.anchors.len()).map(|number| self.methods_with(number).len()).sum()
    }
}

impl<'a> ClipRun<'a> {
    /// Encodes the low layer of a clip.
    pub(super) fn new(
        settings: &'a RunSettings<'a>,
        name: &str,
        clip: &'a Clip,
        uplink_kbps: u32,
        screen: bool,
    ) -> Result<ClipRun<'a>> {
        let encode = |kbps: u32| {
            low_layer::encode(clip, kbps, screen, |picture| settings.scale.shrink(&picture))
        };
        let low = encode(uplink_kbps)?;
        let sources = || settings.methods.iter().filter_map(|method| method.captured());
        let lean = settings.captured.within && sources().any(Source::takes_uplink);
        let lean =
            lean.then(|| encode(uplink_kbps.saturating_sub(settings.captured.stills_kbps).max(20)));
        let lean = lean.transpose()?;
        let mut full = None;
        if settings.methods.contains(&Method::Full)
            || sources().any(|source| source == Source::Full)
        {
            let kbps = settings.captured.full_kbps;
            let kbps = kbps.unwrap_or_else(|| rates::layer_kbps(clip.frames.size()));
            let coded = low_layer::encode(clip, kbps, screen, |picture| picture)?;
            full = Some((Clip { frames: coded.pictures, fps: clip.fps }, coded.kbps));
        }
        let (mut bicubic_db, mut lanczos_db) = (Vec::new(), Vec::new());
        for (original, picture) in clip.frames.frames()?.zip(low.pictures.frames()?) {
            let (original, picture) = (original?, picture?);
            let psnr = |high: Picture| windlass_scores::psnr_db(&original.y, &high.y);
            bicubic_db.push(psnr(settings.scale.bicubic(&picture)));
            lanczos_db.push(psnr(settings.scale.lanczos(&picture)));
        }
        let name = name.to_owned();
        let gains = Vec::new();
        Ok(ClipRun {
            settings,
            name,
            clip,
            uplink_kbps,
            screen,
            low,
            lean,
            full,
            bicubic_db,
            lanczos_db,
            gains,
        })
    }

    /// The low layer.
    pub(super) fn low(&self) -> &Coded {
        &self.low
    }

    /// All rows: methods without anchors once, the others for each setting of anchors.
    ///
    /// With the first setting, the frames numbered `keep` of the methods in `shown` are kept. Ctrl-C leaves rows out.
    pub(super) fn rows(
        &mut self,
        upscaler: &mut Upscaler,
        shown: &[Method],
        keep: &[usize],
    ) -> Result<(Vec<Row>, Vec<KeptPictures>)> {
        let (mut rows, mut kept) = (Vec::new(), Vec::new());
        interrupt::kept(self.add_rows(upscaler, shown, keep, &mut rows, &mut kept))?;
        Ok((rows, kept))
    }

    fn add_rows(
        &mut self,
        upscaler: &mut Upscaler,
        shown: &[Method],
        keep: &[usize],
        rows: &mut Vec<Row>,
        kept: &mut Vec<KeptPictures>,
    ) -> Result<()> {
        let settings = self.settings;
        for (number, anchor_settings) in settings.anchors.iter().enumerate() {
            let methods = settings.methods_with(number);
            if methods.is_empty() {
                break;
            }
            let anchors = self.make_all(anchor_settings, &methods, upscaler)?;
            for method in methods {
                self.say(&format!("{method}{}", self.anchor_label(method, anchor_settings)));
                let keep = if number == 0 && shown.contains(&method) { keep } else { &[] };
                let result = self.play(method, &anchors, keep, upscaler)?;
                let key =
                    method.has_anchors().then(|| key(method, anchor_settings, &settings.captured));
                rows.push(self.row(method, key, &anchors, &result));
                if number == 0 {
                    kept.push(KeptPictures { method, pictures: result.kept });
                }
                settings.progress.iter().for_each(|progress| progress.done());
            }
        }
        Ok(())
    }

    /// The row of a method without anchors, and its pictures numbered `keep`; `settings` need not list the method.
    pub(super) fn alone(
        &self,
        method: Method,
        upscaler: &mut Upscaler,
        keep: &[usize],
    ) -> Result<(Row, Vec<Picture>)> {
        let anchors = MethodAnchors::default();
        let result = self.play(method, &anchors, keep, upscaler)?;
        Ok((self.row(method, None, &anchors, &result), result.kept))
    }

    fn say(&self, what: &str) {
        if let Some(progress) = self.settings.progress {
            progress.say(format!("{} at {} kbit/s: {what}", self.name, self.uplink_kbps));
        }
    }

    /// The setting of anchors for progress lines, where several are compared.
    fn anchor_label(&self, method: Method, anchor_settings: &AnchorSettings) -> String {
        if method.has_anchors() && self.settings.anchors.len() > 1 {
            format!(", fraction {}, {}", anchor_settings.fraction, anchor_settings.target)
        } else {
            String::new()
        }
    }

    /// Makes the anchors that the methods need.
    fn make_all(
        &mut self,
        anchor_settings: &AnchorSettings,
        methods: &[Method],
        upscaler: &mut Upscaler,
    ) -> Result<MethodAnchors> {
        // The method `direct` needs the size of the anchors, though not the anchors.
        let chosen = if methods.iter().any(|m| m.has_enhanced() || *m == Method::Direct) {
            select::scheduled(&self.low, self.clip.fps, anchor_settings.fraction)
        } else {
            Vec::new()
        };
        let (mut other, mut sent_kbps) = (Vec::new(), Vec::new());
        for &method in methods {
            if let Some(source) = method.captured() {
                let captured = self.captured(source, anchor_settings, upscaler)?;
                sent_kbps.push((source, captured.kbps));
                let track = match method {
                    Method::Both(_) => {
                        let low = self.low_of(method);
                        let chosen =
                            select::scheduled(low, self.clip.fps, anchor_settings.fraction);
                        let (clip, scale) = (self.clip, self.settings.scale);
                        let beside = &captured.anchors;
                        let enhanced = anchors::make_beside(
                            clip,
                            low,
                            scale,
                            anchor_settings,
                            &chosen,
                            beside,
                            upscaler,
                        )?;
                        captured.with(enhanced)
                    }
                    _ => captured,
                };
                other.push((method, track));
                continue;
            }
            let frames = match method {
                Method::KeyUniform => {
                    select::key_uniform(self.low.frames.iter().map(|f| f.tier), chosen.len())
                }
                Method::Nemo => select::nemo(self.gains(anchor_settings, upscaler)?, chosen.len()),
                _ => continue,
            };
            other.push((method, self.make(anchor_settings, &frames, false, upscaler)?));
        }
        let whole = methods.contains(&Method::WholeFrames);
        let whole =
            whole.then(|| self.make(anchor_settings, &chosen, false, upscaler)).transpose()?;
        let papers = AnchorSettings { beyond_prior: false, ..*anchor_settings };
        let wanted = methods.contains(&Method::NemoStyle);
        let papers = wanted.then(|| self.make(&papers, &chosen, false, upscaler)).transpose()?;
        let scheduled = self.make(anchor_settings, &chosen, true, upscaler)?;
        Ok(MethodAnchors { scheduled, sent_kbps, whole, papers, other })
    }

    /// The low layer that a method reconstructs from.
    fn low_of(&self, method: Method) -> &Coded {
        let lean = method.captured().is_some_and(Source::takes_uplink);
        self.lean.as_ref().filter(|_| lean).unwrap_or(&self.low)
    }

    /// Makes the captured anchors of a source.
    fn captured(
        &self,
        source: Source,
        anchor_settings: &AnchorSettings,
        upscaler: &mut Upscaler,
    ) -> Result<AnchorTrack> {
        let (low, settings) = (self.low_of(Method::Captured(source)), &self.settings.captured);
        let path =
            StillPath { delay: anchor_settings.delay, uplink_kbps: f64::from(self.uplink_kbps) };
        match source {
            Source::Full => {
                let (full, _) = self.full.as_ref().context("there is no full layer")?;
                let target = Target::Quality(settings.quality);
                let source = windlass_types::AnchorSource::Captured;
                let anchor_settings = AnchorSettings {
                    source,
                    target,
                    fraction: settings.fraction,
                    ..*anchor_settings
                };
                let chosen = select::scheduled(low, self.clip.fps, anchor_settings.fraction);
                anchors::make(full, low, self.settings.scale, &anchor_settings, &chosen, upscaler)
            }
            Source::Regions | Source::Dds => {
                let scale = self.settings.scale;
                regions::make(self.clip, low, scale, source, settings, &path, upscaler)
            }
        }
    }

    fn make(
        &self,
        anchor_settings: &AnchorSettings,
        frames: &[usize],
        tiles: bool,
        upscaler: &mut Upscaler,
    ) -> Result<AnchorTrack> {
        let anchor_settings =
            AnchorSettings { tiles: anchor_settings.tiles.filter(|_| tiles), ..*anchor_settings };
        anchors::make(self.clip, &self.low, self.settings.scale, &anchor_settings, frames, upscaler)
    }

    /// The true gains of all candidates under a target.
    fn gains(
        &mut self,
        anchor_settings: &AnchorSettings,
        upscaler: &mut Upscaler,
    ) -> Result<&Gains> {
        let found = self.gains.iter().position(|(target, _)| *target == anchor_settings.target);
        let at = if let Some(at) = found {
            at
        } else {
            let step = self.settings.nemo_step.max(1);
            let every: Vec<usize> = (0..self.low.frames.len()).step_by(step).collect();
            self.say(&format!("measuring the true gains of {} frames", every.len()));
            let lossless = AnchorSettings { loss: 0.0, ..*anchor_settings };
            let all = self.make(&lossless, &every, false, upscaler)?;
            let config = Method::Nemo.config(self.settings.scale).unwrap_or_default();
            let gains = gains::measure(self.clip, &self.low, &all, config)?;
            self.gains.push((anchor_settings.target, gains));
            self.gains.len() - 1
        };
        Ok(&self.gains[at].1)
    }

    /// The true gain of every frame's anchor under the first setting of anchors, beside the frame's features.
    pub(super) fn frame_worths(&mut self, upscaler: &mut Upscaler) -> Result<Vec<FrameWorth>> {
        let anchor_settings = *self.settings.anchors.first().context("no method has anchors")?;
        self.gains(&anchor_settings, upscaler)?;
        let (_, gains) = &self.gains[0];
        Ok(frame_worth::frame_worths(&self.low, self.clip.fps, gains))
    }

    fn play(
        &self,
        method: Method,
        anchors: &MethodAnchors,
        keep: &[usize],
        upscaler: &mut Upscaler,
    ) -> Result<MethodResult> {
        let scale = self.settings.scale;
        let mut scorer = Scorer::new(&self.clip.frames, self.settings.vmaf, Besides::Ssim, keep)?;
        let (mut played, mut video) = (None, None);
        let cost = match method {
            Method::Direct => {
                let kbps = self.low.kbps + anchors.scheduled.kbps;
                let coded = low_layer::encode_at(self.clip, kbps, self.screen)?;
                methods::plain(video.insert(coded), &mut scorer)?
            }
            Method::DirectTwice => {
                let coded = low_layer::encode_at(self.clip, 2.0 * self.low.kbps, self.screen)?;
                methods::plain(video.insert(coded), &mut scorer)?
            }
            Method::Full => {
                let (full, _) = self.full.as_ref().context("there is no full layer")?;
                for picture in full.frames.frames()? {
                    scorer.push(&picture?)?;
                }
                Cost::default()
            }
            Method::Bicubic => methods::upscaled(&self.low, &mut scorer, |low| scale.bicubic(low))?,
            Method::Lanczos => methods::upscaled(&self.low, &mut scorer, |low| scale.lanczos(low))?,
            Method::LanczosSharp => {
                methods::upscaled(&self.low, &mut scorer, |low| methods::lanczos_sharp(scale, low))?
            }
            Method::PerFrameSr => methods::per_frame_sr(&self.low, &mut scorer, upscaler)?,
            Method::NemoStyle => {
                let anchors = &anchors.of(method).anchors;
                let show = |_: usize, picture: &Picture| scorer.push(picture);
                let found = nemo_style::play(&self.low, scale, anchors, show)?;
                self.rebuilt(played.insert(found))
            }
            Method::KeyUniform
            | Method::Nemo
            | Method::NoAnchors
            | Method::Frames(_)
            | Method::FramesFull(_)
            | Method::WholeFrames
            | Method::Hybrid
            | Method::Captured(_)
            | Method::Both(_)
            | Method::Unresolved { .. }
            | Method::Variant(_) => {
                let config = method.config(scale).context("the method has no settings")?;
                let track = method.has_anchors().then(|| anchors.of(method));
                let anchors = track.map_or(&[][..], |track| &track.anchors);
                let show = |_: usize, picture: &Picture| scorer.push(picture);
                let low = self.low_of(method);
                let found = rebuild::play(low, self.clip.fps, anchors, config, show)?;
                self.rebuilt(played.insert(found))
            }
        };
        let (scores, kept) = scorer.finish()?;
        Ok(MethodResult { scores, kept, cost, played, video })
    }

    /// CPU time of the reconstruction without decoding.
    fn rebuilt(&self, played: &Played) -> Cost {
        let reconstruct_ms = (played.whole_ms - self.low.decode_ms).max(0.0);
        Cost { reconstruct_ms, infer_ms: None }
    }

    fn row(
        &self,
        method: Method,
        key: Option<AnchorKey>,
        anchors: &MethodAnchors,
        result: &MethodResult,
    ) -> Row {
        let MethodResult { scores, cost, played, .. } = result;
        let track = method.has_anchors().then(|| anchors.of(method));
        let video = result.video.as_ref().unwrap_or_else(|| self.low_of(method));
        let full_kbps = self.full.as_ref().map_or(0.0, |(_, kbps)| *kbps);
        let video_kbps = if method == Method::Full { full_kbps } else { video.kbps };
        let beside_kbps = match method.captured() {
            Some(Source::Full) => full_kbps,
            Some(source) => {
                let sent = anchors.sent_kbps.iter().find(|(of, _)| *of == source);
                sent.map_or(0.0, |(_, kbps)| *kbps)
            }
            None => 0.0,
        };
        let anchor_kbps = track.map_or(0.0, |track| track.kbps);
        let times = Times {
            encode_ms: Some(video.encode_ms),
            decode_ms: Some(video.decode_ms),
            reconstruct_ms: Some(cost.reconstruct_ms),
            infer_ms: track.map_or(cost.infer_ms, |track| track.infer_ms),
            anchor_encode_ms: track.and_then(|track| track.encode_ms),
        };
        Row {
            clip: self.name.clone(),
            size: self.clip.frames.size().to_string(),
            fps: self.clip.fps,
            uplink_kbps: self.uplink_kbps,
            method: method.to_string(),
            key,
            quality: Quality::of(scores, &self.bicubic_db, &self.lanczos_db),
            video_kbps,
            anchor_kbps,
            total_kbps: video_kbps + anchor_kbps,
            publisher_kbps: video_kbps + beside_kbps,
            anchor_bytes: track.map_or(0, |track| track.bytes),
            frames: self.clip.frames.len(),
            anchors: played.as_ref().map_or(0, |played| played.anchors),
            anchors_lost: track.map_or(0, |track| track.lost),
            sr_share: track
                .map_or(if method == Method::PerFrameSr { 1.0 } else { 0.0 }, |t| t.sr_share),
            times: if self.settings.times { times } else { Times::default() },
            decay: played.as_ref().map_or_else(Vec::new, |played| self.decay(played, scores)),
        }
    }

    fn decay(&self, played: &Played, scores: &Scores) -> Vec<Bucket> {
        decay(&played.distances, scores, &self.lanczos_db)
    }
}

impl MethodAnchors {
    /// The anchors of a method that has anchors.
    fn of(&self, method: Method) -> &AnchorTrack {
        let own = self.other.iter().find(|(of, _)| *of == method);
        let whole = match method {
            Method::WholeFrames => &self.whole,
            Method::NemoStyle => &self.papers,
            _ => &None,
        };
        own.map(|(_, track)| track).or(whole.as_ref()).unwrap_or(&self.scheduled)
    }
}

fn key(method: Method, anchor_settings: &AnchorSettings, captured: &CapturedSettings) -> AnchorKey {
    if let (false, Some(source)) = (method.has_enhanced(), method.captured()) {
        let of_server = source == Source::Full;
        return AnchorKey {
            anchor_fraction: if of_server { captured.fraction } else { 0.0 },
            anchor_quality: of_server.then_some(captured.quality),
            anchor_budget_bytes: None,
        };
    }
    let (anchor_quality, anchor_budget_bytes) = match anchor_settings.target {
        Target::Quality(quality) => (Some(quality), None),
        Target::Budget(bytes) => (None, Some(bytes)),
    };
    AnchorKey { anchor_fraction: anchor_settings.fraction, anchor_quality, anchor_budget_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::report::{Machine, Report, Settings};
    use crate::eval::{row, sweep, synthetic};
    use crate::output::json;

    fn settings(qualities: &[u8]) -> RunSettings<'static> {
        let base = synthetic::anchor_settings(0.2, 66);
        let anchor_settings =
            |&quality: &u8| AnchorSettings { target: Target::Quality(quality), ..base };
        RunSettings {
            scale: Scale::TWO,
            methods: Method::ALL.to_vec(),
            anchors: qualities.iter().map(anchor_settings).collect(),
            captured: synthetic::captured_settings(),
            nemo_step: 1,
            vmaf: None,
            times: false,
            progress: None,
        }
    }

    fn rows(settings: &RunSettings<'_>) -> Vec<Row> {
        let mut rows = Vec::new();
        for (name, clip) in [("a", synthetic::panning(12)), ("b", synthetic::panning(9))] {
            for uplink in [150, 400] {
                let mut clip_run = ClipRun::new(settings, name, &clip, uplink, false).unwrap();
                rows.extend(clip_run.rows(&mut Upscaler::new().unwrap(), &[], &[]).unwrap().0);
            }
        }
        rows.extend(row::means(&rows));
        rows
    }

    #[test]
    fn two_runs_give_the_same_report_and_the_same_plots_byte_for_byte() {
        let settings = settings(&[85, 40]);
        let run = || {
            let rows = rows(&settings);
            let folder = tempfile::tempdir().unwrap();
            let plots: Vec<Vec<u8>> = sweep::write_plots(&rows, folder.path())
                .unwrap()
                .iter()
                .map(|name| std::fs::read(folder.path().join(name)).unwrap())
                .collect();
            let bd = sweep::differences(&rows, "lanczos");
            let settings = Settings {
                scale: 2,
                anchor_source: "enhanced",
                delay_ms: 66,
                anchor_loss: 0.0,
                seed: 1,
                backend: "cpu".into(),
            };
            let rungs = Vec::new();
            let machine = Machine::here();
            let report = Report { command: "eval", machine, settings, rows, rungs, bd };
            (json(&report, None).unwrap(), report.table(), plots)
        };
        let (first, second) = (run(), run());
        assert!(first.0 == second.0, "{}\n{}", first.0, second.0);
        assert!(first.1 == second.1 && first.2 == second.2);
        assert_eq!(first.2.len(), 3);
        assert!(!first.0.contains("NaN"));
    }

    /// The rows of a method on clip `a`.
    fn of<'a>(rows: &'a [Row], method: &'a str) -> impl Iterator<Item = &'a Row> {
        rows.iter().filter(move |r| r.clip == "a" && r.method == method)
    }

    #[test]
    fn methods_without_anchors_have_one_row_and_the_others_one_for_each_setting() {
        let settings = settings(&[85, 40]);
        let rows = rows(&settings);
        assert_eq!((of(&rows, "lanczos").count(), of(&rows, "direct").count()), (2, 2));
        for method in ["hybrid", "nemo", "nemo-style", "key-uniform"] {
            assert_eq!(of(&rows, method).count(), 4, "{method}");
        }
        let bytes: Vec<usize> = of(&rows, "hybrid").map(|row| row.anchor_bytes).collect();
        assert!(bytes[0] > bytes[1], "quality 85 and then 40: {bytes:?}");
        assert_eq!(rows.iter().filter(|r| r.clip == row::MEAN).count(), rows.len() / 3);
        assert!(
            of(&rows, "nemo-style").all(|r| r.decay.first().is_some_and(|b| b.from_frames == 0))
        );
        assert!(of(&rows, "lanczos").all(|r| r.quality.worst_vs_lanczos_db.abs() < 1e-12));
    }
}
