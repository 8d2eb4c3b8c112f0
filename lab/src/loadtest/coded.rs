//! Encodes a layer in another codec than VP9, by ffmpeg, as calls do.

use std::path::Path;

use anyhow::{Context, Result};
use windlass_files::ivf;
use windlass_types::VideoCodec;
use windlass_vp9::Picture;

use super::recording::Frame;
use crate::eval::fed::Fed;

/// The file that ffmpeg writes.
const CODED: &str = "coded";

/// The encoder of one layer.
pub(super) struct Coder {
    codec: VideoCodec,
    ffmpeg: Fed,
}

/// How a layer is encoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    /// The codec.
    pub codec: VideoCodec,
    /// Width and height of the pictures.
    pub size: (usize, usize),
    /// Pictures in a second.
    pub fps: f64,
    /// Bitrate, in kbit/s.
    pub kbps: u32,
    /// Number of pictures from one key frame to the next.
    pub key_every: usize,
}

impl Coder {
    /// Starts an encoder.
    pub(super) fn start(ffmpeg: &Path, settings: Settings) -> Result<Coder> {
        let Settings { codec, size: (width, height), fps, kbps, key_every } = settings;
        let (size, fps) = (format!("{width}x{height}"), fps.to_string());
        let (rate, keys) = (format!("{kbps}k"), key_every.to_string());
        let raw =
            ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", &size, "-r", &fps, "-i", "pipe:0"];
        let rates = ["-b:v", &rate, "-g", &keys, "-keyint_min", &keys];
        let arguments = [&raw[..], &rates[..], arguments(codec), &[CODED]].concat();
        let ffmpeg = Fed::start(ffmpeg, format!("encoding {}", codec.name()), &arguments)?;
        Ok(Coder { codec, ffmpeg })
    }

    /// Adds the next picture.
    pub(super) fn push(&mut self, picture: &Picture) -> Result<()> {
        self.ffmpeg.push(picture)
    }

    /// The encoded frames.
    pub(super) fn finish(self) -> Result<Vec<Frame>> {
        frames(self.codec, &self.ffmpeg.finish(CODED)?)
    }
}

/// ffmpeg's arguments that encode as a call does: no picture waits for later ones.
fn arguments(codec: VideoCodec) -> &'static [&'static str] {
    match codec {
        VideoCodec::Vp9 => {
            &["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "7", "-f", "ivf"]
        }
        VideoCodec::Vp8 => {
            &["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-f", "ivf"]
        }
        VideoCodec::Av1 => &[
            "-c:v",
            "libaom-av1",
            "-usage",
            "realtime",
            "-cpu-used",
            "8",
            "-lag-in-frames",
            "0",
            "-f",
            "ivf",
        ],
        VideoCodec::H264 => &[
            "-c:v",
            "libx264",
            "-preset",
            "veryfast",
            "-profile:v",
            "baseline",
            "-tune",
            "zerolatency",
            // One slice a picture, and a delimiter before each, by which the file is cut.
            "-x264-params",
            "aud=1:scenecut=0:sliced-threads=0",
            "-f",
            "h264",
        ],
    }
}

/// The frames of a file that ffmpeg wrote.
fn frames(codec: VideoCodec, file: &[u8]) -> Result<Vec<Frame>> {
    let cut = if codec == VideoCodec::H264 {
        delimited(file)
    } else {
        ivf::read_any(file).context("reading what ffmpeg encoded")?.frames
    };
    Ok(cut.into_iter().map(|frame| Frame::new(codec, frame.to_vec())).collect())
}

/// The pictures of an H.264 stream, which begin with a delimiter each (NAL unit 9). A start code may have a zero more
/// before it, which is no part of the picture before.
fn delimited(stream: &[u8]) -> Vec<&[u8]> {
    const LEN: usize = 4;
    let begins = |window: &[u8]| matches!(window, [0, 0, 1, head] if head & 0x1f == 9);
    let starts: Vec<usize> =
        stream.windows(LEN).enumerate().filter(|(_, w)| begins(w)).map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([stream.len()]);
    starts.iter().zip(ends).map(|(&from, to)| without_zeros(&stream[from..to])).collect()
}

fn without_zeros(picture: &[u8]) -> &[u8] {
    let end = picture.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &picture[..end]
}

#[cfg(test)]
mod tests {
    use windlass_skips::skip;

    use super::*;
    use crate::eval::ffmpeg;
    use crate::loadtest::scene;

    #[test]
    fn a_stream_is_cut_at_its_delimiters() {
        let stream = [0, 0, 0, 1, 9, 16, 0, 0, 1, 0x65, 7, 0, 0, 0, 1, 9, 16, 0, 0, 1, 0x61, 8];
        let pictures = delimited(&stream);
        assert_eq!(pictures.len(), 2);
        assert_eq!(pictures[0], [0, 0, 1, 9, 16, 0, 0, 1, 0x65, 7]);
        assert_eq!(pictures[1], [0, 0, 1, 9, 16, 0, 0, 1, 0x61, 8]);
        assert!(delimited(&[]).is_empty());
    }

    #[test]
    fn each_codec_gives_a_frame_for_each_picture_and_key_frames_where_asked() {
        let Ok(ffmpeg) = ffmpeg::find(None) else {
            return skip("there is no ffmpeg");
        };
        for codec in VideoCodec::ALL {
            let settings = Settings { codec, size: (160, 90), fps: 30.0, kbps: 150, key_every: 10 };
            let mut coder = Coder::start(&ffmpeg.reader, settings).unwrap();
            for n in 0..20 {
                coder.push(&scene::draw(160, 90, f64::from(n) / 20.0)).unwrap();
            }
            let frames = coder.finish().unwrap();
            let keys: Vec<usize> =
                frames.iter().enumerate().filter(|(_, f)| f.key).map(|(n, _)| n).collect();
            assert_eq!((frames.len(), keys), (20, vec![0, 10]), "{codec:?}");
        }
    }
}
