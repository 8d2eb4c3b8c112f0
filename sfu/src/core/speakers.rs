//! Who speaks in a room, by the levels that clients write beside their audio (RFC 6464).
//!
//! Levels are averaged over some tenths of a second, so that a cough is no speech. Whoever speaks stays the speaker through pauses and
//! until another has been clearly louder for a while.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::api::ParticipantId;

/// Averages follow the levels as fast as this.
const RISE: Duration = Duration::from_millis(150);
/// And fall more slowly, as words have gaps.
const FALL: Duration = Duration::from_millis(500);
/// Levels below are silence, in dBov.
const SILENCE: f64 = -50.0;
/// By how much another must be louder, in dB,
const LOUDER: f64 = 6.0;
/// for as long.
const FOR: Duration = Duration::from_millis(400);
/// No news of somebody for as long is silence: nothing is sent while a microphone is muted, and little by DTX.
const STALE: Duration = Duration::from_millis(600);
/// The lowest level that RFC 6464 has.
const LOWEST: f64 = -127.0;

#[derive(Debug)]
struct Voice {
    level: f64,
    heard: Instant,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Speakers {
    voices: HashMap<ParticipantId, Voice>,
    speaker: Option<ParticipantId>,
    challenger: Option<(ParticipantId, Instant)>,
}

impl Speakers {
    /// A packet of somebody's audio came, with its level in dBov (0 to -127).
    pub fn hear(&mut self, now: Instant, who: ParticipantId, dbov: i8) {
        let dbov = f64::from(dbov).clamp(LOWEST, 0.0);
        let voice = self.voices.entry(who).or_insert(Voice { level: LOWEST, heard: now });
        let span = now.saturating_duration_since(voice.heard).min(STALE);
        let pace = if dbov > voice.level { RISE } else { FALL };
        let share = 1.0 - (-span.as_secs_f64() / pace.as_secs_f64()).exp();
        voice.level += (dbov - voice.level) * share;
        voice.heard = now;
    }

    /// Somebody has gone, or their audio.
    pub fn forget(&mut self, who: ParticipantId) {
        self.voices.remove(&who);
        self.speaker.take_if(|speaker| *speaker == who);
        self.challenger.take_if(|(challenger, _)| *challenger == who);
    }

    /// Who speaks, or spoke last.
    pub fn speaker(&self) -> Option<ParticipantId> {
        self.speaker
    }

    /// Looks at all of them; the new speaker where it has changed.
    pub fn poll(&mut self, now: Instant) -> Option<ParticipantId> {
        let level = |who: ParticipantId| {
            let voice = self.voices.get(&who)?;
            let fresh = now.saturating_duration_since(voice.heard) < STALE;
            (fresh && voice.level > SILENCE).then_some(voice.level)
        };
        let others = self.voices.keys().copied().filter(|who| Some(*who) != self.speaker);
        let loudest = others.filter_map(|who| Some((who, level(who)?)));
        // Equal ones in the order of their ids, or whoever comes out of the map would win.
        let loudest = loudest.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let own = self.speaker.and_then(level);
        let challenger = loudest.filter(|(_, l)| own.is_none_or(|own| *l > own + LOUDER));
        let Some((who, _)) = challenger else {
            self.challenger = None;
            return None;
        };
        let since = match self.challenger {
            Some((former, since)) if former == who => since,
            _ => {
                self.challenger = Some((who, now));
                now
            }
        };
        if now.saturating_duration_since(since) < FOR && self.speaker.is_some() {
            return None;
        }
        self.challenger = None;
        self.speaker = Some(who);
        self.speaker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ParticipantId = ParticipantId(1);
    const B: ParticipantId = ParticipantId(2);

    /// A packet of each every 20 ms with these levels, for as long; who became the speaker when, in ms.
    fn talk(
        speakers: &mut Speakers,
        begin: Instant,
        levels: &[(ParticipantId, i8)],
        ms: u64,
    ) -> Vec<(ParticipantId, u64)> {
        let mut changes = Vec::new();
        for at in (0..ms).step_by(20) {
            let now = begin + Duration::from_millis(at);
            for &(who, level) in levels {
                speakers.hear(now, who, level);
            }
            if at % 200 == 0 {
                changes.extend(speakers.poll(now).map(|who| (who, at)));
            }
        }
        changes
    }

    #[test]
    fn whoever_begins_to_speak_is_the_speaker_soon() {
        let mut speakers = Speakers::default();
        let changes = talk(&mut speakers, Instant::now(), &[(A, -30), (B, -90)], 1000);
        assert_eq!(changes, [(A, 400)]);
    }

    #[test]
    fn another_must_be_louder_for_a_while() {
        let (mut speakers, begin) = (Speakers::default(), Instant::now());
        talk(&mut speakers, begin, &[(A, -30)], 1000);
        let later = begin + Duration::from_secs(1);
        assert_eq!(talk(&mut speakers, later, &[(A, -30), (B, -27)], 3000), []);
        let later = begin + Duration::from_secs(4);
        let changes = talk(&mut speakers, later, &[(A, -60), (B, -27)], 3000);
        assert_eq!(changes.len(), 1);
        assert!((400..=1000).contains(&changes[0].1), "{changes:?}");
    }

    #[test]
    fn a_pause_changes_nothing_while_nobody_else_speaks() {
        let (mut speakers, begin) = (Speakers::default(), Instant::now());
        talk(&mut speakers, begin, &[(A, -30)], 1000);
        let changes = talk(&mut speakers, begin + Duration::from_secs(1), &[(B, -80)], 5000);
        assert_eq!((changes, speakers.speaker()), (vec![], Some(A)));
    }

    #[test]
    fn a_cough_is_no_speech() {
        let (mut speakers, begin) = (Speakers::default(), Instant::now());
        talk(&mut speakers, begin, &[(A, -30)], 1000);
        let at = begin + Duration::from_secs(1);
        assert_eq!(talk(&mut speakers, at, &[(A, -30), (B, -5)], 100), []);
        let at = begin + Duration::from_millis(1100);
        assert_eq!(talk(&mut speakers, at, &[(A, -30), (B, -80)], 2000), []);
    }

    #[test]
    fn who_has_gone_does_not_speak() {
        let mut speakers = Speakers::default();
        talk(&mut speakers, Instant::now(), &[(A, -30)], 1000);
        speakers.forget(A);
        assert_eq!(speakers.speaker(), None);
    }
}
