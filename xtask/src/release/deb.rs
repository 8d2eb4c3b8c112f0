//! The Debian package: program, service, configuration file, manual and completions, by `dpkg-deb`. Its sources are in
//! `deploy/debian`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::binary::{self, COMPLETIONS, GLIBC};
use super::{MACHINES, Machine, Release, VERSION, install, licences, make_folder, sbom, write};
use crate::process::{Cmd, step};
use crate::{apt, root};

/// A file of the package: its source, its path in the package, and its mode.
type File = (PathBuf, String, u32);

/// Files that administrators change, which upgrades leave alone.
const CONFIGURATION: [&str; 1] = ["etc/windlass/windlass.yaml"];
/// Scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// The folder of the package's documents.
const DOCS: &str = "usr/share/doc/windlass";

/// The folder of what other programs read: alert rules and the dashboard.
const SHARED: &str = "usr/share/windlass";

/// Makes a package for each machine.
pub(super) fn packages(release: &Release) -> Result<()> {
    step("Making the Debian packages");
    apt::install(&["dpkg"])?;
    for machine in &MACHINES {
        let folder = release.work(machine).join("deb");
        make_folder(&folder)?;
        let mut bytes = 0;
        for (from, to, mode) in files(release, machine) {
            install(&from, &folder.join(to), mode)?;
            bytes += fs::metadata(from)?.len();
        }
        for (section, page) in pages(release)? {
            let to = folder.join("usr/share/man").join(section).join(name_of(&page)?);
            install(&page, &to, 0o644)?;
            Cmd::new("gzip").args(["-9", "--no-name"]).arg(&to).run()?;
        }
        let changelog = folder.join(DOCS).join("changelog");
        install(&root().join("docs/CHANGELOG.md"), &changelog, 0o644)?;
        Cmd::new("gzip").args(["-9", "--no-name"]).arg(&changelog).run()?;
        let meta = folder.join("DEBIAN");
        write(&meta.join("control"), control(machine, bytes).as_bytes(), 0o644)?;
        let configuration = CONFIGURATION.map(|file| format!("/{file}\n")).concat();
        write(&meta.join("conffiles"), configuration.as_bytes(), 0o644)?;
        for script in SCRIPTS {
            install(&source(script), &meta.join(script), 0o755)?;
        }
        let to = release.out.join(format!("windlass_{VERSION}_{}.deb", machine.debian));
        Cmd::new("dpkg-deb")
            .args(["--root-owner-group", "-Zxz", "--build"])
            .arg(&folder)
            .arg(to)
            .env("SOURCE_DATE_EPOCH", &release.time)
            .run()?;
    }
    Ok(())
}

fn source(name: &str) -> PathBuf {
    deployed("debian").join(name)
}

fn deployed(name: &str) -> PathBuf {
    root().join("deploy").join(name)
}

/// The files of the package, without those that are compressed.
fn files(release: &Release, machine: &Machine) -> Vec<File> {
    let mut files = vec![
        (binary::program(release, machine), "usr/bin/windlass".into(), 0o755),
        (source("windlass.service"), "usr/lib/systemd/system/windlass.service".into(), 0o644),
        (source("windlass.yaml"), CONFIGURATION[0].into(), 0o644),
        (source("copyright"), format!("{DOCS}/copyright"), 0o644),
        (deployed("prometheus/alerts.yml"), format!("{SHARED}/alerts.yml"), 0o644),
        (deployed("grafana/windlass.json"), format!("{SHARED}/grafana.json"), 0o644),
        (sbom::file(release, machine), format!("{DOCS}/windlass.cdx.json"), 0o644),
    ];
    for (name, file) in licences(release) {
        files.push((file, format!("{DOCS}/{name}"), 0o644));
    }
    for (shell, name) in COMPLETIONS {
        let to = match shell {
            "bash" => "bash-completion/completions/windlass",
            "fish" => "fish/vendor_completions.d/windlass.fish",
            _ => "zsh/vendor-completions/_windlass",
        };
        let from = binary::manual_folder(release).join("completions").join(name);
        files.push((from, format!("usr/share/{to}"), 0o644));
    }
    files
}

/// The manual's pages, each with the folder of its section.
fn pages(release: &Release) -> Result<Vec<(String, PathBuf)>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(binary::manual_folder(release).join("man"))? {
        let page = entry?.path();
        let section = page.extension().context("a page's name ends with its section")?;
        pages.push((format!("man{}", section.to_string_lossy()), page));
    }
    Ok(pages)
}

fn name_of(file: &Path) -> Result<&std::ffi::OsStr> {
    file.file_name().context("it has a name")
}

