//! Tells publishers that subscribers cannot decode their tracks, so that they publish [backups](super::backup).

use std::collections::{BTreeMap, VecDeque};

use windlass_types::VideoCodec;

use super::backup::Backup;
use super::output::Output;
use super::peers::Peers;
use super::slot;
use super::track::Track;
use super::tracks::Tracks;
use crate::api::{Kind, SfuEvent, TrackId};

/// Tells publishers of subscribers who cannot decode their tracks, once for each list of codecs.
pub(super) fn request(tracks: &mut Tracks, peers: &Peers, outputs: &mut VecDeque<Output>) {
    let mut wanted: BTreeMap<TrackId, Vec<VideoCodec>> = BTreeMap::new();
    for peer in peers.iter().filter(|peer| peer.link.connected) {
        let Some(rtc) = peer.link.stack.rtc() else { continue };
        for slot in peer.slots.iter().filter(|slot| slot.undecodable) {
            let Some(track) = slot.track else { continue };
            let codecs = wanted.entry(track).or_insert_with(|| VideoCodec::ALL.to_vec());
            codecs.retain(|&codec| slot::payload_type(rtc, slot.mid, Some(codec)).is_some());
        }
    }
    for (id, codecs) in wanted {
        outputs.extend(tracks.get_mut(id).and_then(|track| want(track, codecs)));
    }
}

/// Asks the publisher of a track for a backup in one of these codecs, unless it was asked for that or has one.
pub(super) fn want(track: &mut Track, codecs: Vec<VideoCodec>) -> Option<Output> {
    let asked = match &track.backup {
        Backup::None => false,
        Backup::Wanted(asked) => *asked == codecs,
        Backup::Has(_) | Backup::Of(_) => true,
    };
    // What tells a key frame from others is encrypted in some codecs.
    if asked || codecs.is_empty() || track.info.encrypted || track.info.kind != Kind::Video {
        return None;
    }
    track.backup = Backup::Wanted(codecs.clone());
    if let Some(remote) = &track.remote {
        return Some(remote.request_backup(codecs));
    }
    let event = SfuEvent::BackupWanted { track: track.info.track, codecs };
    Some(Output::Event(track.info.participant, event))
}
