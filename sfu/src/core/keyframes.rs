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
//!
//! One subscriber that asks all the time would spoil the layer for all: key frames are what a stream's bits are worst spent on.
//! So each has one request in two seconds in the mean, and all together one a second. What was saved of that is there for whoever
//! begins, changes layers and loses a frame, all within a second.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use windlass_types::Layer;

use super::used::Used;
use crate::api::ParticipantId;

/// The least time between two requests to one publisher, and the pace at which they are repeated.
pub const PACE: Duration = Duration::from_millis(400);
/// The most time between two requests for a broken decoder.
const SLOWEST: Duration = Duration::from_millis(3200);
/// The time between two requests to one publisher in the mean, for one subscriber and for all.
const MEAN_OF_ONE: Duration = Duration::from_secs(2);
const MEAN_OF_ALL: Duration = Duration::from_secs(1);
/// How much of that time may have been saved: several people who come within seconds wait for no pace.
const SAVED_BY_ONE: Duration = Duration::from_secs(4);
const SAVED_BY_ALL: Duration = Duration::from_secs(10);

/// Whom a key frame is for; `None`: the server itself or another one, which have their own patience.
pub type Asker = Option<ParticipantId>;

/// What somebody wants, and has been given.
#[derive(Debug, Default)]
struct Wish {
    wanted: [bool; 3],
    broken: [bool; 3],
    requests: Used,
}

/// The requests to one publisher's track.
#[derive(Debug, Default)]
pub struct KeyFrames {
    wishes: BTreeMap<Asker, Wish>,
    last: Option<Instant>,
    requests: Used,
    /// When each layer's last key frame began, until it is whole.
    began: [Option<Instant>; 3],
    /// How long each layer's last key frame took from its first packet to its last.
    took: [Duration; 3],
}

impl Wish {
    fn is_open(&self) -> bool {
        self.wanted.contains(&true) || self.broken.contains(&true)
    }

    fn close(&mut self) {
        (self.wanted, self.broken) = ([false; 3], [false; 3]);
    }

    /// It was asked for.
    fn asked(&mut self, now: Instant) {
        self.requests.add(now, MEAN_OF_ONE);
        self.close();
    }
}

impl KeyFrames {
    /// Somebody begins to show the layer, at its next key frame.
    pub fn want(&mut self, asker: Asker, layer: Layer) {
        self.wishes.entry(asker).or_default().wanted[layer as usize] = true;
    }

    /// A decoder of the layer lost frames, and cannot go on before its next key frame.
    pub fn want_repair(&mut self, asker: Asker, layer: Layer) {
        self.wishes.entry(asker).or_default().broken[layer as usize] = true;
    }

    /// A key frame of the layer has begun.
    pub fn arrived(&mut self, layer: Layer, now: Instant) {
        self.began[layer as usize] = Some(now);
        for wish in self.wishes.values_mut() {
            (wish.wanted[layer as usize], wish.broken[layer as usize]) = (false, false);
        }
    }

    /// The last packet of a key frame of the layer is here.
    pub fn whole(&mut self, layer: Layer, now: Instant) {
        if let Some(began) = self.began[layer as usize].take() {
            self.took[layer as usize] = now.saturating_duration_since(began);
        }
    }

    /// Nobody can answer now.
    pub fn forget(&mut self) {
        self.wishes.values_mut().for_each(Wish::close);
    }

    /// When [`KeyFrames::poll`] is due.
    pub fn timeout(&self, now: Instant) -> Option<Instant> {
        let open = self.wishes.iter().filter(|(_, wish)| wish.is_open());
        let due = open.map(|(asker, wish)| self.due(*asker, wish, now)).min()?;
        Some(self.requests.within(SAVED_BY_ALL).map_or(due, |all| due.max(all)))
    }

    /// When a wish is due, but for the mean.
    fn due(&self, asker: Asker, wish: &Wish, now: Instant) -> Instant {
        let pace = match wish.broken.iter().position(|broken| *broken) {
            Some(layer) if !wish.wanted.contains(&true) => {
                (2 * self.took[layer]).clamp(PACE, SLOWEST)
            }
            _ => PACE,
        };
        let own = wish.requests.within(SAVED_BY_ONE).filter(|_| asker.is_some());
        self.last.map(|last| last + pace).max(own).unwrap_or(now)
    }

