//! Dynacast: publishers pause simulcast layers that no subscriber needs.
//!
//! A layer is paused after it was not needed for [`UNUSED_TIMEOUT`], and resumed at once. Until its packets come, the
//! allocator counts it with its last bitrate.

use std::time::{Duration, Instant};

use windlass_types::{Bitrate, Layer};

/// Time for which a layer must be unused before it is paused.
const UNUSED_TIMEOUT: Duration = Duration::from_secs(6);
/// Time within which packets of a resumed layer must come. If they do not, the publisher cannot send the layer.
const RESUME_TIMEOUT: Duration = Duration::from_secs(3);
/// Bitrate at or below which the smallest layer is starved: its publisher lacks bandwidth, and it hardly moves.
pub(crate) const STARVED: Bitrate = Bitrate::bps(60_000);
/// Largest bitrate of another layer with which newcomers may begin.
const MAX_FIRST: Bitrate = Bitrate::bps(300_000);

/// The layer with which newcomers begin: the smallest one sent. If that is starved and unused, a larger layer that is
/// in use and small enough: on a narrow uplink its bits are better spent.
pub(crate) fn first_layer(needed: [bool; 3], sent: [Option<Bitrate>; 3]) -> Option<Layer> {
    let mut layers = Layer::ALL.into_iter().filter_map(|l| Some((l, sent[l as usize]?)));
    let (smallest, rate) = layers.next()?;
    let small = |&(layer, rate): &(Layer, Bitrate)| needed[layer as usize] && rate <= MAX_FIRST;
    let other = layers.find(small).filter(|_| rate <= STARVED && !needed[smallest as usize]);
    Some(other.map_or(smallest, |(layer, _)| layer))
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    paused: bool,
    unused_since: Option<Instant>,
    resumed_at: Option<Instant>,
    /// Last measured bitrate of the layer.
    last: Option<Bitrate>,
}

/// The layers of one track.
#[derive(Debug, Default)]
pub(crate) struct Dynacast([State; 3]);

impl Dynacast {
    /// Bitrates of the layers for the allocator: measured ones, and the last ones of layers that are paused or being
    /// resumed.
    pub(crate) fn rates(
        &self,
        now: Instant,
        measured: [Option<Bitrate>; 3],
    ) -> [Option<Bitrate>; 3] {
        Layer::ALL.map(|layer| {
            let state = &self.0[layer as usize];
            let resuming = state
                .resumed_at
                .is_some_and(|at| now.saturating_duration_since(at) < RESUME_TIMEOUT);
            let last = state.last.filter(|_| state.paused || resuming);
            measured[layer as usize].or(last)
        })
    }

    /// Whether the publisher was asked to pause a layer.
    pub(crate) fn is_paused(&self, layer: Layer) -> bool {
        self.0[layer as usize].paused
    }

    /// Takes which layers are needed, and the bitrates of those sent. Returns the layers to pause (`false`) and to
    /// resume.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        needed: [bool; 3],
        measured: [Option<Bitrate>; 3],
    ) -> Vec<(Layer, bool)> {
        let mut changes = Vec::new();
        for layer in Layer::ALL {
            let state = &mut self.0[layer as usize];
            if needed[layer as usize] {
                state.unused_since = None;
                if std::mem::take(&mut state.paused) {
                    state.resumed_at = Some(now);
                    changes.push((layer, true));
                }
                continue;
            }
            if let Some(rate) = measured[layer as usize].filter(|_| !state.paused) {
                state.last = Some(rate);
                let since = *state.unused_since.get_or_insert(now);
                if now.saturating_duration_since(since) >= UNUSED_TIMEOUT {
                    state.paused = true;
                    changes.push((layer, false));
                }
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bitrate in bit/s.
    const fn rate(bps: u64) -> Bitrate {
        Bitrate::bps(bps)
    }

    const SENT: [Option<Bitrate>; 3] = [Some(rate(150)), Some(rate(500)), Some(rate(1500))];
    const Q_ONLY: [bool; 3] = [true, false, false];

    fn paused() -> (Dynacast, Instant) {
        let (mut dynacast, now) = (Dynacast::default(), Instant::now());
        assert_eq!(dynacast.update(now, Q_ONLY, SENT), []);
        let later = now + UNUSED_TIMEOUT;
        let changes = dynacast.update(later, Q_ONLY, SENT);
        assert_eq!(changes, [(Layer::H, false), (Layer::F, false)]);
        (dynacast, later)
    }

    #[test]
    fn newcomers_begin_with_the_smallest_layer_or_if_it_is_starved_with_one_in_use() {
        let weak = [Some(rate(30_000)), Some(rate(150_000)), None];
        let strong = [Some(rate(150_000)), Some(rate(500_000)), Some(rate(1_500_000))];
        let h = [false, true, false];
        assert_eq!(first_layer(h, weak), Some(Layer::H));
        assert_eq!(first_layer(h, strong), Some(Layer::Q));
        assert_eq!(first_layer(h, [Some(rate(30_000)), Some(rate(500_000)), None]), Some(Layer::Q));
        assert_eq!(first_layer(h, [None, Some(rate(150_000)), None]), Some(Layer::H));
        assert_eq!(first_layer([true, true, false], weak), Some(Layer::Q));
        assert_eq!(first_layer([false; 3], weak), Some(Layer::Q));
        assert_eq!(first_layer([false; 3], [None; 3]), None);
    }

    #[test]
    fn what_nobody_takes_is_paused_after_a_while() {
        let (mut dynacast, now) = paused();
        assert_eq!(
            dynacast.update(now + UNUSED_TIMEOUT, Q_ONLY, [Some(rate(150)), None, None]),
            []
        );
    }

    #[test]
    fn what_is_paused_can_still_be_had() {
        let (mut dynacast, now) = paused();
        let none = [Some(rate(150)), None, None];
        assert_eq!(dynacast.rates(now + UNUSED_TIMEOUT, none), SENT);
        assert_eq!(dynacast.update(now, [true, true, false], none), [(Layer::H, true)]);
        assert_eq!(dynacast.rates(now, none), SENT);
        // It did not come.
        assert_eq!(
            dynacast.rates(now + RESUME_TIMEOUT, none),
            [Some(rate(150)), None, Some(rate(1500))]
        );
    }

    #[test]
    fn what_is_taken_now_and_then_goes_on() {
        let (mut dynacast, now) = (Dynacast::default(), Instant::now());
        for second in 0..30 {
            let needed = [true, second % 5 == 0, true];
            let now = now + Duration::from_secs(second);
            assert_eq!(dynacast.update(now, needed, SENT), []);
        }
    }

    #[test]
    fn a_layer_that_its_publisher_does_not_send_is_not_paused() {
        let (mut dynacast, now) = (Dynacast::default(), Instant::now());
        let sent = [Some(rate(150)), None, None];
        for second in 0..30 {
            let now = now + Duration::from_secs(second);
            assert_eq!(dynacast.update(now, Q_ONLY, sent), []);
        }
        assert_eq!(dynacast.rates(now, sent), sent);
    }
}
