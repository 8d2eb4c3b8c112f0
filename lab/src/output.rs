//! The output of a command: a table or JSON on standard output, and a page.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use crate::interrupt::Interrupted;
use crate::page::Contents;

/// The options of what is printed and written.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Output {
    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub json: bool,

    /// Write the report as a page too, with its curves.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// A report, and whether Ctrl-C ended the measurement.
#[derive(Debug, Serialize)]
struct Ended<'a, R> {
    #[serde(flatten)]
    report: &'a R,
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted: Option<Interrupted>,
}

impl Output {
    /// Prints the report, and writes its page. `table` is for people; `contents` are what the page has besides.
    pub(crate) fn put<R: Serialize>(
        &self,
        report: &R,
        interrupted: Option<Interrupted>,
        table: &str,
        contents: impl FnOnce() -> Contents,
    ) -> Result<()> {
        let said = interrupted.map(|interrupted| interrupted.to_string());
        if let Some(path) = &self.html {
            let mut contents = contents();
            contents.about = std::iter::once("windlass-lab".to_owned())
                .chain(std::env::args().skip(1))
                .collect::<Vec<_>>()
                .join(" ");
            let title = serde_json::to_value(report)?;
            let title = format!("windlass-lab {}", title["command"].as_str().unwrap_or_default());
            let page = contents.page(&title, said.as_deref(), table);
            std::fs::write(path, page).with_context(|| format!("writing {}", path.display()))?;
            eprintln!("wrote {}", path.display());
        }
        if self.json {
            println!("{}", json(report, interrupted)?);
        } else {
            print!("{table}");
            if let Some(said) = said {
                println!("\n{said}");
            }
        }
        Ok(())
    }
}

/// The report as one line of JSON.
pub(crate) fn json<R: Serialize>(
    report: &R,
    interrupted: Option<Interrupted>,
) -> serde_json::Result<String> {
    serde_json::to_string(&Ended { report, interrupted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_says_that_it_was_interrupted_only_where_it_was() {
        #[derive(Serialize)]
        struct Report {
            command: &'static str,
        }
        let report = Report { command: "bench x" };
        assert_eq!(json(&report, None).unwrap(), r#"{"command":"bench x"}"#);
        let interrupted = Interrupted { after: 2, of: 5, unit: "cases" };
        let said = json(&report, Some(interrupted)).unwrap();
        assert!(said.ends_with(r#""interrupted":{"after":2,"of":5,"unit":"cases"}}"#), "{said}");
    }
}
