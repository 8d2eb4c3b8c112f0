//! Hot reload: the configuration file is read again on SIGHUP and when it has changed.
//!
//! What may change while the server runs ([`crate::config::is_live`]) takes effect at once; what may not is named in
//! the log and waits for a restart. A file that cannot be used changes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use tokio::signal::unix::{Signal, SignalKind, signal};
use windlass_enhancer::Enhancer;
use windlass_sfu::{SfuHandle, Tuning};
use windlass_signaling::{Metric, Signaling, Tls};

use crate::cli::ServeArgs;
use crate::config::{Config, Settings};
use crate::logging::Log;
use crate::tls::Source;
use crate::watch::Watch;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What has been reloaded, for `/metrics`.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    done: AtomicU64,
    failed: AtomicU64,
    /// Options whose change waits for a restart.
    waiting: AtomicU64,
    /// When the configuration in use was read, in seconds since 1970.
    read_at: AtomicU64,
}

impl Reloads {
    /// Nothing so far, but the start.
    pub(crate) fn new() -> Reloads {
        let reloads = Reloads::default();
        reloads.read_at.store(unix_seconds(), Ordering::Relaxed);
        reloads
    }

    /// The figures.
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

/// The parts that can be told.
pub(crate) struct Parts {
    /// The SFU.
    pub sfu: SfuHandle,
    /// Signalling.
    pub signaling: Signaling,
    /// The enhancer, if there is one.
    pub enhancer: Option<Arc<Enhancer>>,
    /// The log.
    pub log: Log,
    /// The certificate in use.
    pub tls: Option<Tls>,
}

/// Reads the configuration again while the server runs.
pub(crate) struct Reloader {
    args: ServeArgs,
    /// What was said when what cannot change was set, and what was said last of the rest.
    said: Settings,
    config: Config,
    parts: Parts,
    reloads: Arc<Reloads>,
    hangup: Signal,
    watch: Option<Watch>,
    certificate: Vec<Watch>,
}

impl Reloader {
    /// Begins to listen; `config` is in use.
    pub(crate) fn new(
        args: &ServeArgs,
        config: &Config,
        parts: Parts,
        reloads: Arc<Reloads>,
    ) -> Result<Reloader> {
        Ok(Reloader {
            args: args.clone(),
            said: args.settings()?,
            config: config.clone(),
            parts,
            reloads,
            hangup: signal(SignalKind::hangup())?,
            watch: args.file().map(Watch::new),
            certificate: config.tls.iter().flat_map(Source::watches).collect(),
        })
    }

    /// Runs for as long as the server does.
    pub(crate) async fn run(mut self) {
        let mut looks = tokio::time::interval(LOOK);
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
                    "configuration not reloaded, the former one stays in use: {error:#}"
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
                    "TLS certificate not reloaded, the former one stays in use: {error:#}"
                );
            }
        }
    }

    async fn reload(&mut self) -> Result<()> {
        let wanted = self.args.settings()?;
        // The whole must be usable at the next start too.
        Config::resolve(wanted.clone())?.closed()?;
        let said = self.said.with_live_of(&wanted);
        let waiting = said.differing(&wanted);
        let changed = said.differing(&self.said);
        let config = Config::resolve(said.clone())?;
        self.apply(&config).await?;
        (self.said, self.config) = (said, config);
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

    /// What may fail comes first.
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
