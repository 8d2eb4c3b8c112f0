//! Active speaker detection, by the audio levels in RTP headers (RFC 6464).
//!
//! Levels are averaged over some tenths of a second, so that a cough is no speech. The active speaker stays through
//! pauses, until another participant has been clearly louder for [`MIN_LOUDER_TIME`].

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::api::ParticipantId;

/// Time constant of the averaged level where it rises.
const RISE: Duration = Duration::from_millis(150);
/// Time constant of the averaged level where it falls: longer, as words have gaps.
const FALL: Duration = Duration::from_millis(500);
/// Level below which a participant is silent, in dBov.
const SILENCE: f64 = -50.0;
/// By how much another participant must be louder than the active speaker, in dB.
const MIN_LOUDER: f64 = 6.0;
/// For how long another participant must be louder.
const MIN_LOUDER_TIME: Duration = Duration::from_millis(400);
/// Time without packets after which a participant is silent. Muted microphones send nothing, and DTX sends little.
const STALE: Duration = Duration::from_millis(600);
/// Lowest level of RFC 6464, in dBov.
const MIN_LEVEL: f64 = -127.0;

#[derive(Debug)]
struct Voice {
    /// Averaged level in dBov.
    level: f64,
    last_packet: Instant,
}

/// The voices of one room.
#[derive(Debug, Default)]
pub(crate) struct Speakers {
    voices: HashMap<ParticipantId, Voice>,
    speaker: Option<ParticipantId>,
    /// The participant that is louder than the active speaker, and since when.
    challenger: Option<(ParticipantId, Instant)>,
}

impl Speakers {
    /// Takes the level of an audio packet, in dBov (0 to -127).
    pub(crate) fn on_level(&mut self, now: Instant, id: ParticipantId, dbov: i8) {
        let dbov = f64::from(dbov).clamp(MIN_LEVEL, 0.0);
        let voice = self.voices.entry(id).or_insert(Voice { level: MIN_LEVEL, last_packet: now });
        let span = now.saturating_duration_since(voice.last_packet).min(STALE);
        let constant = if dbov > voice.level { RISE } else { FALL };
        let share = 1.0 - (-span.as_secs_f64() / constant.as_secs_f64()).exp();
        voice.level += (dbov - voice.level) * share;
        voice.last_packet = now;
    }

    /// Removes a participant that has left or has no audio any more.
    pub(crate) fn remove(&mut self, id: ParticipantId) {
        self.voices.remove(&id);
        self.speaker.take_if(|speaker| *speaker == id);
        self.challenger.take_if(|(challenger, _)| *challenger == id);
    }

    /// The active speaker; during a pause, the last one.
    pub(crate) fn speaker(&self) -> Option<ParticipantId> {
        self.speaker
    }

    /// Updates the active speaker; returns the new one if it has changed.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<ParticipantId> {
        let level = |id: ParticipantId| {
            let voice = self.voices.get(&id)?;
            let fresh = now.saturating_duration_since(voice.last_packet) < STALE;
            (fresh && voice.level > SILENCE).then_some(voice.level)
        };
        let others = self.voices.keys().copied().filter(|id| Some(*id) != self.speaker);
        let loudest = others.filter_map(|id| Some((id, level(id)?)));
        // Equal levels in the order of ids, as the order of a hash map is random.
        let loudest = loudest.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let own = self.speaker.and_then(level);
        let challenger = loudest.filter(|(_, l)| own.is_none_or(|own| *l > own + MIN_LOUDER));
        let Some((id, _)) = challenger else {
            self.challenger = None;
            return None;
        };
        let since = match self.challenger {
            Some((former, since)) if former == id => since,
            _ => {
                self.challenger = Some((id, now));
                now
            }
        };
        if now.saturating_duration_since(since) < MIN_LOUDER_TIME && self.speaker.is_some() {
            return None;
        }
        self.challenger = None;
        self.speaker = Some(id);
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
                speakers.on_level(now, who, level);
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
        speakers.remove(A);
        assert_eq!(speakers.speaker(), None);
    }
}
