//! The hybrid decoder as a WebAssembly module with a plain C interface and no imports.
//!
//! Built for `wasm32-unknown-unknown` with `simd128`; it does no I/O and knows no clock. Handles
//! and pointers are addresses in the module's memory; all numbers are little-endian as WebAssembly
//! has them. A handle belongs to one subscribed track.
//!
//! | export | does |
//! | --- | --- |
//! | `alloc(len) -> ptr` | memory for the caller to fill; 0 when `len` is 0 or beyond 4 MiB |
//! | `dealloc(ptr, len)` | gives it back; `len` as it was asked for |
//! | `decoder_new(scale) -> handle` | a decoder that waits for a key frame; HR is `scale` (2, 3 or 4) times as large as the low layer, 0 for another scale |
//! | `decoder_free(handle)` | frees it |
//! | `rescale(handle, scale) -> i32` | makes HR pictures of another size from now on, without a key frame: 0, or -1 where there is no such decoder or scale |
//! | `set_effort(handle, effort) -> i32` | how thoroughly to search for motion from references: 0 fully, 1 little, for a machine that does not keep up; 0, or -1 where there is no such decoder or effort |
//! | `set_network(handle, tier) -> i32` | runs a built-in network on every picture from the next on: 0 none, 1 `xxs`, 2 `xs`, where there is one for the scale; 0, or -1 where there is no such decoder or network |
//! | `push_frame(handle, rtp_ts, ptr, len) -> i32` | decodes one complete VP9 frame: bits 1 shown, 2 key, 4 detail present, 8 size of the picture changed; below zero an [error](#errors) |
//! | `push_picture(handle, rtp_ts, ptr, len, width, height) -> i32` | takes the picture that another decoder made of a frame, of any codec: packed I420 (the rows of luma, U and V without gaps). As `push_frame`; -1 where it has another length |
//! | `push_message(handle, ptr, len) -> i32` | takes one raw message of the data channel: an [outcome](#outcomes) |
//! | `refresh(handle) -> i32` | makes the picture on display anew where anchors have come since it was made: 1 it did, 0 there is nothing newer, -1 no such decoder. The next frame does so by itself |
//! | `hr_ptr(handle, plane) -> ptr`, `lr_ptr(handle, plane) -> ptr` | samples of plane 0 Y, 1 U, 2 V of the picture on display; 0 before the first |
//! | `hr_width`, `hr_height`, `lr_width`, `lr_height (handle) -> u32` | luma sizes, 0 before the first picture |
//! | `stride(handle, which, plane) -> u32` | bytes from row to row; `which` 0 HR, 1 LR |
//! | `kept_ptr(handle) -> ptr` | a byte for each cell of 8 × 8 low samples of the picture on display, row by row: 1 where no network makes it better, for a network that the host runs; 0 before the first picture, and where `refresh` would make another |
//! | `stat(handle, index) -> f64` | a [counter](#counters); NaN for an unknown index |
//! | `reset(handle)` | forgets all references and anchors (after a gap); a key frame must come next. The picture on display stays |
//! | `warm_up(handle, step) -> i32` | decodes piece `step` (0, 1, …) of an [embedded stream](mod@warm_up) in a decoder made for this alone, so that the engine compiles the code: 1 more steps follow, 0 that was the last (or there is no such decoder) |
//! | `stills_new() -> handle`, `stills_free(handle)` | makes a publisher's stills (`windlass_hybrid::still`): a handle of its own kind, that waits for a key frame |
//! | `stills_follow(handle, rtp_ts, ptr, len) -> i32` | takes the next frame of the publisher's low layer: 0 or an [error](#errors) |
//! | `stills_follow_picture(handle, rtp_ts, ptr, len, width, height) -> i32` | the same where it is of another codec: its picture as packed I420; 0, or -1 where that has another length |
//! | `stills_reset(handle)` | frames of it are missing; a key frame must come next |
//! | `stills_camera(handle, width, height) -> ptr` | where to put the luma of a camera frame, and behind it U and V, half as wide and high, rounded up, row by row without gaps; 0 where it is empty or too large |
//! | `stills_make(handle, rtp_ts, scale, tiles, tiles_len, bytes) -> i32` | makes the still of that frame, of the tiles whose map lies at `tiles`, in at most `bytes`: the length of its payload, or below zero -1 no such decoder or scale, -2 its low picture is not known, -3 the map is not one of it, -4 the camera's picture is too small, -5 it cannot be encoded in so few bytes |
//! | `stills_payload(handle) -> ptr` | the payload made last |
//! | `rows_new(tier, scale) -> handle`, `rows_free(handle)` | a network (1 `xxs`, 2 `xs`) for [some rows of a picture](mod@rows): a handle of its own kind, 0 where there is none for the scale |
//! | `rows_reach(handle) -> u32` | number of low rows above and below a row on which it depends |
//! | `rows_place(handle, width, height) -> ptr` | where to put the luma of low rows, and behind it that of the high ones, without gaps; 0 where they are empty or too large |
//! | `rows_run(handle) -> ptr` | runs the network on what lies there: the luma of the high rows, until the next run. The place is another one then: call `rows_place` again |
//! | `vp9_new() -> handle`, `vp9_push(handle, ptr, len) -> i32`, `vp9_free(handle)` | the VP9 decoder alone, for measurements: pictures in the chunk or an [error](#errors) |
//!
//! The camera's place holds until the next `stills_camera`, the payload until the next `stills_make`. Picture pointers
//! and that of `kept_ptr` hold until the next `push_*`, `refresh`, `reset` or `decoder_free`; any call may grow the
//! memory, which detaches older JavaScript views of it. A zero handle is refused (-1) or ignored.
//!
//! ## Errors
//!
//! -1 no such decoder or empty input, -2 a key frame must come first, -3 malformed header,
//! -4 unsupported profile, -5 refused size, -6 truncated, -7 malformed compressed header,
//! -8 malformed tile, -9 missing reference, -10 internal, -11 a reference that was lost before
//! recovery. After each the decoder waits for a key frame. A trap (malformed input the VP9 decoder
//! does not foresee) poisons the whole instance: the host must make a new one and ask for a key
//! frame.
//!
//! ## Outcomes
//!
//! 0 kept, the anchor is not complete yet · 1 applied · 2 early, waits for its frame · 3 too old · 4 gives nothing new
//! · 5 of a former epoch · -1 no such decoder · -2 malformed message · -3 malformed payload · -4 wrong size. After 1
//! with `stat(9) > 0` `refresh` makes a better picture.
//!
//! ## Counters
//!
//! 0 frames, 1 frame errors, 2 enhanced pictures, 3 anchors applied, 4 of them late, 5 too old, 6 early, 7 malformed or
//! of wrong size, 8 `frames_late` of the last anchor applied, 9 whether `refresh` would make another picture (0 or 1),
//! 10 messages malformed, 11 anchors dropped unfinished, 12 repeated messages, 13 anchors that gave nothing new, 14
//! anchors of a former epoch, 15 and 16 the decay that was measured, and over how many frames.
//!
//! ## Example
//!
//! The calls of a page, here from Rust:
//!
//! ```
//! use windlass_wasm::{alloc, dealloc, decoder_free, decoder_new, hr_height, hr_width, push_frame};
//!
//! // The first frame of an IVF file: a low picture of 161 × 91 samples.
//! let ivf = include_bytes!("../../../hybrid/vp9/tests/fixtures/realtime.ivf");
//! let frame = &ivf[44..][..u32::from_le_bytes(ivf[32..36].try_into().unwrap()) as usize];
//! let (decoder, memory) = (decoder_new(2), alloc(frame.len()));
//! // SAFETY: handle and memory are live, the memory is as long as the frame, and both are given back once.
//! unsafe {
//!     memory.copy_from_nonoverlapping(frame.as_ptr(), frame.len());
//!     // Shown, a key frame, of a new size.
//!     assert_eq!(push_frame(decoder, 3000, memory, frame.len()), 1 | 2 | 8);
//!     assert_eq!((hr_width(decoder), hr_height(decoder)), (322, 182));
//!     dealloc(memory, frame.len());
//!     decoder_free(decoder);
//! }
//! ```

