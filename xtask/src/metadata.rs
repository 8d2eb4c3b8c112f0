//! What `cargo metadata` says of a workspace.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::process::Cmd;
use crate::root;

/// The packages of a workspace.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub packages: Vec<Package>,
    /// Ids of the packages that are the workspace's own.
    pub workspace_members: Vec<String>,
}

/// A package, as its manifest describes it.
#[derive(Default, Deserialize)]
pub(crate) struct Package {
    pub id: String,
    pub name: String,
    pub version: String,
    pub rust_version: Option<String>,
    pub manifest_path: PathBuf,
    /// Where the package comes from; `None` for ours.
    pub source: Option<String>,
    pub dependencies: Vec<Dependency>,
}

/// A dependency of a package.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub name: String,
    /// `dev` or `build`; `None` for what the package itself is built of.
    pub kind: Option<String>,
}

impl Metadata {
    /// All packages that the workspace in a folder below the root is built of.
    pub(crate) fn of_all(workspace: &str) -> Result<Metadata> {
        of(workspace, "--locked")
    }

    /// The packages of the product's workspace alone. No network is needed for that.
    pub(crate) fn of_ours() -> Result<Metadata> {
        of(".", "--no-deps")
    }
}

fn of(workspace: &str, option: &str) -> Result<Metadata> {
    let manifest = root().join(workspace).join("Cargo.toml");
    let command = Cmd::cargo(["metadata", "--format-version", "1", option, "--manifest-path"]);
    let text = command.arg(manifest).output();
    let text = text.with_context(|| {
        format!("`cargo metadata` gave nothing of {workspace}; run it to see why")
    })?;
    Ok(serde_json::from_str(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_packages_are_read_without_those_of_others() {
        let ours = Metadata::of_ours().expect("metadata");
        assert!(ours.packages.iter().any(|package| package.name == "xtask"));
        assert!(ours.packages.iter().all(|package| package.source.is_none()));
    }
}
