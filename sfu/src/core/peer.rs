//! One participant's connection, and the m-lines on which it receives.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::bwe::Bitrate;
use str0m::change::{SdpAnswer, SdpOffer};
use str0m::channel::{ChannelConfig, ChannelId, Reliability};
use str0m::format::PayloadParams;
use str0m::media::{KeyframeRequestKind, MediaTime, Mid, Pt, Rid};
use str0m::rtp::{ExtensionValues, RtpPacket, RtpWrite, Ssrc};
use str0m::{Event, IceConnectionState, Input, Output as RtcOutput, Rtc, RtcError};
use windlass_types::{Layer, Owner, Rung};

use super::Output;
use super::agreed::Agreed;
use super::allocator::Allocator;
use super::anchors::{AnchorPacer, Released};
use super::audio::AudioTimeline;
use super::dd;
use super::downlink::{Downlink, Feedback, State};
use super::flights::{self, Flights};
use super::forward::Sound;
use super::nomination::Nomination;
use super::plant;
use super::red::Red;
use super::regions::{self, Regions};
use super::remote::{Locals, Remote};
use super::reports::Claims;
use super::rewriter::{Dropped, PacketIn, PacketOut, Rewriter, Source};
use super::srtp::Control;
use super::stack::{self, Stack};
use super::streams;
use super::toll::Toll;
use super::view::View;
use super::wakes::{Wake, Wakes};
use crate::api::{Kind, May, ParticipantId, TrackId, TrackStats};
use crate::config::SfuConfig;
use crate::stats::Counters;

/// The data channel's name.
pub const CHANNEL: &str = "windlass-anchors";
/// The channel that clients open so that their offers have a section for data; nothing is said on it.
const CONTROL: &str = "ctl";
/// Data channels that a client may open, all in all.
pub const CHANNELS: usize = 8;
/// Client addresses that are remembered for one connection.
const ADDRESSES: usize = 16;
/// Addresses that it may have by one pair of credentials: the stack remembers each of them.
const PATHS: usize = 1000;
/// The most that a browser may hold video back, smoothing included.
const PLAYOUT_MAX: Duration = Duration::from_millis(200);
/// Packets kept for retransmission, and for how long.
pub const RTX_PACKETS: usize = 1024;
const RTX_AGE: Duration = Duration::from_secs(3);
/// Maximum of retransmissions (RTX) as a share of a stream's bits.
const MAX_RTX_SHARE: f32 = 0.5;
/// The same maximum while the downlink is congested, when retransmissions would only fill the queue.
const MAX_RTX_SHARE_CONGESTED: f32 = 0.1;

/// Which of a publisher's encodings a packet is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// One of several, named by its `a=rid`.
    Layer(Layer),
    /// The only one. Browsers send no rid for a single encoding, even if it was given one.
    Single,
    /// One of several, with a name that means nothing here.
    Unknown,
}

/// What a connection made happen, for the core to deal with.
pub enum Happening {
    /// A media packet came.
    Rtp(Mid, Encoding, Box<RtpPacket>),
    /// A message of the publisher's region channel came.
    Region(Vec<u8>),
    /// The subscriber cannot show this m-line before a key frame.
    KeyFrameWanted(Mid),
    /// The connection is up, or can carry anchors now.
    Ready,
    /// There is less bandwidth than a moment ago.
    Narrower,
    /// The connection is gone.
    Gone,
    /// It panicked.
    Fault,
    /// The client opened more data channels than it may.
    TooManyChannels,
}

