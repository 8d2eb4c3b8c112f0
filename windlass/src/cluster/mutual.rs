//! This machine's cluster certificate, reloaded when its files change.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::interval;
use windlass_cluster::mutual::{Files, Mutual, Role};
use windlass_signaling::Metric;

use crate::watch::Watch;

/// Interval at which the files are checked for changes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Loads the certificate, if one is configured, and reloads it for as long as the process runs.
pub(super) fn start(files: Option<&Files>, role: Role) -> Result<Option<Mutual>> {
    let Some(files) = files else { return Ok(None) };
    let mutual =
        Mutual::load(files, role).context("cannot load the certificates of --cluster-tls")?;
    let mut watches = files.all().map(Watch::new);
    let kept = mutual.clone();
    tokio::spawn(async move {
        let mut looks = interval(POLL_INTERVAL);
        loop {
            looks.tick().await;
            // Each is asked, so that none sees the same change twice.
            let changed = watches.iter_mut().filter_map(|watch| watch.settled().then_some(()));
            if changed.count() == 0 {
                continue;
            }
            match kept.reload() {
                Ok(()) => tracing::info!("cluster certificate reloaded"),
                Err(error) => {
                    tracing::error!(
                        "cluster certificate not reloaded, the former one stays in use until the files are \
                         mended: {error}"
                    );
                }
            }
        }
    });
    Ok(Some(mutual))
}

/// Metrics of the certificate.
pub(super) fn metrics(mutual: &Mutual) -> Vec<Metric> {
    let ends = "windlass_cluster_certificate_not_after_timestamp_seconds";
    vec![
        Metric::new(ends, mutual.not_after()),
        Metric::new("windlass_cluster_connections_refused_total", mutual.refused()),
    ]
}
