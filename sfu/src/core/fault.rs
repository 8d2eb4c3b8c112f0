//! A fault stays where it is: what panics inside one connection ends that connection, and nothing else.
//!
//! What strangers send reaches the WebRTC stack, which asserts and indexes; so each call into it is [`contained`], and what is left
//! of a connection that panicked is dropped ([`Stack`]). Our own code that works for one connection is contained too, by
//! the [`Core`](super::Core). Whatever else panics ends its thread, and the process with it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};

thread_local! {
    /// How many [`contained`] there are around what runs.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// What the hook has heard of the last panic within them.
    static HEARD: RefCell<Option<Fault>> = const { RefCell::new(None) };
}

/// What panicked. Messages that are made of values may hold what a stranger sent: of these the place alone is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    at: String,
    message: &'static str,
}

impl Fault {
    fn of(info: &PanicHookInfo<'_>) -> Fault {
        let at = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        let fixed = info.payload().downcast_ref::<&'static str>().copied();
        Fault { at, message: fixed.unwrap_or("panicked") }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

/// Runs something and gives what it panicked with, where it did. What it had in hand must be dropped then.
pub fn contained<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    done.map_err(|_| {
        let heard = HEARD.with_borrow_mut(Option::take);
        heard.unwrap_or_else(|| Fault { at: "an unknown place".to_owned(), message: "panicked" })
    })
}

/// Tells of panics in the log, each once and without what strangers sent; those that are contained are told by whoever ends the
/// connection. For programs, at their start: it takes the place of what Rust prints.
pub fn tell_panics() {
    std::panic::set_hook(Box::new(|info| {
        let fault = Fault::of(info);
        if DEPTH.get() > 0 {
            HEARD.set(Some(fault));
            return;
        }
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("without a name");
        tracing::error!(thread, %fault, "a thread panicked; please report it");
    }));
}
