//! One participant's connection: the WebRTC stack with what limits its input, what was negotiated, and when it has
//! work.

use std::net::SocketAddr;
use std::time::Instant;

use str0m::change::{SdpAnswer, SdpOffer};
use str0m::media::{KeyframeRequestKind, Mid, Rid};
use str0m::net::{DatagramRecv, Receive};
use str0m::{Input, Rtc, RtcError};
use windlass_types::Layer;

use super::channels::ClientChannels;
use super::cpu_limit::CpuLimit;
use super::packet_limit::PacketLimit;
use super::srtp::RtcpGuard;
use super::stack::{self, Stack};
use super::stand_in::{self, StandIn};
use crate::api::ParticipantId;
use crate::config::SfuConfig;
use crate::core::fault_injection;
use crate::core::offer::negotiated::Negotiated;
use crate::core::routing::addresses::{LocalAddrs, RemoteAddr};
use crate::core::routing::paths::Paths;
use crate::core::wakes::{Wake, Wakes};

/// A participant's connection.
pub(crate) struct Link {
    id: ParticipantId,
    /// Whether the client sends and plays media alone ([`crate::JoinOptions::media_only`]).
    pub media_only: bool,
    /// Stands in for the checks of a client that sends media alone, and perhaps no checks.
    pub stand_in: StandIn,
    /// Name of the participant's room, for fault injection.
    room: String,
    /// The connection in the stack; there is none before the first offer.
    pub stack: Stack,
    /// When the connection has work to do.
    pub wake: Wake,
    /// Limits the connection's RTCP.
    pub rtcp_guard: RtcpGuard,
    /// Limits the CPU time of the connection's input.
    pub cpu_limit: CpuLimit,
    /// Limits the packets that the client publishes.
    pub packet_limit: PacketLimit,
    /// What the connection's offers have negotiated.
    pub negotiated: Negotiated,
    /// Data channels that the client has opened.
    pub channels: ClientChannels,
    /// ICE credentials and addresses of the client.
    pub paths: Paths,
    /// Whether the connection is up (ICE and DTLS).
    pub connected: bool,
    /// Why the stack last refused a datagram before the connection was up. It may be why it never is.
    pub refused: Option<RtcError>,
    /// Time by which the first offer must have come; after that, time by which the connection must be up.
    pub connect_deadline: Instant,
    /// When the last offer or datagram came; `None` before the first offer.
    pub last_heard: Option<Instant>,
}

impl Link {
    /// A participant's link before its first offer.
    pub(crate) fn new(
        id: ParticipantId,
        room: &str,
        wakes: Wakes,
        now: Instant,
        connect_deadline: Instant,
    ) -> Link {
        Link {
            id,
            media_only: false,
            stand_in: StandIn::default(),
            room: room.to_owned(),
            stack: Stack::default(),
            wake: Wake::new(id, wakes, now),
            rtcp_guard: RtcpGuard::default(),
            cpu_limit: CpuLimit::default(),
            packet_limit: PacketLimit::default(),
            negotiated: Negotiated::default(),
            channels: ClientChannels::default(),
            paths: Paths::default(),
            connected: false,
            refused: None,
            connect_deadline,
            last_heard: None,
        }
    }

    /// Calls the stack; `None` without a connection, or after a panic.
    pub(crate) fn call<T>(&mut self, work: impl FnOnce(&mut Rtc) -> T) -> Option<T> {
        self.stack.call(&mut self.wake, work)
    }

    /// Passes an offer to the stack, which makes the connection for the first one. Returns the answer and its ICE user
    /// name fragment; `None` if the stack panicked.
    pub(crate) fn accept(
        &mut self,
        offer: SdpOffer,
        config: &SfuConfig,
        locals: &LocalAddrs,
        now: Instant,
    ) -> Option<Result<(SdpAnswer, String), RtcError>> {
        let media_only = self.media_only;
        self.stack.begin(|| stack::connection(config, locals, media_only, now));
        self.stack.call(&mut self.wake, |rtc| {
            fault_injection::panic("offer", &self.room);
            let answer = rtc.sdp_api().accept_offer(offer)?;
            Ok((answer, rtc.direct_api().local_ice_credentials().ufrag))
        })
    }

    /// Requests a key frame of one layer from the client: of the encoding with its rid, or of the only one.
    pub(crate) fn request_key_frame(&mut self, mid: Mid, layer: Layer) -> bool {
        let rid = Rid::from(layer.rid());
        let sent = self.call(|rtc| {
            let mut api = rtc.direct_api();
            let rid = Some(rid).filter(|rid| api.stream_rx_by_mid(mid, Some(*rid)).is_some());
            let stream = api.stream_rx_by_mid(mid, rid)?;
            stream.request_keyframe(KeyframeRequestKind::Pli);
            Some(())
        });
        let sent = sent.flatten().is_some();
        if sent {
            self.wake.touch();
        }
        sent
    }

    /// Takes a datagram.
    pub(crate) fn receive(
        &mut self,
        arrival: Instant,
        data: &[u8],
        input: Input,
    ) -> Result<(), RtcError> {
        self.wake.touch();
        self.last_heard = self.last_heard.max(Some(arrival));
        let (stack, wake, room) = (&mut self.stack, &mut self.wake, &self.room);
        let taken = self.rtcp_guard.guard(arrival, data, || {
            stack.call(wake, |rtc| {
                fault_injection::panic("packet", room);
                rtc.handle_input(input)
            })
        });
        taken.flatten().unwrap_or(Ok(()))
    }

    /// Counts an authenticated datagram as a check, where the client may send none. Returns whether the stack was given
    /// one.
    pub(crate) fn stand_in_for_check(
        &mut self,
        now: Instant,
        source: RemoteAddr,
        destination: SocketAddr,
    ) -> bool {
        if !self.media_only || !self.stand_in.is_due(now) {
            return false;
        }
        let client = self.stand_in.client.clone();
        let taken = self.call(|rtc| {
            let check = stand_in::check(&client, &rtc.direct_api().local_ice_credentials())?;
            let contents = DatagramRecv::try_from(&*check).ok()?;
            let (proto, source) = (source.via.into(), source.address);
            rtc.handle_input(Input::Receive(now, Receive { proto, source, destination, contents }))
                .ok()
        });
        taken.flatten().is_some()
    }

    /// Advances the connection's time.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.stack.call(&mut self.wake, |rtc| {
            fault_injection::panic("timer", &self.room);
            if let Err(error) = rtc.handle_input(Input::Timeout(now)) {
                tracing::debug!(participant = %self.id, %error, "connection failed: removing the participant");
                rtc.disconnect();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_the_first_offer_nothing_is_sent_and_nothing_has_work() {
        let now = Instant::now();
        let mut link = Link::new(ParticipantId(1), "tea", Wakes::default(), now, now);
        assert!(!link.request_key_frame(Mid::from("0"), Layer::Q) && !link.wake.is_touched());
        link.tick(now);
        assert!(link.call(|_| ()).is_none() && !link.stack.has_begun());
        assert!(!link.connected && link.last_heard.is_none());
    }
}
