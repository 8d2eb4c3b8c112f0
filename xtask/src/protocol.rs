//! Writes what is generated from the server's types: the messages of the browser's client, the server SDKs, and pages
//! of the reference.

mod api;
mod go;
mod node;
mod page;
mod python;

use std::path::PathBuf;

use anyhow::{Context, Result};

use self::api::Api;
use crate::process::{Cmd, step};
use crate::root;

/// The OpenAPI description, which the SDKs are made from. `windlass-signaling` has a test that it is the server's.
const DESCRIPTION: &str = "signaling/sdk/openapi.json";

/// Writes `client-web/src/sdk/protocol.gen.ts`, the description, the generated files of `signaling/sdk`, and the pages.
pub(crate) fn write() -> Result<()> {
    step("Writing the client's message types");
    let messages =
        printed("windlass-protocol", &["--features", "typescript", "--example", "typescript"])?;
    write_file(&root().join("client-web/src/sdk/protocol.gen.ts"), &messages)?;
    step("Writing the server SDKs' types and requests, and the reference");
    let description = printed("windlass-signaling", &["--example", "openapi"])?;
    write_file(&root().join(DESCRIPTION), &description)?;
    for (path, text) in made()? {
        write_file(&path, &text)?;
    }
    Ok(())
}

/// The output of an example.
fn printed(package: &str, example: &[&str]) -> Result<String> {
    let run = Cmd::cargo(["run", "--quiet", "--package", package]).args(example);
    let made = run.output().with_context(|| {
        format!("the types could not be made; `cargo check -p {package} --examples` says why")
    })?;
    Ok(made + "\n")
}

fn write_file(path: &PathBuf, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The files that are made from the description, as they should be.
fn made() -> Result<Vec<(PathBuf, String)>> {
    let description = root().join(DESCRIPTION);
    let text = std::fs::read_to_string(&description)
        .with_context(|| format!("cannot read {}", description.display()))?;
    let api = Api::read(&text).with_context(|| DESCRIPTION.to_owned())?;
    let at = |path: &str| root().join("signaling/sdk").join(path);
    let page = |name: &str| root().join("docs").join(name);
    Ok(vec![
        (at("node/src/types.gen.d.ts"), node::types(&api)),
        (at("node/src/admin.gen.js"), node::requests(&api)),
        (at("python/windlass_server_sdk/types_gen.py"), python::types(&api)),
        (at("python/windlass_server_sdk/admin_gen.py"), python::requests(&api)),
        (at("go/types_gen.go"), go::types(&api)),
        (at("go/admin_gen.go"), go::requests(&api)),
        (page("api.md"), page::api(&api)),
        (page("errors.md"), page::errors(&text)?),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sdks_and_pages_are_those_of_the_description() {
        for (path, made) in made().unwrap() {
            let written = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(written == made, "{} differs: run `cargo xtask protocol`", path.display());
        }
    }
}
