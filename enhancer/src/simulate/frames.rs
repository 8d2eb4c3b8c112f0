//! The frames of made-up streams.

use std::time::Duration;

use windlass_media::StreamId;

use super::events::Random;
use super::quality::Watching;
use super::scenario::Scenario;
use crate::schedule::{Candidate, Tier};

/// A key frame's bytes over those of another.
const KEY: f64 = 8.0;
/// Chromium refreshes its golden frame about so often.
const GOLDEN_EVERY: u64 = 80;

/// One stream.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub group: usize,
    pub id: StreamId,
    pub seen: Watching,
    every: Duration,
    next: Duration,
    end: Duration,
    number: u64,
    keys_every: u64,
    bytes: f64,
    size: (u32, u32),
    most_scale: usize,
}

/// All streams, with phases of their own.
pub(super) fn sources(scenario: &Scenario, random: &mut Random) -> Vec<Source> {
    let mut sources = Vec::new();
    for (number, group) in scenario.streams.iter().enumerate() {
        let every = Duration::from_secs_f64(1.0 / group.fps);
        for _ in 0..group.count {
            let joins = group.joins_at_s + group.joins_over_s * random.share();
            let next = Duration::from_secs_f64(joins) + every.mul_f64(random.share());
            let end = group.leaves_at_s.map_or(Duration::MAX, Duration::from_secs_f64);
            sources.push(Source {
                group: number,
                id: StreamId(u32::try_from(sources.len()).unwrap_or(u32::MAX)),
                seen: Watching::new(
                    group.best_db,
                    group.half_life,
                    group.kbps * 125.0 / group.fps,
                    Duration::from_secs_f64(group.watched_after_ms / 1e3),
                ),
                every,
                next,
                end,
                number: 0,
                keys_every: group.keys_every,
                bytes: group.kbps * 125.0 / group.fps,
                size: (group.width, group.height),
                most_scale: group.most_scale,
            });
        }
    }
    sources
}

impl Source {
    /// The next frame that has arrived by `now`; its name is the caller's.
    pub fn next(&mut self, now: Duration, random: &mut Random) -> Option<Candidate> {
        if self.next > now || self.next >= self.end {
            return None;
        }
        let key = self.number == 0
            || (self.keys_every > 0 && self.number.is_multiple_of(self.keys_every));
        let tier = match (key, self.number.is_multiple_of(GOLDEN_EVERY)) {
            (true, _) => Tier::Key,
            (_, true) => Tier::Golden,
            _ => Tier::Normal,
        };
        // Most frames are small, some large.
        let varied = self.bytes * (0.4 + 1.2 * random.share() * random.share() * 2.0);
        let bytes = if key { KEY * self.bytes } else { varied };
        let arrival = self.next;
        self.next += self.every;
        self.number += 1;
        Some(Candidate {
            id: 0,
            stream: self.id,
            tier,
            bytes: bytes as u32,
            width: self.size.0,
            height: self.size.1,
            arrival,
            per_mille: 1000,
            scale: 2,
            most_scale: self.most_scale,
        })
    }
}
