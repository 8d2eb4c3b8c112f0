//! One client's WebRTC connection, on either of two stacks.
//!
//! [`str0m`] is the server's own stack. [`webrtc_rs`] is another one, so that what both ends of str0m would get wrong
//! alike is seen.

mod address;
mod str0m;
mod traffic;
mod tunnel;
mod webrtc_rs;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use windlass_types::{Layer, VideoCodec};

pub(crate) use self::address::any_for;
use self::str0m::Str0m;
pub(super) use self::traffic::{Arrival, LinkEvent, Outgoing};
use self::webrtc_rs::WebrtcRs;
use super::access::Access;
use super::args::Stack;
use super::signal::ServerUrl;
use super::tally::Totals;

/// How long a stack with tasks of its own may be left alone.
const SELDOM: Duration = Duration::from_hours(1);

/// The WebRTC connection of one client.
pub(super) enum Link {
    /// The connection on str0m.
    Str0m(Box<Str0m>),
    /// The connection on webrtc-rs.
    WebrtcRs(Box<WebrtcRs>),
}

/// Does the same with whatever stack the connection has.
macro_rules! either {
    ($self:expr, $link:ident => $done:expr) => {
        match $self {
            Link::Str0m($link) => $done,
            Link::WebrtcRs($link) => $done,
        }
    };
}

/// Does the same with whatever stack the connection has, where webrtc-rs answers later.
macro_rules! either_later {
    ($self:expr, $link:ident => $done:expr) => {
        match $self {
            Link::Str0m($link) => $done,
            Link::WebrtcRs($link) => $done.await,
        }
    };
}

impl Link {
    /// A connection before its first offer, over the machine's own network or an emulated link.
    pub(super) async fn new(
        stack: Stack,
        codec: VideoCodec,
        server: &ServerUrl,
        access: Option<Access>,
    ) -> Result<Link> {
        match stack {
            Stack::Str0m => Ok(Link::Str0m(Box::new(Str0m::new(codec, access)))),
            Stack::WebrtcRs => {
                Ok(Link::WebrtcRs(Box::new(WebrtcRs::new(&server.authority, access).await?)))
            }
        }
    }

    /// Offers to send video in these layers, or without any in one encoding that has no name. With `channel`, data
    /// channels get a place. Returns the session description and the camera's section.
    pub(super) async fn offer_camera(
        &mut self,
        layers: &[Layer],
        channel: bool,
    ) -> Result<(String, String)> {
        either_later!(self, link => link.offer_camera(layers, channel))
    }

    /// Offers to receive so many more videos. Returns the session description and the new sections.
    pub(super) async fn offer_to_receive(
        &mut self,
        more: usize,
        channel: bool,
    ) -> Result<(String, Vec<String>)> {
        either_later!(self, link => link.offer_to_receive(more, channel))
    }

    /// Takes the server's answer. The first one names the address of the server's media.
    pub(super) async fn accept(&mut self, answer: &str) -> Result<()> {
        either!(self, link => link.accept(answer).await)
    }

    /// Answers the offer of a server.
    pub(super) async fn answer(&mut self, offer: &str) -> Result<String> {
        match self {
            Link::Str0m(link) => link.answer(offer).await,
            Link::WebrtcRs(_) => bail!("the client on webrtc-rs only offers"),
        }
    }

    /// When the connection must be run next.
    pub(super) fn due(&self) -> Instant {
        match self {
            Link::Str0m(link) => link.due(),
            // It has tasks of its own.
            Link::WebrtcRs(_) => Instant::now() + SELDOM,
        }
    }

    /// Waits until there is something to do; before the first answer it never returns. The future may be dropped
    /// without loss.
    pub(super) async fn readable(&mut self) {
        either!(self, link => link.readable().await);
    }

    /// Lets time pass. Events are added to `events`.
    pub(super) fn run(&mut self, events: &mut Vec<LinkEvent>) -> Result<()> {
        either!(self, link => link.run(events))
    }

    /// Whether media can flow.
    pub(super) fn connected(&self) -> bool {
        either!(self, link => link.connected)
    }

    /// Whether the connection was lost.
    pub(super) fn lost(&self) -> bool {
        either!(self, link => link.lost)
    }

    /// Sends a frame of a layer, or of the only encoding.
    pub(super) async fn send(&mut self, layer: Option<Layer>, frame: Outgoing) -> Result<()> {
        either_later!(self, link => link.send(layer, frame))
    }

    /// Asks for a key frame of what a section receives. Returns whether it receives anything yet.
    pub(super) async fn ask_for_key_frame(&mut self, mid: &str) -> bool {
        either_later!(self, link => link.ask_for_key_frame(mid))
    }

    /// Brings the totals of emulated links and of repairs up to date.
    pub(super) fn tell(&mut self, now: Instant, totals: &mut Totals) {
        either!(self, link => link.tell(now, totals));
    }

    /// Ends the connection without a goodbye, and adds what it carried.
    pub(super) fn close(self, totals: &mut Totals) {
        either!(self, link => link.close(totals));
    }
}