pub mod rows;
pub mod stills;
pub mod warm_up;

use std::sync::Arc;

use windlass_hybrid::{
    AnchorOutcome, Effort, FrameOutcome, HybridConfig, HybridDecoder, KeptCells,
};
use windlass_network::Tier;
use windlass_types::SCALES;
use windlass_types::message::Reassembler;
use windlass_vp9::{DecodeError, Decoder, FrameBuffer, Picture, SizeLimit};

use crate::warm_up::Piece;

/// Maximum length of a block that [`alloc`] gives, in bytes.
const MAX_ALLOC: usize = 4 * 1024 * 1024;

/// The decoder of one subscribed track, behind a handle.
pub struct Track {
    decoder: HybridDecoder,
    reassembler: Reassembler,
    size: (usize, usize),
    /// The flags that [`kept_ptr`] gave last: the memory must live while the caller reads it.
    kept: Vec<bool>,
}

impl Track {
    /// The flags of a frame's outcome, or an error code.
    fn outcome(&mut self, outcome: Result<FrameOutcome, DecodeError>) -> i32 {
        match outcome {
            Ok(outcome) => {
                let size = self.decoder.hr().map_or((0, 0), |p| (p.width(), p.height()));
                let changed = std::mem::replace(&mut self.size, size) != size;
                i32::from(outcome.shown)
                    | i32::from(outcome.key) << 1
                    | i32::from(outcome.enhanced) << 2
                    | i32::from(changed) << 3
            }
            Err(error) => error_code(error),
        }
    }
}

