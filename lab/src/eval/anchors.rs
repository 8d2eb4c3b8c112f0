//! Anchors for an encoded low layer, made as the server makes them, with the delay they would have.
//!
//! Source: NeuroScaler §6. The chosen frames ([`select`](super::select)) get detail, by
//! super-resolution or, as the publisher would give it, from the original; it is encoded
//! ([`coding`]), cut into messages and put together again as a browser does it.
//! Every message byte counts, lost ones too.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use windlass_enhancer::tiles::{TileConfig, TileLedger};
use windlass_enhancer::twin::Twin;
use windlass_hybrid::anchor::codec::detail_of;
use windlass_hybrid::anchor::colour;
use windlass_hybrid::anchor::payload::{self, Packed};
use windlass_hybrid::anchor::prior::Prior;
use windlass_hybrid::detail::Detail;
use windlass_types::message::HTJ2K;
use windlass_types::message::{AnchorHeader, ReassembledAnchor, Reassembler};
use windlass_types::message::{MAX_CHUNK, encode_chunks};
use windlass_types::tiles::TileMap;
use windlass_types::{AnchorSource, Size};
use windlass_vp9::Decoder;
use windlass_vp9::simd::Isa;

use super::clip::Clip;
use super::coding::{self, Target};
use super::cpu_clock::CpuClock;
use super::low_layer::Coded;
use super::scale::Scale;
use super::sr::Upscaler;
use crate::interrupt;

/// The stream id of all messages.
pub(super) const STREAM: u32 = 1;

/// An anchor as the browser has it after reassembly, with its time.
#[derive(Debug, Clone)]
pub(crate) struct TimedAnchor {
    /// The number of the anchor's frame.
    pub frame: usize,
    /// When the anchor can be used, counted from the first frame's arrival.
    pub ready_at: Duration,
    /// The anchor as the decoder takes it.
    pub anchor: ReassembledAnchor,
}

/// All anchors of a clip under one setting.
#[derive(Debug, Default)]
pub(crate) struct AnchorTrack {
    /// The anchors in the order of their frames, in which they also become ready.
    pub anchors: Vec<TimedAnchor>,
    /// Number of anchors that were made and lost in transit.
    pub lost: usize,
    /// Length of all messages, in bytes.
    pub bytes: usize,
    /// Bitrate of all messages, in kbit/s.
    pub kbps: f64,
    /// Low samples that went through the network, as a share of all of the clip.
    pub sr_share: f64,
    /// Mean CPU time of one super-resolution, in milliseconds.
    pub infer_ms: Option<f64>,
    /// Mean CPU time to encode one anchor, in milliseconds.
    pub encode_ms: Option<f64>,
}

/// The settings by which anchors are chosen, made, encoded and lost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnchorSettings {
    /// Share of frames that become anchors, 0 to 1.
    pub fraction: f64,
    /// Quality or size of the encoded anchors.
    pub target: Target,
    /// The settings by which tiles are chosen; `None`: whole frames are sent.
    pub tiles: Option<TileConfig>,
    /// Whether only the detail that the decoder's built-in filters do not predict is encoded; the papers encode all.
    pub beyond_prior: bool,
    /// Whether the detail comes from the original or from super-resolution.
    pub source: AnchorSource,
    /// Time from a frame's arrival to its anchor at the browser.
    pub delay: Duration,
    /// Share of messages that are lost, 0 to 1.
    pub loss: f64,
    /// Seed of the losses.
    pub seed: u64,
}

/// When frame `n` arrives and is shown, counted from the first frame.
pub(super) fn shown_at(n: usize, fps: f64) -> Duration {
    Duration::from_secs_f64(n as f64 / fps)
}

/// The RTP timestamp (90 kHz) of frame `n`.
pub(super) fn rtp_timestamp(n: usize, fps: f64) -> u32 {
    (n as f64 * 90_000.0 / fps).round() as u32
}

impl AnchorTrack {
    /// The anchors of both tracks, in the order in which they become ready.
    #[must_use]
    pub(crate) fn with(self, other: AnchorTrack) -> AnchorTrack {
        let mut anchors = [self.anchors, other.anchors].concat();
        anchors.sort_by_key(|anchor| anchor.ready_at);
        AnchorTrack {
            anchors,
            lost: self.lost + other.lost,
            bytes: self.bytes + other.bytes,
            kbps: self.kbps + other.kbps,
            sr_share: self.sr_share + other.sr_share,
            infer_ms: self.infer_ms.or(other.infer_ms),
            encode_ms: self.encode_ms.or(other.encode_ms),
        }
    }
}

