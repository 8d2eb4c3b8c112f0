//! What a subscriber's decoder shows, beside the low picture it shows it for: the training pairs of fused models.
//!
//! `cargo run --release -p windlass-lab --example twin_pictures -- size=640x360 kbps=300 < HR.i420 >
//! PAIRS` codes the box-scaled frames as a browser does, plays them through `HybridDecoder`, and writes the low luma
//! and the high luma of each sampled frame. `models/pairs.py` calls it. Further settings, with their defaults:
//!
//! - `fps=30 scale=2 screen=0`: of the call.
//! - `first=0 every=10`: which frames are written, or `at=N,N,…`: these.
//! - `flow=0`: with 1 also how their cells follow from the written frames before, as [`flow`] says.
//! - `before=0`: with 1 the high picture is that without the frame's own anchor, as the network sees it.
//! - `keys=0`: a key frame every so many frames.
//! - `detail=KBPS@FPS`: stills of the publisher's own, of the whole frame.
//! - `enhanced=N`: an enhanced anchor every N frames, `model=FILE`: by this network instead of the built-in one.
//! - `apart=0`: with 1 the network sees the picture of a decoder that has had the captured detail alone.
//! - `own=0`: a quality. The network sees a decoder that has had its anchors encoded with this one, at once; the other
//!   decoder has them as the enhancer encodes them.
//! - `late=4`: frames from an anchor's frame to its arrival.

mod flow;

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufWriter, Read, Write};
use std::sync::Arc;

use windlass_enhancer::EnhancerConfig;
use windlass_hybrid::anchor::codec::{Htj2k, detail_of};
use windlass_hybrid::anchor::prior::Prior;
use windlass_hybrid::resample::box_down;
use windlass_hybrid::{HybridConfig, HybridDecoder};
use windlass_sr::{CpuEngine, Engine, InferError, Luma, Model, Residual, embedded_model};
use windlass_types::AnchorSource;
use windlass_types::Size;
use windlass_types::message::HTJ2K;
use windlass_types::message::encode_chunks;
use windlass_types::message::{AnchorHeader, ReassembledAnchor, Reassembler};
use windlass_vp9::simd::Isa;
use windlass_vp9::{FrameBuffer, Picture, Plane};
use windlass_vpx::{Encoder, EncoderConfig, FrameUse};

use flow::Flow;

type Failure = Box<dyn Error>;
/// An anchor, and its counterpart for the decoder that the network sees if that decoder gets one of its own.
type Made = Result<Option<(ReassembledAnchor, Option<ReassembledAnchor>)>, Failure>;

/// Maximum payload bytes of an anchor's message.
const CHUNK: usize = 1100;
/// RTP ticks of a frame; the rate of the clip does not matter to the decoder.
const TICKS: u32 = 3000;

