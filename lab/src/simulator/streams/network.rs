//! The paths from a publisher to the server, and from there to viewers.
//!
//! Frames arrive in order: a late one delays those behind it, as in a jitter buffer. A frame is lost if any of its
//! packets is. All frames that follow are lost too, until a key frame comes. A key frame is asked for when the first
//! of those frames arrives. The publisher knows one delay later, and its next frame is one. Loss is what repairs by
//! NACK left over. The paths are deterministic by the caller's random numbers, of which one without jitter and loss
//! takes none.

use std::time::Duration;

use super::camera::Coded;
use super::events::Random;
use super::scenario::Link;
use windlass_scheduler::Tier;

/// Length of a packet of video, in bytes.
const PACKET: u32 = 1_200;

impl Link {
    fn delay(&self, random: &mut Random) -> Duration {
        let jitter = if self.jitter_ms > 0.0 { self.jitter_ms * random.share() } else { 0.0 };
        Duration::from_secs_f64((self.delay_ms + jitter) / 1e3)
    }

    /// When data that is sent at a time arrives; `None`: it is lost.
    pub(super) fn carry(&self, at: Duration, random: &mut Random) -> Option<Duration> {
        if self.loss > 0.0 && random.share() < self.loss {
            return None;
        }
        Some(at.saturating_add(self.delay(random)))
    }
}

/// When a frame arrives, or would have if it were not lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The frame can be decoded.
    Whole(Duration),
    /// The frame cannot be decoded.
    Lost(Duration),
}

impl Arrival {
    pub(super) fn at(self) -> Duration {
        let (Arrival::Whole(at) | Arrival::Lost(at)) = self;
        at
    }
}

/// A publisher's path to the server.
#[derive(Debug, Clone)]
pub(super) struct Uplink {
    link: Link,
    last: Duration,
    /// Whether a frame was lost and no key frame has come since.
    broken: bool,
    /// When the publisher hears that a key frame is wanted.
    asked: Option<Duration>,
}

impl Uplink {
    pub(super) fn new(link: &Link) -> Uplink {
        Uplink { link: *link, last: Duration::ZERO, broken: false, asked: None }
    }

    /// Whether the frame that is encoded at a time must be a key frame.
    pub(super) fn key_wanted(&mut self, at: Duration) -> bool {
        self.asked.take_if(|asked| *asked <= at).is_some()
    }

    /// Sends a frame, and returns when it arrives.
    pub(super) fn send(&mut self, frame: &Coded, random: &mut Random) -> Arrival {
        let at = frame.at.saturating_add(self.link.delay(random)).max(self.last);
        self.last = at;
        let packets = f64::from(frame.bytes.div_ceil(PACKET).max(1));
        let arrives =
            self.link.loss <= 0.0 || random.share() < (1.0 - self.link.loss).powf(packets);
        if !arrives {
            self.broken = true;
            return Arrival::Lost(at);
        }
        if frame.tier == Tier::Key {
            (self.broken, self.asked) = (false, None);
        }
        if self.broken {
            let heard = at.saturating_add(Duration::from_secs_f64(self.link.delay_ms / 1e3));
            self.asked.get_or_insert(heard);
            return Arrival::Lost(at);
        }
        Arrival::Whole(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Duration = Duration::from_millis(33);

    fn frame(number: u32, tier: Tier) -> Coded {
        Coded { at: FRAME * number, bytes: 500, tier, worth: None }
    }

    #[test]
    fn without_loss_frames_arrive_in_order_and_no_key_frame_is_asked_for() {
        let link = Link { delay_ms: 20.0, jitter_ms: 100.0, loss: 0.0 };
        let (mut uplink, mut random) = (Uplink::new(&link), Random::new(1));
        let mut last = Duration::ZERO;
        for n in 0..100 {
            let frame = frame(n, Tier::Normal);
            let Arrival::Whole(at) = uplink.send(&frame, &mut random) else { panic!("frame {n}") };
            assert!(at >= last && at >= frame.at + Duration::from_millis(20));
            assert!(!uplink.key_wanted(frame.at));
            last = at;
        }
    }

    #[test]
    fn a_way_that_loses_nothing_takes_no_chance() {
        let (mut uplink, mut random) = (Uplink::new(&Link::default()), Random::new(1));
        uplink.send(&frame(3, Tier::Normal), &mut random);
        assert_eq!(Link::default().carry(FRAME, &mut random), Some(FRAME));
        assert!((random.share() - Random::new(1).share()).abs() < 1e-12);
    }

    #[test]
    fn after_a_loss_nothing_is_whole_until_the_key_frame_a_round_trip_later() {
        let link = Link { delay_ms: 100.0, jitter_ms: 0.0, loss: 0.0 };
        let (mut uplink, mut random) = (Uplink::new(&link), Random::new(1));
        uplink.broken = true;
        let mut whole = None;
        for n in 0..20 {
            let wanted = uplink.key_wanted(FRAME * n);
            let frame = frame(n, if wanted { Tier::Key } else { Tier::Normal });
            if let Arrival::Whole(_) = uplink.send(&frame, &mut random) {
                whole.get_or_insert((n, wanted));
            }
        }
        // The first arrives at 100 ms, the publisher hears of it at 200, and codes the seventh at 231.
        assert_eq!(whole, Some((7, true)));
    }
}
