//! The command line of `windlass-lab eval`, one struct for each heading of its help.

mod anchors;
mod clips;
mod sweep;

use std::num::NonZeroU32;
use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;

use self::anchors::{AnchorArgs, CapturedArgs};
pub(crate) use self::clips::{ClipArgs, ClipSpec, name};
use self::sweep::SweepArgs;
use super::captured::Source;
use super::coding::Target;
use super::controller::args::ControllerArgs;
use super::controller::trace::Trace;
use super::display::args::DisplayArgs;
use super::method::Method;
use super::scale::Scale;
use crate::output::Output;

/// Default bitrates of the low layer, in kbit/s.
const UPLINKS: [u32; 2] = [150, 300];
/// Default bitrates of a sweep, in kbit/s: from barely enough for video to more than the low layer can use.
const SWEPT_UPLINKS: [u32; 5] = [60, 100, 160, 280, 500];

/// Run the product's pipeline over recorded clips and score it against the original.
///
/// Every clip is scaled down to an HR size, then to the low layer, encoded as Chromium encodes a
/// camera, decoded, enhanced and rebuilt. Runs repeat exactly: nothing depends on the clock but the
/// times, which --no-times leaves out.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct EvalArgs {
    /// The clips to measure.
    #[command(flatten, next_help_heading = "Clips")]
    pub input: ClipArgs,

    /// Methods, low layer and network.
    #[command(flatten, next_help_heading = "Methods")]
    pub run: MethodArgs,

    /// All anchors.
    #[command(flatten, next_help_heading = "Anchors")]
    pub anchors: AnchorArgs,

    /// Captured anchors.
    #[command(flatten, next_help_heading = "Captured anchors")]
    pub captured: CapturedArgs,

    /// Sweeps.
    #[command(flatten, next_help_heading = "Sweep")]
    pub sweep: SweepArgs,

    /// The publisher's controller.
    #[command(flatten, next_help_heading = "Controller (instead of methods)")]
    pub controller: ControllerArgs,

    /// Comparison with plain video at the size shown.
    #[command(flatten, next_help_heading = "At the size shown (instead of methods)")]
    pub display: DisplayArgs,

    /// Let the network learn its last layer from the first seconds of the call, and measure the gain on the rest.
    ///
    /// Takes one or more lengths in seconds. The network learns one picture a second: of the camera, and of the full
    /// layer.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "S,…",
        group = "comparison",
        help_heading = "Adapting the network (instead of methods)"
    )]
    pub adapt: Vec<f64>,

    /// What is printed and written.
    #[command(flatten, next_help_heading = "Output")]
    pub output: OutputArgs,
}

/// The options of the methods that are compared.
#[derive(Debug, Clone, Args)]
// A help text as well, where brackets have defaults.
#[allow(rustdoc::broken_intra_doc_links)]
pub(crate) struct MethodArgs {
    /// HR size over LR size, in both directions.
    #[arg(long, default_value = "2", value_name = "N", conflicts_with = "comparison")]
    pub scale: Scale,

    /// Network file (safetensors) instead of the built-in one; --scale is then the network's.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scale", "controller", "display"])]
    pub model: Option<PathBuf>,

    /// CPU backend of the network, as `bench engine` names them [default: the fastest].
    #[arg(long, value_name = "NAME", conflicts_with = "comparison")]
    pub backend: Option<String>,

    /// Bit rates of the low (LR) layer in kbit/s [default: 150,300; with --sweep 60,100,160,280,500].
    #[arg(long, value_delimiter = ',', value_name = "K,…", conflicts_with = "display")]
    pub uplink: Vec<NonZeroU32>,

    /// Methods to run [default: all but nemo, hybrid@NAME and those of the publisher].
    ///
    /// direct: one full-size stream of the same bits; direct@2: one of twice the low layer's bits; f: the full layer;
    /// bicubic, lanczos, lanczos@0.3 (sharpened); per-frame-sr (a bound); key-uniform, nemo: the product with anchors
    /// on other frames (nemo measures the gain of every frame: slow); nemo-style: the papers' reconstruction;
    /// no-anchors; frames@xxs, frames@xs: a network on every frame, also with the full layer's pictures (frames@xs+f);
    /// whole-frames: the product with anchors of whole frames; hybrid: the product; hybrid@NAME: the product with other
    /// settings (a wrong NAME lists them); captured, both: captured anchors, alone and with enhanced ones
    /// (captured@SOURCE, both@SOURCE: f, regions, dds).
    #[arg(long, value_delimiter = ',', value_name = "METHOD,…", conflicts_with = "comparison")]
    pub methods: Vec<Method>,

    /// Show how much of the gap between the rungs h and f each method closes; the default uplink is then Chromium's bit
    /// rate of h for its size.
    #[arg(long, conflicts_with = "comparison")]
    pub rungs: bool,
}

