//! What the scheduler allocates: nothing once its streams are known, assignments of networks included.

#[path = "../../../hybrid/vp9/tests/common/counting.rs"]
mod counting;

use std::time::Duration;

use counting::{allocations, peak};
use windlass_scheduler::{Candidate, Chosen, NetworkCost, Scheduler, SchedulerConfig, Tier};
use windlass_types::{Size, StreamId};

const STREAMS: u32 = 40;
const INTERVAL: Duration = Duration::from_millis(66);

/// Two frames of each stream, and the tick after them.
fn interval(scheduler: &mut Scheduler, tick: u32, chosen: &mut Vec<Chosen>) {
    let now = INTERVAL * tick;
    for n in 0..2 * STREAMS {
        let stream = StreamId(n % STREAMS);
        // A few sizes, some of them too dear for the better networks.
        let width = 160 << (stream.0 % 3);
        scheduler.push(Candidate {
            id: u64::from(tick) << 32 | u64::from(n),
            stream,
            tier: if (tick + n).is_multiple_of(50) { Tier::Golden } else { Tier::Normal },
            bytes: 300 + 97 * (n % 7),
            size: Size::new(width, width * 9 / 16),
            arrival: now.saturating_sub(INTERVAL / 2),
            per_mille: 1000,
            scale: scheduler.scale(stream).unwrap_or(2),
            max_scale: 4,
        });
    }
    chosen.clear();
    scheduler.tick(now, chosen);
    for job in chosen.iter() {
        scheduler.finished(job, Some(job.cost));
    }
}

#[test]
fn nothing_is_allocated_once_the_streams_are_known() {
    let network = |scale, nanos| NetworkCost { scale, per_pixel: Duration::from_nanos(nanos) };
    let networks = vec![network(2, 100), network(2, 400), network(4, 150), network(4, 900)];
    let mut scheduler = Scheduler::new(SchedulerConfig { networks, ..SchedulerConfig::default() });
    let mut chosen = Vec::with_capacity(2 * STREAMS as usize);
    let warming = peak(|| (1..60).for_each(|n| interval(&mut scheduler, n, &mut chosen)));
    let max = 4096 * i64::from(STREAMS);
    assert!((1..max).contains(&warming), "{warming} bytes for {STREAMS} streams");
    let mut made = 0;
    for tick in 60..400 {
        let calls = allocations(|| interval(&mut scheduler, tick, &mut chosen));
        assert_eq!(calls, 0, "at tick {tick}");
        made += chosen.len();
    }
    assert!(made > 100, "{made} anchors");
    assert!(
        scheduler.assigned().iter().filter(|&&n| n > 0).count() > 1,
        "{:?}",
        scheduler.assigned()
    );
}
