//! Networks and sizes as benches take them from the command line, and the networks' weights.

use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use windlass_sr::{Architecture, Model, embedded_model, fused_m_model, fused_model};

use crate::eval::frames::Size;

/// A network's architecture, as the command line names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network(pub Architecture);

/// The weights of a measured network.
pub(super) struct Weights {
    /// The network with its weights.
    pub model: Arc<Model>,
    /// Whether the weights are trained; else they are random.
    pub trained: bool,
}

/// A network's built-in weights where there are some, else random ones.
pub(super) fn weights(network: Architecture) -> Result<Weights> {
    for model in [embedded_model()?, fused_model()?, fused_m_model()?] {
        if model.architecture() == network {
            return Ok(Weights { model, trained: true });
        }
    }
    Ok(Weights { model: Arc::new(Model::random(network, 1)?), trained: false })
}

impl FromStr for Network {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, anyhow::Error> {
        let shape = || format!("`{text}` is no network: write chain:5x16x2 or blocks:8x32x3+twin");
        let (kind, rest) = text.split_once(':').with_context(shape)?;
        let (numbers, twin) = match rest.strip_suffix("+twin") {
            Some(numbers) => (numbers, true),
            None => (rest, false),
        };
        let numbers: Result<Vec<usize>, _> = numbers.split('x').map(str::parse).collect();
        let &[count, channels, scale] = &numbers.with_context(shape)?[..] else {
            anyhow::bail!(shape());
        };
        ensure!(count <= 64, "{count} are too many");
        let plain = match kind {
            "chain" => Architecture::chain(scale, channels, count),
            "blocks" => Architecture::blocks(scale, channels, count),
            _ => anyhow::bail!(shape()),
        };
        let network = if twin { plain.with_twin() } else { plain };
        network.check()?;
        Ok(Network(network))
    }
}

/// Reads the size of a low layer.
pub(super) fn size(text: &str) -> Result<Size> {
    let shape = || format!("`{text}` is no size: write 640x360");
    let (width, height) = text.split_once('x').with_context(shape)?;
    let size = Size::new(width.parse().with_context(shape)?, height.parse().with_context(shape)?);
    let sane = 1..=2_048;
    ensure!(
        sane.contains(&size.width) && sane.contains(&size.height),
        "sides must be from 1 to 2048"
    );
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_sizes_are_read_and_anything_else_is_refused() {
        let network = |text: &str| text.parse::<Network>().map(|network| network.0);
        assert_eq!(network("chain:5x16x2").unwrap(), Architecture::chain(2, 16, 5));
        let fused = Architecture::blocks(3, 32, 8).with_twin();
        assert_eq!(network("blocks:8x32x3+twin").unwrap(), fused);
        for wrong in [
            "",
            "chain",
            "chain:5x16",
            "chain:5x16x9",
            "chain:5x15x2",
            "blocks:99x32x2",
            "net:5x16x2",
        ] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
        assert_eq!(size("640x360").unwrap(), Size::new(640, 360));
        for wrong in ["640", "0x360", "640x9999", "ax2"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
