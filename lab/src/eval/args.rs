//! The command line of `windlass-lab eval`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail, ensure};
use clap::Args;
use windlass_enhancer::EnhancerConfig;
use windlass_enhancer::tiles::{RegionConfig, TileConfig};

use super::captured::{CapturedSettings, Source};
use super::clip::Wanted;
use super::coding::Target;
use super::controller::Trace;
use super::display::DisplaySize;
use super::method::Method;
use super::scale::Scale;

/// Bit rates of the low layer unless some are named.
const UPLINKS: [u32; 2] = [150, 300];
/// Those of a sweep: enough for curves, from what barely carries video to what it cannot use.
const SWEPT_UPLINKS: [u32; 5] = [60, 100, 160, 280, 500];

/// Run the product's pipeline over recorded clips and score it against the original.
///
/// Every clip is scaled down to an HR size, then to the low layer, encoded as Chromium encodes a
/// camera, decoded, enhanced and rebuilt. Runs repeat exactly: nothing depends on the clock but the
/// times, which --no-times leaves out.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct EvalArgs {
    /// Video files, anything that ffmpeg reads. A file may have options of its own after an @:
    /// crop=W:H:X:Y, height=LINES, screen, name=NAME (as in d13.mp4@crop=720:405:0:300,height=360).
    #[arg(required = true, value_name = "CLIP[@OPTION,…]")]
    pub clips: Vec<ClipSpec>,

    /// Part of the picture to use, as width:height:x:y in source pixels.
    #[arg(long, value_name = "W:H:X:Y")]
    pub crop: Option<Crop>,

    /// Height of the original (HR) picture; larger sources are scaled down to it, smaller ones stay.
    #[arg(long, default_value = "540", value_name = "LINES")]
    pub height: NonZeroU32,

    /// Use only the first seconds of each clip.
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,

    /// Frames per second of the call: `auto` takes the clip's own. Frames are never dropped or doubled.
    #[arg(long, default_value = "auto", value_name = "auto|N")]
    pub fps: Fps,

    /// The clips show shared screens: encode them as Chromium encodes a screen.
    #[arg(long)]
    pub screen: bool,

    /// HR size over LR size, in both directions.
    #[arg(long, default_value = "2", value_name = "N")]
    pub scale: Scale,

    /// Use this network (safetensors) instead of the one built in; --scale is then the network's.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scale", "controller"])]
    pub model: Option<PathBuf>,

    /// Run the network on this backend of the processor, as `bench engine` names them, instead of the fastest.
    #[arg(long, value_name = "NAME", conflicts_with = "controller")]
    pub backend: Option<String>,

    /// Bit rates of the low (LR) layer in kbit/s [default: 150,300; with --sweep 60,100,160,280,500].
    #[arg(long, value_delimiter = ',', value_name = "K,…")]
    pub uplink: Vec<NonZeroU32>,

    /// Run only these methods [default: all but nemo and hybrid@NAME]. direct: one full-size
    /// stream of the same bits; bicubic, lanczos, lanczos@0.3 (sharpened), per-frame-sr (a bound);
    /// key-uniform, nemo: the product with other anchors (nemo measures the gain of every frame: slow);
    /// nemo-style: the papers' reconstruction; no-anchors; hybrid: the product; hybrid@NAME: with
    /// other settings (a wrong NAME lists them); captured, both: anchors of the publisher's own pixels, alone and with
    /// enhanced ones (captured@SOURCE, both@SOURCE: f, regions, dds); direct@2: a full-size stream of twice the
    /// low layer's bits; f: the full layer.
    #[arg(long, value_delimiter = ',', value_name = "METHOD,…")]
    pub methods: Vec<Method>,

    /// Share of frames that become anchors; as `serve` has it unless given.
    #[arg(long, default_value_t = EnhancerConfig::default().anchor_fraction, value_name = "F",
          help_heading = "Anchors")]
    pub anchor_fraction: f64,

    /// Quality (1 to 100) of the coded anchors; as `serve` has it unless given.
    #[arg(long, default_value_t = EnhancerConfig::default().anchor_quality, value_name = "Q",
          value_parser = clap::value_parser!(u8).range(1..=100), help_heading = "Anchors")]
    pub anchor_quality: u8,

    /// Most bytes of each anchor, instead of a quality.
    #[arg(long, value_name = "BYTES", conflicts_with = "anchor_quality", help_heading = "Anchors")]
    pub anchor_budget: Option<NonZeroU32>,

    /// Make anchors of the original instead of by super-resolution: what remains missing is what
    /// the codec loses.
    #[arg(long, help_heading = "Anchors")]
    pub oracle: bool,

    /// Code all detail over the upsampled picture, as the papers do, instead of what the decoder's built-in filters do
    /// not expect; nemo-style always does.
    #[arg(long, help_heading = "Anchors")]
    pub whole_detail: bool,

    /// Residual (square grey levels by sample) from which on a tile of an anchor is sent again; 0 sends all.
    #[arg(long, default_value_t = EnhancerConfig::default().tiles.threshold, value_name = "E", help_heading = "Anchors")]
    pub tile_threshold: f64,

    /// How long after its frame an anchor can be used.
    #[arg(long, default_value_t = 130, value_name = "MS", help_heading = "Anchors")]
    pub delay_ms: u32,

    /// Share of anchor messages that are lost on their way.
    #[arg(long, default_value_t = 0.0, value_name = "F", help_heading = "Anchors")]
    pub anchor_loss: f64,

    /// What losses are drawn from; the same seed loses the same messages.
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Anchors")]
    pub seed: u64,

    /// Let `nemo` choose among every Nth frame: N times as fast.
    #[arg(long, default_value = "1", value_name = "N", help_heading = "Anchors")]
    pub nemo_step: NonZeroU32,

    /// Write what every frame's anchor alone would have given, as `nemo` measures it, beside what selection knows of the
    /// frame without inference, as CSV to this folder; and print how far the two go together
    #[arg(long, value_name = "FOLDER", help_heading = "Anchors")]
    pub gains: Option<PathBuf>,

    /// Write every frame's time, size and tier as CSV to this folder, for scenarios of `windlass-lab simulate`; with --gains also
    /// what its anchor alone would have given
    #[arg(long, value_name = "FOLDER", help_heading = "Anchors")]
    pub codec_traces: Option<PathBuf>,

    /// What `captured` and `both` take captured anchors from: f (the full layer, decoded by the server), regions (stills
    /// that the server asks for), dds (regions as DDS chooses them).
    #[arg(
        long,
        default_value = "regions",
        value_name = "SOURCE",
        help_heading = "Captured anchors"
    )]
    pub captured_from: Source,

    /// Bit rate of the full layer in kbit/s; Chromium's for its size unless given.
    #[arg(long, value_name = "K", help_heading = "Captured anchors")]
    pub full_kbps: Option<NonZeroU32>,

    /// Share of frames that become captured anchors, from the full layer.
    #[arg(long, default_value_t = 0.033, value_name = "F", help_heading = "Captured anchors")]
    pub captured_fraction: f64,

    /// Quality (1 to 100) of their code.
    #[arg(long, default_value_t = 80, value_name = "Q",
          value_parser = clap::value_parser!(u8).range(1..=100), help_heading = "Captured anchors")]
    pub captured_quality: u8,

    /// Requests of regions a second.
    #[arg(long, default_value_t = 1.0, value_name = "F", help_heading = "Captured anchors")]
    pub stills_fps: f64,

    /// Most bit rate of all regions in kbit/s.
    #[arg(long, default_value = "50", value_name = "K", help_heading = "Captured anchors")]
    pub stills_kbps: NonZeroU32,

    /// Take the stills' bits from the uplink, of which the low layer then gets less, instead of adding them.
    #[arg(long, help_heading = "Captured anchors")]
    pub within: bool,

    /// Most of the picture's area that one request of regions may name.
    #[arg(long, default_value_t = RegionConfig::default().area, value_name = "F", help_heading = "Captured anchors")]
    pub region_area: f64,

    /// Show how much of the gap between the rungs h and f each method closes; the uplink is then Chromium's rate of h
    /// for its size, unless given.
    #[arg(long, help_heading = "Captured anchors")]
    pub rungs: bool,

    /// Run every anchor fraction with every quality or budget at every uplink, and compare the
    /// methods by BD-rate.
    #[arg(long, help_heading = "Sweep")]
    pub sweep: bool,

    /// Anchor fractions to sweep over [default: 0.015,0.033,0.1].
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "F,…",
        requires = "sweep",
        help_heading = "Sweep"
    )]
    pub fractions: Vec<f64>,

    /// Anchor qualities to sweep over [default: 60,85, unless there are budgets].
    #[arg(long, value_delimiter = ',', value_name = "Q,…", requires = "sweep",
          value_parser = clap::value_parser!(u8).range(1..=100), help_heading = "Sweep")]
    pub qualities: Vec<u8>,

    /// Bytes of each anchor to sweep over.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "BYTES,…",
        requires = "sweep",
        help_heading = "Sweep"
    )]
    pub budgets: Vec<NonZeroU32>,

    /// The method that the others are compared with.
    #[arg(long, default_value = "lanczos", value_name = "METHOD", help_heading = "Sweep")]
    pub bd_reference: Method,

    /// Adapt the publisher's knobs by gradient, and compare with fixed settings and exhaustive search.
    #[arg(long, help_heading = "Controller")]
    pub controller: bool,

    /// Play the clips one after the other as one scene: changes of content.
    #[arg(long, requires = "controller", help_heading = "Controller")]
    pub chain: bool,

    /// Uplinks that change: kbit/s from a second on, as 300@0/100@6; instead of --uplink.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "K@S/K@S,…",
        requires = "controller",
        help_heading = "Controller"
    )]
    pub trace: Vec<Trace>,

    /// The largest layer that the publisher can send: q, h or f.
    #[arg(long, default_value = "f", value_name = "LAYER", help_heading = "Controller")]
    pub most_layer: String,

    /// Keep the runs of fixed settings in this folder, for the next time.
    #[arg(long, value_name = "DIR", requires = "controller", help_heading = "Controller")]
    pub cache: Option<PathBuf>,

    /// Compare Windlass with plain VP9 of every size, sharpened, at the size that people see, for equal bits: BD-rate and
    /// quality. Clips that have less are shown at what they have.
    #[arg(long, value_name = "WxH", conflicts_with_all = ["controller", "sweep", "rungs", "methods", "adapt", "scale", "model"],
          help_heading = "At the size shown")]
    pub display: Option<DisplaySize>,

    /// Write one page with pictures to slide between, curves and a verdict into this folder, and its pictures beside it.
    #[arg(long, value_name = "DIR", requires = "display", help_heading = "At the size shown")]
    pub html: Option<PathBuf>,

    /// Let the network learn its last layer from the call so far, after so many seconds each, and measure what it gains on
    /// the rest: from the camera's own pictures and from the full layer's, one a second.
    #[arg(long, value_delimiter = ',', value_name = "S,…", conflicts_with_all = ["controller", "sweep", "methods"],
          help_heading = "Adapting the network")]
    pub adapt: Vec<f64>,

    /// Write rate-quality plots (SVG) into this folder: one for each clip and metric, and the mean.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub plots: Option<PathBuf>,

    /// Write crops side by side (PNG) into this folder.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub pictures: Option<PathBuf>,

    /// Print one JSON object instead of tables.
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Leave out processor times, so that two runs give the same bytes.
    #[arg(long, help_heading = "Output")]
    pub no_times: bool,

    /// The ffmpeg to use; one with libvmaf adds the VMAF columns.
    #[arg(long, env = "WINDLASS_FFMPEG", value_name = "PATH", help_heading = "Output")]
    pub ffmpeg: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  windlass-lab eval clip.mp4 --height 360 --seconds 5 --uplink 150
  windlass-lab eval d13.mp4@crop=720:405:0:300 talk.mp4@screen --methods lanczos,nemo-style,hybrid --oracle
  windlass-lab eval *.mp4 --sweep --fractions 0.02,0.05 --budgets 1500,4000 --plots plots --json > sweep.json
  windlass-lab eval s18.mp4 --display 1280x720 --seconds 6 --html seen

