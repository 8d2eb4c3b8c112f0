//! Payload types: which ones of a section are forwarded, and a check that none stands for two codecs.
//!
//! All sections share one transport, so a number must mean the same in each of them (RFC 8843 §10.1.1); the stack
//! panics if it does not. The stack reads only the forwarded codec of each section, with its retransmission or
//! redundancy type.

use std::collections::HashMap;

use windlass_types::VideoCodec;

use crate::api::{OfferError, TrackKind};
use crate::core::connection::stack::H264_PROFILES;

/// Longest name of a codec, in bytes.
const MAX_NAME: usize = 32;
/// Maximum number of format parameters of a codec that are kept.
const MAX_PARAMETERS: usize = 16;
/// Longest key or value of a format parameter that is kept, in bytes.
const MAX_PARAMETER_BYTES: usize = 32;
/// Maximum number of codecs that the sections of an offer have beyond their first ones: sixteen sections may have all.
const MAX_FURTHER_CODECS: usize = 16 * (VideoCodec::ALL.len() - 1);
/// RTCP feedback types that the stack reads.
const FEEDBACK: [&str; 5] = ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli"];

/// One payload type of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Payload {
    pt: u8,
    /// Name, clock rate and channels, in lower case.
    codec: String,
    /// What distinguishes types of one codec, in lower case: the profile, or the payload type that is repaired or
    /// repeated.
    meaning: String,
    parameters: Vec<(String, String)>,
}

/// Meaning of a payload type in the rewritten offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Opus.
    Opus,
    /// A video codec.
    Video(VideoCodec),
    /// Retransmissions (RTX) of the payload type named.
    Repair(u8),
    /// Redundancy (RED) of the payload type named.
    Redundancy(u8),
}

/// The payload types of a codec in a section of the rewritten offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// The codec of video; `None`: Opus.
    pub codec: Option<VideoCodec>,
    /// Payload type of the codec.
    pub pt: u8,
    /// Payload type of its retransmissions (video) or redundancy (audio).
    pub second: Option<u8>,
    /// Format parameters of the codec, as in `a=fmtp`.
    pub parameters: String,
    /// The RTCP feedback of [`FEEDBACK`] that the offer has for the codec.
    pub feedback: Vec<&'static str>,
}

impl Chosen {
    /// Meaning of each payload type.
    pub(crate) fn roles(&self) -> impl Iterator<Item = (u8, Role)> {
        let (first, second): (_, fn(u8) -> Role) = match self.codec {
            None => (Role::Opus, Role::Redundancy),
            Some(codec) => (Role::Video(codec), Role::Repair),
        };
        let second = self.second.map(|pt| (pt, second(self.pt)));
        std::iter::once((self.pt, first)).chain(second)
    }
}

fn bad(why: impl Into<String>) -> OfferError {
    OfferError::BadSdp(why.into())
}

fn number(text: &str) -> Result<u8, OfferError> {
    let pt = text.parse().ok().filter(|pt| *pt <= 127);
    pt.ok_or_else(|| bad("a payload type is not a number up to 127"))
}

impl Payload {
    /// Reads the types that an m-line lists; `a=rtpmap` and `a=fmtp` of other types are ignored.
    pub(crate) fn read<'a>(
        listed: impl Iterator<Item = &'a str>,
        rtpmaps: impl Iterator<Item = &'a str>,
        fmtps: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<Payload>, OfferError> {
        let mut codecs: HashMap<u8, String> = HashMap::new();
        for (pt, codec) in rtpmaps.filter_map(|line| line.split_once(' ')) {
            let pt = number(pt)?;
            if codec.len() > MAX_NAME || codecs.insert(pt, name(codec)).is_some() {
                return Err(OfferError::PayloadType { pt });
            }
        }
        let mut formats: HashMap<u8, &str> = HashMap::new();
        for (pt, format) in fmtps.filter_map(|line| line.split_once(' ')) {
            let pt = number(pt)?;
            if formats.insert(pt, format).is_some() {
                return Err(OfferError::PayloadType { pt });
            }
        }
        let mut payloads = Vec::new();
        for pt in listed {
            let pt = number(pt)?;
            if payloads.iter().any(|p: &Payload| p.pt == pt) {
                return Err(OfferError::PayloadType { pt });
            }
            let codec = codecs.remove(&pt).or_else(|| fixed(pt).map(str::to_owned));
            let codec = codec.ok_or_else(|| bad(format!("payload type {pt} has no `a=rtpmap`")))?;
            payloads.push(Payload::new(pt, codec, formats.get(&pt).copied().unwrap_or_default()));
        }
        if payloads.is_empty() {
            return Err(bad("an m-line lists no payload type"));
        }
        Ok(payloads)
    }

