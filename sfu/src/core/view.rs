//! How a viewer shows a track, and what follows from it: how much the track matters beside others, and which layer is enough.

use windlass_types::Layer;

/// A tile on a viewer's screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Width in pixels of the device; 0: it is not on screen.
    pub width: u16,
    /// Height in pixels of the device; 0: it is not on screen.
    pub height: u16,
    /// Whether its user wants it above all others.
    pub pinned: bool,
}

/// By how much anchors' pictures may be larger than those of the layer.
const SCALES: std::ops::RangeInclusive<u16> = 2..=4;
/// A tile of this many pixels has weight one.
const USUAL: f64 = 640.0 * 360.0;
/// Neither do small ones vanish, nor large ones take everything.
const BY_SIZE: (f64, f64) = (0.4, 2.5);
/// A pinned one over others of its size: more than what is held counts over what is not.
const PINNED: f64 = 16.0;
/// One whose participant speaks.
const SPEAKS: f64 = 6.0;
/// A picture may be enlarged by so much before the next layer is worth its bits.
const ENLARGED: f64 = 1.25;

/// The tile of a client that does not say how it shows a track: a window of that size is common, and larger ones change little.
const USUAL_TILE: (u16, u16) = (1280, 720);

/// The tile that a track is shown in, in pixels of the device.
pub fn shown(view: Option<View>) -> (u16, u16) {
    view.map_or(USUAL_TILE, |view| (view.width, view.height))
}

impl View {
    /// Whether nobody sees it.
    pub fn hidden(self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// The smallest layer that fills the tile, given the layers' sizes as far as they are known; `None`: all of them are worth having.
    pub fn enough(self, sizes: [Option<(u16, u16)>; 3]) -> Option<Layer> {
        Layer::ALL.into_iter().find(|&layer| {
            sizes[layer as usize].is_some_and(|size| self.enlarges(size) <= ENLARGED)
        })
    }

    /// By how much the picture of a layer of this size is to be enlarged at least, so that no more is left to the browser than it may
    /// do; where that is more than anything enlarges, the most.
    pub fn scale(self, size: (u16, u16)) -> u16 {
        let by = self.enlarges(size);
        let enough = SCALES.into_iter().find(|&scale| by <= f64::from(scale) * ENLARGED);
        enough.unwrap_or(*SCALES.end())
    }

    /// Size of the picture on the screen over its own. It is shown whole: the closer side bounds it.
    fn enlarges(self, (width, height): (u16, u16)) -> f64 {
        let by_width = f64::from(self.width) / f64::from(width.max(1));
        by_width.min(f64::from(self.height) / f64::from(height.max(1)))
    }
}

/// How much a track matters; `view` is `None` where the client does not say.
pub fn weight(view: Option<View>, speaks: bool) -> f64 {
    let by_size = view.map_or(1.0, |view| {
        let pixels = f64::from(view.width) * f64::from(view.height);
        (pixels / USUAL).sqrt().clamp(BY_SIZE.0, BY_SIZE.1)
    });
    let pinned = view.is_some_and(|view| view.pinned);
    by_size * if pinned { PINNED } else { 1.0 } * if speaks { SPEAKS } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [Option<(u16, u16)>; 3] = [Some((320, 180)), Some((640, 360)), Some((1280, 720))];

    fn view(width: u16, height: u16) -> View {
        View { width, height, pinned: false }
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
            assert_eq!(tile.enough(SIZES), layer, "{tile:?}");
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
            assert_eq!(tile.scale((320, 180)), scale, "{tile:?}");
        }
        assert_eq!(view(1, 1).scale((0, 0)), 2);
    }

    #[test]
    fn what_is_not_known_is_not_enough() {
        assert_eq!(view(160, 90).enough([None; 3]), None);
        assert_eq!(view(160, 90).enough([None, SIZES[1], None]), Some(Layer::H));
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
