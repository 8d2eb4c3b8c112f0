//! Checks how long the certificate is still valid.

use std::time::{Duration, SystemTime};

use crate::finding::Finding;

/// Name of this check in findings.
const CHECK: &str = "tls";
/// Seconds of a day.
const DAY: u64 = 24 * 3600;
/// Remaining days below which renewal seems to have failed: ACME clients renew thirty days before the end.
const RENEWED_DAYS: u64 = 20;

/// Checks the end of the certificate's validity, given in seconds since 1970.
pub fn certificate(not_after: u64, now: SystemTime) -> Finding {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let renew = "renew it; --tls CERT,KEY is read again when the files change";
    let Some(left) = not_after.checked_sub(now).filter(|left| *left > 0) else {
        let days = (now - not_after) / DAY;
        return Finding::fault(CHECK, format!("the certificate ended {days} days ago"), renew);
    };
    let days = left / DAY;
    if days < RENEWED_DAYS {
        return Finding::warning(CHECK, format!("the certificate ends in {days} days"), renew);
    }
    Finding::ok(CHECK, format!("the certificate fits its key, and lasts {days} days"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    #[test]
    fn a_certificate_that_was_not_renewed_is_told_before_its_end() {
        let at = |days: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(days * DAY);
        let level = |now| certificate(100 * DAY, at(now)).level;
        assert_eq!(level(10), Level::Ok);
        assert_eq!(level(90), Level::Warning);
        assert_eq!(level(100), Level::Fault);
        assert_eq!(level(130), Level::Fault);
    }
}