    fn new(pt: u8, codec: String, format: &str) -> Payload {
        let pairs = format.split(';').filter_map(|pair| pair.trim().split_once('='));
        let fits = |text: &str, more: &str| {
            (1..=MAX_PARAMETER_BYTES).contains(&text.len())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        let mut parameters: Vec<(String, String)> = pairs
            .map(|(key, value)| (key.trim().to_ascii_lowercase(), value.trim().to_owned()))
            .filter(|(key, value)| fits(key, "-_") && fits(value, "-_.,/+"))
            .collect();
        parameters.truncate(MAX_PARAMETERS);
        let value = |key: &str| parameters.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        let meaning = match codec.split('/').next() {
            Some("vp9") => value("profile-id").unwrap_or("0").to_owned(),
            Some("av1") => value("profile").unwrap_or("0").to_owned(),
            Some("h264") => {
                let profile = value("profile-level-id").unwrap_or("42000a").to_ascii_lowercase();
                format!("{} {profile}", value("packetization-mode").unwrap_or("0"))
            }
            Some("rtx") => value("apt").unwrap_or_default().to_owned(),
            Some("red") => format.trim().split('/').next().unwrap_or_default().to_owned(),
            _ => String::new(),
        };
        let meaning = meaning.trim().chars().take(MAX_PARAMETER_BYTES).collect();
        Payload { pt, codec, meaning, parameters }
    }

    /// Rank of the type among those of a forwarded video codec, the best first; `None` if it is of no such codec.
    fn rank(&self, codec: VideoCodec) -> Option<u8> {
        let fits = match codec {
            VideoCodec::Vp9 => self.codec == "vp9/90000" && self.meaning == "0",
            VideoCodec::Vp8 => self.codec == "vp8/90000",
            VideoCodec::Av1 => self.codec == "av1/90000" && self.meaning == "0",
            VideoCodec::H264 => return self.h264_profile().map(|(rank, _)| rank),
        };
        fits.then_some(0)
    }

    /// The profile and level that the stack knows of H.264, behind their rank; `None` for other profiles and
    /// packetization modes. Constrained baseline comes first: every decoder has it.
    fn h264_profile(&self) -> Option<(u8, u32)> {
        let profile = self.meaning.strip_prefix("1 ").filter(|_| self.codec == "h264/90000")?;
        let number = u32::from_str_radix(profile, 16).ok().filter(|_| profile.len() == 6)?;
        // Baseline; of its constraints the second makes it the constrained one.
        let is_constrained = number & 0x40_00 != 0;
        let rank = u8::from(!is_constrained);
        (number >> 16 == 0x42).then_some((rank, H264_PROFILES[usize::from(rank)]))
    }

    /// The format parameters that the stack reads: those that its codec must match as the stack has them.
    fn parameters(&self, codec: Option<VideoCodec>) -> String {
        match codec {
            Some(VideoCodec::H264) => {
                let profile = self.h264_profile().map_or(H264_PROFILES[0], |(_, profile)| profile);
                format!(
                    "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id={profile:06x}"
                )
            }
            Some(VideoCodec::Av1) => "level-idx=5;profile=0;tier=0".to_owned(),
            Some(VideoCodec::Vp8) => String::new(),
            Some(VideoCodec::Vp9) | None => {
                let pairs = self.parameters.iter().map(|(key, value)| format!("{key}={value}"));
                pairs.collect::<Vec<_>>().join(";")
            }
        }
    }

    /// Whether the type repairs or repeats `pt`.
    fn seconds(&self, pt: u8) -> bool {
        self.meaning.parse() == Ok(pt)
    }
}

/// Name of a codec for comparison: one channel is the default, and left out.
fn name(codec: &str) -> String {
    let codec = codec.trim().to_ascii_lowercase();
    codec.strip_suffix("/1").unwrap_or(&codec).to_owned()
}

/// Types that need no `a=rtpmap` (RFC 3551).
fn fixed(pt: u8) -> Option<&'static str> {
    match pt {
        0 => Some("pcmu/8000"),
        8 => Some("pcma/8000"),
        9 => Some("g722/8000"),
        13 => Some("cn/8000"),
        _ => None,
    }
}

