//! Gates of networks with a twin. A gate is the share that a sample takes of the difference between the twin's picture
//! and Lanczos.
//!
//! Each low sample has four gates. The library's exponential would take as much time for them as the network does. This
//! code is plain and works on slices, so that compilers vectorise it.

/// Magnitude at which gate inputs are clamped: the gate is then 0 or 1.
const MAX: f32 = 80.0;
/// Number that, added to one of small magnitude, leaves the nearest integer in the low bits: 1.5 × 2²³.
const ROUND: f32 = 12_582_912.0;

/// Adds `σ(g)·(T − L)` to each sample. `base` is `L` in sixteenths of a grey level.
pub(super) fn add_gated(out: &mut [f32], gates: &[f32], twin: &[u8], base: &[i16]) {
    let pictures = twin.iter().zip(base);
    for ((out, gate), (twin, base)) in out.iter_mut().zip(gates).zip(pictures) {
        let difference = f32::from(*twin) - f32::from(*base) * (1.0 / 16.0);
        *out += difference * sigmoid(*gate);
    }
}

/// `1 / (1 + e^−x)` to within 3·10⁻⁷.
#[inline]
fn sigmoid(x: f32) -> f32 {
    let power = x.clamp(-MAX, MAX) * -std::f32::consts::LOG2_E;
    let rounded = power + ROUND;
    let rest = (power - (rounded - ROUND)) * std::f32::consts::LN_2;
    // e^rest for |rest| ≤ ln 2 / 2, by its series.
    let series = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    let fraction = series.into_iter().fold(0.0, |sum, factor| sum * rest + factor);
    let exponent = rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
    1.0 / (1.0 + fraction * f32::from_bits(exponent << 23))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_those_of_the_exponential() {
        let steps = (-120_000..120_000).map(|n| n as f32 / 1_000.0);
        for x in steps.chain([f32::MIN, -0.0, f32::MAX, f32::INFINITY, f32::NEG_INFINITY]) {
            let exact = 1.0 / (1.0 + (-f64::from(x)).exp());
            assert!((f64::from(sigmoid(x)) - exact).abs() < 3e-7, "{x}: {}", sigmoid(x));
        }
    }

    #[test]
    fn an_open_gate_takes_the_difference_and_a_shut_one_nothing() {
        let mut out = [1.0, 1.0, 1.0];
        add_gated(&mut out, &[90.0, -90.0, 0.0], &[100, 100, 100], &[80 * 16, 80 * 16, 80 * 16]);
        for (out, due) in out.into_iter().zip([21.0, 1.0, 11.0]) {
            assert!((out - due).abs() < 1e-5, "{out} for {due}");
        }
    }
}
