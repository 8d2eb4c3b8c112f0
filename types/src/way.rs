//! How a viewer's picture of a track is made of its layer, and why: what the viewer's machine runs, and what the server
//! gives it.

use serde::{Deserialize, Serialize};

/// The network that a browser runs on every frame of a track.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrameNetwork {
    /// No network: the browser shows what it has rebuilt, or the native picture.
    #[default]
    None,
    /// The network `xxs`, the cheapest one.
    Xxs,
    /// The network `xs`: the next more expensive one after `xxs`.
    Xs,
    /// A network that this server does not know.
    #[serde(other)]
    Other,
}

/// Why a browser runs no network on the frames of a track.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoNetwork {
    /// The browser may not run one: by the application, on battery, or in a page that nobody sees.
    Off,
    /// The viewer's machine has no time for a network.
    Slow,
    /// The browser runs no network yet, but may run one soon.
    #[default]
    Trying,
    /// There is no network for the size of the pictures, or they fill their place as they are.
    Size,
    /// A reason that this server does not know.
    #[serde(other)]
    Other,
}

/// How a viewer's picture of a track is made.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The layer as it is, not enlarged.
    Layer,
    /// The layer, enlarged by built-in filters.
    Filters,
    /// Filters, and anchors carried by dense flow.
    Flow,
    /// Filters, and a network on every frame.
    Network,
    /// Filters, anchors carried by dense flow, and a network on every frame.
    Both,
}

/// Why a viewer's picture is made in its [`Way`]: without anchors why there are none, with anchors why it needs them.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WayReason {
    /// The layer fills the place where it is shown.
    Fills,
    /// No anchors can be had of the layer.
    Unavailable,
    /// The viewer wants no anchors.
    Limit,
    /// The bandwidth does not suffice for anchors.
    Bandwidth,
    /// Anchors are made of another layer.
    OtherLayer,
    /// Beside the viewer's network anchors would add too little for their bytes.
    LittleGain,
    /// Anchors, as the viewer may not run a network.
    NetworkOff,
    /// Anchors, as the viewer's machine has no time for a network.
    NetworkSlow,
    /// Anchors, as no network of the viewer's has run for long yet.
    NetworkTrying,
    /// Anchors, as there is no network for the size shown.
    NetworkSize,
    /// Anchors are worth their bytes beside the viewer's network too.
    Gain,
}

impl Way {
    /// All ways, the simplest first.
    pub const ALL: [Way; 5] = [Way::Layer, Way::Filters, Way::Flow, Way::Network, Way::Both];

    /// The way's name in messages and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Way::Layer => "layer",
            Way::Filters => "filters",
            Way::Flow => "flow",
            Way::Network => "network",
            Way::Both => "both",
        }
    }
}

impl WayReason {
    /// All reasons for which a picture is made in its way.
    pub const ALL: [WayReason; 11] = [
        WayReason::Fills,
        WayReason::Unavailable,
        WayReason::Limit,
        WayReason::Bandwidth,
        WayReason::OtherLayer,
        WayReason::LittleGain,
        WayReason::NetworkOff,
        WayReason::NetworkSlow,
        WayReason::NetworkTrying,
        WayReason::NetworkSize,
        WayReason::Gain,
    ];

    /// The reason's name in messages and metrics.
    pub fn name(self) -> &'static str {
        match self {
            WayReason::Fills => "fills",
            WayReason::Unavailable => "unavailable",
            WayReason::Limit => "limit",
            WayReason::Bandwidth => "bandwidth",
            WayReason::OtherLayer => "other_layer",
            WayReason::LittleGain => "little_gain",
            WayReason::NetworkOff => "network_off",
            WayReason::NetworkSlow => "network_slow",
            WayReason::NetworkTrying => "network_trying",
            WayReason::NetworkSize => "network_size",
            WayReason::Gain => "gain",
        }
    }
}

impl From<NoNetwork> for WayReason {
    fn from(why: NoNetwork) -> WayReason {
        match why {
            NoNetwork::Off => WayReason::NetworkOff,
            NoNetwork::Slow => WayReason::NetworkSlow,
            NoNetwork::Trying | NoNetwork::Other => WayReason::NetworkTrying,
            NoNetwork::Size => WayReason::NetworkSize,
        }
    }
}