/// Memory for the caller to fill; null when `len` is 0 or beyond 4 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn alloc(len: usize) -> *mut u8 {
    if len == 0 || len > MAX_ALLOC {
        return std::ptr::null_mut();
    }
    Box::into_raw(vec![0u8; len].into_boxed_slice()).cast()
}

/// Gives memory of [`alloc`] back.
///
/// # Safety
/// `ptr` must come from `alloc(len)` and not have been given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dealloc(ptr: *mut u8, len: usize) {
    if !ptr.is_null() {
        // SAFETY: the caller hands back exactly what `alloc` leaked, so pointer and length are
        // those of one boxed slice.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(ptr, len)) });
    }
}

/// Maximum area of a low picture, in pixels: no server enhances a larger one. A stream may change its size between
/// key frames, and the client checks the size of key frames alone.
const MAX_PIXELS: u64 = 1920 * 1080;

/// Makes a decoder whose pictures are `scale` times as large as the low layer; null where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn decoder_new(scale: u32) -> *mut Track {
    let scale = scale as usize;
    if !SCALES.contains(&scale) {
        return std::ptr::null_mut();
    }
    Box::into_raw(Box::new(Track {
        decoder: HybridDecoder::new(HybridConfig { scale, ..HybridConfig::default() })
            .limited(SizeLimit { area: MAX_PIXELS, ..SizeLimit::default() }),
        reassembler: Reassembler::new(),
        size: (0, 0),
        kept: Vec::new(),
    }))
}

/// Frees a decoder.
///
/// # Safety
/// `handle` must come from [`decoder_new`] and not have been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn decoder_free(handle: *mut Track) {
    // SAFETY: as promised by the caller.
    unsafe { free(handle) };
}

/// Makes HR pictures `scale` times as large as the low layer from now on.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rescale(handle: *mut Track, scale: u32) -> i32 {
    // SAFETY: as promised by the caller.
    match unsafe { track_mut(handle) } {
        Some(track) if SCALES.contains(&(scale as usize)) => {
            track.decoder.rescale(scale as usize);
            0
        }
        _ => -1,
    }
}

/// Sets how thoroughly motion from references is searched for, from the next picture on: 0 fully, 1 little.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn set_effort(handle: *mut Track, effort: u32) -> i32 {
    let effort = match effort {
        0 => Effort::Full,
        1 => Effort::Little,
        _ => return -1,
    };
    // SAFETY: as promised by the caller.
    match unsafe { track_mut(handle) } {
        Some(track) => {
            track.decoder.set_effort(effort);
            0
        }
        None => -1,
    }
}

/// Runs a network on every picture from the next on: 0 none, 1 `xxs`, 2 `xs`.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn set_network(handle: *mut Track, tier: u32) -> i32 {
    let network = match (tier, Tier::ALL.get((tier as usize).wrapping_sub(1))) {
        (0, _) => None,
        (_, Some(&tier)) => Some(tier),
        (_, None) => return -1,
    };
    // SAFETY: as promised by the caller.
    match unsafe { track_mut(handle) } {
        Some(track) => {
            track.decoder.set_network(network);
            0
        }
        None => -1,
    }
}