/// The options of what is printed and written.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub json: bool,

    /// Write the report as a page too, with its curves: a file. With --display it is a folder, for a page with pictures
    /// to slide between, curves and a verdict.
    #[arg(long, value_name = "PATH")]
    pub html: Option<PathBuf>,

    /// Leave out CPU times, so that two runs give the same bytes.
    #[arg(long)]
    pub no_times: bool,

    /// Folder for rate-quality plots (SVG): one for each clip and metric, and the mean.
    #[arg(long, value_name = "DIR", conflicts_with = "comparison")]
    pub plots: Option<PathBuf>,

    /// Folder for crops side by side (PNG).
    #[arg(long, value_name = "DIR", conflicts_with = "comparison")]
    pub pictures: Option<PathBuf>,

    /// Folder for the gain in dB of every frame's anchor, as `nemo` measures it, beside the scheduler's prediction
    /// (CSV); the correlation of the two is printed.
    #[arg(long, value_name = "FOLDER", conflicts_with = "comparison")]
    pub gains: Option<PathBuf>,

    /// Folder for every frame's time, size and tier (CSV), for scenarios of `windlass-lab simulate`; with --gains also
    /// the gain of its anchor.
    #[arg(long, value_name = "FOLDER", conflicts_with = "comparison")]
    pub codec_traces: Option<PathBuf>,

    /// ffmpeg program to use; one with libvmaf adds the VMAF columns.
    #[arg(long, env = "WINDLASS_FFMPEG", value_name = "PATH")]
    pub ffmpeg: Option<PathBuf>,
}

/// Text at the end of the command's long help.
const EXAMPLES: &str = "\
Examples:
  windlass-lab eval clip.mp4 --height 360 --seconds 5 --uplink 150
  windlass-lab eval d13.mp4@crop=720:405:0:300 talk.mp4@screen --methods lanczos,nemo-style,hybrid --oracle
  windlass-lab eval *.mp4 --sweep --fractions 0.02,0.05 --budgets 1500,4000 --plots plots --json > sweep.json
  windlass-lab eval s18.mp4 --display 1280x720 --seconds 6 --html seen

Columns: p5 is the 5th percentile over frames; worst is the least difference in PSNR of any frame from
bicubic; infer and code are for each anchor, the other times for each frame, all of one CPU.";

impl OutputArgs {
    /// Where a report of rows goes.
    pub(super) fn rows(&self) -> Output {
        Output { json: self.json, html: self.html.clone() }
    }
}

