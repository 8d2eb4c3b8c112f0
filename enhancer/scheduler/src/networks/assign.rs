//! Chooses the network of each stream's anchors, and so the scale of its pictures: the best that the machine can
//! sustain.
//!
//! Source: NeuroScaler §5.2 counts one network's cost; here there are several. The inference of a stream's network must
//! leave most of the deadline to the other stages, and all streams together may take a share of the devices' time.
//! Where the publisher gives pictures of its own, the scale is the largest that is watched, and no network runs that
//! cannot be sustained.
//!
//! Scales come first. A network of the camera's scale gains more than a better network of a smaller scale, whose
//! pictures browsers enlarge (`lab/notes/networks.md`). Then networks of each scale are raised level by level, because
//! each level costs more and gains less: no stream has the best before all have the second best. Raising a stream needs
//! more free capacity than keeping it. If a network is not used because of its cost, its cost estimate decays a little
//! each time, so that the network is tried again.

use std::time::Duration;

use windlass_types::Size;

use super::stream::Assigned;
use crate::cost::CostModel;

/// Limits on what inference may take.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Maximum time of inferring one picture, as a share of the deadline.
    latency: f64,
    /// Maximum time of inferring all streams' anchors, as a share of the devices' time.
    time: f64,
}
/// Bounds up to which streams are given a better network.
const TO_RISE: Bounds = Bounds { latency: 0.3, time: 0.5 };
/// Bounds up to which streams may keep the network that they have.
const TO_STAY: Bounds = Bounds { latency: 0.4, time: 0.7 };

/// A network that anchors can be made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkCost {
    /// Width of its pictures over that of the low layer's.
    pub scale: usize,
    /// Inference and encoding time for each LR pixel, as expected before anything was measured.
    pub per_pixel: Duration,
}

/// A stream's request for a network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    /// Size of the stream's LR picture.
    pub size: Size,
    /// Anchors per second.
    pub rate: f64,
    /// Index of the network that the stream has now.
    pub network: usize,
    /// Maximum scale of the stream's pictures. The smallest scale is always allowed.
    pub max_scale: usize,
    /// Whether the scale may grow: not soon after the last change.
    pub may_grow: bool,
    /// Whether the publisher gives pictures of its own, which are of use at any scale.
    pub captured: bool,
    /// Whether the stream makes only probes. Its anchors then count in no sum for autoscaling.
    pub held_back: bool,
}

impl Demand {
    /// Whether the demand's present network is of the given scale or a larger one.
    fn has_scale(&self, scale: usize, scales: &[usize]) -> bool {
        scales.get(self.network).is_some_and(|&has| has >= scale)
    }

    /// Whether the pictures may have the given scale: viewers watch it that large, it has not too many pixels, and the
    /// last change was not recent.
    fn may_have(&self, scale: usize, scales: &[usize], room: &Room) -> bool {
        let area = u64::from(self.size.pixels());
        scale <= self.max_scale
            && area.saturating_mul((scale * scale) as u64) <= room.max_pixels
            && (self.may_grow || self.has_scale(scale, scales))
    }
}

/// The resources that all streams share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Seconds of inference that a second offers, over all devices.
    pub capacity: f64,
    /// Maximum time from a frame's arrival to its anchor encoded.
    pub deadline: Duration,
    /// Maximum pixels of an HR picture. The smallest scale is allowed beyond it.
    pub max_pixels: u64,
}

/// Assigns networks to streams, and keeps its working memory from call to call.
#[derive(Debug, Default)]
pub(crate) struct Assigner {
    /// Demands of all streams; the caller fills them in first.
    pub demands: Vec<Demand>,
    /// The network of each stream, in the order of the demands.
    pub assigned: Vec<Assigned>,
    some: Vec<usize>,
    refused: Vec<Size>,
}

