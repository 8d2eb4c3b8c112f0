//! The pictures of a rendition, from the frames and anchors of a track in a call to AV1 in RTP payloads.
//!
//! Each frame is rebuilt when it comes. Anchors come later, and are in the pictures after them, as they are at a
//! viewer. The caller says how much is done for each frame, as it knows how much time there is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_network::Tier;
use windlass_types::message::ReassembledAnchor;
use windlass_types::recording::{RecordedAnchor, RecordedFrame};
use windlass_types::{Bitrate, Layer, Size};
use windlass_vp9::DecodeError;

use crate::av1_rtp::payloads;
use crate::encoder::{EncodeError, Encoder, Packet, Purpose};
use crate::pictures::Pictures;
use crate::size::call_picture_size;

/// Clock rate of video in RTP, in kHz.
const CLOCK_KHZ: u32 = 90;
/// Bits per pixel, of a picture of [`REFERENCE_PIXELS`]; larger ones need fewer.
const BITS_PER_PIXEL: f64 = 0.2;
/// Pixels of a picture of 640 × 360.
const REFERENCE_PIXELS: f64 = 640.0 * 360.0;
/// Pictures a second for which the bitrate is chosen.
const FPS: f64 = 30.0;
/// Minimum time between two pictures, in ticks of RTP.
const MIN_TICKS: u32 = 2250;
/// Maximum number of repeats of a picture: as many as the encoder holds back.
const MAX_REPEATS: u32 = 4;

/// What pictures are made of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallConfig {
    /// Width of an anchor's picture over that of its layer.
    pub scale: u16,
    /// Threads of the encoder.
    pub threads: usize,
}

/// What is done for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// The network that runs on the rebuilt picture.
    pub network: Option<Tier>,
    /// Whether the picture is encoded. A key frame that was asked for is.
    pub encode: bool,
}

/// How long a frame took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Time of decoding and rebuilding the picture.
    pub rebuild: Duration,
    /// Time of encoding the picture; `None`: it was not encoded.
    pub encode: Option<Duration>,
}

/// The packets of one picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPicture {
    /// RTP timestamp of the picture.
    pub timestamp: u32,
    /// Payloads of its packets, in their order.
    pub payloads: Vec<Arc<[u8]>>,
}

