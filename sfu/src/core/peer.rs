//! One participant: its connection, and what it publishes and receives.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::bwe;
use str0m::change::{SdpAnswer, SdpOffer};
use str0m::format::PayloadParams;
use str0m::media::{KeyframeRequestKind, MediaTime, Mid, Pt, Rid};
use str0m::net::Transmit;
use str0m::rtp::{ExtensionValues, RtpPacket, RtpWrite};
use str0m::stats::PeerStats;
use str0m::{Event, IceConnectionState, Input, Output as RtcOutput, Rtc, RtcError};
use windlass_types::{Bitrate, Layer, Owner};

use super::Output;
use super::addresses::{LocalAddrs, RemoteAddr};
use super::allocator::Allocator;
use super::anchor_channel::AnchorChannel;
use super::channels::ClientChannels;
use super::connection_quality::{ConnectionMeter, Fit};
use super::cpu_limit::CpuLimit;
use super::data_rate::DataSender;
use super::dd;
use super::downlink::{Downlink, Feedback, State};
use super::fault_injection;
use super::forward::AudioInfo;
use super::in_flight;
use super::negotiated::Negotiated;
use super::paths::Paths;
use super::red::Red;
use super::regions::Regions;
use super::rewriter::{Dropped, PacketIn, PacketOut, Source};
use super::sctp_filter;
use super::slot::Slot;
use super::srtp::RtcpGuard;
use super::stack::{self, Stack, stack_bitrate};
use super::wakes::{Wake, Wakes};
use crate::api::{Kind, ParticipantId, Permissions, TrackId, TrackStats};
use crate::config::SfuConfig;
use crate::stats::Counters;

/// Maximum playout delay of a browser, smoothing included (the `playout-delay` header extension).
const MAX_PLAYOUT_DELAY: Duration = Duration::from_millis(200);
/// Packets of one stream that are kept for retransmission (RTX).
pub(super) const MAX_RTX_PACKETS: usize = 1024;
/// Age up to which packets are retransmitted.
const MAX_RTX_AGE: Duration = Duration::from_secs(3);
/// Maximum of retransmissions (RTX) as a share of a stream's bits.
const MAX_RTX_SHARE: f32 = 0.5;
/// [`MAX_RTX_SHARE`] while the downlink is congested, when retransmissions would only fill the queue.
const MAX_RTX_SHARE_CONGESTED: f32 = 0.1;
/// Offset between the RTP timelines of two m-lines, in ticks: one second, so that mix-ups of m-lines are visible.
const TIMELINE_OFFSET: u32 = 90_000;

/// A publisher's encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// A simulcast layer, by its `a=rid`.
    Layer(Layer),
    /// The only encoding. Browsers send no rid for a single encoding, even if it has one.
    Single,
    /// A simulcast layer with an unknown rid.
    Unknown,
}

/// An event of a connection, for the core.
pub(super) enum PeerEvent {
    /// An RTP packet arrived.
    Rtp(Mid, Encoding, Box<RtpPacket>),
    /// A message of the publisher's region channel arrived.
    Region(Vec<u8>),
    /// The subscriber requests a key frame on this m-line.
    KeyFrameRequested(Mid),
    /// The connection is up, or its anchor channel has opened or closed.
    Ready,
    /// The available bandwidth has fallen.
    BandwidthFell,
    /// The connection has ended.
    Disconnected,
    /// The stack has panicked.
    Fault,
    /// The client has opened more data channels or SCTP streams than it may.
    TooManyChannels,
}

/// A participant.
pub(super) struct Peer {
    /// Its id.
    pub id: ParticipantId,
    /// Name of its room.
    pub room: String,
    /// Room and identity by which its streams share the enhancer.
    pub owner: Owner,
    /// Its connection; none before the first offer.
    pub stack: Stack,
    /// Limits its RTCP.
    pub rtcp_guard: RtcpGuard,
    /// Limits the CPU time of its input.
    pub cpu_limit: CpuLimit,
    /// What its offers have negotiated.
    pub negotiated: Negotiated,
    /// When it has work to do.
    pub wake: Wake,
    /// Whether the connection is up (ICE and DTLS).
    pub connected: bool,
    /// When its first offer must have come; after that, when its connection must be up.
    pub connect_deadline: Instant,
    /// When the last offer or datagram came; `None` before the first offer.
    pub last_heard: Option<Instant>,
    /// Its tracks, by m-line.
    pub published: HashMap<Mid, TrackId>,
    /// Requests for regions of its cameras.
    pub regions: Regions,
    /// Data channels that it has opened.
    pub channels: ClientChannels,
    /// What it may do.
    pub permissions: Permissions,
    /// Its data messages to others.
    pub data: DataSender,
    /// Whether it takes those of others.
    pub takes_data: bool,
    /// M-lines on which it receives.
    pub slots: Vec<Slot>,
    /// Congestion controller of its downlink.
    pub downlink: Downlink,
    /// The quality of its connection.
    pub connection: ConnectionMeter,
    /// How what it wants fits into its downlink, by the last allocation.
    pub fit: Fit,
    /// Allocates its rungs.
    pub allocator: Allocator,
    /// Sends its anchors.
    pub anchors: AnchorChannel,
    /// Its ICE credentials and addresses.
    pub paths: Paths,
}

