//! The shapes of network that every backend runs.
//!
//! All are 3×3 convolutions with zero padding 1, numbered from 0, at the size of the LR picture:
//!
//! - **chain**: `x = relu(conv_i(x))`, the last one without ReLU.
//! - **blocks**: `h = conv_0(x)`, `f = h`; for every pair `f = f + conv_b(relu(conv_a(f)))`; the last one takes `f +
//!   h`.
//!
//! Inputs: luma as `Y/255 − 0.5`; with a twin, `scale²` channels more, the twin's HR luma folded by pixel unshuffle
//! (channel `1 + scale·dy + dx`) as `T/255 − 0.5`.
//! Outputs: `scale²` channels of residual in grey levels, unfolded by pixel shuffle (channel `scale·dy + dx`). With a
//! twin, `scale²` channels of gates `g` follow, and the residual is `σ(g)·(T − L) + r`, where `L` is the codec's own
//! [`lanczos`](windlass_hybrid::resample::lanczos), not rounded.

use std::fmt;

use thiserror::Error;

/// Maximum convolutions of a network.
pub const MAX_CONVS: usize = 40;
/// Maximum channels between convolutions.
pub const MAX_CHANNELS: usize = 64;
/// Number that the channels between convolutions are a multiple of.
pub const CHANNEL_STEP: usize = 8;

/// How the convolutions follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Convolutions one after the other.
    Chain,
    /// Residual blocks of two convolutions between the first and the last, with a skip over all of them.
    Blocks,
}

/// Pictures that a network takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Inputs {
    /// The luma of the LR picture.
    Luma,
    /// The LR luma and the HR luma that the viewer's decoder would show without this anchor.
    LumaAndTwin,
}

/// Everything about a network but its weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Architecture {
    /// How the convolutions follow each other.
    pub kind: Kind,
    /// The pictures that the network takes.
    pub inputs: Inputs,
    /// HR side / LR side: 2, 3 or 4.
    pub scale: usize,
    /// Channels between convolutions.
    pub channels: usize,
    /// Number of convolutions, the first and the last included.
    pub convs: usize,
}

/// An architecture outside of what backends run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ArchitectureError {
    /// Scales are 2, 3 and 4.
    #[error("scale {0} is none of 2, 3 and 4")]
    Scale(usize),
    /// The number of channels is too small, too large, or no multiple of [`CHANNEL_STEP`].
    #[error("{0} channels: a multiple of {CHANNEL_STEP} up to {MAX_CHANNELS} is needed")]
    Channels(usize),
    /// The number of convolutions is too small, too large, or odd in a network with blocks.
    #[error("{0} convolutions: a chain has 2 to {MAX_CONVS}, blocks an even number from 4 on")]
    Convs(usize),
}

impl Architecture {
    /// Architecture of a chain of `convs` convolutions that takes luma only.
    pub fn chain(scale: usize, channels: usize, convs: usize) -> Self {
        Architecture { kind: Kind::Chain, inputs: Inputs::Luma, scale, channels, convs }
    }

    /// Architecture of `blocks` residual blocks that takes luma only.
    pub fn blocks(scale: usize, channels: usize, blocks: usize) -> Self {
        let convs = 2 * blocks + 2;
        Architecture { kind: Kind::Blocks, inputs: Inputs::Luma, scale, channels, convs }
    }

    /// Adds the twin's picture as a second input to the architecture.
    #[must_use]
    pub fn with_twin(self) -> Self {
        Architecture { inputs: Inputs::LumaAndTwin, ..self }
    }

    /// Checks that the engines run the architecture.
    ///
    /// # Errors
    ///
    /// Fails if the scale, the number of channels or the number of convolutions is one that the engines do not run.
    pub fn check(&self) -> Result<(), ArchitectureError> {
        if !(2..=4).contains(&self.scale) {
            return Err(ArchitectureError::Scale(self.scale));
        }
        let (channels, convs) = (self.channels, self.convs);
        if !(CHANNEL_STEP..=MAX_CHANNELS).contains(&channels)
            || !channels.is_multiple_of(CHANNEL_STEP)
        {
            return Err(ArchitectureError::Channels(channels));
        }
        let enough = match self.kind {
            Kind::Chain => convs >= 2,
            Kind::Blocks => convs >= 4 && convs.is_multiple_of(2),
        };
        if enough && convs <= MAX_CONVS { Ok(()) } else { Err(ArchitectureError::Convs(convs)) }
    }

