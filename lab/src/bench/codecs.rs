//! `windlass-lab bench codecs`: what forwarding costs by codec.
//!
//! In: the SFU's own core and WebRTC clients on both ends (str0m) in simulated time, a publisher of three layers
//! without pictures, viewers whose links nobody notices. Out: CPU time of the core by packet that leaves it, ICE, DTLS
//! and SRTP included, and the ratio to VP9 of the same round. Enhancement is off: VP9 alone could have it.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use windlass_sfu::{ParticipantId, SfuConfig};
use windlass_testkit::{Access, World};
use windlass_types::VideoCodec;

use crate::eval::cpu_clock::thread_time;
use crate::eval::report::Machine;
use crate::eval::stats::percentile;
use crate::output::Output;
use crate::page::Contents;
use crate::progress::Progress;

/// The codecs, that of the ratios first.
const CODECS: [VideoCodec; 4] =
    [VideoCodec::Vp9, VideoCodec::Vp8, VideoCodec::H264, VideoCodec::Av1];
/// Time of a call that is not measured: connections come up, and layers rise.
const WARM_UP: Duration = Duration::from_secs(5);

/// Forward video of each codec, without pictures and in simulated time.
#[derive(Debug, Clone, Args)]
pub(super) struct CodecsArgs {
    /// Viewers of the publisher.
    #[arg(long, default_value = "10", value_name = "N")]
    pub viewers: NonZeroU32,

    /// Simulated seconds of each call.
    #[arg(long, default_value = "20", value_name = "S")]
    pub seconds: NonZeroU32,

    /// Rounds, each with a call of each codec.
    #[arg(long, default_value = "5", value_name = "N")]
    pub rounds: NonZeroU32,

    /// What is printed and written.
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Report {
    command: &'static str,
    machine: Machine,
    viewers: u32,
    seconds: u32,
    rounds: usize,
    rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    codec: &'static str,
    /// Packets that came in and left, in a round.
    packets_in: u64,
    packets_out: u64,
    /// CPU time of the core by packet that left, in µs: the median of the rounds.
    us_by_packet: f64,
    /// The same over that of VP9 in the same round: the median of the rounds.
    ratio: f64,
}

/// What a call has cost.
#[derive(Debug, Clone, Copy)]
struct Cost {
    packets_in: u64,
    packets_out: u64,
    us_by_packet: f64,
}

/// Runs the bench and prints its report.
pub(super) fn run(args: &CodecsArgs) -> Result<()> {
    let progress = Progress::new(args.rounds.get() as usize, "rounds");
    let mut rounds = Vec::new();
    for round in 1..=args.rounds.get() {
        if progress.begin(format!("round {round}")).is_err() {
            break;
        }
        rounds.push(CODECS.map(|codec| measure(codec, args)));
        progress.done();
    }
    let report = Report {
        command: "bench codecs",
        machine: Machine::here(),
        viewers: args.viewers.get(),
        seconds: args.seconds.get(),
        rounds: rounds.len(),
        rows: (0..CODECS.len()).filter_map(|at| row(at, &rounds)).collect(),
    };
    args.output.put(&report, progress.interrupted(), &report.table(), Contents::default)
}

/// The row of a codec; `None` without a round.
fn row(at: usize, rounds: &[[Cost; CODECS.len()]]) -> Option<Row> {
    let last = rounds.last()?[at];
    let times: Vec<_> = rounds.iter().map(|round| round[at].us_by_packet).collect();
    let ratio = |round: &[Cost; CODECS.len()]| round[at].us_by_packet / round[0].us_by_packet;
    let ratios: Vec<_> = rounds.iter().map(ratio).collect();
    Some(Row {
        codec: CODECS[at].name(),
        packets_in: last.packets_in,
        packets_out: last.packets_out,
        us_by_packet: percentile(&times, 50.0)?,
        ratio: percentile(&ratios, 50.0)?,
    })
}

fn measure(codec: VideoCodec, args: &CodecsArgs) -> Cost {
    let mut world = World::of(SfuConfig::default(), codec);
    let publisher = world.join(ParticipantId(1), Access::wide(1));
    let track = world.publish(publisher, 7);
    world.run(Duration::from_secs(1));
    for number in 0..u64::from(args.viewers.get()) {
        let viewer = world.join(ParticipantId(2 + number), Access::wide(3 + 2 * number));
        world.subscribe(viewer, &[track]);
    }
    world.run(WARM_UP);
    let before = world.core.counters;
    world.measure(thread_time);
    world.run(Duration::from_secs(args.seconds.get().into()));
    let packets_out = world.core.counters.rtp_out - before.rtp_out;
    Cost {
        packets_in: world.core.counters.rtp_in - before.rtp_in,
        packets_out,
        us_by_packet: 1e6 * world.taken().as_secs_f64() / packets_out.max(1) as f64,
    }
}

impl Report {
    fn table(&self) -> String {
        let mut table = "codec    packets in    packets out    µs/packet    over VP9\n".to_owned();
        for Row { codec, packets_in, packets_out, us_by_packet, ratio } in &self.rows {
            let _ = writeln!(
                table,
                "{codec:<5}    {packets_in:>10}    {packets_out:>11}    {us_by_packet:>9.2}    {ratio:>8.2}"
            );
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_is_forwarded_in_its_largest_layer() {
        let one = NonZeroU32::MIN;
        let args =
            CodecsArgs { viewers: one, seconds: one, rounds: one, output: Output::default() };
        for codec in CODECS {
            let cost = measure(codec, &args);
            // Half of what comes in, or more, is the largest layer's.
            assert!(2 * cost.packets_out > cost.packets_in, "{codec:?}: {cost:?}");
            assert!(cost.packets_out > 100, "{codec:?}: {cost:?}");
            assert!(cost.us_by_packet > 0.0);
        }
    }
}