fn main() -> Result<(), Failure> {
    let settings = Settings::parse(std::env::args().skip(1))?;
    let (width, height) = settings.size;
    let (mut input, mut output) =
        (std::io::stdin().lock(), BufWriter::new(std::io::stdout().lock()));
    let mut low = Encoder::new(EncoderConfig {
        width: width / settings.scale,
        height: height / settings.scale,
        fps: settings.fps,
        kbps: settings.kbps,
        screen: settings.screen,
        cpu_used: None,
    })?;
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    if let Some(detail) = settings.detail {
        sources.push(Box::new(Captured::new(&settings, detail)));
    }
    if let Some(every) = settings.enhanced {
        sources.push(Box::new(Enhanced::new(&settings, every)?));
    }
    let mut decoder =
        HybridDecoder::new(HybridConfig { scale: settings.scale, ..HybridConfig::default() });
    let mut apart = (settings.apart || settings.own.is_some()).then(|| {
        HybridDecoder::new(HybridConfig { scale: settings.scale, ..HybridConfig::default() })
    });
    let mut flow =
        settings.flow.then(|| Flow::new(width / settings.scale, height / settings.scale));
    let mut coming: Vec<(usize, ReassembledAnchor)> = Vec::new();
    let mut bytes = vec![0; width * height * 3 / 2];
    for n in 0usize.. {
        if input.read_exact(&mut bytes).is_err() {
            break;
        }
        let high = Picture::from_i420(width, height, &bytes).ok_or("a size that no picture has")?;
        let [y, u, v] = high.planes().map(|plane| box_down(plane, settings.scale));
        let small = Picture { y, u, v };
        let key = settings.keys > 0 && n.is_multiple_of(settings.keys);
        let data = if key { low.encode_as(&small, FrameUse::Key)? } else { low.encode(&small)? };
        decoder.push_frame(n as u32 * TICKS, &data)?;
        if let Some(apart) = &mut apart {
            apart.push_frame(n as u32 * TICKS, &data)?;
        }
        if let Some(flow) = &mut flow {
            flow.push(&data)?;
        }
        let shown = decoder.lr().map(FrameBuffer::to_picture).ok_or("a frame shows nothing")?;
        let seen = apart.as_ref().unwrap_or(&decoder).hr();
        let seen = seen.ok_or("a frame shows no high picture")?.clone();
        for source in &mut sources {
            let Some((anchor, own)) = source.anchor(n, &high, &shown.y, &seen.y)? else { continue };
            coming.push((n + settings.late, anchor));
            if let (Some(apart), Some(own)) = (&mut apart, own) {
                apart.push_anchor(&own);
            }
        }
        for (_, anchor) in coming.extract_if(.., |(at, _)| *at <= n) {
            decoder.push_anchor(&anchor);
            if let Some(apart) = &mut apart
                && anchor.header.source == AnchorSource::Captured
            {
                apart.push_anchor(&anchor);
            }
        }
        decoder.refresh();
        if let Some(apart) = &mut apart {
            apart.refresh();
        }
        if settings.writes(n) {
            let high = if settings.before { Some(&seen) } else { decoder.hr() };
            output.write_all(shown.y.samples())?;
            output.write_all(high.ok_or("a frame shows no high picture")?.y.samples())?;
            if let Some(flow) = &mut flow {
                flow.write(&mut output)?;
            }
        }
    }
    Ok(output.flush()?)
}

/// Settings from the command line.
struct Settings {
    size: (usize, usize),
    fps: f64,
    scale: usize,
    kbps: u32,
    screen: bool,
    first: usize,
    every: usize,
    at: Option<Vec<usize>>,
    flow: bool,
    before: bool,
    keys: usize,
    detail: Option<Stills>,
    enhanced: Option<usize>,
    model: Option<String>,
    apart: bool,
    own: Option<u8>,
    late: usize,
}

impl Settings {
    fn parse(words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let given: HashMap<String, String> = words
            .map(|word| word.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())))
            .collect::<Option<_>>()
            .ok_or("settings are KEY=VALUE")?;
        let of = |key: &str, default: &'static str| -> Result<f64, Failure> {
            Ok(given.get(key).map_or(default, String::as_str).parse()?)
        };
        let size =
            given.get("size").and_then(|s| s.split_once('x')).ok_or("size=WxH is missing")?;
        let detail = given.get("detail").map(|d| d.split_once('@').ok_or("detail=KBPS@FPS"));
        let detail = match detail.transpose()? {
            Some((kbps, fps)) => Some(Stills { kbps: kbps.parse()?, fps: fps.parse()? }),
            None => None,
        };
        let at = given.get("at").map(|at| at.split(',').map(str::parse).collect()).transpose()?;
        let enhanced = of("enhanced", "0")? as usize;
        Ok(Settings {
            size: (size.0.parse()?, size.1.parse()?),
            fps: of("fps", "30")?,
            scale: of("scale", "2")? as usize,
            kbps: of("kbps", "300")? as u32,
            screen: of("screen", "0")? != 0.0,
            first: of("first", "0")? as usize,
            every: (of("every", "10")? as usize).max(1),
            at,
            flow: of("flow", "0")? != 0.0,
            before: of("before", "0")? != 0.0,
            keys: of("keys", "0")? as usize,
            detail,
            enhanced: (enhanced > 0).then_some(enhanced),
            model: given.get("model").cloned(),
            apart: of("apart", "0")? != 0.0,
            own: Some(of("own", "0")? as u8).filter(|&quality| quality > 0),
            late: of("late", "4")? as usize,
        })
    }

    /// Whether frame `n` is written.
    fn writes(&self, n: usize) -> bool {
        match &self.at {
            Some(at) => at.contains(&n),
            None => n >= self.first && (n - self.first).is_multiple_of(self.every),
        }
    }

    /// The anchor that comes out of a payload's messages.
    fn sent(
        &self,
        n: usize,
        codec: u8,
        source: AnchorSource,
        payload: &[u8],
    ) -> Result<Option<ReassembledAnchor>, Failure> {
        let header = AnchorHeader {
            codec,
            source,
            tiled: false,
            beyond_prior: true,
            part: 0,
            stream: 1,
            epoch: 0,
            chunk_index: 0,
            chunk_count: 0,
            age_ms: 0,
            rtp_timestamp: n as u32 * TICKS,
            size: Size::new(self.size.0 as u16, self.size.1 as u16),
        };
        let (mut reassembler, mut whole) = (Reassembler::new(), None);
        for message in encode_chunks(&header, payload, CHUNK)? {
            whole = reassembler.push(&message)?.or(whole);
        }
        Ok(whole)
    }
}

