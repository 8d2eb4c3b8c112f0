//! A moving scene for machines without clips: a textured wall that pans, and before it a shape like a head that
//! sways.

use windlass_vp9::{Picture, Plane};

/// The scene at a time of its loop, 0 to 1. At 1 it begins anew without a jump.
pub(crate) fn draw(width: usize, height: usize, at: f64) -> Picture {
    let turn = std::f64::consts::TAU;
    // Everything is in sines of whole turns, so that the loop closes.
    let pan = (turn * at).sin() * 0.05;
    let head = (0.5 + 0.12 * (turn * at).cos(), 0.48 + 0.04 * (2.0 * turn * at).sin());
    let mut luma = Vec::with_capacity(width * height);
    for y in 0..height {
        let v = (y as f64 + 0.5) / height as f64;
        for x in 0..width {
            let u = (x as f64 + 0.5) / width as f64;
            luma.push(shade(u, v, pan, head, at) as u8);
        }
    }
    let tint = |value| Plane::filled(width.div_ceil(2), height.div_ceil(2), value);
    let y = Plane::from_samples(width, height, luma).unwrap_or_default();
    Picture { y, u: tint(118), v: tint(140) }
}

fn shade(u: f64, v: f64, pan: f64, head: (f64, f64), at: f64) -> f64 {
    let turn = std::f64::consts::TAU;
    let (dx, dy) = ((u - head.0) / 0.16, (v - head.1) / 0.34);
    let far = dx * dx + dy * dy;
    if far < 1.0 {
        // Features that move on the head: brows, and a mouth that opens eight times in a loop.
        let open = 0.06 + 0.05 * (8.0 * turn * at).sin();
        let mouth = dx.abs() < 0.35 && (dy - 0.5).abs() < open;
        let brows = (dx.abs() - 0.4).abs() < 0.2 && (dy + 0.35).abs() < 0.05;
        let hair = 14.0 * (60.0 * dx + 9.0 * dy).sin() * f64::from(dy < -0.55);
        let skin = 176.0 - 40.0 * far + 6.0 * (40.0 * dx).sin() * (37.0 * dy).cos();
        return if mouth || brows { 60.0 } else { skin + hair };
    }
    let (x, y) = (u + pan, v);
    let bricks = f64::from((x * 24.0).floor() as i64 % 2 == (y * 14.0).floor() as i64 % 2);
    70.0 + 30.0 * bricks + 12.0 * (x * 140.0).sin() + 9.0 * (y * 90.0 + x * 25.0).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_closes_and_the_scene_moves() {
        assert_eq!(draw(64, 36, 0.0), draw(64, 36, 1.0));
        let (one, other) = (draw(64, 36, 0.1), draw(64, 36, 0.2));
        let changed = one.y.samples().iter().zip(other.y.samples()).filter(|(a, b)| a != b).count();
        assert!(changed > 64 * 36 / 4, "{changed}");
    }
}