/// One m-line on which the participant receives. It lives as long as the m-line, whatever track it carries.
pub struct Slot {
    /// The m-line.
    pub mid: Mid,
    /// What it is negotiated for.
    pub kind: Kind,
    /// The track that it carries now.
    pub track: Option<TrackId>,
    /// The best rung that the client wants.
    pub max: Rung,
    /// How the client shows it, where it has said so.
    pub view: Option<View>,
    /// The rung that was allocated.
    pub rung: Option<Rung>,
    /// Whether the client was told that it gets nothing, for want of bandwidth.
    pub paused: bool,
    /// What the client was told last: rung, epoch, size, scale.
    pub told: Option<(Rung, u16, (u16, u16), u16)>,
    /// The video timeline.
    pub video: Rewriter,
    audio: AudioTimeline,
    /// The share that retransmissions may be now; `None`: it has not been set up.
    rtx_share: Option<f32>,
    /// Whether its packets bypass the stack's pacer.
    unpaced: bool,
    /// Whether its client lost frames that only a key frame makes good, and there was no room for one.
    pub key_owed: bool,
    /// The payload type that it is sent with, once it has been looked up.
    pt: Option<Pt>,
    /// Its stream.
    ssrc: Option<Ssrc>,
    flights: Flights,
    /// What was sent.
    pub sent: Sent,
}

/// What one subscription was sent.
#[derive(Default, Clone, Copy)]
pub struct Sent {
    video_bytes: u64,
    anchor_bytes: u64,
    second_anchors: u64,
    /// Anchors sent.
    pub anchors: u64,
    /// Anchors dropped.
    pub anchors_dropped: u64,
    /// Video bit rate of the last full second.
    pub video_bps: u64,
    /// What of it may be reported on.
    pub claims: Claims,
}

impl Slot {
    fn new(mid: Mid, kind: Kind, seed: u32, now: Instant) -> Slot {
        Slot {
            mid,
            kind,
            track: None,
            max: Rung::F,
            view: None,
            rung: None,
            paused: false,
            told: None,
            video: Rewriter::new(seed),
            audio: AudioTimeline::new(seed),
            rtx_share: None,
            unpaced: false,
            key_owed: false,
            pt: None,
            ssrc: None,
            flights: Flights::new(now),
            sent: Sent::default(),
        }
    }

    /// Carries another track, or none, from now on.
    pub fn carry(&mut self, track: Option<TrackId>) {
        if self.track != track {
            self.track = track;
            self.rung = None;
            self.view = None;
            self.paused = false;
            self.told = None;
            self.max = Rung::F;
            self.sent = Sent::default();
            self.interrupt();
        }
    }

    /// The payload type to send with.
    fn payload_type(&mut self, rtc: &Rtc) -> Option<Pt> {
        self.pt = self.pt.or_else(|| payload_type(rtc, self.mid));
        self.pt
    }

    /// What comes next is not the continuation of what came before.
    pub fn interrupt(&mut self) {
        self.video.set_target(None);
        self.audio.interrupt();
    }

    /// An anchor went out.
    pub fn anchor_sent(&mut self, bytes: usize) {
        self.sent.anchors += 1;
        self.sent.second_anchors += 1;
        self.sent.anchor_bytes += bytes as u64;
    }

    fn second(&mut self, seconds: f64) -> Option<TrackStats> {
        let per_second = |bytes: u64| bytes as f64 * 8.0 / seconds;
        let sent = &mut self.sent;
        sent.video_bps = per_second(sent.video_bytes) as u64;
        let stats = TrackStats {
            track: self.track?,
            video_kbps: per_second(sent.video_bytes) / 1000.0,
            anchor_kbps: per_second(sent.anchor_bytes) / 1000.0,
            anchors_per_s: sent.second_anchors as f64 / seconds,
            anchors_sent: sent.anchors,
            anchors_dropped: sent.anchors_dropped,
            refused: None,
        };
        (sent.video_bytes, sent.anchor_bytes, sent.second_anchors) = (0, 0, 0);
        Some(stats)
    }
}

