//! An offer: its parsed session description and its lists, which must fit each other, the participant's permissions and
//! the limits.

pub(super) mod answer;
pub(super) mod negotiated;
pub(super) mod payload_types;
pub(super) mod sdp;
pub(super) mod stack_offer;

use std::collections::HashSet;

use str0m::change::{SdpAnswer, SdpOffer};

use self::sdp::{Description, MAX_MID, MediaLine};
use crate::api::{Answer, Offer, OfferError, Permissions, Publish, Subscribe, TrackId, TrackKind};
use crate::config::Limits;

/// An offer with its parsed session description, or the error in that.
pub struct ReadOffer {
    pub(crate) publish: Vec<Publish>,
    pub(crate) subscribe: Vec<Subscribe>,
    pub(crate) sdp: Result<(Description, SdpOffer), OfferError>,
}

/// An answer that is not yet written as text.
pub struct Answered {
    pub(crate) sdp: SdpAnswer,
    pub(crate) tracks: Vec<(String, TrackId)>,
}

impl ReadOffer {
    /// Parses an offer. Its session description may have at most `sdp_bytes` bytes.
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

/// State of a participant and its room, against which its lists are checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    /// Permissions of the participant.
    pub(crate) permissions: Permissions,
    /// Number of tracks that the participant publishes.
    pub(crate) published: usize,
    /// Number of tracks that the others of its room publish.
    pub(crate) others: usize,
}

/// What a track of a subscribe list is to the participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The participant may subscribe to the track.
    Track(TrackKind),
    /// The track has ended.
    Ended,
    /// There is no such track, or not for this participant.
    Unknown,
}

/// The lists of an offer, and the m-lines of its session description.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lists<'a> {
    pub(crate) publish: &'a [Publish],
    pub(crate) subscribe: &'a [Subscribe],
    pub(crate) lines: &'a [&'a MediaLine],
}

