//! Decoders besides libvpx behind [`FrameDecoder`], and the choice of the one under test.

use super::{FrameDecoder, I420};

/// The decoder whose conformance the tests are about.
pub fn under_test() -> Box<dyn FrameDecoder> {
    Box::new(Windlass::default())
}

/// Windlass's own decoder.
#[derive(Default)]
pub struct Windlass(windlass_vp9::Decoder);

impl FrameDecoder for Windlass {
    fn name(&self) -> &'static str {
        "windlass"
    }

    fn decode(&mut self, chunk: &[u8]) -> Result<Vec<I420>, String> {
        let frames = self.0.decode(chunk).map_err(|e| e.to_string())?;
        let shown = frames.iter().rfind(|f| f.info.shown).map(|f| {
            let mut out = I420::new(f.picture.width(), f.picture.height());
            for (plane, from) in f.picture.planes().iter().enumerate() {
                out.fill(plane, (0..from.height()).map(|y| from.row(y)));
            }
            out
        });
        Ok(shown.into_iter().collect())
    }
}

/// The crate `vp9dec`, the second oracle: written independently of libvpx, from the specification.
#[derive(Default)]
pub struct Vp9dec(vp9dec::Decoder);

impl FrameDecoder for Vp9dec {
    fn name(&self) -> &'static str {
        "vp9dec"
    }

    fn decode(&mut self, chunk: &[u8]) -> Result<Vec<I420>, String> {
        let frames = self.0.decode_frame(chunk).map_err(|e| format!("{e:?}"))?;
        let pictures = frames.into_iter().filter_map(|f| f.frame).map(|f| {
            let mut out = I420::new(f.width as usize, f.height as usize);
            for (plane, from) in [&f.y, &f.u, &f.v].into_iter().enumerate() {
                let (width, _) = out.plane_size(plane);
                out.fill(plane, from.as_u8().chunks_exact(width));
            }
            out
        });
        Ok(pictures.collect())
    }
}