/// See the module.
pub struct Peer {
    /// Whose it is.
    pub id: ParticipantId,
    /// Where it is.
    pub room: String,
    /// Of which room and publisher its streams are, where something is shared fairly.
    pub owner: Owner,
    /// Its connection; none before the first offer.
    pub stack: Stack,
    /// What it says by RTCP,
    pub control: Control,
    /// and what all that it sends costs.
    pub toll: Toll,
    /// What its offers have settled.
    pub agreed: Agreed,
    /// Whether it may have something to send, and when it wants to be looked at.
    pub wake: Wake,
    /// Whether media can flow.
    pub connected: bool,
    /// Until when it must have offered; and when it has, until when its connection must be up.
    pub must: Instant,
    /// When something of the client came last, an offer or a datagram; `None` before the first offer.
    pub heard: Option<Instant>,
    /// What it publishes.
    pub published: HashMap<Mid, TrackId>,
    /// Regions of its cameras that it was asked for.
    pub regions: Regions,
    region_channel: Option<ChannelId>,
    control_channel: Option<ChannelId>,
    /// Data channels that the client has opened.
    opened: usize,
    /// What it may do.
    pub may: May,
    /// On what it receives.
    pub slots: Vec<Slot>,
    /// What its network is believed to carry.
    pub downlink: Downlink,
    /// Chooses its rungs.
    pub allocator: Allocator,
    /// Spreads its anchors.
    pub pacer: AnchorPacer,
    /// What anchors may take now, in bits per second.
    pub anchor_rate_bps: u64,
    /// The server's user name fragments of its connection, oldest first.
    pub ufrags: Vec<String>,
    /// Where it wants to be sent to.
    pub nomination: Nomination,
    /// How many addresses it has had since its last credentials.
    paths: usize,
    /// Where its datagrams come from.
    pub addresses: VecDeque<Remote>,
    /// Whether it knows the codec of the anchors.
    decodes_anchors: bool,
    has_data: bool,
    channel: Option<ChannelId>,
    channel_open: bool,
}

impl Peer {
    /// A participant without a connection.
    pub fn new(
        id: ParticipantId,
        room: &str,
        decodes_anchors: bool,
        wakes: Wakes,
        (now, must): (Instant, Instant),
    ) -> Peer {
        Peer {
            id,
            room: room.to_owned(),
            owner: Owner { room: id.0, publisher: id.0 },
            stack: Stack::default(),
            control: Control::default(),
            toll: Toll::default(),
            agreed: Agreed::default(),
            wake: Wake::new(id, wakes, now),
            connected: false,
            must,
            heard: None,
            published: HashMap::new(),
            regions: Regions::default(),
            region_channel: None,
            control_channel: None,
            opened: 0,
            may: May::default(),
            slots: Vec::new(),
            downlink: Downlink::default(),
            allocator: Allocator::default(),
            pacer: AnchorPacer::new(now),
            anchor_rate_bps: 0,
            ufrags: Vec::new(),
            nomination: Nomination::default(),
            paths: 0,
            addresses: VecDeque::new(),
            decodes_anchors,
            has_data: false,
            channel: None,
            channel_open: false,
        }
    }

    /// Has the stack take an offer: the answer, and the server's user name fragment in it. The connection is made for the first one.
    /// `None` where it panicked.
    pub fn accept(
        &mut self,
        offer: SdpOffer,
        (config, locals): (&SfuConfig, &Locals),
        now: Instant,
    ) -> Option<Result<(SdpAnswer, String), RtcError>> {
        self.stack.begin(|| stack::connection(config, locals, now));
        self.stack.call(&mut self.wake, |rtc| {
            plant::panic("offer", &self.room);
            let answer = rtc.sdp_api().accept_offer(offer)?;
            Ok((answer, rtc.direct_api().local_ice_credentials().ufrag))
        })
    }

    /// The slot of an m-line, made on first use.
    pub fn slot(&mut self, mid: Mid, kind: Kind, now: Instant) -> &mut Slot {
        let at = self.slots.iter().position(|s| s.mid == mid).unwrap_or_else(|| {
            // Any start will do; different ones show mix-ups between m-lines.
            let seed = 90_000 * (self.slots.len() as u32 + 1);
            self.slots.push(Slot::new(mid, kind, seed, now));
            self.slots.len() - 1
        });
        &mut self.slots[at]
    }

    /// Whether the client's offer has a place for data channels.
    pub fn set_has_data(&mut self, has: bool) {
        self.has_data |= has;
    }

    /// Whether it can decode anchors, and may have them.
    pub fn takes_anchors(&self) -> bool {
        self.decodes_anchors && self.may.enhance
    }

