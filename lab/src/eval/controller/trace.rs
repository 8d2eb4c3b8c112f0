//! The rate of the uplink over time.

use std::num::NonZeroU32;
use std::str::FromStr;

use anyhow::{Result, bail, ensure};

/// The rate of an uplink over time: `150`, or `300@0/100@6` (kbit/s, each from a second on).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trace {
    steps: Vec<(u32, NonZeroU32)>,
}

impl Trace {
    /// The bitrate in kbit/s at a second of the scene.
    pub(crate) fn at(&self, second: f64) -> f64 {
        let step = self.steps.iter().rfind(|(from, _)| f64::from(*from) <= second);
        step.map_or(0.0, |(_, kbps)| f64::from(kbps.get()))
    }
}

impl FromStr for Trace {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Trace> {
        let mut steps = Vec::new();
        for step in text.split('/') {
            let (kbps, from) = step.split_once('@').unwrap_or((step, "0"));
            let (Ok(kbps), Ok(from)) = (kbps.parse(), from.parse()) else {
                bail!(
                    "an uplink is kbit/s, or steps as 300@0/100@6 (from a second on), not {text:?}"
                );
            };
            steps.push((from, kbps));
        }
        let ordered = steps.windows(2).all(|pair| pair[0].0 < pair[1].0);
        ensure!(ordered && steps[0].0 == 0, "the steps of {text:?} must begin at 0 and ascend");
        Ok(Trace { steps })
    }
}

/// As on the command line.
impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let step = |&(from, kbps): &(u32, NonZeroU32)| match self.steps.len() {
            1 => kbps.to_string(),
            _ => format!("{kbps}@{from}"),
        };
        f.pad(&self.steps.iter().map(step).collect::<Vec<_>>().join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_holds_each_step_until_the_next() {
        let trace: Trace = "300@0/100@6".parse().unwrap();
        let rates: Vec<f64> = [0.0, 5.9, 6.0, 60.0].map(|s| trace.at(s)).into();
        assert_eq!(rates, [300.0, 300.0, 100.0, 100.0]);
        assert_eq!(trace.to_string(), "300@0/100@6");
        assert_eq!("150".parse::<Trace>().unwrap().to_string(), "150");
        for wrong in ["", "x", "0", "100@3", "100@0/200@0"] {
            assert!(wrong.parse::<Trace>().is_err(), "{wrong}");
        }
    }
}