    /// The layer to send a request for now, the lowest one wanted. All wishes are then taken for granted.
    pub fn poll(&mut self, now: Instant) -> Option<Layer> {
        self.timeout(now).filter(|&due| due <= now)?;
        let due: Vec<_> = self
            .wishes
            .iter()
            .filter(|(asker, wish)| wish.is_open() && self.due(**asker, wish, now) <= now)
            .map(|(_, wish)| wish)
            .collect();
        let any = |l: &Layer| due.iter().any(|w| w.wanted[*l as usize] || w.broken[*l as usize]);
        let layer = Layer::ALL.into_iter().find(any)?;
        self.last = Some(now);
        self.requests.add(now, MEAN_OF_ALL);
        for wish in self.wishes.values_mut().filter(|wish| wish.is_open()) {
            wish.asked(now);
        }
        // Who has been quiet for long begins anew.
        self.wishes.retain(|_, w| !w.requests.is_within(now, Duration::ZERO));
        Some(layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Asker = Some(ParticipantId(1));
    const OTHER: Asker = Some(ParticipantId(2));

    #[test]
    fn many_wishes_are_one_request() {
        let now = Instant::now();
        let mut k = KeyFrames::default();
        k.want(ONE, Layer::H);
        k.want(OTHER, Layer::Q);
        assert_eq!(k.poll(now), Some(Layer::Q));
        k.want(None, Layer::Q);
        assert_eq!(k.poll(now + PACE / 2), None);
    }

    #[test]
    fn a_request_is_repeated_while_somebody_waits() {
        let now = Instant::now();
        let mut k = KeyFrames::default();
        k.want(ONE, Layer::H);
        assert_eq!(k.poll(now), Some(Layer::H));
        assert_eq!(k.timeout(now), None);
        k.want(ONE, Layer::H);
        assert_eq!(k.timeout(now), Some(now + PACE));
        assert_eq!(k.poll(now + PACE), Some(Layer::H));
        k.want(ONE, Layer::H);
        k.arrived(Layer::H, now);
        assert_eq!(k.poll(now + 2 * PACE), None);
    }

    #[test]
    fn a_wish_that_is_not_renewed_is_forgotten() {
        let now = Instant::now();
        let mut k = KeyFrames::default();
        k.want(ONE, Layer::F);
        assert_eq!(k.poll(now), Some(Layer::F));
        assert_eq!(k.poll(now + 2 * PACE), None);
    }

    /// When requests go out within so many seconds, in ms, while somebody asks all the time, for repair by the first that `asks` names
    /// and for a beginning by the second, and each key frame takes `takes`.
    fn requests(
        k: &mut KeyFrames,
        (begin, seconds): (Instant, u64),
        takes: Duration,
        asks: impl Fn(u64) -> (Asker, Option<Asker>),
    ) -> Vec<u128> {
        let (mut at, mut due) = (Vec::new(), None);
        for ms in (0..seconds * 1000).step_by(100) {
            let now = begin + Duration::from_millis(ms);
            if due.take_if(|due| *due <= now).is_some() {
                k.whole(Layer::Q, now);
            }
            let (broken, newcomer) = asks(ms);
            k.want_repair(broken, Layer::Q);
            if let Some(newcomer) = newcomer {
                k.want(newcomer, Layer::Q);
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
    const FAST: Duration = Duration::from_millis(100);

    #[test]
    fn broken_decoders_leave_key_frames_twice_the_time_that_they_take() {
        let mut k = KeyFrames::default();
        k.arrived(Layer::Q, Instant::now());
        let begin = Instant::now() + SLOW;
        k.whole(Layer::Q, begin);
        let asks = |_| (None, None);
        assert_eq!(requests(&mut k, (begin, 5), SLOW, asks), [0, 1600, 3200, 4800]);
    }

    #[test]
    fn they_are_served_at_once_where_key_frames_come_at_once() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        k.arrived(Layer::Q, begin);
        k.whole(Layer::Q, begin + SLOW);
        // Each breaks once in a second.
        let asks = |ms: u64| (Some(ParticipantId(ms / 1000)), None);
        let fast = requests(&mut k, (begin + SLOWEST * 2, 5), FAST, asks);
        assert_eq!(fast[..3], [0, 400, 800]);
        // However long it took before one came, as browsers leave out those that follow a recent one.
        k.arrived(Layer::Q, begin + SLOWEST * 9);
        k.whole(Layer::Q, begin + SLOWEST * 9);
        k.want_repair(ONE, Layer::Q);
        assert!(k.timeout(begin + SLOWEST * 9).is_some_and(|due| due < begin + SLOWEST * 9));
    }

    #[test]
    fn who_begins_to_watch_does_not_wait_for_the_pace_of_broken_decoders() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        k.arrived(Layer::Q, begin);
        k.whole(Layer::Q, begin + SLOW);
        let asks = |ms: u64| (ONE, Some(Some(ParticipantId(10 + ms / 400))));
        let later = requests(&mut k, (begin + SLOWEST * 2, 5), SLOW, asks);
        assert_eq!(later[..3], [0, 400, 800]);
    }

    #[test]
    fn who_asks_all_the_time_has_three_at_once_and_then_one_in_two_seconds() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        let asked = requests(&mut k, (begin, 11), FAST, |_| (ONE, None));
        assert_eq!(asked, [0, 400, 800, 2000, 4000, 6000, 8000, 10_000]);
    }

    #[test]
    fn others_are_served_at_once_meanwhile() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        let asks = |ms: u64| (ONE, (ms == 4500).then_some(OTHER));
        let asked = requests(&mut k, (begin, 11), FAST, asks);
        assert_eq!(asked[..6], [0, 400, 800, 2000, 4000, 4500]);
    }

    #[test]
    fn who_was_content_for_a_while_is_served_at_once_again() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        requests(&mut k, (begin, 9), FAST, |_| (ONE, None));
        let later = begin + Duration::from_secs(15);
        assert_eq!(requests(&mut k, (later, 1), FAST, |_| (ONE, None)), [0, 400, 800]);
    }

    #[test]
    fn all_together_have_one_request_a_second_in_the_mean() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        let asked = requests(&mut k, (begin, 60), FAST, |ms| (Some(ParticipantId(ms)), None));
        assert_eq!(asked.len(), 70, "ten that were saved, and one each second");
        assert_eq!(asked[15..20], [6000, 6400, 7000, 8000, 9000]);
        assert!(k.wishes.len() < 50, "those who are content are forgotten");
    }

    #[test]
    fn another_layers_key_frame_says_nothing_of_the_one_asked_for() {
        let (begin, mut k) = (Instant::now(), KeyFrames::default());
        k.want_repair(ONE, Layer::Q);
        assert_eq!(k.poll(begin), Some(Layer::Q));
        k.arrived(Layer::H, begin);
        k.whole(Layer::H, begin + SLOW);
        k.want_repair(ONE, Layer::Q);
        assert_eq!(k.timeout(begin), Some(begin + PACE));
    }

    #[test]
    fn nobody_wanting_means_no_request() {
        assert_eq!(KeyFrames::default().poll(Instant::now()), None);
    }
}
