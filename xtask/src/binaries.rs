//! The binaries of the Rust tests, and the programs that tests start.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::clips::for_tests;
use crate::process::{Cmd, step};
use crate::target_dir;

/// A test's binary, and the folder in which it runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Binary {
    pub package: String,
    pub name: String,
    folder: PathBuf,
    file: PathBuf,
}

/// Builds the tests of the whole workspace.
pub(crate) fn build() -> Result<Vec<Binary>> {
    step("Building the Rust tests");
    // The first run shows what does not compile, the second one lists the files.
    let build = || Cmd::cargo(["test", "--locked", "--workspace", "--quiet", "--no-run"]);
    build().run()?;
    let built = build().arg("--message-format=json").output();
    let binaries = listed(&built.context("`cargo test --no-run` failed; run it to see why")?);
    ensure!(!binaries.is_empty(), "cargo built no tests");
    Ok(binaries)
}

/// Builds all programs and examples, with the features of `cargo test --workspace`, so that nothing is compiled again
/// after it.
pub(crate) fn build_programs() -> Result<()> {
    Cmd::cargo(["build", "--locked", "--quiet", "--workspace", "--bins", "--examples"]).run()
}

/// Builds server and laboratory for speed.
pub(crate) fn build_release() -> Result<()> {
    let programs = ["--package", "windlass", "--package", "windlass-lab"];
    Cmd::cargo(["build", "--release", "--quiet"]).args(programs).run()
}

/// The laboratory's program, built for speed.
pub(crate) fn release_lab() -> PathBuf {
    target_dir().join("release/windlass-lab")
}

impl Binary {
    /// Runs the tests and prints how they ended. Returns the command to run again if they failed. `kind` is printed
    /// before the name.
    pub(crate) fn test(&self, kind: &str, change: impl FnOnce(Cmd) -> Cmd) -> Option<String> {
        let Binary { package, name, folder, file } = self;
        let cmd = for_tests(Cmd::new(file))
            .arg("--quiet")
            .dir(folder)
            .env("CARGO_MANIFEST_DIR", folder)
            .env("CARGO_PKG_NAME", package);
        let target = if package.replace('-', "_") == *name {
            "--lib".into()
        } else {
            format!("--test {name}")
        };
        let again = format!("cargo test --package {package} {target}");
        change(cmd).check(&format!("{kind}{package} {name}"), again)
    }
}

#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    package_id: Option<String>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// The binaries in cargo's messages about what it built.
fn listed(messages: &str) -> Vec<Binary> {
    let of = |line: &str| {
        let message: Message = serde_json::from_str(line).ok()?;
        message.profile?.test.then_some(())?;
        let (file, name) = (message.executable?, message.target?.name);
        let folder = message.manifest_path?.parent()?.to_owned();
        let package = package(&message.package_id?)?;
        Some(Binary { package, name, folder, file })
    };
    messages.lines().filter_map(of).collect()
}

/// The crate's name in `path+file:///folder/name#0.1.0` or `path+file:///folder#name@0.1.0`.
fn package(id: &str) -> Option<String> {
    let (place, version) = id.split_once('#')?;
    let name = match version.split_once('@') {
        Some((name, _)) => name,
        None => place.rsplit_once('/')?.1,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_in_what_cargo_says() {
        let line = |package: &str, name: &str, test: bool, file: &str| {
            serde_json::json!({
                "reason": "compiler-artifact",
                "package_id": format!("path+file:///w/{package}"),
                "manifest_path": "/w/folder/Cargo.toml",
                "target": { "name": name },
                "profile": { "test": test },
                "executable": (!file.is_empty()).then_some(file),
            })
            .to_string()
        };
        let said = [
            line("hybrid#windlass-hybrid@0.1.0", "windlass_hybrid", false, ""),
            line("hybrid#windlass-hybrid@0.1.0", "windlass_hybrid", true, "/t/hybrid"),
            line("xtask#0.1.0", "xtask", true, "/t/xtask"),
            r#"{"reason":"build-finished","success":true}"#.into(),
        ];
        let found = listed(&said.join("\n"));
        let names: Vec<_> = found.iter().map(|b| (b.package.as_str(), b.name.as_str())).collect();
        assert_eq!(names, [("windlass-hybrid", "windlass_hybrid"), ("xtask", "xtask")]);
        assert_eq!(found[1].folder, PathBuf::from("/w/folder"));
    }

    #[test]
    fn a_test_that_fails_says_how_to_run_it_again() {
        let binary = |program: &str| Binary {
            package: "a-b".into(),
            name: "a_b".into(),
            folder: "/".into(),
            file: program.into(),
        };
        assert_eq!(binary("true").test("", |cmd| cmd), None);
        let again = binary("false").test("", |cmd| cmd);
        assert_eq!(again.as_deref(), Some("cargo test --package a-b --lib"));
    }
}
