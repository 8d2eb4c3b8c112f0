//! Hot reload: the configuration file is read again at SIGHUP and when it has changed.
//!
//! Options that may change while the server runs ([`crate::config::is_live`]) take effect at once. The log names the
//! others, which wait for a restart. A file that cannot be used changes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use tokio::signal::unix::{Signal, SignalKind, signal};
use windlass_enhancer::Enhancer;
use windlass_logging::Log;
use windlass_sfu::{SfuHandle, Tuning};
use windlass_signaling::{Metric, Signaling, Tls};

use crate::cli::ServeArgs;
use crate::config::{Config, Settings};
use crate::tls::Source;
use crate::watch::Watch;

/// Interval at which the file is checked for changes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Counters of reloads, for `/metrics`.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    done: AtomicU64,
    failed: AtomicU64,
    /// Number of changed options that wait for a restart.
    waiting: AtomicU64,
    /// Time at which the configuration in use was read, in seconds since 1970.
    read_at: AtomicU64,
}

impl Reloads {
    /// Creates counters, with the start as the time of reading.
    pub(crate) fn new() -> Reloads {
        let reloads = Reloads::default();
        reloads.read_at.store(unix_seconds(), Ordering::Relaxed);
        reloads
    }

    /// Metrics of reloads.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::new("windlass_config_reloads_total", &self.done),
            Metric::new("windlass_config_reload_failures_total", &self.failed),
            Metric::new("windlass_config_options_waiting_for_restart", &self.waiting),
            Metric::new("windlass_config_read_timestamp_seconds", &self.read_at),
        ]
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Parts of the server that a reload changes.
pub(crate) struct Parts {
    /// Handle to the SFU.
    pub sfu: SfuHandle,
    /// Handle to signalling.
    pub signaling: Signaling,
    /// The enhancer, if there is one.
    pub enhancer: Option<Arc<Enhancer>>,
    /// Handle to the log.
    pub log: Log,
    /// TLS with the certificate in use; `None` for plain HTTP.
    pub tls: Option<Tls>,
}

/// Reads the configuration again while the server runs.
pub(crate) struct Reloader {
    args: ServeArgs,
    /// Settings in use: those of the start for options that need a restart, and the last ones read for the others.
    settings: Settings,
    config: Config,
    parts: Parts,
    reloads: Arc<Reloads>,
    hangup: Signal,
    watch: Option<Watch>,
    certificate: Vec<Watch>,
}

impl Reloader {
    /// Begins to listen for SIGHUP and changes. `config` is in use.
    pub(crate) fn new(
        args: &ServeArgs,
        config: &Config,
        parts: Parts,
        reloads: Arc<Reloads>,
    ) -> Result<Reloader> {
        Ok(Reloader {
            args: args.clone(),
            settings: args.settings()?,
            config: config.clone(),
            parts,
            reloads,
            hangup: signal(SignalKind::hangup())?,
            watch: args.file().map(Watch::new),
            certificate: config.tls.iter().flat_map(Source::watches).collect(),
        })
    }

    /// Runs until the server ends.
    pub(crate) async fn run(mut self) {
        let mut looks = tokio::time::interval(POLL_INTERVAL);
        loop {
            let asked = tokio::select! {
                _ = self.hangup.recv() => true,
                _ = looks.tick() => false,
            };
            // Each is asked, so that none sees the same change twice.
            let changed = self.certificate.iter_mut().filter_map(|w| w.settled().then_some(()));
            if changed.count() > 0 || asked {
                self.certificate();
            }
            if !asked && !self.watch.as_mut().is_some_and(Watch::settled) {
                continue;
            }
            if self.args.file().is_none() {
                tracing::info!(
                    "SIGHUP: configuration not reloaded: the server was started without --config"
                );
                continue;
            }
            if let Err(error) = self.reload().await {
                self.reloads.failed.fetch_add(1, Ordering::Relaxed);
                tracing::error!(
                    "configuration not reloaded, the former one stays in use until the file is mended: \
                     {error:#}"
                );
            }
        }
    }

    fn certificate(&self) {
        let (Some(tls), Some(source)) = (&self.parts.tls, &self.config.tls) else { return };
        match source.reload(tls) {
            Ok(()) => tracing::info!("TLS certificate reloaded"),
            Err(error) => {
                self.reloads.failed.fetch_add(1, Ordering::Relaxed);
                tracing::error!(
                    "TLS certificate not reloaded, the former one stays in use until the files are \
                     mended: {error:#}"
                );
            }
        }
    }

    async fn reload(&mut self) -> Result<()> {
        let wanted = self.args.settings()?;
        // The whole must be usable at the next start too.
        Config::resolve(wanted.clone())?.closed()?;
        let settings = self.settings.with_live_of(&wanted);
        let waiting = settings.differing(&wanted);
        let changed = settings.differing(&self.settings);
        let config = Config::resolve(settings.clone())?;
        self.apply(&config).await?;
        (self.settings, self.config) = (settings, config);
        self.reloads.done.fetch_add(1, Ordering::Relaxed);
        self.reloads.waiting.store(waiting.len() as u64, Ordering::Relaxed);
        self.reloads.read_at.store(unix_seconds(), Ordering::Relaxed);
        tracing::info!(changed = changed.join(", "), "configuration read again");
        if !waiting.is_empty() {
            tracing::warn!(
                options = waiting.join(", "),
                "configuration changes wait: they need a restart"
            );
        }
        Ok(())
    }

    /// Applies a configuration. Steps that may fail come first.
    async fn apply(&self, config: &Config) -> Result<()> {
        let access = &config.signaling.access;
        ensure!(
            !access.is_open() || self.config.signaling.access.is_open(),
            "token-key: to take the last key out, and so open every room, needs a restart"
        );
        if let (Some(enhancer), Some(wanted)) = (&self.parts.enhancer, &config.enhancer) {
            enhancer.tune(wanted.tuning())?;
        }
        if config.log != self.config.log {
            self.parts.log.set_filter(&config.log)?;
        }
        self.parts.signaling.set_access(access);
        self.parts.signaling.set_admission(config.signaling.admission);
        let sfu = &self.parts.sfu;
        let stopped = "the server is stopping";
        let tuning = Tuning { limits: config.sfu.limits, policy: config.sfu.policy };
        sfu.tune(tuning).await.context(stopped)?;
        // What was set by `/admin/policy` stays, where the file says the same as before.
        let (former, rooms) = (&self.config.sfu.room_policies, &config.sfu.room_policies);
        for room in former.keys().filter(|room| !rooms.contains_key(*room)) {
            sfu.set_policy(Some(room.clone()), None).await.context(stopped)?;
        }
        for (room, &policy) in
            rooms.iter().filter(|(room, policy)| former.get(*room) != Some(policy))
        {
            sfu.set_policy(Some(room.clone()), Some(policy)).await.context(stopped)?;
        }
        Ok(())
    }
}
