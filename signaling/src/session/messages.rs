//! Handling of the client's messages by a [`Session`].

use std::time::Instant;

use windlass_protocol::{
    ClientMessage, ErrorCode, Grant, Join, Offer, ProtocolError, ServerMessage, SetRung,
    View as ViewMessage,
};
use windlass_sfu::{JoinOptions, TrackId, View};
use windlass_types::Size;

use super::{Action, Phase, RateLimit, Session};
use crate::convert;

impl Session {
    pub(super) fn message(
        &mut self,
        now: Instant,
        id: Option<u32>,
        message: ClientMessage,
    ) -> Result<(), ProtocolError> {
        match message {
            ClientMessage::Join(join) => return self.join(id, join),
            ClientMessage::Ping { time } => self.send(ServerMessage::Pong { time }),
            ClientMessage::IceServers {} => {
                self.inside()?;
                self.actions.push_back(Action::IceServers);
            }
            ClientMessage::Arrived {} => {
                self.inside()?;
                if matches!(self.phase, Phase::Inside { moving: Some(_), .. }) {
                    self.actions.push_back(Action::Arrived);
                }
            }
            ClientMessage::Moderate(request) => {
                self.inside()?;
                self.may(Grant::Moderate)?;
                if matches!(self.phase, Phase::Inside { loopback: true, .. }) {
                    let message = "a loopback room has no other participants";
                    return Err(ProtocolError::new(ErrorCode::Forbidden, message));
                }
                self.actions.push_back(Action::Moderate { id, request });
            }
            ClientMessage::Leave {} => {
                if !matches!(self.phase, Phase::Entering { waits: true, .. }) {
                    self.inside()?;
                }
                self.phase = Phase::Outside;
                self.outside = now;
                self.publishing.clear();
                self.actions.push_back(Action::Leave);
            }
            // `Request::parse` accepts no offer without an id.
            ClientMessage::Offer(offer) => return self.offer(now, id.unwrap_or_default(), offer),
            ClientMessage::Mute { track, muted } => return self.mute(now, &track, muted),
            ClientMessage::SetRung(SetRung { track, max }) => {
                let tracks = self.inside()?;
                let id = convert::track_id(&track, |id| tracks.contains(id))?;
                self.actions.push_back(Action::SetMaxRung(id, max));
            }
            ClientMessage::View(view) => {
                if let Some(id) = self.track_or_gone(&view.track)? {
                    let ViewMessage { width, height, pinned, .. } = view;
                    let size = Size::new(width, height);
                    self.actions.push_back(Action::SetView(id, View { size, pinned }));
                }
            }
            ClientMessage::KeyAnchor { track } => {
                if let Some(id) = self.track_or_gone(&track)? {
                    self.may(Grant::Enhance)?;
                    self.actions.push_back(Action::KeyAnchor(id));
                }
            }
            ClientMessage::Uplink(uplink) => {
                let (own, _) = self.own()?;
                if let Ok(id) = convert::track_id(&uplink.track, |id| own.contains_key(id)) {
                    self.actions.push_back(Action::Uplink(id, uplink.report));
                }
            }
            ClientMessage::Send(send) => return self.send_data(now, id, send),
            ClientMessage::Attributes(change) => return self.set_attributes(now, id, change),
            ClientMessage::Report(report) => {
                if let Some(id) = self.track_or_gone(&report.track)? {
                    self.actions.push_back(Action::Report(id, report));
                }
            }
        }
        Ok(())
    }

    fn offer(&mut self, now: Instant, id: u32, offer: Offer) -> Result<(), ProtocolError> {
        self.inside()?;
        if !offer.publish.is_empty() {
            self.may(Grant::Publish)?;
        }
        if !offer.subscribe.is_empty() {
            self.may(Grant::Subscribe)?;
        }
        check_rate(self.offers.take(now), self.config.offers, "offers")?;
        let new = offer.publish.iter().filter(|p| !self.publishing.contains(&p.mid)).count();
        let allowed = (0..new).all(|_| self.tracks.take(now));
        check_rate(allowed, self.config.tracks, "new tracks")?;
        self.publishing = offer.publish.iter().map(|p| p.mid.clone()).collect();
        let offer = convert::offer(offer)?;
        self.actions.push_back(Action::Offer { id, offer });
        Ok(())
    }

    fn mute(&mut self, now: Instant, track: &str, muted: bool) -> Result<(), ProtocolError> {
        self.inside()?;
        check_rate(self.mutes.take(now), self.config.mutes, "mutes")?;
        let (own, held) = self.own()?;
        let id = convert::track_id(track, |id| own.contains_key(id))?;
        if held.contains(&id) && !muted {
            let message = "an operator has muted this track";
            return Err(ProtocolError::new(ErrorCode::Forbidden, message));
        }
        own.insert(id, muted);
        if !held.contains(&id) {
            self.actions.push_back(Action::SetMuted(id, muted));
        }
        Ok(())
    }

    /// A track of the room; `None`: there is none. Its absence is no error: the message may have crossed with the end
    /// of the track.
    fn track_or_gone(&self, track: &str) -> Result<Option<TrackId>, ProtocolError> {
        let tracks = self.inside()?;
        Ok(convert::track_id(track, |id| tracks.contains(id)).ok())
    }

    fn join(&mut self, request: Option<u32>, join: Join) -> Result<(), ProtocolError> {
        if !matches!(self.phase, Phase::Outside) {
            let message = "this socket has joined a room already";
            return Err(ProtocolError::new(ErrorCode::AlreadyJoined, message));
        }
        let decodes_anchors = join.decodes_anchors();
        let Join { room, name, loopback, token, ticket, seat, attributes, .. } = join;
        self.phase = Phase::Entering { request, room: room.clone(), loopback, waits: false };
        let options = JoinOptions { loopback, decodes_anchors, ..JoinOptions::default() };
        self.actions.push_back(Action::Join {
            room,
            name,
            token,
            ticket,
            seat,
            attributes,
            options,
        });
        Ok(())
    }
}

/// Refuses a message that comes more often than its limit allows.
pub(super) fn check_rate(allowed: bool, limit: RateLimit, what: &str) -> Result<(), ProtocolError> {
    let message = || format!("more than {} {what} a second", limit.per_second);
    allowed.then_some(()).ok_or_else(|| ProtocolError::new(ErrorCode::RateLimited, message()))
}