/// Makes anchors of the frames in `chosen` (ascending).
pub(super) fn make(
    clip: &Clip,
    low: &Coded,
    scale: Scale,
    settings: &AnchorSettings,
    chosen: &[usize],
    upscaler: &mut Upscaler,
) -> Result<AnchorTrack> {
    make_beside(clip, low, scale, settings, chosen, &[], upscaler)
}

/// Makes anchors of the frames in `chosen` (ascending) of a stream with `captured` anchors.
///
/// Tiles are left out while their captured anchors are fresh.
pub(super) fn make_beside(
    clip: &Clip,
    low: &Coded,
    scale: Scale,
    settings: &AnchorSettings,
    chosen: &[usize],
    captured: &[TimedAnchor],
    upscaler: &mut Upscaler,
) -> Result<AnchorTrack> {
    let fps = clip.fps;
    let mut reassembler = Reassembler::new();
    let mut clock = CpuClock::default();
    let mut network = Loss { share: settings.loss, state: settings.seed };
    let mut anchors = Vec::with_capacity(chosen.len());
    let (mut bytes, mut lost, mut work) = (0, 0, 0);
    let mut ledger = TileLedger::default();
    let mut known = captured.iter().peekable();
    let twin = Twin::new(scale.factor());
    let mut decoder = Decoder::new();
    let mut prior = Prior::new(Isa::detect(), scale.factor());
    upscaler.restart_clock();
    for (frame, (original, picture)) in
        clip.frames.frames()?.zip(low.pictures.frames()?).enumerate()
    {
        interrupt::check()?;
        let (original, picture) = (original?, picture?);
        let at = rtp_timestamp(frame, fps);
        if settings.source == AnchorSource::Enhanced {
            twin.follow(at, decoder.decode(&low.frames[frame].data)?);
        }
        if chosen.binary_search(&frame).is_err() {
            continue;
        }
        let energy = &low.frames[frame].energy;
        while let Some(own) = known.next_if(|own| own.ready_at <= shown_at(frame, fps)) {
            let (tiles, _) = payload::unpack(&own.anchor, scale.factor())?;
            ledger.captured(&tiles, &low.frames[own.frame].energy, shown_at(own.frame, fps));
            twin.give(&own.anchor);
        }
        let tiles = match &settings.tiles {
            Some(config) => ledger.choose(energy, shown_at(frame, fps), config),
            None => Some(TileMap::full(Size::saturating(picture.width(), picture.height()))),
        };
        let Some(mut tiles) = tiles else { continue };
        let mut detail = match settings.source {
            AnchorSource::Enhanced => {
                let start = twin.start(at);
                let start = start.with_context(|| format!("the twin has no frame {frame}"))?;
                let (detail, samples) = upscaler.tiles(&picture.y, &start, &tiles)?;
                work += samples;
                if settings.tiles.is_some() && !anchors.is_empty() {
                    let known = detail_of(&start, &picture.y, scale.factor())?;
                    tiles = twin.worthwhile(&detail, &known, &tiles);
                }
                detail
            }
            AnchorSource::Captured => detail_of(&original.y, &picture.y, scale.factor())?,
        };
        if tiles.count() == 0 {
            continue;
        }
        if settings.beyond_prior {
            prior.take_out((&picture.y).into(), &mut detail);
        }
        let header = header(&detail, at, settings);
        let wanted = twin.measures().then(|| detail.clone());
        let colour = (settings.source == AnchorSource::Captured).then(|| {
            let [_, u, v] = original.samples();
            colour::image([u, v], picture.samples(), &tiles, scale.factor())
        });
        let code =
            || coding::code(settings.target, scale.factor(), detail, colour.as_ref(), &tiles);
        let Packed { payload: code, tiled } = clock.measure(code)?;
        let header = AnchorHeader { tiled, ..header };
        let sent = ReassembledAnchor { header, payload: code.clone() };
        twin.sent(&sent, wanted.as_ref());
        let messages = encode_chunks(&header, &code, MAX_CHUNK)?;
        bytes += messages.iter().map(Vec::len).sum::<usize>();
        let came = network.carry(&messages, &mut reassembler);
        let Some(anchor) = came.with_context(|| format!("the anchor of frame {frame}"))? else {
            lost += 1;
            continue;
        };
        let ready_at = shown_at(frame, fps) + settings.delay;
        anchors.push(TimedAnchor { frame, ready_at, anchor });
    }
    Ok(AnchorTrack {
        anchors,
        lost,
        bytes,
        sr_share: work as f64 / (low.pictures.size().area() * low.frames.len().max(1)) as f64,
        kbps: windlass_vpx::kbps(bytes, low.frames.len(), fps),
        infer_ms: upscaler.infer_ms(),
        encode_ms: clock.mean_run_ms(),
    })
}