    /// Whether anchors can reach the participant, and it can decode them.
    pub fn can_take_anchors(&self) -> bool {
        self.channel_open && self.takes_anchors()
    }

    /// Opens the anchor channel as soon as there can be one.
    pub fn open_channel(&mut self, budget: Duration) {
        if !self.connected || !self.has_data || !self.takes_anchors() || self.channel.is_some() {
            return;
        }
        let lifetime = u16::try_from(budget.as_millis()).unwrap_or(u16::MAX);
        let config = ChannelConfig {
            label: CHANNEL.into(),
            ordered: false,
            reliability: Reliability::MaxPacketLifetime { lifetime },
            ..ChannelConfig::default()
        };
        let made = |rtc: &mut Rtc| rtc.direct_api().create_data_channel(config);
        self.channel = self.stack.call(&mut self.wake, made);
        self.wake.touch();
    }

    /// Whether it answers requests for regions: its channel for them is open.
    pub fn gives_regions(&self) -> bool {
        self.region_channel.is_some()
    }

    /// Bytes that the anchor channel still holds.
    pub fn channel_buffered(&mut self) -> usize {
        let Some(id) = self.channel else { return 0 };
        let held = |rtc: &mut Rtc| rtc.channel(id).map(|mut c| c.buffered_amount());
        self.stack.call(&mut self.wake, held).flatten().unwrap_or_default()
    }

    /// Sends what is due of the anchors that wait.
    pub fn release_anchors(&mut self, now: Instant, counters: &mut Counters) {
        while let Some(released) = self.pacer.release(now) {
            self.wake.touch();
            let (slot, sent) = match released {
                Released::Stale(slot) => (slot, None),
                Released::Message(message, ends) => {
                    let taken = self.channel.is_some_and(|id| {
                        let write = |rtc: &mut Rtc| rtc.channel(id)?.write(true, &message).ok();
                        self.stack.call(&mut self.wake, write).flatten().unwrap_or(false)
                    });
                    counters.anchor_messages_refused += u64::from(!taken);
                    let Some((slot, bytes, age)) = ends else { continue };
                    (slot, taken.then_some((bytes, age)))
                }
            };
            let mut slot = self.slots.iter_mut().find(|s| s.mid == slot);
            if let Some(slot) = &mut slot {
                // Of one that is too old a part may have gone.
                slot.sent.claims.sent();
            }
            if let Some((bytes, age)) = sent {
                counters.anchors_out += 1;
                counters.anchors_out_age_ms += age.as_millis() as u64;
                if let Some(slot) = slot {
                    slot.anchor_sent(bytes);
                }
            } else {
                counters.anchors_dropped_late += 1;
                if let Some(slot) = slot {
                    slot.sent.anchors_dropped += 1;
                }
            }
        }
    }

    /// Sets the rates that the stack's bandwidth estimator is to sustain and to probe for: `next_bps` for the next rung, `best_bps`
    /// for the best ones.
    pub fn set_bitrate_targets(&mut self, now: Instant, next_bps: u64, best_bps: u64) {
        if let Some(bps) = self.downlink.take_reset() {
            self.stack.call(&mut self.wake, |rtc| {
                // After a reset the stack probes at three and six times `bps`, but at twice the desired rate at most.
                rtc.bwe().set_bitrate(Bitrate::ZERO, Bitrate::bps(bps));
                rtc.bwe().reset(Bitrate::bps(bps));
            });
        }
        if let Some(targets) = self.downlink.update_targets(now, next_bps, best_bps) {
            let minimum = Bitrate::bps(targets.minimum_bps);
            let desired = Bitrate::bps(targets.desired_bps);
            self.stack.call(&mut self.wake, |rtc| rtc.bwe().set_bitrate(minimum, desired));
        }
    }

