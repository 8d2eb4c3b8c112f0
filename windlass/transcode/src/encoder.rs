//! The encoder of rebuilt pictures: AV1 by rav1e.

use std::collections::VecDeque;

use rav1e::prelude::{
    ChromaSampling, Config, Context, EncoderConfig, EncoderStatus, Frame, FrameParameters,
    FrameType, FrameTypeOverride, InvalidConfig, Rational, SceneDetectionSpeed,
};
use windlass_types::{Bitrate, Size};
use windlass_vp9::Samples;

/// Speed of the encoder, 0 to 10: the fastest.
const SPEED: u8 = 10;
/// Quantizer of an enhanced file, 0 to 255. At 80, pictures lose all that was gained over the enlarged layer; at 40
/// half a decibel, for twice the bytes.
const QUANTIZER: usize = 40;
/// Maximum frames from one key frame to the next in an enhanced file: a player seeks to key frames.
const KEY_FRAME_INTERVAL: u64 = 240;
/// Maximum frames from one key frame to the next in a rendition, whose players ask for key frames.
const CALL_KEY_FRAME_INTERVAL: u64 = 9000;
/// Frames over which the bitrate of a rendition is kept, the fewest that the encoder takes.
const RESERVOIR: i32 = 12;
/// A temporal delimiter, which frames in WebM do not have.
const TEMPORAL_DELIMITER: [u8; 2] = [0x12, 0x00];

/// An encoded picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Number of the picture's frame.
    pub number: u32,
    /// Whether a player may begin here.
    pub key: bool,
    /// Bytes of the picture, as WebM has them.
    pub data: Vec<u8>,
}

/// Error of the encoder.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The encoder refuses pictures of that size.
    #[error("pictures of {size} cannot be encoded: {source}")]
    Size {
        /// Size of the pictures.
        size: Size,
        /// Why they are refused.
        source: InvalidConfig,
    },
    /// The encoder has failed.
    #[error("the encoder failed: {0}")]
    Failed(EncoderStatus),
}

/// What pictures are encoded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// An enhanced file: the same quality throughout.
    File,
    /// A rendition: the same bitrate throughout, by this number of threads.
    Call(Bitrate, usize),
}

/// Encodes pictures of one size.
pub(crate) struct Encoder {
    size: Size,
    context: Context<u8>,
    /// Numbers of the frames whose packets have not come out yet.
    numbers: VecDeque<u32>,
    /// The last picture.
    last: Option<Frame<u8>>,
    /// Whether pictures may be repeated.
    repeats: bool,
}

impl Encoder {
    pub(crate) fn new(size: Size, purpose: Purpose) -> Result<Encoder, EncodeError> {
        let mut encoder = EncoderConfig::with_speed_preset(SPEED);
        (encoder.width, encoder.height) = (size.width.into(), size.height.into());
        encoder.chroma_sampling = ChromaSampling::Cs420;
        encoder.time_base = Rational::new(1, 30);
        // Without it, pictures would wait for later ones, in memory.
        encoder.low_latency = true;
        encoder.min_key_frame_interval = 0;
        encoder.speed_settings.scene_detection_mode = SceneDetectionSpeed::None;
        let threads = match purpose {
            Purpose::File => {
                encoder.quantizer = QUANTIZER;
                encoder.max_key_frame_interval = KEY_FRAME_INTERVAL;
                1
            }
            Purpose::Call(bitrate, threads) => {
                encoder.bitrate = i32::try_from(bitrate.as_bps()).unwrap_or(i32::MAX);
                encoder.reservoir_frame_delay = Some(RESERVOIR);
                encoder.max_key_frame_interval = CALL_KEY_FRAME_INTERVAL;
                encoder.speed_settings.rdo_lookahead_frames = 1;
                encoder.tiles = threads;
                threads
            }
        };
        let config = Config::new().with_encoder_config(encoder).with_threads(threads);
        let context = config.new_context().map_err(|source| EncodeError::Size { size, source })?;
        let repeats = purpose != Purpose::File;
        Ok(Encoder { size, context, numbers: VecDeque::new(), last: None, repeats })
    }

    /// Header of the stream, as WebM has it for the track.
    pub(crate) fn header(&self) -> Vec<u8> {
        self.context.container_sequence_header()
    }

    /// Encodes the picture of a frame, as a key frame if `key`. Packets come out later, in the order of their frames.
    pub(crate) fn push(
        &mut self,
        number: u32,
        picture: [Samples<'_>; 3],
        key: bool,
        packets: &mut Vec<Packet>,
    ) -> Result<(), EncodeError> {
        debug_assert_eq!(picture[0].width, usize::from(self.size.width));
        let mut frame = self.context.new_frame();
        for (plane, samples) in frame.planes.iter_mut().zip(picture) {
            let stride = plane.cfg.stride;
            let rows = plane.data_origin_mut().chunks_mut(stride).zip(0..samples.height);
            for (row, y) in rows {
                row[..samples.width].copy_from_slice(samples.row(y));
            }
        }
        if self.repeats {
            self.last = Some(frame.clone());
        }
        self.send(number, frame, key, packets)
    }

    /// Encodes the last picture once more.
    pub(crate) fn repeat(
        &mut self,
        number: u32,
        packets: &mut Vec<Packet>,
    ) -> Result<(), EncodeError> {
        let Some(last) = self.last.clone() else { return Ok(()) };
        self.send(number, last, false, packets)
    }

    fn send(
        &mut self,
        number: u32,
        frame: Frame<u8>,
        key: bool,
        packets: &mut Vec<Packet>,
    ) -> Result<(), EncodeError> {
        self.numbers.push_back(number);
        let no = FrameTypeOverride::No;
        let frame_type_override = if key { FrameTypeOverride::Key } else { no };
        let parameters = FrameParameters { frame_type_override, ..FrameParameters::default() };
        self.context.send_frame((frame, parameters)).map_err(EncodeError::Failed)?;
        self.take(packets)
    }

    /// Gives out the last packets. The encoder takes no more pictures.
    pub(crate) fn finish(mut self, packets: &mut Vec<Packet>) -> Result<(), EncodeError> {
        self.context.flush();
        self.take(packets)
    }

    /// Number of pictures whose packets have not come out yet.
    pub(crate) fn waiting(&self) -> usize {
        self.numbers.len()
    }

    fn take(&mut self, packets: &mut Vec<Packet>) -> Result<(), EncodeError> {
        loop {
            match self.context.receive_packet() {
                Ok(packet) => {
                    let Some(number) = self.numbers.pop_front() else { return Ok(()) };
                    let key = packet.frame_type == FrameType::KEY;
                    let data = packet.data;
                    let data = match data.strip_prefix(&TEMPORAL_DELIMITER) {
                        Some(rest) => rest.to_vec(),
                        None => data,
                    };
                    packets.push(Packet { number, key, data });
                }
                Err(EncoderStatus::Encoded) => {}
                Err(EncoderStatus::NeedMoreData | EncoderStatus::LimitReached) => return Ok(()),
                Err(error) => return Err(EncodeError::Failed(error)),
            }
        }
    }
}
