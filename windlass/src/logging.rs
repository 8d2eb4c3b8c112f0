//! Log lines on standard error.

use std::io::{IsTerminal, stderr};

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;

/// What to log: a level or a list such as `info,windlass_sfu=debug`.
pub fn filter(text: &str) -> Result<EnvFilter> {
    EnvFilter::builder().parse(text).with_context(|| {
        format!("`{text}` is no log filter; try `info` or `info,windlass_sfu=debug`")
    })
}

/// Starts logging.
pub fn init(text: &str, json: bool) -> Result<()> {
    // It would write whole messages, access tokens included.
    let filter = filter(text)?.add_directive("tungstenite=info".parse()?);
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal());
    let started = if json { builder.json().try_init() } else { builder.try_init() };
    started.map_err(|e| anyhow::anyhow!("cannot start logging: {e}"))
}