    /// Asks the publisher for a key frame of one layer: of the encoding of that name, or the only one.
    pub fn request_key_frame(&mut self, mid: Mid, layer: Layer) -> bool {
        let rid = Rid::from(layer.rid());
        let asked = self.stack.call(&mut self.wake, |rtc| {
            let mut api = rtc.direct_api();
            let rid = Some(rid).filter(|rid| api.stream_rx_by_mid(mid, Some(*rid)).is_some());
            let stream = api.stream_rx_by_mid(mid, rid)?;
            stream.request_keyframe(KeyframeRequestKind::Pli);
            Some(())
        });
        let asked = asked.flatten().is_some();
        if asked {
            self.wake.touch();
        }
        asked
    }

    /// Whether the server's user name fragment is the one of its last offer's answer.
    pub fn is_current(&self, ufrag: &str) -> bool {
        self.ufrags.last().is_some_and(|last| last == ufrag)
    }

    /// Whether it may have another address; one that has had too many must restart ICE.
    pub fn may_come_from_elsewhere(&mut self) -> bool {
        self.paths += 1;
        self.paths <= PATHS
    }

    /// It has new credentials; the oldest ones, if they are forgotten now.
    pub fn renew(&mut self, ufrag: String, most: usize) -> Option<String> {
        self.paths = 0;
        let oldest = (self.ufrags.len() == most).then(|| self.ufrags.remove(0));
        self.ufrags.push(ufrag);
        oldest
    }

    /// Takes in a datagram that is this connection's.
    pub fn receive(&mut self, arrival: Instant, data: &[u8], input: Input) -> Result<(), RtcError> {
        self.wake.touch();
        self.heard = self.heard.max(Some(arrival));
        let (stack, wake, room) = (&mut self.stack, &mut self.wake, &self.room);
        let taken = self.control.watched(arrival, data, || {
            stack.call(wake, |rtc| {
                plant::panic("packet", room);
                rtc.handle_input(input)
            })
        });
        taken.flatten().unwrap_or(Ok(()))
    }

    /// Ends the connection, and takes out what is still to be said.
    pub fn close(&mut self, now: Instant, outputs: &mut VecDeque<Output>) {
        self.stack.call(&mut self.wake, |rtc| rtc.close().is_ok());
        self.drain(now, outputs, &mut Vec::new());
    }

    /// Lets time pass for the connection.
    pub fn tick(&mut self, now: Instant) {
        self.stack.call(&mut self.wake, |rtc| {
            plant::panic("timer", &self.room);
            if let Err(error) = rtc.handle_input(Input::Timeout(now)) {
                tracing::debug!(participant = %self.id, %error, "connection failed");
                rtc.disconnect();
            }
        });
    }

