//! Streams that arrive as they do at a server, and the threads that serve them.
//!
//! One thread for each stream decodes, behind a queue of the pipeline's length. Where the queue overflows, all frames
//! up to a key frame are dropped, and a key frame is asked for. Frames that are late already are not decoded. One
//! thread for each stream makes its anchors: it waits as long as choosing and an accelerator take, then encodes. A
//! frame that is past its deadline when decoded becomes no anchor.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::time::{ClockId, clock_gettime};
use windlass_enhancer::SlotStats;
use windlass_enhancer::pipeline::{Slots, Stage};
use windlass_vp9::Decoder;

use super::work::{Coder, Work};

/// Maximum number of frames that wait for a decoder, as in the pipeline.
const QUEUE: usize = 16;
/// Maximum number of anchors of one stream that are being made.
const ANCHORS: usize = 4;
/// Frames per second of each stream.
pub(super) const FPS: u32 = 30;

/// The load: the streams that come, and the times that they must keep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub streams: usize,
    pub seconds: u32,
    /// Time after a frame's arrival at which its anchor must be done.
    pub deadline: Duration,
    /// One of this many frames becomes an anchor.
    pub every: usize,
    /// Time off the CPU between decoded and super-resolved.
    pub away: Duration,
    /// Maximum time by which a frame comes before or after its due time.
    pub jitter: Duration,
}

/// The tasks of one kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Tasks {
    pub due: usize,
    /// Latencies of the tasks that were done, in milliseconds.
    pub latencies: Vec<f64>,
}

/// The results of a load.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    pub decode: Tasks,
    pub encode: Tasks,
    /// Share of all cores' time that this process used.
    pub used: f64,
    pub others: f64,
    pub slots: Option<SlotStats>,
}

#[derive(Debug, Clone, Copy)]
enum Packet {
    Frame { number: usize, chunk: usize, arrival: Instant },
    Gap,
}

/// Counters through which a stream's decoder and the thread that feeds it talk.
#[derive(Debug, Default)]
struct Talk {
    wants_key: AtomicBool,
    /// Number of losses that the decoder has not come to yet.
    gaps: AtomicUsize,
}

/// A stream as the thread that feeds it sees it.
struct Feed {
    packets: Sender<Packet>,
    /// Index of the next of the low layer's frames.
    chunk: usize,
    broken: bool,
    /// Whether only a key frame is sent.
    waiting: bool,
}