Columns: p5 is the 5th percentile over frames; worst is the least difference in PSNR of any frame from
bicubic; infer and code are for each anchor, the other times for each frame, all of one processor.";

impl EvalArgs {
    /// Checks what clap cannot.
    pub fn check(&self) -> anyhow::Result<()> {
        for &fraction in self.fractions.iter().chain([&self.anchor_fraction]) {
            ensure!(
                (0.0..=1.0).contains(&fraction),
                "an anchor fraction is a share of the frames, from 0 to 1, not {fraction}"
            );
        }
        ensure!(
            (0.0..=1.0).contains(&self.anchor_loss),
            "--anchor-loss is a share of the messages, from 0 to 1, not {}",
            self.anchor_loss
        );
        for share in [self.captured_fraction, self.region_area] {
            ensure!((0.0..=1.0).contains(&share), "{share} is not a share, from 0 to 1");
        }
        ensure!(
            self.stills_fps > 0.0 && self.stills_fps <= 30.0,
            "--stills-fps must be more than 0 and at most 30, not {}",
            self.stills_fps
        );
        if let Some(seconds) = self.seconds {
            ensure!(
                seconds > 0.0 && seconds.is_finite(),
                "--seconds must be more than 0, not {seconds}"
            );
        }
        for seconds in &self.adapt {
            ensure!(
                *seconds > 0.0 && seconds.is_finite(),
                "--adapt takes seconds of a call, more than 0, not {seconds}"
            );
        }
        let own = self.clips.iter().filter_map(|clip| clip.height);
        for height in own.chain([self.height]) {
            ensure!(height.get() >= 64, "--height must be at least 64 lines, not {height}");
        }
        ensure!(
            !self.sweep || self.methods().contains(&self.bd_reference),
            "--bd-reference {} is not among the methods that run",
            self.bd_reference
        );
        // The network that is built in doubles; what needs none takes any scale.
        for method in self.methods() {
            let anchors = method.has_enhanced() || method == Method::Direct;
            let scored = matches!(method.captured(), Some(Source::Regions | Source::Dds));
            let network = !self.oracle && anchors || scored || method == Method::PerFrameSr;
            ensure!(
                self.scale == Scale::TWO || self.model.is_some() || !network,
                "the network that is built in works at --scale 2 only, so {method} does not at {}{}",
                self.scale,
                if anchors {
                    "; give --model or --oracle, or name other methods"
                } else {
                    "; give --model"
                }
            );
        }
        Ok(())
    }

