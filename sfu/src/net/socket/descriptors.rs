//! The process's limit of open files, which bounds the number of connections.

use std::io;

/// Raises the limit to the maximum that the system permits, and returns it. Most systems begin with 1024, for programs
/// that use `select`.
pub(in crate::net) fn raise() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes a limit to the live local that it is given.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < limit.rlim_max {
        let wanted = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        // SAFETY: the call reads a limit from the live local that it is given.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const wanted) } == 0 {
            limit = wanted;
        }
    }
    Ok(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_limit_of_descriptors_is_raised_to_the_systems_maximum() {
        let first = super::raise().expect("limit");
        assert!(first >= 64);
        assert_eq!(super::raise().expect("limit"), first);
    }
}
