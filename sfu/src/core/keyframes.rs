//! When a publisher is asked for key frames.
//!
//! A request to one layer makes Chromium code a key frame on every layer, and it merges requests that follow a
//! recent key frame, silently. So requests of all subscribers are merged and throttled for each publisher, and
//! repeated while anybody still waits: who waits says so again, and a wish that nobody renews dies with the request
//! (the layer may have ended meanwhile, and each request costs every other layer a key frame).
//!
//! Who begins to watch waits for one request. Decoders that lost frames may lose the next key frame, too: on an uplink
//! that is too narrow, each one crowds out the frames and the repairs that would end the misery. For them the pace is half that at
//! which key frames come through, whole.

use std::time::{Duration, Instant};

use windlass_media::Layer;

/// The least time between two requests to one publisher, and the pace at which they are repeated.
pub const PACE: Duration = Duration::from_millis(400);
/// The most time between two requests for a broken decoder.
const SLOWEST: Duration = Duration::from_millis(3200);

/// The requests to one publisher's track.
#[derive(Debug, Default)]
pub struct KeyFrames {
    wanted: [bool; 3],
    broken: [bool; 3],
    last: Option<Instant>,
    /// The first request that no whole key frame has come for, and the layer that it was sent to.
    open: Option<(Instant, Layer)>,
    /// From a request to the end of its key frame, the last time.
    took: Duration,
}

impl KeyFrames {
    /// Somebody begins to show the layer, at its next key frame.
    pub fn want(&mut self, layer: Layer) {
        self.wanted[layer as usize] = true;
    }

    /// A decoder of the layer lost frames, and cannot go on before its next key frame.
    pub fn want_repair(&mut self, layer: Layer) {
        self.broken[layer as usize] = true;
    }

    /// A key frame of the layer has begun.
    pub fn arrived(&mut self, layer: Layer) {
        self.wanted[layer as usize] = false;
        self.broken[layer as usize] = false;
    }

    /// The last packet of a key frame of the layer is here.
    pub fn whole(&mut self, layer: Layer, now: Instant) {
        if let Some((asked, _)) = self.open.take_if(|(_, of)| *of == layer) {
            self.took = now.saturating_duration_since(asked);
        }
    }

    /// Nobody can answer now.
    pub fn forget(&mut self) {
        self.wanted = [false; 3];
        self.broken = [false; 3];
    }

    /// When [`KeyFrames::poll`] is due.
    pub fn timeout(&self, now: Instant) -> Option<Instant> {
        let pace = if self.wanted.contains(&true) {
            PACE
        } else if self.broken.contains(&true) {
            (2 * self.took).clamp(PACE, SLOWEST)
        } else {
            return None;
        };
        Some(self.last.map_or(now, |last| last + pace))
    }

    /// The layer to send a request for now, the lowest one wanted. All wishes are then taken for granted.
    pub fn poll(&mut self, now: Instant) -> Option<Layer> {
        self.timeout(now).filter(|&due| due <= now)?;
        let any = |l: &Layer| self.wanted[*l as usize] || self.broken[*l as usize];
        let layer = Layer::ALL.into_iter().find(any)?;
        self.last = Some(now);
        self.open.get_or_insert((now, layer));
        self.forget();
        Some(layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_wishes_are_one_request() {
        let now = Instant::now();
        let mut k = KeyFrames::default();
        k.want(Layer::H);
        k.want(Layer::Q);
        assert_eq!(k.poll(now), Some(Layer::Q));
        k.want(Layer::Q);
        assert_eq!(k.poll(now + PACE / 2), None);
    }

    #[test]
    fn a_request_is_repeated_while_somebody_waits() {
        let now = Instant::now();
        let mut k = KeyFrames::default();
        k.want(Layer::H);
        assert_eq!(k.poll(now), Some(Layer::H));
        assert_eq!(k.timeout(now), None);
        k.want(Layer::H);
        assert_eq!(k.timeout(now), Some(now + PACE));
        assert_eq!(k.poll(now + PACE), Some(Layer::H));
        k.want(Layer::H);
        k.arrived(Layer::H);
        assert_eq!(k.poll(now + 2 * PACE), None);
    }

    #[test]
    fn a_wish_that_is_not_renewed_is_forgotten() {
        let now = Instant::now();
        let mut k = KeyFrames::default();
        k.want(Layer::F);
        assert_eq!(k.poll(now), Some(Layer::F));
        assert_eq!(k.poll(now + 2 * PACE), None);
    }

    /// When requests go out within five seconds, in ms, while a decoder is broken all the time and a whole key frame comes `takes` after
    /// each of them.
    fn requests(k: &mut KeyFrames, begin: Instant, takes: Duration, newcomer: bool) -> Vec<u128> {
        let (mut at, mut due) = (Vec::new(), None);
        for ms in (0..5000).step_by(100) {
            let now = begin + Duration::from_millis(ms);
            if due.take_if(|due| *due <= now).is_some() {
                k.whole(Layer::Q, now);
            }
            k.want_repair(Layer::Q);
            if newcomer {
                k.want(Layer::Q);
            }
            if k.poll(now).is_some() {
                due.get_or_insert(now + takes);
                at.push(now.duration_since(begin).as_millis());
            }
        }
        at
    }

    const SLOW: Duration = Duration::from_millis(1100);

    #[test]
    fn broken_decoders_leave_key_frames_twice_the_time_that_they_take() {
        let mut k = KeyFrames::default();
        assert_eq!(requests(&mut k, Instant::now(), SLOW, false), [0, 400, 800, 3000]);
    }

    #[test]
    fn they_are_served_at_once_where_key_frames_come_at_once() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        requests(&mut k, begin, SLOW, false);
        let fast = requests(&mut k, begin + SLOWEST * 2, Duration::from_millis(100), false);
        assert_eq!(fast[..4], [0, 400, 800, 1200]);
    }

    #[test]
    fn who_begins_to_watch_does_not_wait_for_the_pace_of_broken_decoders() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        requests(&mut k, begin, SLOW, false);
        let later = requests(&mut k, begin + SLOWEST * 2, SLOW, true);
        assert_eq!(later[..3], [0, 400, 800]);
    }

    #[test]
    fn another_layers_key_frame_says_nothing_of_the_one_asked_for() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        k.want_repair(Layer::Q);
        assert_eq!(k.poll(begin), Some(Layer::Q));
        k.whole(Layer::H, begin + PACE);
        k.want_repair(Layer::Q);
        assert_eq!(k.timeout(begin), Some(begin + PACE));
        k.whole(Layer::Q, begin + SLOW);
        assert_eq!(k.timeout(begin), Some(begin + 2 * SLOW));
    }

    #[test]
    fn nobody_wanting_means_no_request() {
        assert_eq!(KeyFrames::default().poll(Instant::now()), None);
    }
}