    /// What to take of a clip.
    pub fn wanted(&self, spec: &ClipSpec, scale: Scale) -> Wanted {
        Wanted {
            crop: spec.crop.or(self.crop),
            height: spec.height.unwrap_or(self.height).get(),
            seconds: self.seconds,
            fps: self.fps,
            scale,
        }
    }

    /// Which tiles are sent.
    pub fn tiles(&self) -> TileConfig {
        TileConfig { threshold: self.tile_threshold, ..TileConfig::default() }
    }

    /// How captured anchors are made.
    pub fn captured(&self) -> CapturedSettings {
        CapturedSettings {
            full_kbps: self.full_kbps.map(NonZeroU32::get),
            fraction: self.captured_fraction,
            quality: self.captured_quality,
            stills_fps: self.stills_fps,
            stills_kbps: self.stills_kbps.get(),
            within: self.within,
            area: self.region_area,
        }
    }

    /// Bit rates of the low layer in kbit/s.
    pub fn uplinks(&self) -> Vec<u32> {
        match (self.uplink.is_empty(), self.sweep) {
            (false, _) => self.uplink.iter().map(|k| k.get()).collect(),
            (true, true) => SWEPT_UPLINKS.to_vec(),
            (true, false) => UPLINKS.to_vec(),
        }
    }

