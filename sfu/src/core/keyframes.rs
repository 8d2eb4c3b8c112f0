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
    /// When each layer's last key frame began, until it is whole.
    began: [Option<Instant>; 3],
    /// How long each layer's last key frame took from its first packet to its last.
    took: [Duration; 3],
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
    pub fn arrived(&mut self, layer: Layer, now: Instant) {
        self.began[layer as usize] = Some(now);
        self.wanted[layer as usize] = false;
        self.broken[layer as usize] = false;
    }

    /// The last packet of a key frame of the layer is here.
    pub fn whole(&mut self, layer: Layer, now: Instant) {
        if let Some(began) = self.began[layer as usize].take() {
            self.took[layer as usize] = now.saturating_duration_since(began);
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
        } else {
            let layer = self.broken.iter().position(|broken| *broken)?;
            (2 * self.took[layer]).clamp(PACE, SLOWEST)
        };
        Some(self.last.map_or(now, |last| last + pace))
    }

    /// The layer to send a request for now, the lowest one wanted. All wishes are then taken for granted.
    pub fn poll(&mut self, now: Instant) -> Option<Layer> {
        self.timeout(now).filter(|&due| due <= now)?;
        let any = |l: &Layer| self.wanted[*l as usize] || self.broken[*l as usize];
        let layer = Layer::ALL.into_iter().find(any)?;
        self.last = Some(now);
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
        k.arrived(Layer::H, now);
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

    /// When requests go out within five seconds, in ms, while a decoder is broken all the time and each key frame takes `takes`.
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
                k.arrived(Layer::Q, now);
                due = Some(now + takes);
                at.push(now.duration_since(begin).as_millis());
            }
        }
        at
    }

    const SLOW: Duration = Duration::from_millis(800);

    #[test]
    fn broken_decoders_leave_key_frames_twice_the_time_that_they_take() {
        let mut k = KeyFrames::default();
        k.arrived(Layer::Q, Instant::now());
        let begin = Instant::now() + SLOW;
        k.whole(Layer::Q, begin);
        assert_eq!(requests(&mut k, begin, SLOW, false), [0, 1600, 3200, 4800]);
    }

    #[test]
    fn they_are_served_at_once_where_key_frames_come_at_once() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        k.arrived(Layer::Q, begin);
        k.whole(Layer::Q, begin + SLOW);
        let fast = requests(&mut k, begin + SLOWEST * 2, Duration::from_millis(100), false);
        assert_eq!(fast[..4], [0, 400, 800, 1200]);
        // However long it took before one came, as browsers leave out those that follow a recent one.
        k.arrived(Layer::Q, begin + SLOWEST * 9);
        k.whole(Layer::Q, begin + SLOWEST * 9);
        k.want_repair(Layer::Q);
        assert!(k.timeout(begin + SLOWEST * 9).is_some_and(|due| due < begin + SLOWEST * 9));
    }

    #[test]
    fn who_begins_to_watch_does_not_wait_for_the_pace_of_broken_decoders() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        k.arrived(Layer::Q, begin);
        k.whole(Layer::Q, begin + SLOW);
        let later = requests(&mut k, begin + SLOWEST * 2, SLOW, true);
        assert_eq!(later[..3], [0, 400, 800]);
    }

    #[test]
    fn another_layers_key_frame_says_nothing_of_the_one_asked_for() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        k.want_repair(Layer::Q);
        assert_eq!(k.poll(begin), Some(Layer::Q));
        k.arrived(Layer::H, begin);
        k.whole(Layer::H, begin + SLOW);
        k.want_repair(Layer::Q);
        assert_eq!(k.timeout(begin), Some(begin + PACE));
    }

    #[test]
    fn nobody_wanting_means_no_request() {
        assert_eq!(KeyFrames::default().poll(Instant::now()), None);
    }
}
