//! Measures what the CPU does for a stream, by the product's own code. For anchors: it decodes every low frame,
//! follows what subscribers see, and paints that where there is an anchor, for the GPU to compare. For frames: it
//! encodes every HR frame by libvpx as NeuroScaler appendix B says.
//!
//! Times are CPU time of one thread. The stream is a drawn scene; HR frames are the scene mirrored and repeated to
//! the size.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use windlass_enhancer::twin::Twin;
use windlass_vp9::{Decoder, Picture};
use windlass_vpx::ReencodeConfig;

use super::args::Stream;
use super::cost::ANCHOR_FRACTION;
use crate::bench::mirror;
use crate::eval::cpu_clock::CpuClock;
use crate::eval::frames::Size;
use crate::loadtest::scene;
use windlass_vpx::{Encoder, EncoderConfig};

/// Number of low frames that are decoded again and again.
const LOW_FRAMES: usize = 60;
/// Number of HR frames that are encoded.
const HIGH_FRAMES: usize = 40;
/// Length of the drawn scene's loop, in seconds.
const LOOP_S: f64 = 10.0;
/// Maximum size of the drawn scene; larger pictures repeat it.
const DRAWN: Size = Size::new(1_280, 720);
/// Bits for each sample: the paper's 35.5 Mbit/s of 2160p60, and about what the SDK gives its layers.
const BITS: f64 = 35.5e6 / (3_840.0 * 2_160.0 * 60.0);

/// CPU times of a picture, in ms of one core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cpu {
    pub decode: f64,
    pub follow: f64,
    pub paint: f64,
    pub encode: f64,
}

/// Measures a stream; decoding goes on for at least `seconds`.
pub(super) fn measure(stream: &Stream, seconds: f64, speed: u8) -> Result<Cpu> {
    let (Size { width, height }, scale) = (stream.size, stream.network.0.scale);
    let high = Size::new(scale * width, scale * height);
    let chunks = low_frames(stream)?;
    let (mut decode, mut follow, mut paint) =
        (CpuClock::default(), CpuClock::default(), CpuClock::default());
    let began = Instant::now();
    while decode.mean_run_ms().is_none() || began.elapsed().as_secs_f64() < seconds {
        let (mut decoder, twin, mut due) = (Decoder::new(), Twin::new(scale), 0.0);
        for (n, chunk) in (0..).zip(&chunks) {
            let frames = decode.measure(|| decoder.decode(chunk).map(<[_]>::to_vec))?;
            follow.measure(|| twin.follow(n, &frames));
            due += ANCHOR_FRACTION;
            if due >= 1.0 {
                due -= 1.0;
                paint.measure(|| twin.start(n)).context("the twin has forgotten the frame")?;
            }
        }
    }
    let mean = |clock: CpuClock| clock.mean_run_ms().context("nothing was measured");
    Ok(Cpu {
        decode: mean(decode)?,
        follow: mean(follow)?,
        paint: mean(paint)?,
        encode: encode(high, stream.fps, speed)?,
    })
}

fn kbps(Size { width, height }: Size, fps: f64) -> u32 {
    (1e-3 * BITS * (width * height) as f64 * fps).round().max(10.0) as u32
}

/// The scene at a size, as `count` frames.
fn pictures(Size { width, height }: Size, fps: f64, count: usize) -> impl Iterator<Item = Picture> {
    let drawn = Size::new(width.min(DRAWN.width), height.min(DRAWN.height));
    (0..count).map(move |n| {
        let picture = scene::draw(drawn.width, drawn.height, n as f64 / (LOOP_S * fps));
        if drawn == Size::new(width, height) {
            picture
        } else {
            mirror::picture(&picture, width, height)
        }
    })
}

fn low_frames(stream: &Stream) -> Result<Vec<Vec<u8>>> {
    let &Stream { size, fps, .. } = stream;
    let mut encoder = Encoder::new(EncoderConfig {
        width: size.width,
        height: size.height,
        fps,
        kbps: kbps(size, fps),
        screen: false,
        cpu_used: None,
    })?;
    pictures(size, fps, LOW_FRAMES).map(|picture| Ok(encoder.encode(&picture)?)).collect()
}

/// Measures the time to encode an HR frame, in ms.
fn encode(size: Size, fps: f64, cpu_used: u8) -> Result<f64> {
    let mut encoder = Encoder::reencoder(ReencodeConfig {
        width: size.width,
        height: size.height,
        fps,
        kbps: kbps(size, fps),
        cpu_used,
    })?;
    let (mut clock, mut bytes) = (CpuClock::default(), 0);
    for picture in pictures(size, fps, HIGH_FRAMES) {
        bytes += clock.measure(|| encoder.push(&picture))?.len();
    }
    bytes += clock.measure(|| encoder.finish())?.len();
    ensure!(bytes > 0, "nothing was encoded");
    clock.mean_ms(HIGH_FRAMES).context("nothing was measured")
}

#[cfg(test)]
mod tests {
    use super::super::args::STREAMS;
    use super::*;

    #[test]
    fn a_small_stream_is_measured() {
        let stream: Stream = "chain:2x8x2@64x36p30".parse().unwrap();
        let measured = measure(&stream, 0.0, 8).unwrap();
        let Cpu { decode, follow, paint, encode } = measured;
        assert!([decode, follow, paint, encode].iter().all(|ms| *ms > 0.0), "{measured:?}");
    }

    #[test]
    #[ignore = "a measurement: lab/notes/gpu-engine.md, what a stream costs"]
    fn the_cpus_half_of_what_streams_cost() {
        for text in STREAMS {
            let stream: Stream = text.parse().unwrap();
            println!("{text}: {:?} ms", measure(&stream, 1.0, 8).unwrap());
        }
    }

    #[test]
    fn bits_are_the_papers_and_near_those_of_the_sdk() {
        assert_eq!(kbps(Size::new(3_840, 2_160), 60.0), 35_500);
        assert_eq!(kbps(Size::new(640, 360), 30.0), 493);
        let sizes = |size| pictures(size, 30.0, 2).map(|p| (p.width(), p.height())).last();
        assert_eq!(sizes(Size::new(2_560, 1_440)), Some((2_560, 1_440)));
        assert_eq!(sizes(Size::new(48, 32)), Some((48, 32)));
    }
}
