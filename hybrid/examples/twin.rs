//! Prints, as JSON, what the hybrid decoder makes of an IVF file with anchors in it.
//!
//! `cargo run -p windlass-hybrid --example twin FILE.ivf` decodes the file at scales 2 to 4, with anchors: early, on
//! time, late, in parts of tiles, repeated, and of a former epoch. Every instruction set that the machine has must
//! give the same pictures; the program ends with an error at the first that differ. For each frame, a case holds:
//!
//! - the messages pushed after it (hex), and the outcome of each, as `client-web/wasm` numbers outcomes;
//! - the network that runs on it;
//! - the MD5 of the low and the high picture then;
//! - for each cell, whether no network makes it better (`kept`, 1 or 0);
//! - for some frames, the MD5 of the still that a publisher would make of them (`still`).
//!
//! `client-web/wasm/twin-check.mjs` replays the cases in WebAssembly and compares.
//!
//! `twin FILE.yuv --pictures WIDTHxHEIGHT` does the same with the pictures that a decoder of another codec made, in
//! I420, without stills.
//!
//! `twin FILE.ivf --call SCALE` prints a single case for measurements: an anchor of the whole frame once in 30, as
//! in a call with the default settings, four frames late and of about a call's size; no checksums.

use std::sync::Arc;

use windlass_files::ivf::{self, Ivf};
use windlass_hybrid::anchor::codec::Htj2k;
use windlass_hybrid::anchor::payload::{self, Packed};
use windlass_hybrid::still::{StillMaker, StillRequest};
use windlass_hybrid::{AnchorOutcome, Detail, HybridConfig, HybridDecoder, KeptCells};
use windlass_network::Tier;
use windlass_types::AnchorSource;
use windlass_types::Size;
use windlass_types::message::HTJ2K;
use windlass_types::message::encode_chunks;
use windlass_types::message::{AnchorHeader, Reassembler};
use windlass_types::tiles::TileMap;
use windlass_vp9::simd::Isa;
use windlass_vp9::{FrameBuffer, Picture, Plane};

/// The rhythm of a call, in frames: the interval of anchors, and how much later than its frame an anchor comes.
const CALL: (u32, u32) = (30, 4);
/// Samples of the HR picture for each byte of a call's anchor: 16 kB at 1280×720.
const SAMPLES_PER_BYTE: usize = 58;
/// The size of a check's anchors: HTJ2K at quality 60.
const COARSE: CodeSize = CodeSize::Quality(60);
/// Number of frames for which a network runs before the next one takes its place.
const NETWORK_FRAMES: u32 = 6;
/// Payload of a message of an anchor, in bytes.
const CHUNK: usize = 1100;

fn main() {
    let usage = "usage: twin FILE.ivf [--call SCALE] | twin FILE.yuv --pictures WIDTHxHEIGHT";
    let args: Vec<String> = std::env::args().skip(1).collect();
    let path = args.first().expect(usage);
    let file = std::fs::read(path).expect("a readable file");
    let options: Vec<&str> = args[1..].iter().map(String::as_str).collect();
    let checked = |stream: &Stream<'_>| [2, 3, 4].map(|scale| check(stream, scale)).to_vec();
    let cases = match options.as_slice() {
        [] => checked(&Stream::coded(&ivf::read(&file).expect("a stream"))),
        ["--call", scale] => {
            let ivf = ivf::read(&file).expect("a stream");
            vec![call(&ivf, scale.parse().expect("a scale"))]
        }
        ["--pictures", size] => {
            let (width, height) = size.split_once('x').expect(usage);
            let side = |side: &str| side.parse().expect("a size");
            checked(&Stream::decoded(&file, (side(width), side(height))))
        }
        _ => panic!("{usage}"),
    };
    println!("[{}]", cases.join(",\n"));
}

/// A frame of VP9, or the picture that another decoder made.
enum Frame<'a> {
    Coded(&'a [u8]),
    Decoded(Arc<FrameBuffer>),
}

/// What is checked.
struct Stream<'a> {
    size: (usize, usize),
    frames: Vec<Frame<'a>>,
}

impl<'a> Stream<'a> {
    fn coded(ivf: &Ivf<'a>) -> Stream<'a> {
        let frames = ivf.frames.iter().map(|data| Frame::Coded(data)).collect();
        Stream { size: ivf.size, frames }
    }

    fn decoded(file: &[u8], (width, height): (usize, usize)) -> Stream<'a> {
        let bytes = width * height + 2 * width.div_ceil(2) * height.div_ceil(2);
        let picture = |data| FrameBuffer::from_i420(width, height, data).expect("a picture");
        let frames = file.chunks_exact(bytes);
        let frames = frames.map(|data| Frame::Decoded(Arc::new(picture(data)))).collect();
        Stream { size: (width, height), frames }
    }
}

