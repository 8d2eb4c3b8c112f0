//! Which layers a publisher is told to pause because nobody takes them.
//!
//! A layer is paused after it has not been needed for some seconds, and asked for again at once. Until it has come it counts as one that can be
//! had, with the rate that it had before.

use std::time::{Duration, Instant};

use windlass_types::Layer;

/// Not needed for as long, a layer is paused.
const UNUSED: Duration = Duration::from_secs(6);
/// One that was asked for again comes within this time, or its publisher cannot send it.
const COMES: Duration = Duration::from_secs(3);

/// A smallest layer that takes no more has been held to the least by its publisher, for want of bits.
const STARVED_BPS: u64 = 60_000;
/// A layer that takes no more is as good to begin with.
const EASY_BPS: u64 = 300_000;

/// The layer with which newcomers begin: the smallest that is sent, or, where that is starved, one that is taken anyway and easy to have:
/// on a narrow uplink the bits of the smallest are better spent on that.
pub fn first(needed: [bool; 3], sent: [Option<u64>; 3]) -> Option<Layer> {
    let mut layers = Layer::ALL.into_iter().filter_map(|l| Some((l, sent[l as usize]?)));
    let (smallest, bps) = layers.next()?;
    let easy = |&(layer, bps): &(Layer, u64)| needed[layer as usize] && bps <= EASY_BPS;
    let other = layers.find(easy).filter(|_| bps <= STARVED_BPS && !needed[smallest as usize]);
    Some(other.map_or(smallest, |(layer, _)| layer))
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    paused: bool,
    unused_since: Option<Instant>,
    asked: Option<Instant>,
    /// Its rate when it was last seen, in bits per second.
    rate_bps: Option<u64>,
}

/// The layers of one track.
#[derive(Debug, Default)]
pub struct Dynacast([State; 3]);

impl Dynacast {
    /// The rates to allocate by: those measured, and of layers that are paused, or are just coming again, what they had.
    pub fn rates(&self, now: Instant, measured: [Option<u64>; 3]) -> [Option<u64>; 3] {
        Layer::ALL.map(|layer| {
            let state = &self.0[layer as usize];
            let coming =
                state.asked.is_some_and(|asked| now.saturating_duration_since(asked) < COMES);
            let remembered = state.rate_bps.filter(|_| state.paused || coming);
            measured[layer as usize].or(remembered)
        })
    }

    /// Says what is needed now and what is being sent; the layers whose publisher is to be told, with whether they are to be sent.
    pub fn update(
        &mut self,
        now: Instant,
        needed: [bool; 3],
        measured: [Option<u64>; 3],
    ) -> Vec<(Layer, bool)> {
        let mut tell = Vec::new();
        for layer in Layer::ALL {
            let state = &mut self.0[layer as usize];
            if needed[layer as usize] {
                state.unused_since = None;
                if std::mem::take(&mut state.paused) {
                    state.asked = Some(now);
                    tell.push((layer, true));
                }
                continue;
            }
            if let Some(rate) = measured[layer as usize].filter(|_| !state.paused) {
                state.rate_bps = Some(rate);
                let since = *state.unused_since.get_or_insert(now);
                if now.saturating_duration_since(since) >= UNUSED {
                    state.paused = true;
                    tell.push((layer, false));
                }
            }
        }
        tell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: [Option<u64>; 3] = [Some(150), Some(500), Some(1500)];
    const Q_ONLY: [bool; 3] = [true, false, false];

    fn paused() -> (Dynacast, Instant) {
        let (mut dynacast, now) = (Dynacast::default(), Instant::now());
        assert_eq!(dynacast.update(now, Q_ONLY, SENT), []);
        let later = now + UNUSED;
        let told = dynacast.update(later, Q_ONLY, SENT);
        assert_eq!(told, [(Layer::H, false), (Layer::F, false)]);
        (dynacast, later)
    }

    #[test]
    fn newcomers_begin_with_the_smallest_or_where_that_is_starved_with_one_that_is_taken_anyway() {
        let weak = [Some(30_000), Some(150_000), None];
        let strong = [Some(150_000), Some(500_000), Some(1_500_000)];
        let h = [false, true, false];
        assert_eq!(first(h, weak), Some(Layer::H));
        assert_eq!(first(h, strong), Some(Layer::Q));
        assert_eq!(first(h, [Some(30_000), Some(500_000), None]), Some(Layer::Q));
        assert_eq!(first(h, [None, Some(150_000), None]), Some(Layer::H));
        assert_eq!(first([true, true, false], weak), Some(Layer::Q));
        assert_eq!(first([false; 3], weak), Some(Layer::Q));
        assert_eq!(first([false; 3], [None; 3]), None);
    }

    #[test]
    fn what_nobody_takes_is_paused_after_a_while() {
        let (mut dynacast, now) = paused();
        assert_eq!(dynacast.update(now + UNUSED, Q_ONLY, [Some(150), None, None]), []);
    }

    #[test]
    fn what_is_paused_can_still_be_had() {
        let (mut dynacast, now) = paused();
        let none = [Some(150), None, None];
        assert_eq!(dynacast.rates(now + UNUSED, none), SENT);
        assert_eq!(dynacast.update(now, [true, true, false], none), [(Layer::H, true)]);
        assert_eq!(dynacast.rates(now, none), SENT);
        // It did not come.
        assert_eq!(dynacast.rates(now + COMES, none), [Some(150), None, Some(1500)]);
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
        let sent = [Some(150), None, None];
        for second in 0..30 {
            let now = now + Duration::from_secs(second);
            assert_eq!(dynacast.update(now, Q_ONLY, sent), []);
        }
        assert_eq!(dynacast.rates(now, sent), sent);
    }
}
