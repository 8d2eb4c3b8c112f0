//! What products of 8-bit floating point (e4m3, as Hopper's tensor cores have them) would cost trained networks.
//!
//! `cargo test -p windlass-enhancer --test eight_bits -- --ignored --nocapture` prints it for the networks in `models/` on real
//! clips; without clips it says so. Takes minutes. What the kernels themselves lose, with scales that they bring along, is seen
//! on a part of each picture, on the device that `tests/cuda/` emulates.

mod clips;
#[cfg(target_os = "linux")]
#[path = "cuda/emulated.rs"]
mod emulated;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use windlass_enhancer::engine::conformance::{reference, reference_with};
use windlass_enhancer::engine::cuda::Variant;
use windlass_enhancer::engine::{Conv, CudaEngine, Engine, Input, Luma, Model, Residual};
use windlass_hybrid::resample::{Scratch, lanczos};
use windlass_vp9::Samples;
use windlass_vp9::simd::Isa;

/// The greatest number of e4m3.
const GREATEST: f64 = 448.0;

/// The nearest number of e4m3: three bits of fraction, exponents from 2⁻⁶, below them steps of 2⁻⁹.
fn e4m3(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let exponent = value.abs().log2().floor().max(-6.0);
    let step = (exponent - 3.0).exp2();
    let rounded = (value / step).round_ties_even() * step;
    rounded.clamp(-GREATEST, GREATEST)
}

/// Rounds numbers as they come out after they are scaled so that the greatest is e4m3's.
fn round<'a>(values: impl Iterator<Item = &'a mut f64>) {
    let values: Vec<&mut f64> = values.collect();
    let most = values.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    if most == 0.0 {
        return;
    }
    for value in values {
        *value = e4m3(*value * (GREATEST / most)) * (most / GREATEST);
    }
}

/// Rounds what a convolution is given: its inputs together, its weights by output.
fn round_conv(planes: &mut [Vec<f64>], conv: &mut Conv) {
    round(planes.iter_mut().flatten());
    let inputs = conv.weights.len() / conv.bias.len();
    for kernel in conv.weights.chunks_exact_mut(inputs) {
        let mut wide: Vec<f64> = kernel.iter().map(|w| f64::from(*w)).collect();
        round(wide.iter_mut());
        kernel.iter_mut().zip(wide).for_each(|(w, v)| *w = v as f32);
    }
}

/// Luma of a frame through ffmpeg's filters and, at a bitrate, VP9; `None` without ffmpeg.
fn frame(
    clip: &Path,
    filters: &str,
    bitrate: Option<&str>,
    size: (usize, usize),
) -> Option<Vec<u8>> {
    let coded = std::env::temp_dir().join(format!("windlass-eight-{}.ivf", std::process::id()));
    let ffmpeg = |input: &Path, arguments: &str| {
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-nostdin", "-y", "-i"]).arg(input);
        command.args(arguments.split_whitespace()).output().ok().filter(|o| o.status.success())
    };
    // The last of fifteen frames: a stream that has settled.
    let last = "-f rawvideo -pix_fmt gray pipe:1";
    let output = if let Some(bitrate) = bitrate {
        ffmpeg(
            clip,
            &format!(
                "-vf {filters} -frames:v 15 -c:v libvpx-vp9 -deadline realtime -cpu-used 7 -b:v {bitrate} -lag-in-frames 0 {}",
                coded.display()
            ),
        )?;
        ffmpeg(&coded, last)?
    } else {
        ffmpeg(clip, &format!("-vf {filters} -frames:v 15 {last}"))?
    };
    let samples = size.0 * size.1;
    (output.stdout.len() == 15 * samples).then(|| output.stdout[14 * samples..].to_vec())
}

fn psnr(wanted: &[u8], base: &[i16], residual: &[f64]) -> f64 {
    let shown = base.iter().zip(residual);
    let shown = shown.map(|(b, r)| (f64::from(*b) / 16.0 + r).round().clamp(0.0, 255.0));
    let sum: f64 = shown.zip(wanted).map(|(s, w)| (s - f64::from(*w)).powi(2)).sum();
    10.0 * (255.0 * 255.0 / (sum / wanted.len() as f64)).log10()
}

#[test]
fn numbers_of_eight_bits_are_those_of_e4m3() {
    let exact = [0.0, 1.0, 1.125, -1.875, 448.0, 0.015_625, 0.001_953_125, -240.0];
    assert!(exact.iter().all(|&v| (e4m3(v) - v).abs() < 1e-12));
    for (value, nearest) in
        [(1.07, 1.125), (1.06, 1.0), (500.0, 448.0), (0.0005, 0.0), (17.2, 18.0)]
    {
        assert!((e4m3(value) - nearest).abs() < 1e-12, "{value}");
    }
}

