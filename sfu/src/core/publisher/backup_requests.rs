//! Tells publishers that subscribers cannot decode their tracks, so that they publish [backups](super::backup).

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use windlass_types::VideoCodec;

use super::backup::Votes;
use crate::api::{SfuEvent, TrackId, TrackKind};
use crate::core::output::Output;
use crate::core::peers::Peers;
use crate::core::subscriber::slot;
use crate::core::subscriber::view::View;
use crate::core::tracks::Tracks;

/// Asks for backups in the codecs that serve most of those who cannot decode the tracks: their publishers, or the nodes
/// of these.
pub(crate) fn request(
    now: Instant,
    tracks: &mut Tracks,
    peers: &Peers,
    outputs: &mut VecDeque<Output>,
) {
    let mut votes = votes(peers);
    for id in tracks.announced().map(|track| track.info.track).collect::<Vec<_>>() {
        let backup = tracks.get(id).and_then(|track| tracks.get(track.backup.id?));
        let backup = backup.map(|backup| backup.layers.codec());
        let Some(track) = tracks.get_mut(id) else { continue };
        // What tells a key frame from others is encrypted in some codecs.
        if track.info.kind != TrackKind::Video || track.info.encrypted {
            continue;
        }
        let mut votes = votes.remove(&id).unwrap_or_default();
        if let Some(remote) = &track.remote {
            let codecs = votes.codecs();
            if (votes.needed || track.backup.was_asked()) && track.backup.is_news(now, &codecs) {
                outputs.push_back(remote.request_backup(codecs));
            }
            continue;
        }
        for list in track.nodes.undecodable() {
            votes.needed |= !backup.flatten().is_some_and(|codec| list.contains(&codec));
            votes.add(list.to_vec());
        }
        // The codec of a backup is not known before its first packet.
        let serves = backup.is_some_and(|codec| codec.is_none_or(|codec| votes.is_best(codec)));
        let codecs = votes.codecs();
        if votes.needed && !codecs.is_empty() && !serves && track.backup.ask(now, &codecs) {
            let event = SfuEvent::BackupWanted { track: id, codecs };
            outputs.push_back(Output::Event(track.info.participant, event));
        }
    }
}

/// Codecs of the subscribers that cannot decode a track, by track.
fn votes(peers: &Peers) -> BTreeMap<TrackId, Votes> {
    let mut votes: BTreeMap<TrackId, Votes> = BTreeMap::new();
    for peer in peers.iter().filter(|peer| peer.link.connected) {
        let Some(rtc) = peer.link.stack.rtc() else { continue };
        for slot in
            peer.slots.iter().filter(|slot| slot.subscription.undecodable || slot.has_backup())
        {
            let Some(track) = slot.track else { continue };
            let decodes =
                |codec: &VideoCodec| slot::payload_type(rtc, slot.mid, Some(*codec)).is_some();
            let votes = votes.entry(track).or_default();
            votes.add(VideoCodec::ALL.into_iter().filter(decodes).collect());
            votes.needed |=
                slot.subscription.undecodable && !slot.subscription.view.is_some_and(View::hidden);
        }
    }
    votes
}
