//! Reading a clip through ffmpeg into I420 pictures of the wanted size.
//!
//! Frames are paired by number, never by time: ffmpeg passes every frame on as it comes
//! (`-fps_mode passthrough`), and the frame rate is only what the simulated call assumes.
//! In: any file that ffmpeg reads. Out: a store of HR pictures, and frames per second.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

use windlass_vp9::Picture;

use super::frames::{FrameStore, FrameWriter, Size};
use super::messages::Messages;
use super::scale::Scale;
use crate::interrupt;

/// The part of a clip that is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The part of the picture; `None`: all of it.
    pub crop: Option<Crop>,
    /// Maximum number of lines of a picture.
    pub height: u32,
    /// Number of seconds from the start; `None`: all.
    pub seconds: Option<f64>,
    /// The frame rate to assume.
    pub fps: Fps,
    /// The factor by which the low layer will be scaled down.
    pub scale: Scale,
}

/// A rectangle of the source picture, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crop {
    /// Width, in pixels.
    pub width: u32,
    /// Height, in pixels.
    pub height: u32,
    /// Left edge, in pixels.
    pub x: u32,
    /// Top edge, in pixels.
    pub y: u32,
}

impl FromStr for Crop {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Crop> {
        let numbers: Vec<u32> =
            text.split(':').map(str::parse).collect::<Result<_, _>>().with_context(|| {
                format!("a crop is width:height:x:y in pixels, as 1080:608:0:100, not {text:?}")
            })?;
        let &[width, height, x, y] = numbers.as_slice() else {
            bail!("a crop has four numbers, width:height:x:y, not {}", numbers.len());
        };
        ensure!(
            width >= 64 && height >= 64,
            "a crop of {width}x{height} is too small: both sides must be at least 64"
        );
        Ok(Crop { width, height, x, y })
    }
}

/// Frame rate of the simulated call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fps {
    /// The clip's own frame rate.
    Auto,
    /// A frame rate in frames per second, whatever the clip says.
    Fixed(f64),
}

impl FromStr for Fps {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Fps> {
        if text == "auto" {
            return Ok(Fps::Auto);
        }
        let fps: f64 =
            text.parse().with_context(|| format!("--fps is `auto` or a number, not {text:?}"))?;
        ensure!((1.0..=120.0).contains(&fps), "--fps must be from 1 to 120, not {fps}");
        Ok(Fps::Fixed(fps))
    }
}

/// The original pictures of a clip.
#[derive(Debug)]
pub(crate) struct Clip {
    /// The pictures at HR size; both sides are multiples of twice the scale.
    pub frames: FrameStore,
    /// Frames per second.
    pub fps: f64,
}

/// Reads a clip. Errors say what is wrong with the file or the crop.
pub(crate) fn read(ffmpeg: &Path, path: &Path, wanted: &Wanted) -> Result<Clip> {
    ensure!(path.is_file(), "{} is not a file", path.display());
    let source = Y4m::open(ffmpeg, path, &["-frames:v", "1"])?;
    let (full, own_fps) = (source.size, source.fps);
    source.finish(path)?;
    let fps = match wanted.fps {
        Fps::Fixed(fps) => fps,
        Fps::Auto => {
            ensure!(
                (1.0..=120.0).contains(&own_fps),
                "{} has no constant frame rate (ffmpeg says {own_fps}); give one with --fps N",
                path.display()
            );
            own_fps
        }
    };
    let filter = filter(full, wanted)?;
    let frames = wanted.seconds.map_or(usize::MAX, |s| ((s * fps).round() as usize).max(1));
    let limit = frames.to_string();
    let mut options = vec!["-vf", filter.as_str()];
    if frames != usize::MAX {
        options.extend(["-frames:v", limit.as_str()]);
    }
    let mut stream = Y4m::open(ffmpeg, path, &options)?;
    let mut store = FrameWriter::new(stream.size)?;
    while let Some(frame) = stream.next_frame()? {
        store.push(&frame)?;
    }
    stream.finish(path)?;
    let frames = store.finish()?;
    ensure!(frames.len() >= 2, "{} has only {} frame(s) of video", path.display(), frames.len());
    Ok(Clip { frames, fps })
}

