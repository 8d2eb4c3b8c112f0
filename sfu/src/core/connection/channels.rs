//! The data channels that a client opens.

use str0m::channel::ChannelId;

use crate::core::publisher::stills;

/// Label of a channel that clients open so that their offers have an `m=application` section. Its messages are
/// acknowledged, which tells a client that its path works, and ignored.
const CONTROL: &str = "ctl";
/// Maximum number of data channels that a client may open during its connection.
pub(crate) const MAX_CHANNELS: usize = 8;

/// The channels of one client.
#[derive(Debug, Default)]
pub(crate) struct ClientChannels {
    region: Option<ChannelId>,
    control: Option<ChannelId>,
    /// Channels that the client has opened so far.
    opened: usize,
}

impl ClientChannels {
    /// Takes a channel that the client has opened; returns whether it stays open.
    pub(crate) fn on_open(&mut self, id: ChannelId, label: &str) -> bool {
        self.opened += 1;
        let place = match label {
            stills::CHANNEL => &mut self.region,
            CONTROL => &mut self.control,
            _ => return false,
        };
        if place.is_some() {
            return false;
        }
        *place = Some(id);
        true
    }

    /// Forgets a channel that was closed.
    pub(crate) fn on_close(&mut self, id: ChannelId) {
        for place in [&mut self.region, &mut self.control] {
            place.take_if(|open| *open == id);
        }
    }

    /// Whether a channel is the one for answers to region requests.
    pub(crate) fn is_region(&self, id: ChannelId) -> bool {
        self.region == Some(id)
    }

    /// Whether the client answers region requests.
    pub(crate) fn has_region(&self) -> bool {
        self.region.is_some()
    }

    /// Whether the client has opened more channels than it may.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.opened > MAX_CHANNELS
    }
}
