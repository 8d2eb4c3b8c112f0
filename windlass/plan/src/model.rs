//! Computes cores, memory and bitrates from a demand: sums of constants.

use std::fmt::Display;
use std::time::Duration;

use serde::{Serialize, Serializer};
use windlass_types::Size;

use crate::constants::{Constants, ms};

/// Bytes of a video packet beyond its payload: IPv4 and UDP 28, RTP 12 and its extensions 16, SRTP 16.
pub const HEADER_BYTES: f64 = 72.0;
/// Bytes of an anchor in one packet, and bytes of such a packet beyond them: IPv4 and UDP 28, DTLS 37, SCTP 28.
const ANCHOR_PACKET: (f64, f64) = (1_100.0, 93.0);

/// Demand on a server.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Demand {
    /// Number of publishers, each with a camera.
    pub publishers: u32,
    /// Number of viewers of each publisher, every one with a connection of its own.
    pub viewers: u32,
    /// Size of the layer that is sent and enhanced.
    #[serde(serialize_with = "as_text")]
    pub layer: Size,
    /// Latency budget from a frame to its anchor.
    #[serde(rename = "budget_ms", serialize_with = "as_ms")]
    pub budget: Duration,
}

fn as_text<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

fn as_ms<S: Serializer>(budget: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(ms(*budget))
}

/// Resources that a server takes for a demand.
///
/// ```
/// use std::time::Duration;
/// use windlass_plan::{Answer, Constants, Demand};
/// use windlass_types::Size;
///
/// // Ten cameras, each watched by two viewers.
/// let (layer, budget) = (Size::new(320, 180), Duration::from_millis(200));
/// let demand = Demand { publishers: 10, viewers: 2, layer, budget };
/// let answer = Answer::new(&Constants::shipped()?, &demand);
/// assert!(answer.kbps.server_out > 2.0 * answer.kbps.server_in, "anchors are sent too");
/// assert!(answer.cores.min() <= answer.cores.max());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// CPU cores by task.
    pub cores: Cores,
    /// Memory, MiB.
    pub mib: f64,
    /// Bitrates with all headers, kbit/s.
    pub kbps: Kbps,
    /// Anchors per second that a viewer gets from a publisher.
    pub anchors_per_s: f64,
    /// Share of the chosen anchors that miss the budget, 0 to 1.
    pub missed: f64,
}

/// CPU cores by task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cores {
    /// Receiving and sending packets.
    pub forwarding: f64,
    /// Decoding the layer, and following what viewers see.
    pub decoding: f64,
    /// Making anchors, by network.
    pub anchors: Vec<(String, f64)>,
}

impl Cores {
    /// All cores together, with the cheapest network.
    pub fn min(&self) -> f64 {
        self.forwarding + self.decoding + self.anchors.first().map_or(0.0, |(_, cores)| *cores)
    }

    /// All cores together, with the dearest network.
    pub fn max(&self) -> f64 {
        self.forwarding + self.decoding + self.anchors.last().map_or(0.0, |(_, cores)| *cores)
    }
}

/// Bitrates by direction, kbit/s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Kbps {
    /// Uplink of a publisher.
    pub publisher: f64,
    /// Bitrate into the server.
    pub server_in: f64,
    /// Bitrate out of the server.
    pub server_out: f64,
    /// Downlink of a viewer, for one publisher.
    pub viewer: f64,
}