/// Parts of talking heads and of a film.
const CLIPS: [&str; 3] =
    ["LivePortrait__d6", "LivePortrait__s18", "LatentSync__assets_demo1_video"];

/// A clip's name and its fifteenth frame at 320×180 and 150 kbit/s, and at 640×360; `None` without clips or ffmpeg.
fn pictures(clip: &str) -> Option<(String, Vec<u8>, Vec<u8>)> {
    let clip = clips::clip(clip);
    let crop = "crop=w='min(iw,ih*16/9)':h='min(ih,iw*9/16)'";
    let low = frame(&clip, &format!("{crop},scale=320:180"), Some("150k"), (320, 180));
    let high = frame(&clip, &format!("{crop},scale=640:360"), None, (640, 360));
    let name = clip.file_name().unwrap_or_default().display().to_string();
    let (Some(low), Some(high)) = (low, high) else {
        println!("skipped: no clip at {}, or no ffmpeg with libvpx-vp9", clip.display());
        return None;
    };
    Some((name, low, high))
}

fn model(network: &str) -> Model {
    let bytes = std::fs::read(format!("../models/{network}.safetensors"));
    Model::from_safetensors(&bytes.expect("the weights")).expect("a network")
}

/// The low picture at twice its size without a network.
fn enlarged(low: &[u8], (width, height): (usize, usize)) -> Vec<i16> {
    let mut base = vec![0; 4 * width * height];
    let samples = Samples { data: low, stride: width, width, height };
    lanczos(Isa::detect(), samples, 2, 0..height, &mut base, &mut Scratch::default());
    base
}

#[test]
#[ignore = "takes minutes"]
fn what_eight_bits_cost_trained_networks() {
    for network in ["xs-x2", "m-x2", "l-x2"] {
        let model = model(network);
        let last = model.architecture().convs - 1;
        for clip in CLIPS {
            let Some((name, low, high)) = pictures(clip) else { return };
            let input = Input { low: Luma::packed(&low, 320, 180).expect("a plane"), twin: None };
            let base = enlarged(&low, (320, 180));
            let quality = |which: &dyn Fn(usize) -> bool| {
                let residual = reference_with(&model, &input, |n, planes, conv| {
                    if which(n) {
                        round_conv(planes, conv);
                    }
                });
                psnr(&high, &base, &residual)
            };
            let (exact, all, inner) =
                (quality(&|_| false), quality(&|_| true), quality(&|n| n > 0 && n < last));
            println!(
                "{network}, {name}: {exact:.3} dB; e4m3 {:+.3} dB, but for the first and the last {:+.3} dB",
                all - exact,
                inner - exact
            );
        }
    }
}

/// A part of a picture.
fn part(samples: &[u8], width: usize, (x, y): (usize, usize), size: (usize, usize)) -> Vec<u8> {
    let rows = samples.chunks_exact(width).skip(y).take(size.1);
    rows.flat_map(|row| &row[x..x + size.0]).copied().collect()
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "takes minutes"]
fn what_the_kernels_eight_bits_cost_trained_networks() {
    let (name, arch) =
        ("what_the_kernels_eight_bits_cost_trained_networks", ("EMULATED_ARCH", "90"));
    emulated::on_emulated_device(name, &[arch], || {
        for network in ["m-x2", "l-x2"] {
            let model = Arc::new(model(network));
            for clip in CLIPS {
                let Some((name, low, high)) = pictures(clip) else { return };
                // The head, or what is in the middle.
                let (size, at) = ((128, 96), (96, 30));
                let low = part(&low, 320, at, size);
                let high = part(&high, 640, (2 * at.0, 2 * at.1), (2 * size.0, 2 * size.1));
                let luma = Luma::packed(&low, size.0, size.1).expect("a plane");
                let base = enlarged(&low, size);
                let exact = reference(&model, &Input { low: luma, twin: None });
                let exact = psnr(&high, &base, &exact);
                let [half, eight] = [Variant::Wgmma, Variant::Eight].map(|variant| {
                    let mut engine = CudaEngine::with_variant(&model, variant).expect("an engine");
                    let mut out = Residual::default();
                    engine.infer(luma, &mut out).expect("a residual");
                    let residual: Vec<f64> = out.data.iter().map(|v| f64::from(*v)).collect();
                    psnr(&high, &base, &residual) - exact
                });
                println!(
                    "{network}, {name}: {exact:.3} dB; in half precision {half:+.4} dB, in e4m3 {eight:+.3} dB"
                );
                assert!(half.abs() < 0.005 && eight > -0.05, "{network}, {name}: {half} {eight}");
            }
        }
    });
}
