//! The container image for both machines. It is what `deploy/Dockerfile` makes of the sources, but made of the
//! released program, on pinned packages and without a container engine.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::base::Base;
use super::layout::{CONFIG, Descriptor, INDEX, LAYER, Layout, MANIFEST, sha256};
use super::{
    MACHINES, Machine, Release, VERSION, binary, install, licences, make_folder, sbom, write,
};
use crate::process::{Cmd, step};

/// The id of the user in the image, as in `deploy/Dockerfile`.
const USER: &str = "65532";
/// The command of the image where none is given, as in `deploy/Dockerfile`.
const COMMAND: [&str; 5] = ["serve", "--http", "0.0.0.0:7880", "--udp", "0.0.0.0:7881"];
/// The ports that the server listens on.
const PORTS: [&str; 3] = ["7880/tcp", "7881/udp", "7881/tcp"];
/// The folder that the image's user owns, in which `windlass key` keeps its key. A volume there gets this owner.
const STATE: &str = "var/lib/windlass";

/// Packs the image of both machines as an archive of a layout, which `skopeo copy --all oci-archive:FILE …` pushes to
/// a registry.
pub(super) fn archive(release: &Release, base: &Base) -> Result<()> {
    step("Making the container image");
    let layout = Layout::new(release.work.join("layout"))?;
    let date = Cmd::new("date").arg("--utc").arg(format!("--date=@{}", release.time));
    let created = date.arg("+%Y-%m-%dT%H:%M:%SZ").output().context("`date` failed")?;
    let mut manifests = Vec::new();
    for machine in &MACHINES {
        let below = base_layer(release, machine, base)?;
        let above = program_layer(release, machine)?;
        let mut layers = Vec::new();
        let mut digests = Vec::new();
        for tar in [below, above] {
            digests.push(format!("sha256:{}", sha256(&tar)?));
            Cmd::new("gzip").args(["-9", "--no-name"]).arg(&tar).run()?;
            layers.push(layout.file(&tar.with_extension("tar.gz"), LAYER)?);
        }
        let config = layout.document(&config(machine, &created, &digests), CONFIG)?;
        let manifest = layout.document(&manifest(&config, &layers), MANIFEST)?;
        let platform = json!({ "os": "linux", "architecture": machine.debian });
        manifests.push(manifest.with(&json!({ "platform": platform })));
        let list = format!("windlass-{VERSION}-image-{}.cdx.json", machine.debian);
        install(&sbom::of_image(release, machine), &release.out.join(list), 0o644)?;
    }
    let index = json!({
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": manifests,
        "annotations": labels(),
    });
    let index = layout.document(&index, INDEX)?;
    let folder = layout.end(&index, VERSION)?;
    let to = release.out.join(format!("windlass-{VERSION}-image.oci.tar"));
    release.tar(&folder, ".", &to, &[])
}

/// The layer with Debian's packages and the user.
fn base_layer(release: &Release, machine: &Machine, base: &Base) -> Result<PathBuf> {
    let folder = release.work(machine).join("base");
    make_folder(&folder)?;
    base.unpack(machine, &folder)?;
    let user = format!("windlass:x:{USER}:{USER}:windlass:/nonexistent:/usr/sbin/nologin\n");
    let users = format!("root:x:0:0:root:/root:/usr/sbin/nologin\n{user}");
    write(&folder.join("etc/passwd"), users.as_bytes(), 0o644)?;
    write(&folder.join("etc/group"), format!("root:x:0:\nwindlass:x:{USER}:\n").as_bytes(), 0o644)?;
    // Names are looked up in the hosts file first, then by DNS.
    write(&folder.join("etc/nsswitch.conf"), b"hosts: files dns\n", 0o644)?;
    let tar = release.work(machine).join("base.tar");
    release.tar(&folder, ".", &tar, &[])?;
    Ok(tar)
}

