//! `windlass-lab report`: the tables of the pages, from the figures in `lab/results`.
//!
//! In: `lab/results/*.json`, the tables of a subject, whose cells name figures ([`tables`]); and what commands printed
//! with `--json` (`lab/results/figures`, `lab/results/display`), which has them ([`figures`]). Out: Markdown between
//! the markers of a page ([`pages`]), and the plots beside the tables ([`drawing`]). Nothing is measured here.

mod display;
mod drawing;
mod figures;
mod files;
mod number;
mod pages;
mod printed;
mod tables;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

use self::figures::Figures;
use self::files::{files, json};

/// Write the tables of docs/benchmarks.md and lab/notes from the figures in lab/results.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReportArgs {
    /// Print the tables of this file alone: a subject of lab/results, or what a command printed with --json.
    #[arg(value_name = "FILE.json", conflicts_with = "check")]
    file: Option<PathBuf>,

    /// Change nothing; fail if a page differs from its figures.
    #[arg(long)]
    check: bool,

    /// The checkout that pages and results are in.
    #[arg(long, default_value = ".", value_name = "DIR")]
    root: PathBuf,
}

/// Prints one file's tables, or brings the pages up to date.
pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    if let Some(file) = &args.file {
        print!("{}", of_file(file)?);
        return Ok(());
    }
    let mut stale = pages::read(&args.root)?;
    stale.retain(|page| page.now != page.wanted);
    if args.check {
        let names: Vec<_> = stale.iter().map(|page| page.path.display().to_string()).collect();
        let names = names.join(", ");
        ensure!(names.is_empty(), "not as lab/results says; run `windlass-lab report`: {names}");
    }
    for page in stale {
        std::fs::write(&page.path, &page.wanted)
            .with_context(|| format!("writing {}", page.path.display()))?;
        eprintln!("wrote {}", page.path.display());
    }
    Ok(())
}

fn of_file(file: &Path) -> Result<String> {
    let value = json(file)?;
    if value.get("tables").is_none() {
        return printed::markdown(&value).with_context(|| file.display().to_string());
    }
    let figures = Figures::read(file.parent().unwrap_or(Path::new(".")))?;
    tables::of_subject(value, &figures).with_context(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_as_their_figures_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        run(&ReportArgs { file: None, check: true, root }).unwrap();
    }

    #[test]
    fn every_file_of_results_can_be_printed_alone() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
        for folder in [results.clone(), results.join("figures"), results.join("display")] {
            for file in files(&folder, "json").unwrap() {
                assert!(of_file(&file).unwrap().contains("| --- |"), "{}", file.display());
            }
        }
    }
}
