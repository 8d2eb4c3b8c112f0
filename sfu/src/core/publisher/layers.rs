//! Which layers a publisher sends, their sizes and bitrates.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use str0m::rtp::ExtensionValues;
use windlass_types::{Bitrate, FrameLayers, Layer, Refusal, Size, VideoCodec};

use crate::core::codec;
use crate::core::codec::descriptor::{Descriptor, MAX_SPATIAL, SpatialLayers};
use crate::core::codec::templates::Templates;
use crate::core::subscriber::rewriter::PacketIn;

/// Maximum bitrates of the layers in our SDK (`client-web/src/sdk/uplink/layers.ts`), which are those that Chromium
/// gives them.
pub(crate) const SDK_MAX: [Bitrate; 3] =
    [Bitrate::bps(150_000), Bitrate::bps(500_000), Bitrate::bps(1_500_000)];
/// Time without packets after which a layer counts as not sent.
const SILENCE: Duration = Duration::from_secs(1);
/// Length of one bitrate measurement. The rate is the mean of the last one and the rate before it.
const WINDOW: Duration = Duration::from_millis(500);
/// Number of frames whose temporal layer is remembered: as many as subscribers remember ([`Rewriter`]).
///
/// [`Rewriter`]: crate::core::subscriber::rewriter::Rewriter
const MAX_FRAMES: usize = 128;
/// The quarter layer of a 720p camera, as most are.
const USUAL_QUARTER: Size = Size::new(320, 180);
/// Longest shorter side of a single encoding that counts as the quarter layer, in pixels. Usual: 180.
const MAX_QUARTER_LINES: u16 = 270;
/// Longest shorter side of a single encoding that counts as the half layer, in pixels. Usual: 360.
const MAX_HALF_LINES: u16 = 480;

/// A publisher's encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// A simulcast layer, by its `a=rid`.
    Layer(Layer),
    /// The only encoding. Browsers send no rid for a single encoding, even if it has one.
    Single,
    /// A simulcast layer with an unknown rid.
    Unknown,
}

#[derive(Debug, Default)]
struct Meter {
    last_packet: Option<Instant>,
    window_begin: Option<Instant>,
    window_bytes: u64,
    /// Bytes of the window up to each temporal layer but the highest.
    window_thinned: [u64; 2],
    /// The last frames by their timestamps, and their temporal layers.
    frames: VecDeque<(u32, u8)>,
    rate: Option<Bitrate>,
    thinned: ThinnedShares,
}

/// How an encoding is sent in spatial layers (SVC). Each is a layer here, beside those of simulcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spatial {
    /// The layer of the smallest one, under which all packets of the encoding come.
    base: Layer,
    /// Their number; 1: there are none.
    count: usize,
}

impl Default for Spatial {
    fn default() -> Spatial {
        Spatial { base: Layer::Q, count: 1 }
    }
}

impl Spatial {
    /// The layer under which the packets of a layer come, and the number of its spatial layer; `None`: all that come
    /// belong to it.
    pub(crate) fn encoding(self, layer: Layer) -> (Layer, Option<u8>) {
        if self.count == 1 {
            return (layer, None);
        }
        let above = (layer as usize).saturating_sub(self.base as usize);
        (self.base, (above + 1 < self.count).then_some(above as u8))
    }

    /// The number of spatial layers; 1: there are none.
    pub(crate) fn count(self) -> u8 {
        self.count as u8
    }

    /// The layer of an encoding up to a spatial layer.
    pub(crate) fn layer(self, encoding: Layer, max_spatial: u8) -> Layer {
        let above = usize::from(max_spatial).min(self.count - 1);
        Layer::ALL[(encoding as usize + above).min(Layer::F as usize)]
    }

    fn has(self, layer: Layer) -> bool {
        self.count > 1
            && (self.base as usize..self.base as usize + self.count).contains(&(layer as usize))
    }
}

/// Shares of a layer's bitrate up to its temporal layers 0 and 1; 1: all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ThinnedShares(pub [f32; 2]);