impl Load {
    /// When each frame of each stream comes: the streams' beginnings are spread over a second.
    fn arrivals(&self) -> Vec<(Duration, usize, usize)> {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as f64 / f64::from(1u32 << 31)
        };
        let period = Duration::from_secs(1) / FPS;
        let mut all = Vec::new();
        for stream in 0..self.streams {
            let begin = self.jitter + Duration::from_secs_f64(random());
            for number in 0..(self.seconds * FPS) as usize {
                let early = self.jitter.mul_f64(2.0 * random());
                let due = begin + period * number as u32 + self.jitter;
                all.push((due.saturating_sub(early), stream, number));
            }
        }
        all.sort_unstable();
        all
    }

    fn anchors_due(&self) -> usize {
        (0..self.streams)
            .map(|s| (0..(self.seconds * FPS) as usize).filter(|&n| self.is_anchor(s, n)).count())
            .sum()
    }

    fn is_anchor(&self, stream: usize, number: usize) -> bool {
        (number + 7 * stream) % self.every == self.every - 1
    }

    /// Serves the whole load, with slots or by plain threads.
    pub(super) fn serve(&self, work: &Work, slots: Option<&Slots>) -> Result<Outcome> {
        let arrivals = self.arrivals();
        let before = (Instant::now(), process_time(), machine_time());
        let start = before.0 + Duration::from_millis(20);
        let talks: Vec<Talk> = (0..self.streams).map(|_| Talk::default()).collect();
        let (decoded, coded) = scope(|scope| -> Result<_> {
            let (mut feeds, mut decoders, mut coders) = (Vec::new(), Vec::new(), Vec::new());
            for (stream, talk) in talks.iter().enumerate() {
                let (packets, queue) = bounded(QUEUE);
                let (chosen, anchors) = bounded(ANCHORS);
                feeds.push(Feed { packets, chunk: 0, broken: false, waiting: false });
                decoders.push(
                    scope.spawn(move || self.decode(stream, work, slots, &queue, &chosen, talk)),
                );
                coders.push(scope.spawn(move || self.code(stream, work, slots, &anchors)));
            }
            for (due, stream, number) in arrivals {
                let arrival = start + due;
                sleep(arrival.saturating_duration_since(Instant::now()));
                feeds[stream].push(number, arrival, &talks[stream], work.chunks.len());
            }
            drop(feeds);
            let mut all = (Vec::new(), Vec::new());
            for thread in decoders {
                all.0.extend(thread.join().ok().context("a decoder panicked")??);
            }
            for thread in coders {
                all.1.extend(thread.join().ok().context("a coder panicked")??);
            }
            Ok(all)
        })?;
        let (wall, own) = (before.0.elapsed(), process_time().saturating_sub(before.1));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let all = wall.as_secs_f64() * cores as f64;
        let machine = machine_time().zip(before.2).map_or(own.as_secs_f64(), |(a, b)| a - b);
        Ok(Outcome {
            decode: Tasks { due: self.streams * (self.seconds * FPS) as usize, latencies: decoded },
            encode: Tasks { due: self.anchors_due(), latencies: coded },
            used: own.as_secs_f64() / all,
            others: (machine - own.as_secs_f64()).max(0.0) / all,
            slots: slots.map(Slots::stats),
        })
    }

    /// Decodes a stream. Returns latencies in milliseconds.
    fn decode(
        &self,
        stream: usize,
        work: &Work,
        slots: Option<&Slots>,
        queue: &Receiver<Packet>,
        chosen: &Sender<(usize, Instant)>,
        talk: &Talk,
    ) -> Result<Vec<f64>> {
        let (mut decoder, mut latencies, mut waiting) = (Decoder::new(), Vec::new(), false);
        for packet in queue {
            let Packet::Frame { number, chunk, arrival } = packet else {
                talk.gaps.fetch_sub(1, Ordering::Relaxed);
                talk.wants_key.store(true, Ordering::Relaxed);
                continue;
            };
            let deadline = arrival + self.deadline;
            waiting |= talk.gaps.load(Ordering::Relaxed) > 0 && Instant::now() > deadline;
            if waiting && chunk > 0 {
                continue;
            }
            waiting = false;
            // As in the pipeline, the other half of the time is for what comes after.
            let by = arrival + self.deadline / 2;
            let slot = slots.and_then(|s| s.take(Stage::Decode, work.pixels, by, stream as u64));
            decoder.decode(&work.chunks[chunk])?;
            drop(slot);
            let age = arrival.elapsed();
            latencies.push(1e3 * age.as_secs_f64());
            if self.is_anchor(stream, number) && age <= self.deadline {
                // A frame that finds no room is missed.
                let _ = chosen.try_send((number, arrival));
            }
        }
        Ok(latencies)
    }

    /// Makes a stream's anchors. Returns latencies in milliseconds.
    fn code(
        &self,
        stream: usize,
        work: &Work,
        slots: Option<&Slots>,
        anchors: &Receiver<(usize, Instant)>,
    ) -> Result<Vec<f64>> {
        let (mut coder, mut latencies) = (Coder::new(), Vec::new());
        for (number, arrival) in anchors {
            if arrival.elapsed() + self.away > self.deadline {
                continue;
            }
            sleep(self.away);
            let (low, detail) = work.anchor(stream + number / self.every);
            let deadline = arrival + self.deadline;
            let slot = match slots {
                None => None,
                Some(s) => match s.take(Stage::Encode, work.samples(), deadline, stream as u64) {
                    None => continue,
                    slot => slot,
                },
            };
            coder.code(low, detail)?;
            drop(slot);
            latencies.push(1e3 * arrival.elapsed().as_secs_f64());
        }
        Ok(latencies)
    }
}