/// The control file, which describes the package to dpkg.
fn control(machine: &Machine, bytes: u64) -> String {
    let [major, minor] = GLIBC;
    format!(
        "Package: windlass
Version: {VERSION}
Architecture: {}
Maintainer: The Windlass authors <windlass@users.noreply.github.com>
Installed-Size: {}
Depends: libc6 (>= {major}.{minor}), adduser, init-system-helpers
Recommends: ca-certificates
Section: net
Priority: optional
Homepage: {}
Description: WebRTC SFU with neural enhancement built in
 A server for video calls. It forwards what participants send, and improves
 the pictures of those with a weak uplink. The package has the server, its
 web page, and a systemd service.
",
        machine.debian,
        bytes.div_ceil(1024),
        env!("CARGO_PKG_REPOSITORY"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed() -> Vec<(PathBuf, String, u32)> {
        let release = Release {
            out: "/out".into(),
            work: "/work".into(),
            profile: "release".into(),
            time: "0".into(),
        };
        files(&release, &MACHINES[0])
    }

    #[test]
    fn what_the_service_names_is_in_the_package() {
        let unit = fs::read_to_string(source("windlass.service")).expect("the unit");
        let files: Vec<_> = listed().into_iter().map(|(_, to, _)| to).collect();
        let words = unit
            .lines()
            .filter(|line| line.starts_with("ExecStart="))
            .flat_map(str::split_whitespace);
        let paths =
            words.filter_map(|word| word.trim_start_matches("ExecStart=").strip_prefix('/'));
        let mut named = 0;
        for path in paths {
            assert!(files.iter().any(|file| file == path), "{path}");
            named += 1;
        }
        assert_eq!(named, 2, "the program and its configuration");
        assert!(CONFIGURATION.iter().all(|file| files.iter().any(|there| there == file)));
    }

    #[test]
    fn the_service_runs_no_program_that_a_bare_debian_lacks() {
        let unit = fs::read_to_string(source("windlass.service")).expect("the unit");
        let files: Vec<_> = listed().into_iter().map(|(_, to, _)| to).collect();
        let commands = unit.lines().filter(|line| line.starts_with("Exec"));
        let mut programs = Vec::new();
        for command in commands.filter_map(|line| line.split_once('=')) {
            programs.push(command.1.split_whitespace().next().expect("a program"));
        }
        assert!(programs.len() > 3, "{programs:?}");
        for program in programs {
            // Debian's policy promises a shell, and no `kill` beside it.
            let there = program == "/bin/sh" || files.iter().any(|file| file == &program[1..]);
            assert!(there, "{program}");
        }
    }

    #[test]
    fn systemd_never_gives_up_on_the_service() {
        let unit = fs::read_to_string(source("windlass.service")).expect("the unit");
        let (general, service) = unit.split_once("[Service]").expect("two sections");
        // Five failures in ten seconds are soon had, where the network is late.
        assert!(general.lines().any(|line| line == "StartLimitIntervalSec=0"), "{general}");
        assert!(service.lines().any(|line| line == "Restart=on-failure"), "{service}");
    }

    #[test]
    fn what_the_manual_names_of_the_package_is_in_it() {
        let page = fs::read_to_string(root().join("docs/day.md")).expect("the page");
        let is_end = |c: char| c.is_whitespace() || c == '`';
        let names: Vec<_> = page
            .split(is_end)
            .filter_map(|word| word.strip_prefix('/'))
            .filter(|word| word.starts_with(SHARED) || word.ends_with("windlass.yaml"))
            .collect();
        assert!(names.len() > 2, "{names:?}");
        let files: Vec<_> = listed().into_iter().map(|(_, to, _)| to).collect();
        for name in names {
            assert!(files.iter().any(|file| file == name), "{name}");
        }
    }

    #[test]
    fn files_that_are_not_made_first_are_there() {
        for (from, to, mode) in listed() {
            let made = from.starts_with("/work") || from.starts_with(crate::target_dir());
            assert!(made || from.is_file(), "{} for {to}", from.display());
            assert_eq!(mode == 0o755, to.starts_with("usr/bin/"), "{to}");
        }
        assert!(SCRIPTS.iter().all(|script| source(script).is_file()));
    }

    #[test]
    fn the_package_says_which_machine_and_which_glibc_it_needs() {
        let control = control(&MACHINES[1], 1025);
        for line in [
            "Architecture: arm64",
            "Depends: libc6 (>= 2.31), adduser, init-system-helpers",
            "Installed-Size: 2",
        ] {
            assert!(control.lines().any(|there| there == line), "{control}");
        }
        assert!(control.lines().skip(12).all(|line| line.starts_with(' ')), "{control}");
    }
}
