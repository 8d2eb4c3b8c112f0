//! When a publisher is asked for key frames.
//!
//! A request to one layer makes Chromium code a key frame on every layer, and it merges requests that follow a
//! recent key frame, silently. So requests of all subscribers are merged and throttled for each publisher, and
//! repeated while anybody still waits: who waits says so again, and a wish that nobody renews dies with the request
//! (the layer may have ended meanwhile, and each request costs every other layer a key frame).

use std::time::{Duration, Instant};

use windlass_media::Layer;

/// The least time between two requests to one publisher, and the pace at which they are repeated.
pub const PACE: Duration = Duration::from_millis(400);

/// The requests to one publisher's track.
#[derive(Debug, Default)]
pub struct KeyFrames {
    wanted: [bool; 3],
    last: Option<Instant>,
}

impl KeyFrames {
    /// Somebody cannot show the layer before its next key frame.
    pub fn want(&mut self, layer: Layer) {
        self.wanted[layer as usize] = true;
    }

    /// A key frame of the layer has begun.
    pub fn arrived(&mut self, layer: Layer) {
        self.wanted[layer as usize] = false;
    }

    /// Nobody can answer now.
    pub fn forget(&mut self) {
        self.wanted = [false; 3];
    }

    /// When [`KeyFrames::poll`] is due.
    pub fn timeout(&self, now: Instant) -> Option<Instant> {
        self.wanted.contains(&true).then(|| self.last.map_or(now, |last| last + PACE))
    }

    /// The layer to send a request for now, the lowest one wanted. All wishes are then taken for granted.
    pub fn poll(&mut self, now: Instant) -> Option<Layer> {
        self.timeout(now).filter(|&due| due <= now)?;
        let layer = Layer::ALL.into_iter().find(|&l| self.wanted[l as usize])?;
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

    #[test]
    fn nobody_wanting_means_no_request() {
        assert_eq!(KeyFrames::default().poll(Instant::now()), None);
    }
}
