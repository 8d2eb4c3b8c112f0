//! The page of the papers' figures, `docs/papers.md`: every number once, and commands that this program takes.

use std::path::Path;

use clap::Parser;

use super::{Cli, Command};

/// The last number of each kind that a text has, by the section of the page.
const LAST: [(&str, &str, u32); 11] = [
    ("NeuroScaler", "Figure ", 32),
    ("NeuroScaler", "Table ", 8),
    ("DDS", "Figure 1.", 2),
    ("DDS", "Figure 3.", 4),
    ("DDS", "Table 3.", 1),
    ("OneAdapt", "Figure 4.", 7),
    ("OneAdapt", "Table 4.", 2),
    ("PrefillOnly", "Figure 5.", 7),
    ("PrefillOnly", "Table 5.", 3),
    ("ARISE", "Figure ", 22),
    ("ZARN", "Figure ", 9),
];

/// What a row may say of its figures.
const STATES: [&str; 5] = [
    "reproduced",
    "reproduced, simulated",
    "not reached, measured",
    "not reached, not measured",
    "not applicable",
];

/// The repository's folder.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The page.
fn page() -> String {
    std::fs::read_to_string(root().join("docs/papers.md")).unwrap()
}

#[test]
fn each_figure_and_table_of_the_papers_has_one_row_with_a_state() {
    let mut found = Vec::new();
    let page = page();
    for section in page.split("\n## ").skip(1) {
        let (title, rows) = section.split_once('\n').unwrap();
        for row in rows.lines() {
            let cells: Vec<&str> = row.split(" | ").collect();
            let Some(numbers) = cells[0].strip_prefix("| ") else { continue };
            if numbers.starts_with(['F', 'T', '§']) {
                assert!(cells.len() == 6 && STATES.contains(&cells[2]), "{row}");
                found.extend(numbers.split(", ").map(|number| format!("{title}, {number}")));
            }
        }
    }
    found.retain(|number| !number.contains('§'));
    let all = |&(title, kind, last): &(&str, &str, u32)| {
        (1..=last).map(|number| format!("{title}, {kind}{number}")).collect::<Vec<_>>()
    };
    let mut wanted: Vec<String> = LAST.iter().flat_map(all).collect();
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
}

#[test]
fn this_program_takes_each_command_of_the_papers_page() {
    let page = page();
    let code = page.split('`').skip(1).step_by(2);
    let commands: Vec<&str> = code.filter(|text| text.starts_with("windlass-lab ")).collect();
    assert!(commands.len() > 30, "{commands:?}");
    for command in commands {
        let words = command.split_whitespace();
        for file in
            words.clone().filter(|word| Path::new(word).extension().is_some_and(|e| e == "yaml"))
        {
            assert!(root().join(file).exists(), "{command}");
        }
        let cli = Cli::try_parse_from(words).unwrap_or_else(|e| panic!("{command}: {e}"));
        if let Command::Eval(args) = cli.command {
            args.check().unwrap_or_else(|e| panic!("{command}: {e:#}"));
        }
    }
}
