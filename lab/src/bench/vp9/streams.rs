//! The streams to decode: IVF files, or made here from a clip as Chromium encodes a camera.
//!
//! libvpx in real time at speed 7: constant bitrate, no look-ahead, one tile column. Every picture
//! of the clip is one frame of a stream of 30 per second; a clip that is too short begins again.
//! Made streams are kept, for encoding takes longer than measuring.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use windlass_files::ivf;
use windlass_hybrid::resample::box_down;
use windlass_vp9::Picture;

use super::args::{Preset, Vp9Args};
use crate::bench::mirror;
use crate::eval::ffmpeg;
use crate::eval::frames::Size;
use crate::interrupt;
use windlass_vpx::{Encoder, EncoderConfig};

/// Frames per second of made streams.
const FPS: u32 = 30;
/// The speed of libvpx (`cpu-used`).
const SPEED: u8 = 7;
/// The clip that streams are made from.
const CLIP: &str = "LivePortrait__s18.mp4";

/// A stream in memory.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    /// The stream's name in reports.
    pub name: String,
    /// The stream's file.
    pub path: PathBuf,
    /// Bitrate of the stream, in kbit/s.
    pub kbps: f64,
    /// The chunks: frames or superframes.
    pub chunks: Vec<Vec<u8>>,
}

/// The streams that the arguments ask for, one at a time.
pub(crate) fn collect(args: &Vp9Args) -> Result<Box<dyn Iterator<Item = Result<Stream>> + '_>> {
    if !args.files.is_empty() {
        return Ok(Box::new(args.files.iter().map(|path| {
            let name = path.file_stem().unwrap_or(path.as_os_str());
            read(path, &name.to_string_lossy())
        })));
    }
    let source = Source::new(args)?;
    Ok(Box::new(args.streams.iter().map(move |&preset| source.stream(preset))))
}

/// Reads an IVF file.
fn read(path: &Path, name: &str) -> Result<Stream> {
    let named = || format!("reading {}", path.display());
    let bytes = std::fs::read(path).with_context(named)?;
    let ivf = ivf::read(&bytes).with_context(named)?;
    let bytes = ivf.frames.iter().map(|frame| frame.len()).sum();
    let kbps = windlass_vpx::kbps(bytes, ivf.frames.len(), ivf.fps);
    let chunks = ivf.frames.into_iter().map(<[u8]>::to_vec).collect();
    Ok(Stream { name: name.to_owned(), path: path.to_owned(), kbps, chunks })
}

/// The clip and the settings that streams are made from.
struct Source<'a> {
    clip: PathBuf,
    folder: PathBuf,
    args: &'a Vp9Args,
}