impl Assigner {
    /// Gives every demand its network. `scales` and `costs` are those of each network, sorted by scale, then the
    /// cheapest first.
    pub(super) fn assign(&mut self, scales: &[usize], costs: &mut [CostModel], room: &Room) {
        self.assigned.clear();
        let Some(first) = costs.first() else { return };
        self.assigned.resize(self.demands.len(), Assigned::default());
        let taken = self.demands.iter().map(|demand| demand.rate * seconds(first, demand)).sum();
        let mut plan = Plan { costs, room, taken };
        let first_of_scale = |n: usize| scales[n] != scales[n - 1];
        for network in (1..scales.len()).filter(|&n| first_of_scale(n)) {
            let scale = scales[network];
            let fits = |&i: &usize| self.demands[i].may_have(scale, scales, room);
            self.some.clear();
            self.some.extend((0..self.demands.len()).filter(fits));
            self.raise(&mut plan, network, |demand| demand.has_scale(scale, scales));
        }
        let tier = |n: usize| scales[..n].iter().rev().take_while(|&&s| s == scales[n]).count();
        for level in 1..scales.len() {
            for network in (1..scales.len()).filter(|&n| tier(n) == level) {
                self.some.clear();
                let below = |i: &usize| self.assigned[*i].network + 1 == network;
                self.some.extend((0..self.demands.len()).filter(below));
                let has = |demand: &Demand| {
                    scales.get(demand.network) == Some(&scales[network])
                        && demand.network >= network
                };
                self.raise(&mut plan, network, has);
            }
        }
        self.enlarge_captured(scales, room);
    }

    /// Gives streams with captured pictures their maximum scale, whether or not its networks can be sustained.
    fn enlarge_captured(&mut self, scales: &[usize], room: &Room) {
        for (i, demand) in self.demands.iter().enumerate().filter(|(_, d)| d.captured) {
            let fits = |&scale: &usize| demand.may_have(scale, scales, room);
            let scale = scales.iter().copied().filter(fits).max().unwrap_or(0);
            if scale > scales[self.assigned[i].network]
                && let Some(first) = scales.iter().position(|&s| s == scale)
            {
                self.assigned[i] = Assigned { network: first, too_dear: true };
            }
        }
    }

    /// Gives a more expensive network to the matching demands while there is capacity. Streams that already have it
    /// come first and keep it.
    fn raise(&mut self, plan: &mut Plan<'_>, network: usize, has: impl Fn(&Demand) -> bool) {
        self.some.sort_unstable_by_key(|&i| (!has(&self.demands[i]), i));
        self.refused.clear();
        for &i in &self.some {
            let demand = &self.demands[i];
            let cost = seconds(&plan.costs[network], demand);
            let before = seconds(&plan.costs[self.assigned[i].network], demand);
            let more = demand.rate * (cost - before).max(0.0);
            let bounds = if has(demand) { TO_STAY } else { TO_RISE };
            if cost > plan.room.deadline.as_secs_f64() * bounds.latency {
                self.refused.push(demand.size);
            } else if plan.taken + more <= plan.room.capacity * bounds.time {
                plan.taken += more;
                self.assigned[i].network = network;
            }
        }
        // Only its cost keeps it from being tried, and not what others take. Once for each size, however many streams
        // have it.
        self.refused.sort_unstable_by_key(|size| (size.width, size.height));
        self.refused.dedup();
        for &size in &self.refused {
            plan.costs[network].doubt(size);
        }
    }
}

/// An assignment in the making.
struct Plan<'a> {
    costs: &'a mut [CostModel],
    room: &'a Room,
    /// Seconds of inference per second that the assignment takes so far.
    taken: f64,
}

