//! What a connection has agreed to, and whether another description may follow it.
//!
//! The stack changes its state while it reads an offer, and stops in the middle where something does not fit what was
//! agreed before. So all that it would refuse is refused here first, and nothing of it has changed then.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::payloads::Role;
use super::sdp::{Description, Section};
use crate::api::{Kind, OfferError};

/// The most streams that a connection names in its life: the stack remembers each of them.
const STREAMS: usize = 256;

/// One m-line of the last offer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    mid: String,
    kind: Option<Kind>,
    /// The client gave it up, for good.
    given_up: bool,
    /// It has had a common codec. The stack remembers that, also when a later offer has none.
    had_codec: bool,
}

impl Place {
    /// Whether another section may take it.
    fn is_free(&self) -> bool {
        self.kind.is_some() && (self.given_up || !self.had_codec)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Agreed {
    places: Vec<Place>,
    /// What payload types stand for. They do so for the connection's life (RFC 3264 §8.3.2).
    roles: BTreeMap<u8, Role>,
    /// The first of each kind's codec.
    first: HashMap<Kind, u8>,
    streams: HashSet<u32>,
}

fn bad(why: &str) -> OfferError {
    OfferError::BadSdp(why.to_owned())
}

impl Agreed {
    /// Whether the description may come next.
    pub fn allows(&self, next: &Description) -> Result<(), OfferError> {
        if next.sections.len() < self.places.len() {
            return Err(bad("m-lines are missing that the last offer had"));
        }
        for (at, section) in next.sections.iter().enumerate() {
            let mid = &section.line.mid;
            if self.places.iter().enumerate().any(|(i, place)| i != at && place.mid == *mid) {
                return Err(bad("m-lines are in another order than in the last offer"));
            }
            let Some(place) = self.places.get(at) else { continue };
            let fits = if place.mid == *mid {
                place.kind == section.line.kind && (section.rejected || !place.given_up)
            } else {
                place.is_free() && section.line.kind.is_some()
            };
            if !fits {
                return Err(bad("an m-line has become another one"));
            }
        }
        let mut roles = self.roles.clone();
        for (pt, role) in next.sections.iter().flat_map(roles_of) {
            if *roles.entry(pt).or_insert(role) != role {
                return Err(OfferError::PayloadType { pt });
            }
        }
        for section in next.sections.iter().filter(|section| section.line.receives) {
            // The stack sends a codec by one number, the first that it was told.
            let agreed = section.line.kind.and_then(|kind| self.first.get(&kind));
            let chosen = section.chosen.as_ref().map(|chosen| chosen.pt);
            if let Some((_, pt)) = agreed.zip(chosen).filter(|(agreed, chosen)| *agreed != chosen) {
                return Err(OfferError::PayloadType { pt });
            }
        }
        let streams = next.sections.iter().filter_map(|section| section.ssrc);
        let anew: HashSet<u32> =
            streams.map(|(ssrc, _)| ssrc).filter(|ssrc| !self.streams.contains(ssrc)).collect();
        if self.streams.len() + anew.len() > STREAMS {
            return Err(bad("the connection has named too many streams: connect anew"));
        }
        Ok(())
    }

    /// The description was answered.
    pub fn agree(&mut self, next: &Description) {
        self.roles.extend(next.sections.iter().flat_map(roles_of));
        for section in &next.sections {
            let chosen = section.line.kind.zip(section.chosen.as_ref());
            if let Some((kind, chosen)) = chosen {
                self.first.entry(kind).or_insert(chosen.pt);
            }
        }
        self.streams.extend(next.sections.iter().filter_map(|s| s.ssrc).map(|(ssrc, _)| ssrc));
        let before = std::mem::take(&mut self.places);
        let place = |(at, section): (usize, &Section)| {
            let mid = section.line.mid.clone();
            let before = before.get(at).filter(|before| before.mid == mid);
            Place {
                kind: section.line.kind,
                given_up: section.rejected,
                had_codec: section.chosen.is_some() || before.is_some_and(|place| place.had_codec),
                mid,
            }
        };
        self.places = next.sections.iter().enumerate().map(place).collect();
    }
}

fn roles_of(section: &Section) -> impl Iterator<Item = (u8, Role)> {
    let kind = section.line.kind.zip(section.chosen.as_ref());
    kind.into_iter().flat_map(|(kind, chosen)| chosen.roles(kind))
}
