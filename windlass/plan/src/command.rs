//! The command line of `windlass plan`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use thiserror::Error;
use windlass_types::Size;

use crate::constants::{Constants, ConstantsError};
use crate::gains::Gains;
use crate::model::Demand;
use crate::report::Report;

/// Latency budgets that a server accepts.
const BUDGETS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(50)..=Duration::from_secs(2);

/// Arguments of `windlass plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Publishers, each with a camera
    #[arg(long, value_name = "N", value_parser = count)]
    publishers: u32,

    /// Viewers of each publisher, every one with a connection of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    viewers: u32,

    /// Size of the layer that is sent and enhanced
    #[arg(long, value_name = "WxH", default_value = "320x180", value_parser = layer)]
    layer: Size,

    /// Latency budget of anchors, 50ms to 2s
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = budget)]
    budget: Duration,

    /// Latency budget of anchors in milliseconds
    #[arg(long, value_name = "MS", value_parser = budget_ms, hide = true, conflicts_with = "budget")]
    budget_ms: Option<Duration>,

    /// What a core costs an hour, in euro
    #[arg(long, value_name = "EURO", value_parser = euro, allow_negative_numbers = true)]
    euro_core: Option<f64>,

    /// Constants of your machine, which `windlass-lab calibrate FILE` writes [default: ours, of a machine that is
    /// named]
    #[arg(long, value_name = "FILE")]
    constants: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Why there is no plan.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The constants cannot be used.
    #[error(transparent)]
    Constants(#[from] ConstantsError),
    /// The built-in constants are damaged, or the plan cannot be printed.
    #[error("the plan cannot be made or printed: {0}")]
    Json(#[from] serde_json::Error),
}

impl PlanArgs {
    /// Returns the plan as text or JSON.
    ///
    /// # Errors
    ///
    /// Fails if the constants cannot be used.
    pub fn run(&self) -> Result<String, PlanError> {
        let constants = match &self.constants {
            Some(path) => Constants::read(path)?,
            None => Constants::shipped()?,
        };
        let from = match &self.constants {
            Some(path) => path.display().to_string(),
            None => "those of the program (--constants FILE: your machine's)".to_owned(),
        };
        let gains = Gains::shipped()?;
        let demand = Demand {
            publishers: self.publishers,
            viewers: self.viewers,
            layer: self.layer,
            budget: self.budget_ms.unwrap_or(self.budget),
        };
        let report = Report::new(&constants, from, &gains, demand, self.euro_core);
        Ok(if self.json { serde_json::to_string(&report)? + "\n" } else { report.text() })
    }
}

fn count(text: &str) -> Result<u32, String> {
    let fits = |n: &NonZeroU32| n.get() <= 1_000_000;
    let number = text.parse::<NonZeroU32>().ok().filter(fits);
    number.map(NonZeroU32::get).ok_or_else(|| "write a whole number from 1 to 1000000".to_owned())
}

fn layer(text: &str) -> Result<Size, String> {
    let sides = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    match sides {
        Some((width @ 64..=1920, height @ 36..=1080)) => Ok(Size::new(width, height)),
        Some(_) => Err(format!("`{text}` is no size of a layer: from 64x36 to 1920x1080")),
        None => Err(format!("`{text}` is no size: write width and height, as 320x180")),
    }
}

fn budget(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|_| {
        format!("`{text}` is no time: write a number with its unit, such as 200ms or 1s")
    })?;
    if BUDGETS.contains(&time) { Ok(time) } else { Err("a budget is 50ms to 2s".to_owned()) }
}

fn budget_ms(text: &str) -> Result<Duration, String> {
    budget(&format!("{text}ms"))
}

fn euro(text: &str) -> Result<f64, String> {
    let price = text.parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0);
    price.ok_or_else(|| format!("`{text}` is no price: write euro for an hour, as 0.02"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        args: PlanArgs,
    }

    fn run(words: &[&str]) -> Result<String, String> {
        let cli = Cli::try_parse_from([&["plan"], words].concat()).map_err(|e| e.to_string())?;
        cli.args.run().map_err(|e| e.to_string())
    }

    #[test]
    fn wrong_values_are_refused_in_the_words_of_the_option() {
        let error = |words: &[&str]| run(words).unwrap_err();
        assert!(error(&[]).contains("--publishers"));
        assert!(error(&["--publishers", "0"]).contains("from 1 to 1000000"));
        assert!(error(&["--publishers", "5", "--layer", "big"]).contains("as 320x180"));
        assert!(error(&["--publishers", "5", "--budget", "200"]).contains("200ms or 1s"));
        assert!(error(&["--publishers", "5", "--budget", "10s"]).contains("50ms to 2s"));
        assert!(error(&["--publishers", "5", "--euro-core", "-1"]).contains("as 0.02"));
        let missing = error(&["--publishers", "5", "--constants", "/no/such"]);
        assert!(missing.starts_with("cannot read the constants in /no/such"), "{missing}");
    }

    #[test]
    fn a_layer_is_two_sides() {
        assert_eq!(layer("320x180"), Ok(Size::new(320, 180)));
        let error = |text| layer(text).unwrap_err();
        assert!(error("320").contains("as 320x180") && error("ax1").contains("as 320x180"));
        assert!(error("8x8").contains("from 64x36") && error("4000x2000").contains("from 64x36"));
    }

    #[test]
    fn json_and_text_name_the_constants_and_the_price_is_only_there_if_it_was_given() {
        let text = run(&["--publishers", "50", "--viewers", "3"]).unwrap();
        assert!(text.starts_with("50 publishers of 320x180, 3 viewers of each, budget 200 ms\n"));
        assert!(
            text.contains("constants: those of the program") && !text.contains("euro"),
            "{text}"
        );
        let json = run(&["--publishers", "50", "--euro-core", "0.02", "--json"]).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["demand"]["layer"], "320x180");
        assert_eq!(json["demand"]["budget_ms"], 200.0);
        assert_eq!(json["curve"][0]["budget_ms"], 100.0);
        assert!(json["cost"]["euro_hour"][0].as_f64() > Some(0.0));
        assert_eq!(json["curve"].as_array().map(Vec::len), Some(3));
        assert!(json["constants"]["machine"]["cpu"].is_string());
    }

    #[test]
    fn a_plan_says_which_limits_would_be_in_its_way_and_what_was_not_measured() {
        let words = ["--publishers", "600", "--layer", "1920x1080", "--budget", "2s"];
        let text = run(&words).unwrap();
        for note in [
            "--max-enhanced 600",
            "--max-total-participants 1200",
            "1920x1080 is",
            "2000 ms was not",
        ] {
            assert!(text.contains(note), "{note}: {text}");
        }
    }

    #[test]
    fn the_sample_of_the_page_is_what_is_printed() {
        const BEGINS: &str = "$ windlass plan --publishers 50 --viewers 3 --euro-core 0.02\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sizing.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once(BEGINS).unwrap();
        let (_, after) = rest.split_once("```").unwrap();
        let printed =
            run(&["--publishers", "50", "--viewers", "3", "--euro-core", "0.02"]).unwrap();
        windlass_files::hold(path, format!("{before}{BEGINS}{printed}```{after}"));
    }
}
