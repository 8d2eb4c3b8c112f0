//! Backups: a second encoding of a track's video, for subscribers that cannot decode the track's codec.
//!
//! A publisher that is [asked for a backup](super::backup_requests) may publish one
//! ([`backup_of`](crate::api::Publish::backup_of)). A backup is a track of its own here, with layers, key frames and
//! pauses. It is not announced to others: on the m-lines of subscribers that need it, its packets replace those of the
//! other track ([`source`](crate::core::subscriber::slot::Slot::source)). While nobody needs it, all of its layers are
//! paused. It has no anchors.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use windlass_types::VideoCodec;

use crate::api::TrackId;

/// Minimum time between two requests for backups with different codecs: each may make the publisher negotiate.
const MIN_INTERVAL: Duration = Duration::from_secs(5);
/// Time after which a request that is still open is repeated: the publisher may not have been able to answer.
const REPEAT: Duration = Duration::from_secs(30);

/// A track's state for backups.
#[derive(Debug, Default)]
pub(crate) struct Backup {
    /// The track's backup.
    pub(crate) id: Option<TrackId>,
    /// The track of which this one is the backup.
    pub(crate) of: Option<TrackId>,
    /// When the publisher was last asked for a backup, and in which codecs.
    asked: Option<(Instant, Vec<VideoCodec>)>,
}

impl Backup {
    /// Whether the track is a backup.
    pub(crate) fn is_one(&self) -> bool {
        self.of.is_some()
    }

    /// Takes in which codecs a backup is needed. Returns whether the publisher is to be asked for it now.
    pub(crate) fn ask(&mut self, now: Instant, codecs: &[VideoCodec]) -> bool {
        let due = self.asked.as_ref().is_none_or(|(at, asked)| {
            now >= *at + if asked == codecs { REPEAT } else { MIN_INTERVAL }
        });
        if due {
            self.asked = Some((now, codecs.to_vec()));
        }
        due
    }

    /// Whether somebody was asked for a backup.
    pub(crate) fn was_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Takes what another node is to know of the codecs that are needed here. Returns whether it does not know it yet.
    pub(crate) fn is_news(&mut self, now: Instant, codecs: &[VideoCodec]) -> bool {
        let known = self.asked.as_ref().map_or(&[][..], |(_, codecs)| codecs);
        known != codecs && self.ask(now, codecs)
    }
}

/// Codecs of each subscriber that cannot decode a track.
#[derive(Debug, Default)]
pub(crate) struct Votes {
    lists: Vec<Vec<VideoCodec>>,
    /// Whether one of them shows the track and has no picture of it.
    pub(crate) needed: bool,
}

impl Votes {
    /// Adds a subscriber.
    pub(crate) fn add(&mut self, codecs: Vec<VideoCodec>) {
        self.lists.push(codecs);
    }

    /// The number of those who decode a codec.
    fn count(&self, codec: VideoCodec) -> usize {
        self.lists.iter().filter(|list| list.contains(&codec)).count()
    }

    /// The codecs that serve somebody: those that serve most first, then the preferred ones.
    pub(crate) fn codecs(&self) -> Vec<VideoCodec> {
        let mut codecs = VideoCodec::ALL.to_vec();
        codecs.retain(|&codec| self.count(codec) > 0);
        codecs.sort_by_key(|&codec| Reverse(self.count(codec)));
        codecs
    }

    /// Whether no other codec serves more of them.
    pub(crate) fn is_best(&self, codec: VideoCodec) -> bool {
        VideoCodec::ALL.into_iter().all(|other| self.count(other) <= self.count(codec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VP8: VideoCodec = VideoCodec::Vp8;
    const H264: VideoCodec = VideoCodec::H264;
    const AV1: VideoCodec = VideoCodec::Av1;

    #[test]
    fn codecs_that_serve_most_come_first_and_nobody_takes_them_from_others() {
        let of = |lists: &[&[VideoCodec]]| {
            let mut votes = Votes::default();
            for list in lists {
                votes.add(list.to_vec());
            }
            votes
        };
        assert_eq!(of(&[]).codecs(), []);
        assert_eq!(of(&[&[]]).codecs(), []);
        assert_eq!(of(&[&[H264, VP8]]).codecs(), [VP8, H264]);
        assert_eq!(of(&[&[H264, VP8], &[H264]]).codecs(), [H264, VP8]);
        let three = of(&[&[VP8], &[VP8], &[AV1]]);
        assert_eq!(three.codecs(), [VP8, AV1]);
        assert!(three.is_best(VP8) && !three.is_best(AV1));
        assert!(of(&[&[VP8], &[AV1]]).is_best(AV1), "none serves more");
    }

    #[test]
    fn a_request_is_repeated_and_others_wait_a_little() {
        let (mut backup, now) = (Backup::default(), Instant::now());
        assert!(backup.ask(now, &[VP8]) && !backup.ask(now, &[H264]));
        assert!(!backup.ask(now + MIN_INTERVAL, &[VP8]));
        assert!(backup.ask(now + MIN_INTERVAL, &[H264]));
        assert!(backup.ask(now + MIN_INTERVAL + REPEAT, &[H264]));
    }

    #[test]
    fn another_node_hears_what_has_changed() {
        let (mut backup, now) = (Backup::default(), Instant::now());
        assert!(!backup.is_news(now, &[]));
        assert!(backup.is_news(now, &[VP8]) && !backup.is_news(now + REPEAT, &[VP8]));
        assert!(backup.is_news(now + REPEAT, &[]));
    }
}
