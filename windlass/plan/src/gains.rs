//! Measured gains of enhancement on clips. Nothing here is computed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Gains that are shipped with the program. A test of the laboratory writes them from the figures in `lab/results`.
const MEASURED: &str = include_str!("../gains.json");

/// Kind of content in a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// A person in front of a camera.
    Person,
    /// Small text: a terminal, a notebook.
    Text,
    /// A person out of focus.
    Soft,
}

impl Content {
    /// All kinds of content, in the order of reports.
    pub const ALL: [Content; 3] = [Content::Person, Content::Text, Content::Soft];

    /// Name of the content in reports.
    pub fn name(self) -> &'static str {
        match self {
            Content::Person => "person",
            Content::Text => "text, terminal",
            Content::Soft => "soft",
        }
    }
}

/// Source of the detail that viewers see beyond the low layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DetailSource {
    /// The filters that every viewer has: the server does nothing.
    Filters,
    /// Enhanced anchors: a network in the server.
    Anchors,
    /// Stills of the publisher's own pixels, which it sends beside its layer.
    Stills,
}

/// Mean over clips, with the smallest and the largest value of any clip.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Mean over all clips.
    pub mean: f64,
    /// Smallest value of any clip.
    pub least: f64,
    /// Largest value of any clip.
    pub most: f64,
}

/// Gain of a way over the same video, sharpened, with anchors as late as the budget allows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Content of the clips.
    pub content: Content,
    /// Source of the detail.
    pub way: DetailSource,
    /// Latency budget from a frame to its anchor, ms.
    pub budget_ms: u32,
    /// Names of the measured clips.
    pub clips: Vec<String>,
    /// Difference in PSNR-Y, dB.
    pub psnr_y_db: Spread,
    /// Difference in VMAF-NEG; `None` if it was not measured.
    pub vmaf_neg: Option<Spread>,
    /// Bitrate of the anchors or stills beside the video, kbit/s.
    pub kbps: Spread,
}

/// All measured gains, and how they were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gains {
    /// Command that measured the gains.
    pub command: String,
    /// Day of the measurement.
    pub measured: String,
    /// Gains by content, way and budget.
    pub gains: Vec<Gain>,
}

impl Gains {
    /// Returns the gains that are shipped with the program.
    ///
    /// # Errors
    ///
    /// Fails only if the built-in file is damaged, which a test rules out.
    pub fn shipped() -> serde_json::Result<Gains> {
        serde_json::from_str(MEASURED)
    }

    /// Gain of a content and way under the longest measured budget that is at most `budget`. `None` if no measured
    /// budget is that short.
    pub fn of(&self, content: Content, way: DetailSource, budget: Duration) -> Option<&Gain> {
        let fits = |gain: &&Gain| {
            let measured = Duration::from_millis(gain.budget_ms.into());
            gain.content == content && gain.way == way && measured <= budget
        };
        self.gains.iter().filter(fits).max_by_key(|gain| gain.budget_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_the_gain_of_one_that_is_no_longer() {
        let gain = |budget_ms| Gain {
            content: Content::Person,
            way: DetailSource::Stills,
            budget_ms,
            clips: vec!["a".to_owned()],
            psnr_y_db: Spread { mean: 1.0, least: 0.5, most: 1.5 },
            vmaf_neg: None,
            kbps: Spread { mean: 30.0, least: 20.0, most: 40.0 },
        };
        let gains = Gains {
            command: String::new(),
            measured: String::new(),
            gains: vec![gain(100), gain(200)],
        };
        let of = |content, ms| {
            gains
                .of(content, DetailSource::Stills, Duration::from_millis(ms))
                .map(|gain| gain.budget_ms)
        };
        assert_eq!((of(Content::Person, 150), of(Content::Person, 600)), (Some(100), Some(200)));
        assert_eq!((of(Content::Person, 50), of(Content::Soft, 200)), (None, None));
    }

    #[test]
    fn what_is_shipped_is_of_whole_clips_and_its_means_lie_in_their_spreads() {
        let shipped = Gains::shipped().unwrap();
        assert!(!shipped.gains.is_empty());
        for gain in &shipped.gains {
            let spreads = [Some(gain.psnr_y_db), gain.vmaf_neg, Some(gain.kbps)];
            let inside = |s: Spread| s.least <= s.mean + 1e-9 && s.mean <= s.most + 1e-9;
            assert!(
                spreads.into_iter().flatten().all(inside) && !gain.clips.is_empty(),
                "{gain:?}"
            );
        }
    }
}
