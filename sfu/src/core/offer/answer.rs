//! Answers offers: what a participant publishes and subscribes to.
//!
//! To parse a long session description takes milliseconds, so [`ReadOffer`] does it on the caller's thread, and writes
//! a new one for the stack ([`stack_offer`](super::stack_offer)). An offer that contradicts earlier ones
//! ([`Negotiated`](super::negotiated::Negotiated)) or its lists ([`Lists`]) is refused before the stack reads it. If
//! the stack itself refuses an offer, its state may be half changed, so the connection ends.

use std::collections::HashSet;
use std::time::Instant;

use str0m::media::Mid;

use super::sdp::MediaLine;
use crate::api::{Answer, Offer, OfferError, ParticipantId, Publish, Subscribe, TrackId};
use crate::core::Core;
use crate::core::contained;
use crate::core::offer::{Answered, Lists, ReadOffer, Standing, Wanted};
use crate::core::peer::{Peer, PeerEvent};
use crate::core::track::Track;

impl Core {
    /// Answers an offer, and updates the participant's tracks and subscriptions by its lists.
    ///
    /// # Errors
    ///
    /// Fails if the participant has not joined, the description or a list is malformed or asks for what is not
    /// supported, not permitted or beyond the limits, or the stack panics at it, which removes the participant.
    pub fn offer(
        &mut self,
        now: Instant,
        id: ParticipantId,
        offer: &Offer,
    ) -> Result<Answer, OfferError> {
        let read = ReadOffer::new(offer.clone(), self.config.limits.sdp_bytes);
        self.answer(now, id, read).map(Answered::write)
    }

    /// Answers a parsed offer.
    ///
    /// # Errors
    ///
    /// Fails where [`Core::offer`] does.
    pub fn answer(
        &mut self,
        now: Instant,
        id: ParticipantId,
        offer: ReadOffer,
    ) -> Result<Answered, OfferError> {
        let answer = contained(|| self.negotiate(now, id, offer)).unwrap_or_else(|fault| {
            self.on_fault(now, id, &fault);
            Err(OfferError::Fault)
        });
        self.end_if_stack_faulted(now, id);
        if let Err(error) = &answer {
            self.counters.offers_refused += 1;
            self.counters.offers_refused_room_tracks +=
                u64::from(*error == OfferError::TooManyTracks);
        }
        self.schedule.allocate_now(now);
        answer
    }

    fn negotiate(
        &mut self,
        now: Instant,
        id: ParticipantId,
        offer: ReadOffer,
    ) -> Result<Answered, OfferError> {
        let ReadOffer { publish, subscribe, sdp } = offer;
        if !matches!(sdp, Err(OfferError::TooLarge)) {
            let lines = sdp.iter().flat_map(|(description, _)| &description.sections);
            let lines: Vec<&MediaLine> = lines.map(|section| &section.line).collect();
            let lists = Lists { publish: &publish, subscribe: &subscribe, lines: &lines };
            self.check(id, lists)?;
        }
        let (description, sdp) = sdp?;
        let peer = self.peers.get_mut(id).ok_or(OfferError::NotJoined)?;
        peer.link.negotiated.check(&description)?;
        let accepted = peer.link.accept(sdp, &self.config, self.routes.locals(), now);
        let (answer, ufrag) = match accepted.ok_or(OfferError::Fault)? {
            Ok(accepted) => accepted,
            Err(error) => {
                self.counters.offers_failed += 1;
                if peer.link.last_heard.is_none() {
                    // Nothing of a failed first offer is worth keeping.
                    peer.link.stack.discard();
                } else {
                    self.peers.report(id, PeerEvent::Disconnected);
                }
                return Err(OfferError::BadSdp(error.to_string()));
            }
        };
        if peer.link.last_heard.is_none() {
            peer.link.connect_deadline = now + self.config.connect;
        }
        peer.link.negotiated.commit(&description);
        peer.link.stand_in.client.clone_from(&description.transport.ice.ufrag);
        let lines: Vec<&MediaLine> = description.sections.iter().map(|s| &s.line).collect();
        peer.link.last_heard = peer.link.last_heard.max(Some(now));
        if !peer.link.paths.ufrags().contains(&ufrag) {
            // An ICE restart has new credentials.
            self.counters.ice_restarts += u64::from(!peer.link.paths.ufrags().is_empty());
            if let Some(oldest) = peer.link.paths.add_ufrag(ufrag.clone()) {
                self.routes.remove_ufrag(&oldest);
            }
            self.routes.add_ufrag(ufrag, id);
        }
        peer.link.wake.touch();
        peer.anchors.on_offer(lines.iter().any(|l| l.application));
        let tracks = self.publish(id, &publish);
        self.subscribe(now, id, &subscribe, &lines);
        Ok(Answered { sdp: answer, tracks })
    }

