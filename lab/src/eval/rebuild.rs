//! Plays a low layer and its anchors through the product's own decoder.

use anyhow::{Context, Result, ensure};
use windlass_hybrid::{AnchorOutcome, HybridConfig, HybridDecoder};
use windlass_vp9::Picture;

use super::anchors::{TimedAnchor, rtp_timestamp, shown_at};
use super::cpu_clock::CpuClock;
use super::low_layer::Coded;

/// The results of playing, besides the pictures.
#[derive(Debug, Clone, Default)]
pub(super) struct Played {
    /// Mean CPU time for each frame, decoding included, in milliseconds.
    pub whole_ms: f64,
    /// Number of anchors that reached the picture.
    pub anchors: usize,
    /// For every frame, its distance in frames from the last frame whose anchor its picture rests on.
    pub distances: Vec<Option<usize>>,
}

/// Plays the low layer while anchors come in. Passes on the decoder's picture when each frame is shown, with the
/// frame's number.
pub(super) fn play(
    low: &Coded,
    fps: f64,
    anchors: &[TimedAnchor],
    config: HybridConfig,
    mut show: impl FnMut(usize, &Picture) -> Result<()>,
) -> Result<Played> {
    let mut decoder = HybridDecoder::new(config);
    let mut clock = CpuClock::default();
    let mut pending = anchors.iter().peekable();
    let mut played = Played::default();
    let mut last = None;
    for (n, frame) in low.frames.iter().enumerate() {
        let now = shown_at(n, fps);
        // Anchors of earlier frames that came in since the last one was shown.
        while let Some(late) = pending.next_if(|a| a.frame < n && a.ready_at <= now) {
            let outcome = clock.measure(|| decoder.push_anchor(&late.anchor));
            if applied(outcome, late.frame)? {
                played.anchors += 1;
                last = last.max(Some(late.frame));
            }
        }
        clock
            .measure(|| decoder.push_frame(rtp_timestamp(n, fps), &frame.data))
            .with_context(|| format!("rebuilding frame {n}"))?;
        // Without any delay, an anchor comes with its frame.
        while let Some(prompt) = pending.next_if(|a| a.ready_at <= now) {
            let outcome = clock.measure(|| decoder.push_anchor(&prompt.anchor));
            if applied(outcome, prompt.frame)? {
                played.anchors += 1;
                last = last.max(Some(prompt.frame));
            }
        }
        clock.measure(|| decoder.refresh());
        played.distances.push(last.map(|anchor| n - anchor));
        show(n, decoder.hr().with_context(|| format!("frame {n} shows no picture"))?)?;
    }
    played.whole_ms = clock.mean_ms(low.frames.len()).unwrap_or_default();
    Ok(played)
}

/// Whether the anchor reached the picture. An anchor that the decoder calls wrong is a fault of `eval`.
fn applied(outcome: AnchorOutcome, frame: usize) -> Result<bool> {
    ensure!(
        !matches!(outcome, AnchorOutcome::Malformed | AnchorOutcome::WrongSize),
        "the decoder refuses the anchor of frame {frame}: {outcome:?}"
    );
    Ok(matches!(outcome, AnchorOutcome::Applied { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::synthetic;

    #[test]
    fn anchors_are_used_when_they_are_ready_and_no_sooner() {
        let clip = synthetic::panning(20);
        let low = synthetic::low_layer(&clip, 300);
        let shown = |anchors: &[TimedAnchor]| {
            let mut pictures = Vec::new();
            let played = play(&low, clip.fps, anchors, HybridConfig::default(), |_, picture| {
                pictures.push(picture.clone());
                Ok(())
            });
            (played.unwrap(), pictures)
        };
        let (none, without) = shown(&[]);
        let (some, late) = shown(&synthetic::track(&clip, &low, 130).anchors);
        let (all, prompt) = shown(&synthetic::track(&clip, &low, 0).anchors);
        assert_eq!((none.anchors, none.distances[19]), (0, None));
        assert!(some.anchors > 0 && all.anchors >= some.anchors, "{some:?} {all:?}");
        // The first anchor, of the key frame, is ready at 130 ms: frame 4, shown at 133 ms, is the
        // first to have it.
        assert_eq!(late[..4], without[..4]);
        assert_ne!(late[4], without[4]);
        assert_eq!((some.distances[3], some.distances[4]), (None, Some(4)));
        assert_ne!(prompt[0], without[0]);
        assert_eq!(all.distances[0], Some(0));
    }
}
