//! Asks for known vulnerabilities of the dependencies: of crates in RustSec's database, of npm packages in their
//! registry.
//!
//! Where one cannot be asked, `xtask/advisories.toml` is the answer: a dated note of the last answer. It holds for
//! [`DAYS`]. After that the check fails, so that nobody goes without for ever.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use rustsec::database::Query;
use rustsec::{Database, Lockfile};
use serde::Deserialize;
use toml::value::{Date, Datetime};

use crate::process::{Cmd, step};
use crate::{root, target_dir};

/// The workspaces whose `Cargo.lock` is checked.
pub(crate) const WORKSPACES: [&str; 3] = [".", "tests/fuzz", "lab/engines"];
/// The folders whose npm packages are checked.
const PACKAGES: [&str; 6] = [
    "client-web",
    "client-web/react",
    "client-web/reference",
    "tests/e2e",
    "tests/e2e/bundlers",
    "tests/chart",
];
/// The repository of RustSec's database.
const DATABASE: &str = "https://github.com/rustsec/advisory-db";
/// The file with the notes of the last answers.
const NOTES: &str = "xtask/advisories.toml";
/// Number of days for which a note stands for an answer.
const DAYS: i64 = 60;

/// Asks what can be asked, and takes the notes for the rest. `database` is a folder with RustSec's database.
pub(crate) fn run(database: Option<PathBuf>) -> Result<()> {
    step("Asking what is known against the dependencies");
    match database.or_else(fetched) {
        Some(folder) => crates(&folder)?,
        None => Notes::read()?.crates.stands_for("crates", today()?)?,
    }
    if !packages()? {
        Notes::read()?.npm.stands_for("npm", today()?)?;
    }
    Ok(())
}

/// A fresh copy of the database; `None` where it cannot be fetched.
fn fetched() -> Option<PathBuf> {
    let folder = target_dir().join("advisory-db");
    let git = || {
        let patience = ["-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=20"];
        Cmd::new("git").env("GIT_TERMINAL_PROMPT", "0").args(patience)
    };
    let done = if folder.join(".git").is_dir() {
        git().arg("-C").arg(&folder).args(["pull", "--quiet", "--ff-only"])
    } else {
        git().args(["clone", "--quiet", "--depth=1", DATABASE]).arg(&folder)
    };
    done.succeeds().then_some(folder)
}

fn crates(folder: &Path) -> Result<()> {
    let database = Database::open(folder)
        .with_context(|| format!("{} is no database of RustSec's", folder.display()))?;
    let mut found = Vec::new();
    for workspace in WORKSPACES {
        let lock = root().join(workspace).join("Cargo.lock");
        let lock = Lockfile::load(&lock).with_context(|| lock.display().to_string())?;
        let told = |informational| {
            let query = Query::crate_scope().informational(informational);
            database.query_vulnerabilities(&lock, &query).into_iter().map(|found| {
                let (package, advisory) = (found.package, found.advisory);
                let title = advisory.title.trim();
                format!(
                    "{workspace}: {} {}: {}: {title}",
                    package.name, package.version, advisory.id
                )
            })
        };
        // Warnings, such as of a crate that is no longer maintained, are for people to weigh.
        told(true).for_each(|line| eprintln!("note: {line}"));
        found.extend(told(false));
    }
    let newest = Cmd::new("git").arg("-C").arg(folder).args(["log", "-1", "--format=%cs %h"]);
    let newest = newest.output().unwrap_or_else(|| "an unknown day".to_owned());
    eprintln!("{} advisories, the newest of {newest}", database.iter().count());
    ensure!(
        found.is_empty(),
        "crates have known vulnerabilities; `cargo update -p NAME` in the workspace, or do without:\n{}",
        found.join("\n")
    );
    Ok(())
}

/// Asks the registry of npm. Returns whether it could be asked; a vulnerability is an error.
fn packages() -> Result<bool> {
    for folder in PACKAGES {
        let asked = Command::new("npm")
            .args(["audit", "--json", "--package-lock-only"])
            .current_dir(root().join(folder))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .context("`npm` could not be started; is it installed and on PATH?")?;
        let answer: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap_or_default();
        let Some(total) = answer["metadata"]["vulnerabilities"]["total"].as_u64() else {
            return Ok(false);
        };
        ensure!(
            total == 0,
            "{total} packages of {folder} have known vulnerabilities; `npm audit` there says which"
        );
    }
    Ok(true)
}

/// The contents of `xtask/advisories.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Notes {
    crates: Note,
    npm: Note,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    noted: Datetime,
    asked: String,
}

impl Notes {
    fn read() -> Result<Notes> {
        let text = std::fs::read_to_string(root().join(NOTES)).context(NOTES)?;
        toml::from_str(&text).context(NOTES)
    }
}

impl Note {
    /// Takes the note for the answer about `what` on the day `today`, as [`days`] counts it.
    fn stands_for(&self, what: &str, today: i64) -> Result<()> {
        let Note { noted, asked } = self;
        let day = noted.date.with_context(|| format!("{NOTES}: `noted` of {what} is no day"))?;
        let age = today - days(day);
        eprintln!("{what}: not asked, as no database can be reached from here.");
        eprintln!("{what}: noted on {noted}: asked {asked}");
        if !(-1..=DAYS).contains(&age) {
            bail!(
                "{NOTES}: the note of {noted} is not of the last {DAYS} days. Run `cargo xtask advisories` where {DATABASE} and \
                 npm's registry can be reached, or with `--database` and a clone, and note what came of it"
            );
        }
        eprintln!("{what}: that will do for {} days more.", DAYS - age);
        Ok(())
    }
}

/// The current day in UTC, as [`days`] counts it.
fn today() -> Result<i64> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    Ok(i64::try_from(seconds / 86_400)?)
}

/// The number of days since 1970, in the proleptic Gregorian calendar.
fn days(day: Date) -> i64 {
    // Years begin in March here, so that the leap day is the last one.
    let (year, month) = (i64::from(day.year), i64::from(day.month));
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year / 4 - year / 100 + year / 400;
    365 * year + leaps + (153 * month + 2) / 5 + i64::from(day.day) - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_stands_for_an_answer_for_some_weeks_and_not_for_ever() {
        let note = Note { noted: "2024-02-29".parse().unwrap(), asked: "nothing".to_owned() };
        let noted = days(Date { year: 2024, month: 2, day: 29 });
        for age in [-1, 0, 30, DAYS] {
            note.stands_for("crates", noted + age).unwrap();
        }
        for age in [-2, DAYS + 1, 400] {
            let error = note.stands_for("npm", noted + age).unwrap_err();
            assert!(error.to_string().contains("cargo xtask advisories"), "{error}");
        }
    }

    #[test]
    fn days_are_counted_as_the_calendar_has_them() {
        let day = |year, month, day| days(Date { year, month, day });
        assert_eq!((day(1970, 1, 1), day(2000, 3, 1), day(2026, 11, 23)), (0, 11_017, 20_780));
        assert_eq!(day(2024, 3, 1) - day(2024, 2, 28), 2);
        assert_eq!(day(2026, 3, 1) - day(2026, 2, 28), 1);
    }

    #[test]
    fn the_notes_of_the_project_can_be_read_and_every_lock_is_there() {
        Notes::read().unwrap();
        for workspace in WORKSPACES {
            assert!(root().join(workspace).join("Cargo.lock").is_file(), "{workspace}");
        }
        for folder in PACKAGES {
            assert!(root().join(folder).join("package-lock.json").is_file(), "{folder}");
        }
    }
}
