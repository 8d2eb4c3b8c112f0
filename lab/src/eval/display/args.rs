//! Options of `--display`.

use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use clap::Args;
use windlass_network::Tier;

use crate::eval::frames::Size;

/// The options of `--display`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DisplayArgs {
    /// Compare Windlass with plain VP9 of every size, sharpened, for equal bits at this size in pixels: BD-rate and
    /// quality. Smaller clips are shown at their own size.
    #[arg(long, value_name = "WxH", group = "comparison")]
    pub display: Option<DisplaySize>,

    /// Run this network (xxs or xs) on every picture of Windlass's, at the scales that there is one for.
    #[arg(long, requires = "display", value_name = "NAME")]
    pub frame_network: Option<Tier>,
}

/// A size in pixels, as `1280x720`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DisplaySize(pub Size);

impl FromStr for DisplaySize {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<DisplaySize> {
        let sides =
            text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
        let (width, height) =
            sides.with_context(|| format!("a size is WIDTHxHEIGHT, as 1280x720, not {text:?}"))?;
        ensure!(
            (256..=3840).contains(&width) && (256..=2160).contains(&height),
            "--display must be from 256x256 to 3840x2160, not {text}"
        );
        Ok(DisplaySize(Size { width, height }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_two_sides() {
        let size: DisplaySize = "1280x720".parse().unwrap();
        assert_eq!(size.0, Size { width: 1280, height: 720 });
        for wrong in ["", "720", "1280x", "1280x720x3", "100x100", "axb", "99999x720"] {
            assert!(wrong.parse::<DisplaySize>().is_err(), "{wrong:?}");
        }
    }
}
