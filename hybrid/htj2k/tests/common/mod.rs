//! Pictures to code.

use windlass_htj2k::Format;

/// Something like detail: waves, an edge, noise that comes and goes. The amplitude is a share of
/// the format's range.
pub(crate) fn picture(format: Format, amplitude: f32, seed: u32) -> Vec<i16> {
    let mut state = seed.wrapping_mul(747_796_405).wrapping_add(1);
    let half = (1u32 << (format.bits - 1)) as f32;
    let level = if format.signed { 0.0 } else { half };
    (0..format.width * format.height)
        .map(|i| {
            let (x, y) = ((i % format.width) as f32, (i / format.width) as f32);
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (state >> 16) as f32 / 32768.0 - 1.0;
            let busy = if (x / 23.0).sin() * (y / 31.0).cos() > 0.3 { 0.3 } else { 0.0 };
            let edge = if x * 0.6 > y { 0.25 } else { -0.25 };
            let value = 0.3 * (x * 0.31 + y * 0.17).sin() + edge + busy * noise;
            (value * amplitude * half + level).clamp(level - half, level + half - 1.0) as i16
        })
        .collect()
}
