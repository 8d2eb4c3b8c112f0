//! System packages of a Debian-like machine.

use anyhow::{Result, bail};

use crate::process::{Cmd, step, which};

/// Packages to build the server: a C compiler, for cryptography and the allocator.
pub(crate) const BUILD: &[&str] = &["build-essential"];
/// Additional packages for the tests and the laboratory: the assembler that the encoder of enhanced recordings needs,
/// libvpx, a browser, ffmpeg to read clips, the store by which clusters learn of each other, a reader of small print,
/// issuers of certificates and addresses, what reads certificates, and pip.
pub(crate) const TEST: &[&str] = &[
    "nasm",
    "pkg-config",
    "libvpx-dev",
    "chromium",
    "ffmpeg",
    "nats-server",
    "tesseract-ocr",
    "tesseract-ocr-eng",
    "pebble",
    "coturn",
    "openssl",
    "python3-pip",
];
/// Additional packages for the long tests: shaped links, another browser, an encoder and an SFU that are none of
/// ours, and Go for its server SDK.
pub(crate) const SOAK: &[&str] = &[
    "iproute2",
    "firefox-esr",
    "webkit2gtk-driver",
    "xvfb",
    "python3-gst-1.0",
    "gir1.2-gst-rtsp-server-1.0",
    "gstreamer1.0-plugins-base",
    "gstreamer1.0-plugins-good",
    "gstreamer1.0-plugins-bad",
    "gstreamer1.0-nice",
    "golang-go",
    "golang-github-pion-webrtc.v3-dev",
    "prometheus",
    "baresip-core",
    "janus",
    "pulseaudio",
    "pulseaudio-utils",
    "libasound2-plugins",
];
/// Packages of a Rust whose standard library can be built for WebAssembly, where rustup has no target to give.
pub(crate) const WASM_FALLBACK: &[&str] = &["cargo-web", "rust-web-src", "lld", "binaryen"];
/// Packages to build and run programs for aarch64 on other machines.
pub(crate) const NEON: &[&str] = &["qemu-user", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"];

/// Installs those of `packages` that are missing.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    if which("dpkg-query").is_none() {
        eprintln!(
            "This is no Debian-like system: make sure that you have the equivalents of {}.",
            packages.join(", ")
        );
        return Ok(());
    }
    let missing: Vec<&str> = packages.iter().copied().filter(|p| !installed(p)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    step(&format!("Installing system packages: {}", missing.join(", ")));
    let root = Cmd::new("id").arg("-u").output().as_deref() == Some("0");
    if !root && which("sudo").is_none() {
        bail!(
            "root is needed: run `apt-get install {}` as root, then try again",
            missing.join(" ")
        );
    }
    let apt = || {
        let cmd = if root { Cmd::new("apt-get") } else { Cmd::new("sudo").arg("apt-get") };
        cmd.env("DEBIAN_FRONTEND", "noninteractive")
    };
    apt().args(["update", "-qq"]).run()?;
    apt().args(["install", "-y", "-qq", "--no-install-recommends"]).args(missing).run()
}

fn installed(package: &str) -> bool {
    Cmd::new("dpkg-query")
        .args(["-W", "-f=${Status}", package])
        .output()
        .is_some_and(|status| status.ends_with("ok installed"))
}
