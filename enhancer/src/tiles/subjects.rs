//! Finds what people look at in a low picture, tile by tile: faces and text.
//!
//! Source: DDS §3.1 (it requests the regions in which its network detects something). Viewers of a call look at the
//! speaking face and at text, so that their tiles weigh more in requests to the publisher.
//!
//! A cascade detects faces (`models/seeta-frontal.md`). Text is detected by its strokes: two strong edges of opposite
//! sign within a few samples, on flat ground. Hair and cloth have such pairs too, but with other edges around them.
//!
//! Worth: no gain over the whole picture, −0.14 to +0.03 dB PSNR-Y and −0.3 to +0.1 VMAF on four clips, for 1 % more
//! bytes (`lab/notes/captured-anchors.md`, *Faces and text*). The quality of the face or the text alone was not
//! measured.

use std::sync::OnceLock;

use rustface::{Detector, ImageData, Model};
use windlass_types::tiles::TILE;
use windlass_vp9::Samples;

/// The cascade that finds faces: see `models/seeta-frontal.md`.
static CASCADE: &[u8] = include_bytes!("../../../models/seeta-frontal.bin");

/// Weight that a tile full of face has in addition to its own 1.
const FACE: f64 = 2.0;
/// Weight that a tile full of text has in addition to its own 1.
const TEXT: f64 = 2.0;
/// Score of the cascade above which a detection counts as a face.
const SCORE: f64 = 2.8;
/// Rows of a picture in which faces are searched. The cascade finds faces of 40 samples and more: smaller pictures are
/// doubled, larger ones reduced.
const ROWS: std::ops::RangeInclusive<usize> = 135..=400;
/// Minimum difference, in grey levels, of the samples on both sides of one that makes an edge there.
const EDGE: i16 = 24;
/// Maximum difference of the samples on both sides, in grey levels, on flat ground.
const FLAT: i16 = 6;
/// Maximum samples between the two edges of a stroke.
const STROKE: usize = 5;
/// Minimum share of a tile's samples that is flat ground if it has text.
const GROUND: f64 = 0.7;
/// Minimum share of a tile's samples that begin a stroke if the tile has text.
const STROKES: f64 = 0.01;
/// Share of strokes among samples that are not flat. Below the range there is no text; above it all is text.
const SHARE: std::ops::Range<f64> = 0.2..0.4;

/// Detector of faces and text. Each thread has its own, because it has working memory.
pub struct Subjects {
    faces: Option<Box<dyn Detector>>,
    gray: Vec<u8>,
}

/// A face, in samples of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Face {
    x: i32,
    y: i32,
    width: i32,
    height: i32,
}

impl Default for Subjects {
    fn default() -> Self {
        Self::new()
    }
}

impl Subjects {
    /// Creates a detector.
    pub fn new() -> Subjects {
        static MODEL: OnceLock<Option<Model>> = OnceLock::new();
        let model = MODEL.get_or_init(|| rustface::read_model(CASCADE).ok());
        let faces = model.clone().map(|model| {
            let mut detector = rustface::create_detector_with_model(model);
            detector.set_score_thresh(SCORE);
            detector.set_pyramid_scale_factor(0.8);
            detector
        });
        Subjects { faces, gray: Vec::new() }
    }

