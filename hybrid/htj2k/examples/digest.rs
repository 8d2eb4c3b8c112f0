//! Prints the digest that `tests/conformance.rs` expects, to be run on other targets:
//!
//! `cargo run -p windlass-htj2k --example digest [--target …]`. Where there is no standard output,
//! as in `wasm32-unknown-unknown`, the exported function `digest` gives it.

use windlass_htj2k::{Encoder, Format, Limits, decode};

#[allow(dead_code)]
fn main() {
    println!("{:016x}", digest());
}

/// The FNV-1a hash of the codestreams at three steps and of the samples that they decode to.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn digest() -> u64 {
    let format = Format { width: 321, height: 199, bits: 13, signed: true };
    let samples: Vec<i16> = (0..321 * 199).map(|i| ((i * i / 7) % 1500 - 750) as i16).collect();
    let encoder = Encoder::new(&samples, format, 5).expect("a legal picture");
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    for step in [2.0, 11.0, 70.0] {
        let coded = encoder.encode(step);
        coded.iter().copied().for_each(&mut add);
        let back = decode(&coded, Limits { max_side: 4096, max_area: 1 << 20 });
        for sample in back.expect("our own stream").samples {
            sample.to_le_bytes().into_iter().for_each(&mut add);
        }
    }
    hash
}
