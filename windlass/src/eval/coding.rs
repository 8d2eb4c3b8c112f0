//! How the detail of an anchor is coded: the one place of `eval` that knows codecs.
//!
//! A [`Coding`] names a codec and what its code is held to: a quality, or a budget of bytes for
//! each anchor. A [`Coder`] codes the anchors of one stream in order; it may keep state from one to
//! the next.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use windlass_enhancer::EnhancerConfig;
use windlass_enhancer::encode::{StreamConfig, StreamEncodeError, StreamEncoder};
use windlass_hybrid::anchor::codec::{self, AnchorCodec, AnchorCodecError, Htj2k};
use windlass_hybrid::anchor::stream::{Prediction, VP9_STREAM};
use windlass_hybrid::anchor::tiles::TileMap;
use windlass_hybrid::anchor::{ReassembledAnchor, payload};
use windlass_hybrid::detail::Detail;

/// Name of the anchor stream.
const STREAM: &str = "vp9";

/// A codec by its name.
#[derive(Clone, Copy)]
pub enum Codec {
    /// Each anchor is an image of its own.
    Still(&'static dyn AnchorCodec),
    /// Anchors are a VP9 stream.
    Stream,
}

impl Codec {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Still(codec) => codec.name(),
            Codec::Stream => STREAM,
        }
    }

    fn id(self) -> u8 {
        match self {
            Codec::Still(codec) => codec.id(),
            Codec::Stream => VP9_STREAM,
        }
    }
}

/// As `serve` has it.
impl Default for Codec {
    fn default() -> Codec {
        let id = EnhancerConfig::default().anchor_codec.id();
        codec::by_id(id).map_or(Codec::Stream, Codec::Still)
    }
}

impl PartialEq for Codec {
    fn eq(&self, other: &Codec) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Codec {}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Codec {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Codec> {
        if text == STREAM {
            return Ok(Codec::Stream);
        }
        let Some(found) = codec::by_name(text) else {
            let names = codec::ALL.map(AnchorCodec::name).join(", ");
            bail!("there is no anchor codec {text:?}; there are: {names}, {STREAM}");
        };
        Ok(Codec::Still(found))
    }
}

/// What the code of an anchor is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A quality from 1 to 100.
    Quality(u8),
    /// At most so many bytes for each anchor, and as near to that as the codec comes.
    Budget(usize),
}

/// How anchors are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coding {
    /// By which codec.
    pub codec: Codec,
    /// How finely.
    pub target: Target,
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.target {
            Target::Quality(quality) => write!(f, "{} q{quality}", self.codec.name()),
            Target::Budget(bytes) => write!(f, "{} {bytes}B", self.codec.name()),
        }
    }
}

/// Codes the anchors of one stream.
pub struct Coder {
    codec: Codec,
    target: Target,
    scale: usize,
    stream: Option<StreamEncoder>,
}

impl Coder {
    /// A coder that has seen nothing yet, for pictures `scale` times as large as the low layer.
    pub fn new(coding: Coding, scale: usize) -> Coder {
        Coder { codec: coding.codec, target: coding.target, scale, stream: None }
    }

    /// The codec's id in message headers.
    pub fn id(&self) -> u8 {
        self.codec.id()
    }

    /// Whether each anchor is coded for itself.
    pub fn is_still(&self) -> bool {
        matches!(self.codec, Codec::Still(_))
    }

    /// The payload of the next anchor, and whether it is tiled; with a budget that nothing fits, it is
    /// coded as coarsely as can be.
    pub fn code(
        &mut self,
        detail: Detail,
        colour: Option<&Detail>,
        tiles: &TileMap,
    ) -> Result<(Vec<u8>, bool)> {
        let coded = match self.codec {
            Codec::Still(codec) => {
                self.still(codec, &payload::image(detail, tiles, self.scale), colour)
            }
            Codec::Stream => self.streamed(&detail, tiles),
        };
        let coded = coded.with_context(|| format!("coding an anchor by {}", self.codec.name()))?;
        Ok(payload::pack(tiles, coded))
    }

    fn still(
        &self,
        codec: &dyn AnchorCodec,
        image: &Detail,
        colour: Option<&Detail>,
    ) -> Result<Vec<u8>> {
        let by_quality = |quality| -> Result<Vec<u8>, AnchorCodecError> {
            match colour {
                Some(colour) => Htj2k::encode_in_colour(image, colour, quality),
                None => codec.encode(image, quality),
            }
        };
        let within = match (self.target, colour) {
            (Target::Quality(quality), _) => by_quality(quality),
            (Target::Budget(bytes), Some(_)) => Htj2k::fill(image, colour, bytes),
            (Target::Budget(bytes), None) => codec.encode_within(image, bytes),
        };
        Ok(match within {
            Err(AnchorCodecError::Budget { .. }) => by_quality(1)?,
            coded => coded?,
        })
    }

    /// Predicted from the anchor before; qualities are spread over libvpx's quantisers.
    fn streamed(&mut self, detail: &Detail, tiles: &TileMap) -> Result<Vec<u8>> {
        let stream = if let Some(stream) = &mut self.stream {
            stream
        } else {
            let mut config = StreamConfig::new(detail.width(), detail.height());
            if let Target::Quality(quality) = self.target {
                config = config.with_quality(quality);
            }
            self.stream.insert(StreamEncoder::new(config)?)
        };
        let budget = match self.target {
            Target::Quality(_) => None,
            Target::Budget(bytes) => Some(bytes),
        };
        let from = Prediction::FromLast;
        let coded = match stream.encode(detail, tiles, self.scale, budget, from) {
            Err(StreamEncodeError::Budget(_)) => {
                stream.encode(detail, tiles, self.scale, None, from)
            }
            coded => coded,
        };
        Ok(coded?.payload)
    }
}

/// The detail that an anchor carries.
pub fn decode(anchor: &ReassembledAnchor, scale: usize) -> Result<Detail> {
    ensure!(!anchor.header.tiled, "an anchor of tiles is not a whole picture");
    let (detail, _) = payload::decode(anchor, scale).context("decoding an anchor of our own")?;
    Ok(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn textured() -> Detail {
        let samples = (0..64 * 48).map(|i: i32| ((i * 7919 % 509) - 254) as i16).collect();
        Detail::from_samples(64, 48, samples).unwrap()
    }

    fn code(codec: &str, target: Target) -> Vec<u8> {
        let coding = Coding { codec: codec.parse().unwrap(), target };
        let tiles = TileMap::full(32, 24);
        Coder::new(coding, 2).code(textured(), None, &tiles).unwrap().0
    }

    #[test]
    fn a_budget_is_kept_and_one_that_nothing_fits_gets_the_coarsest_code() {
        for codec in codec::ALL.map(AnchorCodec::name) {
            let fine = code(codec, Target::Quality(80)).len();
            assert!(code(codec, Target::Budget(fine)).len() <= fine, "{codec}");
            assert_eq!(code(codec, Target::Budget(1)), code(codec, Target::Quality(1)), "{codec}");
        }
    }

    #[test]
    fn names_are_read_back_and_unknown_ones_are_answered_with_those_there_are() {
        assert_eq!("htj2k".parse::<Codec>().unwrap().name(), "htj2k");
        assert_eq!(Codec::default().name(), "htj2k");
        assert!("gif".parse::<Codec>().unwrap_err().to_string().contains("jpeg, htj2k"));
    }
}
