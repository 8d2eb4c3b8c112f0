//! Sentences of the pages: one with more than [`MAX_WORDS`] words is hard for people who read English as a second
//! language.
//!
//! Code blocks, quotations and the targets of links do not count. Code within a sentence counts as one word. Each cell
//! of a table is a paragraph of its own.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::process::step;
use crate::{root, source};

/// Maximum number of words in a sentence.
const MAX_WORDS: usize = 25;

/// The page that is written from the declarations in `windlass/src/config`.
const OPTIONS: &str = "docs/options.md";

/// Records, which may be denser: changes by version, and notes of measurements.
const RECORDS: [&str; 2] = ["docs/CHANGELOG.md", "lab/notes"];

/// A paragraph, heading, item of a list or cell of a table: the line at which it begins, counted from 1, and its text.
type Block = (usize, String);

/// Fails where a sentence of a page of the project is too long.
pub(crate) fn check() -> Result<()> {
    step("Counting the words of the pages' sentences");
    let mut wrong = Vec::new();
    for page in pages()? {
        let name = page.strip_prefix(root()).unwrap_or(&page).display().to_string();
        let text = std::fs::read_to_string(&page).with_context(|| format!("reading {name}"))?;
        for (line, sentence) in too_long(&text) {
            wrong.push(format!("{name}:{line}: {sentence}"));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        let hint = format!("{OPTIONS} is written from windlass/src/config");
        bail!(
            "sentences of more than {MAX_WORDS} words ({hint}); make two of each:\n{}",
            wrong.join("\n")
        )
    }
}

/// The Markdown files of the project, but those that are left out.
pub(crate) fn pages() -> Result<Vec<PathBuf>> {
    source::of_project("md", is_left_out)
}

/// Whether a file or folder, by its path from the root, is not read.
fn is_left_out(path: &str) -> bool {
    source::is_of_others(path) || RECORDS.contains(&path)
}

/// The sentences of a page that are too long, and the line at which the paragraph of each begins.
fn too_long(page: &str) -> Vec<(usize, String)> {
    let long = |sentence: &String| words(sentence) > MAX_WORDS;
    let of = |(line, text): Block| {
        sentences(&text).into_iter().filter(long).map(move |sentence| (line, sentence))
    };
    blocks(page).into_iter().flat_map(of).collect()
}

/// A page's blocks, without code, HTML and quotations.
///
/// Code is fenced, or begins after an empty line and is indented by four spaces.
fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut in_code, mut is_open) = (false, false);
    for (at, line) in page.lines().enumerate() {
        let text = line.trim();
        let is_indented = !is_open && line.starts_with("    ") && item(text).is_none();
        if text.starts_with("```") || text.starts_with("~~~") {
            in_code = !in_code;
            is_open = false;
        } else if in_code || is_indented || text.is_empty() || text.starts_with(['<', '>']) {
            is_open = false;
        } else if text.starts_with('|') {
            let cells = text.split('|');
            found.extend(cells.map(|cell| (at + 1, cell.trim().to_owned())));
            is_open = false;
        } else if text.starts_with('#') {
            found.push((at + 1, text.trim_start_matches('#').trim().to_owned()));
            is_open = false;
        } else if let Some(item) = item(text) {
            found.push((at + 1, item.to_owned()));
            is_open = true;
        } else if let Some((_, block)) = found.last_mut().filter(|_| is_open) {
            block.push(' ');
            block.push_str(text);
        } else {
            found.push((at + 1, text.to_owned()));
            is_open = true;
        }
    }
    found
}

/// The text behind a list item's mark, if the line begins with one.
fn item(text: &str) -> Option<&str> {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = digits.strip_prefix(". ").filter(|_| digits.len() < text.len());
    numbered.or_else(|| ["- ", "* ", "+ "].iter().find_map(|mark| text.strip_prefix(mark)))
}

