//! Enhanced files against the files they are made of, and against the original.

use std::process::Command;
use std::time::SystemTime;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use windlass_hybrid::anchor::codec::Htj2k;
use windlass_hybrid::anchor::prior::Prior;
use windlass_hybrid::{HybridConfig, HybridDecoder};
use windlass_sr::{CpuEngine, Engine, Residual, embedded_model, infer_tiles, infer_tiles_fused};
use windlass_types::message::{AnchorHeader, HTJ2K};
use windlass_types::tiles::TileMap;
use windlass_types::{AnchorSource, Size};
use windlass_vp9::simd::Isa;
use windlass_vp9::{Picture, Plane, Samples, psnr};
use windlass_vpx::{Encoder, EncoderConfig};

use super::*;
use crate::anchors::framed;
use crate::read_webm::Block;

const LOW: Size = Size::new(320, 180);
const HIGH: Size = Size::new(640, 360);
/// A silent packet of 20 ms.
const SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];
/// Frames from one anchor to the next.
const EVERY: usize = 30;

/// Time of a frame of a camera that is not quite regular.
fn time(n: usize) -> Duration {
    Duration::from_millis(n as u64 * 33 + n as u64 % 3)
}

/// Encodes pictures as a browser does.
fn encoder(size: Size, kbps: u32) -> Encoder {
    Encoder::new(EncoderConfig {
        width: size.width.into(),
        height: size.height.into(),
        fps: 30.0,
        kbps,
        screen: false,
        cpu_used: None,
    })
    .expect("it starts")
}

fn anchor_bytes(number: u32, payload: &[u8]) -> Vec<u8> {
    let header = AnchorHeader {
        beyond_prior: true,
        ..AnchorHeader::new(HTJ2K, AnchorSource::Enhanced, number, HIGH)
    };
    framed(&header, payload).expect("it has a size")
}

/// Makes anchors as the server does by its defaults.
struct AnchorMaker {
    engine: CpuEngine,
    seen: HybridDecoder,
}

impl AnchorMaker {
    fn new() -> AnchorMaker {
        let engine = CpuEngine::new(embedded_model().expect("it is built in"));
        let seen = HybridDecoder::new(HybridConfig { scale: 2, ..HybridConfig::default() });
        AnchorMaker { engine, seen }
    }

    /// The anchor of a frame as a recording has it, if the frame is to have one.
    fn make(&mut self, n: usize, frame: &[u8]) -> Option<Vec<u8>> {
        self.seen.push_frame(n as u32, frame).expect("our own");
        if !n.is_multiple_of(EVERY) {
            return None;
        }
        let low = Samples::from(&self.seen.lr()?.planes()[0]);
        let tiles = TileMap::full(Size::saturating(low.width, low.height));
        let mut residual = Residual::default();
        let seen = Samples::from(&self.seen.hr()?.y);
        let made = if self.engine.architecture().has_twin() {
            infer_tiles_fused(&mut self.engine, low, seen, &tiles, &mut residual)
        } else {
            infer_tiles(&mut self.engine, low, &tiles, &mut residual)
        };
        let mut detail = made.expect("the network runs").0;
        Prior::new(Isa::detect(), 2).take_out(low, &mut detail);
        Some(anchor_bytes(n as u32, &Htj2k::encode(&detail, 85).expect("it can be coded")))
    }
}

/// A recording of `frames`, with sound; `None` of a frame that was lost.
fn record(folder: &Path, frames: &[Option<Vec<u8>>], anchors: &[u8]) {
    let shape = Shape { video: Some(LOW), audio: true };
    let (mut webm, mut bytes) = Webm::new(shape, VideoCodec::Vp9, SystemTime::now());
    let mut sound = 0;
    for (n, frame) in frames.iter().enumerate() {
        while sound * 20 < time(n).as_millis() as u64 {
            let at = Duration::from_millis(sound * 20);
            bytes.extend(webm.push(Slot::Audio, at, true, &SILENCE).unwrap_or_default());
            sound += 1;
        }
        let Some(frame) = frame else { continue };
        let key = key_frame_size(frame).is_some();
        bytes.extend(webm.push(Slot::Video, time(n), key, frame).unwrap_or_default());
    }
    let finish = webm.finish();
    bytes.extend_from_slice(&finish.tail);
    for patch in finish.patches {
        bytes[patch.at as usize..][..patch.bytes.len()].copy_from_slice(&patch.bytes);
    }
    std::fs::write(folder.join("p7-1.webm"), bytes).unwrap();
    std::fs::write(folder.join("p7-1.anchors"), anchors).unwrap();
}

