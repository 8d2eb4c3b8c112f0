//! How a viewer shows a track, and what follows from it: how much the track matters beside others, and which layer is enough.

use windlass_media::Layer;

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

impl View {
    /// Whether nobody sees it.
    pub fn hidden(self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// The smallest layer that fills the tile, given the layers' sizes as far as they are known; `None`: all of them are worth having.
    pub fn enough(self, sizes: [Option<(u16, u16)>; 3]) -> Option<Layer> {
        Layer::ALL.into_iter().find(|&layer| {
            let Some((width, height)) = sizes[layer as usize] else { return false };
            // The picture is shown whole: the closer side bounds it.
            let by_width = f64::from(self.width) / f64::from(width.max(1));
            by_width.min(f64::from(self.height) / f64::from(height.max(1))) <= ENLARGED
        })
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
