//! How the detail of an anchor is coded: the one place of `eval` that knows codecs.
//!
//! A [`Coding`] names a codec and what its code is held to: a quality, or a budget of bytes for
//! each anchor. A [`Coder`] codes the anchors of one stream in order; it may keep state from one to
//! the next.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use windlass_hybrid::anchor::codec::{self, AnchorCodec, AnchorCodecError, ResidualJpeg};
use windlass_hybrid::anchor::{ReassembledAnchor, payload};
use windlass_hybrid::detail::Detail;

/// A codec by its name.
#[derive(Clone, Copy)]
pub struct Codec(&'static dyn AnchorCodec);

impl Codec {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

/// As `serve` has it.
impl Default for Codec {
    fn default() -> Codec {
        Codec(&ResidualJpeg)
    }
}

impl PartialEq for Codec {
    fn eq(&self, other: &Codec) -> bool {
        self.0.id() == other.0.id()
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
        let Some(found) = codec::by_name(text) else {
            let names = codec::ALL.map(AnchorCodec::name).join(", ");
            bail!("there is no anchor codec {text:?}; there are: {names}");
        };
        Ok(Codec(found))
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
    codec: &'static dyn AnchorCodec,
    target: Target,
}

impl Coder {
    /// A coder that has seen nothing yet.
    pub fn new(coding: Coding) -> Coder {
        Coder { codec: coding.codec.0, target: coding.target }
    }

    /// The codec's id in message headers.
    pub fn id(&self) -> u8 {
        self.codec.id()
    }

    /// Codes the next anchor; with a budget that nothing fits, as coarsely as can be.
    pub fn code(&mut self, detail: &Detail) -> Result<Vec<u8>> {
        let coded = match self.target {
            Target::Quality(quality) => self.codec.encode(detail, quality),
            Target::Budget(bytes) => match self.codec.encode_within(detail, bytes) {
                Err(AnchorCodecError::Budget { .. }) => self.codec.encode(detail, 1),
                coded => coded,
            },
        };
        coded.with_context(|| format!("coding an anchor by {}", self.codec.name()))
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
        Coder::new(coding).code(&textured()).unwrap()
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
        assert_eq!(Codec::default().name(), "jpeg");
        assert!("gif".parse::<Codec>().unwrap_err().to_string().contains("jpeg, htj2k"));
    }
}