/// Decodes one complete VP9 frame.
///
/// # Safety
/// `handle` must be live or null; `ptr` must point to `len` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn push_frame(
    handle: *mut Track,
    rtp_timestamp: u32,
    ptr: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    let (Some(track), Some(data)) = (unsafe { (track_mut(handle), bytes(ptr, len)) }) else {
        return -1;
    };
    let outcome = track.decoder.push_frame(rtp_timestamp, data);
    track.outcome(outcome)
}

/// Takes the picture that another decoder made of a frame: packed I420.
///
/// # Safety
/// `handle` must be live or null; `ptr` must point to `len` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn push_picture(
    handle: *mut Track,
    rtp_timestamp: u32,
    ptr: *const u8,
    len: usize,
    width: u32,
    height: u32,
) -> i32 {
    // SAFETY: as promised by the caller.
    let (Some(track), Some(low)) =
        (unsafe { (track_mut(handle), picture(ptr, len, width, height)) })
    else {
        return -1;
    };
    let outcome = track.decoder.push_picture(rtp_timestamp, &low);
    track.outcome(outcome)
}

/// A picture of packed I420; `None` where there is none of that length.
///
/// # Safety
/// `ptr` must point to `len` readable bytes.
unsafe fn picture(ptr: *const u8, len: usize, width: u32, height: u32) -> Option<Arc<FrameBuffer>> {
    // SAFETY: as promised by the caller.
    let data = unsafe { bytes(ptr, len) }?;
    FrameBuffer::from_i420(width as usize, height as usize, data).map(Arc::new)
}

/// Takes one raw message of the data channel.
///
/// # Safety
/// `handle` must be live or null; `ptr` must point to `len` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn push_message(handle: *mut Track, ptr: *const u8, len: usize) -> i32 {
    // SAFETY: as promised by the caller.
    let (Some(track), Some(message)) = (unsafe { (track_mut(handle), bytes(ptr, len)) }) else {
        return -1;
    };
    let anchor = match track.reassembler.push(message) {
        Ok(Some(anchor)) => anchor,
        Ok(None) => return 0,
        Err(_) => return -2,
    };
    match track.decoder.push_anchor(&anchor) {
        AnchorOutcome::Applied { .. } => 1,
        AnchorOutcome::Early => 2,
        AnchorOutcome::TooOld => 3,
        AnchorOutcome::Duplicate => 4,
        AnchorOutcome::FormerEpoch => 5,
        AnchorOutcome::Malformed => -3,
        AnchorOutcome::WrongSize => -4,
    }
}

/// Makes the picture on display anew where anchors have come since it was made.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refresh(handle: *mut Track) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { track_mut(handle) }.map_or(-1, |track| i32::from(track.decoder.refresh()))
}

/// Samples of a plane of the HR picture on display.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hr_ptr(handle: *const Track, plane: u32) -> *const u8 {
    // SAFETY: as promised by the caller.
    unsafe { high(handle) }
        .and_then(|p| p.planes().get(plane as usize).map(|p| p.samples().as_ptr()))
        .unwrap_or(std::ptr::null())
}

/// Samples of a plane of the low picture on display.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_ptr(handle: *const Track, plane: u32) -> *const u8 {
    // SAFETY: as promised by the caller.
    unsafe { low(handle) }
        .and_then(|p| p.planes().get(plane as usize).map(|p| p.samples().as_ptr()))
        .unwrap_or(std::ptr::null())
}

/// Luma width of the HR picture.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hr_width(handle: *const Track) -> u32 {
    // SAFETY: as promised by the caller.
    unsafe { high(handle) }.map_or(0, |p| p.width() as u32)
}

/// Luma height of the HR picture.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hr_height(handle: *const Track) -> u32 {
    // SAFETY: as promised by the caller.
    unsafe { high(handle) }.map_or(0, |p| p.height() as u32)
}

/// Luma width of the low picture.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_width(handle: *const Track) -> u32 {
    // SAFETY: as promised by the caller.
    unsafe { low(handle) }.map_or(0, |p| p.width() as u32)
}

/// Luma height of the low picture.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_height(handle: *const Track) -> u32 {
    // SAFETY: as promised by the caller.
    unsafe { low(handle) }.map_or(0, |p| p.height() as u32)
}

