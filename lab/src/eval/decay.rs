//! Decay: quality by distance from the last anchor.
//!
//! In, for every frame: its quality, and its distance in frames from the frame whose anchor its picture rests on
//! (`None` before the first). Out: means by distance, in buckets that double.

use serde::Serialize;

use super::score::Scores;
use super::stats::mean;

/// First distances of the buckets, in frames; the last bucket is open.
const STARTS: [usize; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 128];

/// The frames whose distance from the last anchor is in one range.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Bucket {
    /// Minimum distance of the bucket, in frames.
    pub from_frames: usize,
    /// Maximum distance of the bucket, in frames; `None` in the last bucket.
    pub to_frames: Option<usize>,
    /// Number of frames in the bucket.
    pub frames: usize,
    /// Mean PSNR of luma of the bucket's frames, in dB.
    pub psnr_y_db: f64,
    /// Mean PSNR of luma over that of Lanczos on the same frames, in dB.
    pub gain_db: f64,
    /// Mean VMAF of the bucket's frames.
    pub vmaf: Option<f64>,
    /// Mean VMAF-NEG of the bucket's frames: the model does not reward sharpening.
    pub vmaf_neg: Option<f64>,
}

impl Bucket {
    /// The bucket's range of distances in frames, as `4–7`.
    pub(crate) fn name(&self) -> String {
        match self.to_frames {
            Some(to) if to == self.from_frames => to.to_string(),
            Some(to) => format!("{}–{to}", self.from_frames),
            None => format!("{}…", self.from_frames),
        }
    }
}

/// The buckets that have frames. `lanczos_db` is the PSNR of Lanczos in dB, frame by frame.
pub(super) fn decay(
    distances: &[Option<usize>],
    scores: &Scores,
    lanczos_db: &[f64],
) -> Vec<Bucket> {
    STARTS
        .iter()
        .enumerate()
        .filter_map(|(i, &from)| {
            let to = STARTS.get(i + 1).map(|next| next - 1);
            let inside: Vec<usize> = distances
                .iter()
                .enumerate()
                .filter(|(_, d)| d.is_some_and(|d| d >= from && to.is_none_or(|to| d <= to)))
                .map(|(n, _)| n)
                .collect();
            let of = |series: &[f64]| {
                mean(inside.iter().filter_map(|&n| series.get(n).copied())).filter(|v| !v.is_nan())
            };
            let psnr_y_db = of(&scores.psnr_y_db)?;
            Some(Bucket {
                from_frames: from,
                to_frames: to,
                frames: inside.len(),
                psnr_y_db,
                gain_db: psnr_y_db - of(lanczos_db)?,
                vmaf: scores.vmaf.as_deref().and_then(of),
                vmaf_neg: scores.vmaf_neg.as_deref().and_then(of),
            })
        })
        .collect()
}

/// Means of the same bucket over clips, weighted by frames.
pub(super) fn pooled(tables: &[&[Bucket]]) -> Vec<Bucket> {
    STARTS
        .iter()
        .filter_map(|&from| {
            let same: Vec<&Bucket> =
                tables.iter().filter_map(|t| t.iter().find(|b| b.from_frames == from)).collect();
            let frames = same.iter().map(|b| b.frames).sum::<usize>();
            let weighed = |of: &dyn Fn(&Bucket) -> Option<f64>| {
                let sum: Option<f64> = same.iter().map(|b| Some(of(b)? * b.frames as f64)).sum();
                sum.map(|sum| sum / frames.max(1) as f64)
            };
            Some(Bucket {
                from_frames: from,
                to_frames: same.first()?.to_frames,
                frames,
                psnr_y_db: weighed(&|b| Some(b.psnr_y_db))?,
                gain_db: weighed(&|b| Some(b.gain_db))?,
                vmaf: weighed(&|b| b.vmaf),
                vmaf_neg: weighed(&|b| b.vmaf_neg),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(psnr: &[f64]) -> Scores {
        let vmaf = Some(psnr.iter().map(|p| 2.0 * p).collect());
        Scores { psnr_y_db: psnr.to_vec(), vmaf, ..Scores::default() }
    }

    #[test]
    fn frames_fall_into_buckets_by_their_distance_and_those_before_the_first_anchor_into_none() {
        let distances = [None, Some(0), Some(1), Some(2), Some(3), Some(200)];
        let table = decay(&distances, &scores(&[1., 40., 39., 38., 36., 30.]), &[30.0; 6]);
        let seen: Vec<_> = table.iter().map(|b| (b.name(), b.frames, b.psnr_y_db)).collect();
        let expected = [("0", 1, 40.0), ("1", 1, 39.0), ("2–3", 2, 37.0), ("128…", 1, 30.0)];
        assert_eq!(seen, expected.map(|(name, n, db)| (name.to_owned(), n, db)));
        assert!((table[2].gain_db - 7.0).abs() < 1e-12);
        assert_eq!((table[2].vmaf, table[2].vmaf_neg), (Some(74.0), None));
    }

    #[test]
    fn clips_are_pooled_by_their_frames() {
        let one = decay(&[Some(4); 3], &scores(&[40.0; 3]), &[39.0; 3]);
        let two = decay(&[Some(5), Some(9)], &scores(&[36.0; 2]), &[36.0; 2]);
        let both = pooled(&[&one, &two]);
        assert_eq!(both.iter().map(|b| b.frames).collect::<Vec<_>>(), [4, 1]);
        assert!((both[0].psnr_y_db - 39.0).abs() < 1e-12);
        assert!((both[0].gain_db - 0.75).abs() < 1e-12);
    }
}
