//! Anchors of the publisher's own pixels, made as the product makes them.
//!
//! There are two ways, each a [`Source`]. Either the full layer is decoded at the server, which encodes anchors of
//! it. Or the publisher sends stills of the [`regions`] that the server asks for. Stills are passed on as they are,
//! and take their time on the uplink.

pub(super) mod rates;
pub(super) mod regions;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use windlass_types::AnchorSource;
use windlass_types::message::HTJ2K;
use windlass_types::message::{AnchorHeader, ReassembledAnchor, Reassembler};
use windlass_types::message::{MAX_CHUNK, encode_chunks};

use super::anchors::{STREAM, TimedAnchor};
use super::frames::Size;

/// Where captured anchors come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The publisher's full layer, decoded at the server.
    Full,
    /// Stills of regions that the server asks for, by its own scores.
    Regions,
    /// Stills of regions as DDS chooses them.
    Dds,
}

impl Source {
    /// All sources.
    pub(crate) const ALL: [Source; 3] = [Source::Full, Source::Regions, Source::Dds];

    /// The name of the source on the command line and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Source::Full => "f",
            Source::Regions => "regions",
            Source::Dds => "dds",
        }
    }

    /// Whether the publisher sends the anchors on the uplink, beside the low layer.
    pub(crate) fn takes_uplink(self) -> bool {
        self != Source::Full
    }
}

impl FromStr for Source {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Source> {
        let Some(found) = Source::ALL.into_iter().find(|source| source.name() == text) else {
            let names = Source::ALL.map(Source::name).join(", ");
            bail!("captured anchors do not come from {text:?}, but from one of: {names}");
        };
        Ok(found)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The settings of captured anchors; by default there are none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CapturedSettings {
    /// Bitrate of the full layer, in kbit/s; `None`: Chromium's for the size.
    pub full_kbps: Option<u32>,
    /// Share of the full layer's frames that become anchors, 0 to 1.
    pub fraction: f64,
    /// Quality of the encoded anchors, 1 to 100.
    pub quality: u8,
    /// Number of requests for regions in a second.
    pub stills_fps: f64,
    /// Maximum bitrate of all regions together, in kbit/s.
    pub stills_kbps: u32,
    /// Whether the stills' bitrate is taken from the uplink instead of added to it.
    pub within: bool,
    /// Maximum share of a picture's area that one request may name, 0 to 1.
    pub area: f64,
}

/// The path of a still from the publisher to the subscriber's browser.
#[derive(Debug, Clone, Copy)]
pub(super) struct StillPath {
    /// Delay of a still, without its transmission on the uplink.
    pub delay: Duration,
    /// Bitrate of the whole uplink, in kbit/s.
    pub uplink_kbps: f64,
}

/// The sender of a publisher's stills.
struct Sender {
    reassembler: Reassembler,
    size: Size,
    bytes: usize,
    anchors: Vec<TimedAnchor>,
}

impl Sender {
    fn new(size: Size) -> Sender {
        Sender { reassembler: Reassembler::new(), size, bytes: 0, anchors: Vec::new() }
    }

    /// Sends the payload of a frame, which is ready at a given time.
    fn send(
        &mut self,
        frame: usize,
        rtp_timestamp: u32,
        ready_at: Duration,
        payload: &[u8],
        tiled: bool,
    ) -> Result<()> {
        let size = self.size.into();
        let header = AnchorHeader {
            tiled,
            beyond_prior: true,
            stream: STREAM,
            ..AnchorHeader::new(HTJ2K, AnchorSource::Captured, rtp_timestamp, size)
        };
        let mut whole: Option<ReassembledAnchor> = None;
        for message in encode_chunks(&header, payload, MAX_CHUNK)? {
            self.bytes += message.len();
            whole = self.reassembler.push(&message)?.or(whole);
        }
        let anchor = whole
            .with_context(|| format!("the picture of frame {frame} did not come together again"))?;
        self.anchors.push(TimedAnchor { frame, ready_at, anchor });
        Ok(())
    }
}

/// How long `bytes` bytes take on an uplink of this rate.
pub(super) fn transmission(bytes: usize, kbps: f64) -> Duration {
    Duration::from_secs_f64(bytes as f64 * 8.0 / (1000.0 * kbps.max(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_unknown_ones_answered() {
        for source in Source::ALL {
            assert_eq!(source.name().parse::<Source>().unwrap(), source);
        }
        assert!("h".parse::<Source>().unwrap_err().to_string().contains("regions"));
    }
}
