//! libvpx's VP9 decoder with one thread: the peer and the oracle of ours.

use std::mem::MaybeUninit;
use std::os::raw::c_int;
use std::{ptr, slice};

use vpx_sys as ffi;

use crate::VpxError;
use crate::codec::{check, check_call};

/// An open decoder.
pub struct Decoder {
    // Boxed: libvpx keeps a pointer into the context.
    context: Box<ffi::vpx_codec_ctx_t>,
}

impl Decoder {
    /// Opens a decoder.
    ///
    /// # Errors
    ///
    /// Fails if libvpx cannot open a decoder: above all, if there is no memory.
    pub fn new() -> Result<Decoder, VpxError> {
        let mut context: Box<ffi::vpx_codec_ctx_t> =
            // SAFETY: plain old data (integers, nullable pointers, an error code whose 0 is "ok");
            // all-zero is libvpx's own initial state for it.
            Box::new(unsafe { MaybeUninit::zeroed().assume_init() });
        let settings = ffi::vpx_codec_dec_cfg { threads: 1, w: 0, h: 0 };
        // SAFETY: both pointers are valid for the call; the ABI version is the one of the bindings.
        let opened = unsafe {
            ffi::vpx_codec_dec_init_ver(
                &raw mut *context,
                ffi::vpx_codec_vp9_dx(),
                &raw const settings,
                0,
                ffi::VPX_DECODER_ABI_VERSION as c_int,
            )
        };
        check(opened, "open a decoder")?;
        Ok(Decoder { context })
    }

    /// Decodes a chunk, and returns how many pictures it shows. `look` sees each of them, uncopied.
    ///
    /// # Errors
    ///
    /// Fails if libvpx refuses the chunk, or a picture in it is not I420.
    pub fn decode(
        &mut self,
        chunk: &[u8],
        mut look: impl FnMut(&Shown<'_>),
    ) -> Result<usize, VpxError> {
        // SAFETY: the context is open; the pointer is valid for the length given during the call.
        let decoded = unsafe {
            ffi::vpx_codec_decode(
                &raw mut *self.context,
                chunk.as_ptr(),
                chunk.len() as u32,
                ptr::null_mut(),
                0,
            )
        };
        check_call(&mut self.context, decoded, "decode a frame")?;
        let mut position: ffi::vpx_codec_iter_t = ptr::null();
        let mut count = 0;
        loop {
            // SAFETY: the context is open and `position` is the iterator state libvpx asks for.
            let image =
                unsafe { ffi::vpx_codec_get_frame(&raw mut *self.context, &raw mut position) };
            if image.is_null() {
                return Ok(count);
            }
            // SAFETY: a non-null image is valid until the next call into the decoder, and `Shown`
            // lives only as long as this turn.
            let image = unsafe { &*image };
            if image.fmt != ffi::vpx_img_fmt::VPX_IMG_FMT_I420 {
                let message = format!("a picture has the format {:?}", image.fmt);
                return Err(VpxError::Refused { what: "give an I420 picture", message });
            }
            look(&Shown(image));
            count += 1;
        }
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: the context was opened by `new` and is not used again.
        unsafe { ffi::vpx_codec_destroy(&raw mut *self.context) };
    }
}

/// An I420 picture in libvpx's memory.
pub struct Shown<'a>(&'a ffi::vpx_image_t);

impl Shown<'_> {
    /// Luma width and height.
    pub fn size(&self) -> (usize, usize) {
        (self.0.d_w as usize, self.0.d_h as usize)
    }

    /// The rows of a plane (0 luma, 1 and 2 chroma).
    pub fn rows(&self, plane: usize) -> impl Iterator<Item = &[u8]> {
        let (width, height) = self.size();
        let (width, height) = match plane {
            0 => (width, height),
            _ => (width.div_ceil(2), height.div_ceil(2)),
        };
        let (start, stride) = (self.0.planes[plane].cast_const(), self.0.stride[plane] as isize);
        // SAFETY: the plane of an I420 image has `height` rows of `width` samples, `stride` apart;
        // they live as long as the image, which `self` borrows.
        (0..height as isize)
            .map(move |y| unsafe { slice::from_raw_parts(start.offset(y * stride), width) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stray_bytes_are_an_error() {
        let mut decoder = Decoder::new().unwrap();
        assert!(decoder.decode(&[1, 2, 3], |_| ()).is_err());
    }
}
