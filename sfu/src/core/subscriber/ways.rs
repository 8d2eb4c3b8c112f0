//! The way in which each viewer's picture of a track is made, and the reason, for viewers, metrics and people ([`Way`],
//! [`WayReason`]). Both follow from the allocation and from the viewer's reports.

use std::time::Instant;

use windlass_types::{FrameNetwork, Layer, Rung, Way, WayReason};

use super::view;
use super::viewer_network::ViewerNetwork;
use crate::core::allocation::demand::Demand;

/// What the allocation gives a viewer of one track.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allocated {
    /// The layer that the viewer receives.
    pub layer: Layer,
    /// Whether the viewer was granted anchors of the layer.
    pub granted: bool,
    /// Whether the server taps the layer to make anchors of it.
    pub tapped: bool,
    /// Whether the server makes no anchors of the layer, for lack of time or memory.
    pub refused: bool,
}

/// The way in which a viewer's picture is made, and the reason.
pub(crate) fn way(
    now: Instant,
    demand: &Demand,
    given: Allocated,
    network: &ViewerNetwork,
) -> (Way, WayReason) {
    let layer = given.layer;
    let anchors = given.granted && given.tapped && !given.refused;
    if view::fills(demand.shown.tile, demand.sizes[layer as usize]) {
        return (Way::Layer, WayReason::Fills);
    }
    let runs = network.running(now) != FrameNetwork::None;
    let way = match (anchors, runs) {
        (false, false) => Way::Filters,
        (true, false) => Way::Flow,
        (false, true) => Way::Network,
        (true, true) => Way::Both,
    };
    let reason = if !anchors {
        without_anchors(demand, given)
    } else if !runs || !beside_network(now, demand, layer, network) {
        network.absence(now).into()
    } else {
        WayReason::Gain
    };
    (way, reason)
}

/// Why a viewer has no anchors.
fn without_anchors(demand: &Demand, given: Allocated) -> WayReason {
    let layer = given.layer;
    let plus = Rung::plus(layer).filter(|_| demand.anchors[layer as usize].is_some());
    match plus {
        None => WayReason::Unavailable,
        Some(_) if given.granted && given.refused => WayReason::Unavailable,
        Some(_) if given.granted => WayReason::OtherLayer,
        Some(plus) if plus > demand.max => WayReason::Limit,
        Some(_) if !demand.anchors_pay(layer) => WayReason::LittleGain,
        Some(_) => WayReason::Bandwidth,
    }
}

/// Whether anchors are worth their bytes beside the network that runs now, proved or not.
fn beside_network(now: Instant, demand: &Demand, layer: Layer, network: &ViewerNetwork) -> bool {
    let mut demand = *demand;
    demand.shown.network = network.running(now);
    demand.anchors_pay(layer)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_types::{Bitrate, NoNetwork, Size};

    use super::*;
    use crate::api::NetworkReport;
    use crate::core::allocation::anchor_costs::AnchorCosts;
    use crate::core::allocation::quality::Shown;
    use crate::core::publisher::layers::ThinnedShares;

    const GIVEN: Allocated =
        Allocated { layer: Layer::H, granted: true, tapped: true, refused: false };
    const WITHOUT: Allocated = Allocated { granted: false, ..GIVEN };

    /// Enhanced anchors alone for two layers, shown twice as large as the half layer.
    fn demand() -> Demand {
        let enhanced =
            Some(AnchorCosts { enhanced: Bitrate::kbps(20.0), ..AnchorCosts::default() });
        Demand {
            max: Rung::F,
            rates: [Some(Bitrate::kbps(150.0)), Some(Bitrate::kbps(500.0)), None],
            thinned: [ThinnedShares([1.0; 2]); 3],
            sizes: [Size::new(320, 180), Size::new(640, 360), Size::new(1280, 720)],
            anchors: [enhanced, enhanced, None],
            shown: Shown { tile: Size::new(1280, 720), network: FrameNetwork::None },
            current: None,
            max_temporal: None,
            unlimited: None,
            weight: 1.0,
        }
    }

    /// A network that has run for the given number of seconds; or none, and why.
    fn network(now: Instant, runs: Result<u32, NoNetwork>) -> ViewerNetwork {
        let mut network = ViewerNetwork::default();
        let report = NetworkReport {
            network: if runs.is_ok() { FrameNetwork::Xs } else { FrameNetwork::None },
            absence: runs.err(),
        };
        let begun = now.checked_sub(Duration::from_secs(runs.unwrap_or(0).into())).unwrap();
        for after in 0..=runs.unwrap_or(0) {
            network.report(begun + Duration::from_secs(after.into()), report);
        }
        network
    }

    /// The way of a viewer whose network is this.
    fn of(mut demand: Demand, given: Allocated, runs: Result<u32, NoNetwork>) -> (Way, WayReason) {
        let now = Instant::now() + Duration::from_secs(60);
        let network = network(now, runs);
        demand.shown.network = network.proved(now);
        way(now, &demand, given, &network)
    }

    #[test]
    fn a_viewer_without_a_network_has_anchors_and_is_told_why_it_needs_them() {
        for (why, reason) in [
            (NoNetwork::Off, WayReason::NetworkOff),
            (NoNetwork::Slow, WayReason::NetworkSlow),
            (NoNetwork::Size, WayReason::NetworkSize),
            (NoNetwork::Other, WayReason::NetworkTrying),
        ] {
            assert_eq!(of(demand(), GIVEN, Err(why)), (Way::Flow, reason));
        }
    }

    #[test]
    fn a_viewer_with_a_network_has_anchors_where_they_add_to_it() {
        assert_eq!(of(demand(), WITHOUT, Ok(10)), (Way::Network, WayReason::LittleGain));
        let captured = AnchorCosts { captured_octaves: 1, ..AnchorCosts::default() };
        let demand = Demand { anchors: [Some(captured); 3], ..demand() };
        assert_eq!(of(demand, GIVEN, Ok(10)), (Way::Both, WayReason::Gain));
    }

    #[test]
    fn until_the_network_has_run_for_a_while_anchors_go_on() {
        assert_eq!(of(demand(), GIVEN, Ok(3)), (Way::Both, WayReason::NetworkTrying));
    }

    #[test]
    fn a_viewer_without_anchors_is_told_why_it_has_none() {
        let without = |demand, given| of(demand, given, Err(NoNetwork::Off));
        for (demand, given, reason) in [
            (demand(), WITHOUT, WayReason::Bandwidth),
            (Demand { max: Rung::H, ..demand() }, WITHOUT, WayReason::Limit),
            (Demand { anchors: [None; 3], ..demand() }, WITHOUT, WayReason::Unavailable),
            (demand(), Allocated { tapped: false, ..GIVEN }, WayReason::OtherLayer),
            (demand(), Allocated { refused: true, ..GIVEN }, WayReason::Unavailable),
        ] {
            assert_eq!(without(demand, given), (Way::Filters, reason));
        }
    }

    #[test]
    fn a_layer_that_fills_its_tile_is_shown_as_it_is() {
        let given = Allocated { layer: Layer::F, ..WITHOUT };
        assert_eq!(of(demand(), given, Ok(10)), (Way::Layer, WayReason::Fills));
    }
}
