//! Log lines on standard error.

use std::io::{IsTerminal, stderr};

use anyhow::{Context, Result, anyhow};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

/// What to log: a level or a list such as `info,windlass_sfu=debug`. A level alone is that of Windlass's own parts:
/// libraries stay at `info` at most, because they log what identifies people (addresses, session descriptions).
pub fn filter(text: &str) -> Result<EnvFilter> {
    let level = text.trim().parse::<LevelFilter>();
    let filter = match level {
        Ok(level) if level > LevelFilter::INFO => {
            EnvFilter::builder().parse(format!("info,windlass={level}"))
        }
        _ => EnvFilter::builder().parse(text),
    };
    filter.with_context(|| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_alone_is_of_our_own_parts() {
        let shown = |text: &str| filter(text).unwrap().to_string();
        for (text, ours) in [("debug", "windlass=debug"), ("trace", "windlass=trace")] {
            let shown = shown(text);
            assert!(shown.contains("info") && shown.contains(ours), "{shown}");
        }
        assert_eq!((shown("warn").as_str(), shown("off").as_str()), ("warn", "off"));
        assert!(shown("info,str0m=debug").contains("str0m=debug"));
        assert!(filter("a=b=c").is_err());
    }
}