impl Default for ThinnedShares {
    fn default() -> ThinnedShares {
        ThinnedShares([1.0; 2])
    }
}

impl Meter {
    /// The temporal layer of a packet's frame: its first packet says it, as that decides for subscribers.
    fn temporal(&mut self, timestamp: u32, descriptor: Option<&Descriptor>) -> u8 {
        let known = self.frames.iter().rev().find(|(frame, _)| *frame == timestamp);
        if let Some((_, layer)) = known {
            return *layer;
        }
        let layer = descriptor.and_then(|descriptor| descriptor.temporal).unwrap_or(0);
        if self.frames.len() == MAX_FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back((timestamp, layer));
        layer
    }
}

/// The layers of one track.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    meters: [Meter; 3],
    /// Size of each layer, from its last key frame.
    sizes: [Option<Size>; 3],
    /// The layer as which a single encoding counts, by the size of its last key frame.
    single: Option<Layer>,
    /// Whether the publisher names its encodings. Their spatial layers, if they have any, are not told apart.
    simulcast: bool,
    spatial: Spatial,
    /// Templates of the encoding's Dependency Descriptor, and the packet that listed them.
    templates: Option<(u64, Templates)>,
    /// Codec of the last packet; `None` before the first.
    codec: Option<VideoCodec>,
    /// Why no anchors are made, whatever the codec.
    never: Option<Refusal>,
}

impl Layers {
    /// The layers of a track of which no packet has come. `never`: why no anchors are made, whatever the codec.
    pub(crate) fn new(never: Option<Refusal>) -> Layers {
        Layers { never, ..Layers::default() }
    }

    /// The layer of an encoding, and its former layer if that has changed. A single encoding counts by the size of its
    /// last key frame.
    pub(crate) fn layer_of(
        &mut self,
        encoding: Encoding,
        packet: &PacketIn,
        payload: &[u8],
    ) -> Option<(Layer, Option<Layer>)> {
        match encoding {
            Encoding::Layer(layer) => {
                self.simulcast = true;
                return Some((layer, None));
            }
            Encoding::Unknown => return None,
            Encoding::Single => {}
        }
        let former = self.single;
        if let Ok(descriptor) = codec::parse(packet.codec, packet.frame, payload)
            && descriptor.starts_key()
        {
            let size = codec::size(packet.codec, &descriptor, payload);
            let lines = size.map_or(u16::MAX, |size| size.width.min(size.height));
            let by_size = if lines <= MAX_QUARTER_LINES {
                Layer::Q
            } else if lines <= MAX_HALF_LINES {
                Layer::H
            } else {
                Layer::F
            };
            let count = descriptor.layers.map_or(1, |layers| layers.count);
            // The largest of three is the full layer, whatever its size.
            self.single = Some(by_size.min(Layer::ALL[MAX_SPATIAL - count]));
        }
        self.single.map(|layer| (layer, former.filter(|&former| former != layer)))
    }

    /// Whether the publisher sends a single encoding.
    pub(crate) fn is_single(&self) -> bool {
        self.single.is_some()
    }

    /// The layers of a packet's frame, by the publisher's Dependency Descriptor; `seq`: the packet's sequence number.
    /// Of simulcast the descriptor is not read.
    pub(crate) fn frame_layers(
        &mut self,
        encoding: Encoding,
        seq: u64,
        values: &ExtensionValues,
    ) -> Option<FrameLayers> {
        if encoding != Encoding::Single {
            return None;
        }
        // A packet that was sent again may have older templates.
        if let Some(listed) = Templates::of(values)
            && self.templates.as_ref().is_none_or(|(newest, _)| *newest < seq)
        {
            let former = self.templates.as_ref().map(|(_, former)| former);
            self.templates = Some((seq, listed.after(former)));
        }
        let (_, templates) = self.templates.as_ref()?;
        templates.layers(values)
    }

    /// The spatial layers of the encoding.
    pub(crate) fn spatial(&self) -> Spatial {
        self.spatial
    }

