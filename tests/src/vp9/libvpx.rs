//! libvpx's VP9 decoder, the oracle.
//!
//! The other module here with `unsafe`: the FFI to libvpx.

use std::mem::MaybeUninit;
use std::os::raw::c_int;
use std::{ptr, slice};

use vpx_sys as ffi;

use super::encoder::{check, detail};
use super::{FrameDecoder, I420};

/// libvpx's VP9 decoder with one thread.
pub struct Libvpx {
    // Boxed: libvpx keeps a pointer into the context.
    context: Box<ffi::vpx_codec_ctx_t>,
}

impl Libvpx {
    /// Opens a decoder.
    ///
    /// # Panics
    ///
    /// Where the libvpx installed has no VP9 decoder or another ABI than the bindings.
    pub fn new() -> Libvpx {
        let mut context: Box<ffi::vpx_codec_ctx_t> =
            // SAFETY: plain old data (integers, nullable pointers, an error code whose 0 is "ok");
            // all-zero is libvpx's own initial state for it.
            Box::new(unsafe { MaybeUninit::zeroed().assume_init() });
        let settings = ffi::vpx_codec_dec_cfg { threads: 1, w: 0, h: 0 };
        // SAFETY: both pointers are valid for the call; the ABI version is the one of the bindings.
        check(unsafe {
            ffi::vpx_codec_dec_init_ver(
                &raw mut *context,
                ffi::vpx_codec_vp9_dx(),
                &raw const settings,
                0,
                ffi::VPX_DECODER_ABI_VERSION as c_int,
            )
        })
        .expect("the installed libvpx decodes VP9 and has the ABI of the bindings");
        Libvpx { context }
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
        // SAFETY: the context is open; the pointer is valid for the length given during the call.
        check(unsafe {
            ffi::vpx_codec_decode(
                &raw mut *self.context,
                chunk.as_ptr(),
                chunk.len() as u32,
                ptr::null_mut(),
                0,
            )
        })
        .map_err(|e| format!("{e}: {}", detail(&mut self.context)))?;
        let mut pictures = Vec::new();
        let mut position: ffi::vpx_codec_iter_t = ptr::null();
        loop {
            // SAFETY: the context is open and `position` is the iterator state libvpx asks for.
            let image =
                unsafe { ffi::vpx_codec_get_frame(&raw mut *self.context, &raw mut position) };
            if image.is_null() {
                return Ok(pictures);
            }
            // SAFETY: a non-null image is valid until the next call into the decoder.
            pictures.push(copy(unsafe { &*image })?);
        }
    }
}

impl Drop for Libvpx {
    fn drop(&mut self) {
        // SAFETY: the context was opened by `new` and is not used again.
        unsafe { ffi::vpx_codec_destroy(&raw mut *self.context) };
    }
}

fn copy(image: &ffi::vpx_image_t) -> Result<I420, String> {
    if image.fmt != ffi::vpx_img_fmt::VPX_IMG_FMT_I420 {
        return Err(format!("a picture of format {:?}", image.fmt));
    }
    let mut picture = I420::new(image.d_w as usize, image.d_h as usize);
    for plane in 0..3 {
        let (width, height) = picture.plane_size(plane);
        let (start, stride) = (image.planes[plane].cast_const(), image.stride[plane] as isize);
        // SAFETY: libvpx's plane has at least `height` rows of `width` samples, `stride` apart.
        let rows = (0..height as isize)
            .map(|y| unsafe { slice::from_raw_parts(start.offset(y * stride), width) });
        picture.fill(plane, rows);
    }
    Ok(picture)
}
