//! When a publisher is asked for key frames.
//!
//! A request to one layer makes Chromium code a key frame on every layer, and it merges requests that follow a
//! recent key frame, silently. So requests of all subscribers are merged and throttled for each publisher, and
//! repeated while anybody still waits: who waits says so again, and a wish that nobody renews dies with the request
//! (the layer may have ended meanwhile, and each request costs every other layer a key frame).
//!
//! Who begins to watch waits for one request. Decoders that lost frames may lose the next key frame, too: on an uplink
//! that is too narrow, each one crowds out the frames and repairs that would end the misery. They are asked for at
//! half the pace each time, until there has been calm.

use std::time::{Duration, Instant};

use windlass_media::Layer;

/// The least time between two requests to one publisher, and the pace at which they are repeated.
pub const PACE: Duration = Duration::from_millis(400);
/// How often the pace is halved: 3.2 s between requests at most.
const DOUBLINGS: u32 = 3;
/// So long after a request for a broken decoder the next one is a new matter.
const CALM: Duration = Duration::from_secs(6);

/// The requests to one publisher's track.
#[derive(Debug, Default)]
pub struct KeyFrames {
    wanted: [bool; 3],
    broken: [bool; 3],
    last: Option<Instant>,
    last_repair: Option<Instant>,
    /// Requests for broken decoders without calm between them, less the first.
    repeats: u32,
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
            PACE * (1 << self.repeats.min(DOUBLINGS))
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
        if self.broken.contains(&true) {
            let calm = self.last_repair.is_none_or(|then| now.duration_since(then) >= CALM);
            self.repeats = if calm { 0 } else { (self.repeats + 1).min(DOUBLINGS) };
            self.last_repair = Some(now);
        }
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

    /// When requests go out within `seconds` to a publisher none of whose key frames arrives whole.
    fn requests(k: &mut KeyFrames, begin: Instant, seconds: u64, newcomer: bool) -> Vec<u128> {
        let mut at = Vec::new();
        for ms in (0..seconds * 1000).step_by(100) {
            let now = begin + Duration::from_millis(ms);
            k.want_repair(Layer::Q);
            if newcomer {
                k.want(Layer::Q);
            }
            if k.poll(now).is_some() {
                k.arrived(Layer::Q);
                at.push(now.duration_since(begin).as_millis());
            }
        }
        at
    }

    #[test]
    fn a_decoder_that_breaks_again_and_again_is_served_ever_more_slowly() {
        let mut k = KeyFrames::default();
        let at = requests(&mut k, Instant::now(), 10, false);
        assert_eq!(at, [0, 400, 1200, 2800, 6000, 9200]);
    }

    #[test]
    fn the_pace_is_the_first_one_again_after_calm() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        requests(&mut k, begin, 10, false);
        let calm = begin + Duration::from_secs(10) + CALM;
        assert_eq!(requests(&mut k, calm, 1, false), [0, 400]);
    }

    #[test]
    fn who_begins_to_watch_does_not_wait_for_the_pace_of_broken_decoders() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        requests(&mut k, begin, 10, false);
        let later = begin + Duration::from_secs(10);
        assert_eq!(requests(&mut k, later, 1, true), [0, 400, 800]);
    }

    #[test]
    fn nobody_wanting_means_no_request() {
        assert_eq!(KeyFrames::default().poll(Instant::now()), None);
    }
}
