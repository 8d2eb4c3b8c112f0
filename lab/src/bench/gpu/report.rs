//! The report: a table for people, or one JSON object.

use std::fmt::{self, Write as _};

use serde::Serialize;
use windlass_sr::Architecture;
use windlass_sr::cuda::DeviceInfo;
use windlass_sr::cuda::peaks::Peaks;

use super::args::{Case, Stream};
use super::conformance::Conforms;
use super::cost::{self, ANCHOR_FRACTION, CostRow, Prices};
use crate::eval::frames::Size;
use crate::eval::report::Machine;
use crate::latencies::Latencies;

/// A network at a size, on one variant of the kernels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// The network.
    pub model: String,
    /// `trained` or `random`.
    pub weights: &'static str,
    /// How the convolutions between the first and the last are run: `mma`, `wgmma`.
    pub variant: &'static str,
    pub backend: &'static str,
    /// Size of the low layer.
    pub input: String,
    pub batch: usize,
    /// Time of a picture in ms, with copies in and out, one batch after the other.
    pub frame_ms: f64,
    /// Median time of a single batch in ms, from the host's memory to the host's memory.
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// The network's own operations in a second, in 10¹²; padding and recomputation do not count.
    pub tflops: f64,
    /// Share of the tensor cores' measured rate.
    pub peak_share: f64,
    /// The least time that the measured rates allow, in ms, and what sets it: `tensor`, `memory`, `upload`,
    /// `download`.
    pub floor_ms: f64,
    pub floor: &'static str,
    /// Time to change to weights that are on the GPU already, in ms.
    pub refit_ms: f64,
    pub refit_p99_ms: f64,
    /// Time to change to weights that are uploaded first, in ms.
    pub upload_ms: f64,
    pub upload_p99_ms: f64,
    /// PSNR between the GPU's and the CPU's residuals, in dB.
    pub psnr_to_cpu_db: f64,
    /// Number of streams whose anchors, 7.5 % of the frames, the GPU makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams_720p60_2160p60: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams_360p30_720p30: Option<f64>,
    /// The engine's launches and tiles.
    pub plan: String,
}

/// Times to change weights, in ms.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Refits {
    pub resident: Vec<f64>,
    pub uploaded: Vec<f64>,
}

/// What was measured of a network at a size.
pub(super) struct Measurement<'a> {
    pub case: &'a Case,
    /// Whether the network has trained weights.
    pub trained: bool,
    /// Time of a picture in ms, one batch after the other.
    pub frame_ms: f64,
    /// Times of single batches, in ms.
    pub latencies: &'a [f64],
    pub refits: &'a Refits,
    /// PSNR between the GPU's and the CPU's residuals, in dB.
    pub psnr_to_cpu_db: f64,
    pub device: &'a DeviceInfo,
    pub peaks: &'a Peaks,
}

/// A network at a size, run by workers that share the GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct SharedRow {
    /// The network.
    pub model: String,
    /// Size of the low layer.
    pub input: String,
    pub workers: usize,
    /// Time of a picture, in ms.
    pub frame_ms: f64,
    /// Median time of a worker's picture, in ms.
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Number of pictures of a launch, in the mean.
    pub together: f64,
}

/// Anchors of a size, encoded on the GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CodingRow {
    /// Size of an anchor.
    pub size: String,
    pub batch: usize,
    pub quality: u8,
    /// Time of a picture in ms, with copies and headers.
    pub frame_ms: f64,
    /// Median time of a batch, in ms.
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Length of a picture's codestream, in bytes.
    pub bytes: usize,
    /// Time of the CPU encoder on one thread for each picture, in ms.
    pub cpu_ms: f64,
    /// Whether GPU and CPU made the same bytes.
    pub equal: bool,
}

/// A line of the table of networks.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let streams = self.streams_720p60_2160p60.or(self.streams_360p30_720p30);
        let streams = streams.map_or_else(|| "-".to_owned(), |streams| format!("{streams:.0}"));
        write!(
            f,
            "{:<22} {:<5} {:>9} {:>5} {:>8.3} {:>8.3} {:>8.3} {:>8.1} {:>5.0}% {:>8.3} {:<8} {:>8.3} {:>7.1} {:>8}",
            self.model,
            self.variant,
            self.input,
            self.batch,
            self.frame_ms,
            self.p50_ms,
            self.p99_ms,
            self.tflops,
            100.0 * self.peak_share,
            self.floor_ms,
            self.floor,
            self.refit_ms,
            self.psnr_to_cpu_db,
            streams
        )
    }
}

