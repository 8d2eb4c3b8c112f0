//! Builds the server's program for each machine. It is linked by Zig, whose linker knows the symbols of old versions
//! of glibc, so that the program runs on any Linux since. Libraries of GPUs are loaded when it runs, not linked.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::{MACHINES, Machine, Release, VERSION, install, licences, make_folder, write};
use crate::process::{Cmd, Missing, step};
use crate::{apt, python, root, rustup, target_dir};

/// The version of glibc that the program needs: that of Debian 11 and Ubuntu 20.04.
pub(super) const GLIBC: [u32; 2] = [2, 31];
/// The libraries that the program may be linked to: glibc's own.
const LIBRARIES: [&str; 7] = [
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
];
/// Maximum size of the program, in bytes.
const BYTES_MAX: u64 = 60_000_000;
/// Packages of PyPI, with versions: the linker, and the tool with which cargo uses it.
const TOOLS: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];

/// Builds the program for each machine, checks what it needs of a system, and has it write its manual and completions.
pub(super) fn build(release: &Release) -> Result<()> {
    // For the encoder of enhanced recordings, on x86-64.
    apt::install(&["nasm"])?;
    let tools = python::environment("release-tools", &TOOLS)?;
    for machine in &MACHINES {
        let target = machine.target;
        if !rustup::has_or_adds(target) {
            bail!(Missing(format!("Rust's target {target} (`rustup target add {target}`)")));
        }
        step(&format!("Building the server for {target}"));
        compile(machine, &release.profile, &tools)?;
        let program = program(release, machine);
        let needs = Needs::of(&program)?;
        needs.check(&program)?;
        step(&format!("{} is {} MB and needs {needs}", machine.debian, needs.bytes / 1_000_000));
    }
    manual(release)
}

/// The path where cargo puts the program of a machine.
pub(super) fn program(release: &Release, machine: &Machine) -> PathBuf {
    let folder = if release.profile == "dev" { "debug" } else { &release.profile };
    target_dir().join(machine.target).join(folder).join("windlass")
}

/// The folder of the manual and the completions.
pub(super) fn manual_folder(release: &Release) -> PathBuf {
    release.work.join("manual")
}

fn compile(machine: &Machine, profile: &str, tools: &Path) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(tools.to_owned()).chain(std::env::split_paths(&path));
    let [major, minor] = GLIBC;
    let mut flags = Vec::new();
    // Panics name lines without the folders of whoever builds, so that another build is the same.
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    for (folder, name) in [(cargo_home.or_else(home), "/cargo"), (Some(root()), "/windlass")] {
        let folder = folder.context("neither CARGO_HOME nor HOME is set")?;
        flags.push(format!("--remap-path-prefix={}={name}", folder.display()));
    }
    Cmd::cargo(["zigbuild", "--locked", "--package", "windlass", "--profile", profile])
        .arg("--target")
        .arg(format!("{}.{major}.{minor}", machine.target))
        .env("PATH", std::env::join_paths(path)?)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        // Kernels for aarch64 have pages of up to 64 KiB; jemalloc works with all that are not larger than it was built
        // for.
        .env("JEMALLOC_SYS_WITH_LG_PAGE", if machine.debian == "arm64" { "16" } else { "12" })
        .run()
}

/// Lets the program for this machine write the manual and the completions of all.
fn manual(release: &Release) -> Result<()> {
    let here = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let machine = MACHINES.iter().find(|machine| machine.target == here);
    let machine = machine
        .context("the manual is written by the program: release on Linux, on x86-64 or aarch64")?;
    let program = program(release, machine);
    let folder = manual_folder(release);
    Cmd::new(&program).arg("man").arg(folder.join("man")).run()?;
    for (shell, name) in COMPLETIONS {
        let text = Cmd::new(&program).args(["completions", shell]).output();
        let text = text.with_context(|| format!("`windlass completions {shell}` failed"))?;
        write(&folder.join("completions").join(name), (text + "\n").as_bytes(), 0o644)?;
    }
    Ok(())
}

/// Shells, and the file name that they expect for their completions.
pub(super) const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "windlass.bash"), ("fish", "windlass.fish"), ("zsh", "_windlass")];

