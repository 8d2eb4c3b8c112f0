//! Makes the stream of `src/warm_up.rs`; `warm-up/make.sh` calls it.
//!
//! `cargo run -p windlass-wasm --example warm_up_stream FILE.ivf… > stream.bin` puts the frames of
//! all files one after the other, and an anchor for the second file's fifth frame behind its sixth.

use std::io::Write;

use windlass_files::ivf::frames;
use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec::Htj2k;
use windlass_types::message::AnchorHeader;
use windlass_types::message::HTJ2K;
use windlass_types::message::{MAX_CHUNK, encode_chunks};
use windlass_types::{AnchorSource, Size};

/// Index in the second file of the frame that gets an anchor. The frame behind it is decoded before the anchor comes.
const ANCHORED: usize = 4;
/// RTP ticks from piece to piece, at 90 kHz: as in `src/warm_up.rs`.
const TICKS: u32 = 3000;

fn main() {
    let files: Vec<Vec<u8>> =
        std::env::args().skip(1).map(|f| std::fs::read(f).expect("a readable file")).collect();
    let [first, second, ..] = files.as_slice() else {
        panic!("usage: warm_up_stream IVF IVF…");
    };
    let side = |at: usize| 2 * u16::from_le_bytes([second[at], second[at + 1]]);
    let anchored = frames(first).len() + ANCHORED;
    let mut pieces: Vec<_> = files.iter().flat_map(|file| frames(file)).collect();
    let anchor = anchor(side(12), side(14), anchored as u32 * TICKS);
    pieces.insert(anchored + 2, &anchor);
    let mut out = std::io::stdout().lock();
    for piece in pieces {
        out.write_all(&(piece.len() as u32).to_le_bytes()).expect("a writable output");
        out.write_all(piece).expect("a writable output");
    }
}

/// One anchor message for a frame of this HR size, with a soft texture like that of real detail.
fn anchor(width: u16, height: u16, rtp_timestamp: u32) -> Vec<u8> {
    let (w, h) = (usize::from(width), usize::from(height));
    let wave = |i: usize| (i as f32 / 5.0).sin() * 90.0;
    let samples = (0..w * h).map(|i| (wave(i % w) * wave(i / w) / 90.0) as i16).collect();
    let detail = Detail::from_samples(w, h, samples).expect("the count is right");
    let payload = Htj2k::encode(&detail, 60).expect("a legal size");
    let size = Size::new(width, height);
    let header = AnchorHeader::new(HTJ2K, AnchorSource::Enhanced, rtp_timestamp, size);
    let mut messages = encode_chunks(&header, &payload, MAX_CHUNK).expect("a small payload");
    assert_eq!(messages.len(), 1, "the anchor must fit one message");
    messages.remove(0)
}
