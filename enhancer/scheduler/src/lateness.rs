//! Whether any network is fast enough for a stream.

use std::time::Duration;

/// A stream is refused when none of its frames could have been in time for this long.
const REFUSED_AFTER: Duration = Duration::from_secs(4);

/// Whether a stream's frames can be in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Lateness {
    /// Frames are in time, or late only because other work was in their way.
    #[default]
    OnTime,
    /// No frame was in time since a frame's arrival. Some could not have been in time even with nothing else in their
    /// way.
    Late {
        /// Arrival of the first such frame.
        since: Duration,
    },
    /// The stream was refused, because no frame was in time as in `Late`.
    Refused {
        /// Arrival of the first such frame.
        since: Duration,
    },
}

impl Lateness {
    /// Notes that a frame could not be in time even with nothing else in its way. Returns whether the stream is to be
    /// refused now. A stream with captured pictures is not refused.
    pub(crate) fn miss(&mut self, now: Duration, has_captured: bool) -> bool {
        match *self {
            Lateness::OnTime => *self = Lateness::Late { since: now },
            Lateness::Late { since }
                if !has_captured && now.saturating_sub(since) >= REFUSED_AFTER =>
            {
                *self = Lateness::Refused { since };
                return true;
            }
            Lateness::Late { .. } | Lateness::Refused { .. } => {}
        }
        false
    }

    /// Notes that an anchor was in time. Returns whether that ends a refusal.
    pub(crate) fn served(&mut self) -> bool {
        matches!(std::mem::take(self), Lateness::Refused { .. })
    }

    /// Notes that the publisher gives pictures of its own. Returns whether that ends a refusal.
    pub(crate) fn captured(&mut self) -> bool {
        let Lateness::Refused { since } = *self else { return false };
        *self = Lateness::Late { since };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_comes_once_after_four_seconds_and_ends_with_an_anchor() {
        let mut lateness = Lateness::default();
        let second = Duration::from_secs(1);
        let refused: Vec<u32> = (0..8).filter(|&n| lateness.miss(second * n, false)).collect();
        assert_eq!(refused, [4]);
        assert!(lateness.served() && !lateness.served());
        assert!(!lateness.miss(second * 8, false), "it begins anew");
    }

    #[test]
    fn captured_pictures_end_a_refusal_that_their_end_brings_back_at_once() {
        let mut lateness = Lateness::Refused { since: Duration::ZERO };
        let now = Duration::from_secs(9);
        assert!(lateness.captured() && !lateness.captured());
        assert!(!lateness.miss(now, true));
        assert!(lateness.miss(now, false));
    }
}
