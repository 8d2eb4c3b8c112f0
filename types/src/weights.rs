//! Weights messages: a stream's own weights of a frame network, as they travel on the data channel `windlass-weights`.
//!
//! A message is one update, big endian. The channel is ordered and reliable. The newest update of a network replaces
//! those before it.
//!
//! | at | field | |
//! | --- | --- | --- |
//! | 0 | version | u8, 1 |
//! | 1 | kind | u8, 0: back to the built-in weights, the message ends after 12 bytes; 1: own weights |
//! | 2 | network | u8, its tier: 0 `xxs`, 1 `xs` |
//! | 3 | scale | u8, 2 to 4 |
//! | 4 | stream | u32 |
//! | 8 | epoch | u16, the subscriber's |
//! | 10 | 0 | u16 |
//! | 12 | width | u16, of the low pictures |
//! | 14 | height | u16 |
//! | 16 | hash | u32, of the resulting last convolution |
//! | 20 | scene | [`SCENE`] bytes: the look of the pictures that they were proved on |
//! | 44 | difference | to the built-in last convolution, up to [`MAX_DIFFERENCE`] bytes (`network/difference`) |

use bytes::Bytes;

use crate::{SCALES, Size};

/// The scale at which streams have own weights. At scale 2 they gain nothing.
pub const SCALE: u16 = 4;
/// The network that streams have own weights of: `xs` at [`SCALE`].
pub const OWN: NetworkId = NetworkId { tier: 1, scale: SCALE as u8 };
/// Label of the data channel.
pub const CHANNEL: &str = "windlass-weights";
/// The version this code speaks.
pub const VERSION: u8 = 1;
/// Bytes of a scene (`windlass_network::Scene`).
pub const SCENE: usize = 24;
/// Maximum bytes of a difference.
pub const MAX_DIFFERENCE: usize = 4096;
/// Bytes of a message that takes weights back.
const HEAD: usize = 12;
/// Bytes of a message before its difference.
const WHOLE_HEAD: usize = HEAD + 8 + SCENE;

/// Names a frame network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NetworkId {
    /// Its place among the tiers, the cheapest first.
    pub tier: u8,
    /// HR size over LR size.
    pub scale: u8,
}

/// A network's own last convolution, still coded, and what pictures it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnWeights {
    /// Size of the low pictures.
    pub size: Size,
    /// Hash of the last convolution that results.
    pub hash: u32,
    /// What the pictures look like that they were proved on.
    pub scene: [u8; SCENE],
    /// Its difference to the built-in one.
    pub difference: Bytes,
}

/// One update, as a subscriber gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightsMessage {
    /// The SFU's stream id, as signalling tells it.
    pub stream: u32,
    /// The span of one layer and one resolution in the subscriber's timeline.
    pub epoch: u16,
    /// Which network it is about.
    pub network: NetworkId,
    /// The weights; `None`: back to the built-in ones.
    pub own: Option<OwnWeights>,
}

/// Why a message is no update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WeightsMessageError {
    /// Another version than [`VERSION`].
    #[error("version {0} is not known")]
    Version(u8),
    /// Too short or too long, or a field that this version does not allow.
    #[error("the message is no update of weights")]
    Malformed,
}

impl WeightsMessage {
    /// Reads a message; its difference is copied.
    ///
    /// # Errors
    ///
    /// Fails if it is of another version, too short or too long, or has a field that this version does not allow.
    pub fn parse(message: &[u8]) -> Result<Self, WeightsMessageError> {
        let malformed = WeightsMessageError::Malformed;
        match message.first() {
            Some(&VERSION) => {}
            Some(&other) => return Err(WeightsMessageError::Version(other)),
            None => return Err(malformed),
        }
        let (head, rest) = message.split_first_chunk::<HEAD>().ok_or(malformed)?;
        let network = NetworkId { tier: head[2], scale: head[3] };
        if !SCALES.contains(&network.scale.into()) || head[10..] != [0, 0] {
            return Err(malformed);
        }
        let own = match (head[1], rest) {
            (0, []) => None,
            (1, rest) => Some(OwnWeights::parse(rest).ok_or(malformed)?),
            _ => return Err(malformed),
        };
        let stream = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        Ok(Self { stream, epoch: u16::from_be_bytes([head[8], head[9]]), network, own })
    }

    /// The message's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = self.own.as_ref().map_or(HEAD, |own| WHOLE_HEAD + own.difference.len());
        let mut out = Vec::with_capacity(length);
        out.extend([VERSION, self.own.is_some().into(), self.network.tier, self.network.scale]);
        out.extend(self.stream.to_be_bytes());
        out.extend(self.epoch.to_be_bytes());
        out.extend([0, 0]);
        if let Some(own) = &self.own {
            out.extend(own.size.width.to_be_bytes());
            out.extend(own.size.height.to_be_bytes());
            out.extend(own.hash.to_be_bytes());
            out.extend(own.scene);
            out.extend(&own.difference);
        }
        out
    }
}

impl OwnWeights {
    /// Reads what follows the first [`HEAD`] bytes.
    fn parse(rest: &[u8]) -> Option<Self> {
        let (head, rest) = rest.split_first_chunk::<8>()?;
        let (scene, difference) = rest.split_first_chunk::<SCENE>()?;
        let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let size = Size::new(u16_at(0), u16_at(2));
        let sound =
            size.width > 0 && size.height > 0 && (1..=MAX_DIFFERENCE).contains(&difference.len());
        sound.then(|| Self {
            size,
            hash: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
            scene: *scene,
            difference: Bytes::copy_from_slice(difference),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> WeightsMessage {
        let own = OwnWeights {
            size: Size::new(320, 180),
            hash: 0xdead_beef,
            scene: [7; SCENE],
            difference: Bytes::from_static(&[1, 2, 3]),
        };
        WeightsMessage {
            stream: 70_000,
            epoch: 259,
            network: NetworkId { tier: 1, scale: 2 },
            own: Some(own),
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let given = message();
        assert_eq!(WeightsMessage::parse(&given.to_bytes()).as_ref(), Ok(&given));
        let back = WeightsMessage { own: None, ..given };
        assert_eq!(back.to_bytes().len(), HEAD);
        assert_eq!(WeightsMessage::parse(&back.to_bytes()), Ok(back));
    }

    #[test]
    fn what_is_no_update_is_refused() {
        let refused = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = message().to_bytes();
            change(&mut bytes);
            WeightsMessage::parse(&bytes).unwrap_err()
        };
        assert_eq!(refused(&|b| b[0] = 9), WeightsMessageError::Version(9));
        let malformed: [&dyn Fn(&mut Vec<u8>); 10] = [
            &|b| b.clear(),
            &|b| b.truncate(HEAD - 1),
            &|b| b.truncate(WHOLE_HEAD),
            &|b| b.truncate(HEAD),
            &|b| b.resize(WHOLE_HEAD + MAX_DIFFERENCE + 1, 0),
            &|b| b[1] = 2,
            &|b| b[1] = 0,
            &|b| b[3] = 5,
            &|b| b[12..14].fill(0),
            &|b| b[11] = 1,
        ];
        for (n, change) in malformed.into_iter().enumerate() {
            assert_eq!(refused(change), WeightsMessageError::Malformed, "{n}");
        }
    }
}
