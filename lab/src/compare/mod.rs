//! `windlass-lab compare`: which of several sets of pictures people like better, without knowing which is which.
//!
//! In: folders with files of the same names. Out: a page that shows pairs and keeps what was chosen as a JSON file; of
//! such files, how often each set was preferred, and how sure that is.

mod page;
mod result;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};

use page::Set;

/// Show people pairs of pictures or clips without their names, and say what they prefer.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: CompareCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum CompareCommand {
    /// Write a page with all pairs of files that two sets have by the same name.
    ///
    /// The page needs nothing but its folder: open index.html, or serve the folder. Order and sides are drawn anew in
    /// each browser. Keys: left, right, space for equal. At the end the browser saves the answers.
    Page {
        /// Sets: at least two.
        #[arg(required = true, num_args = 2.., value_name = "NAME=FOLDER")]
        sets: Vec<Set>,
        /// Where the page goes: a folder that is not there yet.
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
    },
    /// Say what the answers of one or more people come to.
    Result {
        /// What the page saved.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Print one JSON object instead of a table.
        #[arg(long)]
        json: bool,
    },
}

/// Text at the end of the command's long help.
const EXAMPLES: &str = "\
Examples:
  windlass-lab compare page faithful=crops/faithful natural=crops/natural --out blind
  windlass-lab compare result windlass-compare-*.json";

/// Writes the page, or prints the result.
pub(crate) fn run(args: &CompareArgs) -> Result<()> {
    match &args.command {
        CompareCommand::Page { sets, out } => {
            let pairs = page::write(sets, out)?;
            eprintln!("{pairs} pairs in {}", out.join("index.html").display());
        }
        CompareCommand::Result { files, json } => {
            let found = result::read(files)?;
            if *json {
                println!("{}", serde_json::to_string(&found)?);
            } else {
                print!("{}", result::table(&found));
            }
        }
    }
    Ok(())
}
