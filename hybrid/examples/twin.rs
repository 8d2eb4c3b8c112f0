//! Prints, as JSON, what the hybrid decoder makes of an IVF file with anchors in it.
//!
//! `cargo run -p windlass-hybrid --example twin FILE.ivf` decodes the file and gives every seventh
//! frame a synthetic anchor, early, on time or late in turn. Each entry holds the messages pushed
//! after its frame (hex) and the MD5 of the low and the high picture then. `client-web/wasm/check.mjs`
//! replays it in WebAssembly and compares.

use windlass_hybrid::anchor::codec::{AnchorCodec, ResidualJpeg};
use windlass_hybrid::anchor::message::encode_chunks;
use windlass_hybrid::anchor::{AnchorHeader, AnchorOrigin, Reassembler};
use windlass_hybrid::vp9::FrameBuffer;
use windlass_hybrid::{Detail, HybridConfig, HybridDecoder, Picture};

fn main() {
    let path = std::env::args().nth(1).expect("usage: twin FILE.ivf");
    let bytes = std::fs::read(&path).expect("a readable file");
    let (width, height) = (
        u16::from_le_bytes([bytes[12], bytes[13]]) * 2,
        u16::from_le_bytes([bytes[14], bytes[15]]) * 2,
    );
    let mut decoder = HybridDecoder::new(HybridConfig::default());
    let mut reassembler = Reassembler::new();
    let mut lines = Vec::new();
    let (mut rest, mut frame) = (&bytes[32..], 0u32);
    while let Some((head, tail)) = rest.split_first_chunk::<12>() {
        let size = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let (chunk, next) = tail.split_at(size);
        // The timeline wraps around in the middle.
        let timestamp = |frame: u32| frame.wrapping_mul(3000).wrapping_sub(60_000);
        let flags = decoder.push_frame(timestamp(frame), chunk).expect("a sound stream");
        let mut messages = Vec::new();
        if frame % 7 == 3 {
            let of = frame.wrapping_add(2).wrapping_sub(frame / 7 % 3 * 3);
            messages = anchor(width, height, timestamp(of), frame);
        }
        for message in &messages {
            if let Some(anchor) = reassembler.push(message).expect("our own message") {
                decoder.push_anchor(&anchor);
            }
        }
        let hex: Vec<String> = messages.iter().map(|m| format!("\"{}\"", hex(m))).collect();
        lines.push(format!(
            "{{\"timestamp\":{},\"size\":{size},\"shown\":{},\"messages\":[{}],\"lr\":\"{}\",\"hr\":\"{}\"}}",
            timestamp(frame),
            flags.shown,
            hex.join(","),
            md5(decoder.lr().map(FrameBuffer::to_picture).as_ref()),
            md5(decoder.hr()),
        ));
        rest = next;
        frame += 1;
    }
    println!("[{}]", lines.join(",\n"));
    eprintln!("{:?}", decoder.stats());
}

/// The messages of an anchor with a texture that differs from anchor to anchor.
fn anchor(width: u16, height: u16, rtp_timestamp: u32, seed: u32) -> Vec<Vec<u8>> {
    let (w, h) = (usize::from(width), usize::from(height));
    let samples = (0..w * h)
        .map(|i| ((i % w * 5 + i / w * 3 + seed as usize * 11) % 61) as i16 * 8 - 240)
        .collect();
    let detail = Detail::from_samples(w, h, samples).expect("the count is right");
    let payload = ResidualJpeg.encode(&detail, 60).expect("a legal size");
    let header = AnchorHeader {
        codec: ResidualJpeg.id(),
        source: AnchorOrigin::Enhanced,
        tiled: false,
        part: 0,
        stream: 1,
        epoch: 0,
        chunk_index: 0,
        chunk_count: 1,
        age_ms: 0,
        rtp_timestamp,
        width,
        height,
    };
    encode_chunks(&header, &payload, 1100).expect("a small payload")
}

fn md5(picture: Option<&Picture>) -> String {
    let planes = picture.map(|p| p.planes().map(windlass_hybrid::Plane::samples).concat());
    format!("{:x}", md5::compute(planes.unwrap_or_default()))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}
