//! Browser tests: calls between real browsers through the real server. Each file of `tests/e2e` is a program of its
//! own; its head says beside which others it can run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::binaries::build_programs;
use crate::clips::for_tests;
use crate::process::{Cmd, step};
use crate::{page, root, target_dir, workers};

/// How a file of browser tests can run beside others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Company {
    /// Beside any other file: it waits for a server or a page most of the time, and needs no picture in time.
    Any,
    /// Beside light files: it tests how good pictures are and how soon they come, and takes little CPU time.
    Light,
    /// Beside one of its kind, when all that reads much memory has ended: it tests pictures, and leaves most of a
    /// machine of two CPUs to others.
    Half,
    /// Alone: it tests pictures with a browser that encodes, decodes and rebuilds, or with a server that others load.
    None,
}

/// Lines by which a file of browser tests says in its head how it runs; one without them runs alone.
const COMPANY: [(&str, Company); 4] = [
    ("// Runs first, beside any file.", Company::Any),
    ("// Runs beside any file.", Company::Any),
    ("// Runs beside light files.", Company::Light),
    ("// Runs beside one other file.", Company::Half),
];

/// Runs the files of `ci`, and the main path of each longer one, that can run beside any others.
pub(crate) fn beside_any() -> Result<()> {
    step("Running calls between real browsers that can run beside any others");
    run(&short()?, &[(Company::Any, 2)], &[])
}

/// Runs those that can run beside light ones.
pub(crate) fn beside_light() -> Result<()> {
    step("Running light calls between real browsers");
    run(&short()?, &[(Company::Light, 2)], &[])
}

/// Runs those that run alone, and before them those that run beside one other file.
pub(crate) fn alone() -> Result<()> {
    step("Running calls between real browsers, one or two files at a time");
    run(&short()?, &[(Company::Half, 2), (Company::None, 1)], &[])
}

/// Runs the files of `soak` whole. Whatever can last longer lasts `times` as long; `env` is set beside the usual.
pub(crate) fn soak(times: u32, env: &[(&str, String)]) -> Result<()> {
    install()?;
    step("Building the programs");
    build_programs()?;
    step("Running long calls between real browsers");
    let files = files("soak", &[&bound(times)])?;
    // Whole files compare bitrates and pictures for longer.
    let alone = [Company::Half, Company::None].map(|company| (company, 1));
    run(&files, &[[(Company::Any, 2), (Company::Light, 2)], alone].concat(), env)
}

/// Installs what browser tests need beside the programs.
pub(crate) fn install() -> Result<()> {
    page::npm_ci("tests/e2e")?;
    page::npm_ci("tests/e2e/bundlers")?;
    page::npm_ci(page::REACT)
}

/// Checks that each longer file of browser tests names a main path, which `cargo xtask test` takes.
pub(crate) fn main_paths() -> Result<()> {
    for TestFile { path, .. } in files("soak", &[])? {
        if !fs::read_to_string(&path)?.contains("only: ") {
            bail!(
                "{} has no main path: give `only: true` to one of its tests, and to its `describe`",
                path.display()
            );
        }
    }
    Ok(())
}

/// An option that ends a file of browser tests after half an hour, or `times` that: a browser that died can leave one
/// waiting without end. The tests have no limits of their own, as they take several times as long on CPUs that have
/// other things to do.
fn bound(times: u32) -> String {
    format!("--test-timeout={}", 1_800_000 * u64::from(times))
}

/// A file of browser tests, with options of Node's test runner.
struct TestFile {
    path: PathBuf,
    options: Vec<String>,
    /// Which line of [`COMPANY`] its head has; their number: none.
    place: usize,
}

/// What `cargo xtask test` runs: the files of `ci` whole, and of those of `soak` the main path.
fn short() -> Result<Vec<TestFile>> {
    let mut all = files("ci", &[&bound(1)])?;
    all.extend(files("soak", &[&bound(1), "--test-only"])?);
    Ok(all)
}

/// The files of browser tests in a folder.
fn files(folder: &str, options: &[&str]) -> Result<Vec<TestFile>> {
    let folder = root().join("tests/e2e").join(folder);
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        if !path.to_string_lossy().ends_with(".test.mjs") {
            continue;
        }
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let options = options.iter().map(ToString::to_string).collect();
        files.push(TestFile { place: place(&text), path, options });
    }
    Ok(files)
}

/// Which line of [`COMPANY`] stands in the comment that a file begins with; their number: none.
fn place(text: &str) -> usize {
    let head: Vec<&str> = text.lines().take_while(|line| line.starts_with("//")).collect();
    COMPANY.iter().position(|(line, _)| head.contains(line)).unwrap_or(COMPANY.len())
}

/// Runs those of `files` that run in one of these companies, as many at a time as stands beside it.
fn run(files: &[TestFile], companies: &[(Company, usize)], env: &[(&str, String)]) -> Result<()> {
    let mut failed = Vec::new();
    for &(kind, at_once) in companies {
        let company =
            |place: usize| COMPANY.get(place).map_or(Company::None, |(_, company)| *company);
        let mut fit: Vec<_> = files.iter().filter(|file| company(file.place) == kind).collect();
        fit.sort_by_key(|file| (file.place, &file.path));
        // A failure says nothing of the files after it.
        failed.extend(workers::by(at_once, &fit, |file| file.run(env)).into_iter().flatten());
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("these browser tests failed, their output is above: {}", failed.join(", "))
}

impl TestFile {
    /// Runs the file, and prints all that it says when it has ended. Returns its name if it failed.
    fn run(&self, env: &[(&str, String)]) -> Option<String> {
        let name = name(&self.path);
        let mut cmd = for_tests(
            Cmd::new("node")
                .args(["--test", "--test-reporter=spec"])
                .args(&self.options)
                .arg(&self.path),
        )
        .dir("tests/e2e")
        .env("WINDLASS_BIN", target_dir().join("debug/windlass"));
        for (key, value) in env {
            cmd = cmd.env(key, value);
        }
        let begun = Instant::now();
        let (passed, said) = cmd.captured().unwrap_or_else(|error| (false, format!("{error:#}")));
        let seconds = begun.elapsed().as_secs();
        let ended = if passed { "passed" } else { "FAILED" };
        eprintln!("{}\n{name} {ended} ({seconds} s)\n", said.trim_end());
        (!passed).then_some(name)
    }
}

/// The file's name with its folder, as in `ci/people`.
fn name(path: &Path) -> String {
    let parts: Vec<_> = path.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/").replace(".test.mjs", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_test_says_itself_what_it_may_run_beside() {
        let all = ["ci", "soak"].map(|folder| files(folder, &[]).unwrap());
        let place =
            |file: &str| all.iter().flatten().find(|f| name(&f.path) == file).unwrap().place;
        assert_eq!(place("soak/twin"), 0, "it begins first");
        assert_eq!(place("ci/rights"), 1);
        assert_eq!(place("ci/quality"), 2);
        assert_eq!(place("ci/codec"), 3);
        assert_eq!(place("soak/stills"), COMPANY.len(), "it runs alone");
    }
}
