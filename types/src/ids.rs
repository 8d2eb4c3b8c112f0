//! Numbers of participants, tracks and servers.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The text is not an id of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text is no id of this kind: an id is its letter and a number, such as `p7`")]
pub struct ParseIdError;

macro_rules! identity {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(s: &str) -> Result<Self, ParseIdError> {
                let digits = s.strip_prefix($prefix).ok_or(ParseIdError)?;
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(ParseIdError);
                }
                digits.parse().map($name).map_err(|_| ParseIdError)
            }
        }
    };
}

identity!(
    /// One participant. Chosen by the caller of the SFU, unique for the life of the process. Written `p7`.
    ParticipantId,
    "p"
);
identity!(
    /// One published track. Chosen by the SFU, unique for the life of the process. Written `t7`.
    TrackId,
    "t"
);

/// One server of a cluster; a new number after each start. Written in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

impl NodeId {
    /// No server, but the renderer of one: it gives renditions as another server gives its tracks.
    pub const RENDERER: NodeId = NodeId(0);
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for NodeId {
    type Err = ParseIntError;

    fn from_str(s: &str) -> Result<Self, ParseIntError> {
        u64::from_str_radix(s, 16).map(NodeId)
    }
}

/// Kind of a track.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrackKind {
    /// Opus.
    Audio,
    /// VP9, VP8, H.264 or AV1, simulcast `q`/`h`/`f` or a single encoding (then named by the size of its last key
    /// frame: up to 270 lines `q`, up to 480 `h`).
    Video,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_back_as_it_was_written() {
        assert_eq!(TrackId(7).to_string().parse(), Ok(TrackId(7)));
        assert_eq!(ParticipantId(u64::MAX).to_string().parse(), Ok(ParticipantId(u64::MAX)));
        assert_eq!(NodeId(0xab).to_string(), "00000000000000ab");
        assert_eq!("00000000000000ab".parse(), Ok(NodeId(0xab)));
    }

    #[test]
    fn anything_else_is_refused() {
        for s in ["", "t", "p1", "t+1", "t-1", "t 1", "t99999999999999999999", "é"] {
            assert_eq!(s.parse::<TrackId>(), Err(ParseIdError), "{s}");
        }
    }
}
