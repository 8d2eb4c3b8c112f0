//! Writes the anchors that the tests of the stream's decoder take: each payload behind its length
//! (u16, big endian).
//!
//! ```sh
//! cargo run --release -p windlass-enhancer --example anchor_stream -- hybrid/tests/fixtures/anchor_stream.bin
//! ```

use std::error::Error;

use windlass_enhancer::encode::{Prediction, StreamConfig, StreamEncoder};
use windlass_hybrid::anchor::tiles::TileMap;
use windlass_hybrid::detail::Detail;

const SIZE: (usize, usize) = (96, 64);

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name the file to write")?;
    let mut encoder = StreamEncoder::new(StreamConfig::new(SIZE.0, SIZE.1))?;
    let tiles = TileMap::full(SIZE.0 / 2, SIZE.1 / 2);
    let order = [
        Prediction::Key,
        Prediction::FromLast,
        Prediction::FromLast,
        Prediction::FromKey,
        Prediction::FromLast,
    ];
    let mut out = Vec::new();
    for (n, prediction) in order.into_iter().enumerate() {
        let payload = encoder.encode(&waves(n), &tiles, 2, None, prediction)?.payload;
        out.extend(u16::try_from(payload.len())?.to_be_bytes());
        out.extend(payload);
    }
    std::fs::write(path, out)?;
    Ok(())
}

/// Waves that move to the left.
fn waves(n: usize) -> Detail {
    let mut detail = Detail::zero(SIZE.0, SIZE.1);
    for y in 0..SIZE.1 {
        for (x, d) in detail.row_mut(y).iter_mut().enumerate() {
            let (x, y) = ((x + 2 * n) as f64, y as f64);
            *d = ((x * 0.5).sin() * (y * 0.3 + x * 0.1).cos() * 200.0) as i16;
        }
    }
    detail
}
