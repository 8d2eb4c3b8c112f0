//! The reconstruction of the papers, as a baseline: `nemo-style`.
//!
//! Source: NeuroScaler §2 and §6.1, from the text alone. An HR picture is the previous HR picture, moved by the
//! block's own VP9 vectors times the scale and by its own filter. The residual of the low layer is added, bilinearly
//! enlarged. Intra blocks come from the enlarged low picture, and an anchor replaces the HR picture of its frame.
//! There is no base, no back-projection and no trust: the errors of vectors stay.
//!
//! Luma only; chroma is that of the low layer, bicubic, as in every other method. To be generous,
//! frames without history are Lanczos (the papers: bilinear), and anchors are there with their
//! frames, not late. HR is not loop-filtered.

mod motion;
mod residual;

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use windlass_hybrid::detail::Detail;
use windlass_hybrid::resample::to_plane;
use windlass_vp9::{Block, DecodedFrame, Decoder, FrameInfo, FrameKind, Picture, Plane};

use super::anchors::TimedAnchor;
use super::coding;
use super::cpu_clock::CpuClock;
use super::low_layer::Coded;
use super::rebuild::Played;
use super::scale::Scale;
use motion::Area;
use residual::Residuals;

/// Plays the low layer with its anchors, and passes every HR picture on with its frame's number.
pub(super) fn play(
    low: &Coded,
    scale: Scale,
    anchors: &[TimedAnchor],
    mut show: impl FnMut(usize, &Picture) -> Result<()>,
) -> Result<Played> {
    let mut decoder = PaperDecoder::new(scale);
    let mut clock = CpuClock::default();
    let mut pending = anchors.iter().peekable();
    let mut played = Played::default();
    let mut last = None;
    for (n, frame) in low.frames.iter().enumerate() {
        let anchor = pending.next_if(|anchor| anchor.frame == n);
        let picture = clock.measure(|| {
            let detail =
                anchor.map(|anchor| coding::decode(&anchor.anchor, scale.factor())).transpose()?;
            decoder.push(&frame.data, detail.as_ref())
        });
        let picture = picture.with_context(|| format!("rebuilding frame {n} as the papers do"))?;
        if anchor.is_some() {
            played.anchors += 1;
            last = Some(n);
        }
        played.distances.push(last.map(|anchor| n - anchor));
        show(n, &picture)?;
    }
    played.whole_ms = clock.mean_ms(low.frames.len()).unwrap_or_default();
    Ok(played)
}

/// A decoder of the low layer that keeps an HR luma plane for each of its slots.
struct PaperDecoder {
    scale: Scale,
    decoder: Decoder,
    residuals: Residuals,
    slots: [Option<Arc<Plane>>; 8],
}

impl PaperDecoder {
    fn new(scale: Scale) -> PaperDecoder {
        PaperDecoder {
            scale,
            decoder: Decoder::new(),
            residuals: Residuals::default(),
            slots: Default::default(),
        }
    }

    /// The HR picture of the next frame; its anchor's detail replaces what motion would give.
    fn push(&mut self, data: &[u8], anchor: Option<&Detail>) -> Result<Picture> {
        self.residuals.clear();
        let frames = self.decoder.decode_with(data, None, &mut self.residuals)?.to_vec();
        // Residuals carry no frame number, and no real-time encoder makes superframes without layers.
        ensure!(frames.len() == 1, "a chunk of {} frames", frames.len());
        let DecodedFrame { picture, info } = &frames[0];
        let low = picture.to_picture();
        let luma = match info.kind {
            FrameKind::ShowExisting { slot } => {
                self.slots[usize::from(slot & 7)].clone().context("a missing frame is shown")?
            }
            _ => Arc::new(self.luma(&low.y, info, anchor)?),
        };
        for (i, slot) in self.slots.iter_mut().enumerate() {
            if info.refresh_mask >> i & 1 == 1 {
                *slot = Some(luma.clone());
            }
        }
        Ok(self.scale.with_luma(luma.as_ref().clone(), &low))
    }

    fn luma(&self, low: &Plane, info: &FrameInfo, anchor: Option<&Detail>) -> Result<Plane> {
        let mut base = self.scale.base(low);
        if let Some(detail) = anchor {
            let size = |d: &Detail| (d.width(), d.height());
            ensure!(size(detail) == size(&base), "an anchor of another size");
            for (b, d) in base.samples_mut().iter_mut().zip(detail.samples()) {
                *b = b.saturating_add(*d);
            }
            return Ok(to_plane(&base));
        }
        let mut high = to_plane(&base);
        if info.is_intra() {
            return Ok(high);
        }
        let size = (high.width(), high.height());
        let references = info.reference_slots.map(|slot| {
            let plane = self.slots[usize::from(slot & 7)].as_deref();
            plane.filter(|plane| (plane.width(), plane.height()) == size)
        });
        let residual = self.residuals.enlarged(low.width(), low.height(), self.scale.factor());
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for block in info.blocks.iter().filter(|block| !block.is_intra()) {
            self.predict(block, &references, &residual, &mut high, [&mut first, &mut second]);
        }
        Ok(high)
    }

