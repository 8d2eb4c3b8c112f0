//! Counts answers: how often one set was preferred to another, and the bounds of that share.
//!
//! Source: Clopper and Pearson, 1934 (exact binomial interval). Pairs that were called equal decide nothing. The
//! bounds take answers for independent, which those of one person are only in part.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// Chance that the share is outside of its bounds.
const ALPHA: f64 = 0.05;
/// Number of halvings until a bound is found.
const HALVINGS: usize = 60;

/// The answers that the page saves.
#[derive(Debug, Deserialize)]
pub(super) struct Saved {
    /// When the page was opened, which is different for every opening.
    begun: String,
    answers: Vec<Answer>,
}

#[derive(Debug, Deserialize)]
struct Answer {
    left: String,
    right: String,
    chose: Chose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Chose {
    Left,
    Right,
    Equal,
}

/// Two sets beside each other, with the answers about them.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Preference {
    /// The names of the two sets, in alphabetical order.
    one: String,
    other: String,
    people: usize,
    /// Number of answers for each set, and for neither.
    for_one: u64,
    for_other: u64,
    equal: u64,
    /// Share of the answers for the other set, of those for either. `None` where there is none.
    share_of_other: Option<f64>,
    /// The bounds of that share, with 95 % confidence.
    min_share: f64,
    max_share: f64,
}

/// Reads the saved answers, and counts them.
pub(super) fn read(files: &[PathBuf]) -> Result<Vec<Preference>> {
    let saved = files.iter().map(|path| {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("understanding {}", path.display()))
    });
    preferences(&saved.collect::<Result<Vec<_>>>()?)
}

fn preferences(saved: &[Saved]) -> Result<Vec<Preference>> {
    let begun: BTreeSet<&str> = saved.iter().map(|one| one.begun.as_str()).collect();
    ensure!(begun.len() == saved.len(), "two of the files hold the same answers");
    let mut found = BTreeMap::new();
    for one in saved {
        let mut met = BTreeSet::new();
        for Answer { left, right, chose } in &one.answers {
            ensure!(left != right, "an answer compares {left} with itself");
            let key = if left < right { (left, right) } else { (right, left) };
            let (people, [for_one, for_other, equal]) = found.entry(key).or_insert((0, [0; 3]));
            *people += usize::from(met.insert(key));
            *match chose {
                Chose::Equal => equal,
                Chose::Left if left < right => for_one,
                Chose::Right if right < left => for_one,
                _ => for_other,
            } += 1;
        }
    }
    Ok(found
        .into_iter()
        .map(|((one, other), (people, counts))| preference(one, other, people, counts))
        .collect())
}

fn preference(
    one: &str,
    other: &str,
    people: usize,
    [for_one, for_other, equal]: [u64; 3],
) -> Preference {
    let decided = for_one + for_other;
    let (min_share, max_share) = bounds(for_other, decided);
    Preference {
        one: one.to_owned(),
        other: other.to_owned(),
        people,
        for_one,
        for_other,
        equal,
        share_of_other: (decided > 0).then(|| for_other as f64 / decided as f64),
        min_share,
        max_share,
    }
}

/// The exact bounds of a share, of which `count` of `all` were found.
fn bounds(count: u64, all: u64) -> (f64, f64) {
    // `at_most` falls as the share grows.
    let least =
        if count == 0 { 0.0 } else { crossing(|p| 1.0 - at_most(count - 1, all, p) > ALPHA / 2.0) };
    let most = if count == all { 1.0 } else { crossing(|p| at_most(count, all, p) < ALPHA / 2.0) };
    (least, most)
}

/// The least number between 0 and 1 from which on `holds` is true.
fn crossing(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        *(if holds(middle) { &mut high } else { &mut low }) = middle;
    }
    high
}

/// How likely at most `count` of `all` are, where each has the same chance, which is neither 0 nor 1.
fn at_most(count: u64, all: u64, chance: f64) -> f64 {
    let odds = (chance / (1.0 - chance)).ln();
    let mut log = all as f64 * (1.0 - chance).ln();
    let mut sum = log.exp();
    for n in 0..count {
        log += ((all - n) as f64 / (n + 1) as f64).ln() + odds;
        sum += log.exp();
    }
    sum
}

