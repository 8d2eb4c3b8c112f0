//! The load tests of a calibration.

use std::fmt;

use anyhow::{Result, bail};
use clap::Parser;
use windlass_types::Size;

pub(super) use crate::loadtest::Taken;
use crate::loadtest::{self, LoadtestArgs};

/// The publishers and viewers of a load test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    /// The layer that is sent: `q` or `h`.
    pub layer: &'static str,
    /// Number of publishers, each in a room of its own.
    pub publishers: u32,
    /// Number of viewers in each room.
    pub viewers: u32,
    /// Latency budget of anchors in ms; `None`: there are none.
    pub budget_ms: Option<u32>,
}

const fn run(layer: &'static str, publishers: u32, viewers: u32, budget_ms: Option<u32>) -> Run {
    Run { layer, publishers, viewers, budget_ms }
}

/// The load tests that constants are fitted to.
pub(super) const FITTED: [Run; 8] = [
    run("q", 4, 1, None),
    run("q", 12, 1, None),
    run("q", 12, 4, None),
    run("h", 8, 2, None),
    run("q", 12, 1, Some(200)),
    run("h", 4, 1, Some(200)),
    run("q", 8, 1, Some(100)),
    run("q", 8, 1, Some(500)),
];

/// The load tests that constants are checked with: other numbers of publishers and viewers.
pub(super) const CHECKED: [Run; 2] = [run("q", 20, 2, Some(200)), run("h", 6, 3, Some(200))];

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { layer, publishers, viewers, budget_ms } = self;
        write!(f, "{publishers} publishers of {layer}, {viewers} viewers of each, ")?;
        match budget_ms {
            Some(ms) => write!(f, "anchors within {ms} ms"),
            None => write!(f, "no anchors"),
        }
    }
}

/// The options of a load test, as `windlass-lab loadtest` takes them.
#[derive(Parser)]
struct Words {
    #[command(flatten)]
    args: LoadtestArgs,
}

impl Run {
    /// Size of the layer that is sent.
    pub(super) fn size(self) -> Size {
        if self.layer == "q" { Size::new(320, 180) } else { Size::new(640, 360) }
    }

    /// Runs the load test on a server of our own.
    pub(super) fn play(self, seconds: u32) -> Result<Taken> {
        let Run { layer, publishers, viewers, budget_ms } = self;
        let mut words: Vec<String> =
            ["loadtest", "--own", "--layers", layer].map(String::from).into();
        let mut option = |name: &str, value: u32| {
            words.extend([format!("--{name}"), value.to_string()]);
        };
        option("publishers", publishers);
        option("subscribers", viewers);
        option("seconds", seconds);
        option("ramp", 2);
        option("clip-seconds", 4);
        option("budget-ms", budget_ms.unwrap_or(200));
        if budget_ms.is_none() {
            words.push("--no-anchors".to_owned());
        }
        words.extend(["--", "--network", "xs"].map(String::from));
        words.extend(budget_ms.map(|ms| format!("--budget={ms}ms")));
        let args = Words::try_parse_from(&words)?.args;
        let outcome = loadtest::play(&args)?;
        if let Some(interrupted) = outcome.interrupted {
            bail!("{self}: {interrupted}");
        }
        outcome.taken()
    }
}