impl Lists<'_> {
    /// Checks the lists. `find` looks up a track of the subscribe list.
    pub(crate) fn check(
        self,
        limits: &Limits,
        standing: Standing,
        find: impl Fn(TrackId) -> Wanted,
    ) -> Result<(), OfferError> {
        let Lists { publish, subscribe, lines } = self;
        self.check_permissions(standing.permissions)?;
        let names_fit = publish.iter().all(|p| p.name.len() <= Publish::MAX_NAME);
        // A backup is part of its track, of which it is the only one.
        let count = publish.iter().filter(|p| p.backup_of.is_none()).count();
        if count > limits.published_tracks || !names_fit {
            return Err(OfferError::TooLarge);
        }
        // A participant with no more tracks than before is not refused, even if the limit has been lowered.
        let (more, all) = (count > standing.published, standing.others + count);
        if more && all > limits.tracks_per_room {
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
        let mut line_of = |mid: &str, kind: TrackKind| {
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
        for (i, entry) in publish.iter().enumerate() {
            let (line, bad) = line_of(&entry.mid, entry.kind)?;
            if !line.sends || !backs_up(entry, &publish[..i]) {
                return Err(bad);
            }
        }
        let mut wanted = HashSet::new();
        for subscribe in subscribe {
            if !wanted.insert(subscribe.track) {
                return Err(OfferError::SubscribedTwice { track: subscribe.track });
            }
            let kind = match find(subscribe.track) {
                Wanted::Track(kind) => kind,
                // A track may end while the offer is on its way: its m-line stays silent.
                Wanted::Ended => continue,
                Wanted::Unknown => {
                    return Err(OfferError::UnknownTrack { track: subscribe.track });
                }
            };
            let (line, bad) = line_of(&subscribe.mid, kind)?;
            if !line.receives {
                return Err(bad);
            }
        }
        Ok(())
    }

    /// Refuses an offer without the permissions for it.
    fn check_permissions(self, permissions: Permissions) -> Result<(), OfferError> {
        if !permissions.publish && !self.publish.is_empty() {
            return Err(OfferError::NotAllowed("publish"));
        }
        if !permissions.subscribe && !self.subscribe.is_empty() {
            return Err(OfferError::NotAllowed("subscribe"));
        }
        Ok(())
    }
}

/// Whether an entry is no backup, or the only backup of an entry before it.
fn backs_up(entry: &Publish, before: &[Publish]) -> bool {
    let Some(mid) = &entry.backup_of else { return true };
    let video = |other: &&Publish| {
        other.mid == *mid && other.kind == TrackKind::Video && other.backup_of.is_none()
    };
    let first = before.iter().all(|other| other.backup_of.as_ref() != Some(mid));
    entry.kind == TrackKind::Video && first && before.iter().any(|other| video(&other))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDING: Standing = Standing {
        permissions: Permissions { publish: true, subscribe: true, enhance: true },
        published: 0,
        others: 0,
    };

    fn line(mid: &str, sends: bool) -> MediaLine {
        MediaLine {
            mid: mid.into(),
            kind: Some(TrackKind::Video),
            sends,
            receives: !sends,
            codec: true,
            application: false,
        }
    }

    fn check(lists: Lists<'_>, standing: Standing, found: Wanted) -> Result<(), OfferError> {
        lists.check(&Limits::default(), standing, |_| found)
    }

    #[test]
    fn what_is_published_needs_a_line_that_sends_and_the_permission() {
        let publish = [Publish {
            mid: "0".into(),
            kind: TrackKind::Video,
            name: "camera".into(),
            max: None,
            encrypted: false,
            backup_of: None,
        }];
        let (sends, receives) = (line("0", true), line("0", false));
        let with = |line: Option<&MediaLine>, standing| {
            let lines: Vec<&MediaLine> = line.into_iter().collect();
            let lists = Lists { publish: &publish, subscribe: &[], lines: &lines };
            check(lists, standing, Wanted::Unknown)
        };
        assert_eq!(with(Some(&sends), STANDING), Ok(()));
        let bad = Err(OfferError::BadMid { mid: "0".into() });
        assert_eq!(with(Some(&receives), STANDING), bad);
        assert_eq!(with(None, STANDING), bad);
        let permissions = Permissions { publish: false, ..STANDING.permissions };
        let refused = with(Some(&sends), Standing { permissions, ..STANDING });
        assert_eq!(refused, Err(OfferError::NotAllowed("publish")));
        let full = Standing { others: Limits::default().tracks_per_room, ..STANDING };
        assert_eq!(with(Some(&sends), full), Err(OfferError::TooManyTracks));
        let before = Standing { published: 1, ..full };
        assert_eq!(with(Some(&sends), before), Ok(()));
    }

    #[test]
    fn a_backup_stands_behind_the_video_whose_only_backup_it_is() {
        let entry = |mid: &str, backup_of: Option<&str>| Publish {
            mid: mid.into(),
            kind: TrackKind::Video,
            name: "camera".into(),
            max: None,
            encrypted: false,
            backup_of: backup_of.map(str::to_owned),
        };
        let lines = ["0", "1", "2"].map(|mid| line(mid, true));
        let lines: Vec<&MediaLine> = lines.iter().collect();
        let with = |publish: &[Publish]| {
            let lists = Lists { publish, subscribe: &[], lines: &lines };
            check(lists, STANDING, Wanted::Unknown)
        };
        let bad = |mid: &str| Err(OfferError::BadMid { mid: mid.into() });
        let (camera, backup) = (entry("0", None), entry("1", Some("0")));
        assert_eq!(with(&[camera.clone(), backup.clone()]), Ok(()));
        assert_eq!(with(&[backup.clone(), camera.clone()]), bad("1"));
        assert_eq!(with(&[entry("0", Some("0"))]), bad("0"));
        assert_eq!(with(&[camera.clone(), backup.clone(), entry("2", Some("0"))]), bad("2"));
        assert_eq!(with(&[camera, backup, entry("2", Some("1"))]), bad("2"));
    }

    #[test]
    fn a_track_is_subscribed_to_once_and_may_have_ended() {
        let track = TrackId(7);
        let one = Subscribe { mid: "0".into(), track, max: None };
        let twice = [one.clone(), one];
        let receives = line("0", false);
        let lines = [&receives];
        let with = |count| Lists { publish: &[], subscribe: &twice[..count], lines: &lines };
        assert_eq!(check(with(1), STANDING, Wanted::Track(TrackKind::Video)), Ok(()));
        let twice = Err(OfferError::SubscribedTwice { track });
        assert_eq!(check(with(2), STANDING, Wanted::Track(TrackKind::Video)), twice);
        let unknown = Err(OfferError::UnknownTrack { track });
        assert_eq!(check(with(1), STANDING, Wanted::Unknown), unknown);
        let silent = Lists { lines: &[], ..with(1) };
        assert_eq!(check(silent, STANDING, Wanted::Ended), Ok(()));
    }
}
