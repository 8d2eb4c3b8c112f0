//! What enhancement gives, as it was measured on clips: nothing here is computed.

use serde::{Deserialize, Serialize};

/// Written from the figures in `lab/results` by a test of the laboratory.
const MEASURED: &str = include_str!("../gains.json");

/// What a picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// Somebody before a camera.
    Person,
    /// Small text: a terminal, a notebook.
    Text,
    /// Somebody out of focus.
    Soft,
}

impl Content {
    /// All, in the order of reports.
    pub const ALL: [Content; 3] = [Content::Person, Content::Text, Content::Soft];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Content::Person => "person",
            Content::Text => "text, terminal",
            Content::Soft => "soft",
        }
    }
}

/// Where the detail comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// The filters that every viewer has: the server does nothing.
    Filters,
    /// Enhanced anchors: a network in the server.
    Anchors,
    /// Stills of the publisher's own pixels, which it sends beside its layer.
    Stills,
}

/// A mean over clips, with the least and the most of any.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Of all clips.
    pub mean: f64,
    /// Of the clip that has least.
    pub least: f64,
    /// Of the clip that has most.
    pub most: f64,
}

/// What a way gave over the same video, sharpened, with anchors as late as the budget allows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// What was shown.
    pub content: Content,
    /// What gave it.
    pub way: Way,
    /// From a frame to its anchor.
    pub budget_ms: u32,
    /// The clips that were measured.
    pub clips: Vec<String>,
    /// Difference in PSNR-Y, dB.
    pub psnr_y_db: Spread,
    /// Difference in VMAF-NEG; nothing where it was not measured.
    pub vmaf_neg: Option<Spread>,
    /// What it took beside the video.
    pub kbps: Spread,
}

/// All that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gains {
    /// The command that measured them.
    pub command: String,
    /// The day.
    pub measured: String,
    /// The gains.
    pub gains: Vec<Gain>,
}

impl Gains {
    /// Those that the program brings.
    ///
    /// # Errors
    ///
    /// Never for a program whose tests passed.
    pub fn shipped() -> serde_json::Result<Gains> {
        serde_json::from_str(MEASURED)
    }

    /// What was measured of a content under the longest budget that is no longer than this; of a shorter one, nothing
    /// is known.
    pub fn of(&self, content: Content, way: Way, budget_ms: f64) -> Option<&Gain> {
        let fits = |gain: &&Gain| {
            gain.content == content && gain.way == way && f64::from(gain.budget_ms) <= budget_ms
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
            way: Way::Stills,
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
        let of = |content, ms| gains.of(content, Way::Stills, ms).map(|gain| gain.budget_ms);
        assert_eq!(
            (of(Content::Person, 150.0), of(Content::Person, 600.0)),
            (Some(100), Some(200))
        );
        assert_eq!((of(Content::Person, 50.0), of(Content::Soft, 200.0)), (None, None));
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
