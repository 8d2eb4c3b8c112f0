//! `cargo xtask release`: everything that is published of a version, made on this machine into one folder.

mod base;
mod binary;
mod chart;
mod deb;
mod image;
mod layout;
mod notes;
mod sbom;
mod third_party;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::process::{Cmd, step};
use crate::{apt, page, root, target_dir};

/// The version of everything in the repository.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Make what is published: for x86-64 and aarch64 an archive with the binary, a Debian package, and a container image;
/// the Helm chart, the npm packages, a wheel for Python, checksums, and the notes of this version from
/// docs/CHANGELOG.md.
///
/// Needs Linux on x86-64 or aarch64, Rust by rustup, Node.js, Python 3 with pip, dpkg-deb, curl and GNU tar. Fetches
/// what else it takes, all of it pinned: the linker (PyPI: ziglang, cargo-zigbuild), Rust's standard libraries, the
/// packages of Debian that the image is built on (deploy/image.toml), Helm (npm), and the chart of NATS
/// (deploy/helm/windlass). Where that chart cannot be fetched, WINDLASS_NATS_CHART names a folder that has it.
///
/// Files have the time of the last commit, or SOURCE_DATE_EPOCH: the same sources give the same archives.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Make just these parts: deb and image rest on binary, and make it too.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// The folder for all of it; what is there is replaced [default: `dist` where cargo builds]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Build with this profile of cargo: others than `release` are for trying this command.
    #[arg(long, default_value = "release")]
    profile: String,
    /// Do nothing but pin Debian's newest packages in deploy/image.toml, by apt on this machine.
    #[arg(long, conflicts_with_all = ["parts", "out"])]
    update_base: bool,
}

/// A part of what is published.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// An archive for each machine: the binary, its manual, completions and licences, and what it is made of (SBOM).
    Binary,
    /// A Debian package for each machine.
    Deb,
    /// A container image for both machines, as an archive of an OCI layout.
    Image,
    /// The Helm chart, with the chart of NATS in it, for Helm and for registries.
    Chart,
    /// The packages `windlass-client`, `windlass-react` and `windlass-server-sdk`.
    Npm,
    /// The server SDK for Python, as a wheel.
    Python,
}

/// A kind of machine that is released for.
pub(super) struct Machine {
    /// Rust's target for the machine.
    target: &'static str,
    /// The machine's name in Debian and in container images.
    debian: &'static str,
}

/// The machines that are released for.
const MACHINES: [Machine; 2] = [
    Machine { target: "x86_64-unknown-linux-gnu", debian: "amd64" },
    Machine { target: "aarch64-unknown-linux-gnu", debian: "arm64" },
];

/// The settings that all parts need.
pub(super) struct Release {
    /// The folder for the results.
    out: PathBuf,
    /// The folder for intermediate files; emptied at the start.
    work: PathBuf,
    /// The profile that cargo builds with.
    profile: String,
    /// The time of all files, in seconds since 1970.
    time: String,
}

/// Makes the parts that `args` ask for.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.update_base {
        return base::update();
    }
    let wants = |part| args.parts.is_empty() || args.parts.contains(&part);
    let release = Release::begin(args.out.clone(), args.profile.clone())?;
    apt::install(apt::BUILD)?;
    // Checks that may fail come before steps that take long.
    let chart = wants(Part::Chart).then(|| chart::prepare(&release)).transpose()?;
    let base = wants(Part::Image).then(base::fetch).transpose()?;
    let programs = [Part::Binary, Part::Deb, Part::Image].into_iter().any(wants);
    if programs || wants(Part::Npm) {
        page::build()?;
    }
    if programs {
        binary::build(&release)?;
        sbom::write(&release, base.as_ref())?;
        third_party::write_all(&release)?;
    }
    if wants(Part::Binary) {
        binary::archives(&release)?;
    }
    if wants(Part::Deb) {
        deb::packages(&release)?;
    }
    if let Some(base) = &base {
        image::archive(&release, base)?;
    }
    if let Some(chart) = &chart {
        chart::package(&release, chart)?;
    }
    if wants(Part::Npm) {
        npm(&release)?;
    }
    if wants(Part::Python) {
        wheel(&release)?;
    }
    fs::write(release.out.join("NOTES.md"), notes::of_this_version()?)?;
    checksums(&release.out)?;
    step(&format!("Windlass {VERSION} is in {}", release.out.display()));
    Ok(())
}

impl Release {
    fn begin(out: Option<PathBuf>, profile: String) -> Result<Release> {
        let out = out.unwrap_or_else(|| target_dir().join("dist"));
        let work = target_dir().join("release-work");
        for folder in [&out, &work] {
            if folder.exists() {
                // Only an earlier result may be removed.
                ensure!(
                    folder == &work || folder.join("SHA256SUMS").exists() || is_empty(folder)?,
                    "{} has files that no release put there: name another folder with --out",
                    folder.display()
                );
                fs::remove_dir_all(folder)?;
            }
            fs::create_dir_all(folder)?;
        }
        let out = out.canonicalize()?;
        let work = work.canonicalize()?;
        // Until everything is there, an empty list of checksums marks the folder as ours.
        fs::write(out.join("SHA256SUMS"), "")?;
        let committed = || Cmd::new("git").args(["log", "-1", "--format=%ct"]).output();
        let time = std::env::var("SOURCE_DATE_EPOCH").ok().or_else(committed);
        let time = time.context("no commit has a time to give to files: set SOURCE_DATE_EPOCH")?;
        Ok(Release { out, work, profile, time })
    }

