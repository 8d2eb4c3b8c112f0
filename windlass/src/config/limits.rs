//! Options that limit clients.

use std::str::FromStr;

use anyhow::Result;
use windlass_sfu::{Limits, share_of_one};
use windlass_signaling::AdmissionLimits;

use super::Settings;
use super::values::parts;

/// Limits of one address: `sockets=N,joins=N,stun=N`, each of which may be left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MaxPerIp {
    /// Maximum signalling sockets at a time.
    sockets: Option<usize>,
    /// Maximum joins per minute.
    joins: Option<u32>,
    /// Maximum STUN requests and other datagrams per second, before a call.
    stun: Option<u32>,
}

impl MaxPerIp {
    /// Whether the limit on sockets of one address is lifted.
    pub(super) fn is_unbounded(self) -> bool {
        self.sockets == Some(0)
    }
}

impl FromStr for MaxPerIp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut max = MaxPerIp::default();
        for part in parts(text) {
            let (name, number) = part.split_once('=').unwrap_or((part, ""));
            let number: u32 = number
                .parse()
                .map_err(|_| format!("`{part}` is no limit: write sockets=N, joins=N or stun=N"))?;
            let twice = match name {
                "sockets" => max.sockets.replace(number as usize).is_some(),
                "joins" => max.joins.replace(number).is_some(),
                "stun" => max.stun.replace(number).is_some(),
                _ => return Err(format!("`{name}` is none of sockets, joins, stun")),
            };
            if twice {
                return Err(format!("`{text}` has two limits of {name}"));
            }
        }
        Ok(max)
    }
}

/// Maximum tracks of a room, per participant: camera, microphone, screen, and the screen's sound.
const TRACKS_PER_PARTICIPANT: usize = 4;

pub(super) fn limits(settings: &Settings) -> Result<Limits> {
    let participants = settings.max_total_participants();
    let participants_per_room = settings.max_participants();
    for (name, count) in
        [("max-total-participants", participants), ("max-participants", participants_per_room)]
    {
        allow!(count > 0, name, "must be at least 1");
    }
    let usual = Limits::default();
    let tracks = participants_per_room.saturating_mul(TRACKS_PER_PARTICIPANT);
    Ok(Limits {
        rooms: rooms(participants),
        participants,
        participants_per_room,
        tracks_per_room: usual.tracks_per_room.max(tracks),
        unauthenticated_per_second: settings
            .max_per_ip
            .and_then(|max| max.0.stun)
            .unwrap_or(usual.unauthenticated_per_second),
        ..usual
    })
}

/// Maximum number of rooms for a number of participants: the default, or a fifth of the participants if that is more.
/// Nobody begins a room without joining it.
fn rooms(participants: usize) -> usize {
    participants.min(Limits::default().rooms).max(participants / 5)
}

/// Limits on who may come in. One address may have at most a quarter of what all clients together have.
pub(super) fn admission(settings: &Settings, limits: &Limits) -> Result<AdmissionLimits> {
    let max = settings.max_per_ip.map_or_else(MaxPerIp::default, |max| max.0);
    let sockets = limits.participants.saturating_mul(2);
    let share = share_of_one(sockets);
    let of_one = max.sockets.unwrap_or(share);
    allow!(
        of_one <= share,
        "max-per-ip",
        "allows {of_one} sockets: one address may have at most {share}, a quarter of all (twice max-total-participants); \
         sockets=0 where all clients share one address"
    );
    Ok(AdmissionLimits {
        sockets,
        sockets_per_address: of_one,
        joins_per_address: max.joins.unwrap_or(AdmissionLimits::default().joins_per_address),
        participants: limits.participants,
        rooms: limits.rooms,
    })
}

#[cfg(test)]
mod tests {
    use super::rooms;

    #[test]
    fn rooms_follow_the_participants_that_there_may_be() {
        assert_eq!([10, 200, 1000, 5000].map(rooms), [10, 200, 200, 1000]);
    }
}