/// A line of the table of encoded anchors.
impl fmt::Display for CodingRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equal = if self.equal { "yes" } else { "NO" };
        write!(
            f,
            "{:<10} {:>5} {:>8.3} {:>8.3} {:>8.3} {:>9} {:>8.3} {equal}",
            self.size, self.batch, self.frame_ms, self.p50_ms, self.p99_ms, self.bytes, self.cpu_ms
        )
    }
}

impl Row {
    pub(super) fn new(measured: &Measurement) -> Row {
        let &Measurement { frame_ms, psnr_to_cpu_db, refits, device, peaks, .. } = measured;
        let &Case { network, size: Size { width, height }, batch, .. } = measured.case;
        let samples = (width * height) as f64;
        let latencies: Latencies = measured.latencies.iter().collect();
        let [resident, uploaded] =
            [&refits.resident, &refits.uploaded].map(|times| times.iter().collect::<Latencies>());
        let tflops = 2.0 * network.macs() as f64 * samples / frame_ms * 1e-9;
        let (floor_ms, floor) = floor(network, samples, device, peaks);
        let streams = |wanted: Architecture, size, fps: f64| {
            let this = network == wanted && (width, height) == size;
            this.then(|| 1e3 / frame_ms / (ANCHOR_FRACTION * fps))
        };
        Row {
            model: network.to_string(),
            weights: if measured.trained { "trained" } else { "random" },
            variant: device.variant.name(),
            backend: "cuda",
            input: format!("{width}x{height}"),
            batch,
            frame_ms,
            p50_ms: latencies.percentile_or_zero(50.0),
            p99_ms: latencies.percentile_or_zero(99.0),
            tflops,
            peak_share: tflops / peaks.tensor_tflops,
            floor_ms,
            floor,
            refit_ms: resident.percentile_or_zero(50.0),
            refit_p99_ms: resident.percentile_or_zero(99.0),
            upload_ms: uploaded.percentile_or_zero(50.0),
            upload_p99_ms: uploaded.percentile_or_zero(99.0),
            psnr_to_cpu_db,
            streams_720p60_2160p60: streams(Architecture::blocks(3, 32, 8), (1_280, 720), 60.0),
            streams_360p30_720p30: streams(Architecture::chain(2, 16, 5), (640, 360), 30.0),
            plan: device.plan.clone(),
        }
    }
}

/// The least time of a picture at the measured rates, and what sets it.
fn floor(
    network: Architecture,
    samples: f64,
    device: &DeviceInfo,
    peaks: &Peaks,
) -> (f64, &'static str) {
    let high = samples * (network.scale * network.scale) as f64;
    let up = samples + if network.has_twin() { high } else { 0.0 };
    let bounds = [
        (2.0 * device.macs * samples / peaks.tensor_tflops * 1e-9, "tensor"),
        (device.moved_bytes * samples / peaks.memory_gbps * 1e-6, "memory"),
        (up / peaks.upload_gbps * 1e-6, "upload"),
        (2.0 * high / peaks.download_gbps * 1e-6, "download"),
    ];
    bounds.into_iter().fold((0.0, ""), |most, bound| if bound.0 > most.0 { bound } else { most })
}

/// All results of one run of the command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Report {
    /// The command: `bench gpu`.
    pub command: &'static str,
    /// The machine that the bench ran on.
    pub machine: Machine,
    pub gpu: String,
    pub tensor_tflops: f64,
    pub memory_gbps: f64,
    pub upload_gbps: f64,
    pub download_gbps: f64,
    /// Conformance of all kinds of networks, if it was checked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conformance: Vec<Conforms>,
    /// The networks, by network, size and batch.
    pub rows: Vec<Row>,
    /// The networks with workers that share the GPU, by network and size.
    pub shared: Vec<SharedRow>,
    /// The encoded anchors, by size and batch.
    pub coding: Vec<CodingRow>,
    /// The prices from which the costs are computed.
    pub prices: Prices,
    /// The costs, by stream.
    pub costs: Vec<CostRow>,
}

