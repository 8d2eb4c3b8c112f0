//! State of the enhancer in the core, and the layers that the enhancer gets: the taps of all tracks after an
//! allocation.

pub(super) mod anchors;

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use windlass_types::{AnchorPolicy, TapInput};

use crate::api::TrackId;
use crate::config::SfuConfig;
use crate::core::allocation::anchor_costs::AnchorLimits;
use crate::core::output::Output;
use crate::core::peers::Peers;
use crate::core::record::track::TrackRecording;
use crate::core::tap::tapped_layers::{LayerDemand, TrackTerms};
use crate::core::tracks::Tracks;

/// Whether there is an enhancer, and the policies by which it makes anchors.
pub(crate) struct Enhancement {
    available: bool,
    /// Policy of rooms without their own.
    policy: AnchorPolicy,
}

impl Enhancement {
    /// An enhancer with a policy for all rooms.
    pub(crate) fn new(policy: AnchorPolicy) -> Enhancement {
        Enhancement { available: true, policy }
    }

    /// Whether there is an enhancer.
    pub(crate) fn is_available(&self) -> bool {
        self.available
    }

    /// Sets whether there is an enhancer. Returns whether that has changed.
    pub(crate) fn set_available(&mut self, available: bool) -> bool {
        let changed = self.available != available;
        self.available = available;
        changed
    }

    /// Sets the policy of rooms without their own.
    pub(crate) fn set_policy(&mut self, policy: AnchorPolicy) {
        self.policy = policy;
    }

    /// Limits of the anchors that there can be on this server.
    pub(crate) fn limits(&self, config: &SfuConfig) -> AnchorLimits {
        AnchorLimits {
            available: self.available,
            max_pixels: config.tap_pixels,
            captured: config.captured,
            max_octaves: 2,
        }
    }

    /// Starts, moves and stops the taps of all tracks.
    pub(crate) fn update_taps(
        &self,
        now: Instant,
        config: &SfuConfig,
        mut demands: BTreeMap<TrackId, LayerDemand>,
        tracks: &mut Tracks,
        peers: &Peers,
        outputs: &mut VecDeque<Output>,
    ) {
        for track in tracks.iter_mut() {
            let Some(stream) = track.info.stream else { continue };
            let mut demand = demands.remove(&track.info.track).unwrap_or_default();
            // Other nodes do not send the sizes of their tiles.
            track.nodes.enhanced().for_each(|layer| demand.add(layer, layer.max_scale()));
            // A recording has no tile whose size could be known.
            let recorded = track.recordings.iter().filter_map(TrackRecording::anchored_layer);
            for layer in recorded.filter(|_| track.unreadable().is_none()) {
                demand.add(layer, config.scale);
            }
            let wanted = track.taps.wanted(now, demand).filter(|_| !track.info.muted);
            if let Some(remote) = &mut track.remote {
                outputs.extend(remote.request_enhancement(wanted));
                continue;
            }
            let wanted = wanted.filter(|_| track.has_anchors(self.available));
            let unreadable = track.unreadable().is_some();
            if unreadable != track.taps.is_opaque() {
                // What held for the other codec does not for this one.
                track.stills.forget();
                track.refused = None;
            }
            let stopped = track.taps.set_opaque(unreadable);
            let max_frame_bytes = config.limits.tap_frame_bytes;
            if track.taps.set_layer(stream, wanted, max_frame_bytes) || stopped {
                outputs.push_back(Output::Tap(TapInput::Stop { stream }));
                let ended = track.params.end_adaptation();
                outputs.extend(ended.map(|layers| track.ask(layers)));
            }
            let scale = config.captured.then_some(track.scale(config.scale));
            let stop = track.taps.set_capture(now, stream, scale, &track.layers, max_frame_bytes);
            outputs.extend(stop.map(Output::Tap));
            let publisher = peers.get(track.info.participant);
            let own_policy = publisher.and_then(|peer| config.room_policies.get(&peer.room));
            let terms = TrackTerms {
                policy: own_policy.copied().unwrap_or(self.policy),
                owner: publisher.map(|peer| peer.owner),
                max_pixels: config.tap_pixels,
            };
            track.taps.set_terms(now, demand, &track.layers, terms);
            outputs.extend(track.send_anchor_state(self.available, config.scale));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windlass_types::Layer;

    use super::*;
    use crate::api::ParticipantId;
    use crate::core::shard::Shard;
    use crate::core::tests::harness::camera;
    use crate::core::track::Track;

    #[test]
    fn a_layer_is_tapped_for_its_subscribers_while_there_is_an_enhancer() {
        let mut enhancement = Enhancement::new(AnchorPolicy::default());
        let (mut tracks, peers, now) =
            (Tracks::new(Shard::default()), Peers::default(), Instant::now());
        let room = Arc::<str>::from("tea");
        let id = tracks.add(ParticipantId(1), &camera(), room);
        let mut demand = LayerDemand::default();
        demand.add(Layer::Q, 2);
        let demands = || BTreeMap::from([(id, demand)]);
        let (config, mut outputs) = (SfuConfig::default(), VecDeque::new());
        enhancement.update_taps(now, &config, demands(), &mut tracks, &peers, &mut outputs);
        assert_eq!(tracks.get(id).and_then(Track::tapped), Some(Layer::Q));
        assert!(outputs.is_empty() && enhancement.set_available(false));
        enhancement.update_taps(now, &config, demands(), &mut tracks, &peers, &mut outputs);
        assert_eq!(tracks.get(id).and_then(Track::tapped), None);
        assert!(matches!(outputs.pop_front(), Some(Output::Tap(TapInput::Stop { .. }))));
        assert!(outputs.is_empty());
    }
}