/// The filters that crop and scale down, to multiples of twice the scale: the low layer's chroma is that much
/// smaller.
fn filter(full: Size, wanted: &Wanted) -> Result<String> {
    let mut chain = String::new();
    let mut size = full;
    if let Some(Crop { width, height, x, y }) = wanted.crop {
        ensure!(
            (x + width) as usize <= full.width && (y + height) as usize <= full.height,
            "the crop {width}:{height}:{x}:{y} reaches outside the picture, which is {full}"
        );
        write!(chain, "crop={width}:{height}:{x}:{y}:exact=1,")?;
        size = Size { width: width as usize, height: height as usize };
    }
    let lines = size.height.min(wanted.height as usize);
    let multiple = wanted.scale.multiple();
    let height = lines / multiple * multiple;
    let exact = size.width as f64 * height as f64 / size.height as f64;
    let units = ((exact / multiple as f64).round() as usize).max(1);
    let width = units.min(size.width / multiple) * multiple;
    ensure!(
        width >= 64 && height >= 64,
        "{width}x{height} is too small: both sides must be at least 64"
    );
    write!(chain, "scale={width}:{height}:flags=lanczos+accurate_rnd")?;
    Ok(chain)
}

/// Raw video as ffmpeg writes it to a pipe: a header line, then frames.
struct Y4m {
    child: Child,
    pipe: BufReader<ChildStdout>,
    messages: Messages,
    size: Size,
    fps: f64,
}