/// Why a frame has no picture.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The frame cannot be decoded, nor can any before the next key frame.
    #[error("the frame cannot be decoded: {0}")]
    Decode(#[from] DecodeError),
    /// The encoder.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Rebuilds and encodes the pictures of one track.
pub struct CallTranscoder {
    config: CallConfig,
    /// Pictures of the present size, and what encodes them; `None` before the first key frame.
    coding: Option<Coding>,
    /// The layer that comes.
    layer: Option<Layer>,
    timeline: Timeline,
    key_wanted: bool,
}

struct Coding {
    size: Size,
    pictures: Pictures,
    encoder: Encoder,
    /// RTP timestamp of the last picture that was encoded.
    encoded: u32,
    /// How often it was repeated.
    repeats: u32,
}

impl Coding {
    fn new(size: Size, config: CallConfig) -> Result<Coding, EncodeError> {
        let purpose = Purpose::Call(bitrate(size), config.threads);
        let (encoder, pictures) = (Encoder::new(size, purpose)?, Pictures::new(size));
        Ok(Coding { size, pictures, encoder, encoded: 0, repeats: 0 })
    }
}

/// Bitrate of pictures of a size: by the power of 0.75 of their pixels, as is usual for ladders of bitrates.
fn bitrate(size: Size) -> Bitrate {
    let relative = f64::from(size.pixels()) / REFERENCE_PIXELS;
    Bitrate::bps((BITS_PER_PIXEL * FPS * REFERENCE_PIXELS * relative.powf(0.75)) as u64)
}

impl CallTranscoder {
    /// A transcoder of a track, before its first frame.
    pub fn new(config: CallConfig) -> CallTranscoder {
        let timeline = Timeline::default();
        CallTranscoder { config, coding: None, layer: None, timeline, key_wanted: true }
    }

    /// Makes the next picture a key frame.
    pub fn request_key_frame(&mut self) {
        self.key_wanted = true;
    }

    /// Begins anew with the next key frame, after a frame that could not be decoded. Time goes on.
    pub fn restart(&mut self) {
        (self.coding, self.layer, self.key_wanted) = (None, None, true);
    }

    /// Whether the encoder holds pictures back that no later one may push out.
    pub fn holds(&self) -> bool {
        self.coding
            .as_ref()
            .is_some_and(|coding| coding.encoder.waiting() > 0 && coding.repeats < MAX_REPEATS)
    }

    /// Encodes the last picture once more, as no frame comes. Returns the pictures that are ready by that.
    ///
    /// # Errors
    ///
    /// Fails if the encoder fails.
    pub fn repeat(&mut self) -> Result<Vec<CallPicture>, CallError> {
        let Some(coding) = &mut self.coding else { return Ok(Vec::new()) };
        coding.repeats += 1;
        let (timestamp, mut packets) = (coding.encoded.wrapping_add(1), Vec::new());
        coding.encoded = timestamp;
        coding.encoder.repeat(timestamp, &mut packets)?;
        Ok(pictures_of(packets))
    }

    /// Takes a frame. Returns the pictures that are ready, some frames later, and how long the work took by `clock`.
    ///
    /// # Errors
    ///
    /// Fails if the frame cannot be decoded, or the encoder fails. Both need a key frame next.
    pub fn push_frame(
        &mut self,
        frame: &RecordedFrame,
        effort: Effort,
        clock: impl Fn() -> Instant,
    ) -> Result<(Vec<CallPicture>, Work), CallError> {
        let (begun, mut work) = (clock(), Work::default());
        if frame.key {
            self.begin(frame.layer, frame.size)?;
        }
        let rtp = frame.time.rtp;
        let timestamp = self.timeline.at(frame.layer, rtp, frame.time.arrival);
        let Some(coding) = &mut self.coding else { return Ok((Vec::new(), work)) };
        coding.pictures.set_network(effort.network);
        let picture = coding.pictures.push(rtp, &frame.data, &[])?;
        let rebuilt = clock();
        work.rebuild = rebuilt.saturating_duration_since(begun);
        // Half of 60 pictures a second, and all of 30.
        let soon = coding.repeats == 0 && timestamp.wrapping_sub(coding.encoded) < MIN_TICKS;
        let wanted = self.key_wanted || effort.encode && !soon;
        let Some(picture) = picture.filter(|_| wanted) else { return Ok((Vec::new(), work)) };
        (coding.encoded, coding.repeats) = (timestamp, 0);
        let (key, mut packets) = (std::mem::take(&mut self.key_wanted), Vec::new());
        coding.encoder.push(timestamp, picture, key, &mut packets)?;
        work.encode = Some(clock().saturating_duration_since(rebuilt));
        Ok((pictures_of(packets), work))
    }

    /// Takes an anchor of a frame that has come.
    pub fn push_anchor(&mut self, RecordedAnchor { layer, anchor, .. }: &RecordedAnchor) {
        if let Some(coding) = self.coding.as_mut().filter(|_| self.layer == Some(*layer)) {
            let (header, payload) = (anchor.header(), anchor.payload.to_vec());
            coding.pictures.push_anchor(&ReassembledAnchor { header, payload });
        }
    }

    fn begin(&mut self, layer: Layer, size: Size) -> Result<(), EncodeError> {
        self.layer = Some(layer);
        let wanted = call_picture_size(size, self.config.scale, self.config.threads);
        if self.coding.as_ref().is_none_or(|coding| coding.size != wanted) {
            self.coding = Some(Coding::new(wanted, self.config)?);
            self.key_wanted = true;
        }
        Ok(())
    }
}

fn pictures_of(packets: Vec<Packet>) -> Vec<CallPicture> {
    let pictures = packets.into_iter().map(|Packet { number: timestamp, key, data }| CallPicture {
        timestamp,
        payloads: payloads(&data, key).unwrap_or_default(),
    });
    pictures.collect()
}

/// One timeline of frames whose layers have timelines of their own.
#[derive(Debug, Default)]
struct Timeline {
    last: Option<Last>,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    layer: Layer,
    arrival: Instant,
    /// RTP timestamp of the frame in its layer.
    rtp: u32,
    timestamp: u32,
}

impl Timeline {
    /// RTP timestamp of a frame. Where another layer goes on, the time since the last frame came counts.
    fn at(&mut self, layer: Layer, rtp: u32, arrival: Instant) -> u32 {
        let timestamp = match self.last {
            None => rtp,
            Some(last) if last.layer == layer => {
                last.timestamp.wrapping_add(rtp.wrapping_sub(last.rtp))
            }
            Some(last) => {
                let since = arrival.saturating_duration_since(last.arrival).as_millis() as u32;
                last.timestamp.wrapping_add(since.max(1).wrapping_mul(CLOCK_KHZ))
            }
        };
        self.last = Some(Last { layer, arrival, rtp, timestamp });
        timestamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_pictures_have_more_bits_but_fewer_for_each_pixel() {
        let of = |width, height| bitrate(Size::new(width, height)).as_bps() / 1000;
        assert_eq!((of(320, 180), of(640, 360), of(1280, 720)), (488, 1382, 3910));
    }

    #[test]
    fn one_timeline_goes_on_where_layers_change() {
        let (mut timeline, now) = (Timeline::default(), Instant::now());
        let at = |ms| now + Duration::from_millis(ms);
        assert_eq!(timeline.at(Layer::Q, u32::MAX, at(0)), u32::MAX);
        assert_eq!(timeline.at(Layer::Q, 2999, at(40)), 2999, "jitter of arrival is left out");
        assert_eq!(timeline.at(Layer::H, 700_000, at(60)), 2999 + 20 * 90);
        assert_eq!(timeline.at(Layer::H, 703_000, at(60)), 2999 + 20 * 90 + 3000);
        assert_eq!(timeline.at(Layer::Q, 0, at(60)), 2999 + 20 * 90 + 3000 + 90, "never twice");
    }
}
