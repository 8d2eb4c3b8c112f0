//! Times of coding a picture of 1280×720, or of another size, in milliseconds of one thread: the best of several.
//!
//! `cargo run --release -p windlass-lab --example htj2k_speed [WIDTH HEIGHT]`

use std::time::Instant;

use windlass_htj2k::{Encoder, Format, Limits, decode};

#[path = "../../hybrid/htj2k/tests/common/mod.rs"]
mod common;

fn main() {
    let mut sides = std::env::args().skip(1).map(|side| side.parse().expect("a number"));
    let mut side = |usual| sides.next().unwrap_or(usual);
    let format = Format { width: side(1280), height: side(720), bits: 13, signed: true };
    let samples = common::picture(format, 0.02, 1);
    let limits = Limits { max_side: 8192, max_area: 1 << 26 };
    println!("{:>6} {:>8} {:>9} {:>9} {:>9}", "step", "bytes", "transform", "code", "decode");
    for step in [8.0, 16.0, 32.0, 64.0, 128.0] {
        let encoder = Encoder::new(&samples, format, 5).expect("a legal picture");
        let coded = encoder.encode(step);
        let mut memory = Vec::new();
        let transform = best(|| {
            let again = Encoder::with_memory(std::mem::take(&mut memory), &samples, format, 5);
            memory = again.expect("a legal picture").into_memory();
        });
        let code = best(|| drop(encoder.encode(step)));
        let back = best(|| drop(decode(&coded, limits)));
        println!("{step:>6} {:>8} {transform:>9.2} {code:>9.2} {back:>9.2}", coded.len());
    }
}

fn best(mut run: impl FnMut()) -> f64 {
    let times = (0..15).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1000.0
    });
    times.fold(f64::INFINITY, f64::min)
}
