//! Times of media on the server's clock. Sender reports give them, so that sound and picture of a participant stay
//! together; without reports, the arrival does.
//!
//! All times are microseconds since the recorder began. The tracks of a participant share its clock, and so one offset
//! between that clock and the server's. It is the smallest offset seen before the file began: that of the packet with
//! the least delay. Clocks drift, and senders may send any times. So an offset that puts media into the future, or far
//! from its arrival, is replaced.

use windlass_types::recording::{RecordedTime, SenderReport};

/// Maximum time from media being made to its arrival, in µs.
const MAX_AGE: i64 = 2_000_000;
/// Maximum time by which media may seem to be made after its arrival, in µs: by jitter of reports and drift of clocks.
const MAX_AHEAD: i64 = 250_000;

/// Offset of a participant's clock.
#[derive(Debug, Default)]
pub(crate) struct SenderClock {
    /// The server's time less the sender's, in µs; `None` before the first packet.
    offset: Option<i64>,
}

impl SenderClock {
    /// Server's time of a sender's time that arrived at `arrival`. With `settled`, the offset stays as it is while it
    /// is plausible.
    fn place(&mut self, sender: i64, arrival: i64, settled: bool) -> i64 {
        let seen = arrival.saturating_sub(sender);
        let plausible = |offset: &i64| is_plausible(sender.saturating_add(*offset), arrival);
        let offset = match self.offset.filter(plausible) {
            Some(offset) if settled => offset,
            Some(offset) => offset.min(seen),
            None => seen,
        };
        self.offset = Some(offset);
        sender.saturating_add(offset)
    }
}

fn is_plausible(time: i64, arrival: i64) -> bool {
    (arrival - MAX_AGE..=arrival + MAX_AHEAD).contains(&time)
}

/// Timeline of RTP timestamps: of an audio track, or of one layer of a video track.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// Ticks per second.
    rate: i64,
    last: Option<(u32, i64)>,
    /// Ticks of a packet, and its time on the server's clock by arrival.
    anchor: Option<(i64, i64)>,
}

impl Timeline {
    pub(crate) fn new(rate: u32) -> Timeline {
        Timeline { rate: rate.into(), last: None, anchor: None }
    }

    /// Ticks of a timestamp since the timeline began. They are negative before its first packet.
    pub(crate) fn ticks(&mut self, rtp: u32) -> i64 {
        let ticks = self
            .last
            .map_or(0, |(last, ticks)| ticks + i64::from(rtp.wrapping_sub(last).cast_signed()));
        if self.last.is_none_or(|(_, last)| ticks > last) {
            self.last = Some((rtp, ticks));
        }
        ticks
    }

    /// Server's time of a packet that arrived at `arrival`.
    pub(crate) fn place(
        &mut self,
        clock: &mut SenderClock,
        time: &RecordedTime,
        arrival: i64,
        settled: bool,
    ) -> i64 {
        let ticks = self.ticks(time.rtp);
        if let Some(SenderReport { time: at, rtp }) = time.report {
            let at = at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let at = i64::try_from(at.as_micros()).unwrap_or(0);
            let since = i64::from(time.rtp.wrapping_sub(rtp).cast_signed());
            return clock.place(at + self.micros(since), arrival, settled);
        }
        let by_anchor = self.anchor.map(|(from, at)| at + self.micros(ticks - from));
        by_anchor.filter(|&at| is_plausible(at, arrival)).unwrap_or_else(|| {
            self.anchor = Some((ticks, arrival));
            arrival
        })
    }

    fn micros(&self, ticks: i64) -> i64 {
        ticks.saturating_mul(1_000_000) / self.rate
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant, UNIX_EPOCH};

    use super::*;

    fn time(rtp: u32, report: Option<(u64, u32)>) -> RecordedTime {
        let report = report.map(|(ms, rtp)| {
            let time = UNIX_EPOCH + Duration::from_millis(ms);
            SenderReport { time, rtp }
        });
        RecordedTime { rtp, arrival: Instant::now(), report }
    }

    #[test]
    fn sound_and_picture_that_were_made_together_stay_together_whatever_their_delay() {
        let mut clock = SenderClock::default();
        let (mut video, mut audio) = (Timeline::new(90_000), Timeline::new(48_000));
        // Made at 5000 ms by the sender's clock; the picture arrives 80 ms after the sound.
        let sound = time(480, Some((4990, 0)));
        let picture = time(90_900, Some((5000 - 10, 90_000)));
        let heard = audio.place(&mut clock, &sound, 1_000_000, true);
        let seen = video.place(&mut clock, &picture, 1_080_000, true);
        assert_eq!((heard, seen), (1_000_000, 1_000_000));
    }

    #[test]
    fn before_a_file_begins_the_least_delay_counts() {
        let mut clock = SenderClock::default();
        let mut audio = Timeline::new(48_000);
        let report = Some((1000, 0));
        audio.place(&mut clock, &time(0, report), 90_000, false);
        audio.place(&mut clock, &time(960, report), 70_000, false);
        assert_eq!(audio.place(&mut clock, &time(1920, report), 130_000, true), 90_000);
    }

    #[test]
    fn without_reports_the_first_arrival_counts_and_later_jitter_does_not() {
        let (mut clock, mut audio) = (SenderClock::default(), Timeline::new(48_000));
        let late = [0, 35_000, 41_000, 79_000];
        let placed = (0..4).map(|n| {
            audio.place(
                &mut clock,
                &time((u32::MAX - 900).wrapping_add(n * 960), None),
                late[n as usize],
                true,
            )
        });
        assert_eq!(placed.collect::<Vec<_>>(), [0, 20_000, 40_000, 60_000]);
    }

    #[test]
    fn what_a_sender_says_of_another_day_is_not_believed() {
        let mut clock = SenderClock::default();
        let mut video = Timeline::new(90_000);
        video.place(&mut clock, &time(0, Some((1000, 0))), 0, true);
        let later = video.place(&mut clock, &time(3000, Some((90_000_000, 0))), 33_000, true);
        assert_eq!(later, 33_000);
        assert_eq!(
            video.place(&mut clock, &time(6000, Some((90_000_000, 0))), 66_000, true),
            66_333
        );
    }
}
