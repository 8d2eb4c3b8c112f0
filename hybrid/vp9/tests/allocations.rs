//! What the VP9 decoder allocates: nothing per frame once pictures of the stream's size have been
//! decoded, and no more than the declared size needs before that.
//!
//! A global allocator counts for each thread by itself, so that tests may run side by side.

mod common;
#[path = "common/counting.rs"]
mod counting;

use common::{ALTREF, REALTIME, ivf};
use counting::{allocations, peak};
use windlass_vp9::{Block, DecodeError, Decoder, PictureRows, SizeLimit, Visitor};

const CHROMIUM: [(&str, &[u8]); 3] = [
    ("l1t1", include_bytes!("../../../tests/fixtures/vp9/chromium-l1t1.ivf")),
    ("l1t2", include_bytes!("../../../tests/fixtures/vp9/chromium-l1t2.ivf")),
    ("l1t3", include_bytes!("../../../tests/fixtures/vp9/chromium-l1t3.ivf")),
];
/// Chromium changes the size in mid-stream, without key frames.
const RESIZE: &[u8] = include_bytes!("../../../tests/fixtures/vp9/chromium-resize.ivf");

/// Streams of one size.
fn steady() -> impl Iterator<Item = (&'static str, Vec<&'static [u8]>)> {
    [("realtime", REALTIME), ("altref", ALTREF)]
        .into_iter()
        .chain(CHROMIUM)
        .map(|(name, stream)| (name, ivf(stream)))
}

/// Wants everything that a visitor can have.
#[derive(Default)]
struct Everything {
    residuals: u64,
    blocks: u64,
}

impl Visitor for Everything {
    const RESIDUAL: bool = true;

    fn residual(&mut self, _plane: usize, _x: usize, _y: usize, side: usize, residual: &[i16]) {
        assert_eq!(residual.len(), side * side);
        self.residuals += 1;
    }

    fn block(&mut self, _block: &Block, _picture: &PictureRows<'_>) {
        self.blocks += 1;
    }
}

/// Asserts that `decode` allocates in none of the frames from `from` on, nor when the stream comes
/// again after that.
fn assert_steady(name: &str, chunks: &[&[u8]], from: usize, mut decode: impl FnMut(&[u8])) {
    assert!(chunks.len() > from, "{name} is too short to become steady");
    let warming = allocations(|| chunks[..from].iter().for_each(|chunk| decode(chunk)));
    assert!(from == 0 || warming > 0, "{name}: nothing was counted");
    for round in 0..3 {
        for (i, chunk) in chunks.iter().enumerate().skip(if round == 0 { from } else { 0 }) {
            let calls = allocations(|| decode(chunk));
            assert_eq!(calls, 0, "{name}: frame {i} of round {round} allocates {calls} times");
        }
    }
}

/// Frames after which a stream of one size has used every buffer: a hidden frame may stay
/// referenced for a group of pictures.
const WARM: usize = 20;

#[test]
fn decoding_allocates_nothing_per_frame() {
    for (name, chunks) in steady() {
        let mut decoder = Decoder::new();
        assert_steady(name, &chunks, WARM, |chunk| {
            decoder.decode(chunk).expect("a sound stream");
        });
    }
}

#[test]
fn decoding_for_a_visitor_allocates_nothing_per_frame() {
    for (name, chunks) in steady() {
        let (mut decoder, mut seen) = (Decoder::new(), Everything::default());
        assert_steady(name, &chunks, WARM, |chunk| {
            decoder.decode_with(chunk, Some(0), &mut seen).expect("a sound stream");
        });
        assert!(seen.residuals > 0 && seen.blocks > 0);
    }
}

#[test]
fn changing_sizes_allocate_nothing_once_every_buffer_has_had_the_largest() {
    let chunks = ivf(RESIZE);
    let mut decoder = Decoder::new();
    for _ in 0..4 {
        for chunk in &chunks {
            decoder.decode(chunk).expect("a sound stream");
        }
    }
    assert_steady("resize", &chunks, 0, |chunk| {
        decoder.decode(chunk).expect("a sound stream");
    });
}

#[test]
fn frames_that_are_held_for_a_while_are_not_made_anew() {
    let chunks = ivf(REALTIME);
    let mut decoder = Decoder::new();
    let mut held = std::collections::VecDeque::with_capacity(4);
    assert_steady("held", &chunks, WARM, |chunk| {
        let frames = decoder.decode(chunk).expect("a sound stream");
        if held.len() == 3 {
            held.pop_front();
        }
        held.push_back(frames[0].clone());
    });
}

#[test]
fn memory_is_bounded_by_the_declared_size() {
    for (name, chunks) in steady().chain([("resize", ivf(RESIZE))]) {
        let mut most = 0;
        let bytes = peak(|| {
            let mut decoder = Decoder::new();
            for _ in 0..2 {
                for chunk in &chunks {
                    for frame in decoder.decode(chunk).expect("a sound stream") {
                        let picture = &frame.picture;
                        let side = |n: usize| n.next_multiple_of(64);
                        most = most.max(side(picture.width()) * side(picture.height()));
                    }
                }
            }
        });
        // Fourteen pictures of 3/2 byte for each sample, as many infos of a block (less than
        // 96 bytes) for each 8×8 square, and half a megabyte that is the same for every size.
        let bound = 14 * (most * 3 / 2 + most / 64 * 100) + (1 << 19);
        assert!(bytes <= bound as i64, "{name}: {bytes} bytes for {most} samples");
    }
}

/// A key frame's uncompressed header of the given size.
fn key_frame(width: u32, height: u32) -> Vec<u8> {
    // Frame marker, profile 0, a key frame to be shown; the sync code.
    let mut data = vec![0b1000_0010, 0x49, 0x83, 0x42];
    // Colour space 1, range 0, then width and height less one; four bits are left.
    let bits = 0b0010u64 << 60 | u64::from(width - 1) << 44 | u64::from(height - 1) << 28;
    data.extend(bits.to_be_bytes());
    // No loop filter, quantiser 0, no segments, as few tiles as there may be; then 16 bits of the
    // compressed header's size, some of which lie in byte 13.
    data.extend([0; 40]);
    data[13] = 1;
    data
}

#[test]
fn a_huge_picture_is_refused_before_anything_is_allocated() {
    let mut decoder = Decoder::new();
    for (width, height) in [(16384, 16384), (65536, 65536), (65536, 1), (1, 65536), (4096, 2305)] {
        let key = key_frame(width, height);
        let expected = Some(DecodeError::Size { width, height });
        let calls = allocations(|| {
            assert_eq!(decoder.decode(&key).err(), expected);
        });
        assert_eq!(calls, 0, "{width}x{height}");
    }
}

#[test]
fn a_limit_is_kept_before_anything_is_allocated() {
    let chunks = ivf(REALTIME);
    let refused = Some(DecodeError::Size { width: 161, height: 91 });
    for limit in
        [SizeLimit { area: 161 * 91 - 1, side: 161 }, SizeLimit { area: 1 << 20, side: 160 }]
    {
        let mut decoder = Decoder::with_limit(limit);
        let calls = allocations(|| {
            assert_eq!(decoder.decode(chunks[0]).err(), refused);
        });
        assert_eq!(calls, 0);
    }
    let mut decoder = Decoder::with_limit(SizeLimit { area: 161 * 91, side: 161 });
    assert!(decoder.decode(chunks[0]).is_ok());
}
