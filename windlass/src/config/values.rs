//! Values of options that are more than a number or a text: each is read from its name or notation.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::Deserialize;
use windlass_signaling::{Network, NoNetwork};
use windlass_types::{AnchorPolicy, UnknownPolicy};

/// An address to advertise: `IP` or `IP:PORT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Advertise(pub SocketAddr);

impl FromStr for Advertise {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let addr = text.parse().or_else(|_| text.parse().map(|ip: IpAddr| SocketAddr::new(ip, 0)));
        match addr {
            Ok(addr) if !can_be_sent_to(addr.ip()) => {
                Err(format!("`{text}` is no address that a browser can send to"))
            }
            Ok(addr) => Ok(Advertise(addr)),
            Err(_) => Err(format!(
                "`{text}` is neither IP nor IP:PORT (of IPv6 [IP]:PORT); names are not looked up, since browsers \
                 are told addresses"
            )),
        }
    }
}

/// Whether an ICE candidate may have it.
fn can_be_sent_to(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            !ip.is_link_local() && !ip.is_broadcast() && !ip.is_multicast() && !ip.is_unspecified()
        }
        IpAddr::V6(ip) => {
            !ip.is_unicast_link_local()
                && !ip.is_multicast()
                && !ip.is_unspecified()
                && ip.to_ipv4_mapped().is_none()
        }
    }
}

impl TryFrom<String> for Advertise {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// The largest picture of a layer: `WxH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct LayerSize(u32, u32);

impl LayerSize {
    /// Its pixels.
    pub fn pixels(self) -> u32 {
        self.0 * self.1
    }
}

impl FromStr for LayerSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides =
            text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
        match sides {
            Some((w, h))
                if (64..=1920).contains(&w) && (64..=1920).contains(&h) && w * h <= 1920 * 1080 =>
            {
                Ok(LayerSize(w, h))
            }
            _ => Err(format!("`{text}` is no size like 960x540, from 64x64 to 1920x1080")),
        }
    }
}

impl TryFrom<String> for LayerSize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// How anchors are chosen in a room: `ROOM=POLICY`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct RoomPolicy {
    /// The room's name.
    pub room: String,
    /// How its anchors are chosen.
    pub policy: AnchorPolicy,
}

impl FromStr for RoomPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A room's name may have the sign in it, a policy's has not.
        let (room, policy) = text.rsplit_once('=').ok_or("it must be ROOM=POLICY")?;
        let policy = policy.parse().map_err(|e: UnknownPolicy| e.to_string())?;
        if room.is_empty() {
            return Err("the room has no name".to_owned());
        }
        Ok(RoomPolicy { room: room.to_owned(), policy })
    }
}

impl TryFrom<String> for RoomPolicy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A network of proxies: `IP` or `IP/PREFIX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Proxies(pub Network);

impl FromStr for Proxies {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        text.parse().map(Proxies)
    }
}

impl TryFrom<String> for Proxies {
    type Error = NoNetwork;

    fn try_from(text: String) -> Result<Self, NoNetwork> {
        text.parse()
    }
}

/// A choice of the enhancer's, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String", bound = "T: FromStr<Err = String>")]
pub struct Named<T>(pub T);

impl<T: FromStr<Err = String>> FromStr for Named<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Named)
    }
}

impl<T: FromStr<Err = String>> TryFrom<String> for Named<T> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
