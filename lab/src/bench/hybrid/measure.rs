//! Times of the hybrid decoder: of every frame of a stream, and of anchors that come late.

use std::hint::black_box;
use std::num::NonZeroU32;

use anyhow::{Context, Result, ensure};
use windlass_hybrid::anchor::codec::{Htj2k, detail_of};
use windlass_hybrid::anchor::payload;
use windlass_hybrid::{AnchorOutcome, HybridConfig, HybridDecoder};
use windlass_types::message::HTJ2K;
use windlass_types::message::{AnchorHeader, ReassembledAnchor};
use windlass_types::{AnchorSource, Size};
use windlass_vp9::{Decoder, FrameBuffer};

use crate::bench::vp9::best::Best;
use crate::bench::vp9::native::now_ms;
use crate::bench::vp9::streams::Stream;
use crate::eval::scale::Scale;

/// Number of frames from one anchor to the next.
const INTERVAL: usize = 30;
/// How late the anchors of a steady stream come, in frames.
const LATE: usize = 4;
/// Quality of the anchors.
const QUALITY: u8 = 75;

/// A low layer, its peer, and anchors of the low layer.
pub(super) struct Bench<'a> {
    low: &'a Stream,
    high: &'a Stream,
    scale: usize,
    /// The anchors with the index of the frame at which each comes, in order.
    anchors: Vec<(usize, ReassembledAnchor)>,
}

/// Times of a stream, frame by frame.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// Times of our decoder, anchors included: they are seen from the next frame on.
    pub hybrid: Best,
    /// Times of our decoder where it makes every sample anew.
    pub anew: Best,
    /// Times of the low layer's decoding alone.
    pub low: Best,
    /// Times of libvpx, of pictures as large as HR.
    pub libvpx: Best,
}

/// Times of anchors that come late.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// Time of a late anchor, until the new picture is on display.
    pub anchor: Best,
    /// Time to decode the anchor's image, which is part of `anchor`.
    pub image: Best,
}

impl Bench<'_> {
    /// Makes an anchor each second out of the peer's pictures.
    pub(super) fn new<'a>(low: &'a Stream, high: &'a Stream, scale: usize) -> Result<Bench<'a>> {
        ensure!(low.chunks.len() == high.chunks.len(), "the streams differ in length");
        let by: Scale = scale.to_string().parse()?;
        let (mut lows, mut highs) = (Decoder::new(), Decoder::new());
        let mut anchors = Vec::new();
        for (n, (low, high)) in low.chunks.iter().zip(&high.chunks).enumerate() {
            let shown = |decoder: &mut Decoder, chunk: &[u8]| -> Result<_> {
                let frames = decoder.decode(chunk)?;
                let frame = frames.iter().rfind(|f| f.info.shown).context("nothing is shown")?;
                Ok(frame.picture.clone())
            };
            let (low, high) = (shown(&mut lows, low)?, shown(&mut highs, high)?);
            if n % INTERVAL == 0 {
                anchors.push((n, anchor(n, &low, &high, by)?));
            }
        }
        Ok(Bench { low, high, scale, anchors })
    }

    fn config(&self) -> HybridConfig {
        HybridConfig { scale: self.scale, ..HybridConfig::default() }
    }

    /// Times whole streams; another decoder begins each pass.
    pub(super) fn steady(&self, passes: NonZeroU32) -> Result<Times> {
        let mut times = Times::default();
        for pass in 0..passes.get() {
            for turn in 0..4 {
                match (pass + turn) % 4 {
                    0 => self.hybrid(HybridDecoder::new(self.config()), &mut times.hybrid)?,
                    1 => {
                        let decoder = HybridDecoder::new(self.config()).making_all_anew();
                        self.hybrid(decoder, &mut times.anew)?;
                    }
                    2 => {
                        let mut decoder = Decoder::new();
                        for (n, chunk) in self.low.chunks.iter().enumerate() {
                            let start = now_ms();
                            black_box(decoder.decode(chunk)?);
                            times.low.record(n, now_ms() - start);
                        }
                    }
                    _ => {
                        let mut decoder = windlass_vpx::Decoder::new()?;
                        for (n, chunk) in self.high.chunks.iter().enumerate() {
                            let start = now_ms();
                            decoder.decode(chunk, |_| ())?;
                            times.libvpx.record(n, now_ms() - start);
                        }
                    }
                }
            }
        }
        Ok(times)
    }

    fn hybrid(&self, mut decoder: HybridDecoder, times: &mut Best) -> Result<()> {
        for (n, chunk) in self.low.chunks.iter().enumerate() {
            let due = self.anchors.iter().find(|(frame, _)| frame + LATE == n);
            let start = now_ms();
            black_box(decoder.push_frame(timestamp(n), chunk)?);
            let outcome = due.map(|(_, anchor)| decoder.push_anchor(anchor));
            times.record(n, now_ms() - start);
            ensure!(
                matches!(outcome, None | Some(AnchorOutcome::Applied { .. })),
                "an anchor was {outcome:?}"
            );
        }
        Ok(())
    }

    /// Times anchors that are `k` frames late.
    pub(super) fn late(&self, k: usize, passes: NonZeroU32) -> Result<Late> {
        let mut late = Late::default();
        for _ in 0..passes.get() {
            let mut decoder = HybridDecoder::new(self.config());
            let mut taken = 0;
            for (n, chunk) in self.low.chunks.iter().enumerate() {
                decoder.push_frame(timestamp(n), chunk)?;
                let due = self.anchors.iter().find(|(frame, _)| frame + k == n);
                let Some((_, anchor)) = due else { continue };
                let start = now_ms();
                black_box(payload::decode(anchor, self.scale)?);
                let decoded = now_ms();
                let outcome = decoder.push_anchor(anchor);
                decoder.refresh();
                late.anchor.record(taken, now_ms() - decoded);
                late.image.record(taken, decoded - start);
                let frames_late = k as u32;
                ensure!(outcome == AnchorOutcome::Applied { frames_late }, "{outcome:?}");
                taken += 1;
            }
        }
        Ok(late)
    }
}

fn timestamp(n: usize) -> u32 {
    3000 * n as u32
}

/// The anchor of frame `n`: the detail of the peer's picture beyond the low one.
fn anchor(
    n: usize,
    low: &FrameBuffer,
    high: &FrameBuffer,
    scale: Scale,
) -> Result<ReassembledAnchor> {
    let (high, low) = (&high.planes()[0], &low.planes()[0]);
    let detail = detail_of(high, low, scale.factor()).context("the peer has another size")?;
    let size = Size::saturating(detail.width(), detail.height());
    let header = AnchorHeader::new(HTJ2K, AnchorSource::Enhanced, timestamp(n), size);
    Ok(ReassembledAnchor { header, payload: Htj2k::encode(&detail, QUALITY)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::vp9::streams::tests::drawn;

    #[test]
    fn streams_that_do_not_fit_each_other_are_refused() {
        let (low, high) = (drawn(3), drawn(3));
        assert!(Bench::new(&low, &high, 2).is_err());
        assert!(Bench::new(&low, &drawn(2), 2).is_err());
    }
}