    /// What the uplink carries, where the controller is compared.
    pub fn traces(&self) -> anyhow::Result<Vec<Trace>> {
        if self.trace.is_empty() {
            return self.uplinks().iter().map(|kbps| kbps.to_string().parse()).collect();
        }
        Ok(self.trace.clone())
    }

    /// The methods to run, in the order of the report.
    pub fn methods(&self) -> Vec<Method> {
        if self.methods.is_empty() {
            return match (self.sweep, self.rungs) {
                (true, _) => Method::swept(),
                (false, true) => self.between_rungs(),
                (false, false) => Method::usual(),
            };
        }
        let named: Vec<Method> =
            self.methods.iter().map(|m| m.resolve(self.captured_from)).collect();
        let mut methods: Vec<Method> =
            Method::ALL.into_iter().filter(|method| named.contains(method)).collect();
        for &variant in named.iter().filter(|m| matches!(m, Method::Variant(_))) {
            if !methods.contains(&variant) {
                methods.push(variant);
            }
        }
        methods
    }

    /// What is shown between two rungs unless methods are named.
    fn between_rungs(&self) -> Vec<Method> {
        let source = self.captured_from;
        let mut methods = vec![Method::Full, Method::Lanczos, Method::LanczosSharp];
        methods.extend([Method::NoAnchors, Method::Hybrid]);
        methods.extend([Method::Captured(source), Method::Both(source)]);
        methods
    }