fn blocks(path: &Path) -> Vec<Block> {
    let mut reader = Reader::new(File::open(path).unwrap()).unwrap();
    std::iter::from_fn(|| reader.next().unwrap()).collect()
}

fn times(blocks: &[Block], slot: Slot) -> Vec<Duration> {
    blocks.iter().filter(|block| block.slot == slot).map(|block| block.at).collect()
}

/// A gradient that drifts.
fn scene(size: Size, n: usize) -> Picture {
    let (width, height) = (usize::from(size.width), usize::from(size.height));
    let mut picture = Picture::grey(width, height);
    for (i, v) in picture.y.samples_mut().iter_mut().enumerate() {
        *v = ((i % width) * 160 / width + (i / width) * 60 / height + n % 16) as u8;
    }
    picture
}

#[test]
fn pictures_and_sound_have_the_times_that_they_had_also_after_a_loss_and_in_another_layer() {
    let folder = tempfile::tempdir().unwrap();
    let (mut low, mut high) = (encoder(LOW, 200), encoder(HIGH, 500));
    let mut frames: Vec<_> = (0..40).map(|n| Some(low.encode(&scene(LOW, n)).unwrap())).collect();
    let mut maker = AnchorMaker::new();
    let first = frames[0].as_deref().unwrap_or_default();
    let anchors = maker.make(0, first).expect("the first frame has one");
    // Frames are lost up to the key frame of a larger layer.
    frames[20..30].fill(None);
    frames.extend((40..60).map(|n| Some(high.encode(&scene(HIGH, n)).unwrap())));
    frames[30..40].iter_mut().for_each(|frame| *frame = None);
    // A damaged one, and those that need it.
    frames[18] = Some(vec![0x86, 1, 2, 3]);
    record(folder.path(), &frames, &anchors);
    let made = make_enhanced_file(folder.path(), "p7-1.webm", &|| false).unwrap();
    assert_eq!((made.state, made.width, made.height), (EnhancedState::Made, Some(640), Some(360)));
    assert_eq!((made.frames, made.anchors), (38, 1));
    let enhanced = folder.path().join(made.file.unwrap());
    assert_eq!(std::fs::metadata(&enhanced).unwrap().len(), made.bytes);
    let (before, after) = (blocks(&folder.path().join("p7-1.webm")), blocks(&enhanced));
    assert_eq!(times(&after, Slot::Audio), times(&before, Slot::Audio));
    let mut expected = times(&before, Slot::Video);
    expected.drain(18..20);
    assert_eq!(times(&after, Slot::Video), expected);
    assert!(after.windows(2).all(|pair| pair[0].at <= pair[1].at));
}

#[test]
fn without_anchors_there_is_nothing_to_enhance() {
    let folder = tempfile::tempdir().unwrap();
    let mut low = encoder(LOW, 200);
    record(folder.path(), &[Some(low.encode(&scene(LOW, 0)).unwrap())], &[]);
    let none = make_enhanced_file(folder.path(), "p7-1.webm", &|| false).unwrap();
    assert_eq!(none.state, EnhancedState::NoAnchors);
    std::fs::remove_file(folder.path().join("p7-1.anchors")).unwrap();
    assert_eq!(make_enhanced_file(folder.path(), "p7-1.webm", &|| false).unwrap(), none);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn damaged_files_are_refused_and_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut low = encoder(LOW, 200);
    let frames: Vec<_> = (0..6).map(|n| Some(low.encode(&scene(LOW, n)).unwrap())).collect();
    // An anchor whose payload is noise, and one of a frame that there is not.
    let noise = [anchor_bytes(0, &[0x5a; 999]), anchor_bytes(4_000_000_000, &[1; 9])].concat();
    record(folder.path(), &frames, &noise);
    let made = make_enhanced_file(folder.path(), "p7-1.webm", &|| false).unwrap();
    assert_eq!((made.state, made.frames, made.anchors), (EnhancedState::Made, 6, 0));
    let path = folder.path().join("p7-1.webm");
    std::fs::write(&path, [7; 5000]).unwrap();
    let error = make_enhanced_file(folder.path(), "p7-1.webm", &|| false).unwrap_err();
    assert!(!error.may_pass() && error.to_string().contains("damaged"), "{error}");
    let stopped = make_enhanced_file(folder.path(), "p7-1.webm", &|| true);
    assert!(stopped.is_err() && !part_of(&folder.path().join("p7-1.enhanced.webm")).exists());
}

