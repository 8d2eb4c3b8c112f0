//! The time at which a packet was sent, in the last bytes of its payload, for load tests in which nobody decodes.
//!
//! Publisher and subscriber share a machine, and so its monotonic clock, in whatever processes they are.

use rustix::time::{ClockId, clock_gettime};

/// The bytes by which a stamp is told from a picture's bytes.
const MARK: [u8; 4] = *b"WLst";
/// Length of a stamp, in bytes: the mark and a time of 64 bits.
const STAMP_BYTES: usize = MARK.len() + 8;
/// Number of bytes at the beginning that stay, because forwarding reads them: payload descriptor and header of a key
/// frame.
const KEPT_BYTES: usize = 24;

/// The time of the machine's monotonic clock, in nanoseconds.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Writes a stamp over the end of a payload; a short payload grows.
pub(super) fn stamp(payload: &mut Vec<u8>, at_ns: u64) {
    let end = payload.len().max(KEPT_BYTES + STAMP_BYTES);
    payload.resize(end, 0);
    payload[end - STAMP_BYTES..end - 8].copy_from_slice(&MARK);
    payload[end - 8..].copy_from_slice(&at_ns.to_be_bytes());
}

/// The time in a payload's stamp, in nanoseconds.
pub(super) fn stamped(payload: &[u8]) -> Option<u64> {
    let (rest, at) = payload.split_last_chunk::<8>()?;
    rest.ends_with(&MARK).then(|| u64::from_be_bytes(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_back_and_leaves_the_beginning_alone() {
        for len in [1, 30, 1150] {
            let mut payload = vec![7; len];
            stamp(&mut payload, 0x1234_5678_9abc);
            assert_eq!(stamped(&payload), Some(0x1234_5678_9abc));
            assert_eq!(payload.len(), len.max(36));
            assert!(payload[..len.min(KEPT_BYTES)].iter().all(|&b| b == 7));
        }
    }

    #[test]
    fn what_has_none_is_not_read() {
        for none in [&[][..], &[7; 8], &[7; 40]] {
            assert_eq!(stamped(none), None);
        }
    }

    #[test]
    fn time_goes_on() {
        let before = now_ns();
        assert!(now_ns() >= before);
    }
}
