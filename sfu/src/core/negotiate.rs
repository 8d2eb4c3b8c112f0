//! Offers: what a participant publishes and subscribes to.
//!
//! To parse a long session description takes milliseconds, so [`ReadOffer`] does it on the caller's thread, and writes a new one for the
//! stack ([`stack_offer`](super::stack_offer)). An offer that contradicts earlier ones ([`Negotiated`](super::negotiated::Negotiated)) or
//! its lists is refused before the stack reads it. If the stack itself refuses an offer, its state may be half changed, so the
//! connection ends.

use std::collections::HashSet;
use std::time::Instant;

use str0m::change::{SdpAnswer, SdpOffer};
use str0m::media::Mid;

use super::Core;
use super::contained;
use super::peer::PeerEvent;
use super::sdp::{Description, MAX_MID, MediaLine};
use crate::api::{Answer, Kind, Offer, OfferError, ParticipantId, Publish, Subscribe, TrackId};

/// An offer with its parsed session description, or the error in that.
pub struct ReadOffer {
    publish: Vec<Publish>,
    subscribe: Vec<Subscribe>,
    sdp: Result<(Description, SdpOffer), OfferError>,
}

/// An answer that is not written as text yet.
pub struct Answered {
    sdp: SdpAnswer,
    tracks: Vec<(String, TrackId)>,
}

impl ReadOffer {
    /// Parses an offer; its session description may have `sdp_bytes`.
    pub fn new(offer: Offer, sdp_bytes: usize) -> ReadOffer {
        let Offer { sdp, publish, subscribe } = offer;
        let sdp = if sdp.len() > sdp_bytes { Err(OfferError::TooLarge) } else { read(&sdp) };
        ReadOffer { publish, subscribe, sdp }
    }
}

fn read(sdp: &str) -> Result<(Description, SdpOffer), OfferError> {
    let description = Description::read(sdp)?;
    let offer = SdpOffer::from_sdp_string(&description.to_stack_offer());
    Ok((description, offer.map_err(|error| OfferError::BadSdp(error.to_string()))?))
}

impl Answered {
    /// Writes the answer as text.
    pub fn write(self) -> Answer {
        Answer { sdp: self.sdp.to_sdp_string(), tracks: self.tracks }
    }
}

