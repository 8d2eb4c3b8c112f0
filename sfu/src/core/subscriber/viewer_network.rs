//! The network that a viewer runs on every frame of a track, as its reports say.
//!
//! When the network stops, anchors resume at once. When a network starts, it counts only after [`FIRST_PROOF`]; anchors
//! continue meanwhile, because the network may be too slow. Each network that stops after this time doubles it for the
//! next one, so that anchors do not come and go. A network that ran for [`FORGIVEN`] resets the time.

use std::time::{Duration, Instant};

use windlass_types::{FrameNetwork, NoNetwork};

use crate::api::NetworkReport;

/// Time for which a network must have run before anchors end for it.
const FIRST_PROOF: Duration = Duration::from_secs(10);
/// Maximum of the time for which a network must have run before anchors end for it.
const MAX_PROOF: Duration = Duration::from_secs(160);
/// Running time of a network after which the next proof takes [`FIRST_PROOF`] again.
const FORGIVEN: Duration = Duration::from_secs(300);
/// Time for which a report holds: one comes each second.
const HOLDS_FOR: Duration = Duration::from_secs(5);

/// The network that a viewer runs on every frame, by its reports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ViewerNetwork {
    last: Option<Last>,
    /// Time for which the next network must run before anchors end for it.
    proof: Duration,
}

/// The last report of a viewer.
#[derive(Debug, Clone, Copy)]
struct Last {
    report: NetworkReport,
    at: Instant,
    /// Since when a network has run, if one runs.
    since: Option<Instant>,
}

impl Default for ViewerNetwork {
    fn default() -> ViewerNetwork {
        ViewerNetwork { last: None, proof: FIRST_PROOF }
    }
}

impl ViewerNetwork {
    /// Takes a report. Returns whether a network has begun or ended with it.
    pub(crate) fn report(&mut self, now: Instant, report: NetworkReport) -> bool {
        let ran = self.last(now).and_then(|last| last.since);
        let runs = report.network != FrameNetwork::None;
        if let Some(since) = ran.filter(|_| !runs) {
            self.proof = match now.saturating_duration_since(since) {
                lasted if lasted >= FORGIVEN => FIRST_PROOF,
                lasted if lasted >= self.proof => (self.proof * 2).min(MAX_PROOF),
                _ => self.proof,
            };
        }
        let since = runs.then_some(ran.unwrap_or(now));
        self.last = Some(Last { report, at: now, since });
        ran.is_some() != runs
    }

    /// The network that runs, by a report that still holds.
    pub(crate) fn running(&self, now: Instant) -> FrameNetwork {
        self.last(now).map_or(FrameNetwork::None, |last| last.report.network)
    }

    /// The network that runs, if it has run for long enough to be relied on.
    pub(crate) fn proved(&self, now: Instant) -> FrameNetwork {
        let since = self.last(now).and_then(|last| last.since);
        let proved = since.is_some_and(|since| now.saturating_duration_since(since) >= self.proof);
        if proved { self.running(now) } else { FrameNetwork::None }
    }

    /// Why no network runs, by a report that still holds.
    pub(crate) fn absence(&self, now: Instant) -> NoNetwork {
        self.last(now).and_then(|last| last.report.absence).unwrap_or_default()
    }

    fn last(&self, now: Instant) -> Option<&Last> {
        self.last.as_ref().filter(|last| now.saturating_duration_since(last.at) < HOLDS_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const XS: NetworkReport = NetworkReport { network: FrameNetwork::Xs, absence: None };
    const SLOW: NetworkReport =
        NetworkReport { network: FrameNetwork::None, absence: Some(NoNetwork::Slow) };

    /// Reports, one a second from `start` on; returns when the last one came.
    fn reports(
        network: &mut ViewerNetwork,
        start: Instant,
        report: NetworkReport,
        count: u32,
    ) -> Instant {
        (0..count).for_each(|n| {
            network.report(start + n * SECOND, report);
        });
        start + (count - 1) * SECOND
    }

    #[test]
    fn a_network_counts_once_it_has_run_for_a_while_and_is_gone_at_once() {
        let (mut network, start) = (ViewerNetwork::default(), Instant::now());
        let at = reports(&mut network, start, XS, 10);
        assert_eq!(
            (network.running(at), network.proved(at)),
            (FrameNetwork::Xs, FrameNetwork::None)
        );
        let at = reports(&mut network, at + SECOND, XS, 1);
        assert_eq!(network.proved(at), FrameNetwork::Xs);
        assert!(network.report(at, SLOW), "it has ended");
        assert_eq!(
            (network.running(at), network.proved(at)),
            (FrameNetwork::None, FrameNetwork::None)
        );
        assert_eq!(network.absence(at), NoNetwork::Slow);
        assert!(network.report(at, XS), "it has begun");
        assert_eq!(network.proved(at), FrameNetwork::None, "anew");
    }

    #[test]
    fn a_smaller_network_in_its_place_is_relied_on_too() {
        let (mut network, start) = (ViewerNetwork::default(), Instant::now());
        let at = reports(&mut network, start, XS, 11);
        let smaller = NetworkReport { network: FrameNetwork::Xxs, absence: None };
        assert!(!network.report(at, smaller));
        assert_eq!(network.proved(at), FrameNetwork::Xxs);
    }

    /// Seconds after which a network that begins is relied on.
    fn proof(network: &mut ViewerNetwork, start: Instant) -> u32 {
        let runs = |n: &u32| {
            let at = start + *n * SECOND;
            network.report(at, XS);
            network.proved(at) == FrameNetwork::Xs
        };
        (0..1000).find(runs).expect("it is relied on")
    }

    #[test]
    fn a_network_that_comes_and_goes_is_relied_on_later_each_time_until_one_lasts() {
        let (mut network, mut now) = (ViewerNetwork::default(), Instant::now());
        for seconds in [10, 20, 40, 80, 160, 160] {
            assert_eq!(proof(&mut network, now), seconds);
            now += seconds * SECOND;
            network.report(now, SLOW);
        }
        now = reports(&mut network, now, XS, 301) + SECOND;
        network.report(now, SLOW);
        assert_eq!(proof(&mut network, now), 10);
    }

    #[test]
    fn a_viewer_that_no_longer_reports_counts_as_one_without_a_network() {
        let (mut network, start) = (ViewerNetwork::default(), Instant::now());
        let at = reports(&mut network, start, XS, 11);
        assert_eq!(network.proved(at + HOLDS_FOR / 2), FrameNetwork::Xs);
        assert_eq!(network.proved(at + HOLDS_FOR), FrameNetwork::None);
        assert_eq!(network.absence(at + HOLDS_FOR), NoNetwork::Trying);
        assert!(network.report(at + HOLDS_FOR, XS), "it begins anew");
    }
}
