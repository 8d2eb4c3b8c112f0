//! The sources of recordings: IVF files, a clip that is encoded here, or the drawn scene.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use windlass_files::ivf;
use windlass_hybrid::resample::box_down;
use windlass_types::{Layer, VideoCodec};
use windlass_vp9::Picture;

use super::args::SentArgs;
use super::coded::{Coder, Settings};
use super::recording::{Frame, Recording};
use super::scene;
use crate::eval::clip::{self, Fps, Wanted};
use crate::eval::ffmpeg;
use crate::eval::scale::Scale;
use crate::interrupt;
use windlass_vpx::{Encoder, EncoderConfig, FrameUse};

/// Number of lines of the full layer.
const FULL_LINES: u32 = 720;
/// Number of seconds between key frames, unless the arguments say otherwise.
const KEY_EVERY_S: f64 = 2.0;
/// Frames per second of the scene.
const SCENE_FPS: f64 = 30.0;

/// The bitrate that the SDK gives each layer, in kbit/s.
fn kbps(layer: Layer) -> u32 {
    match layer {
        Layer::Q => 150,
        Layer::H => 500,
        Layer::F => 1500,
    }
}

/// Factor by which the full layer's sides are longer than this one's.
fn shrink(layer: Layer) -> usize {
    4 >> layer as usize
}

/// The recording that the arguments ask for.
pub(super) fn recording(args: &SentArgs) -> Result<Recording> {
    let mut layers = args.layers.clone();
    layers.sort_unstable();
    layers.dedup();
    match (&args.media, &args.clip) {
        (Some(folder), _) => read(folder, &layers),
        (None, Some(file)) => code_clip(args, file, &layers),
        (None, None) => drawn(&layers, args.clip_seconds, &Coding::of(args)?),
    }
}

/// Encoded frames of the scene, as publishers send it in a layer.
pub(crate) fn scene_frames(rid: &str, seconds: f64) -> Result<Vec<Vec<u8>>> {
    let layer = Layer::from_rid(rid).context("there are the layers q, h and f")?;
    let recording = drawn(&[layer], seconds, &Coding { key_every_s: KEY_EVERY_S, by: None })?;
    Ok((0..recording.len())
        .flat_map(|n| recording.frames(n))
        .map(|(_, f)| f.data.to_vec())
        .collect())
}

/// How layers are encoded.
struct Coding {
    /// Seconds between key frames.
    key_every_s: f64,
    /// Another codec than VP9, and the ffmpeg that encodes it.
    by: Option<(VideoCodec, PathBuf)>,
}

impl Coding {
    fn of(args: &SentArgs) -> Result<Coding> {
        let by = match args.codec {
            VideoCodec::Vp9 => None,
            codec => Some((codec, ffmpeg::find(args.ffmpeg.as_deref())?.reader)),
        };
        Ok(Coding { key_every_s: args.key_every, by })
    }

    fn codec(&self) -> VideoCodec {
        self.by.as_ref().map_or(VideoCodec::Vp9, |(codec, _)| *codec)
    }

    /// An encoder of a layer, for pictures of the first one's size.
    fn encoder(&self, layer: Layer, first: &Picture, fps: f64) -> Result<LayerEncoder> {
        let (size, kbps) = ((first.width(), first.height()), kbps(layer));
        let key_every = frames_of(self.key_every_s, fps);
        let Some((codec, ffmpeg)) = &self.by else {
            let (width, height) = size;
            let config = EncoderConfig { width, height, fps, kbps, screen: false, cpu_used: None };
            let encoder = Encoder::new(config)?;
            return Ok(LayerEncoder::Vp9 { encoder, key_every, frames: Vec::new() });
        };
        let settings = Settings { codec: *codec, size, fps, kbps, key_every };
        Ok(LayerEncoder::Other(Coder::start(ffmpeg, settings)?))
    }
}

/// The encoder of one layer.
enum LayerEncoder {
    Vp9 { encoder: Encoder, key_every: usize, frames: Vec<Frame> },
    Other(Coder),
}

impl LayerEncoder {
    fn push(&mut self, picture: &Picture) -> Result<()> {
        match self {
            LayerEncoder::Vp9 { encoder, key_every, frames } => {
                let data = if frames.len().is_multiple_of(*key_every) {
                    encoder.encode_as(picture, FrameUse::Key)?
                } else {
                    encoder.encode(picture)?
                };
                frames.push(Frame::new(VideoCodec::Vp9, data));
                Ok(())
            }
            LayerEncoder::Other(coder) => coder.push(picture),
        }
    }

    fn finish(self) -> Result<Vec<Frame>> {
        match self {
            LayerEncoder::Vp9 { frames, .. } => Ok(frames),
            LayerEncoder::Other(coder) => coder.finish(),
        }
    }
}

/// A recording of the moving scene.
fn drawn(layers: &[Layer], seconds: f64, coding: &Coding) -> Result<Recording> {
    let frames = frames_of(seconds, SCENE_FPS);
    let pictures = (0..frames).map(|n| Ok(n as f64 / frames as f64));
    let draw = |at: f64, by: usize| scene::draw(1280 / by, 720 / by, at);
    code(pictures, layers, SCENE_FPS, coding, draw)
}