impl Peer {
    /// A participant without a connection.
    pub(super) fn new(
        id: ParticipantId,
        room: &str,
        decodes_anchors: bool,
        wakes: Wakes,
        now: Instant,
        connect_deadline: Instant,
    ) -> Peer {
        Peer {
            id,
            room: room.to_owned(),
            owner: Owner { room: id.0, publisher: id.0 },
            stack: Stack::default(),
            rtcp_guard: RtcpGuard::default(),
            cpu_limit: CpuLimit::default(),
            negotiated: Negotiated::default(),
            wake: Wake::new(id, wakes, now),
            connected: false,
            connect_deadline,
            last_heard: None,
            published: HashMap::new(),
            regions: Regions::default(),
            channels: ClientChannels::default(),
            permissions: Permissions::default(),
            data: DataSender::default(),
            takes_data: true,
            slots: Vec::new(),
            downlink: Downlink::default(),
            connection: ConnectionMeter::default(),
            fit: Fit::default(),
            allocator: Allocator::default(),
            anchors: AnchorChannel::new(decodes_anchors, now),
            paths: Paths::default(),
        }
    }

    /// Passes an offer to the stack, which makes the connection for the first one. Returns the answer and its ICE user name
    /// fragment; `None` if the stack panicked.
    pub(super) fn accept(
        &mut self,
        offer: SdpOffer,
        config: &SfuConfig,
        locals: &LocalAddrs,
        now: Instant,
    ) -> Option<Result<(SdpAnswer, String), RtcError>> {
        self.stack.begin(|| stack::connection(config, locals, now));
        self.stack.call(&mut self.wake, |rtc| {
            fault_injection::panic("offer", &self.room);
            let answer = rtc.sdp_api().accept_offer(offer)?;
            Ok((answer, rtc.direct_api().local_ice_credentials().ufrag))
        })
    }

    /// The slot of an m-line, made on first use.
    pub(super) fn slot(&mut self, mid: Mid, kind: Kind, now: Instant) -> &mut Slot {
        let at = self.slots.iter().position(|s| s.mid == mid).unwrap_or_else(|| {
            let timestamp = TIMELINE_OFFSET * (self.slots.len() as u32 + 1);
            self.slots.push(Slot::new(mid, kind, timestamp, now));
            self.slots.len() - 1
        });
        &mut self.slots[at]
    }

    /// Sets the rates that the stack's bandwidth estimator is to sustain and to probe for: `next` for the next rung, `best`
    /// for the best ones.
    pub(super) fn set_bitrate_targets(&mut self, now: Instant, next: Bitrate, best: Bitrate) {
        if let Some(rate) = self.downlink.take_reset().map(stack_bitrate) {
            self.stack.call(&mut self.wake, |rtc| {
                // After a reset the stack probes at three and six times `rate`, but at twice the desired rate at most.
                rtc.bwe().set_bitrate(bwe::Bitrate::ZERO, rate);
                rtc.bwe().reset(rate);
            });
        }
        if let Some(targets) = self.downlink.update_targets(now, next, best) {
            let minimum = stack_bitrate(targets.minimum);
            let desired = stack_bitrate(targets.desired);
            self.stack.call(&mut self.wake, |rtc| rtc.bwe().set_bitrate(minimum, desired));
        }
    }