fn header(detail: &Detail, rtp_timestamp: u32, settings: &AnchorSettings) -> AnchorHeader {
    let size = Size::saturating(detail.width(), detail.height());
    AnchorHeader {
        beyond_prior: settings.beyond_prior,
        stream: STREAM,
        age_ms: settings.delay.as_millis().min(u128::from(u16::MAX)) as u16,
        ..AnchorHeader::new(HTJ2K, settings.source, rtp_timestamp, size)
    }
}

/// A network that loses messages one by one (SplitMix64, so that a seed repeats).
struct Loss {
    share: f64,
    state: u64,
}

impl Loss {
    /// Carries the messages of an anchor to a viewer; `None` if the network lost one of them.
    fn carry(
        &mut self,
        messages: &[Vec<u8>],
        viewer: &mut Reassembler,
    ) -> Result<Option<ReassembledAnchor>> {
        let (mut anchor, mut complete) = (None, true);
        for message in messages {
            if self.loses_one() {
                complete = false;
            } else {
                anchor = viewer.push(message)?.or(anchor);
            }
        }
        ensure!(!complete || anchor.is_some(), "it did not come together again");
        Ok(anchor.filter(|_| complete))
    }

    fn loses_one(&mut self) -> bool {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 <= self.share && self.share > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::synthetic;

    fn settings(source: AnchorSource, loss: f64) -> AnchorSettings {
        AnchorSettings { source, loss, beyond_prior: false, ..synthetic::anchor_settings(0.2, 0) }
    }

    #[test]
    fn captured_anchors_carry_what_the_low_layer_lacks_of_the_original() {
        let clip = synthetic::panning(3);
        let low = synthetic::low_layer(&clip, 300);
        let mut upscaler = Upscaler::new().unwrap();
        let how = settings(AnchorSource::Captured, 0.0);
        let track = make(&clip, &low, Scale::TWO, &how, &[1], &mut upscaler).unwrap();
        let detail = super::super::coding::decode(&track.anchors[0].anchor, 2).unwrap();
        let original = clip.frames.frames().unwrap().nth(1).unwrap().unwrap();
        let picture = low.pictures.frames().unwrap().nth(1).unwrap().unwrap();
        let wanted = detail_of(&original.y, &picture.y, 2).unwrap();
        let error = |d: &Detail| -> f64 {
            let pairs = d.samples().iter().zip(wanted.samples());
            pairs.map(|(&a, &b)| f64::from(i32::from(a) - i32::from(b)).powi(2)).sum()
        };
        assert!(error(&detail) < 0.3 * error(&Detail::zero(detail.width(), detail.height())));
        assert_eq!((track.infer_ms, track.lost), (None, 0));
    }

    #[test]
    fn lost_messages_cost_bytes_and_bring_no_anchor_and_a_seed_repeats() {
        let clip = synthetic::panning(12);
        let low = synthetic::low_layer(&clip, 300);
        let chosen: Vec<usize> = (0..12).collect();
        let mut upscaler = Upscaler::new().unwrap();
        let mut made = |loss| {
            let how = settings(AnchorSource::Enhanced, loss);
            let track = make(&clip, &low, Scale::TWO, &how, &chosen, &mut upscaler).unwrap();
            (track.bytes, track.lost, track.anchors.iter().map(|a| a.frame).collect::<Vec<_>>())
        };
        let (all, half, none) = (made(0.0), made(0.5), made(1.0));
        assert_eq!((all.1, none.1), (0, 12));
        assert!(half.1 > 0 && half.1 < 12 && half.1 + half.2.len() == 12);
        assert!(all.0 == half.0 && half.0 == none.0);
        assert_eq!(half, made(0.5));
    }
}