    /// Takes everything out of the connection. Whether it still lives.
    pub fn drain(
        &mut self,
        now: Instant,
        outputs: &mut VecDeque<Output>,
        happenings: &mut Vec<(ParticipantId, Happening)>,
    ) -> bool {
        self.wake.settle();
        let mut tell = |what| happenings.push((self.id, what));
        let drained = self.stack.call(&mut self.wake, |rtc| {
            loop {
                if !rtc.is_alive() {
                    tell(Happening::Gone);
                    return None;
                }
                let event = match rtc.poll_output() {
                    Ok(RtcOutput::Timeout(due)) => {
                        return Some(due);
                    }
                    Ok(RtcOutput::Transmit(t)) => {
                        let data: Vec<u8> = t.contents.into();
                        let to = Remote::of_stack(t.proto, t.destination);
                        let to = self.nomination.redirect(to, &data);
                        let flight = flights::numbers(&data).and_then(|(ssrc, number)| {
                            let slot =
                                self.slots.iter_mut().find(|s| s.ssrc == Some(ssrc.into()))?;
                            slot.flights.end(number, now)
                        });
                        outputs.push_back(Output::Transmit { to, data, arrival: flight });
                        continue;
                    }
                    Ok(RtcOutput::Event(event)) => event,
                    Err(error) => {
                        tracing::debug!(participant = %self.id, %error, "connection failed");
                        tell(Happening::Gone);
                        return None;
                    }
                };
                match event {
                    Event::Connected => {
                        self.connected = true;
                        tell(Happening::Ready);
                    }
                    Event::IceConnectionStateChange(IceConnectionState::Disconnected) => {
                        tell(Happening::Gone);
                        return None;
                    }
                    Event::RtpPacket(packet) => {
                        let stream = rtc
                            .direct_api()
                            .stream_rx(&packet.header.ssrc)
                            .map(|s| (s.mid(), s.rid()));
                        if let Some((mid, rid)) = stream {
                            let named = |rid: Rid| {
                                Layer::from_rid(&rid).map_or(Encoding::Unknown, Encoding::Layer)
                            };
                            tell(Happening::Rtp(
                                mid,
                                rid.map_or(Encoding::Single, named),
                                Box::new(packet),
                            ));
                        }
                    }
                    Event::KeyframeRequest(request) => tell(Happening::KeyFrameWanted(request.mid)),
                    Event::PeerStats(stats) => {
                        let (rtt, loss) = (stats.rtt, stats.egress_loss_fraction);
                        let estimate_bps = stats.bwe_tx.map(|bps| bps.as_f64() as u64);
                        let bytes_sent = stats.peer_bytes_tx;
                        let feedback = Feedback { estimate_bps, rtt, loss, bytes_sent };
                        if self.downlink.on_feedback(stats.timestamp, feedback) {
                            tell(Happening::Narrower);
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
                    Event::ChannelOpen(id, _) if Some(id) == self.channel => {
                        self.channel_open = true;
                        tell(Happening::Ready);
                    }
                    Event::ChannelOpen(id, label) => {
                        self.opened += 1;
                        match label.as_str() {
                            regions::CHANNEL if self.region_channel.is_none() => {
                                self.region_channel = Some(id);
                            }
                            CONTROL if self.control_channel.is_none() => {
                                self.control_channel = Some(id);
                            }
                            _ => rtc.direct_api().close_data_channel(id),
                        }
                    }
                    Event::ChannelClose(id) if Some(id) == self.region_channel => {
                        self.region_channel = None;
                    }
                    Event::ChannelClose(id) if Some(id) == self.control_channel => {
                        self.control_channel = None;
                    }
                    Event::ChannelData(message) if Some(message.id) == self.region_channel => {
                        tell(Happening::Region(message.data));
                    }
                    Event::ChannelClose(id) if Some(id) == self.channel => {
                        self.channel_open = false;
                        tell(Happening::Ready);
                    }
                    _ => {}
                }
            }
        });
        // Asked in any case: the next connection must not be taken for it.
        self.control.settle();
        let too_many_streams = streams::too_many();
        if too_many_streams || self.opened > CHANNELS {
            tell(Happening::TooManyChannels);
        }
        if self.stack.fault().is_some() {
            tell(Happening::Fault);
        }
        let Some(due) = drained.flatten() else { return false };
        self.wake.set_due(self.pacer.timeout().map_or(due, |anchors| anchors.min(due)));
        true
    }

    /// Forwards a video packet on a slot. Says what it became, or `None` if it was not for this subscriber.
    pub fn send_video(
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
            plant::panic("send", &self.room);
            let pt = slot.payload_type(rtc)?;
            let mut ext_vals = ExtensionValues {
                play_delay_min: Some(MediaTime::from_millis(0)),
                play_delay_max: Some(MediaTime::from_millis(PLAYOUT_MAX.as_millis() as u64)),
                ..ExtensionValues::default()
            };
            // Most subscribers share the publisher's payload: it changes only for those who have switched.
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
            slot.sent.video_bytes += bytes as u64;
            slot.ssrc = Some(stream.ssrc());
            slot.flights.begin(seq as u16, packet.came());
            stream.write_rtp(
                RtpWrite::new(pt, seq.into(), timestamp, packet.arrival, data)
                    .marker(packet.marker)
                    .nackable(true)
                    .ext_vals(ext_vals),
            );
            Some((out, bytes))
        });
        let (out, bytes) = sent.flatten()?;
        self.pacer.video_sent(packet.arrival, bytes);
        self.wake.touch();
        counters.rtp_out += 1;
        out
    }

