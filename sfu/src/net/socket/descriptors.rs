//! How many files the process may have open, which is how many connections there can be.

use std::io;

/// What the process may have open from now on: as much as it may ask for. It begins with much less on most systems, for
/// programs that cannot count further than 1024.
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
    fn there_may_be_as_many_as_the_system_lets_one_have() {
        let first = super::raise().expect("limit");
        assert!(first >= 64);
        assert_eq!(super::raise().expect("limit"), first);
    }
}
