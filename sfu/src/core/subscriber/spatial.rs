//! Which spatial layers of one encoding a subscriber gets.
//!
//! Some publishers send spatial layers instead of simulcast (SVC): a picture is a small frame, and larger ones that are
//! predicted from those below. The limit falls at the next picture, as a lower layer needs none above it. It rises at a
//! key frame. All packets of a picture go by the limit with which it began, and the last of them gets the RTP marker:
//! browsers wait for it. So a picture that has layers above the limit, and not the one at the limit, gets none. Such
//! pictures were not seen of cameras.

/// Above the number of any spatial layer: nothing is left out.
pub(crate) const ALL_SPATIAL: u8 = 8;

/// The spatial layers of one subscriber's stream.
#[derive(Debug)]
pub(crate) struct SpatialLimit {
    /// Highest layer that is to be forwarded.
    wanted: u8,
    /// Highest layer that is forwarded of the newest picture.
    current: u8,
    /// Number of layers of the stream. A limit at its highest one leaves nothing out.
    count: u8,
}

impl Default for SpatialLimit {
    fn default() -> SpatialLimit {
        SpatialLimit { wanted: ALL_SPATIAL, current: ALL_SPATIAL, count: 1 }
    }
}

impl SpatialLimit {
    /// Sets the highest layer that is forwarded; `None`: all are.
    pub(crate) fn set_max(&mut self, layer: Option<u8>) {
        self.wanted = layer.unwrap_or(ALL_SPATIAL);
    }

    /// Takes the number of the stream's layers from a packet on. Returns whether it is another one.
    pub(crate) fn set_count(&mut self, count: usize) -> bool {
        std::mem::replace(&mut self.count, count as u8) != count as u8
    }

    /// Number of layers of the stream.
    pub(crate) fn count(&self) -> u8 {
        self.count
    }

    /// Begins another source, of so many layers, with its key frame.
    pub(crate) fn begin(&mut self, count: usize) {
        self.set_count(count);
        self.current = self.next();
    }

    /// The highest layer that is forwarded of the newest picture.
    pub(crate) fn current(&self) -> u8 {
        self.current
    }

    /// Whether layers are to come back, for which a key frame is needed.
    pub(crate) fn needs_key_frame(&self) -> bool {
        let highest = self.count.saturating_sub(1);
        self.wanted.min(highest) > self.current.min(highest)
    }

    /// Begins the newest picture. `key`: a packet of it says that a key frame begins. Returns the highest layer that is
    /// forwarded of it.
    pub(crate) fn begin_picture(&mut self, key: bool) -> u8 {
        let next = self.next();
        if key || next < self.current {
            self.current = next;
        }
        self.current
    }

    fn next(&self) -> u8 {
        if self.wanted + 1 < self.count { self.wanted } else { ALL_SPATIAL }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit of a stream of three layers.
    fn limit_of_three() -> SpatialLimit {
        let mut limit = SpatialLimit::default();
        limit.set_count(3);
        limit
    }

    #[test]
    fn layers_go_at_the_next_picture_and_come_back_at_a_key_frame() {
        let mut limit = limit_of_three();
        assert_eq!(limit.begin_picture(false), ALL_SPATIAL);
        limit.set_max(Some(0));
        assert_eq!(limit.current(), ALL_SPATIAL, "the picture that has begun is whole");
        assert_eq!(limit.begin_picture(false), 0);
        limit.set_max(Some(1));
        assert_eq!((limit.begin_picture(false), limit.needs_key_frame()), (0, true));
        assert_eq!((limit.begin_picture(true), limit.needs_key_frame()), (1, false));
    }

    #[test]
    fn another_source_begins_with_what_is_wanted() {
        let mut limit = limit_of_three();
        limit.set_max(Some(0));
        limit.begin(3);
        limit.set_max(None);
        assert_eq!(limit.current(), 0);
        limit.begin(3);
        assert_eq!((limit.current(), limit.needs_key_frame()), (ALL_SPATIAL, false));
    }

    #[test]
    fn a_limit_at_the_highest_layer_leaves_nothing_out_and_needs_no_key_frame() {
        let mut limit = limit_of_three();
        limit.set_max(Some(1));
        assert_eq!(limit.begin_picture(false), 1);
        // The publisher goes on with two, and then with one.
        limit.set_count(2);
        limit.set_max(None);
        assert!(!limit.needs_key_frame());
        limit.set_max(Some(0));
        limit.set_count(1);
        assert_eq!((limit.begin_picture(true), limit.needs_key_frame()), (ALL_SPATIAL, false));
    }
}
