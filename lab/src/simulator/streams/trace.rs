//! Recorded frames of a real clip: sizes, tiers and times, without pictures.
//!
//! As CSV: lines that begin with `#` are remarks; then `at_ms,bytes,tier` and, where they were measured, `gain_db`;
//! then a line a frame, in order, the first one a key frame. Tiers are `key`, `golden` and `normal`. A gain is what the
//! frame's anchor alone gives the frames from it on, summed, in dB; it may be missing.
//! `windlass-lab eval --codec-traces` records them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use thiserror::Error;

use windlass_scheduler::Tier;

/// Traces by the names that scenarios use.
pub(crate) type Traces = BTreeMap<String, Trace>;

/// Maximum number of frames of a trace.
const MAX_FRAMES: usize = 1 << 20;
/// Maximum size of a frame, in bytes.
const MAX_BYTES: u32 = 1 << 26;
/// The columns of a trace, without and with gains.
const COLUMNS: [&str; 2] = ["at_ms,bytes,tier", "at_ms,bytes,tier,gain_db"];

/// One frame of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TraceFrame {
    /// Time since the first frame.
    pub at: Duration,
    /// Size of the encoded frame, in bytes.
    pub bytes: u32,
    /// How other frames depend on it.
    pub tier: Tier,
    /// Gain of the frame's anchor alone on the frame and those after it, summed, in dB.
    pub gain_db: Option<f64>,
}

/// A recorded stream of at least two frames, of which the first is a key frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trace {
    frames: Vec<TraceFrame>,
}

/// Why a file is no trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum TraceError {
    /// A line is not what it should be.
    #[error("line {line}: {what}")]
    Line {
        /// The line's number, from 1.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// The trace as a whole is not valid.
    #[error("{0}")]
    Whole(&'static str),
}

impl Trace {
    /// A trace of frames, which are in order.
    pub(crate) fn new(frames: Vec<TraceFrame>) -> Result<Trace, TraceError> {
        let whole = |fine: bool, what| if fine { Ok(()) } else { Err(TraceError::Whole(what)) };
        whole(frames.len() >= 2, "a trace has at least two frames")?;
        whole(frames.len() <= MAX_FRAMES, "a trace has at most 1048576 frames")?;
        whole(frames[0].tier == Tier::Key, "the first frame must be a key frame")?;
        whole(frames[0].at == Duration::ZERO, "the first frame must be at 0")?;
        let rises = frames.windows(2).all(|pair| pair[0].at < pair[1].at);
        whole(rises, "every frame must be later than the one before")?;
        let sizes = frames.iter().all(|frame| (1..=MAX_BYTES).contains(&frame.bytes));
        whole(sizes, "bytes must be from 1 to 67108864")?;
        let gains = frames.iter().filter_map(|frame| frame.gain_db);
        whole(gains.into_iter().all(f64::is_finite), "gain_db must be a number")?;
        Ok(Trace { frames })
    }

    /// Reads a trace.
    pub(crate) fn parse(text: &str) -> Result<Trace, TraceError> {
        let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line.trim_end()));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let (line, header) = lines.next().ok_or(TraceError::Whole("the file is empty"))?;
        if !COLUMNS.contains(&header) {
            let what = "the columns must be at_ms,bytes,tier and perhaps gain_db";
            return Err(TraceError::Line { line, what });
        }
        let columns = header.split(',').count();
        let mut frames = Vec::new();
        for (line, text) in lines {
            let frame = frame(text, columns).map_err(|what| TraceError::Line { line, what })?;
            if frames.last().is_some_and(|last: &TraceFrame| last.at >= frame.at) {
                let what = "at_ms must be greater than in the line before";
                return Err(TraceError::Line { line, what });
            }
            if frames.len() == MAX_FRAMES {
                return Err(TraceError::Line { line, what: "there are more than 1048576 frames" });
            }
            frames.push(frame);
        }
        Trace::new(frames)
    }

    /// The trace as CSV, with a remark.
    pub(crate) fn csv(&self, remark: &str) -> String {
        let gains = self.frames.iter().any(|frame| frame.gain_db.is_some());
        let remark = remark.replace(['\n', '\r'], " ");
        // Writing to a string does not fail.
        let mut out = format!("# {remark}\n{}\n", COLUMNS[usize::from(gains)]);
        for TraceFrame { at, bytes, tier, gain_db } in &self.frames {
            let tier = match tier {
                Tier::Key => "key",
                Tier::Golden => "golden",
                Tier::Normal => "normal",
            };
            let _ = write!(out, "{:.3},{bytes},{tier}", 1e3 * at.as_secs_f64());
            if gains {
                let _ = write!(out, ",{}", gain_db.map_or(String::new(), |g| format!("{g:.2}")));
            }
            out.push('\n');
        }
        out
    }

    /// The frames, in order.
    pub(crate) fn frames(&self) -> &[TraceFrame] {
        &self.frames
    }

    /// Time from a frame to the one after it. After the last frame comes the second, as the first is only where
    /// streams begin.
    pub(super) fn every(&self, at: usize) -> Duration {
        match self.frames.get(at..at + 2) {
            Some([this, next]) => next.at.saturating_sub(this.at),
            _ => self.frames[1].at,
        }
    }

    /// Mean size of a frame in bytes, without the first one.
    pub(super) fn mean_bytes(&self) -> f64 {
        let bytes: f64 = self.frames[1..].iter().map(|frame| f64::from(frame.bytes)).sum();
        bytes / (self.frames.len() - 1) as f64
    }

    /// Mean gain of a frame's anchor in dB, where it is known of any frame.
    pub(super) fn mean_gain_db(&self) -> Option<f64> {
        let gains = || self.frames.iter().filter_map(|frame| frame.gain_db);
        let count = gains().count();
        (count > 0).then(|| gains().sum::<f64>() / count as f64)
    }
}

