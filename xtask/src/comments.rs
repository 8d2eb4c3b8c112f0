//! Comments of Rust: lines that fit on a screen, and documentation that stands alone. Whoever lands on a sentence by
//! search sees neither the item above it nor the one below.

use anyhow::{Context, Result, bail};

use crate::process::step;
use crate::{root, source};

/// Characters that a line of comment may have. Rows of tables and lines without blanks cannot be broken.
const MAX_CHARACTERS: usize = 120;

/// How a sentence begins that leans on what stands above it.
const LEANS: &[&str] = &[
    "Its ",
    "Of ",
    "Those ",
    "That of ",
    "The same.",
    "The same,",
    "The same for ",
    "The same in ",
    "The same of ",
    "The same on ",
    "The same until ",
    "The same with ",
    "See the module",
    "As many",
    "So many",
    "So ",
    "And ",
    "They ",
    "Theirs",
    "Whose ",
    "One of so many",
];

/// Fails where a line of comment is too long, or documentation begins by leaning on something else.
pub(crate) fn check() -> Result<()> {
    step("Reading the comments");
    let mut wrong = Vec::new();
    for file in source::of_project("rs", source::is_of_others)? {
        let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        let text = std::fs::read_to_string(&file).with_context(|| format!("reading {name}"))?;
        wrong.extend(faults(&text).map(|(line, why)| format!("{name}:{line}: {why}")));
    }
    if wrong.is_empty() { Ok(()) } else { bail!("comments:\n{}", wrong.join("\n")) }
}

/// The lines of a file, counted from 1, that are wrong, and why.
fn faults(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut within = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let line = line.trim_end();
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            within = false;
            return None;
        };
        let length = line.chars().count();
        let words = comment.trim_start_matches(['/', '!']).trim_start();
        if length > MAX_CHARACTERS && !words.starts_with('|') && words.contains(' ') {
            return Some((at + 1, format!("{length} characters; break it at {MAX_CHARACTERS}")));
        }
        let opens = comment.starts_with(['/', '!']) && !within;
        within = comment.starts_with(['/', '!']);
        let leans = LEANS.iter().find(|&&lean| opens && words.starts_with(lean))?;
        Some((at + 1, format!("begins with `{}`: name the thing", leans.trim_end())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        faults(text).map(|(line, _)| line).collect()
    }

    #[test]
    fn documentation_that_leans_on_what_stands_above_is_found() {
        let text = "/// The queue's length.\n/// Its unit is bytes.\nconst A: usize = 1;\n/// Its unit.\nconst B: usize = 1;\n";
        assert_eq!(lines(text), [4]);
        assert_eq!(
            lines("// Its reason: a plain comment may say more of the line above.\n"),
            Vec::<usize>::new()
        );
    }

    #[test]
    fn lines_that_are_too_long_are_found_but_for_tables() {
        let long = "word ".repeat(30);
        assert_eq!(
            lines(&format!("// {long}\n/// | {long}\n    //! {long}\nlet s = \"{long}\";\n")),
            [1, 3]
        );
    }
}