fn frames_of(seconds: f64, fps: f64) -> usize {
    ((seconds * fps).round() as usize).max(1)
}

/// A recording of the folder's files. Layers without a file are not sent.
fn read(folder: &Path, layers: &[Layer]) -> Result<Recording> {
    ensure!(
        folder.is_dir(),
        "{} is not a folder; give one with q.ivf, h.ivf or f.ivf in --media, or leave it out",
        folder.display()
    );
    let (mut found, mut fps) = (Vec::new(), None);
    for &layer in layers {
        let path = folder.join(format!("{}.ivf", layer.rid()));
        if !path.is_file() {
            eprintln!("{} is not there: layer {} is not sent", path.display(), layer.rid());
            continue;
        }
        let named = || format!("reading {}", path.display());
        let file = std::fs::read(&path).with_context(named)?;
        let file = ivf::read(&file).with_context(named)?;
        fps = fps.or(Some(file.fps));
        let frames = file.frames.into_iter();
        found.push((layer, frames.map(|f| Frame::new(VideoCodec::Vp9, f.to_vec())).collect()));
    }
    let fps =
        fps.with_context(|| format!("{} has none of the layers to send", folder.display()))?;
    Recording::new(VideoCodec::Vp9, fps, found)
        .with_context(|| format!("the files of {}", folder.display()))
}

fn code_clip(args: &SentArgs, file: &Path, layers: &[Layer]) -> Result<Recording> {
    let ffmpeg = ffmpeg::find(args.ffmpeg.as_deref())?;
    let wanted = Wanted {
        crop: None,
        height: FULL_LINES,
        seconds: Some(args.clip_seconds),
        fps: Fps::Auto,
        // The quarter layer's sides must be even.
        scale: "4".parse::<Scale>()?,
    };
    let clip = clip::read(&ffmpeg.reader, file, &wanted)?;
    let shrunk = |picture: Picture, by: usize| {
        let [y, u, v] = picture.planes().map(|plane| box_down(plane, by));
        Picture { y, u, v }
    };
    let shrunk = |picture: Picture, by| if by == 1 { picture } else { shrunk(picture, by) };
    code(clip.frames.frames()?, layers, clip.fps, &Coding::of(args)?, shrunk)
        .with_context(|| format!("coding {}", file.display()))
}

/// Encodes pictures: `at_size` makes one for each layer, with sides divided by its second argument.
fn code<T: Clone>(
    pictures: impl Iterator<Item = Result<T>>,
    layers: &[Layer],
    fps: f64,
    coding: &Coding,
    at_size: impl Fn(T, usize) -> Picture,
) -> Result<Recording> {
    let mut coded: Vec<(Layer, Option<LayerEncoder>)> =
        layers.iter().map(|&layer| (layer, None)).collect();
    for picture in pictures {
        interrupt::check()?;
        let picture = picture?;
        for (layer, encoder) in &mut coded {
            let picture = at_size(picture.clone(), shrink(*layer));
            let encoder = match encoder {
                Some(encoder) => encoder,
                none => none.insert(coding.encoder(*layer, &picture, fps)?),
            };
            encoder.push(&picture)?;
        }
    }
    let finished = coded
        .into_iter()
        .map(|(layer, encoder)| Ok((layer, encoder.map_or(Ok(Vec::new()), LayerEncoder::finish)?)));
    Recording::new(coding.codec(), fps, finished.collect::<Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(seconds: f64, key_every: f64) -> Recording {
        let frames = frames_of(seconds, SCENE_FPS);
        let pictures = (0..frames).map(|n| Ok(n as f64 / frames as f64));
        let draw = |at: f64, by: usize| scene::draw(640 / by, 360 / by, at);
        let coding = Coding { key_every_s: key_every, by: None };
        code(pictures, &[Layer::Q, Layer::H], SCENE_FPS, &coding, draw).unwrap()
    }

    #[test]
    fn the_scene_has_its_layers_and_key_frames_as_often_as_asked() {
        let recording = small(1.0, 0.5);
        assert_eq!(recording.layers().collect::<Vec<_>>(), [Layer::Q, Layer::H]);
        assert_eq!(recording.len(), 30);
        assert!((recording.key_every_s() - 0.5).abs() < 1e-9, "{}", recording.key_every_s());
        assert!(recording.kbps(Layer::H) > recording.kbps(Layer::Q));
    }

    #[test]
    fn files_are_read_and_a_layer_without_one_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let recording = small(0.2, 1.0);
        let chunks: Vec<Vec<u8>> =
            (0..6).map(|n| recording.frames(n).next().unwrap().1.data.to_vec()).collect();
        std::fs::write(folder.path().join("h.ivf"), ivf::write(&chunks, (160, 90), 25)).unwrap();
        let read_back = read(folder.path(), &[Layer::Q, Layer::H]).unwrap();
        assert_eq!((read_back.len(), read_back.fps), (6, 25.0));
        assert_eq!(read_back.layers().collect::<Vec<_>>(), [Layer::H]);
        let error = read(folder.path(), &[Layer::F]).unwrap_err().to_string();
        assert!(error.contains("none of the layers"), "{error}");
        let error = read(Path::new("/no/such"), &[Layer::Q]).unwrap_err().to_string();
        assert!(error.contains("--media"), "{error}");
    }
}
