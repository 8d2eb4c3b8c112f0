//! Log lines on standard error.

use std::io::{IsTerminal, stderr};

use anyhow::{Context, Result, anyhow};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

/// What to log: a level or a list such as `info,windlass_sfu=debug`.
pub fn filter(text: &str) -> Result<EnvFilter> {
    EnvFilter::builder().parse(text).with_context(|| {
        format!("`{text}` is no log filter; try `info` or `info,windlass_sfu=debug`")
    })
}

/// A filter without what libraries must not write: whole messages, access tokens included.
fn quiet(text: &str) -> Result<EnvFilter> {
    Ok(filter(text)?.add_directive("tungstenite=info".parse()?))
}

/// The log that was started.
#[derive(Debug, Clone)]
pub struct Log(reload::Handle<EnvFilter, Registry>);

impl Log {
    /// Logs by another filter from now on.
    pub fn set_filter(&self, text: &str) -> Result<()> {
        Ok(self.0.reload(quiet(text)?)?)
    }
}

/// Starts logging.
pub fn init(text: &str, json: bool) -> Result<Log> {
    let (filter, handle) = reload::Layer::new(quiet(text)?);
    let lines = fmt::layer().with_writer(stderr).with_ansi(stderr().is_terminal());
    let lines = if json { lines.json().boxed() } else { lines.boxed() };
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init()
        .map_err(|e| anyhow!("cannot start logging: {e}"))?;
    Ok(Log(handle))
}
