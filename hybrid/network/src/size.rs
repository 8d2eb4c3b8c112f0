//! The sizes of networks that can be run.

use thiserror::Error;

/// Maximum number of convolutions of a network.
pub(crate) const MAX_CONVS: usize = 16;
/// Maximum number of channels between convolutions.
pub(crate) const MAX_CHANNELS: usize = 64;
/// The number of channels between convolutions is a multiple of this.
pub(crate) const CHANNEL_STEP: usize = 8;

/// A chain of convolutions, without its weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    scale: usize,
    channels: usize,
    convs: usize,
}

/// The network has another size than those that are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "scale {scale}, {convs} convolutions of {channels} channels: a scale of 2 to 4 and 2 to {MAX_CONVS} of a multiple \
     of {CHANNEL_STEP} up to {MAX_CHANNELS} are needed"
)]
pub struct SizeError {
    scale: usize,
    channels: usize,
    convs: usize,
}

impl Size {
    /// The size, if it is one that is run.
    pub(crate) fn new(scale: usize, channels: usize, convs: usize) -> Result<Self, SizeError> {
        let runs = (2..=4).contains(&scale)
            && (2..=MAX_CONVS).contains(&convs)
            && (CHANNEL_STEP..=MAX_CHANNELS).contains(&channels)
            && channels.is_multiple_of(CHANNEL_STEP);
        if runs {
            Ok(Self { scale, channels, convs })
        } else {
            Err(SizeError { scale, channels, convs })
        }
    }

    pub(crate) fn scale(self) -> usize {
        self.scale
    }

    pub(crate) fn channels(self) -> usize {
        self.channels
    }

    pub(crate) fn convs(self) -> usize {
        self.convs
    }

    /// Whether convolution `n` is the last.
    pub(crate) fn is_last(self, n: usize) -> bool {
        n + 1 == self.convs
    }

    /// Number of inputs and of outputs of a convolution.
    pub(crate) fn shape(self, n: usize) -> (usize, usize) {
        let phases = self.scale * self.scale;
        let inputs = if n == 0 { 1 + phases } else { self.channels };
        (inputs, if self.is_last(n) { phases } else { self.channels })
    }

    /// Number of weights of a convolution.
    pub(crate) fn count(self, n: usize) -> usize {
        let (inputs, outputs) = self.shape(n);
        9 * inputs * outputs
    }
}
