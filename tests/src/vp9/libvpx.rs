//! libvpx's VP9 decoder, the oracle.

use super::{FrameDecoder, I420};

/// libvpx's VP9 decoder with one thread.
pub struct Libvpx(windlass_vpx::Decoder);

impl Libvpx {
    /// Opens a decoder.
    ///
    /// # Panics
    ///
    /// Where the libvpx installed has no VP9 decoder or another ABI than the bindings.
    pub fn new() -> Libvpx {
        let decoder = windlass_vpx::Decoder::new();
        Libvpx(decoder.expect("the installed libvpx decodes VP9 and has the ABI of the bindings"))
    }
}

impl Default for Libvpx {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameDecoder for Libvpx {
    fn name(&self) -> &'static str {
        "libvpx"
    }

    fn decode(&mut self, chunk: &[u8]) -> Result<Vec<I420>, String> {
        let mut pictures = Vec::new();
        let copy = |shown: &windlass_vpx::Shown<'_>| {
            let (width, height) = shown.size();
            let mut picture = I420::new(width, height);
            for plane in 0..3 {
                picture.fill(plane, shown.rows(plane));
            }
            pictures.push(picture);
        };
        self.0.decode(chunk, copy).map_err(|e| e.to_string())?;
        Ok(pictures)
    }
}
