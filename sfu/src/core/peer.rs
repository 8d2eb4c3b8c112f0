//! One participant: its connection, and what it publishes and receives.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::bwe;
use str0m::format::PayloadParams;
use str0m::media::{MediaTime, Mid, Pt, Rid};
use str0m::net::Transmit;
use str0m::rtp::{ExtensionValues, RtpPacket, RtpWrite};
use str0m::stats::PeerStats;
use str0m::{Event, IceConnectionState, Output as RtcOutput, Rtc};
use windlass_types::{Bitrate, Layer, Owner, VideoCodec};

use super::allocation::allocator::Allocator;
use super::codec::dependency_descriptor;
use super::codec::red::Red;
use super::connection::channels::ClientChannels;
use super::connection::in_flight;
use super::connection::link::Link;
use super::connection::quality::{ConnectionMeter, Fit};
use super::connection::sctp_filter;
use super::connection::stack::{self, MAX_RTX_PACKETS, stack_bitrate};
use super::fault_injection;
use super::output::Output;
use super::publisher::layers::Encoding;
use super::publisher::stills::Regions;
use super::room::data_rate::DataSender;
use super::routing::addresses::RemoteAddr;
use super::routing::paths::Paths;
use super::subscriber::anchor_channel::{AnchorChannel, OutgoingAnchor, Path};
use super::subscriber::audio::AudioInfo;
use super::subscriber::downlink::{Downlink, Feedback, State};
use super::subscriber::rewriter::{Dropped, PacketIn, PacketOut, Source};
use super::subscriber::slot::Slot;
use super::wakes::Wakes;
use crate::api::{ParticipantId, Permissions, TrackId, TrackKind, TrackStats};
use crate::stats::Counters;

/// Maximum playout delay of a browser, smoothing included (the `playout-delay` header extension).
const MAX_PLAYOUT_DELAY: Duration = Duration::from_millis(200);
/// Age up to which packets are retransmitted.
const MAX_RTX_AGE: Duration = Duration::from_secs(3);
/// Maximum share of a stream's bits that retransmissions (RTX) may take.
const MAX_RTX_SHARE: f32 = 0.5;
/// Maximum share of retransmissions while the downlink is congested, in place of [`MAX_RTX_SHARE`]. More of them would
/// only fill the queue.
const MAX_RTX_SHARE_CONGESTED: f32 = 0.1;
/// Offset between the RTP timelines of two m-lines, in ticks: one second, so that mix-ups of m-lines are visible.
const TIMELINE_OFFSET: u32 = 90_000;

/// An event of a connection, for the core.
pub(crate) enum PeerEvent {
    /// An RTP packet arrived.
    Rtp(Mid, Encoding, Box<RtpPacket>),
    /// A message of the publisher's region channel arrived.
    Region(Vec<u8>),
    /// The subscriber requests a key frame on this m-line.
    KeyFrameRequested(Mid),
    /// The connection is up for the first time.
    Connected,
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
pub(crate) struct Peer {
    /// Id of the participant.
    pub id: ParticipantId,
    /// Name of the participant's room.
    pub room: String,
    /// Room and identity by which the participant's streams share the enhancer.
    pub owner: Owner,
    /// Connection of the participant.
    pub link: Link,
    /// Tracks that the participant publishes, by m-line.
    pub published: HashMap<Mid, TrackId>,
    /// Requests for regions of the participant's cameras.
    pub regions: Regions,
    /// Permissions of the participant in its room.
    pub permissions: Permissions,
    /// Usage of the limits of data messages by the participant as their sender.
    pub data: DataSender,
    /// M-lines on which the participant receives.
    pub slots: Vec<Slot>,
    /// Congestion controller of the participant's downlink.
    pub downlink: Downlink,
    /// Meter of the connection's quality.
    pub connection: ConnectionMeter,
    /// Desired bitrate against the downlink estimate, by the last allocation.
    pub fit: Fit,
    /// Allocator of the participant's rungs.
    pub allocator: Allocator,
    /// Data channel for the participant's anchors.
    pub anchors: AnchorChannel,
}

impl Peer {
    /// A participant without a connection.
    pub(crate) fn new(
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
            link: Link::new(id, room, wakes, now, connect_deadline),
            published: HashMap::new(),
            regions: Regions::default(),
            permissions: Permissions::default(),
            data: DataSender::default(),
            slots: Vec::new(),
            downlink: Downlink::default(),
            connection: ConnectionMeter::default(),
            fit: Fit::default(),
            allocator: Allocator::default(),
            anchors: AnchorChannel::new(decodes_anchors, now),
        }
    }

    /// Whether anchors can be sent to the client now.
    pub(crate) fn can_receive_anchors(&self) -> bool {
        self.anchors.can_receive(self.permissions)
    }

    /// Opens the anchor channel if it can be opened and is not open. Messages older than `budget` are not
    /// retransmitted.
    pub(crate) fn open_anchor_channel(&mut self, budget: Duration) {
        if self.link.connected {
            self.anchors.begin(self.permissions, budget, &mut self.link);
        }
    }

