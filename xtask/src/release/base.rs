//! The base of the container image: a few Debian packages, pinned by the digests of their files in
//! `deploy/image.toml`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::layout::sha256;
use super::{MACHINES, Machine};
use crate::process::{Cmd, step, which};
use crate::{apt, root, target_dir};

/// The packages: the C library, the library that programs compiled by GCC need, with its licence, and the name of the
/// system. GPUs' libraries come from the machine that the image runs on.
const PACKAGES: [&str; 4] = ["base-files", "gcc-14-base", "libc6", "libgcc-s1"];
/// The package whose file is the same for all machines: the authorities that certificates may be of.
const FOR_ALL: &str = "ca-certificates";
/// The release of Debian.
const SUITE: &str = "trixie";
/// Debian's archive of the newest packages.
const ARCHIVE: &str = "http://deb.debian.org";
/// Debian's archive of all packages that ever were in the other one: files stay there when newer ones replace them.
const SNAPSHOT: &str = "https://snapshot.debian.org/archive";
/// Files that a server has no use for. Licences stay.
const LEFT_OUT: [&str; 7] = [
    "usr/lib/*/gconv",
    "usr/share/doc/*/changelog*",
    "usr/share/doc/*/NEWS*",
    "usr/share/doc/*/README*",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
];

/// The remark at the beginning of `deploy/image.toml`.
const HEAD: &str = "# The packages of Debian that the container image is built on. `cargo xtask release --update-base` pins the newest ones.\n\n";

/// The pinned packages.
#[derive(Serialize, Deserialize)]
pub(super) struct Base {
    /// When the packages were the newest: a time that snapshot.debian.org knows.
    snapshot: String,
    package: Vec<Package>,
}

/// The file of a package.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct Package {
    /// The file's path in Debian's archive.
    file: String,
    sha256: String,
}

/// Reads the pins, and fetches the files that are missing.
pub(super) fn fetch() -> Result<Base> {
    let base = Base::read()?;
    step("Fetching the packages of Debian that the image is built on");
    if which("curl").is_none() || which("dpkg-deb").is_none() {
        apt::install(&["curl", "dpkg"])?;
    }
    for package in &base.package {
        package.fetch(&base.snapshot)?;
    }
    Ok(base)
}

/// Pins the newest packages, as this machine's apt finds and verifies them.
pub(super) fn update() -> Result<()> {
    step(&format!("Asking Debian for the newest packages of {SUITE}"));
    let state = target_dir().join("release-tools/apt");
    for folder in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(state.join(folder))?;
    }
    let signed = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]";
    let sources = state.join("sources.list");
    let lists = [
        format!("{signed} {ARCHIVE}/debian {SUITE} main"),
        format!("{signed} {ARCHIVE}/debian {SUITE}-updates main"),
        format!("{signed} {ARCHIVE}/debian-security {SUITE}-security main"),
    ];
    fs::write(&sources, lists.join("\n") + "\n")?;
    apt::install(&["debian-archive-keyring"])?;
    let apt_get = || {
        // apt gets a state of its own, as the packages that this machine has installed do not matter here.
        let cmd = Cmd::new("apt-get")
            .arg("-o")
            .arg(format!("Dir::State={}", state.display()))
            .arg("-o")
            .arg(format!("Dir::Cache={}", state.join("cache").display()))
            .arg("-o")
            .arg(format!("Dir::Etc::sourcelist={}", sources.display()))
            .args(["-o", "Dir::State::status=/dev/null", "-o", "Dir::Etc::sourceparts=/dev/null"])
            .args(["-o", "APT::Architecture=amd64", "-o", "APT::Architectures::=amd64"]);
        cmd.args(["-o", "APT::Architectures::=arm64"])
    };
    apt_get().args(["update", "-qq"]).run()?;
    let of_each = MACHINES.iter().flat_map(|machine| {
        PACKAGES.iter().map(move |package| format!("{package}:{}", machine.debian))
    });
    let all = of_each.chain([FOR_ALL.to_owned()]);
    let said = apt_get().args(["download", "--print-uris"]).args(all).output();
    let said = said.context("apt-get found not all packages")?;
    let mut package = said.lines().map(Package::of_apt).collect::<Result<Vec<_>>>()?;
    package.sort();
    let now = Cmd::new("date").args(["--utc", "+%Y%m%dT%H%M%SZ"]).output();
    let base = Base { snapshot: now.context("`date` failed")?, package };
    base.check()?;
    fs::write(pins(), HEAD.to_owned() + &toml::to_string(&base)?)?;
    step("Pinned in deploy/image.toml: commit it");
    Ok(())
}

