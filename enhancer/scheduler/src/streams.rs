//! All streams, and the fair share of each.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_types::{Owner, StreamId};

use crate::shares::Shares;
use crate::stream::Stream;

/// Half-life of the inference time that was spent on a stream, as fair shares count it.
const SPENT_HALF_LIFE: Duration = Duration::from_millis(1500);

/// All known streams by number, and their fair shares.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    by_id: BTreeMap<StreamId, Stream>,
    shares: Shares,
    /// Whether streams have come, gone or changed owners since the shares were computed.
    regroup: bool,
}

impl Streams {
    /// A stream, if it is known.
    pub(crate) fn get(&self, id: StreamId) -> Option<&Stream> {
        self.by_id.get(&id)
    }

    /// A stream to change, if it is known.
    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.by_id.get_mut(&id)
    }

    /// A stream, created if it is not known.
    pub(crate) fn get_or_new(&mut self, id: StreamId, now: Duration) -> &mut Stream {
        let regroup = &mut self.regroup;
        self.by_id.entry(id).or_insert_with(|| {
            *regroup = true;
            Stream::new(id, now)
        })
    }

    /// All streams by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StreamId, &Stream)> {
        self.by_id.iter().map(|(&id, stream)| (id, stream))
    }

    /// All streams by number, to change.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (StreamId, &mut Stream)> {
        self.by_id.iter_mut().map(|(&id, stream)| (id, stream))
    }

    /// Number of known streams.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Forgets a stream.
    pub(crate) fn remove(&mut self, id: StreamId) -> Option<Stream> {
        let gone = self.by_id.remove(&id);
        self.regroup |= gone.is_some();
        gone
    }

    /// Forgets all streams for which `stays` is false.
    pub(crate) fn retain(&mut self, mut stays: impl FnMut(&mut Stream) -> bool) {
        let before = self.by_id.len();
        self.by_id.retain(|_, stream| stays(stream));
        self.regroup |= self.by_id.len() < before;
    }

    /// Sets the room and publisher of a stream.
    pub(crate) fn set_owner(&mut self, id: StreamId, owner: Owner) {
        if let Some(stream) = self.by_id.get_mut(&id).filter(|s| s.share.owner != owner) {
            stream.share.owner = owner;
            self.regroup = true;
        }
    }

    /// Gives each stream its fair share, and lets what was spent on it fade.
    pub(crate) fn update_shares(&mut self, elapsed: Duration) {
        if std::mem::take(&mut self.regroup) {
            let shares = self.shares.of(self.by_id.values().map(|stream| stream.share.owner));
            for (stream, &share) in self.by_id.values_mut().zip(shares) {
                stream.share.share = share;
            }
        }
        let left = (-elapsed.as_secs_f64() / SPENT_HALF_LIFE.as_secs_f64()).exp2();
        self.by_id.values_mut().for_each(|stream| stream.share.spent_s *= left);
    }

    /// Inference seconds that were spent on all streams lately.
    pub(crate) fn spent_s(&self) -> f64 {
        self.by_id.values().map(|stream| stream.share.spent_s).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_streams_that_come_and_go_and_spending_fades() {
        let mut streams = Streams::default();
        for id in 0..2 {
            streams.get_or_new(StreamId(id), Duration::ZERO).share.spent_s = 1.0;
        }
        streams.update_shares(SPENT_HALF_LIFE);
        assert!((streams.spent_s() - 1.0).abs() < 1e-9);
        let share = |streams: &Streams| streams.get(StreamId(1)).map(|s| s.share.share);
        assert_eq!(share(&streams), Some(0.5));
        streams.retain(|stream| stream.share.owner == Owner::alone(StreamId(1)));
        streams.update_shares(Duration::ZERO);
        assert_eq!((share(&streams), streams.len()), (Some(1.0), 1));
    }
}
