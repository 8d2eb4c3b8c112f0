//! Checks whether the machine's clock is synchronised. Access tokens, certificates and TURN credentials depend on it.

use crate::finding::Finding;

/// Name of this check in findings.
const CHECK: &str = "clock";

/// State of the clock as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// A service synchronises the clock, with at most this error.
    Within {
        /// Maximum error in microseconds.
        error_us: u64,
    },
    /// No service synchronises the clock.
    Alone,
    /// The kernel does not say.
    Unknown,
}

/// Maximum error of the clock in microseconds. Beyond it, tokens of a minute are invalid, or valid for too long.
const MAX_ERROR_US: u64 = 5_000_000;

/// Asks the kernel whether a service synchronises the clock.
pub fn clock() -> Finding {
    found(kept())
}

fn found(kept: Kept) -> Finding {
    let mend = "start a time service (`systemctl enable --now systemd-timesyncd`, or chrony)";
    let matters = "tokens, certificates and TURN credentials have times";
    match kept {
        Kept::Within { error_us } if error_us <= MAX_ERROR_US => {
            Finding::ok(CHECK, format!("kept, within {} ms", error_us.div_ceil(1000)))
        }
        Kept::Within { error_us } => {
            let seconds = error_us / 1_000_000;
            Finding::warning(CHECK, format!("may be wrong by {seconds} s: {matters}"), mend)
        }
        Kept::Alone => Finding::warning(CHECK, format!("nothing keeps it right: {matters}"), mend),
        Kept::Unknown => Finding::ok(CHECK, "the system does not say whether something keeps it"),
    }
}

#[cfg(target_os = "linux")]
fn kept() -> Kept {
    // SAFETY: the struct is plain numbers, for all of which zero is valid; with `modes` of zero the call only reads.
    let (state, clock) = unsafe {
        let mut clock: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&raw mut clock), clock)
    };
    match state {
        -1 => Kept::Unknown,
        // TIME_ERROR: the clock is not synchronized.
        libc::TIME_ERROR => Kept::Alone,
        _ => Kept::Within { error_us: u64::try_from(clock.maxerror).unwrap_or(u64::MAX) },
    }
}

#[cfg(not(target_os = "linux"))]
fn kept() -> Kept {
    Kept::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    #[test]
    fn a_clock_that_nothing_keeps_is_told() {
        assert_eq!(found(Kept::Alone).level, Level::Warning);
        assert_eq!(found(Kept::Within { error_us: 20_000 }).level, Level::Ok);
        assert_eq!(found(Kept::Within { error_us: 9_000_000 }).level, Level::Warning);
        assert_eq!(found(Kept::Unknown).level, Level::Ok);
    }

    #[test]
    fn the_kernel_answers() {
        let _ = kept();
    }
}
