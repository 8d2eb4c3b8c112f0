//! Backups: the video of a track once more, in a codec for those who cannot decode the track's own.
//!
//! A publisher that is [told](super::backup_requests) of such subscribers may publish a backup
//! ([`backup_of`](crate::api::Publish::backup_of)). It is a track of its own here, with layers, key frames and pauses.
//! Nobody else hears of it: on the m-lines of those who need it, its packets take the place of the other track's
//! ([`source`](super::slot::Slot::source)). While nobody needs it, all of its layers are paused. It has no anchors.

use windlass_types::VideoCodec;

use crate::api::TrackId;

/// What a track has to do with backups.
#[derive(Debug, Default)]
pub(super) enum Backup {
    /// The track has no backup.
    #[default]
    None,
    /// The track has no backup, and its publisher was told that these codecs would do.
    Wanted(Vec<VideoCodec>),
    /// The track has this backup.
    Has(TrackId),
    /// The track is the backup of this one.
    Of(TrackId),
}

impl Backup {
    /// The track's backup.
    pub(super) fn id(&self) -> Option<TrackId> {
        if let Backup::Has(backup) = self { Some(*backup) } else { None }
    }

    /// The track of which this one is the backup.
    pub(super) fn of(&self) -> Option<TrackId> {
        if let Backup::Of(of) = self { Some(*of) } else { None }
    }

    /// Whether the track is a backup.
    pub(super) fn is_one(&self) -> bool {
        self.of().is_some()
    }
}
