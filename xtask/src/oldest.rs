//! The oldest compiler that manifests promise (`rust-version`): whether dependencies need a newer one, and whether the
//! crates are built by it, where it is installed.

use std::fmt;

use anyhow::{Result, bail, ensure};

use crate::advisories::WORKSPACES;
use crate::metadata::{Metadata, Package};
use crate::process::{Cmd, step, which};
use crate::{skipped, target_dir};

/// Checks all workspaces against the compilers that they promise.
pub(crate) fn check() -> Result<()> {
    step("Checking for the oldest compiler");
    let (mut promised, mut excluded) = (None, Vec::new());
    for workspace in WORKSPACES {
        let metadata = Metadata::of_all(workspace)?;
        let own = metadata.promised();
        if workspace == "." {
            promised = own;
            excluded = own.map(|own| metadata.members_newer(own)).unwrap_or_default();
        }
        // The fuzz targets promise nothing of their own: they are built as the product is.
        let Some(own) = own.or(promised) else { bail!("Cargo.toml has no `rust-version`") };
        let newer = metadata.newer(own);
        ensure!(
            newer.is_empty(),
            "{workspace}/Cargo.toml promises Rust {own}, and what it is built of needs a newer one: {}",
            newer.join(", ")
        );
    }
    match promised {
        Some(version) => compile(version, &excluded),
        None => Ok(()),
    }
}

/// Compiles the product's workspace by that compiler, where rustup has it; without the packages that are `excluded`.
fn compile(version: Version, excluded: &[String]) -> Result<()> {
    let lacks = |what: &str| skipped::note("compiling with the oldest compiler", what);
    if which("rustup").is_none() {
        lacks("no rustup");
        return Ok(());
    }
    let installed = Cmd::new("rustup").args(["toolchain", "list"]).output().unwrap_or_default();
    let Some(toolchain) = toolchain(&installed, version) else {
        lacks(&format!("no Rust {version} (`rustup toolchain install {version}`)"));
        return Ok(());
    };
    step(&format!("Compiling with Rust {version}"));
    // This is what `cargo +<tool chain>` does; the `cargo` that runs this program is the newer compiler's own.
    Cmd::new("rustup")
        .args(["run", toolchain, "cargo", "check", "--quiet", "--locked", "--workspace"])
        .args(excluded.iter().map(|name| format!("--exclude={name}")))
        .arg("--target-dir")
        .arg(target_dir().join("oldest"))
        .env_remove("CARGO")
        .run()
}

/// The installed tool chain of that version, from rustup's list.
fn toolchain(listed: &str, version: Version) -> Option<&str> {
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    let mut named = names.filter(|name| {
        let number = name.split('-').next().and_then(Version::parse);
        number.is_some_and(|n| (n.major, n.minor) == (version.major, version.minor))
    });
    named.next()
}

/// The version of a compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Version {
    /// Reads a version as `1.89` or `1.89.0`.
    fn parse(text: &str) -> Option<Version> {
        let mut numbers = text.split('.').map(str::parse);
        let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        let patch = numbers.next().unwrap_or(Ok(0)).ok()?;
        Some(Version { major, minor, patch })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version { major, minor, patch } = self;
        write!(f, "{major}.{minor}")?;
        if *patch > 0 { write!(f, ".{patch}") } else { Ok(()) }
    }
}

impl Package {
    fn needs(&self) -> Option<Version> {
        Version::parse(self.rust_version.as_deref()?)
    }
}

impl Metadata {
    /// The oldest compiler that a crate of the workspace promises.
    fn promised(&self) -> Option<Version> {
        self.packages.iter().filter(|p| self.is_own(p)).filter_map(Package::needs).min()
    }

    /// Dependencies that need a newer compiler.
    fn newer(&self, promised: Version) -> Vec<String> {
        let needs = |p: &Package| {
            let needed = p.needs().filter(|needed| *needed > promised)?;
            Some(format!("{} {} ({needed})", p.name, p.version))
        };
        self.packages.iter().filter(|p| !self.is_own(p)).filter_map(needs).collect()
    }

    /// Names of the workspace's own packages that say they need a newer compiler: the laboratory's.
    fn members_newer(&self, promised: Version) -> Vec<String> {
        let newer = |p: &&Package| self.is_own(p) && p.needs() > Some(promised);
        self.packages.iter().filter(newer).map(|p| p.name.clone()).collect()
    }

    /// Whether the package is of the workspace itself.
    fn is_own(&self, package: &Package) -> bool {
        self.workspace_members.contains(&package.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).expect("a version")
    }

    fn package(name: &str, rust_version: Option<&str>) -> Package {
        let rust_version = rust_version.map(Into::into);
        let (id, name, version) = (name.into(), name.into(), "0.1.0".into());
        Package { id, name, version, rust_version, ..Package::default() }
    }

    #[test]
    fn a_dependency_that_needs_a_newer_compiler_than_its_workspace_promises_is_named() {
        let packages = vec![
            package("own", Some("1.91")),
            package("old", Some("1.91.0")),
            package("silent", None),
            package("new", Some("1.94.0")),
        ];
        let metadata = Metadata { packages, workspace_members: vec!["own".into()] };
        let promised = metadata.promised().expect("its own");
        assert_eq!(metadata.newer(promised), ["new 0.1.0 (1.94)"]);
        assert_eq!(metadata.newer(version("1.94")), [""; 0]);
    }

    #[test]
    fn a_package_of_the_workspace_that_needs_a_newer_compiler_is_left_out() {
        let packages = vec![package("product", Some("1.89")), package("lab", Some("1.91"))];
        let members = vec!["product".into(), "lab".into()];
        let metadata = Metadata { packages, workspace_members: members };
        let promised = metadata.promised().expect("the product's");
        assert_eq!(metadata.members_newer(promised), ["lab"]);
        assert_eq!(metadata.newer(promised), [""; 0]);
    }

    #[test]
    fn the_tool_chain_is_found_with_and_without_its_patch() {
        let listed = "stable-x86_64-unknown-linux-gnu (active, default)\nnightly-x86_64-unknown-linux-gnu\n\
            1.89.0-x86_64-unknown-linux-gnu\n1.95-x86_64-unknown-linux-gnu\n";
        let found = toolchain(listed, version("1.89"));
        assert_eq!(found, Some("1.89.0-x86_64-unknown-linux-gnu"));
        assert_eq!(toolchain(listed, version("1.95.0")), Some("1.95-x86_64-unknown-linux-gnu"));
        assert_eq!(toolchain(listed, version("1.8")), None);
    }
}