/// The RTP timestamp of a frame. The timeline wraps around in the middle of the file.
fn timestamp(frame: u32) -> u32 {
    frame.wrapping_mul(3000).wrapping_sub(60_000)
}

/// The maker of one case's anchors.
struct Maker {
    low: (usize, usize),
    scale: usize,
}

/// What an anchor is of: its frame, epoch, source and part, and the seed of its texture.
#[derive(Clone, Copy)]
struct Of {
    frame: u32,
    seed: u32,
    epoch: u16,
    source: AnchorSource,
    part: u8,
}

/// How an anchor's encoded size is given.
#[derive(Clone, Copy)]
enum CodeSize {
    Quality(u8),
    Budget(usize),
}

impl Maker {
    /// The messages of an anchor of `tiles`, with a texture that differs from seed to seed.
    fn messages(&self, of: Of, tiles: &TileMap, size: CodeSize) -> Vec<Vec<u8>> {
        let (w, h) = self.size(self.scale);
        let samples = (0..w * h).map(|i| texture(i % w, i / w, of.seed)).collect();
        let detail = Detail::from_samples(w, h, samples).expect("the count is right");
        let image = payload::image(detail, tiles, self.scale);
        let coded = match size {
            CodeSize::Quality(quality) => Htj2k::encode(&image, quality),
            CodeSize::Budget(bytes) => Htj2k::fill(&image, None, bytes),
        };
        let coded = coded.expect("a legal size");
        let Packed { payload, tiled } = payload::pack(tiles, coded);
        let header = AnchorHeader {
            codec: HTJ2K,
            source: of.source,
            tiled,
            beyond_prior: false,
            part: of.part,
            stream: 1,
            epoch: of.epoch,
            chunk_index: 0,
            chunk_count: 1,
            age_ms: 0,
            rtp_timestamp: timestamp(of.frame),
            size: Size::new(w as u16, h as u16),
        };
        encode_chunks(&header, &payload, CHUNK).expect("a small payload")
    }

    /// Width and height of the low picture times a factor.
    fn size(&self, scale: usize) -> (usize, usize) {
        (scale * self.low.0, scale * self.low.1)
    }

    fn full(&self) -> TileMap {
        let (width, height) = self.low;
        TileMap::full(Size::saturating(width, height))
    }

    /// A map of every second tile: those at even or at odd places.
    fn every_second(&self, odd: bool) -> TileMap {
        let (width, height) = self.low;
        let mut tiles = TileMap::empty(Size::saturating(width, height));
        for (column, row) in self.full().iter() {
            if ((column + row) % 2 == 1) == odd {
                tiles.set(column, row);
            }
        }
        tiles
    }

    /// The messages that come after each frame, disturbed as a network would disturb them.
    fn disturbed(&self, frame: u32) -> Vec<Vec<u8>> {
        let (round, place) = (frame / 7, frame % 7);
        let of = Of {
            // Two frames early, one late, four late in turn.
            frame: (round * 7 + 5).wrapping_sub(round % 3 * 3),
            seed: round,
            epoch: 5 + (round / 2) as u16,
            source: AnchorSource::Enhanced,
            part: 0,
        };
        let whole = round.is_multiple_of(2);
        match (whole, place) {
            (true, 3) => self.messages(of, &self.full(), COARSE),
            // The first message once more, tiles of the publisher's own, which replace those, and the same tiles once
            // more.
            (true, 4) => {
                let mut again = self.messages(of, &self.full(), COARSE);
                again.truncate(1);
                let captured = Of { source: AnchorSource::Captured, ..of };
                again.extend(self.messages(captured, &self.every_second(true), COARSE));
                let repeated = Of { part: 1, ..of };
                again.extend(self.messages(repeated, &self.every_second(true), COARSE));
                again
            }
            (true, 6) => {
                self.messages(Of { epoch: 4, frame, ..of }, &self.every_second(false), COARSE)
            }
            // In two parts, the second before the first, and the first later still.
            (false, 3) => self.messages(Of { part: 1, ..of }, &self.every_second(true), COARSE),
            (false, 5) => {
                // The last chunk first.
                let mut first = self.messages(of, &self.every_second(false), COARSE);
                first.reverse();
                first
            }
            _ => Vec::new(),
        }
    }
}

