//! Makes the seeds of the fuzz targets: `examples/hybrid_seeds FILES_OR_FOLDERS`.
//!
//! IVF files of VP9 are cut into windows of a few chunks, each after the stream's first key frame.
//! Seeds go to `corpus/TARGET/`; those of the anchors are made here.
//!
//! It is linked as a fuzz target, without which nothing that counts coverage can be, and ends before the first input.

#![no_main]
#![allow(missing_docs)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec::Htj2k;
use windlass_hybrid::anchor::payload::{self, Packed};
use windlass_hybrid_fuzz::scale;
use windlass_types::AnchorSource;
use windlass_types::Size;
use windlass_types::message::HTJ2K;
use windlass_types::message::{AnchorHeader, encode_chunks};
use windlass_types::tiles::TileMap;
use windlass_vp9::Decoder;
use windlass_vp9_fuzz::LIMIT;
use windlass_vp9_fuzz::container::join;
use windlass_vp9_fuzz::streams::{MAX_BYTES, files, name, windows};

fuzz_target!(init: make_and_end(), |_data: &[u8]| {});

fn make_and_end() {
    make().expect("seeds can be written");
    std::process::exit(0);
}

fn make() -> Result<(), Box<dyn Error>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folder = |target: &str| -> Result<PathBuf, std::io::Error> {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    let hybrid = folder("hybrid")?;
    for path in files(std::env::args_os().skip(1).map(PathBuf::from))? {
        let bytes = fs::read(&path)?;
        for (n, (start, chunks)) in windows(&bytes).into_iter().enumerate() {
            for options in 0..3 {
                let Some(chunks) = with_anchors(&chunks, options + n as u8)? else { continue };
                let seed = join(options | 6 << 2, &chunks, MAX_BYTES);
                let name = format!("{}-{start}-{}", name(&path), scale(options));
                fs::write(hybrid.join(name), &seed)?;
            }
        }
    }
    let (messages, images) = (folder("anchor_message")?, folder("anchor_image")?);
    for (n, (width, height)) in [(1u16, 1u16), (16, 8), (50, 38), (128, 96)].into_iter().enumerate()
    {
        for quality in [5, 75, 100] {
            let head = [width.to_be_bytes(), height.to_be_bytes()].concat();
            let image = image(width, height, quality)?;
            fs::write(
                images.join(format!("{width}x{height}-{quality}")),
                [&head[..], &image].concat(),
            )?;
            let header = AnchorHeader {
                codec: HTJ2K,
                source: AnchorSource::Enhanced,
                tiled: false,
                beyond_prior: false,
                part: 0,
                stream: n as u32,
                epoch: 1,
                chunk_index: 0,
                chunk_count: 1,
                age_ms: 10,
                rtp_timestamp: 3000 * n as u32,
                size: Size::new(width, height),
            };
            let chunks = encode_chunks(&header, &image, 64)?;
            fs::write(
                messages.join(format!("{width}x{height}-{quality}")),
                join(0, &chunks, MAX_BYTES),
            )?;
        }
    }
    Ok(())
}

/// A seed: frames, and behind each a few anchor messages, whole and in tiles, in time and late. `None` where the
/// pictures are larger than the target looks at.
fn with_anchors(frames: &[&[u8]], options: u8) -> Result<Option<Vec<Vec<u8>>>, Box<dyn Error>> {
    let mut decoder = Decoder::with_limit(LIMIT);
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    let mut times = Vec::new();
    let scale = scale(options);
    for (n, frame) in frames.iter().enumerate() {
        let Ok(decoded) = decoder.decode(frame) else { return Ok(None) };
        let Some(last) = decoded.last() else { continue };
        let (width, height) = (last.picture.width(), last.picture.height());
        times.push((chunks.len() as u32 * 3000).wrapping_sub(6000));
        chunks.push(frame.to_vec());
        if n % 3 != usize::from(options) % 3 {
            continue;
        }
        let late = n / 2 % 3;
        let low = Size::saturating(width, height);
        let mut tiles = TileMap::empty(low);
        tiles.set(n % tiles.columns(), n / 3 % tiles.rows());
        let tiles = if n % 2 == 0 { tiles } else { TileMap::full(low) };
        let (w, h) = (width * scale, height * scale);
        let samples = (0..w * h).map(|i| ((i / 5 % w * 37 + i / w / 9 * 91) % 400) as i16 - 200);
        let detail = Detail::from_samples(w, h, samples.collect()).ok_or("a wrong count")?;
        let coded = Htj2k::encode(&payload::image(detail, &tiles, scale), 1)?;
        let Packed { payload, tiled } = payload::pack(&tiles, coded);
        let header = AnchorHeader {
            codec: HTJ2K,
            // Only what a publisher gave teaches the filters.
            source: if n % 4 < 2 { AnchorSource::Captured } else { AnchorSource::Enhanced },
            tiled,
            beyond_prior: false,
            part: 0,
            stream: 1,
            epoch: u16::from(options),
            chunk_index: 0,
            chunk_count: 1,
            age_ms: 10,
            rtp_timestamp: times[times.len() - 1 - late.min(times.len() - 1)],
            size: Size::new(w as u16, h as u16),
        };
        chunks.extend(encode_chunks(&header, &payload, 16_000)?);
    }
    Ok(Some(chunks))
}

fn image(width: u16, height: u16, quality: u8) -> Result<Vec<u8>, Box<dyn Error>> {
    let (width, height) = (usize::from(width), usize::from(height));
    let samples = (0..width * height).map(|i| ((i * 37 + i / width * 91) % 400) as i16 - 200);
    let detail = Detail::from_samples(width, height, samples.collect()).ok_or("a wrong count")?;
    Ok(Htj2k::encode(&detail, quality)?)
}
