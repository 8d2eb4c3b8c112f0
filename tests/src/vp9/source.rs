//! Synthetic pictures that make an encoder use every tool: seeded, so that streams repeat.
//!
//! A scene is a function of position and time in units of 1/16 sample of a picture 256 units wide,
//! so another size shows the same scene, scaled: that is what a resize in mid-stream needs.

use super::I420;

/// What the pictures show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    /// A texture under a pan of fractional speed, two objects before it, noise, text and cuts.
    Mixed,
    /// Slow pan over a smooth texture: long vectors, large blocks, compound prediction.
    Pan,
    /// Lines of one-sample strokes that scroll: small transforms, intra modes, sharp filter.
    Text,
    /// Full-range noise: every coefficient, highest rates.
    Noise,
    /// One still picture: skipped blocks, zero vectors, static segments.
    Still,
    /// Saturated blocks of 0 and 255 whose pattern changes: extremes of transforms and filters.
    Extremes,
    /// Dark to light and back with a moving shape: fades, hidden references, golden boosts.
    Fade,
}

/// Pictures of one scene.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    scene: Scene,
    seed: u32,
}

impl Source {
    /// Pictures of `scene`; another seed shows other textures, objects and speeds.
    pub fn new(scene: Scene, seed: u32) -> Source {
        Source { scene, seed }
    }

    /// The picture at time `n` in the given size.
    pub fn picture(&self, n: usize, width: usize, height: usize) -> I420 {
        let mut picture = I420::new(width, height);
        for plane in 0..3 {
            let (w, _) = picture.plane_size(plane);
            // Position in 1/16 of a unit; the picture is 256 units wide, small ones have 1 unit per sample.
            let step = if width < 64 { 16 } else { (256 * 16 / width as i32).max(1) };
            let step = if plane == 0 { step } else { step * 2 };
            let view = View::new(*self, n as i32, plane as u32);
            for (y, row) in picture.plane_mut(plane).chunks_exact_mut(w).enumerate() {
                for (x, out) in row.iter_mut().enumerate() {
                    *out = view.sample(x as i32 * step, y as i32 * step, x as u32, y as u32);
                }
            }
        }
        picture
    }
}

/// One plane of one picture.
struct View {
    scene: Scene,
    seed: u32,
    time: i32,
    plane: u32,
}

impl View {
    fn new(source: Source, time: i32, plane: u32) -> View {
        // A cut: after every 13 pictures a mixed scene shows another texture.
        let cut = if source.scene == Scene::Mixed { time as u32 / 13 } else { 0 };
        View {
            scene: source.scene,
            seed: hash(source.seed ^ (cut << 20) ^ (plane << 28)),
            time,
            plane,
        }
    }

    /// `u`, `v`: position in 1/16 unit; `x`, `y`: sample.
    fn sample(&self, u: i32, v: i32, x: u32, y: u32) -> u8 {
        let t = self.time;
        let speed = |shift: u32, most: i32| (hash(self.seed >> 3 ^ shift) as i32 & 1023) % most;
        let value = match self.scene {
            Scene::Mixed => {
                let (pan_x, pan_y) = (speed(1, 41) - 20, speed(2, 17) - 8);
                let mut value = self.texture(u + t * pan_x, v + t * pan_y, 0);
                if in_disc(u, v, 900 + 23 * t, 700 - 9 * t, 420) {
                    value = self.texture(u - 23 * t, v + 9 * t, 7) / 2 + 100;
                } else if in_box(u, v, 2400 - 37 * t, 300 + 21 * t, 520) {
                    value = 235 - self.texture(u + 37 * t, v - 21 * t, 9) / 3;
                } else if u > 2600 && v > 1200 {
                    value = self.text(x, y + t as u32);
                }
                value + (hash(x ^ y << 12 ^ (t as u32) << 23 ^ self.seed) & 3) as i32
            }
            Scene::Pan => self.texture(u + 11 * t, v + 5 * t, 0),
            Scene::Text => self.text(x.wrapping_add(2 * t as u32), y.wrapping_add(t as u32)),
            Scene::Noise => (hash(x ^ y << 11 ^ (t as u32) << 22 ^ self.seed) & 255) as i32,
            Scene::Still => self.texture(u, v, 0),
            Scene::Extremes => {
                let size = 2 + (t as u32 / 3 % 5);
                let cell = hash(x >> size ^ (y >> size) << 10 ^ (t as u32 / 2) << 20 ^ self.seed);
                if cell & 1 == 0 { 0 } else { 255 }
            }
            Scene::Fade => {
                let level = 128 - (t % 24 - 12).abs() * 9;
                let object = in_disc(u, v, 600 + 40 * t, 900, 600);
                let base = if object { 60 } else { self.texture(u, v + 3 * t, 0) / 2 };
                base + level / if self.plane == 0 { 1 } else { 3 }
            }
        };
        value.clamp(0, 255) as u8
    }