/// Detail about like what super-resolution adds, in 1/16 grey level: edges, and noise in patches.
fn texture(x: usize, y: usize, seed: u32) -> i16 {
    let patch = (x / 48 * 7 + y / 40 * 13 + seed as usize * 5) % 6;
    let noise = (x * 7919 + y * 104_729 + x * y * 31 + seed as usize * 131) % 113;
    let edge = (x * 5 + y * 3 + seed as usize * 11) % 61;
    match patch {
        0 => noise as i16 * 4 - 224,
        1 | 2 => {
            if edge < 8 {
                160 - edge as i16 * 40
            } else {
                0
            }
        }
        _ => (edge / 16) as i16 * 4,
    }
}

/// Number of frames from one frame of which a still is made to the next.
const STILL_EVERY: u32 = 5;
/// Maximum length of a still, in bytes.
const STILL_BYTES: usize = 3000;

/// The MD5 of the still of a frame, of every second tile or, every other time, of all: the camera is half as large
/// again as HR, and sees squares, some of them coloured.
fn still(maker: &Maker, publisher: &mut StillMaker, frame: u32) -> String {
    let (width, height) = maker.size(maker.scale);
    let (width, height) = (width * 3 / 2, height * 3 / 2);
    let square = |i: usize| ((i % width / 8) ^ (i / width / 8)) + frame as usize;
    let samples = (0..width * height).map(|i| (square(i) % 8 * 20 + 40) as u8).collect();
    let camera = Plane::from_samples(width, height, samples).expect("the count is right");
    let some = frame.is_multiple_of(2 * STILL_EVERY);
    let tiles = if some { maker.every_second(false) } else { maker.full() }.to_bytes();
    let (scale, rtp_timestamp) = (maker.scale, timestamp(frame));
    let request = StillRequest { rtp_timestamp, scale, tiles: &tiles, bytes: STILL_BYTES };
    let [u, v] = [2, 3].map(|n| {
        let (columns, rows) = (width.div_ceil(2), height.div_ceil(2));
        let samples = (0..columns * rows)
            .map(|i| (((i % columns / 4) ^ (i / columns / 4)) + n * frame as usize) % 8 * 10 + 90);
        let samples = samples.map(|sample| sample as u8).collect();
        Plane::from_samples(columns, rows, samples).expect("the count is right")
    });
    let camera = [(&camera).into(), (&u).into(), (&v).into()];
    let still = publisher.make(camera, &request).expect("it can be coded");
    format!("{:x}", md5::compute(still.payload))
}

/// Decodes with every instruction set, and returns the results of the case as JSON.
fn check(stream: &Stream<'_>, scale: usize) -> String {
    let maker = Maker { low: stream.size, scale };
    let mut decoders: Vec<_> = Isa::available()
        .iter()
        .map(|&isa| HybridDecoder::new(HybridConfig { scale, isa, ..HybridConfig::default() }))
        .collect();
    let mut reassembler = Reassembler::new();
    let mut publisher = StillMaker::default();
    let mut lines = Vec::new();
    for (data, frame) in stream.frames.iter().zip(0u32..) {
        let mut shown = false;
        let network = network(frame);
        for decoder in &mut decoders {
            decoder.set_network(network.checked_sub(1).map(|n| Tier::ALL[n]));
            let outcome = match data {
                Frame::Coded(data) => decoder.push_frame(timestamp(frame), data),
                Frame::Decoded(picture) => decoder.push_picture(timestamp(frame), picture),
            };
            shown = outcome.expect("a sound stream").shown;
        }
        let (mut of_this, mut size) = (false, 0);
        if let Frame::Coded(data) = data {
            publisher.follow(timestamp(frame), data).expect("a sound stream");
            (of_this, size) = (shown && frame.is_multiple_of(STILL_EVERY), data.len());
        }
        let still = of_this.then(|| format!("\"{}\"", still(&maker, &mut publisher, frame)));
        let still = still.unwrap_or_else(|| "null".to_owned());
        let messages = maker.disturbed(frame);
        let mut outcomes = Vec::new();
        for message in &messages {
            let anchor = reassembler.push(message).expect("our own message");
            let became: Vec<_> = decoders
                .iter_mut()
                .map(|d| anchor.as_ref().map_or(0, |a| number(d.push_anchor(a))))
                .collect();
            assert!(became.iter().all(|b| *b == became[0]), "outcomes differ at frame {frame}");
            outcomes.push(became[0].to_string());
        }
        // What anchors have changed is shown with the next frame, or when asked for.
        for decoder in &mut decoders {
            decoder.refresh();
        }
        let low: Vec<_> =
            decoders.iter().map(|d| md5(d.lr().map(FrameBuffer::to_picture).as_ref())).collect();
        let high: Vec<_> = decoders.iter().map(|d| md5(d.hr())).collect();
        let kept: Vec<_> = decoders.iter().map(|d| cells(&d.kept())).collect();
        for (name, sums) in [("low", &low), ("high", &high), ("kept", &kept)] {
            assert!(
                sums.iter().all(|sum| *sum == sums[0]),
                "instruction sets give different {name} pictures at frame {frame}, scale {scale}",
            );
        }
        lines.push(format!(
            "{{\"timestamp\":{},\"size\":{},\"network\":{network},\"shown\":{shown},\"messages\":[{}],\"outcomes\":[{}],\"still\":{still},\"kept\":\"{}\",\"lr\":\"{}\",\"hr\":\"{}\"}}",
            timestamp(frame),
            size,
            hex_list(&messages),
            outcomes.join(","),
            kept[0],
            low[0],
            high[0],
        ));
    }
    let stats = decoders[0].stats();
    eprintln!("scale {scale}, {} instruction sets: {stats:?}", decoders.len());
    let used = [stats.late, stats.early, stats.duplicate, stats.former_epoch];
    assert!(used.iter().all(|&count| count > 0), "a kind of anchor has not come: {stats:?}");
    case(scale, &lines)
}