/// A source of anchors.
trait Source {
    /// The anchor of frame `n`, where it gets one; `twin` is what the decoder shows without it.
    fn anchor(&mut self, n: usize, high: &Picture, low: &Plane, twin: &Plane) -> Made;
}

/// How often the publisher's own stills come, and how large they are.
#[derive(Clone, Copy)]
struct Stills {
    /// Rate of all stills together, in kbit/s.
    kbps: u32,
    /// Number of stills per second.
    fps: f64,
}

/// Anchors of the publisher's own stills.
struct Captured<'a> {
    settings: &'a Settings,
    prior: Prior,
    step: usize,
    bytes: usize,
}

impl<'a> Captured<'a> {
    fn new(settings: &'a Settings, Stills { kbps, fps }: Stills) -> Self {
        let step = ((settings.fps / fps).round() as usize).max(1);
        let bytes = (f64::from(kbps) * 125.0 / fps) as usize;
        Self { settings, prior: Prior::new(Isa::detect(), settings.scale), step, bytes }
    }
}

impl Source for Captured<'_> {
    fn anchor(&mut self, n: usize, high: &Picture, low: &Plane, _: &Plane) -> Made {
        if !n.is_multiple_of(self.step) {
            return Ok(None);
        }
        let mut detail = detail_of(&high.y, low, self.settings.scale)?;
        self.prior.take_out(low.into(), &mut detail);
        let payload = Htj2k::fill(&detail, None, self.bytes)?;
        let anchor = self.settings.sent(n, HTJ2K, AnchorSource::Captured, &payload)?;
        Ok(anchor.map(|anchor| (anchor, None)))
    }
}

/// Anchors made by a network, of whole frames, encoded as the enhancer does unless the settings say otherwise.
struct Enhanced<'a> {
    settings: &'a Settings,
    engine: CpuEngine,
    prior: Prior,
    every: usize,
}

impl<'a> Enhanced<'a> {
    fn new(settings: &'a Settings, every: usize) -> Result<Self, Failure> {
        let model = match &settings.model {
            Some(path) => Arc::new(Model::from_safetensors(&std::fs::read(path)?)?),
            None => embedded_model()?,
        };
        let engine = CpuEngine::new(model);
        Ok(Self { settings, engine, prior: Prior::new(Isa::detect(), settings.scale), every })
    }
}

impl Source for Enhanced<'_> {
    fn anchor(&mut self, n: usize, _: &Picture, low: &Plane, twin: &Plane) -> Made {
        if !n.is_multiple_of(self.every) {
            return Ok(None);
        }
        let config = EnhancerConfig::default();
        let mut made = Residual::default();
        if self.engine.architecture().has_twin() {
            self.engine.infer_fused(packed(low)?, packed(twin)?, &mut made)?;
        } else {
            self.engine.infer(packed(low)?, &mut made)?;
        }
        let mut detail = made.to_detail().ok_or("the model's scale is another")?;
        self.prior.take_out(low.into(), &mut detail);
        let sent = |quality| {
            let payload = Htj2k::encode(&detail, quality)?;
            self.settings.sent(n, HTJ2K, AnchorSource::Enhanced, &payload)
        };
        let own = self.settings.own.map(sent).transpose()?.flatten();
        Ok(sent(config.anchor_quality)?.map(|anchor| (anchor, own)))
    }
}

fn packed(plane: &Plane) -> Result<Luma<'_>, InferError> {
    Luma::packed(plane.samples(), plane.width(), plane.height())
}
