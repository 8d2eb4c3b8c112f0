//! A subscriber, and the server's tap beside it: what is shown at each camera frame, and what is measured.
//!
//! The full layer is shown as it is; smaller ones are rebuilt by the codec's own decoder, with the detail stream's
//! frames as anchors (codec `vp9-pictures`). A frame that was not sent shows the picture before it. In: what
//! the publisher sent. Out: pictures in full size, and the meter's sums.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use windlass_enhancer::control::{Meter, divisor};
use windlass_hybrid::anchor::AnchorOrigin;
use windlass_hybrid::anchor::message::{AnchorHeader, ReassembledAnchor};
use windlass_hybrid::anchor::pictures::VP9_PICTURES;
use windlass_hybrid::anchor::stream::{Gain, Prediction, StreamHeader};
use windlass_hybrid::picture::Picture;
use windlass_hybrid::{AnchorOutcome, HybridConfig, HybridDecoder, vp9};
use windlass_media::Layer;

use super::publisher::Sent;
use crate::eval::anchors::{STREAM, rtp_timestamp, shown_at};
use crate::eval::cpu_clock::CpuClock;

/// Shows one track.
pub struct Viewer {
    fps: f64,
    delay: Duration,
    low: Option<(Layer, Low)>,
    detail: Option<vp9::Decoder>,
    /// Number of the last detail frame.
    sequence: u16,
    waiting: VecDeque<(Duration, ReassembledAnchor)>,
    shown: Picture,
    /// What the server measures.
    pub meter: Meter,
    /// What measuring costs.
    pub metering: CpuClock,
}

enum Low {
    Plain(Box<vp9::Decoder>),
    Rebuilt(Box<(vp9::Decoder, HybridDecoder)>),
}

impl Viewer {
    /// One that has seen nothing, for a camera of so many frames a second and anchors `delay` late.
    pub fn new(fps: f64, delay: Duration) -> Viewer {
        Viewer {
            fps,
            delay,
            low: None,
            detail: None,
            sequence: 0,
            waiting: VecDeque::new(),
            shown: Picture::default(),
            meter: Meter::new(),
            metering: CpuClock::default(),
        }
    }

    /// What is shown at camera frame `n`, of which `sent` came on `layer`.
    pub fn frame(&mut self, n: usize, layer: Layer, sent: &Sent) -> Result<&Picture> {
        if self.low.as_ref().is_none_or(|(of, _)| *of != layer) {
            self.low = Some((layer, Low::new(layer)));
            self.waiting.clear();
        }
        let Some((_, low)) = &mut self.low else { return Ok(&self.shown) };
        let now = shown_at(n, self.fps);
        if let Low::Rebuilt(rebuilt) = low {
            while self.waiting.front().is_some_and(|(at, _)| *at <= now) {
                let Some((_, anchor)) = self.waiting.pop_front() else { break };
                let outcome = rebuilt.1.push_anchor(&anchor);
                let wrong = matches!(outcome, AnchorOutcome::Malformed | AnchorOutcome::WrongSize);
                ensure!(!wrong, "the decoder refuses an anchor at frame {n}: {outcome:?}");
            }
        }
        let Some(data) = &sent.low else { return Ok(&self.shown) };
        let stamp = rtp_timestamp(n, self.fps);
        let decoder = match low {
            Low::Plain(decoder) => decoder,
            Low::Rebuilt(rebuilt) => &mut rebuilt.0,
        };
        let frames = decoder.decode(data).with_context(|| format!("decoding frame {n}"))?;
        let frame = frames.iter().rfind(|frame| frame.info.shown);
        let frame = frame.with_context(|| format!("frame {n} shows no picture"))?.clone();
        self.metering.measure(|| self.meter.low(layer, &frame.info, &frame.picture));
        match low {
            Low::Plain(_) => frame.picture.copy_to(&mut self.shown),
            Low::Rebuilt(rebuilt) => {
                let (_, hybrid) = rebuilt.as_mut();
                hybrid.push_frame(stamp, data).with_context(|| format!("rebuilding frame {n}"))?;
                let high = hybrid.hr().with_context(|| format!("frame {n} shows no picture"))?;
                self.shown.clone_from(high);
                if let Some(data) = &sent.detail {
                    let decoder = self.detail.get_or_insert_with(vp9::Decoder::new);
                    let frames = decoder.decode(data).context("decoding a frame of detail")?;
                    let full = frames.last().context("a frame of detail shows no picture")?;
                    self.metering.measure(|| self.meter.detail(&full.info, &full.picture));
                    let key = full.info.kind == vp9::FrameKind::Key;
                    let size = (full.picture.width(), full.picture.height());
                    self.sequence = self.sequence.wrapping_add(1);
                    let anchor = captured(data, key, self.sequence, size, stamp);
                    self.waiting.push_back((now + self.delay, anchor));
                }
            }
        }
        if self.delay.is_zero() {
            self.catch_up()?;
        }
        Ok(&self.shown)
    }

    /// Anchors that are there with their frame.
    fn catch_up(&mut self) -> Result<()> {
        let Some((_, Low::Rebuilt(rebuilt))) = &mut self.low else { return Ok(()) };
        while let Some((_, anchor)) = self.waiting.pop_front() {
            rebuilt.1.push_anchor(&anchor);
        }
        if rebuilt.1.refresh() {
            self.shown.clone_from(rebuilt.1.hr().context("no picture is shown")?);
        }
        Ok(())
    }
}

impl Low {
    fn new(layer: Layer) -> Low {
        let decoder = vp9::Decoder::new();
        match divisor(layer) {
            1 => Low::Plain(Box::new(decoder)),
            scale => {
                let hybrid = HybridDecoder::new(HybridConfig { scale, ..HybridConfig::default() });
                Low::Rebuilt(Box::new((decoder, hybrid)))
            }
        }
    }
}

/// The message of a detail frame, as the server passes it on: number `sequence` of its stream.
fn captured(
    data: &[u8],
    key: bool,
    sequence: u16,
    (width, height): (usize, usize),
    rtp_timestamp: u32,
) -> ReassembledAnchor {
    let (prediction, refers_to) = if key {
        (Prediction::Key, sequence)
    } else {
        (Prediction::FromLast, sequence.wrapping_sub(1))
    };
    let header = StreamHeader { prediction, gain: Gain::ONE, sequence, refers_to, run: 1 };
    let payload = [&header.to_bytes()[..], data].concat();
    let header = AnchorHeader {
        codec: VP9_PICTURES,
        source: AnchorOrigin::Captured,
        tiled: false,
        beyond_prior: false,
        part: 0,
        stream: STREAM,
        epoch: 0,
        chunk_index: 0,
        chunk_count: 1,
        age_ms: 0,
        rtp_timestamp,
        width: width as u16,
        height: height as u16,
    };
    ReassembledAnchor { header, payload }
}
