//! What a stream takes of the memory, by the size of its pictures: what `windlass_scheduler::memory` counts for it when
//! it is admitted.
//!
//! Streams of each size go through a running enhancer, in real time, until their histories are full; everything that is
//! allocated is counted.
//!
//! ```sh
//! cargo run --release -p windlass-lab --example stream_memory
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use windlass_enhancer::{Enhancer, EnhancerConfig};
use windlass_scheduler::memory;
use windlass_types::{
    AnchorPolicy, CapturedFrame, EnhancerOutput, Epoch, Owner, StreamId, TapFrame, TapInput,
};
use windlass_vp9::Picture;
use windlass_vpx::{Encoder, FrameUse, SequenceConfig};

struct Counting;

/// Allocator of this program, which counts live bytes.
#[global_allocator]
static ALLOCATOR: Counting = Counting;
/// Bytes that are allocated now.
static LIVE: AtomicI64 = AtomicI64::new(0);

// SAFETY: every method hands its arguments to the system's allocator and returns its result; the counter allocates
// nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        unsafe { System.dealloc(p, layout) }
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(size as i64 - layout.size() as i64, Ordering::Relaxed);
        unsafe { System.realloc(p, layout, size) }
    }
}

/// Number of frames of each stream: more than the history keeps.
const FRAMES: usize = 90;
/// Time between two frames: 25 per second.
const FRAME: Duration = Duration::from_millis(40);

fn scene(width: usize, height: usize, at: usize) -> Picture {
    let mut picture = Picture::grey(width, height);
    for y in 0..height {
        for x in 0..width {
            let wave = ((x + 2 * at) as f64 / 9.0).sin() * (y as f64 / 7.0).cos();
            let noise = (x * 7919 + y * 104_729 + at * 31) % 13;
            picture.y.samples_mut()[y * width + x] = (120.0 + 60.0 * wave) as u8 + noise as u8;
        }
    }
    picture
}

fn coded(width: usize, height: usize) -> Vec<Bytes> {
    let config = SequenceConfig { width, height, cpu_used: 8 };
    let mut encoder = Encoder::sequence(config).expect("an encoder");
    encoder.set_quantiser(44).expect("a quantiser");
    let frames = (0..FRAMES).map(|n| {
        let used = if n == 0 { FrameUse::Key } else { FrameUse::FromLast };
        encoder.encode_as(&scene(width, height, n), used).expect("a frame").into()
    });
    frames.collect()
}

fn main() {
    println!("{:>10} {:>8} {:>10} {:>10} {:>10}", "size", "larger", "MiB", "counted", "left MiB");
    for (width, height, larger) in [
        (160, 90, false),
        (320, 180, false),
        (640, 360, false),
        (960, 540, false),
        (320, 180, true),
        (640, 360, true),
    ] {
        let low = coded(width, height);
        let high = larger.then(|| coded(2 * width, 2 * height));
        let config = EnhancerConfig {
            learn: false,
            anchor_fraction: 0.2,
            memory: u64::MAX,
            budget: Duration::from_millis(500),
            ..EnhancerConfig::default()
        };
        let enhancer = Enhancer::start(config).expect("an enhancer");
        let input = enhancer.input();
        let before = LIVE.load(Ordering::Relaxed);
        let (stream, mut max) = (StreamId(1), 0);
        let begin = Instant::now();
        for (n, data) in low.iter().enumerate() {
            std::thread::sleep(
                (begin + FRAME * n as u32).saturating_duration_since(Instant::now()),
            );
            let (arrival, key) = (Instant::now(), n == 0);
            input.push(TapInput::Frame(TapFrame {
                stream,
                owner: Owner::alone(stream),
                epoch: Epoch(0),
                rtp_timestamp: 3_000 * n as u32,
                arrival,
                key,
                max_scale: 2,
                policy: AnchorPolicy::default(),
                data: data.clone(),
            }));
            if let Some(high) = &high {
                let data = high[n].clone();
                let low_timestamp = Some(3_000 * n as u32);
                let frame = CapturedFrame { stream, low_timestamp, arrival, key, data };
                input.push(TapInput::Captured(frame));
            }
            let outputs = enhancer.output();
            let _ = outputs
                .try_iter()
                .filter(|output| matches!(output, EnhancerOutput::Anchor(_)))
                .count();
            max = max.max(LIVE.load(Ordering::Relaxed) - before);
        }
        input.push(TapInput::Stop { stream });
        std::thread::sleep(Duration::from_millis(700));
        let left = LIVE.load(Ordering::Relaxed) - before;
        let mib = |bytes: i64| bytes as f64 / 1_048_576.0;
        let pixels = (width * height) as u64;
        let counted = memory::of(pixels, if larger { 4 * pixels } else { 0 });
        println!(
            "{:>10} {:>8} {:>10.1} {:>10.1} {:>10.1}",
            format!("{width}x{height}"),
            larger,
            mib(max),
            mib(counted as i64),
            mib(left)
        );
    }
}
