//! The SBOM (list of components) of the program and of the image, as CycloneDX 1.5. It is made from cargo's own tree
//! of dependencies, with the digests of `Cargo.lock`, and from the image's Debian packages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::base::Base;
use super::{MACHINES, Machine, Release, VERSION};
use crate::process::{Cmd, step};
use crate::root;

/// Writes the program's SBOM for each machine, and with `base` the image's too.
pub(super) fn write(release: &Release, base: Option<&Base>) -> Result<()> {
    step("Listing what the programs are made of");
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("reading Cargo.lock")?;
    let lock: Lock = toml::from_str(&lock).context("Cargo.lock")?;
    for machine in &MACHINES {
        let crates = Crates::of(machine)?;
        let document = document(&crates, &lock, &[]);
        super::write(&file(release, machine), document.to_string().as_bytes(), 0o644)?;
        if let Some(base) = base {
            let packages: Vec<_> =
                base.of(machine).map(|package| debian(package, machine)).collect();
            let document = self::document(&crates, &lock, &packages);
            super::write(&of_image(release, machine), document.to_string().as_bytes(), 0o644)?;
        }
    }
    Ok(())
}

/// The path of the program's SBOM.
pub(super) fn file(release: &Release, machine: &Machine) -> PathBuf {
    release.work(machine).join("windlass.cdx.json")
}

/// The path of the image's SBOM.
pub(super) fn of_image(release: &Release, machine: &Machine) -> PathBuf {
    release.work(machine).join("image.cdx.json")
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// A crate, by name and version.
pub(super) type Id = (String, String);

/// Crates with their licences, and the crates that each depends on.
#[derive(Default)]
pub(super) struct Crates {
    pub(super) licences: BTreeMap<Id, String>,
    arrows: BTreeMap<Id, BTreeSet<Id>>,
}

impl Crates {
    /// The crates that the program is compiled from.
    pub(super) fn of(machine: &Machine) -> Result<Crates> {
        let tree = Cmd::cargo(["tree", "--locked", "--package", "windlass"])
            .args(["--target", machine.target, "--edges", "normal,no-proc-macro"])
            .args(["--prefix", "depth", "--format", "{p}|{l}"])
            .output();
        Crates::read(&tree.context("`cargo tree` failed; run it to see why")?)
    }

    /// Reads lines such as `2serde v1.0.0 (/folder)|MIT (*)`: depth, name, version, licence, and whether it was there
    /// before.
    fn read(tree: &str) -> Result<Crates> {
        let mut crates = Crates::default();
        let mut above: Vec<Id> = Vec::new();
        for line in tree.lines() {
            let entry = || {
                let (package, licence) = line.split_once('|')?;
                let at = package.find(|c: char| !c.is_ascii_digit())?;
                let depth: usize = package[..at].parse().ok()?;
                let mut words = package[at..].split(' ');
                let id = (words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned());
                let licence = licence.trim_end_matches(" (*)").replace('/', " OR ");
                let licence: Vec<_> = licence.split_whitespace().collect();
                Some((depth, id, licence.join(" ")))
            };
            let (depth, id, licence) = entry()
                .with_context(|| format!("`cargo tree` printed what is no crate: {line}"))?;
            above.truncate(depth);
            if let Some(parent) = above.last() {
                crates.arrows.entry(parent.clone()).or_default().insert(id.clone());
            }
            crates.licences.insert(id.clone(), licence);
            above.push(id);
        }
        Ok(crates)
    }
}

/// The package URL of a crate, by which databases of vulnerabilities name it.
fn purl((name, version): &Id) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

fn document(crates: &Crates, lock: &Lock, more: &[Value]) -> Value {
    let ours = ("windlass".to_owned(), VERSION.to_owned());
    let component = |(id, licence): (&Id, &String)| {
        let mut component = json!({
            "type": if *id == ours { "application" } else { "library" },
            "bom-ref": purl(id),
            "name": id.0,
            "version": id.1,
            "purl": purl(id),
        });
        if !licence.is_empty() {
            component["licenses"] = json!([{ "expression": licence }]);
        }
        let of = |locked: &&Locked| locked.name == id.0 && locked.version == id.1;
        if let Some(digest) = lock.package.iter().find(of).and_then(|l| l.checksum.as_ref()) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": digest }]);
        }
        component
    };
    let (own, others): (Vec<_>, Vec<_>) = crates.licences.iter().partition(|(id, _)| **id == ours);
    let arrows = crates.arrows.iter().map(
        |(id, to)| json!({ "ref": purl(id), "dependsOn": to.iter().map(purl).collect::<Vec<_>>() }),
    );
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": own.into_iter().map(component).next() },
        "components": others.into_iter().map(component).chain(more.iter().cloned()).collect::<Vec<_>>(),
        "dependencies": arrows.collect::<Vec<_>>(),
    })
}

/// A package of Debian, as a component.
fn debian(package: &super::base::Package, machine: &Machine) -> Value {
    let (name, version) = (package.name(), package.version());
    let purl = format!(
        "pkg:deb/debian/{name}@{}?arch={}&distro=debian-13",
        version.replace('+', "%2B"),
        machine.debian
    );
    json!({
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "hashes": [{ "alg": "SHA-256", "content": package.sha256() }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_each_crate_once_with_what_it_rests_on() {
        let tree = format!(
            "0windlass v{VERSION} (/w)|MIT\n1b v2.0.0+3|MIT/Apache-2.0\n2c v1.0.0|\n1c v1.0.0| (*)"
        );
        let crates = Crates::read(&tree).expect("crates");
        let locked = |name: &str, version: &str, checksum: Option<&str>| Locked {
            name: name.into(),
            version: version.into(),
            checksum: checksum.map(Into::into),
        };
        let lock = Lock {
            package: vec![locked("b", "1.9.0", Some("old")), locked("b", "2.0.0+3", Some("d"))],
        };
        let document = document(&crates, &lock, &[]);
        assert_eq!(document["metadata"]["component"]["name"], "windlass");
        let names: Vec<_> = document["components"].as_array().expect("a list").iter().collect();
        assert_eq!(names.len(), 2);
        assert_eq!(names[0]["purl"], "pkg:cargo/b@2.0.0%2B3");
        assert_eq!(names[0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(names[0]["hashes"][0]["content"], "d");
        assert_eq!(names[1].get("licenses"), None);
        let rests = &document["dependencies"][1];
        let own = format!("pkg:cargo/windlass@{VERSION}");
        assert_eq!(
            (&rests["ref"], rests["dependsOn"].as_array().map(Vec::len)),
            (&own.into(), Some(2))
        );
        assert!(Crates::read("no crate").is_err());
    }
}
