//! Pictures of another size: for layers that no scale enlarges to that of the others.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use windlass_vp9::{Picture, Plane, Samples};

/// Resizes pictures, and keeps its memory between them.
pub(crate) struct Resizing {
    resizer: Resizer,
    plane: Vec<u8>,
    picture: Picture,
}

impl Resizing {
    /// Resizes to pictures of this size.
    pub(crate) fn new(width: usize, height: usize) -> Resizing {
        let picture = Picture::grey(width, height);
        Resizing { resizer: Resizer::new(), plane: Vec::new(), picture }
    }

    /// The picture in the size that was set; `None` if it has none.
    pub(crate) fn resize(&mut self, from: [Samples<'_>; 3]) -> Option<&Picture> {
        let Resizing { resizer, plane, picture } = self;
        let to = [&mut picture.y, &mut picture.u, &mut picture.v];
        for (from, to) in from.into_iter().zip(to) {
            resize(resizer, plane, from, to)?;
        }
        Some(picture)
    }
}

fn resize(
    resizer: &mut Resizer,
    packed: &mut Vec<u8>,
    from: Samples<'_>,
    to: &mut Plane,
) -> Option<()> {
    if from.width == 0 || from.height == 0 {
        return None;
    }
    packed.clear();
    (0..from.height).for_each(|y| packed.extend_from_slice(from.row(y)));
    let (width, height) = (to.width() as u32, to.height() as u32);
    let from = ImageRef::new(from.width as u32, from.height as u32, packed, PixelType::U8).ok()?;
    let mut to = Image::from_slice_u8(width, height, to.samples_mut(), PixelType::U8).ok()?;
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::CatmullRom));
    resizer.resize(&from, &mut to, &options).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_keeps_its_contents_in_another_size() {
        let (mut from, mut resizing) = (Picture::grey(48, 28), Resizing::new(32, 18));
        from.y.samples_mut()[..48 * 14].fill(20);
        let to = resizing.resize(from.samples()).expect("resized");
        assert_eq!((to.width(), to.height(), to.u.width()), (32, 18, 16));
        assert_eq!((to.y.row(2)[9], to.y.row(15)[9], to.v.row(4)[4]), (20, 128, 128));
        assert!(resizing.resize(Picture::default().samples()).is_none());
    }
}
