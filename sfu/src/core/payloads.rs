//! Payload types: which of a section's are forwarded, and that none stands for two codecs.
//!
//! All sections share one transport, so a number must mean the same in each of them (RFC 8843 §10.1.1); the stack
//! panics where it does not. Of what a section lists it is told the one codec that is forwarded, with what repairs or repeats it.

use std::collections::HashMap;

use crate::api::{Kind, OfferError};

/// The longest name of a codec.
const NAME_MAX: usize = 32;
/// Parameters of a codec that are told, and the longest of them.
const PARAMETERS: usize = 16;
const PARAMETER_MAX: usize = 32;
/// What is told of a codec's feedback.
const FEEDBACK: [&str; 5] = ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli"];

/// One payload type of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    pt: u8,
    /// Its name, clock rate and channels, in small letters.
    codec: String,
    /// What makes two types of one codec different ones, in small letters: the profile, what it repairs or repeats.
    meaning: String,
    parameters: Vec<(String, String)>,
}

/// What a payload type stands for, of those that the stack is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Opus.
    Opus,
    /// VP9 of profile 0.
    Vp9,
    /// Retransmissions of another.
    Repair(u8),
    /// Redundancy of another.
    Redundancy(u8),
}

/// The types of a section that the stack is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The codec's.
    pub pt: u8,
    /// That of its retransmissions (video) or redundancy (audio).
    pub second: Option<u8>,
    /// The codec's parameters, as they are written.
    pub parameters: String,
    /// Which of [`FEEDBACK`] it has.
    pub feedback: Vec<&'static str>,
}

impl Chosen {
    /// What its types stand for.
    pub fn roles(&self, kind: Kind) -> impl Iterator<Item = (u8, Role)> {
        let (first, second): (_, fn(u8) -> Role) = match kind {
            Kind::Audio => (Role::Opus, Role::Redundancy),
            Kind::Video => (Role::Vp9, Role::Repair),
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
    /// The types that an m-line lists. Lines of others are leftovers.
    pub fn read<'a>(
        listed: impl Iterator<Item = &'a str>,
        rtpmaps: impl Iterator<Item = &'a str>,
        fmtps: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<Payload>, OfferError> {
        let mut codecs: HashMap<u8, String> = HashMap::new();
        for (pt, codec) in rtpmaps.filter_map(|line| line.split_once(' ')) {
            let pt = number(pt)?;
            if codec.len() > NAME_MAX || codecs.insert(pt, name(codec)).is_some() {
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
            (1..=PARAMETER_MAX).contains(&text.len())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        let mut parameters: Vec<(String, String)> = pairs
            .map(|(key, value)| (key.trim().to_ascii_lowercase(), value.trim().to_owned()))
            .filter(|(key, value)| fits(key, "-_") && fits(value, "-_.,/+"))
            .collect();
        parameters.truncate(PARAMETERS);
        let value = |key: &str| parameters.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        let meaning = match codec.split('/').next() {
            Some("vp9") => value("profile-id").unwrap_or("0").to_owned(),
            Some("rtx") => value("apt").unwrap_or_default().to_owned(),
            Some("red") => format.trim().split('/').next().unwrap_or_default().to_owned(),
            _ => String::new(),
        };
        let meaning = meaning.trim().chars().take(PARAMETER_MAX).collect();
        Payload { pt, codec, meaning, parameters }
    }

    /// Whether it repairs or repeats another.
    fn seconds(&self, pt: u8) -> bool {
        self.meaning.parse() == Ok(pt)
    }
}

/// A codec as it is compared: one channel is what no word of channels means.
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

/// What payload types stand for in the sections of one description.
#[derive(Debug, Default)]
pub struct Payloads {
    meanings: HashMap<u8, (String, String)>,
    /// The types of Opus and VP9 in the first sections that have them: the stack keeps these.
    kept: HashMap<Kind, u8>,
}

impl Payloads {
    /// Which of a section's types the stack is told; `None` where it has no codec that is forwarded. A section that `receives`
    /// must have it by the number that the first one has.
    pub fn choose<'a>(
        &mut self,
        (kind, receives): (Kind, bool),
        payloads: &[Payload],
        feedback: impl Iterator<Item = &'a str>,
    ) -> Result<Option<Chosen>, OfferError> {
        for Payload { pt, codec, meaning, .. } in payloads {
            let meant = self.meanings.entry(*pt).or_insert((codec.clone(), meaning.clone()));
            if meant.0 != *codec || meant.1 != *meaning {
                return Err(OfferError::PayloadType { pt: *pt });
            }
        }
        let (codec, second) = match kind {
            Kind::Audio => ("opus/48000/2", "red/48000/2"),
            Kind::Video => ("vp9/90000", "rtx/90000"),
        };
        let mut fit = payloads
            .iter()
            .filter(|p| p.codec == codec && (kind == Kind::Audio || p.meaning == "0"));
        let kept = self.kept.get(&kind).copied();
        let same = fit.clone().find(|p| kept == Some(p.pt));
        let other = fit.next().filter(|_| kept.is_none() || !receives);
        let Some(first) = same.or(other) else { return Ok(None) };
        self.kept.entry(kind).or_insert(first.pt);
        let second = payloads.iter().find(|p| p.codec == second && p.seconds(first.pt));
        let said: Vec<&str> = feedback
            .filter_map(|line| line.split_once(' '))
            .filter(|(pt, _)| pt.parse() == Ok(first.pt))
            .map(|(_, what)| what.trim())
            .collect();
        let parameters = first.parameters.iter().map(|(key, value)| format!("{key}={value}"));
        Ok(Some(Chosen {
            pt: first.pt,
            second: second.map(|p| p.pt),
            parameters: parameters.collect::<Vec<_>>().join(";"),
            feedback: FEEDBACK.into_iter().filter(|what| said.contains(what)).collect(),
        }))
    }
}
