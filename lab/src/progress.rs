//! How far a measurement is, and how long the rest will take: a bar where standard error is a terminal, else a line
//! every ten seconds.

use std::fmt::{self, Display};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

use crate::interrupt::{self, Interrupted, Stopped};

/// Time between two lines where there is no terminal.
const EVERY: Duration = Duration::from_secs(10);
/// Time between two pictures of the bar, which shows that the program lives.
const REDRAWN: Duration = Duration::from_millis(200);

/// The progress of one command, in parts of about the same length.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    unit: &'static str,
    /// The sender whose drop ends the thread that writes lines.
    _over: Sender<()>,
}

impl Progress {
    /// The progress of a command that has `of` parts to do.
    pub(crate) fn new(of: usize, unit: &'static str) -> Progress {
        let bar = ProgressBar::new(of as u64);
        let style = format!("{{wide_bar}} {{pos}}/{{len}} {unit}, {{left}}\n{{wide_msg}}");
        if let Ok(style) = ProgressStyle::with_template(&style) {
            bar.set_style(style.with_key("left", write_left));
        }
        let (over, ended) = channel();
        if bar.is_hidden() {
            let bar = bar.clone();
            std::thread::spawn(move || {
                while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    eprintln!("{}", line(&bar, unit));
                }
            });
        } else {
            bar.enable_steady_tick(REDRAWN);
        }
        Progress { bar, unit, _over: over }
    }

    /// Says what is being done.
    pub(crate) fn say(&self, what: impl Display) {
        self.bar.set_message(what.to_string());
    }

    /// Shows what is done next. Fails if Ctrl-C was pressed, so that it does not begin.
    pub(crate) fn begin(&self, what: impl Display) -> Result<(), Stopped> {
        self.say(what);
        interrupt::check()
    }

    /// Notes that `parts` more parts are done.
    pub(crate) fn reached(&self, parts: u64) {
        self.bar.set_position(parts.min(self.bar.length().unwrap_or(parts)));
    }

    /// One more part is done.
    pub(crate) fn done(&self) {
        self.bar.inc(1);
    }

    /// How far the command came, if Ctrl-C ended it before all was done.
    pub(crate) fn interrupted(&self) -> Option<Interrupted> {
        let (after, of) = (self.bar.position(), self.bar.length().unwrap_or_default());
        (interrupt::pressed() && after < of).then_some(Interrupted { after, of, unit: self.unit })
    }

    /// Writes a line that stays.
    pub(crate) fn note(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A line for a log.
fn line(bar: &ProgressBar, unit: &str) -> String {
    let (done, of) = (bar.position(), bar.length().unwrap_or_default());
    format!("{done} of {of} {unit}, {}: {}", left(done, of, bar.elapsed()), bar.message())
}

fn write_left(state: &ProgressState, out: &mut dyn fmt::Write) {
    // What cannot be written to the bar is not shown.
    let _ = out.write_str(&left(state.pos(), state.len().unwrap_or_default(), state.elapsed()));
}

/// The time left, by the mean of the parts that are done. The bar's own estimate is of the last seconds: where a part
/// takes minutes, it grows without bound until the part is done.
fn left(done: u64, of: u64, elapsed: Duration) -> String {
    let Ok(parts @ 1..) = u32::try_from(done) else { return "time left unknown".to_owned() };
    let rest = u32::try_from(of.saturating_sub(done)).unwrap_or(u32::MAX);
    format!("about {} left", HumanDuration((elapsed / parts).saturating_mul(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_by_the_mean_of_the_parts_that_are_done() {
        assert_eq!(left(0, 20, Duration::from_mins(15)), "time left unknown");
        assert_eq!(left(2, 20, Duration::from_mins(4)), "about 36 minutes left");
        assert_eq!(left(20, 20, Duration::from_mins(4)), "about 0 seconds left");
    }

    #[test]
    fn a_line_has_what_is_done_and_what_is_left() {
        let bar = ProgressBar::hidden();
        bar.set_length(4);
        bar.set_message("clip a");
        assert_eq!(line(&bar, "rows"), "0 of 4 rows, time left unknown: clip a");
        bar.inc(2);
        let line = line(&bar, "rows");
        assert!(
            line.starts_with("2 of 4 rows, about ") && line.ends_with(" left: clip a"),
            "{line}"
        );
    }
}
