//! The size of rebuilt pictures, and the scale at which a layer is rebuilt to fill it.

use windlass_types::{SCALES, Size};

/// Maximum pixels of enhanced pictures: those of 1920 × 1080, in any shape.
const MAX_PIXELS: u32 = 1920 * 1080;
/// Minimum width and height of pictures that the encoder takes.
const MIN_SIDE: u16 = 16;

/// Size of all pictures of an enhanced file: the largest of its layers and of their anchors. `anchors` are sizes of
/// anchors, each behind the size of its layer. `None` if there is nothing to enhance: no anchor is larger than its
/// layer by a scale that can be rebuilt, or all are too large.
pub fn file_picture_size(
    layers: impl IntoIterator<Item = Size>,
    anchors: impl IntoIterator<Item = (Size, Size)>,
) -> Option<Size> {
    let fits = |size: &Size| {
        size.pixels() <= MAX_PIXELS && size.width >= MIN_SIDE && size.height >= MIN_SIDE
    };
    let rebuilt = |(layer, anchor): &(Size, Size)| {
        SCALES.clone().any(|scale| layer.scaled(scale as u16) == *anchor)
    };
    let anchors: Vec<Size> =
        anchors.into_iter().filter(rebuilt).map(|(_, anchor)| anchor).filter(fits).collect();
    let largest = anchors.iter().copied().max_by_key(|size| size.pixels())?;
    let layers = layers.into_iter().filter(fits);
    layers.chain([largest]).max_by_key(|size| size.pixels())
}

/// Pixels of a picture that one thread encodes while a call runs: those of 640 × 360.
const CALL_PIXELS: f64 = 640.0 * 360.0;

/// Maximum pixels of a rendition's pictures, with so many threads. Twice the threads are 1.4 times as fast.
pub fn max_call_pixels(threads: usize) -> u32 {
    (CALL_PIXELS * (threads as f64).sqrt()).min(MAX_PIXELS.into()) as u32
}

/// Size of a rendition's pictures: the layer's enlarged by the scale, or as large as the encoder's threads can make.
/// Width and height are even.
pub(crate) fn call_picture_size(layer: Size, scale: u16, threads: usize) -> Size {
    let max = f64::from(max_call_pixels(threads));
    let whole = layer.scaled(scale);
    let by = (max / f64::from(whole.pixels().max(1))).sqrt().min(1.0);
    let even = |side: u16| ((f64::from(side) * by / 2.0).round() as u16 * 2).max(MIN_SIDE);
    Size::new(even(whole.width), even(whole.height))
}

/// Scale at which a layer is rebuilt for pictures of `size`: the smallest that fills them, or the largest there is.
/// `None` if the layer itself fills them.
pub(crate) fn scale_for(layer: Size, size: Size) -> Option<usize> {
    let fills = |scale: usize| {
        let (width, height) = (usize::from(layer.width), usize::from(layer.height));
        width * scale >= usize::from(size.width) && height * scale >= usize::from(size.height)
    };
    if fills(1) {
        return None;
    }
    Some(SCALES.clone().find(|&scale| fills(scale)).unwrap_or(*SCALES.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const Q: Size = Size::new(320, 180);
    const H: Size = Size::new(640, 360);
    const F: Size = Size::new(1280, 720);

    #[test]
    fn pictures_are_as_large_as_the_largest_layer_or_anchor() {
        assert_eq!(file_picture_size([Q], [(Q, H)]), Some(H));
        assert_eq!(file_picture_size([Q, H], [(Q, H), (Q, F), (H, F)]), Some(F));
        assert_eq!(file_picture_size([Q, F], [(Q, H)]), Some(F));
    }

    #[test]
    fn a_rendition_is_as_large_as_it_can_be_made_in_time() {
        assert_eq!(call_picture_size(Q, 2, 1), H);
        assert_eq!(
            (call_picture_size(H, 2, 1), call_picture_size(H, 2, 4)),
            (H, Size::new(906, 510))
        );
        assert_eq!(call_picture_size(Size::new(480, 270), 2, 2), Size::new(762, 428));
        assert_eq!(call_picture_size(Size::new(90, 161), 2, 1), Size::new(180, 322));
        assert_eq!(call_picture_size(Size::new(0, 1), 2, 1), Size::new(16, 16));
    }

    #[test]
    fn without_an_anchor_that_can_be_rebuilt_there_is_nothing_to_enhance() {
        assert_eq!(file_picture_size([Q, F], []), None);
        assert_eq!(file_picture_size([Q], [(Q, Q), (Q, Size::new(1600, 900)), (H, Q)]), None);
        assert_eq!(file_picture_size([], [(Size::new(2000, 2000), Size::new(4000, 4000))]), None);
    }

    #[test]
    fn a_layer_is_rebuilt_at_the_smallest_scale_that_fills_the_picture() {
        assert_eq!([F, H, Q].map(|layer| scale_for(layer, F)), [None, Some(2), Some(4)]);
        assert_eq!(scale_for(Size::new(480, 270), H), Some(2));
        assert_eq!(scale_for(Size::new(16, 16), F), Some(4));
    }
}