/// The counts as Markdown, with a sentence for each two sets.
pub(super) fn table(found: &[Preference]) -> String {
    let mut out = String::from(
        "| sets | people | for the first | for the second | equal | share of the second (95 % bounds) |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    for pair in found {
        let Preference { one, other, people, for_one, for_other, equal, .. } = pair;
        let share = pair.share_of_other.map_or("–".to_owned(), percent);
        let (least, most) = (percent(pair.min_share), percent(pair.max_share));
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "| {one}, {other} | {people} | {for_one} | {for_other} | {equal} | {share} ({least} to {most}) |"
        );
    }
    out.push('\n');
    for pair in found {
        let (one, other) = (&pair.one, &pair.other);
        let _ = if pair.min_share > 0.5 {
            writeln!(out, "People prefer {other} to {one}.")
        } else if pair.max_share < 0.5 {
            writeln!(out, "People prefer {one} to {other}.")
        } else {
            writeln!(out, "Between {one} and {other} no preference is shown.")
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(begun: &str, answers: &[[&str; 3]]) -> Saved {
        let answers: Vec<_> = answers
            .iter()
            .map(|[left, right, chose]| {
                serde_json::json!({"file": "x", "left": left, "right": right, "chose": chose, "ms": 900})
            })
            .collect();
        let page = serde_json::json!({"compared": "windlass", "begun": begun, "answers": answers});
        serde_json::from_value(page).unwrap()
    }

    #[test]
    fn an_answer_counts_for_the_set_that_was_on_its_side() {
        let one = saved(
            "1",
            &[["a", "b", "left"], ["b", "a", "left"], ["b", "a", "right"], ["a", "b", "equal"]],
        );
        let two = saved("2", &[["b", "a", "left"], ["a", "c", "right"]]);
        let found = preferences(&[one, two]).unwrap();
        let counts: Vec<_> = found
            .iter()
            .map(|p| (p.one.as_str(), p.other.as_str(), p.people, p.for_one, p.for_other, p.equal))
            .collect();
        assert_eq!(counts, [("a", "b", 2, 2, 2, 1), ("a", "c", 1, 0, 1, 0)]);
    }

    #[test]
    fn bounds_are_those_of_the_tables() {
        // R: binom.test(k, n)$conf.int.
        for (count, all, least, most) in [
            (0, 10, 0.0, 0.308_497),
            (7, 10, 0.347_547, 0.933_260),
            (60, 100, 0.497_209, 0.696_705),
        ] {
            let found = bounds(count, all);
            assert!((found.0 - least).abs() < 1e-5, "{found:?}");
            assert!((found.1 - most).abs() < 1e-5, "{found:?}");
        }
        assert_eq!(bounds(0, 0), (0.0, 1.0));
    }

    #[test]
    fn thousands_of_answers_have_bounds_too() {
        let (least, most) = bounds(3000, 5000);
        assert!(least > 0.586 && least < 0.6 && most > 0.6 && most < 0.614, "{least} {most}");
    }

    #[test]
    fn a_preference_is_said_only_where_the_bounds_leave_one_half_out() {
        let says = |for_one, for_other| table(&[preference("a", "b", 1, [for_one, for_other, 3])]);
        assert!(says(5, 5).contains("no preference"));
        assert!(says(40, 60).contains("no preference"));
        assert!(says(30, 70).contains("prefer b to a"));
        assert!(says(70, 30).contains("prefer a to b"));
        assert!(says(0, 0).contains("| 3 | – (0 % to 100 %) |"));
    }

    #[test]
    fn answers_that_make_no_sense_are_refused() {
        assert!(preferences(&[saved("1", &[]), saved("1", &[])]).is_err());
        assert!(preferences(&[saved("1", &[["a", "a", "left"]])]).is_err());
        let text = r#"{"begun": "1", "answers": [{"left": "a", "right": "b", "chose": "both"}]}"#;
        assert!(serde_json::from_str::<Saved>(text).is_err());
    }
}