fn seconds(costs: &CostModel, demand: &Demand) -> f64 {
    costs.predict(demand.size).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DEADLINE: Duration = Duration::from_millis(140);
    /// 320×180 takes 5.8 ms by the cheapest, 23 and 115 ms by the others.
    const NANOS: [u64; 3] = [100, 400, 2000];
    const BY_TWO: [usize; 3] = [2; 3];
    /// The last two are of four: 11.5 and 29 ms.
    const BY_TWO_AND_FOUR: [usize; 4] = [2, 2, 4, 4];
    const MORE_NANOS: [u64; 4] = [100, 400, 200, 500];

    fn models(nanos: &[u64]) -> Vec<CostModel> {
        nanos.iter().map(|&n| CostModel::new(Duration::from_nanos(n))).collect()
    }

    fn demand(width: u16, rate: f64, network: usize) -> Demand {
        let size = Size::new(width, (u32::from(width) * 9 / 16) as u16);
        Demand {
            size,
            rate,
            network,
            max_scale: 4,
            may_grow: true,
            captured: false,
            held_back: false,
        }
    }

    fn room(capacity: f64) -> Room {
        Room { capacity, deadline: DEADLINE, max_pixels: 1280 * 720 }
    }

    fn assign(
        scales: &[usize],
        costs: &mut [CostModel],
        demands: &[Demand],
        room: &Room,
    ) -> Vec<usize> {
        let mut assigner = Assigner { demands: demands.to_vec(), ..Assigner::default() };
        assigner.assign(scales, costs, room);
        assigner.assigned.iter().map(|assigned| assigned.network).collect()
    }

    fn assigned(demands: &[Demand], capacity: f64) -> Vec<usize> {
        assign(&BY_TWO, &mut models(&NANOS), demands, &room(capacity))
    }

    /// With networks of two scales.
    fn enlarged(demands: &[Demand], capacity: f64) -> Vec<usize> {
        assign(&BY_TWO_AND_FOUR, &mut models(&MORE_NANOS), demands, &room(capacity))
    }

    #[test]
    fn a_stream_alone_has_the_largest_scale_and_its_best_network() {
        assert_eq!(enlarged(&[demand(320, 1.0, 0)], 1.0), [3]);
    }

    #[test]
    fn pictures_are_not_enlarged_beyond_the_camera_or_what_browsers_manage() {
        let camera = Demand { max_scale: 2, ..demand(320, 1.0, 0) };
        let large = demand(640, 1.0, 0);
        assert_eq!(enlarged(&[camera, large], 1.0), [1, 0], "92 ms are too late for the last");
    }

    #[test]
    fn all_are_enlarged_before_any_has_a_better_network() {
        // Each takes 5.8 ms, 5.8 more by four, 17 more by the better network of four.
        let networks = enlarged(&vec![demand(320, 1.0, 0); 40], 1.0);
        assert_eq!(networks.iter().filter(|&&n| n >= 2).count(), 40);
        let networks = enlarged(&vec![demand(320, 1.0, 0); 60], 1.0);
        let by_four = networks.iter().filter(|&&n| n == 2).count();
        assert!((20..40).contains(&by_four), "{by_four} of 60");
        assert_eq!(networks.iter().filter(|&&n| n == 1 || n == 3).count(), 0);
    }

    #[test]
    fn what_the_machine_cannot_sustain_shrinks_and_grows_again_only_after_a_while() {
        assert_eq!(enlarged(&[demand(320, 30.0, 2)], 0.2), [0], "345 ms of 200 in a second");
        let soon = Demand { may_grow: false, ..demand(320, 1.0, 0) };
        assert_eq!(enlarged(&[soon], 1.0), [1]);
        let has_it = Demand { network: 2, ..soon };
        assert_eq!(enlarged(&[has_it], 1.0), [3], "what it has it keeps");
    }

    #[test]
    fn pictures_of_its_own_make_a_stream_as_large_as_it_is_watched_whatever_networks_cost() {
        let given = Demand { captured: true, ..demand(320, 30.0, 0) };
        let shown = |demand: Demand, capacity: f64| {
            let mut assigner = Assigner { demands: vec![demand], ..Assigner::default() };
            let costs = &mut models(&MORE_NANOS);
            assigner.assign(&BY_TWO_AND_FOUR, costs, &room(capacity));
            (assigner.assigned[0].network, assigner.assigned[0].too_dear)
        };
        assert_eq!(shown(given, 0.2), (2, true), "345 ms of 200 in a second");
        assert_eq!(shown(given, 8.0), (3, false), "it can be sustained");
        assert_eq!(shown(Demand { max_scale: 2, ..given }, 0.5), (0, false));
        assert_eq!(shown(Demand { may_grow: false, ..given }, 0.2), (0, false));
        let kept = Demand { may_grow: false, network: 2, ..given };
        assert_eq!(shown(kept, 0.2), (2, true), "what it has it keeps");
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
    fn a_stream_keeps_its_network_with_less_room_than_it_takes_to_get_it() {
        let has = [demand(160, 8.0, 2), demand(160, 8.0, 0)];
        let networks = assigned(&has, 0.45);
        assert_eq!(networks[0], 2);
        assert_eq!(assigned(&[demand(160, 8.0, 0)], 0.35), [1], "nobody is raised into it");
    }

    #[test]
    fn what_is_too_dear_is_tried_again_some_day() {
        let mut costs = models(&NANOS);
        for _ in 0..60 {
            costs[1].observe(Size::new(320, 180), Duration::from_millis(90));
        }
        let demands = [demand(320, 1.0, 0)];
        let mut seconds = 0;
        while assign(&BY_TWO, &mut costs, &demands, &room(1.0)) != [1] {
            seconds += 1;
            assert!(seconds < 60, "it is never tried again");
        }
        assert!(seconds > 3, "not at once");
    }

    proptest! {
        #[test]
        fn nobody_is_enlarged_by_more_than_allowed(
            streams in proptest::collection::vec((1u16..2000, 0.0f64..30.0, 0usize..5, 0usize..6, proptest::bool::ANY), 0..40),
            capacity in 0.0f64..8.0,
        ) {
            let demands: Vec<Demand> = streams
                .iter()
                .map(|&(w, rate, n, max_scale, may_grow)| Demand { max_scale, may_grow, ..demand(w, rate, n) })
                .collect();
            let networks = enlarged(&demands, capacity);
            prop_assert_eq!(networks.len(), demands.len());
            let known = models(&MORE_NANOS);
            let cost = |d: &Demand, n: usize| d.rate * known[n].predict(d.size).as_secs_f64();
            for (demand, &network) in demands.iter().zip(&networks) {
                let scale = BY_TWO_AND_FOUR[network];
                let before = BY_TWO_AND_FOUR.get(demand.network).copied().unwrap_or(2);
                prop_assert!(scale == 2 || scale <= demand.max_scale);
                prop_assert!(scale <= before || demand.may_grow);
            }
            let min: f64 = demands.iter().map(|d| cost(d, 0)).sum();
            let taken: f64 = demands.iter().zip(&networks).map(|(d, &n)| cost(d, n)).sum();
            // A better network may cost less than the one before it, but not the least.
            prop_assert!(taken <= min.max(capacity * TO_STAY.time) + 1e-9);
        }

        #[test]
        fn what_is_assigned_exists_and_fits(
            streams in proptest::collection::vec((1u16..2000, 0.0f64..30.0, 0usize..4), 0..40), capacity in 0.0f64..8.0,
        ) {
            let demands: Vec<Demand> = streams.iter().map(|&(w, rate, n)| demand(w, rate, n)).collect();
            let (known, networks) = (models(&NANOS), assigned(&demands, capacity));
            prop_assert_eq!(networks.len(), demands.len());
            let cost = |d: &Demand, n: usize| d.rate * known[n].predict(d.size).as_secs_f64();
            let min: f64 = demands.iter().map(|d| cost(d, 0)).sum();
            let taken: f64 = demands.iter().zip(&networks).map(|(d, &n)| cost(d, n)).sum();
            prop_assert!(taken <= min.max(capacity * TO_STAY.time) + 1e-9);
        }
    }
}