/// A block's sentences, without the targets of links, and with a word of one letter for code.
///
/// A point, question or exclamation mark ends a sentence where the next word does not go on in small letters, as after
/// "incl.".
fn sentences(block: &str) -> Vec<String> {
    let text = without_targets(&without_code(block));
    let all: Vec<&str> = text.split_whitespace().collect();
    let (mut found, mut open) = (Vec::new(), Vec::new());
    for (at, word) in all.iter().enumerate() {
        open.push(*word);
        let ends = word.trim_end_matches(['*', '_', ')', '"', ']', '”', '\'']);
        let next =
            all.get(at + 1).map(|next| next.trim_start_matches(['*', '_', '(', '"', '[', '“']));
        let goes_on = next.is_some_and(|next| next.starts_with(char::is_lowercase));
        if next.is_none() || ends.ends_with(['.', '?', '!']) && !goes_on {
            found.push(open.join(" "));
            open.clear();
        }
    }
    found
}

/// `text` with a letter in place of each piece of code in it.
fn without_code(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    pieces.map(|(at, piece)| if at % 2 == 0 { piece } else { "X" }).collect()
}

/// `text` with `[name]` in place of `[name](target)`.
fn without_targets(text: &str) -> String {
    let mut parts = text.split("](");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push(']');
        kept.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    kept
}

/// Number of words of a sentence: the parts between spaces that have a letter or digit.
fn words(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text of this number of words, without a mark at the end.
    fn run_of(words: usize) -> String {
        vec!["Word"; words].join(" ")
    }

    #[test]
    fn a_sentence_of_one_word_too_many_is_found_where_its_paragraph_begins() {
        let page = format!("# Title\n\nShort. {}\n{}.\n", run_of(13), run_of(12));
        assert_eq!(too_long(&page), []);
        let page = format!("# Title\n\nShort. {}\n{}.\n", run_of(13), run_of(13));
        assert_eq!(too_long(&page), [(3, format!("{}.", run_of(26)))]);
    }

    #[test]
    fn code_blocks_and_html_do_not_count_and_cells_of_tables_do() {
        let long = run_of(26);
        assert_eq!(too_long(&format!("```sh\n{long}\n```\n<!-- {long} -->\n")), []);
        assert_eq!(too_long(&format!("Run:\n\n    {long}\n    {long}\n")), []);
        let table = format!("| a | b |\n| --- | --- |\n| x | {long} |\n");
        assert_eq!(too_long(&table), [(3, long)]);
    }

    #[test]
    fn quotations_do_not_count() {
        let long = run_of(26);
        assert_eq!(too_long(&format!("> {long}\n> {long}\n")), []);
        assert_eq!(too_long(&format!("> Short.\n\n{long}\n")), [(3, long)]);
    }

    #[test]
    fn pages_of_others_and_records_are_left_out_by_their_names() {
        for left_out in
            ["docs/CHANGELOG.md", "lab/notes", "client-web/node_modules", ".git", "a/LICENCE.md"]
        {
            assert!(is_left_out(left_out), "{left_out}");
        }
        for read in ["README.md", "lab/reports.md", "docs/decisions", "models"] {
            assert!(!is_left_out(read), "{read}");
        }
    }

    #[test]
    fn the_readme_and_the_pages_of_each_folder_are_read() {
        let pages = pages().unwrap();
        for page in ["README.md", "docs/design.md", "docs/decisions/032-the-laboratory-apart.md"] {
            assert!(pages.contains(&root().join(page)), "{page}");
        }
    }

    #[test]
    fn each_item_of_a_list_is_read_by_itself() {
        let (half, page) =
            (run_of(13), |a: &str| format!("{a}- {}\n{a}2. {}\n", run_of(13), run_of(13)));
        assert_eq!(blocks(&page("  ")), [(1, half.clone()), (2, half)]);
        assert_eq!(item("2 apples"), None);
        assert_eq!(item(". a point"), None);
    }

    #[test]
    fn code_counts_as_a_word_and_the_target_of_a_link_as_none() {
        let text = "See [the page](a/b.md#c d) or `cargo run -p x. Y`.";
        assert_eq!(sentences(text), ["See [the page] or X."]);
        assert_eq!(words("See [the page] – or X."), 5);
    }

    #[test]
    fn a_sentence_ends_before_code_or_a_capital_and_not_before_small_letters() {
        assert_eq!(
            sentences("One (two.) `three` four. *Five*"),
            ["One (two.)", "X four.", "*Five*"]
        );
        assert_eq!(
            sentences("Frames, incl. hidden ones, of 0.5 s."),
            ["Frames, incl. hidden ones, of 0.5 s."]
        );
    }
}