impl EvalArgs {
    /// Checks what clap cannot.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.input.check()?;
        self.captured.check()?;
        for &fraction in self.sweep.fractions.iter().chain([&self.anchors.anchor_fraction]) {
            ensure!(
                (0.0..=1.0).contains(&fraction),
                "an anchor fraction is a share of the frames, from 0 to 1, not {fraction}"
            );
        }
        ensure!(
            (0.0..=1.0).contains(&self.anchors.anchor_loss),
            "--anchor-loss is a share of the messages, from 0 to 1, not {}",
            self.anchors.anchor_loss
        );
        for seconds in &self.adapt {
            ensure!(
                *seconds > 0.0 && seconds.is_finite(),
                "--adapt takes seconds of a call, more than 0, not {seconds}"
            );
        }
        let reference = self.sweep.bd_reference;
        ensure!(
            !self.sweep.sweep || self.methods().contains(&reference),
            "--bd-reference {reference} is not among the methods that run"
        );
        self.check_scale()
    }

    /// Checks that a network exists for the scale. The built-in network doubles; filters take any scale.
    fn check_scale(&self) -> anyhow::Result<()> {
        let MethodArgs { scale, model, .. } = &self.run;
        let named = self.run.methods.iter().filter_map(|method| method.frame_network());
        for tier in named.chain(self.display.frame_network) {
            let scales: Vec<usize> = tier.networks().iter().map(|n| n.scale()).collect();
            // Shown sizes take scales of two and four, each where there is a network.
            ensure!(
                self.display.display.is_some() || scales.contains(&scale.factor()),
                "there is no frame network {tier} for --scale {scale}: there are some for {scales:?}"
            );
        }
        for method in self.methods() {
            let anchors = method.has_enhanced() || method == Method::Direct;
            let scored = matches!(method.captured(), Some(Source::Regions | Source::Dds));
            let network = !self.anchors.oracle && anchors || scored || method == Method::PerFrameSr;
            ensure!(
                *scale == Scale::TWO || model.is_some() || !network,
                "the network that is built in works at --scale 2 only, so {method} does not at {scale}{}",
                if anchors {
                    "; give --model or --oracle, or name other methods"
                } else {
                    "; give --model"
                }
            );
        }
        Ok(())
    }

    /// Bitrates of the low layer, kbit/s.
    pub(crate) fn uplinks(&self) -> Vec<u32> {
        match (self.run.uplink.is_empty(), self.sweep.sweep) {
            (false, _) => self.run.uplink.iter().map(|k| k.get()).collect(),
            (true, true) => SWEPT_UPLINKS.to_vec(),
            (true, false) => UPLINKS.to_vec(),
        }
    }

    /// Bitrates of the uplink over time, for the controller.
    pub(crate) fn traces(&self) -> anyhow::Result<Vec<Trace>> {
        if self.controller.trace.is_empty() {
            return self.uplinks().iter().map(|kbps| kbps.to_string().parse()).collect();
        }
        Ok(self.controller.trace.clone())
    }

    /// The methods to run, in the order of the report.
    pub(crate) fn methods(&self) -> Vec<Method> {
        if self.run.methods.is_empty() {
            return match (self.sweep.sweep, self.run.rungs) {
                (true, _) => Method::swept(),
                (false, true) => self.between_rungs(),
                (false, false) => Method::usual(),
            };
        }
        let resolve = |method: &Method| method.resolve(self.captured.captured_from);
        let named: Vec<Method> = self.run.methods.iter().map(resolve).collect();
        let mut methods: Vec<Method> =
            Method::ALL.into_iter().filter(|method| named.contains(method)).collect();
        for &variant in named.iter().filter(|m| matches!(m, Method::Variant(_))) {
            if !methods.contains(&variant) {
                methods.push(variant);
            }
        }
        methods
    }

    /// The default methods of `--rungs`.
    fn between_rungs(&self) -> Vec<Method> {
        let source = self.captured.captured_from;
        let mut methods = vec![Method::Full, Method::Lanczos, Method::LanczosSharp];
        methods.extend([Method::NoAnchors, Method::Hybrid]);
        methods.extend([Method::Captured(source), Method::Both(source)]);
        methods
    }

    /// Anchor fractions to run, 0 to 1.
    pub(crate) fn fractions(&self) -> Vec<f64> {
        match (self.sweep.sweep, self.sweep.fractions.is_empty()) {
            (true, true) => vec![0.015, 0.033, 0.1],
            (true, false) => self.sweep.fractions.clone(),
            (false, _) => vec![self.anchors.anchor_fraction],
        }
    }

    /// Qualities or sizes of anchors to run.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let budget = |bytes: &NonZeroU32| Target::Budget(bytes.get() as usize);
        if !self.sweep.sweep {
            let quality = Target::Quality(self.anchors.anchor_quality);
            return vec![self.anchors.anchor_budget.as_ref().map_or(quality, budget)];
        }
        let SweepArgs { qualities, budgets, .. } = &self.sweep;
        let none = qualities.is_empty() && budgets.is_empty();
        let qualities = if none { &[60, 85][..] } else { qualities };
        let qualities = qualities.iter().map(|&quality| Target::Quality(quality));
        qualities.chain(budgets.iter().map(budget)).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use windlass_enhancer::EnhancerConfig;

    use super::*;
    use crate::eval::clip::Fps;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        eval: EvalArgs,
    }

    fn parse(args: &[&str]) -> Result<EvalArgs, clap::Error> {
        Cli::try_parse_from([&["eval"], args].concat()).map(|cli| cli.eval)
    }

    #[test]
    fn defaults_are_those_of_the_product() {
        let args = parse(&["a.mp4"]).unwrap();
        assert_eq!((args.uplinks(), args.fractions()), (vec![150, 300], vec![0.033]));
        assert_eq!(args.targets(), [Target::Quality(EnhancerConfig::default().anchor_quality)]);
        assert_eq!(
            (args.input.height.get(), args.anchors.delay_ms, args.input.fps),
            (540, 130, Fps::Auto)
        );
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
        let error = with(&["--methods", "frames@xxs"]).check().unwrap_err().to_string();
        assert!(error.contains("no frame network xxs for --scale 3"), "{error}");
        let mut args = parse(&["a.mp4", "--model", "x3.safetensors"]).unwrap();
        args.run.scale = "3".parse().unwrap();
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
    fn comparisons_exclude_each_other_and_what_they_would_ignore() {
        let comparisons: [&[&str]; 3] =
            [&["--controller"], &["--display", "1280x720"], &["--adapt", "2"]];
        for (n, one) in comparisons.iter().enumerate() {
            assert!(parse(&[&["a.mp4"], *one].concat()).is_ok(), "{one:?}");
            let others = comparisons[n + 1..].iter().copied();
            let ignored: [&[&str]; 3] = [&["--sweep"], &["--rungs"], &["--methods", "hybrid"]];
            for other in others.chain(ignored) {
                assert!(parse(&[&["a.mp4"], *one, other].concat()).is_err(), "{one:?} {other:?}");
            }
        }
        assert!(parse(&["a.mp4", "--sweep", "--rungs"]).is_ok());
        assert!(parse(&["a.mp4", "--controller", "--trace", "9@0", "--uplink", "9"]).is_err());
    }

    #[test]
    fn help_tells_defaults_and_examples() {
        let help = Cli::command().render_long_help().to_string();
        for part in ["--sweep", "0.015,0.033,0.1", "Examples:", "nemo-style", "[default: 85]"] {
            assert!(help.contains(part), "{part} is missing in {help}");
        }
    }
}
