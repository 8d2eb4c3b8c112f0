//! Containment of faults: a panic inside one connection ends that connection, and nothing else.
//!
//! Network input reaches the WebRTC stack, which asserts and indexes. So each call into the stack is [`contained`], and
//! a connection that panicked is dropped (`Stack`). [`Core`](super::Core) also contains its own work for one
//! connection. Any other panic ends its thread, and the process with it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};

thread_local! {
    /// Depth of nested [`contained`] calls on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The last contained panic, as the panic hook saw it.
    static LAST: RefCell<Option<Fault>> = const { RefCell::new(None) };
}

/// A panic: its place, and its message if that is a constant. A formatted message may contain network input, and is
/// left out.
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

/// Runs `work`, and catches its panic. The caller must drop all that `work` was changing.
///
/// # Errors
///
/// Fails if `work` panics; the fault says where.
pub fn contained<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    done.map_err(|_| {
        let last = LAST.with_borrow_mut(Option::take);
        last.unwrap_or_else(|| Fault { at: "an unknown place".to_owned(), message: "panicked" })
    })
}

/// Logs panics without network input, in place of Rust's message. For programs, at their start. A contained panic is
/// logged where its connection is ended.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|info| {
        let fault = Fault::of(info);
        if DEPTH.get() > 0 {
            LAST.set(Some(fault));
            return;
        }
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("unnamed");
        tracing::error!(thread, %fault, "a thread panicked: the process may stop; please report this as a bug");
    }));
}
