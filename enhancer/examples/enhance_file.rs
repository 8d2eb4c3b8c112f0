//! Enhances a VP9 file offline: each second's first frame is super-resolved, and the hybrid decoder carries its detail
//! to the others.
//!
//! ```sh
//! cargo run --release -p windlass-enhancer --example enhance_file -- low.ivf high.y4m   # twice as wide and high
//! ffplay high.y4m
//! ```
//!
//! An IVF file comes from `ffmpeg -i clip.mp4 -s 320x180 -c:v libvpx-vp9 low.ivf`.

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};

use windlass_hybrid::anchor::codec::Htj2k;
use windlass_hybrid::anchor::prior::Prior;
use windlass_hybrid::{HybridConfig, HybridDecoder};
use windlass_sr::{CpuEngine, Engine, Residual, embedded_model, infer_tiles, infer_tiles_fused};
use windlass_types::message::{AnchorHeader, HTJ2K, ReassembledAnchor};
use windlass_types::tiles::TileMap;
use windlass_types::{AnchorSource, Size};
use windlass_vp9::simd::Isa;
use windlass_vp9::{Plane, Samples};

/// HR width over LR width.
const SCALE: usize = 2;
/// Frames from one anchor to the next.
const ANCHOR_EVERY: u32 = 30;
/// Ticks of the RTP clock, 90 kHz, for each frame at 30 frames per second: anchors name their frame by them.
const TICKS: u32 = 3_000;
/// Quality of an anchor's JPEG 2000 code, 1 to 100.
const QUALITY: u8 = 85;

fn main() -> Result<(), Box<dyn Error>> {
    let [input, output] = &std::env::args().skip(1).collect::<Vec<_>>()[..] else {
        return Err("usage: enhance_file LOW.ivf HIGH.y4m".into());
    };
    let mut input = BufReader::new(File::open(input)?);
    let mut output = BufWriter::new(File::create(output)?);
    let mut engine = CpuEngine::new(embedded_model()?);
    let mut decoder = HybridDecoder::new(HybridConfig { scale: SCALE, ..HybridConfig::default() });

    input.read_exact(&mut [0; 32])?; // the file's header
    let mut n = 0;
    while let Some(data) = next_frame(&mut input)? {
        decoder.push_frame(n * TICKS, &data)?;
        if n % ANCHOR_EVERY == 0 {
            let low = decoder.lr().ok_or("the first frame is no key frame")?.planes();
            let filtered = &decoder.hr().ok_or("the frame is too large")?.y;
            let anchor = anchor(&mut engine, n * TICKS, Samples::from(&low[0]), filtered)?;
            decoder.push_anchor(&anchor);
            decoder.refresh(); // the picture of this frame, too
        }
        let high = decoder.hr().ok_or("no picture")?;
        if n == 0 {
            writeln!(output, "YUV4MPEG2 W{} H{} F30:1 Ip C420", high.y.width(), high.y.height())?;
        }
        writeln!(output, "FRAME")?;
        for plane in high.planes() {
            output.write_all(plane.samples())?;
        }
        n += 1;
    }
    Ok(output.flush()?)
}

/// The data of the next frame: 4 bytes of length and 8 of time stamp stand before it.
fn next_frame(input: &mut impl Read) -> Result<Option<Vec<u8>>, std::io::Error> {
    let mut header = [0; 12];
    match input.read_exact(&mut header) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let mut data = Vec::new();
    input.take(length.into()).read_to_end(&mut data)?;
    Ok(Some(data))
}

/// Super-resolves a frame, and encodes what the network adds to the picture of the decoder's own filters.
fn anchor(
    engine: &mut CpuEngine,
    timestamp: u32,
    low: Samples<'_>,
    filtered: &Plane,
) -> Result<ReassembledAnchor, Box<dyn Error>> {
    let all = TileMap::full(Size::saturating(low.width, low.height));
    let mut residual = Residual::default();
    let made = if engine.architecture().has_twin() {
        infer_tiles_fused(engine, low, filtered.into(), &all, &mut residual)
    } else {
        infer_tiles(engine, low, &all, &mut residual)
    };
    let mut detail = made?.0;
    Prior::new(Isa::detect(), SCALE).take_out(low, &mut detail);
    let size = Size::new(u16::try_from(low.width * SCALE)?, u16::try_from(low.height * SCALE)?);
    let header = AnchorHeader {
        beyond_prior: true,
        ..AnchorHeader::new(HTJ2K, AnchorSource::Enhanced, timestamp, size)
    };
    Ok(ReassembledAnchor { header, payload: Htj2k::encode(&detail, QUALITY)? })
}