impl Feed {
    /// Hands in a frame. A frame that finds no room is lost, and so are all until a key frame.
    fn push(&mut self, number: usize, arrival: Instant, talk: &Talk, chunks: usize) {
        if self.broken && self.packets.try_send(Packet::Gap).is_ok() {
            (self.broken, self.waiting) = (false, true);
        }
        if self.waiting && talk.wants_key.swap(false, Ordering::Relaxed) {
            (self.waiting, self.chunk) = (false, 0);
        }
        if self.broken || self.waiting {
            return;
        }
        let frame = Packet::Frame { number, chunk: self.chunk, arrival };
        if self.packets.try_send(frame).is_err() {
            self.broken = true;
            talk.gaps.fetch_add(1, Ordering::Relaxed);
        }
        self.chunk = (self.chunk + 1) % chunks;
    }
}

/// CPU time of this process.
fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// CPU time of everything that runs on the machine in seconds, where the system tells it.
fn machine_time() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let fields = stat.lines().next()?.split_whitespace().skip(1);
    let ticks: Vec<f64> = fields.map_while(|f| f.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; in hundredths of a second.
    let busy = [0, 1, 2, 5, 6, 7].into_iter().filter_map(|at| ticks.get(at));
    Some(busy.sum::<f64>() / 100.0)
}

#[cfg(test)]
mod tests {
    use windlass_scheduler::slots::SlotConfig;

    use super::*;

    fn load() -> Load {
        Load {
            streams: 3,
            seconds: 1,
            deadline: Duration::from_secs(20),
            every: 10,
            away: Duration::from_millis(5),
            jitter: Duration::from_millis(5),
        }
    }

    #[test]
    fn frames_of_a_stream_come_in_order_and_all_of_them() {
        let mut next = [0; 3];
        for (_, stream, number) in load().arrivals() {
            assert_eq!(number, next[stream]);
            next[stream] += 1;
        }
        assert_eq!(next, [30; 3]);
        assert_eq!(load().anchors_due(), 9);
    }

    #[test]
    fn all_is_done_with_slots_and_without() {
        let work = Work::drawn(96, 64, 20).unwrap();
        let slots = Slots::new(SlotConfig::default());
        for slots in [None, Some(&slots)] {
            let outcome = load().serve(&work, slots).unwrap();
            assert_eq!((outcome.decode.due, outcome.decode.latencies.len()), (90, 90));
            assert_eq!((outcome.encode.due, outcome.encode.latencies.len()), (9, 9));
            assert!(outcome.used > 0.0);
        }
        assert_eq!(slots.stats().stages[Stage::Decode as usize].wait.count(), 90);
    }

    #[test]
    fn a_stream_that_overflows_goes_on_with_a_key_frame() {
        let (packets, queue) = bounded(1);
        let mut feed = Feed { packets, chunk: 0, broken: false, waiting: false };
        let (talk, now) = (Talk::default(), Instant::now());
        feed.push(0, now, &talk, 9);
        feed.push(1, now, &talk, 9);
        assert!(matches!(queue.try_recv(), Ok(Packet::Frame { number: 0, chunk: 0, .. })));
        feed.push(2, now, &talk, 9);
        assert!(matches!(queue.try_recv(), Ok(Packet::Gap)));
        feed.push(3, now, &talk, 9);
        assert!(queue.try_recv().is_err(), "no key frame was asked for yet");
        talk.wants_key.store(true, Ordering::Relaxed);
        feed.push(4, now, &talk, 9);
        assert!(matches!(queue.try_recv(), Ok(Packet::Frame { number: 4, chunk: 0, .. })));
    }
}