    /// Whether the network looks at a twin's picture.
    pub fn has_twin(&self) -> bool {
        self.inputs == Inputs::LumaAndTwin
    }

    /// Channels of the first convolution's input.
    pub fn input_channels(&self) -> usize {
        if self.has_twin() { 1 + self.scale * self.scale } else { 1 }
    }

    /// Channels of the last convolution's output.
    pub fn output_channels(&self) -> usize {
        self.scale * self.scale * if self.has_twin() { 2 } else { 1 }
    }

    /// Output and input channels of convolution `n`.
    pub fn shape(&self, n: usize) -> (usize, usize) {
        let outputs = if n + 1 == self.convs { self.output_channels() } else { self.channels };
        (outputs, if n == 0 { self.input_channels() } else { self.channels })
    }

    /// Distance in low samples, in each direction, up to which low samples affect a high sample: one for each
    /// convolution, and three for the Lanczos filter if its result is gated.
    pub fn reach(&self) -> usize {
        if self.has_twin() { self.convs.max(3) } else { self.convs }
    }

    /// Multiply-adds for each sample of the LR picture.
    pub fn macs(&self) -> u64 {
        let shapes = (0..self.convs).map(|n| self.shape(n));
        shapes.map(|(outputs, inputs)| 9 * (outputs * inputs) as u64).sum()
    }

    /// Whether ReLU follows convolution `n`.
    pub(super) fn has_relu(&self, n: usize) -> bool {
        match self.kind {
            Kind::Chain => n + 1 < self.convs,
            Kind::Blocks => n % 2 == 1 && n + 1 < self.convs,
        }
    }

    /// Whether convolution `n` ends a block, and its input's input is added.
    pub(super) fn ends_block(&self, n: usize) -> bool {
        self.kind == Kind::Blocks && n > 0 && n.is_multiple_of(2)
    }

    /// Whether the first convolution's output is added after convolution `n`, too.
    pub(super) fn ends_blocks(&self, n: usize) -> bool {
        self.kind == Kind::Blocks && n + 2 == self.convs
    }
}

/// Writes `chain 5x16 x2` (convolutions × channels, scale) or `blocks 8x32 x3 +twin` (blocks × channels, scale).
impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (channels, scale) = (self.channels, self.scale);
        match self.kind {
            Kind::Chain => write!(f, "chain {}x{channels} x{scale}", self.convs)?,
            Kind::Blocks => write!(f, "blocks {}x{channels} x{scale}", self.convs / 2 - 1)?,
        }
        if self.has_twin() { f.write_str(" +twin") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_that_of_every_convolution() {
        // 1→16, three of 16→16, 16→4.
        let xs = Architecture::chain(2, 16, 5);
        assert_eq!(xs.macs(), 9 * (16 + 3 * 256 + 64));
        let large = Architecture::blocks(3, 32, 8);
        assert_eq!((large.convs, large.macs()), (18, 9 * (32 + 16 * 1024 + 32 * 9)));
        assert_eq!(large.with_twin().macs(), 9 * (320 + 16 * 1024 + 32 * 18));
        assert_eq!((large.reach(), large.to_string().as_str()), (18, "blocks 8x32 x3"));
        assert_eq!(Architecture::chain(2, 8, 2).with_twin().reach(), 3);
    }

    #[test]
    fn what_no_backend_runs_is_refused() {
        for (refused, why) in [
            (Architecture::chain(1, 16, 5), ArchitectureError::Scale(1)),
            (Architecture::chain(5, 16, 5), ArchitectureError::Scale(5)),
            (Architecture::chain(2, 12, 5), ArchitectureError::Channels(12)),
            (Architecture::chain(2, 0, 5), ArchitectureError::Channels(0)),
            (Architecture::chain(2, 72, 5), ArchitectureError::Channels(72)),
            (Architecture::chain(2, 16, 1), ArchitectureError::Convs(1)),
            (Architecture::chain(2, 16, 41), ArchitectureError::Convs(41)),
            (Architecture::blocks(2, 16, 0), ArchitectureError::Convs(2)),
            (
                Architecture { convs: 5, ..Architecture::blocks(2, 16, 1) },
                ArchitectureError::Convs(5),
            ),
        ] {
            assert_eq!(refused.check(), Err(why), "{refused:?}");
        }
        for channels in [8, 16, 24, 32, 48, 64] {
            assert_eq!(Architecture::blocks(4, channels, 19).check(), Ok(()));
        }
    }
}
