//! GStreamer's Rust plugins for WHIP and WHEP, which Debian 12 has not.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::process::{Cmd, Missing, step};
use crate::{apt, target_dir};

/// Debian packages with what the plugins are built against.
const PACKAGES: &[&str] = &[
    "libgstreamer1.0-dev",
    "libgstreamer-plugins-base1.0-dev",
    "libgstreamer-plugins-bad1.0-dev",
    "libssl-dev",
    "pkg-config",
    "curl",
];
/// The last version for GStreamer 1.22.
const VERSION: &str = "0.12.10";
/// The crates that hold the plugins, and the SHA-256 of each archive.
const PLUGINS: [(&str, &str); 2] = [
    ("gst-plugin-webrtc", "55aa68ba60ae0b94f750b67c89b5bd8d5c72407f4cdac90e5329b02a19ee27aa"),
    ("gst-plugin-webrtchttp", "e5f55937433d747b2a6810d6d62df3acd88121f3ed8a1486b1cc436cda52363b"),
];

/// The folder of the plugins, for GST_PLUGIN_PATH. They are built once, by the versions that their authors locked, if
/// they did; [`Missing`] where crates.io cannot be reached.
pub(crate) fn plugins() -> Result<PathBuf> {
    let folder = target_dir().join(format!("gstreamer-{VERSION}"));
    let results = folder.join("target/debug");
    if results.join("libgstrswebrtc.so").exists() && results.join("libgstwebrtchttp.so").exists() {
        return Ok(results);
    }
    apt::install(PACKAGES)?;
    fs::create_dir_all(&folder)?;
    for (name, sha256) in PLUGINS {
        step(&format!("Building {name} {VERSION}"));
        let archive = format!("{name}-{VERSION}.crate");
        let url = format!("https://static.crates.io/crates/{name}/{archive}");
        let fetch = ["--fail", "--location", "--silent", "--show-error", "--output"];
        if !Cmd::new("curl").args(fetch).args([&archive, &url]).dir(&folder).succeeds() {
            bail!(Missing(format!("{url} (crates.io)")));
        }
        fs::write(folder.join("sums"), format!("{sha256}  {archive}\n"))?;
        Cmd::new("sha256sum").args(["--check", "--quiet", "sums"]).dir(&folder).run()?;
        Cmd::new("tar").args(["--extract", "--gzip", "--file", &archive]).dir(&folder).run()?;
        let source = folder.join(format!("{name}-{VERSION}"));
        // Else cargo takes it for a part of the workspace around it.
        let mut manifest = OpenOptions::new().append(true).open(source.join("Cargo.toml"))?;
        manifest.write_all(b"\n[workspace]\n")?;
        let locked = source.join("Cargo.lock").exists().then_some("--locked");
        Cmd::cargo(["build", "--lib", "--quiet"])
            .args(locked)
            .dir(source)
            .env("CARGO_TARGET_DIR", folder.join("target"))
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .run()?;
    }
    Ok(results)
}
