//! When publishers are asked for key frames.
//!
//! A request for one layer makes Chromium encode a key frame on every layer, and Chromium silently merges requests that
//! follow a recent key frame. So the requests of all subscribers are merged and throttled for each track, and repeated
//! while a subscriber still waits. A waiting subscriber renews its request. A request that is not renewed ends with the
//! next request to the publisher: the layer may have ended, and each request costs every other layer a key frame.
//!
//! A new subscriber waits for one request. A decoder that lost frames may lose the next key frame, too: on a narrow
//! uplink each one displaces the frames and the repairs that would end the loss. For such decoders the interval is at
//! least twice the time that the last key frame took from its first packet to its last.
//!
//! Rate limits: one request in two seconds for each subscriber, and one a second for all, in the mean. Unused requests
//! are saved up to a burst, so that a subscriber can begin, change layers and lose a frame within a second.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use windlass_types::Layer;

use crate::api::ParticipantId;
use crate::core::gcra::Gcra;

/// Minimum time between two requests to a publisher, and the interval at which they are repeated.
pub(crate) const MIN_INTERVAL: Duration = Duration::from_millis(400);
/// Largest interval between two requests for a decoder that lost frames.
const MAX_REPAIR_INTERVAL: Duration = Duration::from_millis(3200);
/// Mean time between two requests for one subscriber.
const INTERVAL_OF_ONE: Duration = Duration::from_secs(2);
/// Mean time between two requests for all subscribers of a track.
const INTERVAL_OF_ALL: Duration = Duration::from_secs(1);
/// Burst of one subscriber, as the time in which its requests are earned: three requests at once.
const BURST_OF_ONE: Duration = Duration::from_secs(4);
/// Burst of all subscribers, as the time in which their requests are earned: ten requests, so that several of them can
/// join within seconds.
const BURST_OF_ALL: Duration = Duration::from_secs(10);

/// The subscriber that needs a key frame; `None`: this server's tap or another server, which limit themselves.
pub(crate) type Requester = Option<ParticipantId>;

/// The open requests of one subscriber, by layer.
#[derive(Debug, Default)]
struct Request {
    /// Requests for a subscriber that begins to show the layer.
    start: [bool; 3],
    /// Requests for a decoder that lost frames.
    repair: [bool; 3],
    used: Gcra,
}

/// The requests for one track.
#[derive(Debug, Default)]
pub(crate) struct KeyFrameRequests {
    requests: BTreeMap<Requester, Request>,
    last_sent: Option<Instant>,
    used: Gcra,
    /// RTP timestamp and arrival of each layer's last key frame, until it is complete.
    began: [Option<(u32, Instant)>; 3],
    /// Time from the first packet to the last of each layer's last key frame.
    took: [Duration; 3],
}

impl Request {
    fn is_open(&self) -> bool {
        self.start.contains(&true) || self.repair.contains(&true)
    }

    fn close(&mut self) {
        (self.start, self.repair) = ([false; 3], [false; 3]);
    }

    fn on_sent(&mut self, now: Instant) {
        self.used.add(now, INTERVAL_OF_ONE);
        self.close();
    }
}

impl KeyFrameRequests {
    /// Requests a key frame for a subscriber that begins to show a layer.
    pub(crate) fn request(&mut self, requester: Requester, layer: Layer) {
        self.requests.entry(requester).or_default().start[layer as usize] = true;
    }

    /// Requests a key frame for a decoder that lost frames of a layer.
    pub(crate) fn request_repair(&mut self, requester: Requester, layer: Layer) {
        self.requests.entry(requester).or_default().repair[layer as usize] = true;
    }

    /// Takes the arrival of the first packet of a layer's key frame.
    pub(crate) fn on_begin(&mut self, layer: Layer, timestamp: u32, now: Instant) {
        self.began[layer as usize] = Some((timestamp, now));
        for request in self.requests.values_mut() {
            (request.start[layer as usize], request.repair[layer as usize]) = (false, false);
        }
    }

    /// Takes the arrival of the last packet of a layer's frame.
    pub(crate) fn on_end(&mut self, layer: Layer, timestamp: u32, now: Instant) {
        let last = self.began[layer as usize].take_if(|(key, _)| *key == timestamp);
        if let Some((_, began)) = last {
            self.took[layer as usize] = now.saturating_duration_since(began);
        }
    }

    /// Drops all open requests: the publisher cannot answer now.
    pub(crate) fn clear(&mut self) {
        self.requests.values_mut().for_each(Request::close);
    }