/// Bytes from row to row of a plane of the HR (`which` 0) or low (1) picture.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stride(handle: *const Track, which: u32, plane: u32) -> u32 {
    // SAFETY: as promised by the caller.
    let (high, low) = unsafe { (high(handle), low(handle)) };
    let plane = plane as usize;
    match which {
        0 => high.and_then(|p| p.planes().get(plane).map(|p| p.stride() as u32)),
        1 => low.and_then(|p| p.planes().get(plane).map(|p| p.stride() as u32)),
        _ => None,
    }
    .unwrap_or(0)
}

/// A flag for each cell of the picture on display, row by row: whether no network makes the cell better.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kept_ptr(handle: *mut Track) -> *const bool {
    // SAFETY: as promised by the caller.
    let track = unsafe { track_mut(handle) };
    track.map_or(std::ptr::null(), |track| match track.decoder.kept() {
        KeptCells::NoPicture | KeptCells::Stale => std::ptr::null(),
        KeptCells::Flags(flags) => {
            track.kept = flags;
            track.kept.as_ptr()
        }
    })
}

/// A counter by its index, as listed in the head of the module.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stat(handle: *const Track, index: u32) -> f64 {
    // SAFETY: as promised by the caller.
    let Some(track) = (unsafe { handle.as_ref() }) else {
        return f64::NAN;
    };
    let stats = track.decoder.stats();
    let messages = track.reassembler.stats();
    let value = match index {
        0 => stats.frames,
        1 => stats.errors,
        2 => stats.enhanced,
        3 => stats.applied,
        4 => stats.late,
        5 => stats.too_old,
        6 => stats.early,
        7 => stats.malformed,
        8 => u64::from(stats.last_frames_late),
        9 => u64::from(track.decoder.is_stale()),
        10 => messages.malformed,
        11 => messages.dropped,
        12 => messages.duplicates,
        13 => stats.duplicate,
        14 => stats.former_epoch,
        15 => return track.decoder.decay().lost,
        16 => track.decoder.decay().frames,
        _ => return f64::NAN,
    };
    value as f64
}

/// Forgets all references and anchors.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reset(handle: *mut Track) {
    // SAFETY: as promised by the caller.
    if let Some(track) = unsafe { track_mut(handle) } {
        track.decoder.reset();
        track.reassembler.clear();
    }
}

/// Decodes one piece of the embedded stream: 1 when another follows, else 0.
///
/// # Safety
/// `handle` must be live or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warm_up(handle: *mut Track, step: u32) -> i32 {
    let Some(piece) = warm_up::piece(step) else {
        return 0;
    };
    if warm_up::begins_pass(step) {
        // SAFETY: the handle as promised by the caller.
        unsafe { reset(handle) };
        // SAFETY: as above.
        if let Some(track) = unsafe { track_mut(handle) } {
            track.decoder.set_network(warm_up::network(step));
        }
    }
    let code = match piece {
        // SAFETY: the handle as promised by the caller; the bytes are the module's own.
        Piece::Frame { rtp_timestamp, data } => unsafe {
            push_frame(handle, rtp_timestamp, data.as_ptr(), data.len())
        },
        // SAFETY: as above.
        Piece::Message(data) => unsafe { push_message(handle, data.as_ptr(), data.len()) },
    };
    i32::from(code >= 0 && warm_up::piece(step.saturating_add(1)).is_some())
}

/// Makes a decoder of VP9 alone.
#[unsafe(no_mangle)]
pub extern "C" fn vp9_new() -> *mut Decoder {
    Box::into_raw(Box::new(Decoder::new()))
}

/// Decodes a chunk, and returns the number of its pictures.
///
/// # Safety
/// `handle` must come from [`vp9_new`] or be null; `ptr` must point to `len` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vp9_push(handle: *mut Decoder, ptr: *const u8, len: usize) -> i32 {
    // SAFETY: as promised by the caller.
    let (Some(decoder), Some(data)) = (unsafe { (handle.as_mut(), bytes(ptr, len)) }) else {
        return -1;
    };
    decoder.decode(data).map_or_else(error_code, |frames| frames.len() as i32)
}

/// Frees a decoder of [`vp9_new`].
///
/// # Safety
/// `handle` must come from [`vp9_new`] and not have been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vp9_free(handle: *mut Decoder) {
    // SAFETY: as promised by the caller.
    unsafe { free(handle) };
}

