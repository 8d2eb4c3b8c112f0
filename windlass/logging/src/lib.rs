//! Output of the program: log lines and messages on standard error, the first messages on standard output.
//!
//! No output waits for its reader ([`lines`]).

mod lines;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{IsTerminal, stderr, stdout};
use std::panic::{self, PanicHookInfo};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use self::lines::Lines;

/// Maximum time that the end of the program waits for unwritten lines, for each of the two streams.
const MAX_FLUSH_TIME: Duration = Duration::from_secs(1);

/// Queue to standard error, once logging has started.
static ERRORS: OnceLock<Lines> = OnceLock::new();
/// Queue to standard output, once something was announced.
static OUTPUT: OnceLock<Lines> = OnceLock::new();

/// Reads a log filter: a level, or a list such as `info,windlass_sfu=debug`. A level alone applies to Windlass's own
/// parts. Libraries stay at `info` at most, because they log what identifies people (addresses, session descriptions).
///
/// # Errors
///
/// The text is no filter.
///
/// # Examples
///
/// ```
/// use windlass_logging::filter;
///
/// let debug = filter("debug")?;
/// assert_eq!(debug.to_string(), "windlass=debug,info", "libraries stay at info");
/// assert!(filter("windlass=loud").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

/// Reads a log filter that keeps libraries from logging whole messages, which contain access tokens, and what is wrong
/// with each datagram of a stranger.
fn quiet(text: &str) -> Result<EnvFilter> {
    let quiet = filter(text)?.add_directive("tungstenite=info".parse()?);
    let asked = text.contains("rtc_dtls");
    Ok(if asked { quiet } else { quiet.add_directive("rtc_dtls=off".parse()?) })
}

/// Handle to the running log.
#[derive(Debug, Clone)]
pub struct Log(reload::Handle<EnvFilter, Registry>);

impl Log {
    /// Replaces the log filter.
    ///
    /// # Errors
    ///
    /// The text is no filter.
    pub fn set_filter(&self, text: &str) -> Result<()> {
        Ok(self.0.reload(quiet(text)?)?)
    }
}

/// Starts logging to standard error. Panics are logged there too.
///
/// # Errors
///
/// The text is no filter, the thread that writes did not start, or logging has started before.
pub fn init(text: &str, json: bool) -> Result<Log> {
    let (filter, handle) = reload::Layer::new(quiet(text)?);
    let on_lost = |lost| tracing::warn!(lost, "log lines dropped: nobody reads standard error");
    let errors = Lines::start("log", stderr(), on_lost).context("cannot start the log's thread")?;
    let errors = ERRORS.get_or_init(|| errors);
    let lines = fmt::layer().with_writer(move || errors.clone()).with_ansi(stderr().is_terminal());
    let lines = if json { lines.json().boxed() } else { lines.boxed() };
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init()
        .map_err(|e| anyhow!("cannot start logging: {e}"))?;
    panic::set_hook(Box::new(|panic| say(&panicked(panic, &Backtrace::capture()))));
    Ok(Log(handle))
}

/// Writes a line to standard error.
pub fn say(line: &str) {
    match ERRORS.get() {
        Some(errors) => errors.push(format!("{line}\n").as_bytes()),
        None => eprintln!("{line}"),
    }
}

/// Writes a line to standard output. Whoever started the program may have closed the pipe, or never read it: that must
/// not end the program.
///
/// # Errors
///
/// The thread that writes did not start.
pub fn announce(line: &str) -> Result<()> {
    if OUTPUT.get().is_none() {
        let words = Lines::start("words", stdout(), |_| ());
        let _ = OUTPUT.set(words.context("cannot start standard output's thread")?);
    }
    if let Some(words) = OUTPUT.get() {
        words.push(format!("{line}\n").as_bytes());
    }
    Ok(())
}

/// Number of log lines that were dropped because nobody read them.
#[must_use]
pub fn lost() -> u64 {
    ERRORS.get().map_or(0, Lines::lost)
}

/// Waits for unwritten lines when it is dropped, at the end of the program.
#[derive(Debug)]
pub struct FlushOnDrop;

impl Drop for FlushOnDrop {
    fn drop(&mut self) {
        for lines in [&ERRORS, &OUTPUT].into_iter().filter_map(OnceLock::get) {
            lines.flushed(MAX_FLUSH_TIME);
        }
    }
}

/// The panic message that the standard library would have printed. Its own printing could make the thread wait.
fn panicked(panic: &PanicHookInfo<'_>, backtrace: &Backtrace) -> String {
    let thread = thread::current();
    let text = format!("thread '{}' {panic}", thread.name().unwrap_or("without a name"));
    match backtrace.status() {
        BacktraceStatus::Captured => format!("{text}\n{backtrace}"),
        _ => text,
    }
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
