//! Pictures larger than any clip: a clip's pictures, mirrored and repeated side by side. They stay as sharp as they
//! are and have no seams.

use windlass_hybrid::detail::Detail;
use windlass_vp9::{Picture, Plane};

/// The sample of a row of `n` samples at place `i`, where the row is repeated and every other copy mirrored.
fn fold(i: usize, n: usize) -> usize {
    if (i / n).is_multiple_of(2) { i % n } else { n - 1 - i % n }
}

/// A plane, mirrored and repeated to another size.
pub(super) fn plane(source: &Plane, width: usize, height: usize) -> Plane {
    let mut samples = Vec::with_capacity(width * height);
    for y in 0..height {
        let row = source.row(fold(y, source.height()));
        samples.extend((0..width).map(|x| row[fold(x, source.width())]));
    }
    Plane::from_samples(width, height, samples).unwrap_or_default()
}

/// A picture, mirrored and repeated to another size.
pub(super) fn picture(source: &Picture, width: usize, height: usize) -> Picture {
    let (cw, ch) = (width.div_ceil(2), height.div_ceil(2));
    Picture {
        y: plane(&source.y, width, height),
        u: plane(&source.u, cw, ch),
        v: plane(&source.v, cw, ch),
    }
}

/// Detail, mirrored and repeated to another size.
pub(super) fn detail(source: &Detail, width: usize, height: usize) -> Detail {
    let mut out = Detail::zero(width, height);
    for y in 0..height {
        let row = source.row(fold(y, source.height()));
        for (x, d) in out.row_mut(y).iter_mut().enumerate() {
            *d = row[fold(x, source.width())];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirrored_plane_has_no_seams() {
        let source = Plane::from_samples(3, 1, vec![1, 2, 3]).unwrap();
        let out = plane(&source, 8, 2);
        assert_eq!(out.samples(), [1, 2, 3, 3, 2, 1, 1, 2].repeat(2));
    }
}
