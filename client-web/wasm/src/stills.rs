//! A publisher's stills (`windlass_hybrid::still`), behind a handle of their own kind.

use windlass_hybrid::still::{StillError, StillMaker, StillRequest};
use windlass_types::SCALES;
use windlass_vp9::{Samples, SizeLimit};

use crate::{MAX_PIXELS, bytes, error_code, free, picture};

/// Maximum number of samples of a camera's luma: a side of 4096 samples where the picture is square.
const MAX_CAMERA: usize = 4096 * 4096;

/// The maker of one publisher's stills, behind a handle.
pub struct Stills {
    maker: StillMaker,
    camera: Vec<u8>,
    size: (usize, usize),
    payload: Vec<u8>,
}

/// A new maker of stills, which waits for a key frame.
#[unsafe(no_mangle)]
pub extern "C" fn stills_new() -> *mut Stills {
    Box::into_raw(Box::new(Stills {
        maker: StillMaker::limited(SizeLimit { area: MAX_PIXELS, ..SizeLimit::default() }),
        camera: Vec::new(),
        size: (0, 0),
        payload: Vec::new(),
    }))
}

/// Frees what [`stills_new`] made.
///
/// # Safety
/// `handle` must come from [`stills_new`] and not have been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stills_free(handle: *mut Stills) {
    // SAFETY: as promised by the caller.
    unsafe { free(handle) };
}

/// Takes the next frame of the publisher's low layer.
///
/// # Safety
/// `handle` must come from [`stills_new`] or be null; `ptr` must point to `len` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stills_follow(
    handle: *mut Stills,
    rtp_timestamp: u32,
    ptr: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    let (Some(stills), Some(data)) = (unsafe { (handle.as_mut(), bytes(ptr, len)) }) else {
        return -1;
    };
    stills.maker.follow(rtp_timestamp, data).map_or_else(error_code, |()| 0)
}

/// Takes the picture that another decoder made of the next frame of the publisher's low layer: packed I420.
///
/// # Safety
/// `handle` must come from [`stills_new`] or be null; `ptr` must point to `len` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stills_follow_picture(
    handle: *mut Stills,
    rtp_timestamp: u32,
    ptr: *const u8,
    len: usize,
    width: u32,
    height: u32,
) -> i32 {
    // SAFETY: as promised by the caller.
    let (stills, low) = unsafe { (handle.as_mut(), picture(ptr, len, width, height)) };
    let (Some(stills), Some(low)) = (stills, low) else { return -1 };
    stills.maker.follow_picture(rtp_timestamp, low);
    0
}

/// Forgets the frames of the low layer, where some are missing; a key frame must come next.
///
/// # Safety
/// `handle` must come from [`stills_new`] or be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stills_reset(handle: *mut Stills) {
    // SAFETY: as promised by the caller.
    if let Some(stills) = unsafe { handle.as_mut() } {
        stills.maker.reset();
    }
}

/// The place where the caller puts the planes of a camera frame of this size.
///
/// # Safety
/// `handle` must come from [`stills_new`] or be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stills_camera(handle: *mut Stills, width: u32, height: u32) -> *mut u8 {
    let size = (width as usize, height as usize);
    let samples = size.0.checked_mul(size.1).filter(|&samples| (1..=MAX_CAMERA).contains(&samples));
    // SAFETY: as promised by the caller.
    let (Some(stills), Some(samples)) = (unsafe { handle.as_mut() }, samples) else {
        return std::ptr::null_mut();
    };
    stills.size = size;
    stills.camera.resize(samples + 2 * size.0.div_ceil(2) * size.1.div_ceil(2), 0);
    stills.camera.as_mut_ptr()
}

/// Makes the still of a frame, of the camera's planes that were put in their place.
///
/// # Safety
/// `handle` must come from [`stills_new`] or be null; `tiles` must point to `tiles_len` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stills_make(
    handle: *mut Stills,
    rtp_timestamp: u32,
    scale: u32,
    tiles: *const u8,
    tiles_len: usize,
    most: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    let (stills, tiles) = unsafe { (handle.as_mut(), bytes(tiles, tiles_len)) };
    let scale = scale as usize;
    let Some(stills) = stills.filter(|_| SCALES.contains(&scale)) else { return -1 };
    let request =
        StillRequest { rtp_timestamp, scale, tiles: tiles.unwrap_or_default(), bytes: most };
    let (width, height) = stills.size;
    let plane = |data, width, height| Samples { data, stride: width, width, height };
    let (columns, rows) = (width.div_ceil(2), height.div_ceil(2));
    let (y, chroma) = stills.camera.split_at(width * height);
    let (u, v) = chroma.split_at(columns * rows);
    let camera = [plane(y, width, height), plane(u, columns, rows), plane(v, columns, rows)];
    match stills.maker.make(camera, &request) {
        Ok(still) => {
            stills.payload = still.payload;
            i32::try_from(stills.payload.len()).unwrap_or(-5)
        }
        Err(StillError::NoBase) => -2,
        Err(StillError::Tiles) => -3,
        Err(StillError::Camera) => -4,
        Err(StillError::Code(_)) => -5,
    }
}

/// The payload of the still that was made last.
///
/// # Safety
/// `handle` must come from [`stills_new`] or be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stills_payload(handle: *const Stills) -> *const u8 {
    // SAFETY: as promised by the caller.
    unsafe { handle.as_ref() }.map_or(std::ptr::null(), |stills| stills.payload.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stills_refuse_null_handles_empty_cameras_and_frames_that_are_not_known() {
        // SAFETY: null is allowed everywhere, and the live handle is freed once.
        unsafe {
            let none = std::ptr::null_mut();
            assert_eq!(stills_follow(none, 0, [1].as_ptr(), 1), -1);
            assert_eq!(stills_make(none, 0, 2, [1].as_ptr(), 1, 5000), -1);
            assert!(stills_camera(none, 64, 64).is_null() && stills_payload(none).is_null());
            let handle = stills_new();
            assert_eq!(stills_follow(handle, 0, std::ptr::null(), 0), -1);
            assert!(stills_follow(handle, 0, [9].as_ptr(), 1) < 0);
            assert!(stills_camera(handle, 0, 9).is_null());
            assert!(stills_camera(handle, u32::MAX, u32::MAX).is_null());
            assert!(!stills_camera(handle, 64, 64).is_null());
            assert_eq!(stills_make(handle, 0, 5, [1].as_ptr(), 1, 5000), -1);
            assert_eq!(stills_make(handle, 0, 2, [1].as_ptr(), 1, 5000), -2);
            stills_reset(handle);
            stills_free(handle);
        }
    }
}
