//! `windlass bench anchors`: what anchors cost by codec, in bytes and in processor time.
//!
//! Source: issue 4, *Anchor codecs*. A clip's low layer is coded as Chromium does, anchors are taken
//! at a steady rate ([`material`]), and each codec codes their detail at several qualities: the
//! still codecs each by itself, the VP9 stream from anchor to anchor, and as an experiment the
//! difference to what the subscriber shows already ([`quality`], [`closed`]). With `--loss`, what
//! lost anchors cost ([`loss`]); with `--reencode`, the work against encoding all HR frames anew as
//! seed 000 appendix B does ([`reencode`]).
//! Everything but the `…_ms` columns and `x_reencode` repeats exactly.

mod args;
mod closed;
mod loss;
pub mod material;
mod quality;
mod reencode;
mod report;

pub use args::AnchorsArgs;

use anyhow::{Context, Result};

use self::material::Material;
use self::report::Report;
use crate::eval::clip::{self, Wanted};
use crate::eval::ffmpeg;
use crate::eval::report::Machine;
use crate::eval::scale::Scale;
use crate::eval::sr::Upscaler;

/// Runs the bench and prints its report.
pub fn run(args: &AnchorsArgs) -> Result<()> {
    args.check()?;
    let tools = ffmpeg::find(args.ffmpeg.as_deref())?;
    let mut upscaler = Upscaler::new()?;
    let mut rows = Vec::new();
    for path in &args.clips {
        let name = path
            .file_name()
            .map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
        let named = || format!("measuring {name}");
        eprintln!("{name}: reading");
        let wanted = Wanted {
            crop: args.crop,
            height: args.height.get(),
            seconds: args.seconds,
            fps: args.fps,
            scale: Scale::TWO,
        };
        let clip = clip::read(&tools.reader, path, &wanted).with_context(named)?;
        if args.reencode {
            rows.extend(reencode::measure(&name, &clip, args).with_context(named)?);
            continue;
        }
        for uplink in args.uplink.iter().map(|k| k.get()) {
            let low = material::low_layer(&clip, uplink, args.screen).with_context(named)?;
            for &detail in &args.detail {
                for &rate in &args.rate {
                    eprintln!("{name} at {uplink} kbit/s, {rate} anchors/s of {}", detail.name());
                    let material = Material::new(&clip, &low, detail, rate, &mut upscaler)
                        .with_context(named)?;
                    let labels = report::Labels {
                        clip: &name,
                        uplink_kbps: Some(uplink),
                        detail: detail.name(),
                        rate,
                        size: material.size,
                    };
                    let found = if args.loss {
                        loss::measure(&material, args)
                    } else {
                        quality::measure(&material, args)
                    };
                    rows.extend(found.with_context(named)?.into_iter().map(|p| p.row(&labels)));
                }
            }
        }
    }
    let report = Report { command: "bench anchors", machine: Machine::here(), rows };
    if args.json {
        println!("{}", report.json()?);
    } else {
        print!("{}", report.table());
    }
    Ok(())
}