impl Source<'_> {
    fn new(args: &Vp9Args) -> Result<Source<'_>> {
        let clip = args.clip.clone().unwrap_or_else(|| windlass_files::clip(CLIP));
        ensure!(
            clip.is_file(),
            "{} is not there to make streams from: name a video with --clip, or give IVF files of VP9",
            clip.display()
        );
        let folder = args.keep.clone();
        let folder = folder.unwrap_or_else(|| std::env::temp_dir().join("windlass-bench"));
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(Source { clip, folder, args })
    }

    /// The stream as it was kept, else a new one.
    fn stream(&self, preset: Preset) -> Result<Stream> {
        let (width, height, kbps) = preset.shape();
        let name = preset.name();
        let path = self.folder.join(self.file_name(&name)?);
        if !path.is_file() {
            eprintln!("{name}: encoding {} s of {}", self.args.seconds, self.clip.display());
            let size = Size { width, height };
            let chunks =
                self.encode(preset, size, kbps).with_context(|| format!("making {name}"))?;
            // Another run must never find half a file.
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            std::io::Write::write_all(&mut file, &ivf::write(&chunks, (width, height), FPS))?;
            file.persist(&path).with_context(|| format!("keeping {}", path.display()))?;
        }
        read(&path, &name)
    }

    /// Names everything that the stream depends on.
    fn file_name(&self, name: &str) -> Result<String> {
        let bytes = std::fs::metadata(&self.clip)?.len();
        let clip = self.clip.file_stem().unwrap_or_default().to_string_lossy();
        let crop = self.args.crop.map_or_else(String::new, |crop| {
            format!("-{}x{}+{}+{}", crop.width, crop.height, crop.x, crop.y)
        });
        Ok(format!("{clip}-{bytes}{crop}-{name}-{}s-speed{SPEED}.ivf", self.args.seconds))
    }

    fn encode(&self, preset: Preset, size: Size, kbps: u32) -> Result<Vec<Vec<u8>>> {
        let mirrored = preset.mirrored();
        let read = mirrored.map_or(size, |((width, height), _)| Size { width, height });
        let reader = ffmpeg::find(self.args.ffmpeg.as_deref())?.reader;
        let crop = self.args.crop.map_or_else(String::new, |crop| {
            format!("crop={}:{}:{}:{}:exact=1,", crop.width, crop.height, crop.x, crop.y)
        });
        let frames = self.args.seconds * FPS;
        let mut child = interrupt::shield(&mut Command::new(&reader))
            .args(["-hide_banner", "-nostdin", "-loglevel", "error", "-stream_loop", "-1"])
            .args(["-r", &FPS.to_string(), "-i"])
            .arg(&self.clip)
            .args(["-map", "0:v:0", "-frames:v", &frames.to_string(), "-vf"])
            .arg(format!("{crop}scale={}:{}:flags=lanczos+accurate_rnd", read.width, read.height))
            .args(["-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-f", "rawvideo", "-"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", reader.display()))?;
        let mut pipe = child.stdout.take().context("ffmpeg started without its pipe")?;
        let mut encoder = Encoder::new(EncoderConfig {
            width: size.width,
            height: size.height,
            fps: f64::from(FPS),
            kbps,
            screen: false,
            cpu_used: Some(SPEED),
        })?;
        let mut bytes = vec![0; read.bytes()];
        let mut chunks = Vec::with_capacity(frames as usize);
        while chunks.len() < frames as usize && pipe.read_exact(&mut bytes).is_ok() {
            let picture = Picture::from_i420(read.width, read.height, &bytes);
            let mut picture = picture.context("ffmpeg's video is damaged")?;
            if let Some((_, factor)) = mirrored {
                picture = mirror::picture(&picture, factor * size.width, factor * size.height);
                if factor > 1 {
                    let [y, u, v] = picture.planes().map(|plane| box_down(plane, factor));
                    picture = Picture { y, u, v };
                }
            }
            chunks.push(encoder.encode(&picture)?);
        }
        drop(pipe);
        let status = child.wait().context("waiting for ffmpeg")?;
        if !status.success() || chunks.len() < frames as usize {
            bail!("ffmpeg gave {} of {frames} pictures of {}", chunks.len(), self.clip.display());
        }
        Ok(chunks)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A stream of moving stripes, 96x64.
    pub(crate) fn drawn(frames: usize) -> Stream {
        let (width, height) = (96, 64);
        let config = EncoderConfig {
            width,
            height,
            fps: 30.0,
            kbps: 200,
            screen: false,
            cpu_used: Some(SPEED),
        };
        let mut encoder = Encoder::new(config).unwrap();
        let chunks = (0..frames).map(|n| {
            let mut picture = Picture::grey(width, height);
            for (i, v) in picture.y.samples_mut().iter_mut().enumerate() {
                *v = (((i % width) * 3 + (i / width) * 5 + n * 7) % 200 + 20) as u8;
            }
            encoder.encode(&picture).unwrap()
        });
        Stream { name: "drawn".into(), path: PathBuf::new(), kbps: 200.0, chunks: chunks.collect() }
    }

    #[test]
    fn a_file_is_named_by_its_stem_and_has_a_bit_rate() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ivf");
        std::fs::write(&path, ivf::write(&vec![vec![0; 1250]; 4], (8, 8), 30)).unwrap();
        let stream = read(&path, "a").unwrap();
        assert!((stream.kbps - 300.0).abs() < 1e-9);
        assert_eq!(stream.chunks.len(), 4);
        let error = format!("{:#}", read(Path::new("/no/such.ivf"), "x").unwrap_err());
        assert!(error.contains("/no/such.ivf"), "{error}");
    }
}
