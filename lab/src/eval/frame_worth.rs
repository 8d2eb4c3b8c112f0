//! The worth of each frame as an anchor: the gain of the frame's anchor alone, beside the features that are known
//! without inference, and how far the two go together.
//!
//! Source: NeuroScaler §5.1, whose middle tier (alternative references) real-time VP9 does not have. Rank correlation
//! (Spearman's) by clip; a feature that can rank nothing (all frames are alike) has none.

use std::fmt::Write as _;

use windlass_scheduler::{Candidate, GainEstimator, Tier};
use windlass_types::StreamId;

use super::anchors::{STREAM, shown_at};
use super::gains::Gains;
use super::low_layer::Coded;

/// Number of frames over which gains are summed. In a call the next anchor is seldom later, and all frames must have
/// as many frames after them.
const WINDOW: usize = 34;

/// The features of a frame, and the gain of its anchor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FrameWorth {
    /// The frame's number.
    pub frame: usize,
    /// Length of the encoded frame, in bytes.
    pub bytes: f64,
    /// Quantiser index (`base_q_idx`): the lower it is, the better is the picture that the anchor is made of.
    pub quantiser: f64,
    /// 1 for frames that refresh more than the slot of the last frame, else 0.
    pub golden: f64,
    /// How far the quantiser is below the mean of the four frames before: the encoder refreshed the frame.
    pub refreshed: f64,
    /// The gain that Algorithm 1 of NeuroScaler expects in an interval of two frames.
    pub expected: f64,
    /// Energy of the residual that the frame encodes, in square grey levels for each sample.
    pub residual: f64,
    /// Share of the frame's area that is intra.
    pub intra: f64,
    /// Mean length of the frame's motion vectors, in samples.
    pub motion: f64,
    /// The gain in dB, summed over [`WINDOW`] frames from this one on.
    pub gain: f64,
}

/// All frames whose gain is known. Key frames are left out: they have a tier of their own.
pub(super) fn frame_worths(low: &Coded, fps: f64, gains: &Gains) -> Vec<FrameWorth> {
    let size = low.pictures.size();
    let candidate = |n: usize| Candidate {
        id: n as u64,
        stream: StreamId(STREAM),
        tier: low.frames[n].tier,
        bytes: u32::try_from(low.frames[n].data.len()).unwrap_or(u32::MAX),
        size: size.into(),
        arrival: shown_at(n, fps),
        per_mille: 1000,
        scale: 2,
        max_scale: 2,
    };
    let mut estimator = GainEstimator::default();
    let mut out = Vec::new();
    for (n, with) in gains.with.iter().enumerate() {
        let (frame, Some(with)) = (&low.frames[n], with) else { continue };
        if frame.tier == Tier::Key || n + WINDOW > with.len() {
            continue;
        }
        let after = with.iter().zip(&gains.without).skip(n).take(WINDOW);
        let before = &low.frames[n.saturating_sub(4)..n];
        let usual =
            before.iter().map(|f| f64::from(f.quantiser)).sum::<f64>() / before.len().max(1) as f64;
        let quantiser = f64::from(frame.quantiser);
        let pair: Vec<Candidate> = (n.saturating_sub(1)..=n).map(candidate).collect();
        let expected = estimator.estimate(&pair, 0, 30).last().copied().unwrap_or_default() as f64;
        out.push(FrameWorth {
            frame: n,
            bytes: frame.data.len() as f64,
            quantiser,
            golden: f64::from(u8::from(frame.tier == Tier::Golden)),
            refreshed: (usual - quantiser).max(0.0),
            expected,
            residual: frame.residual,
            intra: frame.intra,
            motion: frame.motion,
            gain: after.map(|(with, without)| with - without).sum(),
        });
    }
    out
}

/// A feature of a frame, with its name.
type Feature = (&'static str, fn(&FrameWorth) -> f64);

/// The features that are compared with the gain. The quantiser counts negated: the lower it is, the better.
const FEATURES: [Feature; 8] = [
    ("bytes", |d| d.bytes),
    ("golden", |d| d.golden),
    ("quantiser", |d| -d.quantiser),
    ("refreshed", |d| d.refreshed),
    ("expected", |d| d.expected),
    ("residual", |d| d.residual),
    ("intra", |d| d.intra),
    ("motion", |d| d.motion),
];

/// The frames as CSV.
pub(super) fn csv(frames: &[FrameWorth]) -> String {
    let mut out =
        "frame,bytes,quantiser,golden,refreshed,expected,residual,intra,motion,gain\n".to_owned();
    for d in frames {
        let FrameWorth { frame, bytes, quantiser, golden, refreshed, expected, .. } = d;
        let FrameWorth { residual, intra, motion, gain, .. } = d;
        let _ = write!(out, "{frame},{bytes},{quantiser},{golden},{refreshed:.1},{expected},");
        let _ = writeln!(out, "{residual:.3},{intra:.4},{motion:.3},{gain:.4}");
    }
    out
}

/// Rank correlation of each feature with the gain, as a line.
pub(super) fn line(frames: &[FrameWorth]) -> String {
    let gains: Vec<f64> = frames.iter().map(|d| d.gain).collect();
    let told = FEATURES.iter().map(|(name, of)| {
        let values: Vec<f64> = frames.iter().map(of).collect();
        match spearman(&values, &gains) {
            Some(r) => format!("{name} {r:+.2}"),
            None => format!("{name} –"),
        }
    });
    let golden = frames.iter().filter(|d| d.golden > 0.0);
    let of = |d: &mut dyn Iterator<Item = &FrameWorth>| super::stats::mean(d.map(|d| d.gain));
    let mean = |value: Option<f64>| value.map_or("–".to_owned(), |v| format!("{v:.2} dB"));
    format!(
        "gain by rank: {}; a golden frame's {}, any other's {}",
        told.collect::<Vec<_>>().join(", "),
        mean(of(&mut golden.clone())),
        mean(of(&mut frames.iter().filter(|d| d.golden == 0.0))),
    )
}

/// Spearman's rank correlation, ties at their mean rank; `None` where one of the two is constant.
fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(&b) {
        ab += (x - mean) * (y - mean);
        aa += (x - mean).powi(2);
        bb += (y - mean).powi(2);
    }
    (aa > 0.0 && bb > 0.0).then(|| ab / (aa * bb).sqrt())
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    let mut at = 0;
    while at < order.len() {
        let same = order[at..]
            .iter()
            .take_while(|&&i| values[i].total_cmp(&values[order[at]]).is_eq())
            .count();
        let rank = at as f64 + (same as f64 - 1.0) / 2.0;
        for &i in &order[at..at + same] {
            ranks[i] = rank;
        }
        at += same;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_go_together_whatever_the_scale() {
        let close = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() < 1e-12;
        assert!(close(spearman(&[1.0, 2.0, 9.0], &[0.1, 0.2, 70.0]), 1.0));
        assert!(close(spearman(&[1.0, 2.0, 9.0], &[3.0, 2.0, 1.0]), -1.0));
        assert_eq!(spearman(&[1.0, 1.0, 1.0], &[3.0, 2.0, 1.0]), None);
        // scipy.stats.spearmanr([1, 2, 2, 4], [1, 3, 2, 4]) is 0.9486832980505138.
        assert!(close(
            spearman(&[1.0, 2.0, 2.0, 4.0], &[1.0, 3.0, 2.0, 4.0]),
            0.948_683_298_050_513_8
        ));
    }
}