/// The number of a frame's network in the WebAssembly module: each in turn, and 0 (none).
fn network(frame: u32) -> usize {
    (frame / NETWORK_FRAMES) as usize % (1 + Tier::ALL.len())
}

/// The JSON of a case with the messages of a call.
fn call(ivf: &Ivf<'_>, scale: usize) -> String {
    let maker = Maker { low: ivf.size, scale };
    let (every, late) = CALL;
    let lines = ivf.frames.iter().zip(0u32..).map(|(data, frame)| {
        let of = frame.wrapping_sub(late);
        let messages = if of.is_multiple_of(every) {
            let source = AnchorSource::Enhanced;
            let of = Of { frame: of, seed: frame / every, epoch: 0, source, part: 0 };
            let (width, height) = maker.size(scale);
            let samples = width * height;
            maker.messages(of, &maker.full(), CodeSize::Budget(samples / SAMPLES_PER_BYTE))
        } else {
            Vec::new()
        };
        let (timestamp, size) = (timestamp(frame), data.len());
        let messages = hex_list(&messages);
        format!("{{\"timestamp\":{timestamp},\"size\":{size},\"messages\":[{messages}]}}")
    });
    case(scale, &lines.collect::<Vec<_>>())
}

fn case(scale: usize, frames: &[String]) -> String {
    format!("{{\"scale\":{scale},\"frames\":[{}]}}", frames.join(",\n"))
}

/// An outcome as the WebAssembly module numbers it.
fn number(outcome: AnchorOutcome) -> i32 {
    match outcome {
        AnchorOutcome::Applied { .. } => 1,
        AnchorOutcome::Early => 2,
        AnchorOutcome::TooOld => 3,
        AnchorOutcome::Duplicate => 4,
        AnchorOutcome::FormerEpoch => 5,
        AnchorOutcome::Malformed => -3,
        AnchorOutcome::WrongSize => -4,
    }
}

fn md5(picture: Option<&Picture>) -> String {
    let planes = picture.map(|p| p.planes().map(windlass_vp9::Plane::samples).concat());
    format!("{:x}", md5::compute(planes.unwrap_or_default()))
}

fn cells(kept: &KeptCells) -> String {
    match kept {
        KeptCells::NoPicture | KeptCells::Stale => String::new(),
        KeptCells::Flags(flags) => flags.iter().map(|&kept| if kept { '1' } else { '0' }).collect(),
    }
}

fn hex_list(messages: &[Vec<u8>]) -> String {
    use std::fmt::Write;
    let hex = |bytes: &Vec<u8>| {
        bytes.iter().fold(String::new(), |mut out, b| {
            let _ = write!(out, "{b:02x}");
            out
        })
    };
    messages.iter().map(|m| format!("\"{}\"", hex(m))).collect::<Vec<_>>().join(",")
}
