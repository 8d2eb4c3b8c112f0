//! Permissions of participants, which may change during a call.

use std::time::Instant;

use super::Core;
use crate::api::{ParticipantId, Permissions};

impl Core {
    /// Sets a participant's permissions. Tracks, subscriptions and anchors that are not permitted any more end at once.
    pub fn set_permissions(&mut self, now: Instant, id: ParticipantId, permissions: Permissions) {
        let Some(peer) = self.peers.get_mut(id).filter(|peer| peer.permissions != permissions)
        else {
            return;
        };
        peer.permissions = permissions;
        // Without the permission for anchors it was not opened.
        peer.open_anchor_channel(self.config.budget);
        if !permissions.publish {
            let published = std::mem::take(&mut peer.published);
            for track in published.into_values() {
                self.remove_track(track);
            }
        }
        if !permissions.subscribe
            && let Some(peer) = self.peers.get_mut(id)
        {
            for slot in &mut peer.slots {
                let Some(track) = slot.track else { continue };
                slot.set_track(None);
                if let Some(track) = self.tracks.get_mut(track) {
                    track.subscribers.retain(|&s| s != id);
                }
            }
        }
        self.schedule.allocate_now(now);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_types::Rung;

    use crate::api::{JoinOptions, Offer, OfferError, Permissions, Publish, SfuEvent};
    use crate::core::world::*;
    use crate::{Kind, ParticipantId};

    /// The latest frame that a client has something of: what was sent before may be sent again.
    fn newest(world: &World, at: usize) -> Option<u32> {
        world.clients[at].received.iter().map(|packet| packet.header.timestamp).max()
    }

    #[test]
    fn who_may_not_publish_any_more_loses_its_tracks_at_once_and_cannot_offer_others() {
        let (mut world, track, at) = call();
        world.core.set_permissions(
            world.now,
            PUBLISHER,
            Permissions { publish: false, ..Permissions::default() },
        );
        world.run(Duration::from_millis(100));
        let gone = SfuEvent::TrackRemoved { track };
        assert!(world.events[&SUBSCRIBER].contains(&gone));
        let before = newest(&world, at);
        world.run(Duration::from_secs(1));
        assert_eq!(newest(&world, at), before, "its packets go nowhere");
        assert_eq!(world.core.stats().participants, 2, "it stays");
        let publish =
            vec![Publish { mid: "0".into(), kind: Kind::Video, name: "camera".into(), max: None }];
        let offer = Offer { sdp: "v=0\r\n".into(), publish, subscribe: Vec::new() };
        let refused = world.core.offer(world.now, PUBLISHER, &offer);
        assert_eq!(refused, Err(OfferError::NotAllowed("publish")));
    }

    #[test]
    fn who_may_not_subscribe_any_more_gets_nothing_until_it_offers_with_the_right_again() {
        let (mut world, track, at) = call();
        world.core.set_permissions(
            world.now,
            SUBSCRIBER,
            Permissions { subscribe: false, ..Permissions::default() },
        );
        world.run(Duration::from_millis(100));
        let before = newest(&world, at);
        world.run(Duration::from_secs(1));
        assert_eq!(newest(&world, at), before);
        assert_eq!(world.core.stats().subscriptions, 0);
        world.core.set_permissions(world.now, SUBSCRIBER, Permissions::default());
        let third = ParticipantId(3);
        world.core.join(world.now, "room", third, JoinOptions::default()).expect("joined");
        let at = world.subscribe(third, track);
        world.run(Duration::from_secs(2));
        assert!(!world.clients[at].received.is_empty(), "the track is there for others");
    }

    #[test]
    fn who_may_not_have_enhanced_rungs_any_more_is_given_plain_ones() {
        let (mut world, track, _) = call();
        world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::QPlus);
        world.run(Duration::from_secs(3));
        assert_eq!(world.rungs(SUBSCRIBER).last().map(|told| told.0), Some(Rung::QPlus));
        world.core.set_permissions(
            world.now,
            SUBSCRIBER,
            Permissions { enhance: false, ..Permissions::default() },
        );
        world.run(Duration::from_secs(3));
        assert_eq!(world.rungs(SUBSCRIBER).last().map(|told| told.0), Some(Rung::Q));
        world.core.set_permissions(world.now, SUBSCRIBER, Permissions::default());
        world.run(Duration::from_secs(3));
        assert_eq!(world.rungs(SUBSCRIBER).last().map(|told| told.0), Some(Rung::QPlus));
    }
}