    /// Anchor fractions to run.
    pub fn fractions(&self) -> Vec<f64> {
        match (self.sweep, self.fractions.is_empty()) {
            (true, true) => vec![0.015, 0.033, 0.1],
            (true, false) => self.fractions.clone(),
            (false, _) => vec![self.anchor_fraction],
        }
    }

    /// What anchors are held to.
    pub fn targets(&self) -> Vec<Target> {
        let budget = |bytes: &NonZeroU32| Target::Budget(bytes.get() as usize);
        if !self.sweep {
            let quality = Target::Quality(self.anchor_quality);
            return vec![self.anchor_budget.as_ref().map_or(quality, budget)];
        }
        let none = self.qualities.is_empty() && self.budgets.is_empty();
        let qualities = if none { &[60, 85][..] } else { &self.qualities };
        let qualities = qualities.iter().map(|&quality| Target::Quality(quality));
        qualities.chain(self.budgets.iter().map(budget)).collect()
    }
}

/// A clip with options of its own, as `file.mp4@crop=720:405:0:300,height=360,screen`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClipSpec {
    /// The file.
    pub path: PathBuf,
    /// Part of the picture; the run's own when `None`.
    pub crop: Option<Crop>,
    /// Most lines; the run's own when `None`.
    pub height: Option<NonZeroU32>,
    /// Whether it shows a shared screen.
    pub screen: bool,
    /// What reports call it; the file's name when `None`.
    pub name: Option<String>,
}

impl FromStr for ClipSpec {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<ClipSpec> {
        let path = PathBuf::from(text);
        let mut spec = ClipSpec { path, crop: None, height: None, screen: false, name: None };
        let Some((path, options)) = text.rsplit_once('@') else {
            return Ok(spec);
        };
        // File names have @ too: what does not begin with an option's name belongs to the file's.
        let key = options.split([',', '=']).next().unwrap_or_default();
        if !["crop", "height", "screen", "name"].contains(&key) || path.is_empty() {
            return Ok(spec);
        }
        spec.path = PathBuf::from(path);
        for option in options.split(',') {
            match option.split_once('=') {
                Some(("crop", value)) => spec.crop = Some(value.parse()?),
                Some(("height", value)) => {
                    let lines = value.parse();
                    let lines = lines.with_context(|| format!("a height in lines: {value:?}"))?;
                    spec.height = Some(lines);
                }
                Some(("name", value)) if !value.is_empty() => spec.name = Some(value.to_owned()),
                None if option == "screen" => spec.screen = true,
                _ => bail!(
                    "a clip's options are crop=W:H:X:Y, height=LINES, screen and name=NAME, not {option:?}"
                ),
            }
        }
        Ok(spec)
    }
}