/// Frees what is behind a handle, if there is one.
///
/// # Safety
/// `handle` must be null, or come from `Box::into_raw` and not have been freed.
unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: as promised by the caller.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// The track behind a handle.
///
/// # Safety
/// `handle` must be live or null, and the module runs on one thread, so no other reference exists.
unsafe fn track_mut<'a>(handle: *mut Track) -> Option<&'a mut Track> {
    // SAFETY: as promised by the caller.
    unsafe { handle.as_mut() }
}

/// The caller's bytes.
///
/// # Safety
/// `ptr` must be null or point to `len` readable bytes.
unsafe fn bytes<'a>(ptr: *const u8, len: usize) -> Option<&'a [u8]> {
    if ptr.is_null() || len == 0 {
        return None;
    }
    // SAFETY: as promised by the caller.
    Some(unsafe { std::slice::from_raw_parts(ptr, len) })
}

/// The HR picture of a handle.
///
/// # Safety
/// `handle` must be live or null.
unsafe fn high<'a>(handle: *const Track) -> Option<&'a Picture> {
    // SAFETY: as promised by the caller.
    unsafe { handle.as_ref() }?.decoder.hr()
}

/// The low picture of a handle.
///
/// # Safety
/// `handle` must be live or null.
unsafe fn low<'a>(handle: *const Track) -> Option<&'a FrameBuffer> {
    // SAFETY: as promised by the caller.
    unsafe { handle.as_ref() }?.decoder.lr()
}

fn error_code(error: DecodeError) -> i32 {
    match error {
        DecodeError::Empty => -1,
        DecodeError::NeedKeyFrame => -2,
        DecodeError::Header => -3,
        DecodeError::Profile(_) => -4,
        DecodeError::Size { .. } => -5,
        DecodeError::Truncated => -6,
        DecodeError::CompressedHeader => -7,
        DecodeError::Tile => -8,
        DecodeError::MissingReference => -9,
        DecodeError::Internal => -10,
        DecodeError::StaleReference => -11,
    }
}

#[cfg(test)]
mod tests {
    use super::stills::{stills_follow_picture, stills_free, stills_new};
    use super::*;

    #[test]
    fn pictures_of_another_decoder_are_taken_by_their_length() {
        let data = [128; 96];
        // SAFETY: the handles are live or null and freed once; the data are as long as said.
        unsafe {
            let (track, stills) = (decoder_new(2), stills_new());
            assert_eq!(push_picture(track, 0, data.as_ptr(), 95, 8, 8), -1);
            assert_eq!(push_picture(track, 0, data.as_ptr(), 96, u32::MAX, u32::MAX), -1);
            assert_eq!(push_picture(std::ptr::null_mut(), 0, data.as_ptr(), 96, 8, 8), -1);
            assert_eq!(push_picture(track, 0, data.as_ptr(), 96, 8, 8), 1 | 8);
            assert_eq!((hr_width(track), hr_height(track)), (16, 16));
            assert_eq!(stills_follow_picture(stills, 0, data.as_ptr(), 95, 8, 8), -1);
            assert_eq!(stills_follow_picture(stills, 0, data.as_ptr(), 96, 8, 8), 0);
            decoder_free(track);
            stills_free(stills);
        }
    }

    #[test]
    fn null_handles_and_empty_input_are_refused() {
        // SAFETY: null is allowed everywhere, and the live handle is freed once.
        unsafe {
            assert_eq!(push_frame(std::ptr::null_mut(), 0, [1].as_ptr(), 1), -1);
            assert_eq!(push_message(std::ptr::null_mut(), [1].as_ptr(), 1), -1);
            assert!(stat(std::ptr::null(), 0).is_nan());
            assert!(decoder_new(0).is_null() && decoder_new(5).is_null());
            let handle = decoder_new(4);
            assert_eq!(push_frame(handle, 0, std::ptr::null(), 0), -1);
            assert_eq!(push_message(handle, [9u8; 30].as_ptr(), 30), -2);
            assert!(hr_ptr(handle, 0).is_null());
            assert_eq!((refresh(handle), refresh(std::ptr::null_mut())), (0, -1));
            assert_eq!((hr_width(handle), stride(handle, 1, 7)), (0, 0));
            assert!(stat(handle, 99).is_nan());
            assert_eq!(warm_up(std::ptr::null_mut(), 0), 0);
            decoder_free(handle);
            let block = alloc(16);
            assert!(!block.is_null() && alloc(0).is_null());
            dealloc(block, 16);
        }
    }
}