    /// Writes one block: moved references (their mean, where there are two) and residual. A block whose reference is
    /// missing keeps the enlarged low picture.
    fn predict(
        &self,
        block: &Block,
        references: &[Option<&Plane>; 3],
        residual: &Detail,
        high: &mut Plane,
        [first, second]: [&mut Vec<u8>; 2],
    ) {
        let scale = self.scale.factor();
        let width = high.width();
        for part in block.parts() {
            let (x, y) = (usize::from(part.x) * scale, usize::from(part.y) * scale);
            let area = Area {
                x,
                y,
                width: (usize::from(part.width) * scale).min(width.saturating_sub(x)),
                height: (usize::from(part.height) * scale).min(high.height().saturating_sub(y)),
            };
            if area.width == 0 || area.height == 0 {
                continue;
            }
            let moved = |list: usize, out: &mut Vec<u8>| {
                let (reference, vector) = part.predictions[list]?;
                let plane = references[reference.index()]?;
                motion::compensate(plane, area, vector, scale, block.filter, out);
                Some(())
            };
            if moved(0, first).is_none() {
                continue;
            }
            if moved(1, second).is_some() {
                for (a, &b) in first.iter_mut().zip(second.iter()) {
                    *a = (u16::from(*a) + u16::from(b)).div_ceil(2) as u8;
                }
            }
            for (row, line) in first.chunks_exact(area.width).enumerate() {
                let at = (area.y + row) * width + area.x;
                let out = &mut high.samples_mut()[at..at + area.width];
                let rest = &residual.row(area.y + row)[area.x..area.x + area.width];
                for ((o, &p), &r) in out.iter_mut().zip(line).zip(rest) {
                    *o = (i16::from(p).saturating_add(r)).clamp(0, 255) as u8;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::eval::anchors;
    use crate::eval::coding::Target;
    use crate::eval::sr::Upscaler;
    use crate::eval::synthetic;
    use windlass_types::AnchorSource;

    fn pictures(low: &Coded, anchors: &[TimedAnchor]) -> Vec<Picture> {
        let mut shown = Vec::new();
        play(low, Scale::TWO, anchors, |_, picture| {
            shown.push(picture.clone());
            Ok(())
        })
        .unwrap();
        shown
    }

    /// A still picture whose LR is flat grey, so that the low layer has nothing to code after its key frame.
    #[test]
    fn where_nothing_moves_and_nothing_is_coded_an_anchor_stays_sample_for_sample() {
        let clip = synthetic::clip(6, |_, x, y| if (x + y) % 2 == 0 { 108 } else { 148 });
        let low = synthetic::low_layer(&clip, 300);
        let flat = low.pictures.frames().unwrap().next().unwrap().unwrap();
        assert!(flat.y.samples().iter().all(|&v| v == 128), "the case is not the one it means");
        let mut settings = synthetic::anchor_settings(0.2, 0);
        settings.source = AnchorSource::Captured;
        settings.target = Target::Quality(97);
        settings.delay = Duration::ZERO;
        let mut upscaler = Upscaler::new().unwrap();
        let track = anchors::make(&clip, &low, Scale::TWO, &settings, &[2], &mut upscaler).unwrap();
        let shown = pictures(&low, &track.anchors);
        assert_eq!(shown[0], Scale::TWO.lanczos(&flat));
        assert_ne!(shown[2].y, shown[1].y);
        assert_eq!((&shown[3].y, &shown[5].y), (&shown[2].y, &shown[2].y));
        let error = windlass_vp9::psnr(
            &clip.frames.frames().unwrap().next().unwrap().unwrap().y,
            &shown[5].y,
        );
        assert!(error > 40.0, "{error}");
    }

    #[test]
    fn a_pan_is_followed_by_the_vectors_and_the_residual() {
        let clip = synthetic::panning(8);
        let low = synthetic::low_layer(&clip, 600);
        let shown = pictures(&low, &[]);
        for (n, (picture, base)) in shown.iter().zip(low.pictures.frames().unwrap()).enumerate() {
            let lanczos = Scale::TWO.lanczos(&base.unwrap());
            // Drift, but the picture is the moved one and not a former one.
            let near = windlass_vp9::psnr(&picture.y, &lanczos.y);
            assert!(near > 24.0, "frame {n}: {near} dB from Lanczos");
        }
    }
}
