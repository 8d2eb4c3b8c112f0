//! Measured costs of the parts of a server.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Constants that are shipped with the program; they name the machine on which `windlass-lab calibrate` measured them.
const SHIPPED: &str = include_str!("../constants.json");

/// Measured costs of all parts on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    /// Machine on which the constants were measured.
    pub machine: Machine,
    /// Day of the measurement, such as 2026-11-27.
    pub measured: String,
    /// Cost of a server without participants.
    pub resting: Resting,
    /// Cost of forwarding packets.
    pub forwarding: Forwarding,
    /// Memory of clients.
    pub memory: Memory,
    /// Frames per second of the video that was sent.
    pub fps: f64,
    /// Costs of layers, the smallest first.
    pub layers: Vec<LayerCost>,
    /// Costs of networks, the cheapest first.
    pub networks: Vec<NetworkCost>,
    /// Results under latency budgets, the shortest first.
    pub budgets: Vec<BudgetCost>,
}

/// A machine, and the build that ran on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name of the CPU, as it reports itself.
    pub cpu: String,
    /// Number of hardware threads.
    pub threads: usize,
    /// Operating system and instruction set.
    pub platform: String,
    /// `release` or `development`.
    pub build: String,
    /// Load average of the minute before the measurement: the load by other programs.
    pub load_average: f64,
}

/// Cost of a server without participants.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resting {
    /// CPU cores in use.
    pub cores: f64,
    /// Memory in MiB.
    pub mib: f64,
}

/// CPU time of a packet, with its share of all other work for clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forwarding {
    /// CPU time of a packet received from a publisher, µs.
    pub us_in: f64,
    /// CPU time of a packet sent to a viewer, µs.
    pub us_out: f64,
}

/// Memory of a client's connection and track, MiB.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Memory of a publisher, MiB.
    pub publisher_mib: f64,
    /// Memory of a viewer, MiB.
    pub viewer_mib: f64,
}

/// Costs of a layer of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerCost {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Bitrate of the payloads of the layer's packets, kbit/s.
    pub kbps: f64,
    /// RTP packets per second.
    pub packets: f64,
    /// CPU time to decode a frame, ms.
    pub decode_ms: f64,
    /// CPU time per frame to follow what viewers see, ms.
    pub follow_ms: f64,
    /// All other CPU time per frame of an enhanced stream, ms: choosing, queues, learning, and messages of anchors.
    pub other_ms: f64,
    /// Memory of an enhanced stream beyond that of its publisher, MiB.
    pub tap_mib: f64,
    /// Bytes of an anchor.
    pub anchor_bytes: f64,
}

/// Cost of a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkCost {
    /// Name of the network.
    pub name: String,
    /// CPU time to infer and encode an anchor, ns per sample of the low layer.
    pub ns_by_sample: f64,
}

/// Anchors that were measured under a latency budget.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetCost {
    /// Latency budget, ms.
    pub budget_ms: f64,
    /// Anchors per second that a viewer received from a publisher.
    pub anchors_per_s: f64,
    /// Share of the chosen anchors that missed the budget, 0 to 1.
    pub missed: f64,
}

/// Why constants cannot be used.
#[derive(Debug, Error)]
pub enum ConstantsError {
    /// The file cannot be read.
    #[error("cannot read the constants in {0}: {1}")]
    Read(String, std::io::Error),
    /// The file does not hold constants.
    #[error("{0} has no constants of `windlass-lab calibrate`: {1}")]
    Kind(String, serde_json::Error),
    /// A constant has an impossible value.
    #[error("the constants in {0} cannot be right: {1}; calibrate again")]
    Value(String, String),
}

impl Constants {
    /// Returns the constants that are shipped with the program.
    ///
    /// # Errors
    ///
    /// Fails only if the built-in file is damaged, which a test rules out.
    pub fn shipped() -> Result<Constants, ConstantsError> {
        Constants::parse(SHIPPED, "the program")
    }