impl Report {
    pub(super) fn new(
        machine: Machine,
        gpu: String,
        peaks: &Peaks,
        rows: Vec<Row>,
        shared: Vec<SharedRow>,
    ) -> Report {
        let &Peaks { tensor_tflops, memory_gbps, upload_gbps, download_gbps } = peaks;
        Report {
            command: "bench gpu",
            machine,
            gpu,
            tensor_tflops,
            memory_gbps,
            upload_gbps,
            download_gbps,
            conformance: Vec::new(),
            rows,
            shared,
            coding: Vec::new(),
            prices: Prices { gpu_euro_hour: 0.0, core_euro_hour: 0.0 },
            costs: Vec::new(),
        }
    }

    /// The times on the GPU for a picture of a stream, in ms: super-resolution and encoding, by the batches and
    /// variants that take least. `None` where either was not measured.
    pub(super) fn on_gpu(&self, stream: &Stream) -> Option<(f64, f64)> {
        let (Size { width, height }, network) = (stream.size, stream.network.0);
        let (model, input) = (network.to_string(), format!("{width}x{height}"));
        let high = format!("{}x{}", network.scale * width, network.scale * height);
        let infer = self.rows.iter().filter(|row| row.model == model && row.input == input);
        let code = self.coding.iter().filter(|row| row.size == high);
        let infer = infer.map(|row| row.frame_ms).min_by(f64::total_cmp);
        infer.zip(code.map(|row| row.frame_ms).min_by(f64::total_cmp))
    }

