//! The client's message types, written from the server's.

use anyhow::{Context, Result};

use crate::process::{Cmd, step};
use crate::root;

/// Writes `client-web/src/sdk/protocol.gen.ts`.
pub(crate) fn write() -> Result<()> {
    step("Writing the client's message types");
    let made = Cmd::cargo(["run", "--quiet", "--package", "windlass-protocol", "--features", "typescript", "--example", "typescript"])
        .output()
        .context("the types could not be made; `cargo check -p windlass-protocol --features typescript` says why")?;
    let path = root().join("client-web/src/sdk/protocol.gen.ts");
    std::fs::write(&path, format!("{made}\n"))
        .with_context(|| format!("cannot write {}", path.display()))
}
