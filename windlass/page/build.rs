//! Makes sure that the folder of the demo page exists, so that the server builds without it.

use std::path::Path;

fn main() {
    let dist = Path::new("../../client-web/dist");
    if let Err(e) = std::fs::create_dir_all(dist) {
        println!("cargo::warning=cannot create {}: {e}", dist.display());
    }
    // A page built later is a reason to embed anew.
    println!("cargo::rerun-if-changed={}", dist.display());
}
