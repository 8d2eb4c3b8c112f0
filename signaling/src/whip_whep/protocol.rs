//! The two protocols, and their content types.

use windlass_protocol::Grant;

/// Content type of offers and answers.
pub(super) const SDP: &str = "application/sdp";
/// Content type of trickled candidates and of ICE restarts (RFC 8840 §9).
pub(super) const FRAGMENT: &str = "application/trickle-ice-sdpfrag";

/// The protocol of a session, with which its path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Protocol {
    /// WHIP: the client publishes.
    Whip,
    /// WHEP: the client subscribes.
    Whep,
}

impl Protocol {
    /// Beginning of the paths of the protocol's sessions.
    pub(super) fn path(self) -> &'static str {
        match self {
            Protocol::Whip => "whip",
            Protocol::Whep => "whep",
        }
    }

    /// Grant that a token needs for the protocol.
    pub(super) fn grant(self) -> Grant {
        match self {
            Protocol::Whip => Grant::Publish,
            Protocol::Whep => Grant::Subscribe,
        }
    }

    /// What sections of the protocol's offers do.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Protocol::Whip => "send",
            Protocol::Whep => "receive",
        }
    }

    /// Name of a participant whose token has none.
    pub(super) fn name(self) -> &'static str {
        match self {
            Protocol::Whip => "WHIP",
            Protocol::Whep => "WHEP",
        }
    }
}
