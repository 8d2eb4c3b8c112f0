//! Step 1: each stream's pseudo-optimal setting, as if all others were like it (ARISE §4.4.1).
//!
//! `max (batch ÷ seconds(batch)) ÷ (1 ÷ (interval × frame))` such that the mean loss of its frames, at staleness
//! `e2e … e2e + interval − 1`, is at most the promise beyond the reference. The loss grows with the interval, so that
//! the longest interval for each batch size is found by bisection.
//!
//! The paper's constraint has no room for frames that do not fall on the start of a batch; here half a frame is kept
//! for them ([`COORDINATION`]).

use super::Client;

/// Frames of staleness that packing costs in the mean: a picture waits half a frame for its batch.
pub const COORDINATION: f64 = 0.5;
/// Maximum frames between two anchors, so that any loss heals within this time.
pub const MAX_APART: u32 = 300;

/// How often a stream gets an anchor, and in batches of which size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Frames from one anchor to the next.
    pub interval: u32,
    /// Maximum pictures of its batches.
    pub batch: usize,
}

/// The setting with which an accelerator serves the most streams like this one.
pub fn setting(client: &Client) -> Setting {
    let min = (1.0 / client.fraction.clamp(1e-3, 1.0)).ceil().clamp(1.0, f64::from(MAX_APART));
    let mut best = (Setting { interval: min as u32, batch: 1 }, 0.0);
    for batch in 1..=client.cost.max.max(1) {
        let keeps =
            |interval| client.part(client.lacks(Setting { interval, batch }, COORDINATION)) <= 1.0;
        let Some(interval) = longest(min as u32, keeps) else { continue };
        let streams = batch as f64 / client.cost.time(batch).as_secs_f64() * f64::from(interval);
        // A larger batch must be worth its latency.
        if streams > best.1 * (1.0 + 1e-9) {
            best = (Setting { interval, batch }, streams);
        }
    }
    best.0
}

/// The longest interval that keeps the promise, searched from `min` on.
fn longest(min: u32, keeps: impl Fn(u32) -> bool) -> Option<u32> {
    if !keeps(min) {
        return None;
    }
    let (mut low, mut high) = (min, MAX_APART.max(min));
    while low < high {
        let middle = u32::midpoint(low, high) + (high - low) % 2;
        if keeps(middle) { low = middle } else { high = middle - 1 }
    }
    Some(low)
}

/// The share of an accelerator's time that a stream takes at its setting.
pub fn share(client: &Client, setting: Setting) -> f64 {
    let by_anchor = client.frames(client.cost.time(setting.batch)) / setting.batch as f64;
    by_anchor / f64::from(setting.interval)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::time::Duration;

    use super::super::{BatchCost, MS, any_time};
    use super::*;

    const US: Duration = Duration::from_micros(1);

    fn client(decay: f64, promise: f64) -> Client {
        Client { promise, ..super::super::client(1, decay) }
    }

    #[test]
    fn what_decays_faster_is_served_more_often() {
        let calm = setting(&client(0.002, 0.02));
        let lively = setting(&client(0.01, 0.02));
        assert!(
            calm.interval > 2 * lively.interval && calm.batch >= lively.batch,
            "{calm:?} {lively:?}"
        );
    }

    #[test]
    fn interval_and_batch_trade_latency_for_frequency() {
        // With nothing gained by batches, a batch of one leaves the longest interval.
        let mut alone = client(0.005, 0.04);
        alone.cost = BatchCost { fixed: Duration::ZERO, each: 12 * MS, max: 8 };
        assert_eq!(setting(&alone).batch, 1);
        assert!(setting(&client(0.005, 0.04)).batch > 1);
    }

    #[test]
    fn what_does_not_decay_is_served_now_and_then_all_the_same() {
        assert_eq!(setting(&client(0.0, 0.02)).interval, MAX_APART);
    }

    #[test]
    fn a_promise_of_nothing_takes_as_much_as_a_stream_may() {
        assert_eq!(setting(&client(0.01, 0.0)), Setting { interval: 1, batch: 1 });
        let limited = Client { fraction: 0.1, ..client(0.01, 0.0) };
        assert_eq!(setting(&limited).interval, 10);
    }

    proptest! {
        #[test]
        fn a_setting_keeps_its_promise_where_nothing_queues(
            decay in 1e-4f64..0.1, promise in 0.0f64..0.2, fixed in 0u32..20_000, each in 100u32..20_000, max in 1usize..16,
        ) {
            let client = Client {
                cost: BatchCost { fixed: US * fixed, each: US * each, max },
                ..client(decay, promise)
            };
            let setting = setting(&client);
            let lacks = client.lacks(setting, 0.0);
            prop_assert!(setting.interval == 1 || lacks <= promise + 0.02 * decay, "{setting:?} lacks {lacks}");
            prop_assert!((1..=MAX_APART).contains(&setting.interval) && (1..=max).contains(&setting.batch));
        }

        #[test]
        fn more_promised_or_less_decay_never_takes_a_larger_share(
            decay in 1e-4f64..0.1, promise in 0.0f64..0.2, more in 1.0f64..3.0,
        ) {
            let share = |client: &Client| share(client, setting(client));
            let base = share(&client(decay, promise));
            prop_assert!(share(&client(decay, promise * more)) <= base * (1.0 + 1e-9));
            prop_assert!(share(&client(decay / more, promise)) <= base * (1.0 + 1e-9));
        }

        #[test]
        fn absurd_measurements_give_a_setting(
            decay in proptest::num::f64::ANY, promise in proptest::num::f64::ANY,
            fixed in any_time(), each in any_time(),
        ) {
            let client = Client { cost: BatchCost { fixed, each, max: 4 }, ..client(decay, promise) };
            let setting = setting(&client);
            prop_assert!((1..=MAX_APART).contains(&setting.interval) && (1..=4).contains(&setting.batch));
            prop_assert!(!share(&client, setting).is_nan());
        }
    }
}