fn pins() -> PathBuf {
    root().join("deploy/image.toml")
}

impl Base {
    pub(super) fn read() -> Result<Base> {
        let text = fs::read_to_string(pins()).context("reading deploy/image.toml")?;
        let base: Base = toml::from_str(&text).context("deploy/image.toml")?;
        base.check()?;
        Ok(base)
    }

    /// Checks that each machine has all packages.
    fn check(&self) -> Result<()> {
        for machine in &MACHINES {
            let there: BTreeSet<_> = self.of(machine).map(Package::name).collect();
            let wanted: BTreeSet<_> = PACKAGES.into_iter().chain([FOR_ALL]).collect();
            ensure!(there == wanted, "deploy/image.toml has {there:?} for {}", machine.debian);
        }
        Ok(())
    }

    /// The packages of a machine.
    pub(super) fn of(&self, machine: &Machine) -> impl Iterator<Item = &Package> {
        let kinds = [format!("_{}.deb", machine.debian), "_all.deb".into()];
        self.package.iter().filter(move |p| kinds.iter().any(|kind| p.file.ends_with(kind)))
    }

    /// Unpacks a machine's packages into a folder, without the files that a server has no use for.
    pub(super) fn unpack(&self, machine: &Machine, to: &Path) -> Result<()> {
        for package in self.of(machine) {
            let deb = package.kept();
            Cmd::new("dpkg-deb").arg("--extract").arg(&deb).arg(to).run()?;
            // Tools that look for known vulnerabilities expect the installed packages here, without dpkg's database.
            let control = Cmd::new("dpkg-deb").arg("--field").arg(&deb).output();
            let control = control.context("`dpkg-deb --field` failed")? + "\n";
            let status = to.join("var/lib/dpkg/status.d").join(package.name());
            super::write(&status, control.as_bytes(), 0o644)?;
        }
        for pattern in LEFT_OUT {
            for path in matching(to, pattern)? {
                if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
            }
        }
        authorities(to)
    }
}

/// Writes all certificates of authorities to one file, as `update-ca-certificates` makes it.
fn authorities(to: &Path) -> Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(to.join("usr/share/ca-certificates/mozilla"))? {
        files.push(entry?.path());
    }
    files.sort();
    let mut all = Vec::new();
    for file in files {
        all.extend(fs::read(file)?);
    }
    ensure!(!all.is_empty(), "the package ca-certificates has no certificates");
    super::write(&to.join("etc/ssl/certs/ca-certificates.crt"), &all, 0o644)
}