    /// Requests key frames of all video, as the client has lost packets.
    pub(crate) fn request_key_frames(&mut self) {
        for slot in &mut self.slots {
            slot.key_frame_pending |= slot.video.current().is_some();
        }
    }

    /// Sends an anchor on the slots that hold an enhanced rung of the tapped layer.
    pub(crate) fn send_anchor(
        &mut self,
        now: Instant,
        outgoing: OutgoingAnchor<'_>,
        budget: Duration,
        counters: &mut Counters,
    ) {
        for slot in 0..self.slots.len() {
            let Peer { link, slots, permissions, .. } = self;
            let path = Path { link, slots, permissions: *permissions };
            self.anchors.send(now, slot, outgoing, budget, path, counters);
        }
    }

    /// Sends the anchor messages that are due.
    pub(crate) fn release_anchors(&mut self, now: Instant, counters: &mut Counters) {
        let Peer { link, slots, permissions, .. } = self;
        let mut path = Path { link, slots, permissions: *permissions };
        self.anchors.release(now, &mut path, counters);
    }

    /// The slots that carry a track.
    pub(crate) fn slots_of(&mut self, track: TrackId) -> impl Iterator<Item = &mut Slot> {
        self.slots.iter_mut().filter(move |slot| slot.track == Some(track))
    }

    /// The slot of an m-line, made on first use.
    pub(crate) fn slot(&mut self, mid: Mid, kind: TrackKind, now: Instant) -> &mut Slot {
        let at = self.slots.iter().position(|s| s.mid == mid).unwrap_or_else(|| {
            let timestamp = TIMELINE_OFFSET * (self.slots.len() as u32 + 1);
            self.slots.push(Slot::new(mid, kind, timestamp, now));
            self.slots.len() - 1
        });
        &mut self.slots[at]
    }

    /// Sets the rates that the stack's bandwidth estimator is to sustain and to probe for: `next` for the next rung,
    /// `best` for the best ones.
    pub(crate) fn set_bitrate_targets(&mut self, now: Instant, next: Bitrate, best: Bitrate) {
        if let Some(rate) = self.downlink.take_reset().map(stack_bitrate) {
            self.link.call(|rtc| {
                // After a reset the stack probes at three and six times `rate`, but at twice the desired rate at most.
                rtc.bwe().set_bitrate(bwe::Bitrate::ZERO, rate);
                rtc.bwe().reset(rate);
            });
        }
        if let Some(targets) = self.downlink.update_targets(now, next, best) {
            let minimum = stack_bitrate(targets.minimum);
            let desired = stack_bitrate(targets.desired);
            self.link.call(|rtc| rtc.bwe().set_bitrate(minimum, desired));
        }
    }

    /// Closes the connection, and polls its last output.
    pub(crate) fn close(&mut self, now: Instant, outputs: &mut VecDeque<Output>) {
        self.link.call(|rtc| rtc.close().is_ok());
        self.drain(now, outputs, &mut Vec::new());
    }

    /// Polls all output of the connection. Returns whether the connection lives.
    pub(crate) fn drain(
        &mut self,
        now: Instant,
        outputs: &mut VecDeque<Output>,
        events: &mut Vec<(ParticipantId, PeerEvent)>,
    ) -> bool {
        self.link.wake.clear_touched();
        let mut drain = Drain {
            id: self.id,
            now,
            connected: &mut self.link.connected,
            slots: &mut self.slots,
            downlink: &mut self.downlink,
            connection: &mut self.connection,
            channels: &mut self.link.channels,
            anchors: &mut self.anchors,
            paths: &mut self.link.paths,
            outputs,
            events,
        };
        let due = self.link.stack.call(&mut self.link.wake, |rtc| drain.run(rtc));
        // Both answers are per thread: they are always taken, so that the next connection does not inherit them.
        self.link.rtcp_guard.on_output();
        let over_limit = sctp_filter::take_over_limit();
        let mut emit = |event| events.push((self.id, event));
        if over_limit || self.link.channels.is_over_limit() {
            emit(PeerEvent::TooManyChannels);
        }
        if self.link.stack.fault().is_some() {
            emit(PeerEvent::Fault);
        }
        let Some(due) = due.flatten() else { return false };
        self.link
            .wake
            .set_due(self.anchors.pacer.timeout().map_or(due, |anchors| anchors.min(due)));
        true
    }

    /// Forwards a video packet on a slot. Returns its new numbers, or `None` if it is not for this subscriber.
    pub(crate) fn send_video(
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
        let sent = self.link.call(|rtc| {
            fault_injection::panic("send", &self.room);
            write_video(rtc, slot, source, packet, payload, counters)
        });
        let (out, bytes) = sent.flatten()?;
        self.anchors.pacer.video_sent(packet.arrival, bytes);
        self.link.wake.touch();
        counters.rtp_out += 1;
        out
    }