    fn check(&self, id: ParticipantId, lists: Lists<'_>) -> Result<(), OfferError> {
        let peer = self.peers.get(id).ok_or(OfferError::NotJoined)?;
        let room = self.rooms.get(&peer.room);
        let others = room.into_iter().flat_map(|room| &room.members);
        let others =
            others.filter(|&&other| other != id).filter_map(|&other| self.peers.get(other));
        // A backup is part of its track.
        let counts =
            |track: &&TrackId| self.tracks.get(**track).is_some_and(|t| !t.backup.is_one());
        let count = |peer: &Peer| peer.published.values().filter(counts).count();
        let standing = Standing {
            permissions: peer.permissions,
            published: count(peer),
            others: others.map(count).sum(),
        };
        let find = |track: TrackId| {
            let found = self.tracks.get(track);
            let hidden =
                |track: &Track| !track.is_announced() && !track.rendition.viewers.contains(&id);
            if found.is_some_and(hidden) {
                return Wanted::Unknown;
            }
            let found = found.map(|track| &track.info);
            if found.is_none() && self.tracks.has_assigned(track) {
                return Wanted::Ended;
            }
            let is_visible = |publisher| {
                room.is_some_and(|r| r.has(publisher) && (publisher != id || r.loopback))
            };
            let found = found.filter(|info| is_visible(info.participant));
            found.map_or(Wanted::Unknown, |info| Wanted::Track(info.kind))
        };
        lists.check(&self.config.limits, standing, find)
    }

    fn publish(&mut self, id: ParticipantId, wanted: &[Publish]) -> Vec<(String, TrackId)> {
        let Some(peer) = self.peers.get_mut(id) else { return Vec::new() };
        let mids: HashSet<Mid> = wanted.iter().map(|p| Mid::from(p.mid.as_str())).collect();
        let gone: Vec<TrackId> =
            peer.published.iter().filter(|(m, _)| !mids.contains(m)).map(|(_, &t)| t).collect();
        peer.published.retain(|m, _| mids.contains(m));
        for track in gone {
            self.remove_track(track);
        }
        for publish in wanted {
            self.end_if_other(id, publish);
        }
        for publish in wanted {
            let mid = Mid::from(publish.mid.as_str());
            let known = self.peers.get(id).and_then(|p| p.published.get(&mid)).copied();
            let Some(track) = known.or_else(|| self.begin(id, publish)) else { continue };
            if let Some(peer) = self.peers.get_mut(id) {
                peer.published.insert(mid, track);
            }
            if let Some(track) = self.tracks.get_mut(track) {
                track.largest = publish.max;
            }
        }
        let Some(peer) = self.peers.get(id) else { return Vec::new() };
        let track_of =
            |p: &Publish| Some((p.mid.clone(), *peer.published.get(&Mid::from(p.mid.as_str()))?));
        wanted.iter().filter_map(track_of).collect()
    }

    /// Ends the track of an m-line that was a backup and is none any more, or became one, or of another track.
    fn end_if_other(&mut self, id: ParticipantId, publish: &Publish) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let at = |mid: &String| peer.published.get(&Mid::from(mid.as_str())).copied();
        let (known, main) = (at(&publish.mid), publish.backup_of.as_ref().map(at));
        let Some(known) = known else { return };
        let same = |of: Option<TrackId>| match publish.backup_of {
            None => of.is_none(),
            Some(_) => of.is_some() && of == main.flatten(),
        };
        if !self.tracks.get(known).is_some_and(|track| same(track.backup.of)) {
            peer.published.remove(&Mid::from(publish.mid.as_str()));
            self.remove_track(known);
        }
    }

    /// Adds a track, or a backup of another track.
    fn begin(&mut self, id: ParticipantId, publish: &Publish) -> Option<TrackId> {
        let Some(mid) = &publish.backup_of else { return Some(self.add_track(id, publish)) };
        let of = *self.peers.get(id)?.published.get(&Mid::from(mid.as_str()))?;
        self.add_backup(of, publish)
    }

    fn subscribe(
        &mut self,
        now: Instant,
        id: ParticipantId,
        subscribe: &[Subscribe],
        lines: &[&MediaLine],
    ) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let present: HashSet<Mid> = lines.iter().map(|l| Mid::from(l.mid.as_str())).collect();
        let before: HashSet<TrackId> = peer.slots.iter().filter_map(|s| s.track).collect();
        peer.slots.retain(|s| present.contains(&s.mid));
        for slot in &mut peer.slots {
            let wanted = subscribe.iter().find(|s| Mid::from(s.mid.as_str()) == slot.mid);
            if wanted.is_none_or(|s| self.tracks.get(s.track).is_none()) {
                slot.set_track(None);
            }
        }
        for subscribe in subscribe {
            if let Some(track) = self.tracks.get(subscribe.track) {
                let slot = peer.slot(Mid::from(subscribe.mid.as_str()), track.info.kind, now);
                slot.set_track(Some(subscribe.track));
                slot.subscription.max = subscribe.max.unwrap_or(slot.subscription.max);
            }
        }
        peer.on_negotiated();
        let after: HashSet<TrackId> = peer.slots.iter().filter_map(|s| s.track).collect();
        for track in before.union(&after) {
            let Some(track_state) = self.tracks.get_mut(*track) else { continue };
            track_state.subscribers.retain(|&s| s != id);
            if after.contains(track) {
                track_state.subscribers.push(id);
            }
            let subscribers = track_state.subscribers.clone();
            let backup = track_state.backup.id.and_then(|backup| self.tracks.get_mut(backup));
            if let Some(backup) = backup {
                backup.subscribers = subscribers;
            }
        }
    }
}
