//! Predicts what anchors are worth to those who watch a stream.
//!
//! An anchor's detail is carried to the frames after it and is lost as they change. What is left after `n` frames is
//! taken as `g ÷ (1 + n ÷ τ)`. That was fitted to two clips before dense flow, and the table was not kept: 3.3, 2.2,
//! 1.6 dB on d13, 4–7, 8–15 and 16–31 frames after an anchor, by g = 5, τ = 10; 2.2, 1.4, 1.0 dB on s18 by g = 3.6,
//! τ = 8. With flow it fades more slowly (`lab/notes/flow.md`), so predicted gains compare ways, and are no forecast.
//! Here `n` counts residual: bytes since the anchor's frame over those of a mean frame, so that a stream that hardly
//! changes keeps its detail. Anchors count from when they are there.

use std::collections::VecDeque;
use std::time::Duration;

use crate::simulator::mean::Mean;
use windlass_scheduler::promise::promise_of_db;
use windlass_types::DecayReport;

/// Length of a chunk over which quality is compared (NeuroScaler §8.2 takes video chunks).
const CHUNK: Duration = Duration::from_secs(1);

/// One stream as a viewer sees it.
#[derive(Debug, Clone)]
pub(super) struct Watching {
    /// Gain of an anchor on its own frame, in dB.
    best_db: f64,
    /// Number of frames after which half of the gain is left.
    half_life: f64,
    mean_bytes: f64,
    /// Time from a frame's arrival until it is shown.
    delay: Duration,
    /// Frames that are not shown yet.
    frames: VecDeque<Waiting>,
    /// Bytes of the stream so far, without those of key frames, which replace all.
    bytes: f64,
    /// Bytes of the stream up to the frame of the newest anchor that is there.
    anchor: Option<f64>,
    /// Anchors to come: when, and the bytes of the stream up to their frames.
    coming: Vec<(Duration, f64)>,
    /// Gains of the frames of this second.
    chunk: Mean,
    chunk_ends: Duration,
}

/// A frame that is not shown yet.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// Time at which the frame is shown.
    at: Duration,
    /// Bytes of the stream up to the frame.
    place: f64,
    /// Whether the frame is a key frame.
    key: bool,
}

impl Watching {
    pub(super) fn new(best_db: f64, half_life: f64, mean_bytes: f64, delay: Duration) -> Watching {
        Watching {
            best_db,
            half_life,
            mean_bytes: mean_bytes.max(1.0),
            delay,
            frames: VecDeque::new(),
            bytes: 0.0,
            anchor: None,
            coming: Vec::new(),
            chunk: Mean::default(),
            chunk_ends: Duration::ZERO,
        }
    }

    /// Takes a frame that arrives, and returns its place in the stream's bytes, for its anchor.
    pub(super) fn frame(&mut self, at: Duration, bytes: u32, key: bool) -> f64 {
        if !key {
            self.bytes += f64::from(bytes);
        }
        self.frames.push_back(Waiting { at: at + self.delay, place: self.bytes, key });
        self.bytes
    }

    /// Shows all frames that are due by `now`, when all anchors that will be there by then are known. Each second
    /// that has ended goes to `ended`.
    pub(super) fn show(&mut self, now: Duration, mut ended: impl FnMut(Chunk)) {
        while let Some(&frame) = self.frames.front().filter(|frame| frame.at <= now) {
            self.frames.pop_front();
            if let Some(chunk) = self.show_frame(frame) {
                ended(chunk);
            }
        }
    }

    fn show_frame(&mut self, Waiting { at, place: frame, key }: Waiting) -> Option<Chunk> {
        let mut ended = None;
        if at >= self.chunk_ends {
            self.chunk_ends = at + CHUNK;
            let lacks = |gain_db| Chunk { gain_db, lacks_db: self.best_db - gain_db };
            ended = std::mem::take(&mut self.chunk).get().map(lacks);
        }
        if key {
            self.anchor = None;
        }
        let Watching { coming, anchor, .. } = self;
        coming.retain(|&(ready, place)| {
            let is_there = ready <= at && place <= frame;
            if is_there {
                *anchor = Some(anchor.map_or(place, |newest| newest.max(place)));
            }
            !is_there
        });
        let gain = self.anchor.map_or(0.0, |place| {
            let frames = (frame - place).max(0.0) / self.mean_bytes;
            self.best_db / (1.0 + frames / self.half_life)
        });
        self.chunk.add(gain);
        ended
    }

