//! Permissions of participants, which may change during a call.

use std::time::Instant;

use crate::api::{ParticipantId, Permissions};
use crate::core::Core;

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
        if !permissions.enhance || !permissions.subscribe {
            self.leave_renditions(id);
        }
        self.schedule.allocate_now(now);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_types::Rung;

    use crate::api::{JoinOptions, Offer, OfferError, Permissions, Publish, SfuEvent};
    use crate::core::tests::harness::*;
    use crate::{ParticipantId, TrackKind};

    /// The latest frame that a client has something of: what was sent before may be sent again.
    fn newest(harness: &Harness, at: usize) -> Option<u32> {
        harness.clients[at].received.iter().map(|packet| packet.header.timestamp).max()
    }

    #[test]
    fn who_may_not_publish_any_more_loses_its_tracks_at_once_and_cannot_offer_others() {
        let (mut harness, track, at) = call();
        harness.core.set_permissions(
            harness.now,
            PUBLISHER,
            Permissions { publish: false, ..Permissions::default() },
        );
        harness.run(Duration::from_millis(100));
        let gone = SfuEvent::TrackRemoved { track };
        assert!(harness.events[&SUBSCRIBER].contains(&gone));
        let before = newest(&harness, at);
        harness.run(Duration::from_secs(1));
        assert_eq!(newest(&harness, at), before, "its packets go nowhere");
        assert_eq!(harness.core.stats().participants, 2, "it stays");
        let publish = vec![Publish {
            mid: "0".into(),
            kind: TrackKind::Video,
            name: "camera".into(),
            max: None,
            encrypted: false,
            backup_of: None,
        }];
        let offer = Offer { sdp: "v=0\r\n".into(), publish, subscribe: Vec::new() };
        let refused = harness.core.offer(harness.now, PUBLISHER, &offer);
        assert_eq!(refused, Err(OfferError::NotAllowed("publish")));
    }

    #[test]
    fn who_may_not_subscribe_any_more_gets_nothing_until_it_offers_with_the_right_again() {
        let (mut harness, track, at) = call();
        harness.core.set_permissions(
            harness.now,
            SUBSCRIBER,
            Permissions { subscribe: false, ..Permissions::default() },
        );
        harness.run(Duration::from_millis(100));
        let before = newest(&harness, at);
        harness.run(Duration::from_secs(1));
        assert_eq!(newest(&harness, at), before);
        assert_eq!(harness.core.stats().subscriptions, 0);
        harness.core.set_permissions(harness.now, SUBSCRIBER, Permissions::default());
        let third = ParticipantId(3);
        harness.core.join(harness.now, "room", third, JoinOptions::default()).expect("joined");
        let at = harness.subscribe(third, track);
        harness.run(Duration::from_secs(2));
        assert!(!harness.clients[at].received.is_empty(), "the track is there for others");
    }

    #[test]
    fn who_may_not_have_enhanced_rungs_any_more_is_given_plain_ones() {
        let (mut harness, track, _) = call();
        harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::QPlus);
        harness.run(Duration::from_secs(3));
        assert_eq!(harness.rungs(SUBSCRIBER).last().map(|rung| rung.0), Some(Rung::QPlus));
        harness.core.set_permissions(
            harness.now,
            SUBSCRIBER,
            Permissions { enhance: false, ..Permissions::default() },
        );
        harness.run(Duration::from_secs(3));
        assert_eq!(harness.rungs(SUBSCRIBER).last().map(|rung| rung.0), Some(Rung::Q));
        harness.core.set_permissions(harness.now, SUBSCRIBER, Permissions::default());
        harness.run(Duration::from_secs(3));
        assert_eq!(harness.rungs(SUBSCRIBER).last().map(|rung| rung.0), Some(Rung::QPlus));
    }
}
