//! By which network each stream's anchors are made: the best that the machine can sustain inside the budget.
//!
//! Source: issue 6, *Choosing a model*; seed 000 §5.2 counts one network's cost, here there are several. A stream may have a
//! network whose inference leaves most of the deadline to everything else; all together may take a share of the devices'
//! time. Networks are raised level by level, so that no stream has the best before all have the second best, as each level
//! gives less for more. To rise needs more room than to stay; a network that is not used for its cost is believed
//! a little cheaper each time, so that it is tried again.

use std::collections::BTreeSet;
use std::time::Duration;

use super::CostModel;

/// Most of the deadline that one inference may take, unless the cheapest takes more.
const LATENCY_SHARE: f64 = 0.4;
/// Shares of the devices' time up to which streams are given a better network, and may keep it.
const TO_RISE: f64 = 0.5;
const TO_STAY: f64 = 0.7;

/// What a stream asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand {
    /// Width and height of its pictures.
    pub size: (u32, u32),
    /// Anchors per second.
    pub rate: f64,
    /// The network that it has now.
    pub network: usize,
}

/// The network of each stream, in the order of `demands`. `costs`: of each network, the cheapest first. `capacity`: seconds of
/// inference that a second offers.
pub(super) fn assign(
    costs: &mut [CostModel],
    demands: &[Demand],
    capacity: f64,
    deadline: Duration,
) -> Vec<usize> {
    let seconds = |costs: &CostModel, demand: &Demand| {
        costs.predict(demand.size.0, demand.size.1).as_secs_f64()
    };
    let mut networks = vec![0; demands.len()];
    let first = costs.first();
    let mut taken: f64 =
        demands.iter().filter_map(|d| first.map(|costs| d.rate * seconds(costs, d))).sum();
    for level in 1..costs.len() {
        let (below, from) = costs.split_at_mut(level);
        let (Some(below), Some(costs)) = (below.last(), from.first_mut()) else { break };
        // Those that have it already come first: who has it keeps it.
        let mut order: Vec<usize> =
            (0..demands.len()).filter(|&i| networks[i] + 1 == level).collect();
        order.sort_by_key(|&i| demands[i].network < level);
        let mut refused = BTreeSet::new();
        for i in order {
            let demand = &demands[i];
            let cost = seconds(costs, demand);
            let more = demand.rate * (cost - seconds(below, demand)).max(0.0);
            let share = if demand.network >= level { TO_STAY } else { TO_RISE };
            let in_time = cost <= deadline.as_secs_f64() * LATENCY_SHARE;
            if in_time && taken + more <= capacity * share {
                taken += more;
                networks[i] = level;
            } else {
                refused.insert(demand.size);
            }
        }
        // Once for each size, however many streams have it.
        for (width, height) in refused {
            costs.doubt(width, height);
        }
    }
    networks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DEADLINE: Duration = Duration::from_millis(140);
    /// 320×180 takes 5.8 ms by the cheapest, 23 and 115 ms by the others.
    const NANOS: [u64; 3] = [100, 400, 2000];

    fn costs() -> Vec<CostModel> {
        NANOS.iter().map(|&n| CostModel::new(Duration::from_nanos(n))).collect()
    }

    fn demand(width: u32, rate: f64, network: usize) -> Demand {
        Demand { size: (width, width * 9 / 16), rate, network }
    }

    fn assigned(demands: &[Demand], capacity: f64) -> Vec<usize> {
        assign(&mut costs(), demands, capacity, DEADLINE)
    }

    #[test]
    fn a_stream_alone_has_the_best_that_is_in_time() {
        assert_eq!(assigned(&[demand(320, 1.0, 0)], 1.0), [1]);
        assert_eq!(assigned(&[demand(160, 1.0, 0)], 1.0), [2], "29 ms");
        assert_eq!(assigned(&[demand(1280, 1.0, 0)], 1.0), [0], "even if that is late");
    }

    #[test]
    fn with_more_streams_than_that_serves_some_have_the_next() {
        let many = vec![demand(320, 1.0, 0); 40];
        let networks = assigned(&many, 1.0);
        // 0.23 s by the cheapest, 17 ms more for each that is raised: 15 within half a second.
        assert_eq!(networks.iter().filter(|&&n| n == 1).count(), 15);
        assert_eq!(networks.iter().filter(|&&n| n == 2).count(), 0);
        assert_eq!(assigned(&many, 0.1), vec![0; 40], "nothing to spare");
    }

    #[test]
    fn nobody_has_the_best_before_all_have_the_second_best() {
        let networks = assigned(&vec![demand(160, 1.0, 0); 30], 0.6);
        assert!(
            networks.iter().all(|&n| n >= 1) || networks.iter().all(|&n| n <= 1),
            "{networks:?}"
        );
    }

    #[test]
    fn who_has_it_keeps_it_in_a_narrower_place() {
        let has = [demand(160, 8.0, 2), demand(160, 8.0, 0)];
        let networks = assigned(&has, 0.45);
        assert_eq!(networks[0], 2);
        assert_eq!(assigned(&[demand(160, 8.0, 0)], 0.35), [1], "nobody is raised into it");
    }

    #[test]
    fn what_is_too_dear_is_tried_again_some_day() {
        let mut costs = costs();
        for _ in 0..60 {
            costs[1].observe(320, 180, Duration::from_millis(90));
        }
        let demands = [demand(320, 1.0, 0)];
        let mut seconds = 0;
        while assign(&mut costs, &demands, 1.0, DEADLINE) != [1] {
            seconds += 1;
            assert!(seconds < 60, "it is never tried again");
        }
        assert!(seconds > 3, "not at once");
    }

    proptest! {
        #[test]
        fn what_is_assigned_exists_and_fits(
            streams in proptest::collection::vec((1u32..2000, 0.0f64..30.0, 0usize..4), 0..40), capacity in 0.0f64..8.0,
        ) {
            let demands: Vec<Demand> = streams.iter().map(|&(w, rate, n)| demand(w, rate, n)).collect();
            let (known, networks) = (costs(), assigned(&demands, capacity));
            prop_assert_eq!(networks.len(), demands.len());
            let cost = |d: &Demand, n: usize| d.rate * known[n].predict(d.size.0, d.size.1).as_secs_f64();
            let least: f64 = demands.iter().map(|d| cost(d, 0)).sum();
            let taken: f64 = demands.iter().zip(&networks).map(|(d, &n)| cost(d, n)).sum();
            prop_assert!(taken <= least.max(capacity * TO_STAY) + 1e-9);
        }
    }
}
