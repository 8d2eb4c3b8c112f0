//! The low layer of a clip: scaled down, encoded as Chromium does, and decoded as the server's tap does.

use anyhow::{Context, Result};
use windlass_enhancer::pipeline::tier_of;
use windlass_enhancer::tiles::TileEnergy;
use windlass_scheduler::Tier;
use windlass_vp9::{Block, Decoder, FrameInfo, MotionVector, Picture};

use super::clip::Clip;
use super::cpu_clock::CpuClock;
use super::frames::{FrameStore, FrameWriter, Size};
use crate::interrupt;
use windlass_vpx::{Encoder, EncoderConfig};

/// One encoded frame.
#[derive(Debug, Clone)]
pub(crate) struct CodedFrame {
    /// The VP9 frame.
    pub data: Vec<u8>,
    /// The frame's tier, by which anchors are selected.
    pub tier: Tier,
    /// The residual of each tile, summed up to this frame.
    pub energy: TileEnergy,
    /// Quantiser index (`base_q_idx`), 0 to 255.
    pub quantiser: u8,
    /// Energy of the residual that the frame encodes, in square grey levels for each sample.
    pub residual: f64,
    /// Share of the frame's area that is intra.
    pub intra: f64,
    /// Mean length of the frame's motion vectors, in samples.
    pub motion: f64,
}

/// An encoded video with its decoded pictures.
#[derive(Debug)]
pub(crate) struct Coded {
    /// The encoded frames: one for each picture.
    pub frames: Vec<CodedFrame>,
    /// The decoded pictures.
    pub pictures: FrameStore,
    /// Bitrate of the encoded frames, in kbit/s.
    pub kbps: f64,
    /// Mean CPU time to encode a frame, in milliseconds.
    pub encode_ms: f64,
    /// Mean CPU time to decode a frame, in milliseconds.
    pub decode_ms: f64,
}

/// Encodes the clip's pictures, each first changed by `prepare`, and decodes them again.
pub(crate) fn encode(
    clip: &Clip,
    kbps: u32,
    screen: bool,
    prepare: impl Fn(Picture) -> Picture,
) -> Result<Coded> {
    let mut encoder = None;
    let mut decoder = Decoder::new();
    let mut writer: Option<FrameWriter> = None;
    let mut energy = TileEnergy::default();
    let mut frames = Vec::with_capacity(clip.frames.len());
    let (mut encoding, mut decoding) = (CpuClock::default(), CpuClock::default());
    for picture in clip.frames.frames()? {
        interrupt::check()?;
        let picture = prepare(picture?);
        let size = Size::of(&picture);
        let encoder = match &mut encoder {
            Some(encoder) => encoder,
            none => none.insert(Encoder::new(EncoderConfig {
                width: size.width,
                height: size.height,
                fps: clip.fps,
                kbps,
                screen,
                cpu_used: None,
            })?),
        };
        let data = encoding.measure(|| encoder.encode(&picture))?;
        let n = frames.len();
        let decoded = decoding
            .measure(|| decoder.decode(&data))
            .with_context(|| format!("decoding frame {n}"))?;
        for frame in decoded {
            energy.add(&frame.info);
        }
        let shown = decoded.iter().rfind(|frame| frame.info.shown);
        let shown = shown.with_context(|| format!("frame {n} shows no picture"))?;
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(FrameWriter::new(size)?),
        };
        writer.push(&shown.picture.to_picture())?;
        let info = &shown.info;
        frames.push(CodedFrame {
            tier: tier_of(info),
            energy: energy.clone(),
            quantiser: info.quantiser,
            residual: by_area(info, |block| f64::from(block.residual_energy) / area(block)),
            intra: by_area(info, |block| f64::from(u8::from(block.is_intra()))),
            motion: by_area(info, length),
            data,
        });
    }
    let bytes = frames.iter().map(|frame| frame.data.len()).sum();
    Ok(Coded {
        kbps: windlass_vpx::kbps(bytes, frames.len(), clip.fps),
        encode_ms: encoding.mean_run_ms().unwrap_or_default(),
        decode_ms: decoding.mean_run_ms().unwrap_or_default(),
        frames,
        pictures: writer.context("the clip has no frames")?.finish()?,
    })
}

fn area(block: &Block) -> f64 {
    f64::from(block.width) * f64::from(block.height)
}

/// Length of a block's last vector, in samples.
fn length(block: &Block) -> f64 {
    let vector = block.predictions(3)[0];
    vector.map_or(0.0, |(_, MotionVector { x, y })| f64::from(x).hypot(f64::from(y)) / 8.0)
}

/// The mean over the picture's area of the value that `of` gives for each block.
fn by_area(info: &FrameInfo, of: impl Fn(&Block) -> f64) -> f64 {
    let sum: f64 = info.blocks.iter().map(|block| of(block) * area(block)).sum();
    sum / (f64::from(info.width) * f64::from(info.height)).max(1.0)
}

/// Encodes the full-size pictures so that they take `kbps` kbit/s in all, as nearly as rate control goes.
pub(crate) fn encode_at(clip: &Clip, kbps: f64, screen: bool) -> Result<Coded> {
    let mut target = kbps;
    let mut best = encode(clip, target.round().max(1.0) as u32, screen, |picture| picture)?;
    // A short clip can leave the target by the size of its key frame: ask for more or less, twice.
    for _ in 0..2 {
        if (best.kbps / kbps - 1.0).abs() < 0.02 {
            break;
        }
        target = (target * kbps / best.kbps).clamp(kbps / 3.0, kbps * 3.0);
        let next = encode(clip, target.round().max(1.0) as u32, screen, |picture| picture)?;
        if (next.kbps - kbps).abs() < (best.kbps - kbps).abs() {
            best = next;
        }
    }
    Ok(best)
}
