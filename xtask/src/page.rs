//! The demo page and the browser SDK.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;

use anyhow::{Context, Result};

use crate::process::{Cmd, step};
use crate::{root, wasm};

/// The folder of the React components.
pub(crate) const REACT: &str = "client-web/react";

/// Builds the WebAssembly module and the page into `client-web/dist`.
pub(crate) fn build() -> Result<()> {
    wasm::build()?;
    npm_ci("client-web")?;
    step("Building the demo page");
    Cmd::new("npm").args(["run", "--silent", "build"]).dir("client-web").run()
}

/// Installs a folder's npm packages, once for each state of its lock file.
pub(crate) fn npm_ci(dir: &str) -> Result<()> {
    let folder = root().join(dir);
    let lock = std::fs::read(folder.join("package-lock.json")).with_context(|| {
        format!("{dir}/package-lock.json is missing; restore it from version control")
    })?;
    let mut hasher = DefaultHasher::new();
    lock.hash(&mut hasher);
    let stamp = folder.join("node_modules/.windlass-installed");
    let state = format!("{:x}", hasher.finish());
    if std::fs::read_to_string(&stamp).is_ok_and(|s| s == state) {
        return Ok(());
    }
    step(&format!("Installing the npm packages of {dir}"));
    Cmd::new("npm")
        .args(["ci", "--no-audit", "--no-fund", "--loglevel=error"])
        .dir(Path::new(dir))
        .run()?;
    std::fs::write(stamp, state).context("noting that the packages are installed")
}