/// Files and folders below `folder` that match a pattern, in which `*` stands for any end of a name.
fn matching(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>> {
    let mut found = vec![folder.to_owned()];
    for part in pattern.split('/') {
        let mut next = Vec::new();
        // Links are left alone: a package may link to the documents of another, which have their own path.
        for folder in found.iter().filter(|folder| folder.is_dir() && !folder.is_symlink()) {
            match part.strip_suffix('*') {
                None if folder.join(part).exists() => next.push(folder.join(part)),
                None => {}
                Some(begin) => {
                    for entry in fs::read_dir(folder)? {
                        let entry = entry?;
                        if entry.file_name().to_string_lossy().starts_with(begin) {
                            next.push(entry.path());
                        }
                    }
                }
            }
        }
        found = next;
    }
    Ok(found)
}

impl Package {
    /// Reads a line that `apt-get download --print-uris` prints: `'URL' name bytes SHA256:digest`.
    fn of_apt(line: &str) -> Result<Package> {
        let mut words = line.split(' ');
        let url = words.next().and_then(|word| word.strip_prefix('\'')?.strip_suffix('\''));
        let file = url.and_then(|url| url.strip_prefix(ARCHIVE)?.strip_prefix('/'));
        let sha256 = words.nth(2).and_then(|word| word.strip_prefix("SHA256:"));
        match (file, sha256) {
            (Some(file), Some(sha256)) => Ok(Package { file: file.into(), sha256: sha256.into() }),
            _ => bail!("apt-get printed what is no package's address: {line}"),
        }
    }

    /// The file's name, without its folders.
    fn base_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or_default()
    }

    /// The package's name: the beginning of its file's name.
    pub(super) fn name(&self) -> &str {
        self.base_name().split('_').next().unwrap_or_default()
    }

    /// The package's version. An escaped colon and an epoch are not in the file's name.
    pub(super) fn version(&self) -> String {
        let version = self.base_name().split('_').nth(1).unwrap_or_default();
        version.replace("%2b", "+").replace("%7e", "~")
    }

    /// The SHA-256 digest of the package's file.
    pub(super) fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The path where the package's file is kept on this machine.
    fn kept(&self) -> PathBuf {
        target_dir().join("release-tools/debian").join(format!("{}.deb", self.sha256))
    }

    fn fetch(&self, snapshot: &str) -> Result<()> {
        let kept = self.kept();
        if kept.exists() {
            return Ok(());
        }
        let (archive, path) = self.file.split_once('/').context("the archive comes first")?;
        let urls =
            [format!("{ARCHIVE}/{}", self.file), format!("{SNAPSHOT}/{archive}/{snapshot}/{path}")];
        let draft = kept.with_extension("draft");
        fs::create_dir_all(kept.parent().context("it is in a folder")?)?;
        let curl = |url: &String| {
            Cmd::new("curl")
                .args(["--fail", "--silent", "--location", "--output"])
                .arg(&draft)
                .arg(url)
        };
        ensure!(
            urls.iter().any(|url| curl(url).succeeds()),
            "{} is at neither {}: is the network there?",
            self.base_name(),
            urls.join(" nor ")
        );
        let there = sha256(&draft)?;
        ensure!(
            there == self.sha256,
            "{} has the digest {there}, and deploy/image.toml says {}",
            self.base_name(),
            self.sha256
        );
        Ok(fs::rename(draft, kept)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pins_name_all_packages_for_each_machine() {
        assert!(Base::read().is_ok());
    }

    #[test]
    fn a_package_is_read_from_what_apt_prints() {
        let line = "'http://deb.debian.org/debian/pool/main/b/base-files/base-files_13.8%2bdeb13u8_arm64.deb' base-files_13.8+deb13u8_arm64.deb 88324 SHA256:f5a0";
        let package = Package::of_apt(line).expect("a package");
        assert_eq!(
            package.file,
            "debian/pool/main/b/base-files/base-files_13.8%2bdeb13u8_arm64.deb"
        );
        assert_eq!((package.name(), package.version().as_str()), ("base-files", "13.8+deb13u8"));
        assert_eq!(package.sha256, "f5a0");
        assert!(Package::of_apt("E: Unable to locate package").is_err());
    }

    #[test]
    fn patterns_match_the_ends_of_names() {
        let dir = tempfile::tempdir().expect("a folder");
        for file in ["doc/a/README.txt", "doc/b/README", "doc/b/copyright", "doc/file"] {
            super::super::write(&dir.path().join(file), b"", 0o644).expect("a file");
        }
        let mut found = matching(dir.path(), "doc/*/README*").expect("a folder to look in");
        found.sort();
        assert_eq!(found, ["doc/a/README.txt", "doc/b/README"].map(|file| dir.path().join(file)));
        assert_eq!(matching(dir.path(), "none/*").expect("nothing"), [""; 0].map(PathBuf::from));
    }
}