    /// Forwards an audio packet on a slot. `red`: the packet with its redundancy, and the publisher's payload type of
    /// its blocks.
    pub(crate) fn send_audio(
        &mut self,
        slot: usize,
        track: TrackId,
        packet: PacketIn,
        payload: &Arc<[u8]>,
        audio_info: AudioInfo,
        red: Option<(Red<'_>, Pt)>,
    ) -> bool {
        let Some(slot) = self.slots.get_mut(slot) else { return false };
        let sent = self.link.call(|rtc| {
            let opus = slot.payload_type(rtc, None)?;
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
            slot.subscription.sent.media_bytes += payload.len() as u64;
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
            self.link.wake.touch();
        }
        sent
    }

    /// The codec of a payload type of video.
    pub(crate) fn video_codec(&self, pt: Pt) -> Option<VideoCodec> {
        let params = self.link.stack.rtc()?.codec_config().params();
        let params = params.iter().find(|p| p.pt() == pt)?;
        stack::video_codec(params.spec().codec)
    }

    /// The payload type of the blocks, if `pt` is the participant's type of Opus with redundancy (RED).
    pub(crate) fn red_block_type(&self, pt: Pt) -> Option<Pt> {
        let params = self.link.stack.rtc()?.codec_config().params();
        params.iter().find(|p| p.red() == Some(pt)).map(PayloadParams::pt)
    }

    /// Takes over new payload types and m-lines. To be called after an offer was answered.
    pub(crate) fn on_negotiated(&mut self) {
        for slot in &mut self.slots {
            slot.pt = None;
        }
        self.limit_retransmissions();
    }

    /// Sets the limits of retransmissions. To be called for new m-lines, and when congestion begins or ends.
    pub(crate) fn limit_retransmissions(&mut self) {
        let congested = self.downlink.state() == State::Congested;
        let share = if congested { MAX_RTX_SHARE_CONGESTED } else { MAX_RTX_SHARE };
        let differs = |s: &&mut Slot| s.kind == TrackKind::Video && s.rtx_share != Some(share);
        for slot in self.slots.iter_mut().filter(differs) {
            self.link.call(|rtc| {
                if let Some(stream) = rtc.direct_api().stream_tx_by_mid(slot.mid, None) {
                    // Clears the cache: what a full queue dropped is not worth a retransmission.
                    stream.set_rtx_cache(MAX_RTX_PACKETS, MAX_RTX_AGE, Some(share));
                    slot.rtx_share = Some(share);
                }
            });
        }
    }

    /// Ends a second, which took `span`; returns the statistics of its subscriptions.
    pub(crate) fn end_second(&mut self, span: Duration) -> Vec<TrackStats> {
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
    let pt = slot.payload_type(rtc, Some(packet.codec))?;
    let mut ext_vals = ExtensionValues {
        play_delay_min: Some(MediaTime::from_millis(0)),
        play_delay_max: Some(MediaTime::from_millis(MAX_PLAYOUT_DELAY.as_millis() as u64)),
        ..ExtensionValues::default()
    };
    // Most subscribers share the publisher's payload: it is copied only for those that have switched layers.
    let mut data = payload.clone();
    let (seq, timestamp, marker, out) = if payload.is_empty() {
        let (seq, timestamp) = slot.video.push_empty(source, packet)?;
        (seq, timestamp, false, None)
    } else {
        match slot.video.renumber(source, packet, payload) {
            Ok((out, rewrite)) => {
                if let Some(rewrite) = rewrite {
                    rewrite.apply(Arc::make_mut(&mut data));
                }
                let dependency = dependency_descriptor::FrameDependency {
                    frame: out.frame,
                    key: out.key,
                    begin: out.begin,
                    end: out.end,
                };
                // It says that each picture needs the one before. Without it, Chromium takes the spatial layers of AV1
                // for pictures. Of other streams it is unknown which packets are of one picture, and what is missing.
                if packet.codec == VideoCodec::Vp9 || slot.video.has_spatial() {
                    dependency.set(&mut ext_vals);
                }
                (out.seq, out.timestamp, out.marker, Some(out))
            }
            Err(Dropped::HigherLayer { reserved }) => {
                counters.rtp_higher_layer += 1;
                let (seq, timestamp) = reserved?;
                data = Arc::default();
                (seq, timestamp, false, None)
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
    slot.subscription.sent.media_bytes += bytes as u64;
    slot.ssrc = Some(stream.ssrc());
    slot.in_flight.begin(seq as u16, packet.kernel_arrival());
    stream.write_rtp(
        RtpWrite::new(pt, seq.into(), timestamp, packet.arrival, data)
            .marker(marker)
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
                if !std::mem::replace(self.connected, true) {
                    self.emit(PeerEvent::Connected);
                }
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
            if let Some(stream) = stream.filter(|_| slot.kind == TrackKind::Video) {
                stream.set_unpaced(unpaced);
                slot.unpaced = unpaced;
            }
        }
    }
}