    /// Requests a key frame of one layer from the publisher: of the encoding with its rid, or of the only one.
    pub(super) fn request_key_frame(&mut self, mid: Mid, layer: Layer) -> bool {
        let rid = Rid::from(layer.rid());
        let sent = self.stack.call(&mut self.wake, |rtc| {
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

    /// Passes a datagram to the connection.
    pub(super) fn receive(
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

    /// Closes the connection, and polls its last output.
    pub(super) fn close(&mut self, now: Instant, outputs: &mut VecDeque<Output>) {
        self.stack.call(&mut self.wake, |rtc| rtc.close().is_ok());
        self.drain(now, outputs, &mut Vec::new());
    }

    /// Advances the connection's time.
    pub(super) fn tick(&mut self, now: Instant) {
        self.stack.call(&mut self.wake, |rtc| {
            fault_injection::panic("timer", &self.room);
            if let Err(error) = rtc.handle_input(Input::Timeout(now)) {
                tracing::debug!(participant = %self.id, %error, "connection failed: removing the participant");
                rtc.disconnect();
            }
        });
    }

    /// Polls all output of the connection. Returns whether the connection lives.
    pub(super) fn drain(
        &mut self,
        now: Instant,
        outputs: &mut VecDeque<Output>,
        events: &mut Vec<(ParticipantId, PeerEvent)>,
    ) -> bool {
        self.wake.clear_touched();
        let mut drain = Drain {
            id: self.id,
            now,
            connected: &mut self.connected,
            slots: &mut self.slots,
            downlink: &mut self.downlink,
            connection: &mut self.connection,
            channels: &mut self.channels,
            anchors: &mut self.anchors,
            paths: &mut self.paths,
            outputs,
            events,
        };
        let due = self.stack.call(&mut self.wake, |rtc| drain.run(rtc));
        // Always, as both are per thread: the next connection must not inherit the answers.
        self.rtcp_guard.on_output();
        let over_limit = sctp_filter::take_over_limit();
        let mut emit = |event| events.push((self.id, event));
        if over_limit || self.channels.is_over_limit() {
            emit(PeerEvent::TooManyChannels);
        }
        if self.stack.fault().is_some() {
            emit(PeerEvent::Fault);
        }
        let Some(due) = due.flatten() else { return false };
        self.wake.set_due(self.anchors.pacer.timeout().map_or(due, |anchors| anchors.min(due)));
        true
    }

    /// Forwards a video packet on a slot. Returns its new numbers, or `None` if it is not for this subscriber.
    pub(super) fn send_video(
        &mut self,
        slot: usize,
        source: Source,
        packet: PacketIn,
        payload: &Arc<[u8]>,
        counters: &mut Counters,
    ) -> Option<PacketOut> {
        let slot = self.slots.get_mut(slot)?;
        if !slot.video.concerns(source) {
            return None;
        }
        let sent = self.stack.call(&mut self.wake, |rtc| {
            fault_injection::panic("send", &self.room);
            write_video(rtc, slot, source, packet, payload, counters)
        });
        let (out, bytes) = sent.flatten()?;
        self.anchors.pacer.video_sent(packet.arrival, bytes);
        self.wake.touch();
        counters.rtp_out += 1;
        out
    }

    /// Forwards an audio packet on a slot. `red`: the packet with its redundancy, and the publisher's payload type of its blocks.
    pub(super) fn send_audio(
        &mut self,
        slot: usize,
        track: TrackId,
        packet: PacketIn,
        payload: &Arc<[u8]>,
        audio_info: AudioInfo,
        red: Option<(Red<'_>, Pt)>,
    ) -> bool {
        let Some(slot) = self.slots.get_mut(slot) else { return false };
        let sent = self.stack.call(&mut self.wake, |rtc| {
            let opus = slot.payload_type(rtc)?;
            // Redundancy would only fill the queue of a congested downlink.
            let red_pt = red.filter(|_| self.downlink.state() != State::Congested).and_then(|_| {
                // The stack keeps the type if both ends have it.
                rtc.codec_config().params().iter().find(|p| p.pt() == opus)?.red()
            });
            let (pt, payload) = match (red, red_pt) {
                (None, _) => (opus, payload.clone()),
                (Some((_, named)), Some(pt)) if named == opus => (pt, payload.clone()),
                (Some((red, _)), Some(pt)) => (pt, red.renamed(*opus).into()),
                (Some((red, _)), None) => (opus, red.primary().into()),
            };
            let mut api = rtc.direct_api();
            let stream = api.stream_tx_by_mid(slot.mid, None)?;
            let (seq, timestamp) = slot.audio.push(track, packet)?;
            let ext_vals = ExtensionValues {
                audio_level: audio_info.level,
                voice_activity: audio_info.voice,
                ..ExtensionValues::default()
            };
            slot.sent.media_bytes += payload.len() as u64;
            slot.ssrc = Some(stream.ssrc());
            slot.in_flight.begin(seq as u16, packet.kernel_arrival());
            stream.write_rtp(
                RtpWrite::new(pt, seq.into(), timestamp, packet.arrival, payload)
                    .marker(packet.marker)
                    .ext_vals(ext_vals),
            );
            Some(())
        });
        let sent = sent.flatten().is_some();
        if sent {
            self.wake.touch();
        }
        sent
    }

    /// The payload type of the blocks, if `pt` is the participant's type of Opus with redundancy (RED).
    pub(super) fn red_block_type(&self, pt: Pt) -> Option<Pt> {
        let params = self.stack.rtc()?.codec_config().params();
        params.iter().find(|p| p.red() == Some(pt)).map(PayloadParams::pt)
    }

    /// To be called after an offer was answered: payload types may have changed, and m-lines may be new.
    pub(super) fn on_negotiated(&mut self) {
        for slot in &mut self.slots {
            slot.pt = None;
        }
        self.limit_retransmissions();
    }

    /// Sets the limits of retransmissions. To be called for new m-lines, and when congestion begins or ends.
    pub(super) fn limit_retransmissions(&mut self) {
        let congested = self.downlink.state() == State::Congested;
        let share = if congested { MAX_RTX_SHARE_CONGESTED } else { MAX_RTX_SHARE };
        let differs = |s: &&mut Slot| s.kind == Kind::Video && s.rtx_share != Some(share);
        for slot in self.slots.iter_mut().filter(differs) {
            self.stack.call(&mut self.wake, |rtc| {
                if let Some(stream) = rtc.direct_api().stream_tx_by_mid(slot.mid, None) {
                    // Clears the cache: what a full queue dropped is not worth a retransmission.
                    stream.set_rtx_cache(MAX_RTX_PACKETS, MAX_RTX_AGE, Some(share));
                    slot.rtx_share = Some(share);
                }
            });
        }
    }

    /// Ends a second, which took `span`; returns the statistics of its subscriptions.
    pub(super) fn end_second(&mut self, span: Duration) -> Vec<TrackStats> {
        self.slots.iter_mut().filter_map(|s| s.end_second(span)).collect()
    }
}

/// Writes a video packet to the stack. Returns its new numbers (`None` for padding) and the bytes of its payload.
fn write_video(
    rtc: &mut Rtc,
    slot: &mut Slot,
    source: Source,
    packet: PacketIn,
    payload: &Arc<[u8]>,
    counters: &mut Counters,
) -> Option<(Option<PacketOut>, usize)> {
    let pt = slot.payload_type(rtc)?;
    let mut ext_vals = ExtensionValues {
        play_delay_min: Some(MediaTime::from_millis(0)),
        play_delay_max: Some(MediaTime::from_millis(MAX_PLAYOUT_DELAY.as_millis() as u64)),
        ..ExtensionValues::default()
    };
    // Most subscribers share the publisher's payload: it is copied only for those that have switched layers.
    let mut data = payload.clone();
    let (seq, timestamp, out) = if payload.is_empty() {
        let (seq, timestamp) = slot.video.push_empty(source, packet)?;
        (seq, timestamp, None)
    } else {
        match slot.video.renumber(source, packet, payload) {
            Ok((out, rewrite)) => {
                if let Some(rewrite) = rewrite {
                    rewrite.apply(Arc::make_mut(&mut data));
                }
                let dependency = dd::FrameDependency {
                    frame: out.frame,
                    key: out.key,
                    begin: out.begin,
                    end: out.end,
                };
                dependency.set(&mut ext_vals);
                (out.seq, out.timestamp, Some(out))
            }
            Err(dropped) => {
                counters.rtp_before_switch += u64::from(dropped == Dropped::BeforeSwitch);
                return None;
            }
        }
    };
    let mut api = rtc.direct_api();
    let stream = api.stream_tx_by_mid(slot.mid, None)?;
    let bytes = data.len();
    slot.sent.media_bytes += bytes as u64;
    slot.ssrc = Some(stream.ssrc());
    slot.in_flight.begin(seq as u16, packet.kernel_arrival());
    stream.write_rtp(
        RtpWrite::new(pt, seq.into(), timestamp, packet.arrival, data)
            .marker(packet.marker)
            .nackable(true)
            .ext_vals(ext_vals),
    );
    Some((out, bytes))
}

/// The parts of a peer that its connection's output changes.
struct Drain<'a> {
    id: ParticipantId,
    now: Instant,
    connected: &'a mut bool,
    slots: &'a mut [Slot],
    downlink: &'a mut Downlink,
    connection: &'a mut ConnectionMeter,
    channels: &'a mut ClientChannels,
    anchors: &'a mut AnchorChannel,
    paths: &'a mut Paths,
    outputs: &'a mut VecDeque<Output>,
    events: &'a mut Vec<(ParticipantId, PeerEvent)>,
}

impl Drain<'_> {
    /// Polls until the connection waits for time or input; returns until when, or `None` if the connection has ended.
    fn run(&mut self, rtc: &mut Rtc) -> Option<Instant> {
        loop {
            if !rtc.is_alive() {
                self.emit(PeerEvent::Disconnected);
                return None;
            }
            match rtc.poll_output() {
                Ok(RtcOutput::Timeout(due)) => return Some(due),
                Ok(RtcOutput::Transmit(transmit)) => self.on_transmit(transmit),
                Ok(RtcOutput::Event(event)) => {
                    if self.on_event(rtc, event).is_break() {
                        self.emit(PeerEvent::Disconnected);
                        return None;
                    }
                }
                Err(error) => {
                    tracing::debug!(participant = %self.id, %error, "connection failed: removing the participant");
                    self.emit(PeerEvent::Disconnected);
                    return None;
                }
            }
        }
    }

    fn emit(&mut self, event: PeerEvent) {
        self.events.push((self.id, event));
    }

    fn on_transmit(&mut self, transmit: Transmit) {
        let data: Vec<u8> = transmit.contents.into();
        let to = RemoteAddr::from_stack(transmit.proto, transmit.destination);
        let to = self.paths.nomination.redirect(to, &data);
        let arrival = in_flight::rtp_numbers(&data).and_then(|(ssrc, number)| {
            let slot = self.slots.iter_mut().find(|s| s.ssrc == Some(ssrc.into()))?;
            slot.in_flight.end(number, self.now)
        });
        self.outputs.push_back(Output::Transmit { to, data, arrival });
    }

    /// Handles an event of the stack; breaks if the connection has ended.
    fn on_event(&mut self, rtc: &mut Rtc, event: Event) -> ControlFlow<()> {
        match event {
            Event::Connected => {
                *self.connected = true;
                self.emit(PeerEvent::Ready);
            }
            Event::IceConnectionStateChange(IceConnectionState::Disconnected) => {
                return ControlFlow::Break(());
            }
            Event::RtpPacket(packet) => self.on_rtp(rtc, packet),
            Event::KeyframeRequest(request) => self.emit(PeerEvent::KeyFrameRequested(request.mid)),
            Event::PeerStats(stats) => self.on_stats(rtc, &stats),
            Event::ChannelOpen(id, _) if Some(id) == self.anchors.id => {
                self.anchors.open = true;
                self.emit(PeerEvent::Ready);
            }
            Event::ChannelOpen(id, label) => {
                let stays = self.channels.on_open(id, &label);
                if !stays {
                    rtc.direct_api().close_data_channel(id);
                }
            }
            Event::ChannelClose(id) if Some(id) == self.anchors.id => {
                self.anchors.open = false;
                self.emit(PeerEvent::Ready);
            }
            Event::ChannelClose(id) => self.channels.on_close(id),
            Event::ChannelData(message) if self.channels.is_region(message.id) => {
                self.emit(PeerEvent::Region(message.data));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn on_rtp(&mut self, rtc: &mut Rtc, packet: RtpPacket) {
        let mut api = rtc.direct_api();
        let Some(stream) = api.stream_rx(&packet.header.ssrc) else { return };
        let (mid, rid) = (stream.mid(), stream.rid());
        let named = |rid: Rid| Layer::from_rid(&rid).map_or(Encoding::Unknown, Encoding::Layer);
        let encoding = rid.map_or(Encoding::Single, named);
        self.emit(PeerEvent::Rtp(mid, encoding, Box::new(packet)));
    }

    fn on_stats(&mut self, rtc: &mut Rtc, stats: &PeerStats) {
        self.connection.on_feedback(
            stats.ingress_loss_fraction,
            stats.egress_loss_fraction,
            stats.rtt,
        );
        let feedback = Feedback {
            estimate: stats.bwe_tx.map(|rate| Bitrate::bps(rate.as_f64() as u64)),
            rtt: stats.rtt,
            loss: stats.egress_loss_fraction,
            bytes_sent: stats.peer_bytes_tx,
        };
        if self.downlink.on_feedback(stats.timestamp, feedback) {
            self.emit(PeerEvent::BandwidthFell);
        }
        let unpaced = self.downlink.is_unpaced(stats.timestamp);
        for slot in self.slots.iter_mut().filter(|s| s.unpaced != unpaced) {
            let mut api = rtc.direct_api();
            let stream = api.stream_tx_by_mid(slot.mid, None);
            if let Some(stream) = stream.filter(|_| slot.kind == Kind::Video) {
                stream.set_unpaced(unpaced);
                slot.unpaced = unpaced;
            }
        }
    }
}