impl Y4m {
    fn open(ffmpeg: &Path, path: &Path, options: &[&str]) -> Result<Y4m> {
        let mut child = interrupt::shield(&mut Command::new(ffmpeg))
            .args(["-hide_banner", "-nostdin", "-loglevel", "error", "-i"])
            .arg(path)
            .args(["-map", "0:v:0"])
            .args(options)
            .args(["-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-f", "yuv4mpegpipe", "-"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", ffmpeg.display()))?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            bail!("ffmpeg started without its pipes");
        };
        let messages = Messages::read(stderr);
        let mut pipe = BufReader::with_capacity(1 << 20, stdout);
        let mut header = String::new();
        let read = pipe.by_ref().take(1024).read_line(&mut header);
        let parsed = read.ok().and_then(|_| parse_header(&header));
        let Some((size, fps)) = parsed else {
            drop(pipe);
            child.wait().context("waiting for ffmpeg")?;
            bail!("ffmpeg cannot read video from {}: {}", path.display(), messages.last_line());
        };
        Ok(Y4m { child, pipe, messages, size, fps })
    }

    fn next_frame(&mut self) -> Result<Option<Picture>> {
        let mut line = Vec::new();
        self.pipe
            .by_ref()
            .take(256)
            .read_until(b'\n', &mut line)
            .context("reading video from ffmpeg")?;
        if line.is_empty() {
            return Ok(None);
        }
        ensure!(line.starts_with(b"FRAME"), "ffmpeg's video stream is damaged");
        let mut bytes = vec![0; self.size.bytes()];
        self.pipe.read_exact(&mut bytes).context("ffmpeg ended in the middle of a frame")?;
        Picture::from_i420(self.size.width, self.size.height, &bytes)
            .map(Some)
            .context("ffmpeg's video stream is damaged")
    }

    /// Waits for ffmpeg's end, and fails if ffmpeg does.
    fn finish(mut self, path: &Path) -> Result<()> {
        // The remaining bytes (the probe leaves a frame) must be read, or ffmpeg would call it an error.
        std::io::copy(&mut self.pipe, &mut std::io::sink()).context("reading video from ffmpeg")?;
        let status = self.child.wait().context("waiting for ffmpeg")?;
        ensure!(
            status.success(),
            "ffmpeg failed on {}: {}",
            path.display(),
            self.messages.last_line()
        );
        Ok(())
    }
}

/// Reads size and rate from `YUV4MPEG2 W640 H360 F30:1 …`.
fn parse_header(line: &str) -> Option<(Size, f64)> {
    let mut words = line.trim_end().split(' ');
    if words.next() != Some("YUV4MPEG2") {
        return None;
    }
    let (mut width, mut height, mut fps) = (None, None, 0.0);
    for word in words {
        let (Some(key), Some(value)) = (word.get(..1), word.get(1..)) else { continue };
        match key {
            "W" => width = value.parse().ok(),
            "H" => height = value.parse().ok(),
            "F" => {
                let (n, d) = value.split_once(':')?;
                fps = n.parse::<f64>().ok()? / d.parse::<f64>().ok().filter(|&d| d > 0.0)?;
            }
            _ => {}
        }
    }
    let size = Size { width: width?, height: height? };
    ((1..=16_384).contains(&size.width) && (1..=16_384).contains(&size.height))
        .then_some((size, fps))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(crop: Option<&str>, height: u32) -> Wanted {
        let crop = crop.map(|c| c.parse().unwrap());
        Wanted { crop, height, seconds: None, fps: Fps::Auto, scale: Scale::TWO }
    }

    #[test]
    fn a_crop_is_four_numbers() {
        assert_eq!(
            "720:405:0:300".parse::<Crop>().unwrap(),
            Crop { width: 720, height: 405, x: 0, y: 300 }
        );
        for wrong in ["", "720:405:0", "720:405:0:300:1", "a:b:c:d", "-1:405:0:0", "10:10:0:0"] {
            assert!(wrong.parse::<Crop>().is_err(), "{wrong:?}");
        }
    }

    const PORTRAIT: Size = Size { width: 1080, height: 1920 };

    #[test]
    fn a_crop_is_scaled_down_and_keeps_its_shape() {
        assert!(
            filter(PORTRAIT, &wanted(Some("1080:608:0:100"), 540))
                .unwrap()
                .contains("scale=960:540")
        );
        let d13 = Size { width: 720, height: 1280 };
        assert!(
            filter(d13, &wanted(Some("720:405:0:300"), 360)).unwrap().contains("scale=640:360")
        );
    }

    #[test]
    fn nothing_is_scaled_up() {
        let small = Size { width: 481, height: 361 };
        assert!(filter(small, &wanted(None, 720)).unwrap().contains("scale=480:360"));
    }

    #[test]
    fn sides_are_multiples_of_twice_the_scale() {
        let third = Wanted { scale: "3".parse().unwrap(), ..wanted(None, 540) };
        let filter = filter(Size { width: 1280, height: 720 }, &third).unwrap();
        assert!(filter.contains("scale=960:540"), "{filter}");
    }

    #[test]
    fn a_crop_outside_the_picture_is_named_with_the_pictures_size() {
        let error = filter(PORTRAIT, &wanted(Some("1080:608:1:100"), 540)).unwrap_err().to_string();
        assert!(error.contains("1080x1920"), "{error}");
    }

    #[test]
    fn the_header_gives_size_and_rate() {
        let (size, fps) =
            parse_header("YUV4MPEG2 W640 H360 F30000:1001 Ip A1:1 C420mpeg2\n").unwrap();
        assert_eq!(size, Size { width: 640, height: 360 });
        assert!((fps - 29.97).abs() < 0.01);
        for wrong in [
            "",
            "YUV4MPEG2",
            "YUV4MPEG2 W0 H360 F30:1",
            "RIFF W640 H360",
            "YUV4MPEG2 W640 H360 F30:0",
        ] {
            assert!(parse_header(wrong).is_none(), "{wrong:?}");
        }
    }
}