    /// Forwards an audio packet on a slot.
    pub fn send_audio(
        &mut self,
        slot: usize,
        track: TrackId,
        packet: PacketIn,
        payload: &Arc<[u8]>,
        (sound, red): (Sound, Option<(Red<'_>, Pt)>),
    ) -> bool {
        let Some(slot) = self.slots.get_mut(slot) else { return false };
        let sent = self.stack.call(&mut self.wake, |rtc| {
            let opus = slot.payload_type(rtc)?;
            // Into a full queue nothing is sent twice.
            let repeats =
                red.filter(|_| self.downlink.state() != State::Congested).and_then(|_| {
                    // Kept by the stack where both ends have it.
                    rtc.codec_config().params().iter().find(|p| p.pt() == opus)?.red()
                });
            let (pt, payload) = match (red, repeats) {
                (None, _) => (opus, payload.clone()),
                (Some((_, named)), Some(pt)) if named == opus => (pt, payload.clone()),
                (Some((red, _)), Some(pt)) => (pt, red.renamed(*opus).into()),
                (Some((red, _)), None) => (opus, red.primary().into()),
            };
            let mut api = rtc.direct_api();
            let stream = api.stream_tx_by_mid(slot.mid, None)?;
            let (seq, timestamp) = slot.audio.push(track, packet)?;
            let ext_vals = ExtensionValues {
                audio_level: sound.level,
                voice_activity: sound.voice,
                ..ExtensionValues::default()
            };
            slot.sent.video_bytes += payload.len() as u64;
            slot.ssrc = Some(stream.ssrc());
            slot.flights.begin(seq as u16, packet.came());
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

    /// The payload type of the blocks, if what the participant sends with this one is Opus with redundancy.
    pub fn repeats(&self, pt: Pt) -> Option<Pt> {
        let params = self.stack.rtc()?.codec_config().params();
        params.iter().find(|p| p.red() == Some(pt)).map(PayloadParams::pt)
    }

    /// An offer was answered: payload types may be others, and m-lines new.
    pub fn negotiated(&mut self) {
        for slot in &mut self.slots {
            slot.pt = None;
        }
        self.bound_retransmission();
    }

    /// Bounds what retransmission keeps and sends; to be called for new m-lines, and when the downlink's queue has filled up or drained.
    pub fn bound_retransmission(&mut self) {
        let congested = self.downlink.state() == State::Congested;
        let share = if congested { MAX_RTX_SHARE_CONGESTED } else { MAX_RTX_SHARE };
        let other = |s: &&mut Slot| s.kind == Kind::Video && s.rtx_share != Some(share);
        for slot in self.slots.iter_mut().filter(other) {
            self.stack.call(&mut self.wake, |rtc| {
                if let Some(stream) = rtc.direct_api().stream_tx_by_mid(slot.mid, None) {
                    // What it kept is forgotten: what was lost in a full queue is not worth a second try.
                    stream.set_rtx_cache(RTX_PACKETS, RTX_AGE, Some(share));
                    slot.rtx_share = Some(share);
                }
            });
        }
    }

    /// What each subscription was sent in the last `seconds`.
    pub fn second(&mut self, seconds: f64) -> Vec<TrackStats> {
        self.slots.iter_mut().filter_map(|s| s.second(seconds)).collect()
    }

    /// Remembers an address; returns one to forget if there are too many.
    pub fn remember(&mut self, address: Remote) -> Option<Remote> {
        self.addresses.push_back(address);
        (self.addresses.len() > ADDRESSES).then(|| self.addresses.pop_front()).flatten()
    }
}

/// The payload type to send on an m-line: the client's first, if it is one that we forward.
fn payload_type(rtc: &Rtc, mid: Mid) -> Option<Pt> {
    let media = rtc.media(mid)?;
    let config = rtc.codec_config();
    media.remote_pts().iter().copied().find(|&pt| {
        config
            .params()
            .iter()
            .any(|p| p.pt() == pt && matches!(p.spec().format.profile_id, None | Some(0)))
    })
}
