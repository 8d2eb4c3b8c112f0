//! What a picture looks like, in a few numbers: by them weights that were learned from one scene are kept from another.
//!
//! Shares of the low luma by lightness, in 16 steps, and of differences of neighbours in a row by magnitude, in 8: of
//! nothing,
//! 1 to 2, 3 to 6 and so on. Both stay nearly the same while a person moves or text scrolls, and change where another picture
//! comes, at once or little by little. Of seven clips the shares of lightness moved by at most 8 % within five seconds
//! of one scene; between people they differed by 15 % or more, and between people and screens by 70 %. A page that
//! another one replaced differed by 11 to 19 %.

use windlass_vp9::Samples;

/// Steps of lightness.
const LIGHTNESS: usize = 16;
/// Steps of differences.
const EDGES: usize = 8;
/// Numbers of a scene.
pub const SCENE_BYTES: usize = LIGHTNESS + EDGES;
/// Largest part of the samples that may lie in other steps, of 255, in pictures of one scene.
const MAX_APART: u32 = 26;
/// The same for the first picture: what begins near the limit would soon end.
const MAX_APART_AT_FIRST: u32 = 20;

/// What the pictures of a scene look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scene(pub [u8; SCENE_BYTES]);

impl Scene {
    /// The scene of a low luma.
    pub fn of(low: Samples<'_>) -> Self {
        let (mut lightness, mut edges) = ([0u32; LIGHTNESS], [0u32; EDGES]);
        for y in 0..low.height {
            let row = low.row(y);
            for &luma in row {
                lightness[usize::from(luma) * LIGHTNESS / 256] += 1;
            }
            for pair in row.windows(2) {
                let step = (u32::from(pair[0].abs_diff(pair[1])) + 1).ilog2() as usize;
                edges[step.min(EDGES - 1)] += 1;
            }
        }
        let mut shares = [0; SCENE_BYTES];
        let (first, second) = shares.split_at_mut(LIGHTNESS);
        for (shares, counts) in [(first, &lightness[..]), (second, &edges[..])] {
            let all = counts.iter().sum::<u32>().max(1);
            for (share, &count) in shares.iter_mut().zip(counts) {
                *share = ((u64::from(count) * 255 + u64::from(all / 2)) / u64::from(all)) as u8;
            }
        }
        Self(shares)
    }

    /// Whether a picture of the scene `now` is of this one; `before`: whether the picture before it was.
    pub fn holds(&self, now: &Self, before: bool) -> bool {
        let max = if before { MAX_APART } else { MAX_APART_AT_FIRST };
        [0..LIGHTNESS, LIGHTNESS..SCENE_BYTES].into_iter().all(|part| {
            let pairs = self.0[part.clone()].iter().zip(&now.0[part]);
            // What is missing in some steps is too much in others.
            pairs.map(|(a, b)| u32::from(a.abs_diff(*b))).sum::<u32>() <= 2 * max
        })
    }
}

#[cfg(test)]
mod tests {
    use windlass_vp9::Plane;

    use super::*;

    /// Lines of text, or of something like it, `down` samples further down, on paper of a lightness.
    fn page(paper: u8, ink: u8, down: usize) -> Plane {
        let sample = |i: usize| {
            let (x, y) = (i % 160, i / 160 + down);
            let letter = (x * 7 + y / 8 * 13) % 5 < 2 && x % 6 != 0;
            if y % 8 < 5 && letter { ink } else { paper }
        };
        Plane::from_samples(160, 96, (0..160 * 96).map(sample).collect()).unwrap()
    }

    fn scene(plane: &Plane) -> Scene {
        Scene::of(plane.into())
    }

    #[test]
    fn text_that_scrolls_is_one_scene_and_paper_of_another_colour_is_not() {
        let first = scene(&page(240, 20, 0));
        assert!(first.holds(&scene(&page(240, 20, 3)), false));
        assert!(!first.holds(&scene(&page(20, 240, 0)), true));
        assert!(!first.holds(&scene(&Plane::filled(160, 96, 240)), true), "the text is gone");
    }

    #[test]
    fn a_picture_between_two_scenes_stays_where_it_was() {
        let mut now = [0; SCENE_BYTES];
        (now[0], now[16]) = (255, 255);
        let first = Scene(now);
        now[0] -= 23;
        now[1] += 23;
        assert!(first.holds(&Scene(now), true) && !first.holds(&Scene(now), false));
        now[0] -= 5;
        now[1] += 5;
        assert!(!first.holds(&Scene(now), true));
    }

    #[test]
    fn an_empty_picture_has_a_scene_too() {
        let plane = Plane::filled(1, 1, 7);
        assert_eq!(scene(&plane).0[0], 255);
    }
}