/// The layer with the program, its licences, its SBOM, and its user's folder.
fn program_layer(release: &Release, machine: &Machine) -> Result<PathBuf> {
    let folder = release.work(machine).join("program");
    install(&binary::program(release, machine), &folder.join("usr/bin/windlass"), 0o755)?;
    let docs = folder.join("usr/share/doc/windlass");
    for (name, file) in licences(release) {
        install(&file, &docs.join(name), 0o644)?;
    }
    install(&sbom::of_image(release, machine), &docs.join("windlass.cdx.json"), 0o644)?;
    make_folder(&folder.join(STATE))?;
    let tar = release.work(machine).join("program.tar");
    release.tar(&folder, ".", &tar, &[&format!("--exclude=./{STATE}")])?;
    let own = [&format!("--owner={USER}"), &format!("--group={USER}"), "--mode=0700"];
    append(release, &folder, &tar, own)?;
    Ok(tar)
}

/// Adds the user's folder to an archive. In the file system, only root could give it to that user.
fn append(release: &Release, folder: &Path, tar: &Path, own: [&str; 3]) -> Result<()> {
    Cmd::new("tar")
        .args(["--append", "--no-recursion", "--numeric-owner"])
        .args(own)
        .arg(format!("--mtime=@{}", release.time))
        .arg("--file")
        .arg(tar)
        .arg("--directory")
        .arg(folder)
        .arg(format!("./{STATE}"))
        .run()
}

fn labels() -> Value {
    json!({
        "org.opencontainers.image.title": "windlass",
        "org.opencontainers.image.version": VERSION,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
    })
}

/// The configuration by which the image runs. Health checks are Docker's addition, which others leave out.
fn config(machine: &Machine, created: &str, layers: &[String]) -> Value {
    let ports: serde_json::Map<_, _> =
        PORTS.iter().map(|port| ((*port).into(), json!({}))).collect();
    let second = 1_000_000_000_u64;
    json!({
        "created": created,
        "architecture": machine.debian,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": ports,
            "Env": ["PATH=/usr/local/bin:/usr/bin", "XDG_CACHE_HOME=/tmp/cache"],
            "Entrypoint": ["windlass"],
            "Cmd": COMMAND,
            "StopSignal": "SIGTERM",
            "Labels": labels(),
            "Healthcheck": {
                "Test": ["CMD", "windlass", "health"],
                "Interval": 10 * second,
                "Timeout": 3 * second,
                "StartPeriod": 10 * second,
                "Retries": 3,
            },
        },
        "rootfs": { "type": "layers", "diff_ids": layers },
        "history": [
            { "created": created, "comment": "packages of Debian, pinned in deploy/image.toml" },
            { "created": created, "comment": "windlass" },
        ],
    })
}

fn manifest(config: &Descriptor, layers: &[Descriptor]) -> Value {
    let none = json!({});
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config.with(&none),
        "layers": layers.iter().map(|layer| layer.with(&none)).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::root;

    #[test]
    fn the_image_runs_as_that_of_the_dockerfile() {
        let file = fs::read_to_string(root().join("deploy/Dockerfile")).expect("the Dockerfile");
        let config = config(&MACHINES[0], "", &[]);
        let of = &config["config"];
        let user = of["User"].as_str().expect("a user");
        let list = |key: &str| of[key].to_string().replace(',', ", ");
        for line in [
            format!("USER {user}"),
            format!("ENV {}", of["Env"][1].as_str().expect("a variable")),
            format!("EXPOSE {}", PORTS.join(" ")),
            format!("STOPSIGNAL {}", of["StopSignal"].as_str().expect("a signal")),
            format!("ENTRYPOINT {}", list("Entrypoint")),
            format!("CMD {}", list("Cmd")),
        ] {
            assert!(file.lines().any(|there| there == line), "{line}");
        }
        assert!(file.contains("--interval=10s --timeout=3s --start-period=10s --retries=3 CMD"));
        assert!(file.contains(&format!("-o {USER} -g {USER} -m 0700 /{STATE}")));
    }
}