/// A rectangle of the source picture, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crop {
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
    /// Left edge.
    pub x: u32,
    /// Top edge.
    pub y: u32,
}

impl FromStr for Crop {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Crop> {
        let numbers: Vec<u32> =
            text.split(':').map(str::parse).collect::<Result<_, _>>().with_context(|| {
                format!("a crop is width:height:x:y in pixels, as 1080:608:0:100, not {text:?}")
            })?;
        let &[width, height, x, y] = numbers.as_slice() else {
            bail!("a crop has four numbers, width:height:x:y, not {}", numbers.len());
        };
        ensure!(
            width >= 64 && height >= 64,
            "a crop of {width}x{height} is too small: both sides must be at least 64"
        );
        Ok(Crop { width, height, x, y })
    }
}

/// Frame rate of the simulated call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fps {
    /// The clip's own.
    Auto,
    /// Frames per second, whatever the clip says.
    Fixed(f64),
}

impl FromStr for Fps {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Fps> {
        if text == "auto" {
            return Ok(Fps::Auto);
        }
        let fps: f64 =
            text.parse().with_context(|| format!("--fps is `auto` or a number, not {text:?}"))?;
        ensure!((1.0..=120.0).contains(&fps), "--fps must be from 1 to 120, not {fps}");
        Ok(Fps::Fixed(fps))
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        eval: EvalArgs,
    }

    fn parse(args: &[&str]) -> Result<EvalArgs, clap::Error> {
        Cli::try_parse_from([&["eval"], args].concat()).map(|cli| cli.eval)
    }

