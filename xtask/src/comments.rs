//! Comments of Rust and scripts: lines that fit on a screen, and documentation that stands alone. Whoever lands on a
//! sentence by search sees neither the item above it nor the one below.

use anyhow::{Context, Result, bail};

use crate::process::step;
use crate::{root, source};

/// Characters that a line of comment may have. Rows of tables and lines without blanks cannot be broken.
const MAX_CHARACTERS: usize = 120;

/// Finds the comment of a line.
type Find = fn(&str) -> Option<Comment<'_>>;

/// The extensions of the files that are read, how comments are found in them, and the maximum of characters. Scripts of
/// tests have wider lines, of code too.
const READ: [(&str, Find, usize); 4] = [
    ("rs", of_rust, MAX_CHARACTERS),
    ("ts", of_script, MAX_CHARACTERS),
    ("tsx", of_script, MAX_CHARACTERS),
    ("mjs", of_script, usize::MAX),
];

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
    "The same where ",
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

/// A line of comment.
struct Comment<'a> {
    words: &'a str,
    is_doc: bool,
    /// Whether it opens a comment, whatever stands in the line before.
    opens: bool,
}

/// Fails where a line of comment is too long, or documentation begins by leaning on something else.
pub(crate) fn check() -> Result<()> {
    step("Reading the comments");
    let mut wrong = Vec::new();
    for (extension, find, max) in READ {
        for file in source::of_project(extension, is_left_out)? {
            let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
            let text = std::fs::read_to_string(&file).with_context(|| format!("reading {name}"))?;
            let faults = faults(&text, find, max);
            wrong.extend(faults.map(|(line, why)| format!("{name}:{line}: {why}")));
        }
    }
    if wrong.is_empty() { Ok(()) } else { bail!("comments:\n{}", wrong.join("\n")) }
}

/// Whether a file or folder, by its path from the root, is not read: generated files, and the types of npm packages,
/// have the comments of their source.
fn is_left_out(path: &str) -> bool {
    source::is_of_others(path) || path.contains(".gen.") || path.ends_with("/types")
}

/// The lines of a file, counted from 1, that are wrong, and why.
fn faults(text: &str, find: Find, max: usize) -> impl Iterator<Item = (usize, String)> {
    let mut within = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let Some(Comment { words, is_doc, opens }) = find(line.trim()) else {
            within = false;
            return None;
        };
        let length = line.trim_end().chars().count();
        if length > max && !words.starts_with('|') && words.contains(' ') {
            return Some((at + 1, format!("{length} characters; break it at {max}")));
        }
        let begins = is_doc && !words.is_empty() && (opens || !within);
        within = is_doc && (begins || within && !opens);
        let leans = LEANS.iter().find(|&&lean| begins && words.starts_with(lean))?;
        Some((at + 1, format!("begins with `{}`: name the thing", leans.trim_end())))
    })
}

/// The comment of a line of Rust.
fn of_rust(line: &str) -> Option<Comment<'_>> {
    let comment = line.strip_prefix("//")?;
    let words = comment.trim_start_matches(['/', '!']).trim_start();
    Some(Comment { words, is_doc: comment.starts_with(['/', '!']), opens: false })
}

/// The comment of a line of TypeScript or JavaScript, whose documentation is in `/** … */`.
fn of_script(line: &str) -> Option<Comment<'_>> {
    let opens = line.starts_with("/**");
    let marks = ["/**", "/*", "*", "//"];
    let comment = marks.iter().find_map(|mark| line.strip_prefix(mark))?;
    let words = comment.trim_end_matches('/').trim_end_matches('*').trim();
    Some(Comment { words, is_doc: opens || line.starts_with('*'), opens })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, find: Find) -> Vec<usize> {
        faults(text, find, MAX_CHARACTERS).map(|(line, _)| line).collect()
    }

    #[test]
    fn documentation_that_leans_on_what_stands_above_is_found() {
        let text = "/// The queue's length.\n/// Its unit is bytes.\nconst A: usize = 1;\n/// Its unit.\nconst B: usize = 1;\n";
        assert_eq!(lines(text, of_rust), [4]);
        let plain = "// Its reason: a plain comment may say more of the line above.\n";
        assert_eq!(lines(plain, of_rust), Vec::<usize>::new());
    }

    #[test]
    fn documentation_of_scripts_is_read_as_that_of_rust() {
        let text = "/** See the module's head. */\nclass A {\n  /**\n   * Its length.\n   */\n  a = 1;\n}\n";
        assert_eq!(lines(text, of_script), [1, 4]);
        let two = "/** The head of the module. */\n/** The same of another. */\nlet a = 1;\n";
        assert_eq!(lines(two, of_script), [2]);
        let stands = "/**\n * The queue's length.\n * Its unit is bytes.\n */\n// Its reason.\n/* As large as it is. */\n";
        assert_eq!(lines(stands, of_script), Vec::<usize>::new());
    }

    #[test]
    fn lines_that_are_too_long_are_found_but_for_tables() {
        let long = "word ".repeat(30);
        let rust = format!("// {long}\n/// | {long}\n    //! {long}\nlet s = \"{long}\";\n");
        assert_eq!(lines(&rust, of_rust), [1, 3]);
        let script = format!("/** {long}*/\n/**\n * {long}\n */\nlet s = \"{long}\";\n");
        assert_eq!(lines(&script, of_script), [1, 3]);
    }
}
