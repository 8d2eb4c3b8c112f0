//! Offers: what a participant publishes and subscribes to, checked before the connection's state is touched.
//!
//! Reading a long session description takes milliseconds, so [`ReadOffer`] does that wherever the caller is, not on
//! the thread that forwards media, and writes it anew for the stack ([`told`](super::told)). What may not follow the offers
//! before ([`Agreed`](super::agreed::Agreed)) or does not fit the lists is refused before the stack hears of it; what the stack refuses all the same
//! may have changed half of its state, so that connection ends.

use std::collections::HashSet;
use std::time::Instant;

use str0m::change::{SdpAnswer, SdpOffer};
use str0m::media::Mid;

use super::Core;
use super::contained;
use super::peer::Happening;
use super::sdp::{Description, MID_MAX, MediaLine};
use crate::api::{Answer, Kind, Offer, OfferError, ParticipantId, Publish, Subscribe, TrackId};

/// The server's user name fragments that lead to one connection.
const UFRAGS: usize = 8;

/// An offer whose session description has been read, if it could be.
pub struct ReadOffer {
    publish: Vec<Publish>,
    subscribe: Vec<Subscribe>,
    sdp: Result<(Description, SdpOffer), OfferError>,
}

/// What a connection answers, still to be written as text.
pub struct Answered {
    sdp: SdpAnswer,
    tracks: Vec<(String, TrackId)>,
}

impl ReadOffer {
    /// Reads an offer of at most `sdp_bytes`.
    pub fn new(offer: Offer, sdp_bytes: usize) -> ReadOffer {
        let Offer { sdp, publish, subscribe } = offer;
        let sdp = if sdp.len() > sdp_bytes { Err(OfferError::TooLarge) } else { read(&sdp) };
        ReadOffer { publish, subscribe, sdp }
    }
}

fn read(sdp: &str) -> Result<(Description, SdpOffer), OfferError> {
    let description = Description::read(sdp)?;
    let told = SdpOffer::from_sdp_string(&description.told());
    Ok((description, told.map_err(|error| OfferError::BadSdp(error.to_string()))?))
}

impl Answered {
    /// The text that the client is given.
    pub fn write(self) -> Answer {
        Answer { sdp: self.sdp.to_sdp_string(), tracks: self.tracks }
    }
}

impl Core {
    /// Answers an offer and brings the participant's tracks and subscriptions in line with its lists.
    pub fn offer(
        &mut self,
        now: Instant,
        id: ParticipantId,
        offer: &Offer,
    ) -> Result<Answer, OfferError> {
        let read = ReadOffer::new(offer.clone(), self.config.limits.sdp_bytes);
        self.answer(now, id, read).map(Answered::write)
    }

    /// Answers an offer that has been read.
    pub fn answer(
        &mut self,
        now: Instant,
        id: ParticipantId,
        offer: ReadOffer,
    ) -> Result<Answered, OfferError> {
        let answer = contained(|| self.negotiate(now, id, offer)).unwrap_or_else(|fault| {
            self.faulted(now, id, &fault);
            Err(OfferError::Fault)
        });
        self.broken(now, id);
        if let Err(error) = &answer {
            self.counters.offers_refused += 1;
            self.counters.offers_refused_room_tracks +=
                u64::from(*error == OfferError::TooManyTracks);
        }
        self.next_allocation = now;
        self.due = now;
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
        peer.agreed.allows(&description)?;
        let accepted = peer.accept(sdp, (&self.config, &self.locals), now);
        let (answer, ufrag) = match accepted.ok_or(OfferError::Fault)? {
            Ok(accepted) => accepted,
            Err(error) => {
                self.counters.offers_failed += 1;
                if peer.heard.is_none() {
                    // A first offer that failed leaves nothing worth keeping.
                    peer.stack.forget();
                } else {
                    self.happenings.push((id, Happening::Gone));
                }
                return Err(OfferError::BadSdp(error.to_string()));
            }
        };
        if peer.heard.is_none() {
            peer.must = now + self.config.connect;
        }
        peer.agreed.agree(&description);
        let lines: Vec<&MediaLine> = description.sections.iter().map(|s| &s.line).collect();
        peer.heard = peer.heard.max(Some(now));
        if !peer.ufrags.contains(&ufrag) {
            self.counters.ice_restarts += u64::from(!peer.ufrags.is_empty());
            // Each restart of ICE has another; a client that does nothing else forgets its oldest.
            if let Some(oldest) = peer.renew(ufrag.clone(), UFRAGS) {
                self.ufrags.remove(&oldest);
                self.shard.forgot(&oldest);
            }
            self.shard.named(&ufrag);
            self.ufrags.insert(ufrag, id);
        }
        peer.wake.touch();
        peer.set_has_data(lines.iter().any(|l| l.application));
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
        Self::check_may(peer.may, publish, subscribe)?;
        let names_fit = publish.iter().all(|p| p.name.len() <= Publish::NAME_MAX);
        if publish.len() > limits.published_tracks || !names_fit {
            return Err(OfferError::TooLarge);
        }
        let others = self.rooms.get(&peer.room).into_iter().flat_map(|room| &room.members);
        let others = others.filter(|&&other| other != id).filter_map(|other| self.peers.get(other));
        let tracks: usize = others.map(|other| other.published.len()).sum();
        // Who publishes nothing is never one too many, even where the limit has become lower.
        if publish.len() > peer.published.len() && tracks + publish.len() > limits.tracks_per_room {
            return Err(OfferError::TooManyTracks);
        }
        // Every track may have come and gone once, and its m-line stays.
        if lines.len() > 4 * limits.media_sections {
            return Err(OfferError::TooLarge);
        }
        let media = lines.iter().filter(|l| l.kind.is_some() && (l.sends || l.receives));
        if media.count() > limits.media_sections {
            return Err(OfferError::TooLarge);
        }
        let mut used = HashSet::new();
        let mut line_of = |mid: &str, kind: Kind| {
            let bad = || OfferError::BadMid { mid: mid.chars().take(MID_MAX).collect() };
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
            // One that ended while the offer was under way is no mistake: its m-line stays silent.
            if self.shard.has_numbered(subscribe.track.0, self.next_track)
                && !self.tracks.contains_key(&subscribe.track)
            {
                continue;
            }
            let track = self.tracks.get(&subscribe.track).filter(|t| {
                room.is_some_and(|r| {
                    let publisher = &t.info.participant;
                    (r.members.contains(publisher) || r.afar.contains_key(publisher))
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
            if self.peers.get(&id).is_some_and(|p| p.published.contains_key(&mid)) {
                continue;
            }
            let track = self.add_track(id, mid, publish.kind, &publish.name);
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.published.insert(mid, track);
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
                slot.carry(None);
            }
        }
        for subscribe in subscribe {
            if let Some(track) = self.tracks.get(&subscribe.track) {
                let slot = peer.slot(Mid::from(subscribe.mid.as_str()), track.info.kind, now);
                slot.carry(Some(subscribe.track));
                slot.max = subscribe.max.unwrap_or(slot.max);
            }
        }
        peer.negotiated();
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