/// Frames of a clip at the larger size; `None`, said, where it cannot be read.
fn clip(frames: usize) -> Option<Vec<Picture>> {
    let file = windlass_files::clip("LivePortrait__s18.mp4");
    let filter = format!("scale={}:{}:flags=area", HIGH.width, HIGH.height);
    let mut ffmpeg = Command::new("ffmpeg");
    let out = ffmpeg.args(["-v", "error", "-i"]).arg(&file);
    let out = out.args(["-vf", &filter, "-frames:v", &frames.to_string()]);
    let data = out.args(["-pix_fmt", "yuv420p", "-f", "rawvideo", "-"]).output();
    let bytes = HIGH.pixels() as usize * 3 / 2;
    let data = data.ok().filter(|out| out.stdout.len() == bytes * frames).map(|out| out.stdout);
    if data.is_none() {
        windlass_skips::skip(format!("{} cannot be read; set WINDLASS_CLIPS", file.display()));
    }
    Some(pictures(&data?, HIGH))
}

fn pictures(data: &[u8], size: Size) -> Vec<Picture> {
    let bytes = size.pixels() as usize * 3 / 2;
    let picture = |data| Picture::from_i420(size.width.into(), size.height.into(), data);
    data.chunks_exact(bytes).filter_map(picture).collect()
}

/// Pictures of a file as another program decodes them.
fn decoded(path: &Path, size: Size) -> Vec<Picture> {
    let mut ffmpeg = Command::new("ffmpeg");
    let out = ffmpeg.args(["-v", "error", "-i"]).arg(path).args(["-fps_mode", "passthrough"]);
    let out = out.args(["-pix_fmt", "yuv420p", "-f", "rawvideo", "-"]).output().unwrap();
    assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    pictures(&out.stdout, size)
}

fn resized(plane: &Plane, size: Size, filter: FilterType) -> Plane {
    let (width, height) = (u32::from(size.width), u32::from(size.height));
    let (w, h) = (plane.width() as u32, plane.height() as u32);
    let from = ImageRef::new(w, h, plane.samples(), PixelType::U8).unwrap();
    let mut to = Image::new(width, height, PixelType::U8);
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter));
    Resizer::new().resize(&from, &mut to, &options).unwrap();
    Plane::from_samples(width as usize, height as usize, to.into_vec()).unwrap()
}

fn smaller(picture: &Picture) -> Picture {
    let chroma = Size::new(LOW.width / 2, LOW.height / 2);
    Picture {
        y: resized(&picture.y, LOW, FilterType::Box),
        u: resized(&picture.u, chroma, FilterType::Box),
        v: resized(&picture.v, chroma, FilterType::Box),
    }
}

#[test]
fn the_enhanced_picture_of_a_real_clip_is_nearer_to_the_original_than_the_layer_enlarged() {
    const FRAMES: usize = 60;
    let Some(originals) = clip(FRAMES) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (mut low, mut maker) = (encoder(LOW, 250), AnchorMaker::new());
    let frames: Vec<_> =
        originals.iter().map(|high| low.encode(&smaller(high)).expect("it can be coded")).collect();
    let anchors: Vec<_> =
        frames.iter().enumerate().filter_map(|(n, frame)| maker.make(n, frame)).flatten().collect();
    record(folder.path(), &frames.into_iter().map(Some).collect::<Vec<_>>(), &anchors);
    let made = make_enhanced_file(folder.path(), "p7-1.webm", &|| false).unwrap();
    assert_eq!((made.frames, made.anchors), (FRAMES as u64, FRAMES.div_ceil(EVERY) as u64));
    let enhanced = decoded(&folder.path().join(made.file.unwrap()), HIGH);
    let plain = decoded(&folder.path().join("p7-1.webm"), LOW);
    assert_eq!((enhanced.len(), plain.len()), (FRAMES, FRAMES));
    let mean = |of: &dyn Fn(usize) -> f64| (0..FRAMES).map(of).sum::<f64>() / FRAMES as f64;
    let bicubic =
        mean(&|n| psnr(&resized(&plain[n].y, HIGH, FilterType::CatmullRom), &originals[n].y));
    let gained = mean(&|n| psnr(&enhanced[n].y, &originals[n].y));
    let before = std::fs::metadata(folder.path().join("p7-1.webm")).unwrap().len();
    let bytes = made.bytes;
    println!("bicubic {bicubic:.2} dB, enhanced {gained:.2} dB, {before} and {bytes} bytes");
    assert!(gained > bicubic + 0.3, "{gained:.2} against {bicubic:.2}");
}