/// Meanings of the payload types of one description.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    meanings: HashMap<u8, (String, String)>,
    /// Payload types of each codec of video, and of Opus (`None`), in the first sections that have them: the stack
    /// keeps these.
    first: HashMap<Option<VideoCodec>, u8>,
    /// Number of codecs that sections have beyond their first ones.
    further: usize,
}

impl Payloads {
    /// Chooses the payload types of a section for the stack, a codec after the other; none without a forwarded codec.
    ///
    /// A section that `receives` must have each codec's payload type of the first section, and may carry a track of any
    /// codec later. So it has all of them, up to [`MAX_FURTHER_CODECS`] in the whole offer: the stack's work grows with
    /// them. Others have the preferred codec alone.
    pub(crate) fn choose<'a>(
        &mut self,
        kind: TrackKind,
        receives: bool,
        payloads: &[Payload],
        feedback: &(impl Iterator<Item = &'a str> + Clone),
    ) -> Result<Vec<Chosen>, OfferError> {
        for Payload { pt, codec, meaning, .. } in payloads {
            let meant = self.meanings.entry(*pt).or_insert((codec.clone(), meaning.clone()));
            if meant.0 != *codec || meant.1 != *meaning {
                return Err(OfferError::PayloadType { pt: *pt });
            }
        }
        let codecs: Vec<Option<VideoCodec>> = match kind {
            TrackKind::Audio => vec![None],
            TrackKind::Video => VideoCodec::ALL.into_iter().map(Some).collect(),
        };
        let mut all = Vec::new();
        for codec in codecs {
            let is_further = !all.is_empty();
            if is_further && (!receives || self.further == MAX_FURTHER_CODECS) {
                break;
            }
            if let Some(chosen) = self.choose_codec(codec, receives, payloads, feedback.clone()) {
                self.further += usize::from(is_further);
                all.push(chosen);
            }
        }
        Ok(all)
    }

    fn choose_codec<'a>(
        &mut self,
        codec: Option<VideoCodec>,
        receives: bool,
        payloads: &[Payload],
        feedback: impl Iterator<Item = &'a str>,
    ) -> Option<Chosen> {
        let rank = |p: &Payload| match codec {
            // GStreamer's `whepsrc` leaves out the channels.
            None => matches!(&*p.codec, "opus/48000/2" | "opus/48000").then_some(0),
            Some(codec) => p.rank(codec),
        };
        let fit = || payloads.iter().filter_map(|p| Some((rank(p)?, p)));
        let known = self.first.get(&codec).copied();
        let same = fit().map(|(_, p)| p).find(|p| known == Some(p.pt));
        let other = fit().min_by_key(|(rank, _)| *rank).map(|(_, p)| p);
        let first = same.or(other.filter(|_| known.is_none() || !receives))?;
        self.first.entry(codec).or_insert(first.pt);
        let second = if codec.is_some() { "rtx/90000" } else { "red/48000/2" };
        let second = payloads.iter().find(|p| p.codec == second && p.seconds(first.pt));
        let listed: Vec<&str> = feedback
            .filter_map(|line| line.split_once(' '))
            .filter(|(pt, _)| pt.parse() == Ok(first.pt))
            .map(|(_, what)| what.trim())
            .collect();
        Some(Chosen {
            codec,
            pt: first.pt,
            second: second.map(|p| p.pt),
            parameters: first.parameters(codec),
            feedback: FEEDBACK.into_iter().filter(|what| listed.contains(what)).collect(),
        })
    }
}