    /// Reads constants from a file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or holds no valid constants.
    pub fn read(path: &Path) -> Result<Constants, ConstantsError> {
        let named = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|e| ConstantsError::Read(named.clone(), e))?;
        Constants::parse(&text, &named)
    }

    fn parse(text: &str, named: &str) -> Result<Constants, ConstantsError> {
        let constants: Constants =
            serde_json::from_str(text).map_err(|e| ConstantsError::Kind(named.to_owned(), e))?;
        constants.check().map_err(|fault| ConstantsError::Value(named.to_owned(), fault))?;
        Ok(constants)
    }

    /// Checks the constants for impossible values.
    ///
    /// # Errors
    ///
    /// Fails with the first fault.
    pub fn check(&self) -> Result<(), String> {
        let mut figures = vec![
            ("resting.cores", self.resting.cores),
            ("resting.mib", self.resting.mib),
            ("forwarding.us_in", self.forwarding.us_in),
            ("forwarding.us_out", self.forwarding.us_out),
            ("memory.publisher_mib", self.memory.publisher_mib),
            ("memory.viewer_mib", self.memory.viewer_mib),
            ("fps", self.fps),
        ];
        for l in &self.layers {
            figures.extend([("layers.kbps", l.kbps), ("layers.packets", l.packets)]);
            figures.extend([("layers.decode_ms", l.decode_ms), ("layers.follow_ms", l.follow_ms)]);
            figures.extend([("layers.other_ms", l.other_ms), ("layers.tap_mib", l.tap_mib)]);
            figures.push(("layers.anchor_bytes", l.anchor_bytes));
        }
        figures.extend(self.networks.iter().map(|n| ("networks.ns_by_sample", n.ns_by_sample)));
        for b in &self.budgets {
            figures
                .extend([("budgets.anchors_per_s", b.anchors_per_s), ("budgets.missed", b.missed)]);
        }
        if let Some((name, value)) = figures.iter().find(|(_, v)| !v.is_finite() || *v < 0.0) {
            return Err(format!("{name} is {value}"));
        }
        let rises = |values: Vec<f64>| !values.is_empty() && values.is_sorted_by(|a, b| a < b);
        if !rises(self.layers.iter().map(LayerCost::pixels).collect()) {
            return Err("layers must be there, the smallest first".to_owned());
        }
        if !rises(self.budgets.iter().map(|b| b.budget_ms).collect()) {
            return Err("budgets must be there, the shortest first".to_owned());
        }
        if self.networks.is_empty() {
            return Err("there is no network".to_owned());
        }
        Ok(())
    }

    /// Figure of a layer with `pixels` pixels: on the line through the two nearest measured sizes, and never negative.
    pub(crate) fn of_layer(&self, pixels: f64, figure: impl Fn(&LayerCost) -> f64) -> f64 {
        let places = self.layers.iter().map(|layer| (layer.pixels(), figure(layer)));
        on_line(&places.collect::<Vec<_>>(), pixels).max(0.0)
    }

    /// Result under a budget, interpolated between measured ones. A longer budget never gives fewer anchors: if a
    /// measurement says so, it is noise.
    pub(crate) fn of_budget(&self, budget: Duration) -> BudgetCost {
        let budget_ms = ms(budget);
        let (mut anchors, mut missed) = (0.0_f64, 1.0_f64);
        let (mut all, mut late) = (Vec::new(), Vec::new());
        for cost in &self.budgets {
            (anchors, missed) = (anchors.max(cost.anchors_per_s), missed.min(cost.missed));
            all.push((cost.budget_ms, anchors));
            late.push((cost.budget_ms, missed));
        }
        let first = self.budgets.first().map_or(budget_ms, |b| b.budget_ms);
        let last = self.budgets.last().map_or(budget_ms, |b| b.budget_ms);
        let at = budget_ms.clamp(first, last);
        BudgetCost { budget_ms, anchors_per_s: on_line(&all, at), missed: on_line(&late, at) }
    }
}

impl LayerCost {
    /// Number of pixels of a picture.
    pub fn pixels(&self) -> f64 {
        f64::from(self.width) * f64::from(self.height)
    }
}

/// A latency budget in milliseconds, as files and reports have it.
pub(crate) fn ms(budget: Duration) -> f64 {
    1e3 * budget.as_secs_f64()
}

