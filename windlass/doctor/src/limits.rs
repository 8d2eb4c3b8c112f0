//! Checks whether the system grants the open files and socket buffers that the configuration needs.

use rustix::process::{Resource, getrlimit};

use crate::finding::Finding;

/// Name of this check in findings.
const CHECK: &str = "limits";

/// Resources that the server needs from the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Maximum participants of all rooms. Each has a signalling socket.
    pub participants: u64,
    /// Maximum media connections by TCP.
    pub tcp: u64,
    /// Bytes of the media socket's receive buffer.
    pub receive_buffer: u64,
}

/// Files that are open without any participant: libraries, logs, and files of threads.
const OWN_FILES: u64 = 64;

/// Checks the limits of this process and of the system. A service may have limits of its own: run the check as that
/// service.
pub fn limits(wanted: &Wanted) -> Vec<Finding> {
    let granted = std::fs::read_to_string("/proc/sys/net/core/rmem_max").ok();
    let buffer = granted.and_then(|text| text.trim().parse().ok());
    vec![files(wanted, getrlimit(Resource::Nofile).maximum), receive_buffer(wanted, buffer)]
}

/// Checks the limit of open files. The server raises its limit to the maximum, and half of it is for media by TCP.
fn files(wanted: &Wanted, maximum: Option<u64>) -> Finding {
    let needed = wanted.participants + OWN_FILES;
    let all = needed.max(wanted.tcp.min(wanted.participants) * 2);
    let mend = format!(
        "`ulimit -Hn {all}` (systemd: LimitNOFILE={all}), or a smaller --max-total-participants"
    );
    match maximum {
        Some(maximum) if maximum < needed => Finding::fault(
            CHECK,
            format!("{maximum} open files are too few for {} participants", wanted.participants),
            mend,
        ),
        Some(maximum) if maximum < all => Finding::warning(
            CHECK,
            format!("{maximum} open files: not every participant could have media by TCP"),
            mend,
        ),
        Some(maximum) => Finding::ok(CHECK, format!("{maximum} open files")),
        None => Finding::ok(CHECK, "any number of open files"),
    }
}

fn receive_buffer(wanted: &Wanted, granted: Option<u64>) -> Finding {
    let Wanted { receive_buffer, .. } = *wanted;
    match granted {
        Some(granted) if granted < receive_buffer => Finding::warning(
            CHECK,
            format!(
                "the media socket gets a buffer of {} KiB in place of {} KiB: bursts are lost earlier",
                granted >> 10,
                receive_buffer >> 10
            ),
            format!("`sysctl -w net.core.rmem_max={receive_buffer}`"),
        ),
        Some(granted) => Finding::ok(CHECK, format!("socket buffers of {} KiB", granted >> 10)),
        None => Finding::ok(CHECK, "the system does not say how large socket buffers may be"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    const WANTED: Wanted = Wanted { participants: 1000, tcp: 4000, receive_buffer: 8 << 20 };

    #[test]
    fn open_files_must_do_for_the_participants() {
        assert_eq!(files(&WANTED, Some(1024)).level, Level::Fault);
        assert_eq!(files(&WANTED, Some(1500)).level, Level::Warning);
        assert_eq!(files(&WANTED, Some(4096)).level, Level::Ok);
        assert_eq!(files(&WANTED, None).level, Level::Ok);
        let few = Wanted { participants: 100, ..WANTED };
        assert_eq!(files(&few, Some(1024)).level, Level::Ok);
        assert!(files(&WANTED, Some(64)).mend.unwrap().contains("LimitNOFILE=2000"));
    }

    #[test]
    fn a_smaller_buffer_is_told_with_the_command_that_enlarges_it() {
        let small = receive_buffer(&WANTED, Some(212_992));
        assert_eq!(small.level, Level::Warning);
        assert!(small.mend.unwrap().contains("net.core.rmem_max=8388608"));
        assert_eq!(receive_buffer(&WANTED, Some(16 << 20)).level, Level::Ok);
    }
}
