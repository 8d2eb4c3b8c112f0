//! Anchors for a coded low layer, made as the server makes them, with the delay they would have.
//!
//! Source: seed 000 §5. Selection is the enhancer's own scheduler under a fixed cost per picture,
//! so that it repeats; pictures are super-resolved and coded as `serve` does it, cut into messages
//! and reassembled as a browser does it. Every message byte counts.

use std::time::Duration;

use anyhow::{Context, Result};
use windlass_enhancer::EnhancerConfig;
use windlass_enhancer::offline::AnchorPlanner;
use windlass_enhancer::schedule::{Candidate, SchedulerConfig};
use windlass_hybrid::anchor::codec::{AnchorCodec, ResidualJpeg};
use windlass_hybrid::anchor::message::{MAX_CHUNK, encode_chunks};
use windlass_hybrid::anchor::{AnchorHeader, AnchorOrigin, ReassembledAnchor, Reassembler};
use windlass_hybrid::detail::Detail;
use windlass_media::StreamId;

use super::cpu_clock::CpuClock;
use super::low_layer::Coded;
use super::sr::Upscaler;
use super::vpx;

const STREAM: u32 = 1;

/// An anchor as the browser has it after reassembly.
#[derive(Debug, Clone)]
pub struct TimedAnchor {
    /// The frame it belongs to.
    pub frame: usize,
    /// When it can be used, from the first frame's arrival.
    pub ready_at: Duration,
    /// What the decoder takes.
    pub anchor: ReassembledAnchor,
}

/// All anchors of a clip.
#[derive(Debug)]
pub struct AnchorTrack {
    /// In the order of their frames, which is that of becoming ready.
    pub anchors: Vec<TimedAnchor>,
    /// Bit rate of their messages.
    pub kbps: f64,
    /// Mean processor time of one super-resolution in milliseconds.
    pub infer_ms: Option<f64>,
    /// Mean processor time to code one in milliseconds.
    pub encode_ms: Option<f64>,
}

/// How anchors are made.
#[derive(Debug, Clone, Copy)]
pub struct AnchorSettings {
    /// Share of frames.
    pub fraction: f64,
    /// Quality of the code, 1 to 100.
    pub quality: u8,
    /// From a frame's arrival to its anchor at the browser.
    pub delay: Duration,
}

/// When frame `n` arrives and is shown.
pub fn shown_at(n: usize, fps: f64) -> Duration {
    Duration::from_secs_f64(n as f64 / fps)
}

/// The RTP timestamp (90 kHz) of frame `n`.
pub fn rtp_timestamp(n: usize, fps: f64) -> u32 {
    (n as f64 * 90_000.0 / fps).round() as u32
}

/// Chooses frames, super-resolves and codes them.
pub fn make(
    low: &Coded,
    fps: f64,
    settings: &AnchorSettings,
    upscaler: &mut Upscaler,
) -> Result<AnchorTrack> {
    let chosen = choose(low, fps, settings.fraction);
    let mut reassembler = Reassembler::new();
    let mut clock = CpuClock::default();
    let mut anchors = Vec::with_capacity(chosen.len());
    let mut bytes = 0;
    upscaler.restart_clock();
    for (frame, picture) in low.pictures.frames()?.enumerate() {
        let picture = picture?;
        if chosen.binary_search(&frame).is_err() {
            continue;
        }
        let detail = upscaler.detail(&picture.y)?;
        let payload = clock.measure(|| ResidualJpeg.encode(&detail, settings.quality))?;
        let messages = encode_chunks(
            &header(&detail, rtp_timestamp(frame, fps), settings),
            &payload,
            MAX_CHUNK,
        )?;
        bytes += messages.iter().map(Vec::len).sum::<usize>();
        let mut whole = None;
        for message in &messages {
            whole = reassembler.push(message)?.or(whole);
        }
        let anchor = whole
            .with_context(|| format!("the anchor of frame {frame} did not come together again"))?;
        anchors.push(TimedAnchor {
            frame,
            ready_at: shown_at(frame, fps) + settings.delay,
            anchor,
        });
    }
    Ok(AnchorTrack {
        anchors,
        kbps: vpx::kbps(bytes, low.frames.len(), fps),
        infer_ms: upscaler.infer_ms(),
        encode_ms: clock.mean_run_ms(),
    })
}

/// The frames that become anchors, ascending.
fn choose(low: &Coded, fps: f64, fraction: f64) -> Vec<usize> {
    let size = low.pictures.size();
    let (width, height) = (size.width as u32, size.height as u32);
    // One thread, and the cost that is expected before anything was measured: no clock decides.
    let limits =
        EnhancerConfig { anchor_fraction: fraction, threads: 1, ..EnhancerConfig::default() };
    let cost_per_pixel = SchedulerConfig::default().cost_per_pixel;
    let cost = cost_per_pixel * (width * height);
    let candidates: Vec<Candidate> = low
        .frames
        .iter()
        .enumerate()
        .map(|(n, frame)| Candidate {
            id: n as u64,
            stream: StreamId(STREAM),
            tier: frame.tier,
            bytes: frame.data.len() as u32,
            width,
            height,
            arrival: shown_at(n, fps),
        })
        .collect();
    let (plan, _) =
        AnchorPlanner::new(limits.scheduler(cost_per_pixel)).plan(&candidates, |_| cost);
    let mut chosen: Vec<usize> = plan.into_iter().map(|anchor| anchor.index).collect();
    chosen.sort_unstable();
    chosen
}

fn header(detail: &Detail, rtp_timestamp: u32, settings: &AnchorSettings) -> AnchorHeader {
    AnchorHeader {
        codec: ResidualJpeg.id(),
        source: AnchorOrigin::Enhanced,
        tiled: false,
        part: 0,
        stream: STREAM,
        epoch: 0,
        chunk_index: 0,
        chunk_count: 0,
        age_ms: settings.delay.as_millis().min(u128::from(u16::MAX)) as u16,
        rtp_timestamp,
        width: detail.width() as u16,
        height: detail.height() as u16,
    }
}