/// Value at `x` on the line through the two nearest points. With one point, its value.
fn on_line(places: &[(f64, f64)], x: f64) -> f64 {
    let Some(&(_, only)) = places.first() else { return 0.0 };
    if places.len() < 2 {
        return only;
    }
    let after = places.iter().position(|(at, _)| *at >= x).unwrap_or(places.len());
    let after = after.clamp(1, places.len() - 1);
    let ((x0, y0), (x1, y1)) = (places[after - 1], places[after]);
    y0 + (y1 - y0) * (x - x0) / (x1 - x0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Round figures, for tests of what is made of them.
    pub(crate) fn round() -> Constants {
        let layer = |width: u32, height: u32, by: f64| LayerCost {
            width,
            height,
            kbps: 100.0 * by,
            packets: 30.0 * by,
            decode_ms: 0.5 * by,
            follow_ms: 0.25 * by,
            other_ms: 0.25 * by,
            tap_mib: 8.0 * by,
            anchor_bytes: 2000.0 * by,
        };
        let network =
            |name: &str, ns_by_sample| NetworkCost { name: name.to_owned(), ns_by_sample };
        let budget =
            |budget_ms, anchors_per_s, missed| BudgetCost { budget_ms, anchors_per_s, missed };
        Constants {
            machine: Machine {
                cpu: "a CPU".to_owned(),
                threads: 2,
                platform: "linux x86_64".to_owned(),
                build: "release".to_owned(),
                load_average: 0.1,
            },
            measured: "2026-11-27".to_owned(),
            resting: Resting { cores: 0.01, mib: 40.0 },
            forwarding: Forwarding { us_in: 20.0, us_out: 30.0 },
            memory: Memory { publisher_mib: 0.5, viewer_mib: 0.25 },
            fps: 30.0,
            layers: vec![layer(320, 180, 1.0), layer(640, 360, 4.0)],
            networks: vec![network("xs", 200.0), network("m", 700.0)],
            budgets: vec![
                budget(100.0, 0.2, 0.5),
                budget(200.0, 1.0, 0.01),
                budget(500.0, 0.9, 0.02),
            ],
        }
    }

    #[test]
    fn what_is_shipped_can_be_used() {
        let shipped = Constants::shipped().unwrap();
        assert!(!shipped.machine.cpu.is_empty());
    }

    #[test]
    fn between_sizes_a_figure_is_on_the_line_and_beyond_them_too() {
        let constants = round();
        let decode = |pixels| constants.of_layer(pixels, |layer| layer.decode_ms);
        assert!((decode(57_600.0) - 0.5).abs() < 1e-9);
        assert!((decode(144_000.0) - 1.25).abs() < 1e-9);
        assert!((decode(921_600.0) - 8.0).abs() < 1e-9);
        assert!(decode(1.0) >= 0.0);
    }

    #[test]
    fn more_time_never_gives_fewer_anchors() {
        let constants = round();
        let anchors = |ms| constants.of_budget(Duration::from_millis(ms)).anchors_per_s;
        assert!((anchors(150) - 0.6).abs() < 1e-9);
        assert!((anchors(500) - 1.0).abs() < 1e-9, "a dip is noise");
        assert!((anchors(50) - 0.2).abs() < 1e-9 && (anchors(2000) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn constants_that_cannot_be_right_are_refused_with_their_name() {
        let fault = |change: &dyn Fn(&mut Constants)| {
            let mut constants = round();
            change(&mut constants);
            constants.check().unwrap_err()
        };
        assert_eq!(fault(&|c| c.forwarding.us_in = -1.0), "forwarding.us_in is -1");
        assert_eq!(fault(&|c| c.fps = f64::NAN), "fps is NaN");
        assert!(fault(&|c| c.layers.reverse()).contains("smallest first"));
        assert!(fault(&|c| c.budgets.clear()).contains("budgets"));
        let error = Constants::parse("{}", "x.json").unwrap_err().to_string();
        assert!(
            error.starts_with("x.json has no constants of `windlass-lab calibrate`"),
            "{error}"
        );
    }
}
