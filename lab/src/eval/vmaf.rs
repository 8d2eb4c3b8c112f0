//! VMAF by an ffmpeg with libvmaf: pictures go in by a pipe, scores come out of its log.
//!
//! Both built-in models at once: `vmaf_v0.6.1` and `vmaf_v0.6.1neg`, which does not reward
//! sharpening. Raw video has no time stamps, so pictures pair by number.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use windlass_vp9::Picture;

use super::fed::Fed;
use super::frames::FrameStore;

/// Scores of the frames of a clip, 0 to 100.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scores {
    /// Scores by the model `vmaf_v0.6.1`.
    pub vmaf: Vec<f64>,
    /// Scores by the model `vmaf_v0.6.1neg`, which does not reward sharpening.
    pub neg: Vec<f64>,
}

/// A running comparison of pictures with a stored original.
#[derive(Debug)]
pub(super) struct Vmaf {
    ffmpeg: Fed,
    frames: usize,
}

/// Name of the file that ffmpeg writes scores to, in the temporary folder.
const LOG: &str = "vmaf.json";

impl Vmaf {
    /// Starts `ffmpeg` on the pictures of `original`.
    pub(super) fn start(ffmpeg: &Path, original: &FrameStore) -> Result<Vmaf> {
        let size = original.size().to_string();
        let raw = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-framerate", "25", "-s", &size, "-i"];
        // The log's name is relative to the folder: a path could hold characters that filters give meaning to.
        let filter = format!(
            "[0:v][1:v]libvmaf=model='version=vmaf_v0.6.1\\:name=vmaf|version=vmaf_v0.6.1neg\\:name=vmaf_neg':\
             log_fmt=json:log_path={LOG}:n_threads=2"
        );
        let path = original.path().to_str().context("the temporary folder's name is no text")?;
        let ends = ["-lavfi", &filter, "-f", "null", "-"];
        let arguments = [&raw[..], &["pipe:0"], &raw[..], &[path], &ends[..]].concat();
        let ffmpeg = Fed::start(ffmpeg, "computing VMAF".to_owned(), &arguments)?;
        Ok(Vmaf { ffmpeg, frames: original.len() })
    }

    /// Adds the next picture.
    pub(super) fn push(&mut self, picture: &Picture) -> Result<()> {
        self.ffmpeg.push(picture)
    }

    /// Waits for the scores.
    pub(super) fn finish(self) -> Result<Scores> {
        let scores = parse(&self.ffmpeg.finish(LOG)?)?;
        ensure!(
            scores.vmaf.len() == self.frames,
            "ffmpeg scored {} of {} frames",
            scores.vmaf.len(),
            self.frames
        );
        Ok(scores)
    }
}

fn parse(log: &[u8]) -> Result<Scores> {
    #[derive(Deserialize)]
    struct Log {
        frames: Vec<Frame>,
    }
    #[derive(Deserialize)]
    struct Frame {
        metrics: Metrics,
    }
    #[derive(Deserialize)]
    struct Metrics {
        vmaf: f64,
        vmaf_neg: f64,
    }
    let log: Log = serde_json::from_slice(log).context("the VMAF log is not as expected")?;
    let (vmaf, neg) = log.frames.iter().map(|f| (f.metrics.vmaf, f.metrics.vmaf_neg)).unzip();
    Ok(Scores { vmaf, neg })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::ffmpeg;
    use crate::eval::frames::FrameWriter;

    #[test]
    fn both_scores_of_every_frame_are_read_from_the_log() {
        let log = br#"{"frames": [
            {"frameNum": 0, "metrics": {"vmaf": 81.5, "vmaf_neg": 79.25}},
            {"frameNum": 1, "metrics": {"vmaf": 80.0, "vmaf_neg": 78.0, "integer_motion": 1.0}}
        ]}"#;
        let expected = Scores { vmaf: vec![81.5, 80.0], neg: vec![79.25, 78.0] };
        assert_eq!(parse(log).unwrap(), expected);
        assert!(parse(b"{}").is_err());
    }

    #[test]
    fn the_original_scores_higher_than_a_blurred_copy() {
        let Some(path) = ffmpeg::find(None).ok().and_then(|found| found.vmaf) else {
            windlass_skips::skip("no ffmpeg with libvmaf (WINDLASS_FFMPEG names one)");
            return;
        };
        let mut sharp = Picture::grey(192, 128);
        for (i, v) in sharp.y.samples_mut().iter_mut().enumerate() {
            *v = ((i % 192) * (i / 192) * 5 % 160 + 40) as u8;
        }
        let mut blurred = sharp.clone();
        let from = sharp.y.samples();
        for (v, around) in blurred.y.samples_mut()[1..].iter_mut().zip(from.windows(3)) {
            *v = (around.iter().map(|&s| u16::from(s)).sum::<u16>() / 3) as u8;
        }
        let mut writer = FrameWriter::new(crate::eval::frames::Size::of(&sharp)).unwrap();
        (0..4).for_each(|_| writer.push(&sharp).unwrap());
        let original = writer.finish().unwrap();
        let score = |picture: &Picture| {
            let mut vmaf = Vmaf::start(&path, &original).unwrap();
            (0..4).for_each(|_| vmaf.push(picture).unwrap());
            vmaf.finish().unwrap()
        };
        let (same, worse) = (score(&sharp), score(&blurred));
        assert!(same.vmaf[3] > worse.vmaf[3] + 5.0, "{same:?} {worse:?}");
    }
}
