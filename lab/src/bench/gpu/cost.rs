//! The cost of a stream: anchors on 7.5 % of the frames, against super-resolving and encoding every frame. The module
//! only computes, from measured times and the operator's prices.
//!
//! Source: NeuroScaler §8.2 (its figure is 22.3 times as many streams for the money). GPUs and cores are assumed to
//! be had in any ratio: whoever rents both together and leaves one idle pays for that, too.

use std::fmt::Write as _;

use serde::Serialize;

/// Share of the frames that are anchors: 7.5 %, as in NeuroScaler §8.2.
pub(super) const ANCHOR_FRACTION: f64 = 0.075;

/// The measured times of a picture in ms: on the GPU, or of one core.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Measured {
    /// Frames per second of the stream.
    pub fps: f64,
    /// Time of super-resolution on the GPU, in ms.
    pub infer_ms: f64,
    /// Time to encode an anchor on the GPU, in ms.
    pub code_ms: f64,
    /// Time to decode a low frame on a core, in ms.
    pub decode_ms: f64,
    /// Additional time of a low frame on a core where anchors are made, in ms: to follow what subscribers see.
    pub follow_ms: f64,
    /// Time of an anchor on a core, in ms: to paint what subscribers see of its frame, which the GPU compares it
    /// with.
    pub paint_ms: f64,
    /// Time to encode an HR frame on a core, in ms.
    pub encode_ms: f64,
}

/// Prices in euros for an hour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Prices {
    pub gpu_euro_hour: f64,
    pub core_euro_hour: f64,
}

/// The resources and the cost of a stream, made in one way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct StreamCost {
    /// Seconds of a GPU and of a core that a second of the stream takes.
    pub gpu_s: f64,
    pub core_s: f64,
    pub euro_by_stream_hour: f64,
    /// Number of streams at once for a euro an hour.
    pub streams_by_euro_hour: f64,
    /// The resource that costs more: `gpu` or `cores`.
    pub set_by: &'static str,
}

impl StreamCost {
    fn new(gpu_s: f64, core_s: f64, prices: Prices) -> StreamCost {
        let (gpu, cores) = (gpu_s * prices.gpu_euro_hour, core_s * prices.core_euro_hour);
        StreamCost {
            gpu_s,
            core_s,
            euro_by_stream_hour: gpu + cores,
            streams_by_euro_hour: 1.0 / (gpu + cores),
            set_by: if gpu >= cores { "gpu" } else { "cores" },
        }
    }
}

impl Measured {
    /// Number of frames in a second that become anchors.
    fn anchors(&self) -> f64 {
        ANCHOR_FRACTION * self.fps
    }

    /// The cost by anchors: only anchors are super-resolved and encoded; every low frame is decoded.
    pub(super) fn by_anchors(&self, prices: Prices) -> StreamCost {
        let gpu = self.anchors() * (self.infer_ms + self.code_ms);
        let cores = self.fps * (self.decode_ms + self.follow_ms) + self.anchors() * self.paint_ms;
        StreamCost::new(1e-3 * gpu, 1e-3 * cores, prices)
    }

    /// The cost by frames: every frame is decoded, super-resolved and encoded.
    pub(super) fn by_frames(&self, prices: Prices) -> StreamCost {
        let cores = self.fps * (self.decode_ms + self.encode_ms);
        StreamCost::new(1e-3 * self.fps * self.infer_ms, 1e-3 * cores, prices)
    }
}

/// A stream's costs, made in both ways.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CostRow {
    /// The network.
    pub model: String,
    /// The stream, as `1280x720p60 to 3840x2160p60`.
    pub stream: String,
    #[serde(flatten)]
    pub measured: Measured,
    pub anchors: StreamCost,
    pub per_frame: StreamCost,
    /// Streams for a euro by anchors, over those by frames.
    pub x_per_frame: f64,
}

impl CostRow {
    pub(super) fn new(
        model: String,
        stream: String,
        measured: Measured,
        prices: Prices,
    ) -> CostRow {
        let (anchors, per_frame) = (measured.by_anchors(prices), measured.by_frames(prices));
        let x_per_frame = anchors.streams_by_euro_hour / per_frame.streams_by_euro_hour;
        CostRow { model, stream, measured, anchors, per_frame, x_per_frame }
    }
}

