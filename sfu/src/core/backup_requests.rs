//! Tells publishers that subscribers cannot decode their tracks, so that they publish [backups](super::backup).

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use windlass_types::VideoCodec;

use super::backup;
use super::output::Output;
use super::peers::Peers;
use super::slot;
use super::tracks::Tracks;
use super::view::View;
use crate::api::{Kind, SfuEvent, TrackId};

/// The codecs that subscribers decode who cannot decode the track, a list for each.
type Lists = Vec<Vec<VideoCodec>>;

/// Asks for backups in the codecs that serve most of those who cannot decode the tracks: their publishers, or the nodes
/// of these.
pub(super) fn request(
    now: Instant,
    tracks: &mut Tracks,
    peers: &Peers,
    outputs: &mut VecDeque<Output>,
) {
    let mut subscribers = lists(peers);
    let codec_of = |tracks: &Tracks, id: TrackId| tracks.get(id).map(|track| track.layers.codec());
    for id in tracks.announced().map(|track| track.info.track).collect::<Vec<_>>() {
        let backup = tracks.get(id).and_then(|track| track.backup.id);
        let backup = backup.and_then(|backup| codec_of(tracks, backup));
        let Some(track) = tracks.get_mut(id) else { continue };
        // What tells a key frame from others is encrypted in some codecs.
        if track.info.kind != Kind::Video || track.info.encrypted {
            continue;
        }
        let lists = subscribers.remove(&id).unwrap_or_default();
        let lists = lists.iter().map(Vec::as_slice).chain(track.nodes.undecodable());
        let codecs = backup::best(&lists.collect::<Vec<_>>());
        if let Some(remote) = &track.remote {
            if track.backup.is_news(now, &codecs) {
                outputs.push_back(remote.request_backup(codecs));
            }
            continue;
        }
        // The codec of a backup is not known before its first packet.
        let serves = backup.is_some_and(|codec| codec.is_none_or(|codec| codecs.contains(&codec)));
        if !codecs.is_empty() && !serves && track.backup.ask(now, &codecs) {
            let event = SfuEvent::BackupWanted { track: id, codecs };
            outputs.push_back(Output::Event(track.info.participant, event));
        }
    }
}

/// What those subscribers decode who cannot decode a track, by track. Who does not show it does not need it.
fn lists(peers: &Peers) -> BTreeMap<TrackId, Lists> {
    let mut lists: BTreeMap<TrackId, Lists> = BTreeMap::new();
    for peer in peers.iter().filter(|peer| peer.link.connected) {
        let Some(rtc) = peer.link.stack.rtc() else { continue };
        let shown = peer.slots.iter().filter(|slot| !slot.view.is_some_and(View::hidden));
        for slot in shown.filter(|slot| slot.undecodable || slot.has_backup()) {
            let Some(track) = slot.track else { continue };
            let decodes =
                |codec: &VideoCodec| slot::payload_type(rtc, slot.mid, Some(*codec)).is_some();
            let list = VideoCodec::ALL.into_iter().filter(decodes).collect();
            lists.entry(track).or_default().push(list);
        }
    }
    lists
}