    /// The report as a table.
    pub(super) fn table(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{}: {:.0} TFLOP/s (mma.sync, f16), memory {:.0} GB/s, up {:.1} GB/s, down {:.1} GB/s\n",
            self.gpu, self.tensor_tflops, self.memory_gbps, self.upload_gbps, self.download_gbps
        );
        let _ = writeln!(
            out,
            "{:<22} {:<5} {:>9} {:>5} {:>8} {:>8} {:>8} {:>8} {:>6} {:>8} {:<8} {:>8} {:>7} {:>8}",
            "network",
            "by",
            "input",
            "batch",
            "ms",
            "p50",
            "p99",
            "TFLOP/s",
            "share",
            "floor",
            "set by",
            "refit",
            "PSNR",
            "streams"
        );
        for row in &self.rows {
            let _ = writeln!(out, "{row}");
        }
        out.push_str("\nms: by picture, with copies; p50, p99: of a batch alone; refit: to weights that are there; streams: at 7.5 % anchors\n");
        if let Some(first) = self.shared.first() {
            let _ = writeln!(out, "\n{} workers with a picture each:\n", first.workers);
            let _ = writeln!(
                out,
                "{:<22} {:>9} {:>8} {:>8} {:>8} {:>9}",
                "network", "input", "ms", "p50", "p99", "a launch"
            );
        }
        let worst = self.conformance.iter().max_by(|a, b| a.error.total_cmp(&b.error));
        for row in &self.shared {
            let _ = writeln!(
                out,
                "{:<22} {:>9} {:>8.3} {:>8.3} {:>8.3} {:>9.1}",
                row.model, row.input, row.frame_ms, row.p50_ms, row.p99_ms, row.together
            );
        }
        if let Some(Conforms { model, error }) = worst {
            let networks = self.conformance.len();
            let _ =
                writeln!(out, "\n{networks} networks conform; the worst, {model}, by {error:.1e}");
        }
        if !self.coding.is_empty() {
            out.push_str(&self.coding_table());
        }
        if !self.costs.is_empty() {
            out.push_str(&cost::table(self.prices, &self.costs));
        }
        out
    }

    fn coding_table(&self) -> String {
        let mut out = format!(
            "\nanchors in HTJ2K:\n\n{:<10} {:>5} {:>8} {:>8} {:>8} {:>9} {:>8} equal\n",
            "size", "batch", "ms", "p50", "p99", "bytes", "CPU ms"
        );
        for row in &self.coding {
            let _ = writeln!(out, "{row}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use crate::output::json;
    use windlass_sr::cuda::Variant;

    use super::*;

    fn device() -> DeviceInfo {
        DeviceInfo {
            ordinal: 0,
            name: "some GPU".to_owned(),
            arch: 90,
            driver: 13_000,
            memory: 1 << 36,
            multiprocessors: 132,
            variant: Variant::Mma,
            plan: "8 launches".to_owned(),
            macs: 180_000.0,
            moved_bytes: 1_200.0,
        }
    }

    fn peaks() -> Peaks {
        Peaks { tensor_tflops: 600.0, memory_gbps: 3_000.0, upload_gbps: 50.0, download_gbps: 50.0 }
    }

    fn row(network: Architecture, size: Size) -> Row {
        let case = Case { network, size, batch: 4, variant: None };
        let times: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let refits = Refits { resident: times.clone(), uploaded: times.clone() };
        Row::new(&Measurement {
            case: &case,
            trained: false,
            frame_ms: 1.0,
            latencies: &times,
            refits: &refits,
            psnr_to_cpu_db: 80.0,
            device: &device(),
            peaks: &peaks(),
        })
    }

    #[test]
    fn a_millisecond_a_picture_is_so_many_streams() {
        let large = row(Architecture::blocks(3, 32, 8), Size::new(1_280, 720));
        // 1000 anchors a second; 60 frames a second have 4.5.
        assert!((large.streams_720p60_2160p60.unwrap() - 222.2).abs() < 0.1);
        assert_eq!(large.streams_360p30_720p30, None);
        assert!((large.tflops - 277.0).abs() < 1.0, "{}", large.tflops);
        assert!((large.peak_share - large.tflops / 600.0).abs() < 1e-9);
        assert_eq!((large.p50_ms, large.p99_ms), (50.0, 99.0));
        let small = row(Architecture::chain(2, 16, 5), Size::new(640, 360));
        assert!((small.streams_360p30_720p30.unwrap() - 444.4).abs() < 0.1);
        assert_eq!(
            row(Architecture::chain(2, 16, 5), Size::new(64, 36)).streams_360p30_720p30,
            None
        );
    }

    #[test]
    fn the_floor_is_the_slowest_of_what_must_happen() {
        let network = Architecture::blocks(3, 32, 8);
        let (ms, by) = floor(network, 921_600.0, &device(), &peaks());
        assert_eq!(by, "tensor");
        assert!((ms - 2.0 * 180e3 * 921_600.0 / 600e12 * 1e3).abs() < 1e-6, "{ms}");
        let slow = Peaks { download_gbps: 1.0, ..peaks() };
        assert_eq!(floor(network, 921_600.0, &device(), &slow).1, "download");
    }

    #[test]
    fn the_table_and_the_json_have_every_row() {
        let rows = vec![row(Architecture::blocks(3, 32, 8), Size::new(1_280, 720))];
        let shared = SharedRow {
            model: "blocks 8x32 x3".to_owned(),
            input: "1280x720".to_owned(),
            workers: 16,
            frame_ms: 1.1,
            p50_ms: 15.0,
            p99_ms: 21.5,
            together: 5.4,
        };
        let coding = CodingRow {
            size: "2560x1440".to_owned(),
            batch: 4,
            quality: 85,
            frame_ms: 0.7,
            p50_ms: 2.9,
            p99_ms: 3.1,
            bytes: 123_456,
            cpu_ms: 21.0,
            equal: false,
        };
        let (machine, gpu) = (Machine::here(), "some GPU".to_owned());
        let mut report = Report::new(machine, gpu, &peaks(), rows, vec![shared]);
        report.coding.push(coding);
        let stream = |text: &str| report.on_gpu(&text.parse().unwrap());
        assert_eq!(stream("blocks:8x32x3@1280x720p60"), None, "no such picture was coded");
        report.coding[0].size = "3840x2160".to_owned();
        let stream = |text: &str| report.on_gpu(&text.parse().unwrap());
        assert_eq!(stream("blocks:8x32x3@1280x720p60"), Some((1.0, 0.7)));
        assert_eq!(stream("blocks:8x32x3@640x360p60"), None);
        let table = report.table();
        assert!(table.contains("blocks 8x32 x3") && table.contains("222"));
        assert!(table.contains("16 workers") && table.contains("21.500"));
        assert!(table.contains("123456") && table.contains("NO"));
        let json: serde_json::Value = serde_json::from_str(&json(&report, None).unwrap()).unwrap();
        assert_eq!(json["command"], "bench gpu");
        assert_eq!(json["rows"][0]["input"], "1280x720");
        assert!(json["rows"][0].get("streams_360p30_720p30").is_none());
        assert_eq!(json["coding"][0]["equal"], false);
    }
}