/// Packs an archive for each machine.
pub(super) fn archives(release: &Release) -> Result<()> {
    step("Packing the programs");
    for machine in &MACHINES {
        let name = format!("windlass-{VERSION}-{}", machine.target);
        let archive = release.work(machine).join("archive");
        let folder = archive.join(&name);
        install(&program(release, machine), &folder.join("windlass"), 0o755)?;
        for (name, file) in licences(release) {
            install(&file, &folder.join(name), 0o644)?;
        }
        install(&super::sbom::file(release, machine), &folder.join("windlass.cdx.json"), 0o644)?;
        install_all(&manual_folder(release), &folder)?;
        let to = release.out.join(format!("{name}.tar.gz"));
        release.tar(&archive, &name, &to, &["--use-compress-program=gzip -9n"])?;
    }
    Ok(())
}

/// Copies all files of a folder, with those of its folders.
fn install_all(from: &Path, to: &Path) -> Result<()> {
    make_folder(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            install_all(&entry.path(), &to)?;
        } else {
            install(&entry.path(), &to, 0o644)?;
        }
    }
    Ok(())
}

/// What a program needs of the system that it runs on.
struct Needs {
    libraries: BTreeSet<String>,
    glibc: [u32; 2],
    bytes: u64,
}

impl Needs {
    fn of(program: &Path) -> Result<Needs> {
        let read = |what: &str| {
            let said = Cmd::new("readelf").args(["--wide", what]).arg(program).output();
            said.with_context(|| format!("`readelf {what}` could not read {}", program.display()))
        };
        Ok(Needs {
            libraries: libraries(&read("--dynamic")?),
            glibc: newest_glibc(&read("--version-info")?)?,
            bytes: fs::metadata(program)?.len(),
        })
    }

    fn check(&self, program: &Path) -> Result<()> {
        let program = program.display();
        let foreign: Vec<_> =
            self.libraries.iter().filter(|name| !LIBRARIES.contains(&name.as_str())).collect();
        ensure!(foreign.is_empty(), "{program} is linked to {foreign:?}, which few machines have");
        let [major, minor] = GLIBC;
        ensure!(self.glibc <= GLIBC, "{program} needs {self}, not {major}.{minor}");
        ensure!(
            self.bytes <= BYTES_MAX,
            "{program} has {} bytes, more than {BYTES_MAX}",
            self.bytes
        );
        Ok(())
    }
}

impl std::fmt::Display for Needs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "glibc {}.{}", self.glibc[0], self.glibc[1])
    }
}

/// The libraries that `readelf --dynamic` lists as needed.
fn libraries(said: &str) -> BTreeSet<String> {
    let needed = said.lines().filter(|line| line.contains("(NEEDED)"));
    needed.filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned())).collect()
}

/// The newest version of glibc whose symbols `readelf --version-info` names.
fn newest_glibc(said: &str) -> Result<[u32; 2]> {
    let names = said.split_whitespace().filter_map(|word| word.strip_prefix("GLIBC_"));
    let version = |name: &str| {
        let mut numbers = name.split('.').map(|number| number.parse().ok());
        Some([numbers.next()??, numbers.next()??])
    };
    names.filter_map(version).max().context("readelf names no version of glibc")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DYNAMIC: &str = "Dynamic section at offset 0x1f contains 2 entries:
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libvpx.so.7]
 0x000000000000000c (INIT)               0x1000";
    const VERSIONS: &str = "Version needs section '.gnu.version_r' contains 1 entry:
  000000: Version: 1  File: libc.so.6  Cnt: 3
  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 5
  0x0020:   Name: GLIBC_2.31  Flags: none  Version: 4
  0x0030:   Name: GLIBC_2.2.5  Flags: none  Version: 3";

    #[test]
    fn what_a_program_needs_is_read_from_readelf() {
        assert_eq!(newest_glibc(VERSIONS).ok(), Some([2, 31]));
        assert!(newest_glibc("").is_err());
        let found: Vec<_> = libraries(DYNAMIC).into_iter().collect();
        assert_eq!(found, ["libc.so.6", "libvpx.so.7"]);
    }

    #[test]
    fn a_program_that_needs_more_than_it_may_is_refused() {
        let needs = |library: &str, glibc, bytes| {
            let libraries = [library.to_owned()].into();
            Needs { libraries, glibc, bytes }
                .check(Path::new("windlass"))
                .map_err(|e| e.to_string())
        };
        assert_eq!(needs("libc.so.6", GLIBC, BYTES_MAX), Ok(()));
        let refused = |ended: Result<(), String>, why: &str| ended.is_err_and(|e| e.contains(why));
        assert!(refused(needs("libvpx.so.7", GLIBC, 1), "libvpx"));
        assert!(refused(needs("libc.so.6", [2, 34], 1), "2.34"));
        assert!(refused(needs("libc.so.6", GLIBC, BYTES_MAX + 1), "60000001"));
    }
}