    /// How many frames of residual lie between the frame at `place` and the newest anchor before it, there or to
    /// come.
    pub(super) fn stale(&self, place: f64) -> f64 {
        let coming = self.coming.iter().map(|&(_, place)| place).chain(self.anchor);
        let newest = coming.filter(|&anchor| anchor <= place).fold(f64::MIN, f64::max);
        (place - newest) / self.mean_bytes
    }

    /// The decay that a viewer would report: the loss in 15 frames, of pictures of 40 dB.
    pub(super) fn decay(&self) -> DecayReport {
        const FRAMES: f64 = 15.0;
        let lost_db = self.best_db * (1.0 - 1.0 / (1.0 + FRAMES / self.half_life));
        DecayReport { per_frame: promise_of_db(lost_db) / FRAMES, frames: FRAMES }
    }

    /// Notes the anchor of the frame at `place`, which will be there at `ready`.
    pub(super) fn anchor(&mut self, ready: Duration, place: f64) {
        self.coming.push((ready, place));
    }
}

/// The quality of a second of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Chunk {
    /// Gain over no anchors in dB: the mean of the frames.
    pub gain_db: f64,
    /// How far the second is below super-resolution of every frame, in dB.
    pub lacks_db: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Duration = Duration::from_millis(33);

    /// What each of 30 frames gains when the anchor of the third is there with the sixth.
    fn gains(delay: Duration) -> Vec<f64> {
        let mut seen = Watching::new(4.0, 10.0, 100.0, delay);
        let mut gains = Vec::new();
        for n in 0..60u32 {
            let place = if n < 30 { seen.frame(FRAME * n, 100, n == 0) } else { 0.0 };
            if n == 2 {
                seen.anchor(FRAME * 5, place);
            }
            let before = seen.chunk.sum;
            let shown = seen.chunk.count;
            seen.show(FRAME * n, |_| {});
            if seen.chunk.count > shown {
                gains.push(seen.chunk.sum - before);
            }
        }
        gains
    }

    #[test]
    fn detail_is_there_when_its_anchor_is_and_halves_with_what_changes() {
        let gains = gains(Duration::ZERO);
        assert!(gains[..5].iter().all(|&gain| gain == 0.0), "{gains:?}");
        assert!((gains[12] - 2.0).abs() < 1e-9 && (gains[5] - 4.0 / 1.3).abs() < 1e-9, "{gains:?}");
    }

    #[test]
    fn who_watches_later_has_it_from_its_own_frame_on() {
        let gains = gains(FRAME * 4);
        assert!(
            gains[..2].iter().all(|&gain| gain == 0.0) && (gains[2] - 4.0).abs() < 1e-9,
            "{gains:?}"
        );
    }

    #[test]
    fn a_second_ends_with_its_last_frame() {
        let mut seen = Watching::new(4.0, 10.0, 100.0, Duration::ZERO);
        let mut ended = Vec::new();
        for n in 0..70u32 {
            seen.frame(FRAME * n, 100, false);
            seen.show(FRAME * n, |chunk| ended.push(chunk));
        }
        assert_eq!(ended, [Chunk { gain_db: 0.0, lacks_db: 4.0 }; 2]);
    }

    #[test]
    fn anchors_that_come_out_of_order_do_not_take_newer_detail_away() {
        let mut seen = Watching::new(4.0, 10.0, 100.0, Duration::ZERO);
        let places: Vec<f64> = (0..4).map(|n| seen.frame(FRAME * n, 100, false)).collect();
        seen.anchor(FRAME * 4, places[3]);
        seen.anchor(FRAME * 5, places[0]);
        seen.frame(FRAME * 6, 100, false);
        seen.show(FRAME * 6, |_| {});
        assert_eq!(seen.anchor, Some(places[3]));
    }
}
