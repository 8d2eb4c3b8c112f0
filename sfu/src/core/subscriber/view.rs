//! The tile in which a subscriber shows a track, the track's weight in the allocation, and the layer that suffices.

use windlass_types::{Layer, Size};

/// The tile on a subscriber's screen that shows a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Size in device pixels. The tile is not visible if a side is 0.
    pub size: Size,
    /// Whether the user has pinned the tile.
    pub pinned: bool,
}

/// Scales of anchors: width of an anchor's frame over that of the layer.
const SCALES: std::ops::RangeInclusive<u16> = 2..=4;
/// Pixels of a tile with weight 1.
const UNIT_WEIGHT_PIXELS: f64 = 640.0 * 360.0;
/// Smallest weight by size, so that small tiles are not starved.
const MIN_SIZE_WEIGHT: f64 = 0.4;
/// Largest weight by size, so that large tiles leave bandwidth for others.
const MAX_SIZE_WEIGHT: f64 = 2.5;
/// Factor of a pinned tile's weight. It is above the allocator's factor for rungs that are held, so that a pinned tile
/// wins.
const PINNED: f64 = 16.0;
/// Factor of the active speaker's weight.
const ACTIVE_SPEAKER: f64 = 6.0;
/// By how much the browser may enlarge a frame before the next layer or scale is worth its bits.
const MAX_BROWSER_SCALE: f64 = 1.25;
/// Maximum pixels of a picture that browsers rebuild at more than the smallest scale
/// (`client-web/src/worker/scale.ts`).
const MAX_REBUILT_PIXELS: u64 = 1280 * 736;
/// Assumed tile size of a client that sends no view. A window of this size is common, and a larger one changes little.
const DEFAULT_TILE: Size = Size::new(1280, 720);

/// Size of the tile that shows a track, in device pixels.
pub(crate) fn tile_size(view: Option<View>) -> Size {
    view.map_or(DEFAULT_TILE, |view| view.size)
}

impl View {
    /// Whether the tile is not visible.
    pub fn hidden(self) -> bool {
        self.size.width == 0 || self.size.height == 0
    }

    /// The smallest layer that fills the tile, given the layers' sizes where known; `None`: no layer does.
    pub fn sufficient_layer(self, sizes: [Option<Size>; 3]) -> Option<Layer> {
        Layer::ALL
            .into_iter()
            .find(|&layer| sizes[layer as usize].is_some_and(|size| fills(self.size, size)))
    }

    /// The smallest anchor scale that fills the tile with a layer of this size, or else the largest scale.
    pub fn scale(self, size: Size) -> u16 {
        let by = enlargement(self.size, size);
        let enough = SCALES.into_iter().find(|&scale| by <= f64::from(scale) * MAX_BROWSER_SCALE);
        enough.unwrap_or(*SCALES.end())
    }
}

/// By how much a frame is enlarged in a tile. The frame is shown whole, so the side with less room bounds the factor.
pub(crate) fn enlargement(tile: Size, frame: Size) -> f64 {
    let by_width = f64::from(tile.width) / f64::from(frame.width.max(1));
    by_width.min(f64::from(tile.height) / f64::from(frame.height.max(1)))
}

/// Whether a frame fills a tile as it is.
pub(crate) fn fills(tile: Size, frame: Size) -> bool {
    enlargement(tile, frame) <= MAX_BROWSER_SCALE
}

/// The scale at which browsers rebuild a frame for a tile; `None`: it fills the tile as it is.
pub(crate) fn rebuilt_scale(tile: Size, frame: Size) -> Option<u16> {
    let wanted = View { size: tile, pinned: false }.scale(frame);
    let pixels = |scale: u16| u64::from(frame.pixels()) * u64::from(scale).pow(2);
    let possible = |&scale: &u16| scale == *SCALES.start() || pixels(scale) <= MAX_REBUILT_PIXELS;
    let scale = SCALES.rev().filter(|&scale| scale <= wanted).find(possible);
    scale.filter(|_| !fills(tile, frame))
}

/// Weight of a track in the allocation; `view` is `None` where the client sends none.
pub(crate) fn weight(view: Option<View>, speaks: bool) -> f64 {
    let by_size = view.map_or(1.0, |view| {
        let pixels = f64::from(view.size.pixels());
        (pixels / UNIT_WEIGHT_PIXELS).sqrt().clamp(MIN_SIZE_WEIGHT, MAX_SIZE_WEIGHT)
    });
    let pinned = view.is_some_and(|view| view.pinned);
    by_size * if pinned { PINNED } else { 1.0 } * if speaks { ACTIVE_SPEAKER } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [Option<Size>; 3] =
        [Some(Size::new(320, 180)), Some(Size::new(640, 360)), Some(Size::new(1280, 720))];

    fn view(width: u16, height: u16) -> View {
        View { size: Size::new(width, height), pinned: false }
    }

    #[test]
    fn a_tile_takes_the_layer_that_fills_it() {
        for (tile, layer) in [
            (view(160, 90), Some(Layer::Q)),
            (view(400, 225), Some(Layer::Q)),
            (view(401, 300), Some(Layer::H)),
            (view(1920, 300), Some(Layer::H)),
            (view(1280, 720), Some(Layer::F)),
            (view(3840, 2160), None),
        ] {
            assert_eq!(tile.sufficient_layer(SIZES), layer, "{tile:?}");
        }
    }

    #[test]
    fn a_picture_is_enlarged_as_far_as_its_tile_goes() {
        for (tile, scale) in [
            (view(160, 90), 2),
            (view(800, 450), 2),
            (view(801, 451), 3),
            (view(1920, 450), 2),
            (view(1280, 720), 4),
            (view(3840, 2160), 4),
        ] {
            assert_eq!(tile.scale(Size::new(320, 180)), scale, "{tile:?}");
        }
        assert_eq!(view(1, 1).scale(Size::new(0, 0)), 2);
    }

    #[test]
    fn browsers_rebuild_no_picture_that_fills_its_tile_and_none_that_is_too_large() {
        let (quarter, half) = (Size::new(320, 180), Size::new(640, 360));
        for (tile, frame, scale) in [
            (Size::new(400, 225), quarter, None),
            (Size::new(640, 360), quarter, Some(2)),
            (Size::new(1280, 720), quarter, Some(4)),
            (Size::new(1280, 720), half, Some(2)),
            (Size::new(3840, 2160), half, Some(2)),
        ] {
            assert_eq!(rebuilt_scale(tile, frame), scale, "{frame} in {tile}");
        }
    }

    #[test]
    fn a_layer_of_unknown_size_is_not_sufficient() {
        assert_eq!(view(160, 90).sufficient_layer([None; 3]), None);
        assert_eq!(view(160, 90).sufficient_layer([None, SIZES[1], None]), Some(Layer::H));
    }

    #[test]
    fn pins_come_before_speakers_and_speakers_before_size() {
        let small = view(160, 90);
        let pinned = View { pinned: true, ..small };
        let large = view(1920, 1080);
        assert!(weight(Some(pinned), false) > weight(Some(large), false));
        assert!(weight(Some(small), true) > weight(Some(large), false) * 0.9);
        assert!(weight(Some(pinned), false) > weight(Some(small), true));
        assert!((weight(None, false) - weight(Some(view(640, 360)), false)).abs() < 1e-9);
    }
}