    /// Weight of each tile of a picture, row by row: 1 for plain tiles, more for faces and text.
    pub fn weigh(&mut self, luma: Samples<'_>) -> Vec<f64> {
        let faces = self.faces(luma);
        let (columns, rows) = (luma.width.div_ceil(TILE), luma.height.div_ceil(TILE));
        let tiles = (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
        tiles
            .map(|(column, row)| {
                let x = column * TILE..((column + 1) * TILE).min(luma.width);
                let y = row * TILE..((row + 1) * TILE).min(luma.height);
                let face = faces.iter().map(|face| face.share_of(&x, &y)).fold(0.0, f64::max);
                1.0 + FACE * face + TEXT * text(luma, x, y)
            })
            .collect()
    }

    fn faces(&mut self, luma: Samples<'_>) -> Vec<Face> {
        let Some(detector) = &mut self.faces else { return Vec::new() };
        if luma.width == 0 || luma.height == 0 {
            return Vec::new();
        }
        let (times, by) = match luma.height {
            rows if rows < *ROWS.start() => (2, 1),
            rows => (1, rows.div_ceil(*ROWS.end())),
        };
        let (width, height) = (luma.width * times / by, luma.height * times / by);
        self.gray.clear();
        for y in 0..height {
            let row = luma.row(y * by / times);
            self.gray.extend((0..width).map(|x| row[x * by / times]));
        }
        let side = |v: usize| u32::try_from(v).unwrap_or(0);
        if side(width).min(side(height)) < 40 {
            return Vec::new(); // less than one window of the cascade
        }
        let found = detector.detect(&ImageData::new(&self.gray, side(width), side(height)));
        let back = |v: i32| (i64::from(v) * by as i64 / times as i64) as i32;
        let faces = found.iter().map(|face| {
            let at = face.bbox();
            let (width, height) = (back(at.width() as i32), back(at.height() as i32));
            Face { x: back(at.x()), y: back(at.y()), width, height }
        });
        faces.collect()
    }
}

impl Face {
    /// Share of a part of the picture that the face covers.
    fn share_of(&self, x: &std::ops::Range<usize>, y: &std::ops::Range<usize>) -> f64 {
        let shared = |range: &std::ops::Range<usize>, from: i32, length: i32| {
            let end = i64::from(from) + i64::from(length);
            (end.min(range.end as i64) - i64::from(from).max(range.start as i64)).max(0) as f64
        };
        let area = (x.len() * y.len()).max(1) as f64;
        shared(x, self.x, self.width) * shared(y, self.y, self.height) / area
    }
}

/// Share of a part of the picture that is text, 0 to 1.
fn text(luma: Samples<'_>, x: std::ops::Range<usize>, y: std::ops::Range<usize>) -> f64 {
    if x.len() < 2 * STROKE {
        return 0.0;
    }
    let (mut strokes, mut flat, mut all) = (0u32, 0u32, 0u32);
    for y in y {
        let row = &luma.row(y)[x.clone()];
        // Where the last edge up and down were.
        let (mut up, mut down) = (None::<usize>, None::<usize>);
        for (i, ends) in row.windows(3).enumerate() {
            let slope = i16::from(ends[2]) - i16::from(ends[0]);
            let near = |edge: Option<usize>| edge.is_some_and(|at| i - at <= STROKE);
            strokes += u32::from(slope > EDGE && near(down) || slope < -EDGE && near(up));
            if slope > EDGE {
                up = Some(i);
            } else if slope < -EDGE {
                down = Some(i);
            }
            flat += u32::from(slope.abs() < FLAT);
            all += 1;
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(all.max(1));
    if share(flat) < GROUND || share(strokes) < STROKES {
        return 0.0;
    }
    let of_edges = f64::from(strokes) / f64::from((all - flat).max(1));
    ((of_edges - SHARE.start) / (SHARE.end - SHARE.start)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windlass_vp9::Plane;

    use super::*;

    fn samples(data: &[u8], width: usize) -> Samples<'_> {
        Samples { data, stride: width, width, height: data.len() / width }
    }

    /// Dark bars of two samples, five apart, in lines of eight samples with four between, on light ground.
    fn page(width: usize, height: usize, written: std::ops::Range<usize>) -> Vec<u8> {
        let at = |i: usize| {
            let (x, y) = (i % width, i / width);
            let ink = written.contains(&x) && y % 12 < 8 && x % 40 < 14 && x % 7 < 2;
            if ink { 40 } else { 235 }
        };
        (0..width * height).map(at).collect()
    }

    #[test]
    fn written_tiles_count_for_more_than_empty_ones() {
        let weights = Subjects::new().weigh(samples(&page(256, 128, 0..128), 256));
        assert_eq!(weights.len(), 8);
        for row in weights.chunks(4) {
            assert!(row[0] > 2.0 && row[1] > 2.0, "{weights:?}");
            assert_eq!(&row[2..], [1.0, 1.0]);
        }
    }

    #[test]
    fn cloth_and_noise_are_no_text() {
        let cloth: Vec<u8> = (0..128 * 128)
            .map(|i| {
                let (x, y) = ((i % 128) as f64, (i / 128) as f64);
                (128.0 + 60.0 * (x * 0.9 + y * 0.3).sin() + 40.0 * (y * 0.8).sin()) as u8
            })
            .collect();
        let noise: Vec<u8> =
            (0..128 * 128u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for picture in [cloth, noise] {
            let all = 0..128;
            assert!(text(samples(&picture, 128), all.clone(), all) <= 0.0);
        }
    }

    #[test]
    fn a_face_counts_by_the_share_of_the_tile_that_it_covers() {
        let face = Face { x: -10, y: 32, width: 42, height: 64 };
        assert!((face.share_of(&(0..64), &(0..64)) - 0.25).abs() < 1e-9);
        assert!(face.share_of(&(64..128), &(0..64)) <= 0.0);
    }

    #[test]
    fn the_cascade_is_there_and_sees_no_face_in_flat_ground() {
        let mut subjects = Subjects::new();
        assert!(subjects.faces.is_some());
        assert_eq!(subjects.weigh((&Plane::filled(320, 180, 90)).into()), [1.0; 15]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn no_picture_panics(width in 1usize..700, height in 1usize..500, seed: u32) {
            let data: Vec<u8> = (0..(width * height) as u32)
                .map(|i| (i.wrapping_add(seed).wrapping_mul(2_654_435_761) >> (8 + (i / 500) % 17)) as u8)
                .collect();
            let weights = Subjects::new().weigh(samples(&data, width));
            prop_assert_eq!(weights.len(), width.div_ceil(TILE) * height.div_ceil(TILE));
            prop_assert!(weights.iter().all(|w| (1.0..=5.0).contains(w)));
        }
    }
}
