//! State that a connection has negotiated, and the check of later offers against it.
//!
//! The stack changes its state while it reads an offer, and stops in the middle at a contradiction to an earlier offer.
//! So this file refuses such an offer before the stack reads it.

use std::collections::{BTreeMap, HashMap, HashSet};

use windlass_types::VideoCodec;

use super::payload_types::{Chosen, Role};
use super::sdp::{Description, Section};
use crate::api::{OfferError, TrackKind};

/// Maximum number of SSRCs that a connection may name in all its offers: the stack keeps each of them.
const MAX_SSRCS: usize = 256;

/// One m-line of the last offer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    mid: String,
    kind: Option<TrackKind>,
    /// Whether the client rejected the m-line, for good.
    rejected: bool,
    /// Whether the m-line has had a common codec. The stack keeps the codec even if a later offer has none.
    had_codec: bool,
}

impl Line {
    /// Whether another section may reuse the m-line (RFC 8829 §5.2.2).
    fn is_reusable(&self) -> bool {
        self.kind.is_some() && (self.rejected || !self.had_codec)
    }
}

/// The negotiated state of one connection.
#[derive(Debug, Default)]
pub(crate) struct Negotiated {
    lines: Vec<Line>,
    /// Meaning of each payload type, for the connection's life (RFC 3264 §8.3.2).
    roles: BTreeMap<u8, Role>,
    /// The first payload type of each codec of video, and of Opus (`None`).
    first_types: HashMap<Option<VideoCodec>, u8>,
    ssrcs: HashSet<u32>,
}

fn bad(why: &str) -> OfferError {
    OfferError::BadSdp(why.to_owned())
}

impl Negotiated {
    /// Whether the description may follow the last one.
    pub(crate) fn check(&self, next: &Description) -> Result<(), OfferError> {
        if next.sections.len() < self.lines.len() {
            return Err(bad("m-lines are missing that the last offer had"));
        }
        for (at, section) in next.sections.iter().enumerate() {
            let mid = &section.line.mid;
            if self.lines.iter().enumerate().any(|(i, line)| i != at && line.mid == *mid) {
                return Err(bad("m-lines are in another order than in the last offer"));
            }
            let Some(line) = self.lines.get(at) else { continue };
            let fits = if line.mid == *mid {
                line.kind == section.line.kind && (section.rejected || !line.rejected)
            } else {
                line.is_reusable() && section.line.kind.is_some()
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
            // The stack sends a codec with one payload type, the first that it read.
            let other = |chosen: &&Chosen| {
                self.first_types.get(&chosen.codec).is_some_and(|first| *first != chosen.pt)
            };
            if let Some(&Chosen { pt, .. }) = section.chosen.iter().find(other) {
                return Err(OfferError::PayloadType { pt });
            }
        }
        let ssrcs = next.sections.iter().filter_map(|section| section.ssrcs);
        let new: HashSet<u32> =
            ssrcs.map(|offered| offered.media).filter(|ssrc| !self.ssrcs.contains(ssrc)).collect();
        if self.ssrcs.len() + new.len() > MAX_SSRCS {
            return Err(bad("the connection has named too many streams: open a new connection"));
        }
        Ok(())
    }

    /// Notes a description that was answered.
    pub(crate) fn commit(&mut self, next: &Description) {
        self.roles.extend(next.sections.iter().flat_map(roles_of));
        for section in &next.sections {
            for chosen in &section.chosen {
                self.first_types.entry(chosen.codec).or_insert(chosen.pt);
            }
        }
        self.ssrcs
            .extend(next.sections.iter().filter_map(|s| s.ssrcs).map(|offered| offered.media));
        let before = std::mem::take(&mut self.lines);
        let line = |(at, section): (usize, &Section)| {
            let mid = section.line.mid.clone();
            let before = before.get(at).filter(|before| before.mid == mid);
            Line {
                kind: section.line.kind,
                rejected: section.rejected,
                had_codec: section.line.codec || before.is_some_and(|line| line.had_codec),
                mid,
            }
        };
        self.lines = next.sections.iter().enumerate().map(line).collect();
    }
}

fn roles_of(section: &Section) -> impl Iterator<Item = (u8, Role)> {
    section.chosen.iter().flat_map(Chosen::roles)
}