    #[test]
    fn a_crop_is_four_numbers() {
        assert_eq!(
            "720:405:0:300".parse::<Crop>().unwrap(),
            Crop { width: 720, height: 405, x: 0, y: 300 }
        );
        for wrong in ["", "720:405:0", "720:405:0:300:1", "a:b:c:d", "-1:405:0:0", "10:10:0:0"] {
            assert!(wrong.parse::<Crop>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_clip_may_have_options_of_its_own() {
        let options = "crop=720:405:0:300,height=360,screen,name=c";
        let spec: ClipSpec = format!("a@b/c.mp4@{options}").parse().unwrap();
        assert_eq!(spec.name.as_deref(), Some("c"));
        assert_eq!(spec.path, PathBuf::from("a@b/c.mp4"));
        assert_eq!(spec.crop, Some("720:405:0:300".parse().unwrap()));
        assert_eq!((spec.height, spec.screen), (NonZeroU32::new(360), true));
        let plain: ClipSpec = "me@home.mp4".parse().unwrap();
        assert_eq!((plain.path, plain.crop), (PathBuf::from("me@home.mp4"), None));
        for wrong in
            ["a.mp4@crop=1:2", "a.mp4@height=tall", "a.mp4@screen,colour=no", "a.mp4@name="]
        {
            assert!(wrong.parse::<ClipSpec>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn defaults_are_those_of_the_product() {
        let args = parse(&["a.mp4"]).unwrap();
        assert_eq!((args.uplinks(), args.fractions()), (vec![150, 300], vec![0.033]));
        assert_eq!(args.targets(), [Target::Quality(EnhancerConfig::default().anchor_quality)]);
        assert_eq!((args.height.get(), args.delay_ms, args.fps), (540, 130, Fps::Auto));
        assert!(args.check().is_ok() && !args.methods().contains(&Method::Nemo));
    }

    #[test]
    fn a_sweep_is_over_all_that_was_named_or_over_sane_defaults() {
        let args = parse(&["a.mp4", "--sweep"]).unwrap();
        assert_eq!((args.uplinks().len(), args.fractions().len()), (5, 3));
        assert_eq!(args.targets(), [Target::Quality(60), Target::Quality(85)]);
        let args = parse(&["a.mp4", "--sweep", "--budgets", "900,2000", "--uplink", "80"]).unwrap();
        assert_eq!(args.targets(), [Target::Budget(900), Target::Budget(2000)]);
        assert_eq!(args.uplinks(), [80]);
        assert!(parse(&["a.mp4", "--budgets", "900"]).is_err(), "a list without --sweep");
        let lonely = parse(&["a.mp4", "--sweep", "--methods", "hybrid"]).unwrap();
        assert!(lonely.check().unwrap_err().to_string().contains("lanczos"));
    }

    #[test]
    fn other_scales_are_for_methods_that_need_no_network() {
        let with = |more: &[&str]| parse(&[&["a.mp4", "--scale", "3"], more].concat()).unwrap();
        assert!(with(&[]).check().is_err());
        assert!(with(&["--methods", "lanczos,no-anchors"]).check().is_ok());
        assert!(with(&["--methods", "hybrid"]).check().is_err());
        assert!(with(&["--methods", "hybrid,direct", "--oracle"]).check().is_ok());
        assert!(parse(&["a.mp4", "--scale", "3", "--model", "x3.safetensors"]).is_err());
        let mut args = parse(&["a.mp4", "--model", "x3.safetensors"]).unwrap();
        args.scale = "3".parse().unwrap();
        assert!(args.check().is_ok());
    }

    #[test]
    fn captured_anchors_come_from_where_the_command_says() {
        let args =
            parse(&["a.mp4", "--methods", "both,captured@dds", "--captured-from", "f"]).unwrap();
        let names: Vec<String> = args.methods().iter().map(Method::to_string).collect();
        assert_eq!(names, ["captured@dds", "both@f"]);
        let rungs = parse(&["a.mp4", "--rungs"]).unwrap();
        assert_eq!(rungs.methods().last().unwrap().to_string(), "both@regions");
        assert!(parse(&["a.mp4", "--captured-from", "h"]).is_err());
        assert!(parse(&["a.mp4", "--stills-fps", "0"]).unwrap().check().is_err());
    }

    #[test]
    fn methods_come_in_the_order_of_the_report() {
        let args = parse(&["a.mp4", "--methods", "hybrid@no-prior,hybrid,lanczos"]).unwrap();
        let names: Vec<String> = args.methods().iter().map(Method::to_string).collect();
        assert_eq!(names, ["lanczos", "hybrid", "hybrid@no-prior"]);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        assert!(parse(&[]).is_err());
        assert!(parse(&["a.mp4", "--fps", "0"]).is_err());
        assert!(parse(&["a.mp4", "--uplink", "0"]).is_err());
        assert!(parse(&["a.mp4", "--anchor-quality", "0"]).is_err());
        assert!(parse(&["a.mp4", "--anchor-fraction", "1.5"]).unwrap().check().is_err());
        assert!(parse(&["a.mp4", "--anchor-loss", "2"]).unwrap().check().is_err());
        assert!(parse(&["a.mp4", "--seconds", "0"]).unwrap().check().is_err());
        assert!(parse(&["a.mp4", "--height", "10"]).unwrap().check().is_err());
        assert!(parse(&["a.mp4@height=10"]).unwrap().check().is_err());
    }

    #[test]
    fn help_tells_defaults_and_examples() {
        let help = Cli::command().render_long_help().to_string();
        for part in ["--sweep", "0.015,0.033,0.1", "Examples:", "nemo-style", "[default: 85]"] {
            assert!(help.contains(part), "{part} is missing in {help}");
        }
    }
}
