//! Keeps the publisher's own pictures of a stream until their low frames are chosen.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windlass_vp9::FrameBuffer;

/// Maximum pictures kept per stream: two intervals at 60 frames per second.
const KEPT: usize = 8;
/// Maximum pictures kept where frames are held before they are chosen: one second at 30 frames per second.
const KEPT_LONG: usize = 32;

/// Time without a picture after which captured pictures count as stopped.
const RECENT: Duration = Duration::from_millis(500);

/// The publisher's own pixels of one stream: its pictures, and whether it can be asked for regions.
#[derive(Debug, Default)]
pub(super) struct Captures {
    /// The publisher's pictures, each with the RTP timestamp of the low frame of the same moment.
    pictures: Mutex<VecDeque<(u32, Arc<FrameBuffer>)>>,
    /// Whether the publisher can be asked for regions.
    pub regions: AtomicBool,
    /// Whether the stream's frames are held before they are chosen.
    pub held: AtomicBool,
    /// Arrival of the last picture; `None` while none is being decoded.
    last: Mutex<Option<Instant>>,
}

impl Captures {
    /// Keeps a picture, in place of the oldest if there is no room.
    pub(super) fn put(&self, low_timestamp: u32, picture: Arc<FrameBuffer>, now: Instant) {
        let max = if self.held.load(Ordering::Relaxed) { KEPT_LONG } else { KEPT };
        let mut pictures = self.pictures.lock();
        while pictures.len() >= max {
            pictures.pop_front();
        }
        pictures.push_back((low_timestamp, picture));
        *self.last.lock() = Some(now);
    }

    /// Picture of a low frame, if it has come.
    pub(super) fn get(&self, low_timestamp: u32) -> Option<Arc<FrameBuffer>> {
        let pictures = self.pictures.lock();
        pictures.iter().find(|(at, _)| *at == low_timestamp).map(|(_, picture)| picture.clone())
    }

    /// Whether the picture of a low frame may still come. Pictures come in order.
    pub(super) fn comes(&self, low_timestamp: u32, now: Instant) -> bool {
        let pictures = self.pictures.lock();
        let later = |newest: u32| low_timestamp.wrapping_sub(newest).cast_signed() > 0;
        let recent = |last: Instant| now.saturating_duration_since(last) <= RECENT;
        self.last.lock().is_some_and(recent) && pictures.back().is_some_and(|(at, _)| later(*at))
    }

    /// Notes that no pictures come for now.
    pub(super) fn ebb(&self) {
        *self.last.lock() = None;
    }

    pub(super) fn clear(&self) {
        self.ebb();
        self.pictures.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_found_by_its_low_frame_while_it_is_kept() {
        let captures = Captures::default();
        let picture = Arc::new(FrameBuffer::grey(64, 64));
        for at in 0..=KEPT as u32 {
            captures.put(at, picture.clone(), Instant::now());
        }
        assert!(captures.get(0).is_none(), "the oldest went");
        assert!(captures.get(1).is_some() && captures.get(KEPT as u32).is_some());
    }

    #[test]
    fn a_picture_may_come_until_a_later_one_has_or_none_does() {
        let captures = Captures::default();
        let now = Instant::now();
        assert!(!captures.comes(5, now), "there are none");
        captures.put(u32::MAX - 1, Arc::new(FrameBuffer::grey(64, 64)), now);
        assert!(captures.comes(5, now), "timestamps wrap around");
        assert!(!captures.comes(u32::MAX - 1, now) && !captures.comes(u32::MAX - 9, now));
        assert!(!captures.comes(5, now + RECENT * 2), "they have ceased");
        captures.ebb();
        assert!(!captures.comes(5, now), "the next key frame is awaited");
    }
}
