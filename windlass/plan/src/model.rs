//! Computes cores, memory and bitrates from a demand: sums of constants.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::constants::Constants;

/// Bytes of a video packet beyond its payload: IPv4 and UDP 28, RTP 12 and its extensions 16, SRTP 16.
pub const HEADER_BYTES: f64 = 72.0;
/// Bytes of an anchor in one packet, and bytes of such a packet beyond them: IPv4 and UDP 28, DTLS 37, SCTP 28.
const ANCHOR_PACKET: (f64, f64) = (1_100.0, 93.0);

/// Width and height in pixels, as `320x180`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureSize {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

impl FromStr for PictureSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides =
            text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
        match sides {
            Some((width @ 64..=1920, height @ 36..=1080)) => Ok(PictureSize { width, height }),
            Some(_) => Err(format!("`{text}` is no size of a layer: from 64x36 to 1920x1080")),
            None => Err(format!("`{text}` is no size: write width and height, as 320x180")),
        }
    }
}

impl fmt::Display for PictureSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

impl Serialize for PictureSize {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Demand on a server.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Demand {
    /// Number of publishers, each with a camera.
    pub publishers: u32,
    /// Number of viewers of each publisher, every one with a connection of its own.
    pub viewers: u32,
    /// Size of the layer that is sent and enhanced.
    pub layer: PictureSize,
    /// Latency budget, ms.
    pub budget_ms: f64,
}

/// Resources that a server takes for a demand.
///
/// ```
/// use windlass_plan::{Answer, Constants, Demand};
///
/// // Ten cameras, each watched by two viewers.
/// let demand = Demand { publishers: 10, viewers: 2, layer: "320x180".parse()?, budget_ms: 200.0 };
/// let answer = Answer::new(&Constants::shipped()?, &demand);
/// assert!(answer.kbps.server_out > 2.0 * answer.kbps.server_in, "anchors are sent too");
/// assert!(answer.cores.least() <= answer.cores.most());
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
    pub fn least(&self) -> f64 {
        self.forwarding + self.decoding + self.anchors.first().map_or(0.0, |(_, cores)| *cores)
    }

    /// All cores together, with the dearest network.
    pub fn most(&self) -> f64 {
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
        let pixels = f64::from(demand.layer.width) * f64::from(demand.layer.height);
        let of = |figure: fn(&crate::LayerCost) -> f64| constants.of_layer(pixels, figure);
        let budget = constants.of_budget(demand.budget_ms);
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
        let layer = PictureSize { width: 320, height: 180 };
        Demand { publishers: 10, viewers: 2, layer, budget_ms: 200.0 }
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
        assert!((answer.cores.most() - answer.cores.least() - 0.288).abs() < 1e-9);
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
            [cores.least(), cores.most(), mib, kbps.server_in, kbps.server_out, anchors_per_s]
        };
        let layer = |width, height| PictureSize { width, height };
        let few = demand();
        let more = [
            Demand { publishers: 11, ..few },
            Demand { viewers: 3, ..few },
            Demand { layer: layer(640, 360), ..few },
            Demand { layer: layer(1280, 720), ..few },
            Demand { budget_ms: 300.0, ..few },
        ];
        for demand in more {
            let grown = takes(few).iter().zip(takes(demand)).all(|(few, more)| *few <= more);
            assert!(grown, "{demand:?}: {:?} {:?}", takes(few), takes(demand));
        }
        assert!(takes(Demand { budget_ms: 100.0, ..few })[0] < takes(few)[0]);
    }

    #[test]
    fn nobody_is_enhanced_whom_nobody_watches() {
        let answer = answer(Demand { viewers: 0, ..demand() });
        assert!(answer.cores.decoding.abs() < 1e-12 && answer.anchors_per_s.abs() < 1e-12);
        assert!(answer.kbps.server_in > 0.0 && answer.kbps.server_out.abs() < 1e-12);
    }

    #[test]
    fn a_size_is_two_sides_of_a_layer() {
        assert_eq!("320x180".parse(), Ok(PictureSize { width: 320, height: 180 }));
        let error = |text: &str| text.parse::<PictureSize>().unwrap_err();
        assert!(error("320").contains("as 320x180") && error("ax1").contains("as 320x180"));
        assert!(error("8x8").contains("from 64x36") && error("4000x2000").contains("from 64x36"));
    }
}