    /// Smooth random relief of three sizes, moved by fractions of a sample.
    fn texture(&self, u: i32, v: i32, salt: u32) -> i32 {
        let octave = |bits: u32| {
            let (cell_x, cell_y) = (u >> bits, v >> bits);
            let mask = (1 << bits) - 1;
            let (fx, fy) = ((u & mask) << 8 >> bits, (v & mask) << 8 >> bits);
            let corner = |dx: i32, dy: i32| {
                let at = (cell_x + dx) as u32 & 0xfff | ((cell_y + dy) as u32 & 0xfff) << 12;
                (hash(at ^ self.seed ^ bits << 25 ^ salt << 28) & 255) as i32
            };
            let top = corner(0, 0) * (256 - fx) + corner(1, 0) * fx;
            let bottom = corner(0, 1) * (256 - fx) + corner(1, 1) * fx;
            (top * (256 - fy) + bottom * fy) >> 16
        };
        (octave(10) * 4 + octave(7) * 2 + octave(5)) / 7
    }

    fn text(&self, x: u32, y: u32) -> i32 {
        let (cell_x, cell_y) = (x / 6, y / 9);
        if x % 6 == 5 || y % 9 > 6 || hash(cell_y ^ self.seed).is_multiple_of(4) {
            return 235;
        }
        let glyph = hash(cell_x ^ cell_y << 10 ^ self.seed);
        if (glyph >> ((x % 6 * 5 + y % 9) % 31)) & 1 == 0 { 235 } else { 16 }
    }
}

fn in_disc(u: i32, v: i32, x: i32, y: i32, radius: i32) -> bool {
    let (dx, dy) = (u - x.rem_euclid(4096), v - y.rem_euclid(2304));
    dx * dx + dy * dy < radius * radius
}

fn in_box(u: i32, v: i32, x: i32, y: i32, side: i32) -> bool {
    let (dx, dy) = (u - x.rem_euclid(4096), v - y.rem_euclid(2304));
    (0..side).contains(&dx) && (0..side).contains(&dy)
}

/// Mixes the bits of a number (finaliser of MurmurHash3).
pub(super) fn hash(mut n: u32) -> u32 {
    n = n.wrapping_add(0x9e37_79b9);
    n = (n ^ n >> 16).wrapping_mul(0x85eb_ca6b);
    n = (n ^ n >> 13).wrapping_mul(0xc2b2_ae35);
    n ^ n >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scene_repeats_and_moves() {
        for scene in [Scene::Mixed, Scene::Pan, Scene::Text, Scene::Noise, Scene::Extremes] {
            let source = Source::new(scene, 5);
            assert_eq!(source.picture(2, 40, 30), source.picture(2, 40, 30));
            assert_ne!(source.picture(2, 40, 30), source.picture(4, 40, 30), "{scene:?}");
        }
    }

    #[test]
    fn a_still_scene_stands_still() {
        let source = Source::new(Scene::Still, 5);
        assert_eq!(source.picture(0, 33, 17), source.picture(9, 33, 17));
    }
}
