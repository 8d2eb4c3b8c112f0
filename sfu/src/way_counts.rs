//! Counts of viewers by how their pictures are made, and why.

use windlass_types::{Way, WayReason};

/// Number of subscriptions by [`Way`] and [`WayReason`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WayCounts([[usize; WayReason::ALL.len()]; Way::ALL.len()]);

impl WayCounts {
    /// Counts one subscription.
    pub(crate) fn add(&mut self, way: Way, reason: WayReason) {
        self.0[way as usize][reason as usize] += 1;
    }

    /// The sum of two sets of counts.
    #[must_use]
    pub(crate) fn plus(&self, other: &WayCounts) -> WayCounts {
        let mut sum = *self;
        let counts = sum.0.iter_mut().flatten().zip(other.0.iter().flatten());
        counts.for_each(|(sum, more)| *sum += more);
        sum
    }

    /// The counts of every way with each reason that it may have. Counts of zero are included: graphs need them.
    pub fn iter(&self) -> impl Iterator<Item = (Way, WayReason, usize)> {
        let all = Way::ALL.into_iter().flat_map(|way| WayReason::ALL.map(|reason| (way, reason)));
        let counted = all.map(|(way, reason)| (way, reason, self.0[way as usize][reason as usize]));
        counted.filter(|(way, reason, count)| *count > 0 || may_have(*way, *reason))
    }
}

/// Whether a way may have a reason.
fn may_have(way: Way, reason: WayReason) -> bool {
    use WayReason as R;
    let without_anchors =
        matches!(reason, R::Unavailable | R::Limit | R::Bandwidth | R::OtherLayer);
    match way {
        Way::Layer => reason == R::Fills,
        Way::Filters => without_anchors,
        Way::Flow => {
            matches!(reason, R::NetworkOff | R::NetworkSlow | R::NetworkTrying | R::NetworkSize)
        }
        Way::Network => without_anchors || reason == R::LittleGain,
        Way::Both => matches!(reason, R::NetworkTrying | R::Gain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_are_counted_by_way_and_reason_and_added_up() {
        let mut counts = WayCounts::default();
        counts.add(Way::Flow, WayReason::NetworkOff);
        counts.add(Way::Flow, WayReason::NetworkOff);
        let mut others = WayCounts::default();
        others.add(Way::Flow, WayReason::NetworkOff);
        others.add(Way::Layer, WayReason::Fills);
        let all: Vec<_> = counts.plus(&others).iter().collect();
        let (some, none): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, _, n)| *n > 0);
        assert_eq!(
            some,
            [(Way::Layer, WayReason::Fills, 1), (Way::Flow, WayReason::NetworkOff, 3)]
        );
        assert!(none.contains(&(Way::Network, WayReason::LittleGain, 0)), "{none:?}");
    }

    #[test]
    fn ways_and_reasons_are_listed_in_the_order_of_their_numbers() {
        assert!(Way::ALL.iter().enumerate().all(|(i, way)| *way as usize == i));
        assert!(WayReason::ALL.iter().enumerate().all(|(i, reason)| *reason as usize == i));
    }
}