    /// The folder for the files of one machine.
    fn work(&self, machine: &Machine) -> PathBuf {
        self.work.join(machine.debian)
    }

    /// Writes an archive of `folder`, or of one entry in it. The same files always give the same bytes.
    fn tar(&self, folder: &Path, entry: &str, to: &Path, options: &[&str]) -> Result<()> {
        Cmd::new("tar")
            .args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
            .arg(format!("--mtime=@{}", self.time))
            .args(options)
            .arg("--file")
            .arg(to)
            .arg("--directory")
            .arg(folder)
            .arg(entry)
            .run()
    }
}

fn is_empty(folder: &Path) -> Result<bool> {
    Ok(fs::read_dir(folder)?.next().is_none())
}

/// Copies a file with this mode, and makes the folders above it.
fn install(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
    write(to, &bytes, mode)
}

/// Writes a file with this mode, and makes the folders above it.
fn write(to: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let parent = to.parent().context("a file is in a folder")?;
    make_folder(parent)?;
    fs::write(to, bytes).with_context(|| format!("writing {}", to.display()))?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}

/// Makes a folder that all may read, whatever this user's mask.
fn make_folder(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if folder.is_dir() {
        return Ok(());
    }
    folder.parent().map_or(Ok(()), make_folder)?;
    fs::create_dir(folder).with_context(|| format!("making {}", folder.display()))?;
    Ok(fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?)
}

/// The licences of the project and of the libraries in its program: their names beside the program, and their files.
fn licences(release: &Release) -> [(&'static str, PathBuf); 3] {
    let own = |name| (name, root().join(name));
    [
        own("LICENSE-APACHE"),
        own("LICENSE-MIT"),
        ("third-party-licences.txt", third_party::file(release)),
    ]
}

fn npm(release: &Release) -> Result<()> {
    step("Packing the npm packages");
    // The other folders' npm packages are installed since the page was built.
    page::npm_ci("client-web/react")?;
    for folder in ["client-web", "client-web/react", "signaling/sdk/node"] {
        Cmd::new("npm")
            .args(["pack", "--silent", "--pack-destination"])
            .arg(&release.out)
            .dir(folder)
            .run()?;
    }
    Ok(())
}

/// Builds the Python wheel in a copy, as pip leaves files beside what it builds.
fn wheel(release: &Release) -> Result<()> {
    step("Packing the wheel");
    let copy = release.work.join("python");
    Cmd::new("cp").args(["-r", "signaling/sdk/python"]).arg(&copy).run()?;
    Cmd::new("python3")
        .args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"])
        .arg(&release.out)
        .arg(copy)
        .env("SOURCE_DATE_EPOCH", &release.time)
        .run()
}

/// Writes SHA256SUMS, which `sha256sum --check` reads.
fn checksums(out: &Path) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(out)? {
        names.push(entry?.file_name());
    }
    names.retain(|name| name != "SHA256SUMS");
    names.sort();
    let sums = Cmd::new("sha256sum").args(&names).dir(out).output();
    let sums = sums.context("`sha256sum` failed: is it installed?")?;
    Ok(fs::write(out.join("SHA256SUMS"), sums + "\n")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_in(file: &str, key: &str) -> String {
        let text = fs::read_to_string(root().join(file)).expect("a file of ours");
        let line = text.lines().find_map(|line| line.trim().strip_prefix(key));
        line.expect(key).trim_matches([' ', '"', ',', ':']).to_owned()
    }

    #[test]
    fn all_that_is_published_has_one_version() {
        for (file, key) in [
            ("client-web/package.json", "\"version\":"),
            ("client-web/react/package.json", "\"version\":"),
            ("client-web/react/package.json", "\"windlass-client\": \"^"),
            ("signaling/sdk/node/package.json", "\"version\":"),
            ("signaling/sdk/python/pyproject.toml", "version ="),
            ("deploy/helm/windlass/Chart.yaml", "version:"),
            ("deploy/helm/windlass/Chart.yaml", "appVersion:"),
        ] {
            assert_eq!(version_in(file, key), VERSION, "{file}, {key}");
        }
    }

    #[test]
    fn checksums_are_those_that_sha256sum_checks() {
        let out = tempfile::tempdir().expect("a folder");
        for name in ["b", "a"] {
            fs::write(out.path().join(name), name).expect("a file");
        }
        checksums(out.path()).expect("checksums");
        let check =
            || Cmd::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).dir(out.path());
        assert!(check().succeeds());
        fs::write(out.path().join("a"), "changed").expect("a file");
        assert!(!check().succeeds());
    }
}
