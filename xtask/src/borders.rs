//! Which crate may rest on which, and what none of a pure crate's files may name: the map of `docs/design.md`, held against the code.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::process::{Cmd, step};
use crate::root;
use crate::source::{code, files};

/// Crates of ours, and those of ours that they are built of. What tests alone need is not asked for.
const ARROWS: [(&str, &[&str]); 21] = [
    ("types", &[]),
    ("netem", &[]),
    ("htj2k", &[]),
    ("vp9", &[]),
    ("network", &["vp9"]),
    ("hybrid", &["htj2k", "network", "types", "vp9"]),
    ("wasm", &["hybrid", "network", "types", "vp9"]),
    ("scheduler", &["types"]),
    ("sr", &["htj2k", "hybrid", "types", "vp9"]),
    ("enhancer", &["hybrid", "scheduler", "sr", "types", "vp9"]),
    ("sfu", &["types"]),
    ("protocol", &["types"]),
    ("signaling", &["protocol", "sfu", "types"]),
    ("cluster", &["types"]),
    ("windlass", &["cluster", "enhancer", "protocol", "sfu", "signaling", "sr", "types"]),
    ("vpx", &["vp9"]),
    (
        "lab",
        &[
            "cluster",
            "enhancer",
            "hybrid",
            "netem",
            "network",
            "protocol",
            "scheduler",
            "sfu",
            "signaling",
            "sr",
            "testkit",
            "types",
            "vp9",
            "vpx",
        ],
    ),
    ("testkit", &["netem", "sfu", "types"]),
    ("tests", &["vp9", "vpx"]),
    ("skips", &[]),
    ("xtask", &["skips"]),
];

/// Folders whose code is given time and bytes as arguments, and what it therefore never names.
const PURE: [&str; 11] = [
    "types/src",
    "lab/netem/src",
    "hybrid/htj2k/src",
    "hybrid/network/src",
    "hybrid/vp9/src",
    "hybrid/src",
    "enhancer/scheduler/src",
    "enhancer/src/tiles",
    "sfu/src/core",
    "signaling/protocol/src",
    "client-web/wasm/src",
];
/// What may all the same: it plants faults in development builds, or asks once for the largest instruction set to use, whose results
/// are the same.
const EXEMPT: [&str; 3] =
    ["sfu/src/core/fault_injection.rs", "hybrid/vp9/src/simd/cap.rs", "hybrid/htj2k/src/wide.rs"];
const IMPURE: [&str; 9] = [
    "Instant::now",
    "SystemTime::now",
    "thread::spawn",
    "thread::sleep",
    "tokio::",
    "std::net::UdpSocket",
    "std::net::TcpStream",
    "std::fs::",
    "std::env::",
];

/// Holds the map against the code.
pub(crate) fn check() -> Result<()> {
    step("Holding the crates against docs/design.md");
    let metadata =
        Cmd::cargo(["metadata", "--no-deps", "--format-version", "1", "--offline"]).output();
    let metadata = metadata.context("`cargo metadata` gave nothing")?;
    let mut wrong = arrows(&serde_json::from_str(&metadata)?)?;
    for folder in PURE {
        let found = files(&root().join(folder))?;
        ensure!(!found.is_empty(), "{folder} has no Rust files");
        for file in found {
            let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
            if EXEMPT.contains(&name.as_str()) {
                continue;
            }
            let text = std::fs::read_to_string(&file)?;
            wrong.extend(impure(&text).map(|what| format!("{name} names `{what}`")));
        }
    }
    if !wrong.is_empty() {
        bail!("docs/design.md (xtask/src/borders.rs) does not allow this: {}", wrong.join("; "));
    }
    Ok(())
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

/// The arrows that may not be; an error where the map lacks a crate.
fn arrows(metadata: &Metadata) -> Result<Vec<String>> {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    let ours = |name: &str| -> Option<String> {
        let short = name.strip_prefix("windlass-").unwrap_or(name);
        allowed.contains_key(short).then(|| short.to_owned())
    };
    let mut wrong = Vec::new();
    for package in &metadata.packages {
        let from = ours(&package.name);
        let from =
            from.with_context(|| format!("xtask/src/borders.rs says nothing of {}", package.name))?;
        let built_of = package.dependencies.iter().filter(|d| d.kind.is_none());
        for to in built_of.filter(|d| d.name.starts_with("windlass")) {
            let to = ours(&to.name).unwrap_or_else(|| to.name.clone());
            if !allowed[from.as_str()].contains(&to.as_str()) {
                wrong.push(format!("{from} rests on {to}"));
            }
        }
    }
    Ok(wrong)
}

/// What of a file's code is not pure.
fn impure(text: &str) -> impl Iterator<Item = &'static str> {
    let code = code(text);
    IMPURE.into_iter().filter(move |what| code.contains(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, on: &[(&str, Option<&str>)]) -> Package {
        let dependency = |&(name, kind): &(&str, Option<&str>)| Dependency {
            name: name.into(),
            kind: kind.map(Into::into),
        };
        Package { name: name.into(), dependencies: on.iter().map(dependency).collect() }
    }

    #[test]
    fn an_arrow_that_the_map_lacks_is_named_and_what_tests_need_is_not_asked_for() {
        let sfu = [("windlass-hybrid", None), ("windlass-types", None), ("tokio", None)];
        let types = [("windlass-hybrid", Some("dev"))];
        let packages = vec![package("windlass-sfu", &sfu), package("windlass-types", &types)];
        assert_eq!(arrows(&Metadata { packages }).unwrap(), ["sfu rests on hybrid"]);
        assert!(arrows(&Metadata { packages: vec![package("windlass-new", &[])] }).is_err());
    }

    #[test]
    fn comments_and_tests_may_name_clocks_and_code_may_not() {
        let text = "#[cfg(test)]\nmod fixture;\n// tokio::\nfn a() { Instant::now() }\n#[cfg(test)]\npub mod tests {\n std::fs::read()\n}";
        assert_eq!(impure(text).collect::<Vec<_>>(), ["Instant::now"]);
        assert_eq!(impure("//! tokio::net\n").count(), 0);
    }
}
