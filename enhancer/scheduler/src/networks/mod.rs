//! What anchors cost by each network, and which network each stream has.

mod assign;
mod stream;

use std::time::Duration;

use assign::Assigner;
pub use assign::NetworkCost;
pub(crate) use assign::{Demand, Room};
pub(crate) use stream::StreamNetwork;

use windlass_types::Size;

use crate::candidate::{Candidate, Captured};
use crate::cost::CostModel;

/// Time between two assignments of networks.
pub(crate) const ASSIGN_EVERY: Duration = Duration::from_secs(1);
/// Expected cost per LR pixel of an anchor made of the publisher's own picture, before one was measured.
const CAPTURED_PER_PIXEL: Duration = Duration::from_nanos(150);

/// The networks, by scale, then the cheapest first.
#[derive(Debug)]
pub(crate) struct Networks {
    /// Expected inference time by network.
    costs: Vec<CostModel>,
    /// Expected time to make an anchor of the publisher's own picture.
    captured_cost: CostModel,
    /// Scale by network: HR side over LR side.
    scales: Vec<usize>,
    assigner: Assigner,
    /// Number of streams that have each network.
    in_use: Vec<usize>,
    assigned: Option<Duration>,
    /// Seconds of inference in each second that all streams together would take, were there no cap.
    demand_s: f64,
}

impl Networks {
    pub(crate) fn new(networks: &[NetworkCost]) -> Self {
        Networks {
            costs: networks.iter().map(|n| CostModel::new(n.per_pixel)).collect(),
            captured_cost: CostModel::new(CAPTURED_PER_PIXEL),
            scales: networks.iter().map(|n| n.scale).collect(),
            assigner: Assigner::default(),
            in_use: vec![0; networks.len()],
            assigned: None,
            demand_s: 0.0,
        }
    }

    /// Measured costs of each network.
    pub(crate) fn costs(&self) -> &[CostModel] {
        &self.costs
    }

    /// Cost model of one network, to learn from a measurement or to lower an expectation.
    pub(crate) fn costs_mut(&mut self, network: usize) -> Option<&mut CostModel> {
        self.costs.get_mut(network)
    }

    /// Cost model of anchors made of the publisher's own pictures.
    pub(crate) fn captured_cost_mut(&mut self) -> &mut CostModel {
        &mut self.captured_cost
    }

    /// Expected cost of an anchor.
    pub(crate) fn predict(&self, network: usize, captured: Captured, size: Size) -> Duration {
        let costs = match captured {
            Captured::Pictures => Some(&self.captured_cost),
            Captured::No | Captured::Stills => self.costs.get(network),
        };
        costs.map_or(Duration::ZERO, |costs| costs.predict(size))
    }

    /// Scale of a network: HR side over LR side.
    pub(crate) fn scale(&self, network: usize) -> Option<usize> {
        self.scales.get(network).copied()
    }

    /// The network of a frame: its stream's, or the cheapest of the frame's scale where that is about to change.
    pub(crate) fn fitting(&self, network: usize, frame: &Candidate) -> usize {
        if self.scale(network) == Some(frame.scale) {
            return network;
        }
        self.scales.iter().position(|&scale| scale == frame.scale).unwrap_or(usize::MAX)
    }

    /// Streams that each network had at the last tick.
    pub(crate) fn in_use(&self) -> &[usize] {
        &self.in_use
    }

    /// Seconds of inference in each second that all streams together would take, were there no cap.
    pub(crate) fn demand_s(&self) -> f64 {
        self.demand_s
    }

    /// Counts which stream has which network.
    pub(crate) fn count<'a>(&mut self, streams: impl Iterator<Item = &'a StreamNetwork>) {
        self.in_use.fill(0);
        for stream in streams.filter(|stream| stream.is_sustained()) {
            if let Some(count) = self.in_use.get_mut(stream.index()) {
                *count += 1;
            }
        }
    }

    /// Returns the time since the last assignment if another one is due ([`ASSIGN_EVERY`]).
    pub(crate) fn begin_assignment(&mut self, now: Duration) -> Option<Duration> {
        let elapsed = now.saturating_sub(*self.assigned.get_or_insert(now));
        (elapsed >= ASSIGN_EVERY).then(|| {
            self.assigned = Some(now);
            elapsed
        })
    }

    /// Decides by which network the anchors of each demand are made.
    pub(crate) fn assign(&mut self, demands: impl Iterator<Item = Demand>, room: &Room) {
        self.assigner.demands.clear();
        self.assigner.demands.extend(demands);
        let counted = self.assigner.demands.iter().filter(|demand| !demand.held_back);
        let seconds = counted.map(|demand| {
            let cost = self.predict(demand.network, Captured::No, demand.size);
            demand.rate * cost.as_secs_f64()
        });
        self.demand_s = seconds.fold(0.0, |sum, seconds| sum + seconds);
        self.assigner.assign(&self.scales, &mut self.costs, room);
    }

    /// Gives the streams their networks, in the order of the demands; each with its maximum scale.
    pub(crate) fn apply<'a>(
        &self,
        now: Duration,
        streams: impl Iterator<Item = (&'a mut StreamNetwork, usize)>,
    ) {
        for ((stream, max_scale), assigned) in streams.zip(&self.assigner.assigned) {
            stream.set(*assigned, &self.scales, max_scale, now);
        }
    }
}