    /// Whether the encoding has several spatial layers.
    pub(crate) fn has_spatial(&self) -> bool {
        self.spatial.count > 1
    }

    /// Takes the size of a layer's key frame, if it could be read.
    pub(crate) fn on_key_frame(&mut self, layer: Layer, size: Option<Size>) {
        let known = &mut self.sizes[layer as usize];
        *known = size.or(*known);
    }

    /// Takes the spatial layers that a packet of a layer says: a key frame's, or such as came without one. `None`: a
    /// key frame has none.
    pub(crate) fn on_spatial(&mut self, layer: Layer, said: Option<SpatialLayers>) {
        let said = said.filter(|_| !self.simulcast);
        let count = said.map_or(1, |layers| layers.count.min(Layer::ALL.len() - layer as usize));
        let above = said.into_iter().flat_map(|layers| layers.sizes).take(count).skip(1);
        for (known, size) in self.sizes[layer as usize..].iter_mut().skip(1).zip(above) {
            *known = size.or(*known);
        }
        self.spatial = Spatial { base: layer, count };
    }

    /// Size of each layer; `None` before its first key frame.
    pub(crate) fn sizes(&self) -> [Option<Size>; 3] {
        self.sizes
    }

    /// Why no anchors are made, whatever the codec; `None` where they are.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.never
    }

    /// Codec of the last packet; `None` before the first.
    pub(crate) fn codec(&self) -> Option<VideoCodec> {
        self.codec
    }

    /// The largest layer that can be enhanced: at most the half layer, and with at most `max_pixels` where its size is
    /// known.
    pub(crate) fn max_enhanced(&self, max_pixels: u32) -> Option<Layer> {
        if self.never.is_some() {
            return None;
        }
        let too_large = self.sizes.map(|size| size.is_some_and(|size| size.pixels() > max_pixels));
        match too_large {
            [false, false, _] => Some(Layer::H),
            [false, true, _] => self.sizes[0].map(|_| Layer::Q),
            [true, ..] => None,
        }
    }

    /// Size of each layer. Unknown ones are derived from a known one, or are the usual ones.
    pub(crate) fn likely_sizes(&self) -> [Size; 3] {
        let known = Layer::ALL.into_iter().find_map(|l| Some((l, self.sizes[l as usize]?)));
        let (of, size) = known.unwrap_or((Layer::Q, USUAL_QUARTER));
        Layer::ALL.map(|layer| {
            let side =
                |side: u16| (u32::from(side) * (1 << layer as u32) / (1 << of as u32)) as u16;
            self.sizes[layer as usize].unwrap_or(Size::new(side(size.width), side(size.height)))
        })
    }

    /// Counts a packet with `bytes` of payload; `descriptor`: what that says, if it can be read. `layer`: the one under
    /// which it came.
    pub(crate) fn count(
        &mut self,
        layer: Layer,
        packet: &PacketIn,
        bytes: usize,
        descriptor: Option<&Descriptor>,
    ) {
        let now = packet.arrival;
        self.codec = Some(packet.codec);
        if self.has_spatial() && layer != self.spatial.base {
            // There are several encodings, of a publisher on another node.
            (self.simulcast, self.spatial) = (true, Spatial::default());
        }
        let spatial = descriptor.map_or(0, |descriptor| descriptor.spatial);
        let meter = &mut self.meters[self.spatial.layer(layer, spatial) as usize];
        if meter.last_packet.is_none_or(|last| now.saturating_duration_since(last) > SILENCE) {
            *meter = Meter::default();
        }
        meter.last_packet = Some(now);
        let begin = *meter.window_begin.get_or_insert(now);
        meter.window_bytes += bytes as u64;
        let temporal = meter.temporal(packet.timestamp, descriptor);
        for thinned in meter.window_thinned.iter_mut().skip(temporal.into()) {
            *thinned += bytes as u64;
        }
        let span = now.saturating_duration_since(begin);
        if span >= WINDOW {
            let bps = (meter.window_bytes as f64 * 8.0 / span.as_secs_f64()) as u64;
            let mean = meter.rate.map_or(bps, |old| u64::midpoint(old.as_bps(), bps));
            let is_first = meter.rate.is_none();
            meter.rate = Some(Bitrate::bps(mean));
            if meter.window_bytes > 0 {
                let shares = meter.window_thinned.map(|n| n as f32 / meter.window_bytes as f32);
                let former = if is_first { shares } else { meter.thinned.0 };
                meter.thinned = ThinnedShares([0, 1].map(|n| f32::midpoint(former[n], shares[n])));
            }
            meter.window_begin = Some(now);
            (meter.window_bytes, meter.window_thinned) = (0, [0; 2]);
        }
    }

    /// Moves the state of one layer to another: a single encoding has changed its size.
    pub(crate) fn rename(&mut self, from: Layer, to: Layer) {
        let meter = std::mem::take(&mut self.meters[from as usize]);
        if self.has_spatial() {
            // Those above it move too.
            (self.meters, self.sizes) = Default::default();
            self.spatial = Spatial { base: to, count: 1 };
        }
        self.meters[to as usize] = meter;
        self.sizes[from as usize] = None;
    }

    /// The bitrate of a layer; `None` if it is not sent. Before the first measurement, what Chromium gives the layer.
    pub(crate) fn rate(&self, layer: Layer, now: Instant) -> Option<Bitrate> {
        let own = self.own_rate(layer, now)?;
        // A spatial layer takes those below it along.
        let below =
            Layer::ALL.into_iter().filter(|&below| below < layer && self.spatial.has(below));
        let below = below.filter(|_| self.spatial.has(layer));
        Some(own + below.filter_map(|below| self.own_rate(below, now)).sum())
    }

    fn own_rate(&self, layer: Layer, now: Instant) -> Option<Bitrate> {
        let meter = &self.meters[layer as usize];
        meter.last_packet.filter(|&last| now.saturating_duration_since(last) <= SILENCE)?;
        Some(meter.rate.unwrap_or(SDK_MAX[layer as usize]))
    }

    /// The shares of each layer's bitrate up to its temporal layers.
    pub(crate) fn thinned(&self) -> [ThinnedShares; 3] {
        [0, 1, 2].map(|layer| self.meters[layer].thinned)
    }

    /// The bitrate of each layer that is sent.
    pub(crate) fn rates(&self, now: Instant) -> [Option<Bitrate>; 3] {
        Layer::ALL.map(|layer| self.rate(layer, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tests::calls::key_header;

    fn packet(arrival: Instant, timestamp: u32) -> PacketIn {
        PacketIn { timestamp, ..PacketIn::alone(0, arrival) }
    }

    #[test]
    fn temporal_layers_have_shares_of_the_bitrate() {
        let now = Instant::now();
        let mut layers = Layers::default();
        for i in 0..200 {
            // Two packets a frame; I, B, E, L, layer 0 and 1 by turns. The second packet does not say it.
            let (frame, first) = (i / 2, i % 2 == 0);
            let payload = [0xac, 0x7f, ((frame % 2) << 5) as u8, 0x07, 0x00];
            let mut said = codec::parse(VideoCodec::Vp9, None, &payload).expect("a descriptor");
            said.temporal = said.temporal.filter(|_| first);
            let bytes = if frame % 2 == 0 { 900 } else { 300 };
            let at = now + Duration::from_millis(10) * i;
            layers.count(Layer::H, &packet(at, frame), bytes, Some(&said));
        }
        let ThinnedShares([base, all]) = layers.thinned()[1];
        assert!((0.7..0.8).contains(&base) && all > 0.99, "{base}, {all}");
        assert_eq!(layers.thinned()[0], ThinnedShares::default(), "nothing is sent");
    }

    #[test]
    fn a_silent_layer_is_not_offered() {
        let now = Instant::now();
        let mut layers = Layers::default();
        layers.count(Layer::Q, &packet(now, 0), 1000, None);
        assert!(layers.rate(Layer::Q, now + SILENCE).is_some());
        assert!(layers.rate(Layer::Q, now + SILENCE * 2).is_none());
        assert!(layers.rate(Layer::H, now).is_none());
    }

    #[test]
    fn the_rate_is_that_of_the_packets() {
        let now = Instant::now();
        let mut layers = Layers::default();
        for i in 0..200 {
            layers.count(Layer::H, &packet(now + Duration::from_millis(10) * i, i), 625, None);
        }
        let bps = layers.rate(Layer::H, now + Duration::from_secs(2)).expect("active").as_bps();
        assert!((450_000..550_000).contains(&bps), "{bps}");
    }

    #[test]
    fn spatial_layers_are_named_from_the_smallest_up() {
        // F, B, V; the structure; the header of the smallest one's key frame.
        let key_of = |count: u8, width: u16, height: u16| {
            [&[0x1a, (count - 1) << 5][..], &key_header(width, height)].concat()
        };
        let first = packet(Instant::now(), 0);
        for (count, width, height, base, of_f) in [
            (3, 320, 180, Layer::Q, (Layer::Q, None)),
            (3, 960, 540, Layer::Q, (Layer::Q, None)),
            (2, 640, 360, Layer::H, (Layer::H, None)),
            (2, 320, 180, Layer::Q, (Layer::Q, None)),
            (1, 640, 360, Layer::H, (Layer::F, None)),
        ] {
            let (mut layers, key) = (Layers::default(), key_of(count, width, height));
            let of = layers.layer_of(Encoding::Single, &first, &key);
            assert_eq!(of, Some((base, None)), "{count} from {width}");
            let descriptor = codec::parse(VideoCodec::Vp9, None, &key).expect("a descriptor");
            layers.on_key_frame(base, Some(Size::new(width, height)));
            layers.on_spatial(base, descriptor.layers);
            assert_eq!(layers.has_spatial(), count > 1);
            assert_eq!(layers.spatial().encoding(Layer::F), of_f, "{count} from {width}");
        }
    }

    #[test]
    fn layers_of_one_encoding_are_found_and_bounded() {
        let spatial = Spatial { base: Layer::Q, count: 3 };
        assert_eq!(Layer::ALL.map(|layer| spatial.encoding(layer).1), [Some(0), Some(1), None]);
        assert_eq!(
            [0, 1, 2, 8].map(|max| spatial.layer(Layer::Q, max)),
            [Layer::Q, Layer::H, Layer::F, Layer::F]
        );
        let two = Spatial { base: Layer::H, count: 2 };
        assert_eq!(two.encoding(Layer::Q), (Layer::H, Some(0)), "there is none below");
        assert_eq!([0, 1, 8].map(|max| two.layer(Layer::H, max)), [Layer::H, Layer::F, Layer::F]);
        assert_eq!(Spatial::default().layer(Layer::H, 8), Layer::H);
    }

    #[test]
    fn a_single_encoding_is_named_by_its_last_key_frame() {
        let (mut layers, first) = (Layers::default(), packet(Instant::now(), 0));
        // The header of a key frame behind a descriptor of one byte.
        let key_of = |width: u16, height: u16| [&[0x08][..], &key_header(width, height)].concat();
        let key = key_of(320, 180);
        assert_eq!(
            layers.layer_of(Encoding::Single, &first, &[0x48, 0x86]),
            None,
            "nothing is known before it"
        );
        assert_eq!(layers.layer_of(Encoding::Single, &first, &key), Some((Layer::Q, None)));
        assert_eq!(
            layers.layer_of(Encoding::Single, &first, &[0x48, 0x86]),
            Some((Layer::Q, None))
        );
        assert_eq!(layers.layer_of(Encoding::Unknown, &first, &key), None);
        let large = key_of(4096, 2304);
        assert_eq!(
            layers.layer_of(Encoding::Single, &first, &large),
            Some((Layer::F, Some(Layer::Q))),
            "it has grown"
        );
        assert_eq!(
            layers.layer_of(Encoding::Single, &first, &[0x48, 0x86]),
            Some((Layer::F, None))
        );
    }
}