/// The rows for people, with the arithmetic.
pub(super) fn table(prices: Prices, rows: &[CostRow]) -> String {
    let Prices { gpu_euro_hour: gpu, core_euro_hour: core } = prices;
    let mut out =
        format!("\na stream, with a gpu at {gpu} and a core at {core} euros an hour:\n\n");
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "{:<28} {:<10} {:>8} {:>8} {:>9} {:>8} {:<6} {:>6}",
        "stream", "way", "gpu s", "core s", "euro/h", "streams", "set by", "x"
    );
    for row in rows {
        for (name, way) in [("anchors", &row.anchors), ("per frame", &row.per_frame)] {
            let x =
                if name == "anchors" { format!("{:.1}", row.x_per_frame) } else { String::new() };
            let _ = writeln!(
                out,
                "{:<28} {name:<10} {:>8.4} {:>8.4} {:>9.5} {:>8.2} {:<6} {x:>6}",
                row.stream,
                way.gpu_s,
                way.core_s,
                way.euro_by_stream_hour,
                way.streams_by_euro_hour,
                way.set_by
            );
        }
    }
    out.push_str(
        "\ncard s, core s: of each second of the stream; streams: at once for a euro an hour\n",
    );
    for row in rows {
        let Measured { fps, infer_ms, code_ms, decode_ms, follow_ms, paint_ms, encode_ms } =
            row.measured;
        let anchors = row.measured.anchors();
        let _ = writeln!(
            out,
            "\n{}, {}:\n  anchors    gpu {anchors:.2}/s x ({infer_ms:.3} infer + {code_ms:.3} code) ms; \
             cores {fps}/s x ({decode_ms:.3} decode + {follow_ms:.3} follow) ms + {anchors:.2}/s x {paint_ms:.3} paint ms\n  \
             per frame  gpu {fps}/s x {infer_ms:.3} infer ms; cores {fps}/s x ({decode_ms:.3} decode + {encode_ms:.3} encode) ms",
            row.stream, row.model
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round numbers.
    fn measured() -> Measured {
        Measured {
            fps: 60.0,
            infer_ms: 1.0,
            code_ms: 3.0,
            decode_ms: 5.0,
            follow_ms: 1.0,
            paint_ms: 8.0,
            encode_ms: 95.0,
        }
    }

    const PRICES: Prices = Prices { gpu_euro_hour: 2.0, core_euro_hour: 0.05 };

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn anchors_take_what_was_added_up_by_hand() {
        let way = measured().by_anchors(PRICES);
        // 4.5 anchors a second: 18 ms of the GPU; 360 ms of low frames and 36 ms of anchors on cores.
        near(way.gpu_s, 0.018);
        near(way.core_s, 0.396);
        // 0.036 and 0.0198 euros.
        near(way.euro_by_stream_hour, 0.0558);
        near(way.streams_by_euro_hour, 1.0 / 0.0558);
        assert_eq!(way.set_by, "gpu");
    }

    #[test]
    fn every_frame_takes_what_was_added_up_by_hand() {
        let way = measured().by_frames(PRICES);
        near(way.gpu_s, 0.06);
        near(way.core_s, 6.0);
        // 0.12 and 0.3 euros.
        near(way.euro_by_stream_hour, 0.42);
        assert_eq!(way.set_by, "cores");
    }

    #[test]
    fn the_ratio_is_of_streams_for_a_euro_and_what_is_free_costs_nothing() {
        let row = CostRow::new("a".to_owned(), "b".to_owned(), measured(), PRICES);
        near(row.x_per_frame, 0.42 / 0.0558);
        let gpus_alone = Prices { core_euro_hour: 0.0, ..PRICES };
        let row = CostRow::new("a".to_owned(), "b".to_owned(), measured(), gpus_alone);
        near(row.x_per_frame, 0.06 / 0.018);
    }

    #[test]
    fn the_table_shows_the_arithmetic() {
        let row = CostRow::new("blocks 8x32 x3".to_owned(), "720p".to_owned(), measured(), PRICES);
        let json = serde_json::to_value(&row).unwrap();
        assert_eq!((&json["anchors"]["set_by"], &json["encode_ms"]), (&"gpu".into(), &95.0.into()));
        let table = table(PRICES, &[row]);
        for part in [
            "gpu at 2 and a core at 0.05",
            "4.50/s x (1.000 infer + 3.000 code) ms",
            "0.0180",
            "7.5",
        ] {
            assert!(table.contains(part), "{part} is missing in {table}");
        }
    }
}