fn frame(line: &str, columns: usize) -> Result<TraceFrame, &'static str> {
    let mut fields = line.split(',');
    let mut next = || fields.next().map(str::trim).ok_or("a column is missing");
    let (at, bytes, tier) = (next()?, next()?, next()?);
    let gain = if columns > 3 { next()? } else { "" };
    if fields.next().is_some() {
        return Err("there are too many columns");
    }
    let at_ms: f64 = at.parse().map_err(|_| "at_ms is no number")?;
    let at = Duration::try_from_secs_f64(at_ms / 1e3).map_err(|_| "at_ms is no time")?;
    let bytes = bytes.parse().map_err(|_| "bytes is no whole number")?;
    if !(1..=MAX_BYTES).contains(&bytes) {
        return Err("bytes must be from 1 to 67108864");
    }
    let tier = match tier {
        "key" => Tier::Key,
        "golden" => Tier::Golden,
        "normal" => Tier::Normal,
        _ => return Err("tier must be key, golden or normal"),
    };
    let gain_db = match gain {
        "" => None,
        gain => match gain.parse::<f64>() {
            Ok(gain) if gain.is_finite() => Some(gain),
            _ => return Err("gain_db is no number"),
        },
    };
    Ok(TraceFrame { at, bytes, tier, gain_db })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "# a clip\nat_ms,bytes,tier,gain_db\n0.000,900,key,\n33.333,57,normal,1.50\n66.667,99,golden,-0.25\n";

    #[test]
    fn what_is_written_is_read() {
        let trace = Trace::parse(TEXT).expect("it is one");
        assert_eq!(trace.csv("a clip"), TEXT);
        assert_eq!(trace.frames()[2].tier, Tier::Golden);
        assert_eq!((trace.mean_bytes(), trace.mean_gain_db()), (78.0, Some(0.625)));
        assert_eq!(trace.every(2), trace.frames()[1].at);
    }

    #[test]
    fn errors_say_what_is_wrong_and_in_which_line() {
        let error = |text: &str| Trace::parse(text).expect_err("it is none").to_string();
        let with =
            |line: &str| error(&format!("at_ms,bytes,tier\n0,900,key\n{line}\n40,5,normal\n"));
        assert_eq!(error(""), "the file is empty");
        assert!(error("frame,bytes\n").starts_with("line 1: the columns"));
        assert!(with("33").starts_with("line 3: a column is missing"));
        assert!(with("33,9,normal,7").starts_with("line 3: there are too many"));
        assert!(with("NaN,9,normal").starts_with("line 3: at_ms is no time"));
        assert!(with("33,-9,normal").starts_with("line 3: bytes is no whole"));
        assert!(with("33,0,normal").starts_with("line 3: bytes must be"));
        assert!(with("33,9,silver").starts_with("line 3: tier must be"));
        assert!(with("50,9,normal").starts_with("line 4: at_ms must be greater"));
        assert!(error("at_ms,bytes,tier\n0,9,key\n").contains("two frames"));
        assert!(error("at_ms,bytes,tier\n0,9,normal\n1,9,key\n").contains("key frame"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-z0-9,.#\n-]{0,200}", cut in 0usize..200) {
            let _ = Trace::parse(&text);
            let mixed: String = TEXT.chars().take(cut).chain(text.chars()).collect();
            let _ = Trace::parse(&mixed);
        }
    }
}
