//! The sections of an offer that a session uses: those that send for WHIP, those that receive for WHEP.

use windlass_protocol::{ErrorCode, limits};
use windlass_sfu::{MediaLine, TrackKind, media_lines};

use super::error::WhipWhepError;
use super::protocol::Protocol;
use crate::convert;

/// A section of an offer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub mid: String,
    pub kind: TrackKind,
}

/// The sections that the protocol uses: at least one, and at most the maximum number of tracks of a participant.
pub(super) fn sections(sdp: &str, protocol: Protocol) -> Result<Vec<Section>, WhipWhepError> {
    let (does, most): (fn(&MediaLine) -> bool, _) = match protocol {
        Protocol::Whip => (|line| line.sends, limits::PUBLISHED_TRACKS),
        Protocol::Whep => (|line| line.receives, limits::SUBSCRIBED_TRACKS),
    };
    let lines = media_lines(sdp).map_err(|error| convert::offer_error(&error))?;
    let used = lines.into_iter().filter(|line| does(line) && !line.mid.is_empty());
    let sections: Vec<_> =
        used.filter_map(|line| Some(Section { mid: line.mid, kind: line.kind? })).collect();
    if sections.len() > most {
        let message = format!("the offer has too many sections that {}", protocol.verb());
        return Err(WhipWhepError::new(ErrorCode::TooLarge, message));
    }
    if sections.is_empty() {
        let message = format!("the offer has no section that {}s", protocol.verb());
        return Err(WhipWhepError::new(ErrorCode::BadSdp, message));
    }
    Ok(sections)
}
