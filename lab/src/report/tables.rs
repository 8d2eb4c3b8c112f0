//! The tables of a subject, `lab/results/SUBJECT.json`, as Markdown.
//!
//! A column whose title has `{clip}` is repeated for every clip that was shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::drawing::Drawing;
use super::figures::Figures;
use super::{files, json};

/// What one section of a page rests on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Subject {
    /// What was run.
    command: String,
    /// On which machine of `docs/benchmarks.md`.
    machine: String,
    /// When.
    measured: String,
    /// By name.
    tables: BTreeMap<String, Table>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    /// The plot beside it.
    drawing: Option<Drawing>,
}

/// A table as pages show it.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// Its Markdown, with what it rests on, and with a link to the plot.
    pub markdown: String,
    /// The plot, and the picture's name in `docs/pictures`.
    pub picture: Option<(String, String)>,
}

/// All tables of all subjects, by name.
pub(super) fn read(results: &Path) -> Result<BTreeMap<String, Shown>> {
    let figures = Figures::read(results)?;
    let mut all = BTreeMap::new();
    for file in files(results, "json")? {
        let named = || file.display().to_string();
        let subject: Subject = serde_json::from_value(json(&file)?).with_context(named)?;
        for (name, table) in &subject.tables {
            let shown = subject.shown(name, table, &figures);
            let shown = shown.with_context(|| format!("{}: {name}", named()))?;
            ensure!(all.insert(name.clone(), shown).is_none(), "two tables are named {name}");
        }
    }
    Ok(all)
}

/// One subject's tables, each with what it rests on.
pub(super) fn of_subject(value: Value, figures: &Figures) -> Result<String> {
    let subject: Subject = serde_json::from_value(value)?;
    let mut out = String::new();
    for table in subject.tables.values() {
        out += &table.markdown(figures)?;
        out.push('\n');
    }
    out += &subject.origin();
    Ok(out)
}

impl Subject {
    fn shown(&self, name: &str, table: &Table, figures: &Figures) -> Result<Shown> {
        let mut markdown = format!("{}\n{}", table.markdown(figures)?, self.origin());
        let Some(drawing) = &table.drawing else { return Ok(Shown { markdown, picture: None }) };
        let picture = format!("{name}.svg");
        // Writing to a String cannot fail.
        let _ = writeln!(markdown, "\n![{}](pictures/{picture})", drawing.title);
        Ok(Shown { markdown, picture: Some((picture, drawing.svg(figures)?)) })
    }

    /// Machine, day and command.
    fn origin(&self) -> String {
        format!("Machine {}, {}: {}.\n", self.machine, self.measured, self.command)
    }
}

impl Table {
    fn markdown(&self, figures: &Figures) -> Result<String> {
        let mut rows = vec![self.line(&self.columns, figures)?];
        rows.push(rows[0].iter().map(|_| "---".to_owned()).collect());
        for row in &self.rows {
            let columns = self.columns.len();
            ensure!(row.len() == columns, "a row has {} cells, not {columns}: {row:?}", row.len());
            rows.push(self.line(row, figures)?);
        }
        Ok(markdown(&rows))
    }

    fn line(&self, cells: &[String], figures: &Figures) -> Result<Vec<String>> {
        let mut line = Vec::new();
        for (cell, title) in cells.iter().zip(&self.columns) {
            if title.contains("{clip}") {
                for clip in figures.clips() {
                    line.push(figures.fill(&cell.replace("{clip}", clip))?);
                }
            } else {
                line.push(figures.fill(cell)?);
            }
        }
        Ok(line)
    }
}

/// Lines of cells; an empty cell is one blank.
pub(super) fn markdown(rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    for row in rows {
        for cell in row {
            out += "| ";
            out += cell;
            out += if cell.is_empty() { "" } else { " " };
        }
        out += "|\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::figures::tests::figures;

    #[test]
    fn a_column_of_clips_is_repeated_and_cells_have_their_figures() {
        let subject = json!({"command": "eval", "machine": "A", "measured": "today", "tables": {"t": {
            "columns": ["", "{clip}", "mean of {clips}"],
            "rows": [["`q`", "{display/{clip}/q/f/vmaf_neg/bd_quality:+1}", "**x**"]],
        }}});
        assert_eq!(
            of_subject(subject, &figures()).unwrap(),
            "| | a | b | mean of two |\n| --- | --- | --- | --- |\n| `q` | +7.5 | +7.5 | **x** |\n\nMachine A, today: eval.\n"
        );
    }

    #[test]
    fn a_row_has_as_many_cells_as_there_are_columns() {
        let table = Table {
            columns: vec!["a".into()],
            rows: vec![vec!["1".into(), "2".into()]],
            drawing: None,
        };
        assert!(table.markdown(&figures()).is_err());
    }
}
