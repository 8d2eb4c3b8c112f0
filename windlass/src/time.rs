//! Durations in options, with their unit: `200ms`, `30s`, `1h`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A duration with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time(pub Duration);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |_| {
            format!("`{text}` is no time: write a number with its unit, such as 200ms, 30s or 1h")
        };
        humantime::parse_duration(text).map(Time).map_err(wrong)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}