impl Answer {
    /// Computes the answer to a demand.
    pub fn new(constants: &Constants, demand: &Demand) -> Answer {
        let (publishers, views) = (
            f64::from(demand.publishers),
            f64::from(demand.publishers) * f64::from(demand.viewers),
        );
        let pixels = f64::from(demand.layer.pixels());
        let of = |figure: fn(&crate::LayerCost) -> f64| constants.of_layer(pixels, figure);
        let budget = constants.of_budget(demand.budget);
        // A publisher without viewers is not enhanced.
        let (anchors, enhanced) =
            if demand.viewers == 0 { (0.0, 0.0) } else { (budget.anchors_per_s, publishers) };
        let packets = of(|l| l.packets);
        let anchor_packets = anchors * (of(|l| l.anchor_bytes) / ANCHOR_PACKET.0).ceil();
        let video_kbps = of(|l| l.kbps) + kbit(packets * HEADER_BYTES);
        let anchor_kbps = kbit(anchors * of(|l| l.anchor_bytes) + anchor_packets * ANCHOR_PACKET.1);
        let frame_ms = of(|l| l.decode_ms) + of(|l| l.follow_ms) + of(|l| l.other_ms);
        let forwarding = &constants.forwarding;
        let us = publishers * packets * forwarding.us_in
            + views * (packets + anchor_packets) * forwarding.us_out;
        let anchor_s = |ns_by_sample: f64| enhanced * anchors * pixels * ns_by_sample / 1e9;
        let by_network = constants.networks.iter();
        Answer {
            cores: Cores {
                forwarding: constants.resting.cores + us / 1e6,
                decoding: enhanced * constants.fps * frame_ms / 1e3,
                anchors: by_network.map(|n| (n.name.clone(), anchor_s(n.ns_by_sample))).collect(),
            },
            mib: constants.resting.mib
                + publishers * constants.memory.publisher_mib
                + views * constants.memory.viewer_mib
                + enhanced * of(|l| l.tap_mib),
            kbps: Kbps {
                publisher: video_kbps,
                server_in: publishers * video_kbps,
                server_out: views * (video_kbps + anchor_kbps),
                viewer: video_kbps + anchor_kbps,
            },
            anchors_per_s: anchors,
            missed: budget.missed,
        }
    }
}

fn kbit(bytes_per_s: f64) -> f64 {
    bytes_per_s * 8.0 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::tests::round;

    fn demand() -> Demand {
        let (layer, budget) = (Size::new(320, 180), Duration::from_millis(200));
        Demand { publishers: 10, viewers: 2, layer, budget }
    }

    fn answer(demand: Demand) -> Answer {
        Answer::new(&round(), &demand)
    }

    #[test]
    fn an_answer_is_the_sum_of_its_parts() {
        let answer = answer(demand());
        // 300 packets in, 600 out, and two of an anchor to each of twenty.
        let forwarding = 0.01 + (300.0 * 20.0 + 640.0 * 30.0) / 1e6;
        assert!((answer.cores.forwarding - forwarding).abs() < 1e-9);
        assert!((answer.cores.decoding - 10.0 * 30.0 * 1.0 / 1e3).abs() < 1e-9);
        let anchors = &answer.cores.anchors;
        assert!((anchors[0].1 - 10.0 * 57_600.0 * 200.0 / 1e9).abs() < 1e-9);
        assert!((answer.cores.max() - answer.cores.min() - 0.288).abs() < 1e-9);
        assert!((answer.mib - (40.0 + 5.0 + 5.0 + 80.0)).abs() < 1e-9);
        assert!((answer.kbps.publisher - 117.28).abs() < 1e-9);
        assert!((answer.kbps.server_in - 1172.8).abs() < 1e-9);
        assert!((answer.kbps.server_out - 20.0 * answer.kbps.viewer).abs() < 1e-9);
        assert!((answer.kbps.viewer - 117.28 - (2000.0 + 186.0) * 8.0 / 1e3).abs() < 1e-9);
    }

    #[test]
    fn more_of_anything_takes_no_less() {
        let takes = |demand| {
            let Answer { cores, mib, kbps, anchors_per_s, .. } = answer(demand);
            [cores.min(), cores.max(), mib, kbps.server_in, kbps.server_out, anchors_per_s]
        };
        let few = demand();
        let more = [
            Demand { publishers: 11, ..few },
            Demand { viewers: 3, ..few },
            Demand { layer: Size::new(640, 360), ..few },
            Demand { layer: Size::new(1280, 720), ..few },
            Demand { budget: Duration::from_millis(300), ..few },
        ];
        for demand in more {
            let grown = takes(few).iter().zip(takes(demand)).all(|(few, more)| *few <= more);
            assert!(grown, "{demand:?}: {:?} {:?}", takes(few), takes(demand));
        }
        assert!(takes(Demand { budget: Duration::from_millis(100), ..few })[0] < takes(few)[0]);
    }

    #[test]
    fn nobody_is_enhanced_whom_nobody_watches() {
        let answer = answer(Demand { viewers: 0, ..demand() });
        assert!(answer.cores.decoding.abs() < 1e-12 && answer.anchors_per_s.abs() < 1e-12);
        assert!(answer.kbps.server_in > 0.0 && answer.kbps.server_out.abs() < 1e-12);
    }
}