    /// When [`KeyFrameRequests::poll`] is due.
    pub(crate) fn timeout(&self, now: Instant) -> Option<Instant> {
        let open = self.requests.iter().filter(|(_, request)| request.is_open());
        let due = open.map(|(requester, request)| self.due(*requester, request, now)).min()?;
        Some(self.used.conforms_at(BURST_OF_ALL).map_or(due, |all| due.max(all)))
    }

    /// When a request is due, apart from the limit for all.
    fn due(&self, requester: Requester, request: &Request, now: Instant) -> Instant {
        let interval = match request.repair.iter().position(|open| *open) {
            Some(layer) if !request.start.contains(&true) => {
                (2 * self.took[layer]).clamp(MIN_INTERVAL, MAX_REPAIR_INTERVAL)
            }
            _ => MIN_INTERVAL,
        };
        let own = request.used.conforms_at(BURST_OF_ONE).filter(|_| requester.is_some());
        self.last_sent.map(|last| last + interval).max(own).unwrap_or(now)
    }

    /// The layer to request from the publisher now: the lowest of those that are due. It closes all open requests.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Layer> {
        self.timeout(now).filter(|&due| due <= now)?;
        let due: Vec<_> = self
            .requests
            .iter()
            .filter(|(id, request)| request.is_open() && self.due(**id, request, now) <= now)
            .map(|(_, request)| request)
            .collect();
        let any = |l: &Layer| due.iter().any(|r| r.start[*l as usize] || r.repair[*l as usize]);
        let layer = Layer::ALL.into_iter().find(any)?;
        self.last_sent = Some(now);
        self.used.add(now, INTERVAL_OF_ALL);
        for request in self.requests.values_mut().filter(|request| request.is_open()) {
            request.on_sent(now);
        }
        // A requester with its full burst needs no entry.
        self.requests.retain(|_, r| !r.used.conforms(now, Duration::ZERO));
        Some(layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Requester = Some(ParticipantId(1));
    const OTHER: Requester = Some(ParticipantId(2));

    #[test]
    fn requests_of_several_subscribers_are_merged() {
        let now = Instant::now();
        let mut k = KeyFrameRequests::default();
        k.request(ONE, Layer::H);
        k.request(OTHER, Layer::Q);
        assert_eq!(k.poll(now), Some(Layer::Q));
        k.request(None, Layer::Q);
        assert_eq!(k.poll(now + MIN_INTERVAL / 2), None);
    }

    #[test]
    fn a_request_is_repeated_while_a_subscriber_waits() {
        let now = Instant::now();
        let mut k = KeyFrameRequests::default();
        k.request(ONE, Layer::H);
        assert_eq!(k.poll(now), Some(Layer::H));
        assert_eq!(k.timeout(now), None);
        k.request(ONE, Layer::H);
        assert_eq!(k.timeout(now), Some(now + MIN_INTERVAL));
        assert_eq!(k.poll(now + MIN_INTERVAL), Some(Layer::H));
        k.request(ONE, Layer::H);
        k.on_begin(Layer::H, 0, now);
        assert_eq!(k.poll(now + 2 * MIN_INTERVAL), None);
    }

    #[test]
    fn a_request_that_is_not_renewed_ends() {
        let now = Instant::now();
        let mut k = KeyFrameRequests::default();
        k.request(ONE, Layer::F);
        assert_eq!(k.poll(now), Some(Layer::F));
        assert_eq!(k.poll(now + 2 * MIN_INTERVAL), None);
    }

    /// When requests are sent, in ms, while `asks` names at each time the decoder that lost frames and the subscriber
    /// that begins. A key frame takes `takes`.
    fn requests(
        k: &mut KeyFrameRequests,
        begin: Instant,
        seconds: u64,
        takes: Duration,
        asks: impl Fn(u64) -> (Requester, Option<Requester>),
    ) -> Vec<u128> {
        let (mut at, mut due) = (Vec::new(), None);
        for ms in (0..seconds * 1000).step_by(100) {
            let now = begin + Duration::from_millis(ms);
            if due.take_if(|due| *due <= now).is_some() {
                k.on_end(Layer::Q, 0, now);
            }
            let (broken, newcomer) = asks(ms);
            k.request_repair(broken, Layer::Q);
            if let Some(newcomer) = newcomer {
                k.request(newcomer, Layer::Q);
            }
            if k.poll(now).is_some() {
                k.on_begin(Layer::Q, 0, now);
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
        let mut k = KeyFrameRequests::default();
        k.on_begin(Layer::Q, 0, Instant::now());
        let begin = Instant::now() + SLOW;
        k.on_end(Layer::Q, 0, begin);
        let asks = |_| (None, None);
        assert_eq!(requests(&mut k, begin, 5, SLOW, asks), [0, 1600, 3200, 4800]);
    }

    #[test]
    fn broken_decoders_are_served_at_once_where_key_frames_come_at_once() {
        let (begin, mut k) = (Instant::now(), KeyFrameRequests::default());
        k.on_begin(Layer::Q, 0, begin);
        k.on_end(Layer::Q, 0, begin + SLOW);
        // Each breaks once in a second.
        let asks = |ms: u64| (Some(ParticipantId(ms / 1000)), None);
        let fast = requests(&mut k, begin + MAX_REPAIR_INTERVAL * 2, 5, FAST, asks);
        assert_eq!(fast[..3], [0, 400, 800]);
        // However long it took before one came, as browsers leave out those that follow a recent one.
        k.on_begin(Layer::Q, 0, begin + MAX_REPAIR_INTERVAL * 9);
        k.on_end(Layer::Q, 0, begin + MAX_REPAIR_INTERVAL * 9);
        k.request_repair(ONE, Layer::Q);
        assert!(
            k.timeout(begin + MAX_REPAIR_INTERVAL * 9)
                .is_some_and(|due| due < begin + MAX_REPAIR_INTERVAL * 9)
        );
    }

    #[test]
    fn a_new_subscriber_does_not_wait_for_the_interval_of_broken_decoders() {
        let (begin, mut k) = (Instant::now(), KeyFrameRequests::default());
        k.on_begin(Layer::Q, 0, begin);
        k.on_end(Layer::Q, 0, begin + SLOW);
        let asks = |ms: u64| (ONE, Some(Some(ParticipantId(10 + ms / 400))));
        let later = requests(&mut k, begin + MAX_REPAIR_INTERVAL * 2, 5, SLOW, asks);
        assert_eq!(later[..3], [0, 400, 800]);
    }

    #[test]
    fn a_subscriber_that_asks_all_the_time_has_three_at_once_and_then_one_in_two_seconds() {
        let (begin, mut k) = (Instant::now(), KeyFrameRequests::default());
        let asked = requests(&mut k, begin, 11, FAST, |_| (ONE, None));
        assert_eq!(asked, [0, 400, 800, 2000, 4000, 6000, 8000, 10_000]);
    }

    #[test]
    fn subscribers_are_served_at_once_beside_one_that_asks_all_the_time() {
        let (begin, mut k) = (Instant::now(), KeyFrameRequests::default());
        let asks = |ms: u64| (ONE, (ms == 4500).then_some(OTHER));
        let asked = requests(&mut k, begin, 11, FAST, asks);
        assert_eq!(asked[..6], [0, 400, 800, 2000, 4000, 4500]);
    }

    #[test]
    fn a_subscriber_has_its_burst_again_after_a_while() {
        let (begin, mut k) = (Instant::now(), KeyFrameRequests::default());
        requests(&mut k, begin, 9, FAST, |_| (ONE, None));
        let later = begin + Duration::from_secs(15);
        assert_eq!(requests(&mut k, later, 1, FAST, |_| (ONE, None)), [0, 400, 800]);
    }

    #[test]
    fn all_together_have_one_request_a_second_in_the_mean() {
        let (begin, mut k) = (Instant::now(), KeyFrameRequests::default());
        let asked = requests(&mut k, begin, 60, FAST, |ms| (Some(ParticipantId(ms)), None));
        assert_eq!(asked.len(), 70, "ten that were saved, and one each second");
        assert_eq!(asked[15..20], [6000, 6400, 7000, 8000, 9000]);
        assert!(k.requests.len() < 50, "requesters with their full burst have no entry");
    }

    #[test]
    fn another_layers_key_frame_says_nothing_of_the_one_asked_for() {
        let (begin, mut k) = (Instant::now(), KeyFrameRequests::default());
        k.request_repair(ONE, Layer::Q);
        assert_eq!(k.poll(begin), Some(Layer::Q));
        k.on_begin(Layer::H, 0, begin);
        k.on_end(Layer::H, 0, begin + SLOW);
        k.request_repair(ONE, Layer::Q);
        assert_eq!(k.timeout(begin), Some(begin + MIN_INTERVAL));
    }

    #[test]
    fn nothing_is_sent_without_a_request() {
        assert_eq!(KeyFrameRequests::default().poll(Instant::now()), None);
    }
}
