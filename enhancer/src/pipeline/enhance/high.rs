//! The publisher's own picture of a frame, as large as its anchor.

use windlass_hybrid::{Detail, anchor::codec::detail_of, enlarge};
use windlass_vp9::{FrameBuffer, Plane, Samples};

/// A publisher's own picture at HR size.
pub(super) enum HighPicture<'a> {
    /// The picture as it was decoded, at HR size.
    AsSent(&'a FrameBuffer),
    /// The picture of a layer between the tapped one and HR size, enlarged by the built-in filters.
    Enlarged([Plane; 3]),
}

impl<'a> HighPicture<'a> {
    /// The picture for an anchor `scale` times as large as the low one. `None`: it has no size of that kind, as the
    /// publisher is changing its layers.
    pub(super) fn of(
        sent: &'a FrameBuffer,
        low: &FrameBuffer,
        scale: usize,
    ) -> Option<HighPicture<'a>> {
        let times =
            (1..scale).find(|times| sent.size().scaled(*times) == low.size().scaled(scale))?;
        Some(match times {
            1 => HighPicture::AsSent(sent),
            times => HighPicture::Enlarged(enlarge(sent, times)),
        })
    }

    /// The samples of luma and both chroma planes.
    pub(super) fn samples(&self) -> [Samples<'_>; 3] {
        match self {
            HighPicture::AsSent(picture) => picture.samples(),
            HighPicture::Enlarged(planes) => planes.each_ref().map(Samples::from),
        }
    }

    /// Whether networks can learn from the picture: only if it was sent at HR size.
    pub(super) fn is_as_sent(&self) -> bool {
        matches!(self, HighPicture::AsSent(_))
    }

    /// Luma of the picture less the enlarged low picture; `None` if their sizes do not fit.
    pub(super) fn detail(&self, low: Samples<'_>, scale: usize) -> Option<Detail> {
        detail_of(self.samples()[0], low, scale).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_vp9::PlaneSize;

    /// Size, and whether it is as the publisher sent it.
    fn found(width: usize, height: usize, scale: usize) -> Option<(PlaneSize, bool)> {
        let sent = FrameBuffer::grey(width, height);
        let picture = HighPicture::of(&sent, &FrameBuffer::grey(64, 36), scale)?;
        let luma = picture.samples()[0];
        Some((luma.size(), picture.is_as_sent()))
    }

    #[test]
    fn a_picture_between_the_low_one_and_the_anchor_is_enlarged() {
        assert_eq!(found(256, 144, 4), Some((PlaneSize::new(256, 144), true)));
        assert_eq!(found(128, 72, 4), Some((PlaneSize::new(256, 144), false)));
        assert_eq!(found(128, 72, 2), Some((PlaneSize::new(128, 72), true)));
    }

    #[test]
    fn a_picture_that_does_not_fit_is_none() {
        assert_eq!(found(64, 36, 4), None, "it has no more detail than the low one");
        assert_eq!(found(256, 144, 2), None, "larger than the anchor");
        assert_eq!(found(128, 70, 4), None, "another shape");
        assert_eq!(found(0, 0, 4), None);
    }
}
