//! Pictures of one size from a track's layers: rebuilt where a layer is smaller, as they came where it is not.

use windlass_hybrid::{HybridConfig, HybridDecoder};
use windlass_network::Tier;
use windlass_types::Size;
use windlass_types::key_frame::key_frame_size;
use windlass_types::message::ReassembledAnchor;
use windlass_vp9::{DecodeError, Decoder, Samples};

use crate::resize::Resizing;
use crate::size::scale_for;

/// What decodes the present layer.
enum Source {
    /// The layer is as large as the pictures.
    Plain(Box<Decoder>),
    /// The layer is rebuilt.
    Rebuilt(Box<HybridDecoder>),
}

/// Makes the pictures.
pub(crate) struct Pictures {
    size: Size,
    /// Size of the present layer; `None` before the first key frame.
    layer: Option<Size>,
    source: Source,
    resizing: Resizing,
    /// The network that runs on every rebuilt picture.
    network: Option<Tier>,
    /// Number of anchors that former decoders have used.
    former: u64,
}

impl Pictures {
    /// Pictures of this size.
    pub(crate) fn new(size: Size) -> Pictures {
        let resizing = Resizing::new(size.width.into(), size.height.into());
        let source = Source::Plain(Box::default());
        Pictures { size, layer: None, source, resizing, network: Some(Tier::Xs), former: 0 }
    }

    /// Sets the network that runs on every rebuilt picture from now on: the larger one at first.
    pub(crate) fn set_network(&mut self, network: Option<Tier>) {
        self.network = network;
        if let Source::Rebuilt(decoder) = &mut self.source {
            decoder.set_network(network);
        }
    }

    /// Decodes a frame and rebuilds its picture with its anchors, whose RTP timestamp is the frame's number. Returns
    /// `None` where nothing is shown.
    ///
    /// # Errors
    ///
    /// Fails if the frame cannot be decoded. Then no other can before the next key frame.
    pub(crate) fn push(
        &mut self,
        number: u32,
        data: &[u8],
        anchors: &[ReassembledAnchor],
    ) -> Result<Option<[Samples<'_>; 3]>, DecodeError> {
        if let Some(layer) = key_frame_size(data).filter(|layer| self.layer != Some(*layer)) {
            self.begin(layer);
        }
        let from = match &mut self.source {
            Source::Plain(decoder) => {
                let shown = decoder.decode(data)?.iter().rev().find(|frame| frame.info.shown);
                shown.map(|frame| frame.picture.samples())
            }
            Source::Rebuilt(decoder) => {
                // Those that come before their frame cost no picture of their own.
                for anchor in anchors {
                    let _ = decoder.push_anchor(anchor);
                }
                let shown = decoder.push_frame(number, data)?.shown;
                decoder.hr().filter(|_| shown).map(windlass_vp9::Picture::samples)
            }
        };
        let Some(from) = from else { return Ok(None) };
        let size = (usize::from(self.size.width), usize::from(self.size.height));
        if (from[0].width, from[0].height) == size {
            return Ok(Some(from));
        }
        Ok(self.resizing.resize(from).map(windlass_vp9::Picture::samples))
    }

    /// Takes an anchor of the present layer that comes behind its frame: later pictures have it.
    pub(crate) fn push_anchor(&mut self, anchor: &ReassembledAnchor) {
        if let Source::Rebuilt(decoder) = &mut self.source {
            let _ = decoder.push_anchor(anchor);
        }
    }

    /// Number of anchors that have a part in the pictures.
    pub(crate) fn anchors(&self) -> u64 {
        match &self.source {
            Source::Plain(_) => self.former,
            Source::Rebuilt(decoder) => self.former + decoder.stats().applied,
        }
    }

    fn begin(&mut self, layer: Size) {
        self.layer = Some(layer);
        let scale = scale_for(layer, self.size);
        match (&mut self.source, scale) {
            (Source::Rebuilt(decoder), Some(scale)) if decoder.scale() == scale => return,
            _ => {}
        }
        self.former = self.anchors();
        self.source = match scale {
            None => Source::Plain(Box::default()),
            Some(scale) => {
                let network = self.network;
                let config = HybridConfig { scale, network, ..HybridConfig::default() };
                Source::Rebuilt(Box::new(HybridDecoder::new(config)))
            }
        };
    }
}