impl Core {
    /// Answers an offer, and updates the participant's tracks and subscriptions by its lists.
    ///
    /// # Errors
    ///
    /// Fails if the participant has not joined, the description or a list is malformed or asks for what is not supported, not
    /// permitted or beyond the limits, or the stack panics at it, which removes the participant.
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
            self.check(id, &publish, &subscribe, &lines)?;
        }
        let (description, sdp) = sdp?;
        let peer = self.peers.get_mut(&id).ok_or(OfferError::NotJoined)?;
        peer.negotiated.check(&description)?;
        let accepted = peer.accept(sdp, &self.config, &self.locals, now);
        let (answer, ufrag) = match accepted.ok_or(OfferError::Fault)? {
            Ok(accepted) => accepted,
            Err(error) => {
                self.counters.offers_failed += 1;
                if peer.last_heard.is_none() {
                    // Nothing of a failed first offer is worth keeping.
                    peer.stack.discard();
                } else {
                    self.peer_events.push((id, PeerEvent::Disconnected));
                }
                return Err(OfferError::BadSdp(error.to_string()));
            }
        };
        if peer.last_heard.is_none() {
            peer.connect_deadline = now + self.config.connect;
        }
        peer.negotiated.commit(&description);
        let lines: Vec<&MediaLine> = description.sections.iter().map(|s| &s.line).collect();
        peer.last_heard = peer.last_heard.max(Some(now));
        if !peer.paths.ufrags().contains(&ufrag) {
            // An ICE restart has new credentials.
            self.counters.ice_restarts += u64::from(!peer.paths.ufrags().is_empty());
            if let Some(oldest) = peer.paths.add_ufrag(ufrag.clone()) {
                self.routes.remove_ufrag(&oldest);
            }
            self.routes.add_ufrag(ufrag, id);
        }
        peer.wake.touch();
        peer.anchors.on_offer(lines.iter().any(|l| l.application));
        let tracks = self.publish(id, &publish);
        self.subscribe(now, id, &subscribe, &lines);
        Ok(Answered { sdp: answer, tracks })
    }

    fn check(
        &self,
        id: ParticipantId,
        publish: &[Publish],
        subscribe: &[Subscribe],
        lines: &[&MediaLine],
    ) -> Result<(), OfferError> {
        let limits = &self.config.limits;
        let peer = self.peers.get(&id).ok_or(OfferError::NotJoined)?;
        Self::check_permissions(peer.permissions, publish, subscribe)?;
        let names_fit = publish.iter().all(|p| p.name.len() <= Publish::MAX_NAME);
        if publish.len() > limits.published_tracks || !names_fit {
            return Err(OfferError::TooLarge);
        }
        let others = self.rooms.get(&peer.room).into_iter().flat_map(|room| &room.members);
        let others = others.filter(|&&other| other != id).filter_map(|other| self.peers.get(other));
        let tracks: usize = others.map(|other| other.published.len()).sum();
        // A participant with no more tracks than before is not refused, even if the limit has been lowered.
        if publish.len() > peer.published.len() && tracks + publish.len() > limits.tracks_per_room {
            return Err(OfferError::TooManyTracks);
        }
        // M-lines of ended tracks stay in the description.
        if lines.len() > 4 * limits.media_sections {
            return Err(OfferError::TooLarge);
        }
        let media = lines.iter().filter(|l| l.kind.is_some() && (l.sends || l.receives));
        if media.count() > limits.media_sections {
            return Err(OfferError::TooLarge);
        }
        let mut used = HashSet::new();
        let mut line_of = |mid: &str, kind: Kind| {
            let bad = || OfferError::BadMid { mid: mid.chars().take(MAX_MID).collect() };
            let line =
                lines.iter().find(|l| l.mid == mid && l.kind == Some(kind)).ok_or_else(bad)?;
            if !used.insert(mid.to_owned()) {
                return Err(bad());
            }
            if !line.codec {
                return Err(OfferError::NoCodec { mid: mid.to_owned() });
            }
            Ok((line, bad()))
        };
        for entry in publish {
            let (line, bad) = line_of(&entry.mid, entry.kind)?;
            if !line.sends {
                return Err(bad);
            }
        }
        let room = self.rooms.get(&peer.room);
        let mut wanted = HashSet::new();
        for subscribe in subscribe {
            if !wanted.insert(subscribe.track) {
                return Err(OfferError::SubscribedTwice { track: subscribe.track });
            }
            // A track may end while the offer is on its way: its m-line stays silent.
            if self.shard.has_assigned(subscribe.track.0, self.next_track)
                && !self.tracks.contains_key(&subscribe.track)
            {
                continue;
            }
            let track = self.tracks.get(&subscribe.track).filter(|t| {
                room.is_some_and(|r| {
                    let publisher = &t.info.participant;
                    (r.members.contains(publisher) || r.remote_members.contains_key(publisher))
                        && (t.info.participant != id || r.loopback)
                })
            });
            let track = track.ok_or(OfferError::UnknownTrack { track: subscribe.track })?;
            let (line, bad) = line_of(&subscribe.mid, track.info.kind)?;
            if !line.receives {
                return Err(bad);
            }
        }
        Ok(())
    }

    fn publish(&mut self, id: ParticipantId, wanted: &[Publish]) -> Vec<(String, TrackId)> {
        let Some(peer) = self.peers.get_mut(&id) else { return Vec::new() };
        let mids: HashSet<Mid> = wanted.iter().map(|p| Mid::from(p.mid.as_str())).collect();
        let gone: Vec<TrackId> =
            peer.published.iter().filter(|(m, _)| !mids.contains(m)).map(|(_, &t)| t).collect();
        peer.published.retain(|m, _| mids.contains(m));
        for track in gone {
            self.remove_track(track);
        }
        for publish in wanted {
            let mid = Mid::from(publish.mid.as_str());
            let known = self.peers.get(&id).and_then(|p| p.published.get(&mid)).copied();
            let track =
                known.unwrap_or_else(|| self.add_track(id, mid, publish.kind, &publish.name));
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.published.insert(mid, track);
            }
            if let Some(track) = self.tracks.get_mut(&track) {
                track.largest = publish.max;
            }
        }
        let Some(peer) = self.peers.get(&id) else { return Vec::new() };
        let track_of =
            |p: &Publish| Some((p.mid.clone(), *peer.published.get(&Mid::from(p.mid.as_str()))?));
        wanted.iter().filter_map(track_of).collect()
    }

    fn subscribe(
        &mut self,
        now: Instant,
        id: ParticipantId,
        subscribe: &[Subscribe],
        lines: &[&MediaLine],
    ) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let present: HashSet<Mid> = lines.iter().map(|l| Mid::from(l.mid.as_str())).collect();
        let before: HashSet<TrackId> = peer.slots.iter().filter_map(|s| s.track).collect();
        peer.slots.retain(|s| present.contains(&s.mid));
        for slot in &mut peer.slots {
            let wanted = subscribe.iter().find(|s| Mid::from(s.mid.as_str()) == slot.mid);
            if wanted.is_none_or(|s| !self.tracks.contains_key(&s.track)) {
                slot.set_track(None);
            }
        }
        for subscribe in subscribe {
            if let Some(track) = self.tracks.get(&subscribe.track) {
                let slot = peer.slot(Mid::from(subscribe.mid.as_str()), track.info.kind, now);
                slot.set_track(Some(subscribe.track));
                slot.max = subscribe.max.unwrap_or(slot.max);
            }
        }
        peer.on_negotiated();
        let after: HashSet<TrackId> = peer.slots.iter().filter_map(|s| s.track).collect();
        for track in before.union(&after) {
            let Some(track_state) = self.tracks.get_mut(track) else { continue };
            track_state.subscribers.retain(|&s| s != id);
            if after.contains(track) {
                track_state.subscribers.push(id);
            }
        }
    }
}
