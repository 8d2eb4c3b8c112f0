//! One subscriber's continuous stream out of the layers of its track (and of other tracks, on a re-used m-line).
//!
//! In: packets of any layer, with the publisher's numbers. Out: the same packets with numbers of one timeline: sequence
//! number, RTP timestamp, picture id, TL0PICIDX and a frame counter for the Dependency Descriptor. A switch happens
//! only where a key frame of the wanted source begins. Packets of the current source that come late (reordered, or
//! repaired by RTX) get the number that was kept free for them. Packets from before the switch, and packets of a former
//! source, are dropped. When the key frame's first packet itself comes late, what overtook it was dropped too, so the
//! caller repeats it ([`PacketOut::switched`]). Higher temporal layers can be left out ([`Thinning`]), and higher
//! spatial layers ([`SpatialLimit`]).
//!
//! [`Rewriter::locate`] is the timestamp map that anchors use: it remembers the frames that were really forwarded,
//! so an anchor meets its frame or nothing, over switches and wrap-around.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use windlass_types::relay::RelayedPacket;
use windlass_types::{FrameLayers, Layer, Size, VideoCodec};

use super::spatial::{ALL_SPATIAL, SpatialLimit};
use super::thinning::{Number, Numbering, Thinning};
use crate::api::TrackId;
use crate::core::codec;
use crate::core::codec::descriptor::{Descriptor, MAX_SPATIAL, SpatialLayers};

/// A source of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    /// The track that the packets are of.
    pub track: TrackId,
    /// The layer of the track.
    pub layer: Layer,
}

/// The fields of a publisher's packet that forwarding needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketIn {
    /// Extended sequence number of its layer.
    pub seq: u64,
    /// The publisher's RTP timestamp.
    pub timestamp: u32,
    /// When it reached the SFU.
    pub arrival: Instant,
    /// Time that the packet waited for its thread, if another thread received it.
    pub handover_delay: Duration,
    /// The RTP marker: last packet of a frame.
    pub marker: bool,
    /// The codec of video; of no meaning for audio.
    pub codec: VideoCodec,
    /// The layers of the frame, where the publisher says them beside the payload.
    pub frame: Option<FrameLayers>,
    /// Whether the packet came so late that the packets after it are not kept. No switch may begin at such a packet.
    pub stale: bool,
}

impl PacketIn {
    /// A packet of a node, which came now.
    pub(crate) fn relayed(packet: &RelayedPacket, now: Instant) -> PacketIn {
        PacketIn {
            seq: packet.seq,
            timestamp: packet.timestamp,
            arrival: now,
            handover_delay: Duration::ZERO,
            marker: packet.marker,
            codec: packet.codec,
            frame: packet.frame,
            stale: false,
        }
    }

    /// A packet of one frame in VP9, which came now.
    #[cfg(test)]
    pub(crate) fn alone(seq: u64, arrival: Instant) -> PacketIn {
        PacketIn {
            seq,
            timestamp: 0,
            arrival,
            handover_delay: Duration::ZERO,
            marker: true,
            codec: VideoCodec::Vp9,
            frame: None,
            stale: false,
        }
    }

    /// When the packet arrived at the kernel.
    pub(crate) fn kernel_arrival(&self) -> Instant {
        self.arrival.checked_sub(self.handover_delay).unwrap_or(self.arrival)
    }
}

/// The numbers of a packet in the subscriber's timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketOut {
    /// Extended sequence number.
    pub seq: u64,
    /// RTP timestamp.
    pub timestamp: u32,
    /// Number of the frame; frames that the publisher's stream is missing have numbers too.
    pub frame: u16,
    /// Whether the frame is a key frame.
    pub key: bool,
    /// First packet of the frame.
    pub begin: bool,
    /// Last packet of the frame.
    pub end: bool,
    /// The RTP marker.
    pub marker: bool,
    /// Whether the packet begins a new epoch: a switch, or a new resolution.
    pub new_epoch: bool,
    /// Whether the packet begins a switch: packets of the source that came before it and follow it must be repeated.
    pub switched: bool,
}

/// Values of a packet's payload descriptor in the subscriber's timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rewrite {
    descriptor: Descriptor,
    picture_id: u16,
    tl0: u8,
}

impl Rewrite {
    /// The values, if they are others than the packet's.
    fn changed(self) -> Option<Rewrite> {
        let Rewrite { descriptor, picture_id, tl0 } = self;
        let id = descriptor.picture_id.filter(|id| id.offset.is_some());
        let same = id.is_none_or(|id| id.value == picture_id)
            && descriptor.tl0.is_none_or(|(value, _)| value == tl0);
        (!same).then_some(self)
    }

    /// Writes the values into the packet's payload, or a copy of it.
    pub(crate) fn apply(self, payload: &mut [u8]) {
        self.descriptor.rewrite(payload, self.picture_id, self.tl0);
    }
}

/// Why a packet is not forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// The packet is of another source than the current one.
    OtherSource,
    /// The packet is of the current source, from before the switch.
    BeforeSwitch,
    /// The packet is of a temporal or spatial layer that is left out. `reserved`: the number and the timestamp that
    /// were kept free for it, which padding must take.
    HigherLayer { reserved: Option<(u64, u32)> },
    /// The start of the packet's payload cannot be read.
    Malformed,
}

/// A frame that was forwarded.
#[derive(Debug, Clone, Copy)]
struct Forwarded {
    source: Source,
    publisher: u32,
    subscriber: u32,
    epoch: u16,
    /// The publisher's picture id.
    picture_id: Option<u16>,
    frame: i64,
    /// Highest spatial layer that is forwarded of it.
    max_spatial: u8,
}

/// The current source and its offsets to the subscriber's timeline.
#[derive(Debug)]
struct Span {
    source: Source,
    first_seq: u64,
    seq: i64,
    timestamp: u32,
    picture_id: u16,
    tl0: u8,
    /// The newest frame, from which others are numbered.
    newest: Option<Newest>,
    /// Sizes of the spatial layers, where the last key frame says them.
    sizes: [Option<Size>; MAX_SPATIAL],
}

/// The newest frame of a source.
#[derive(Debug, Clone, Copy)]
struct Newest {
    picture_id: u16,
    /// TL0PICIDX, which counts the frames of the base temporal layer.
    tl0: Option<u8>,
    frame: i64,
}

/// Number of forwarded frames that anchors can refer to: over 4 s at 30 frames a second.
const MAX_FRAMES: usize = 128;
/// The subscriber's first sequence number; small, so that its extension begins at zero.
const FIRST_SEQ: u64 = 1000;
/// RTP clock rate of video, in ticks per millisecond.
const CLOCK_PER_MS: u64 = 90;

/// The timeline of one subscriber's m-line.
#[derive(Debug)]
pub(crate) struct Rewriter {
    target: Option<Source>,
    span: Option<Span>,
    thinning: Thinning,
    spatial: SpatialLimit,
    epoch: u16,
    /// Highest spatial layer that is forwarded in this epoch.
    epoch_spatial: u8,
    size: Option<Size>,
    /// The publisher's sequence number of the packet that gave `size`.
    size_seq: u64,
    next_seq: u64,
    last_timestamp: u32,
    last_arrival: Option<Instant>,
    last_picture_id: u16,
    last_tl0: u8,
    last_frame: i64,
    forwarded: VecDeque<Forwarded>,
}

impl Rewriter {
    /// A video stream that has not begun. `timestamp` is where its timeline begins.
    pub(crate) fn new(timestamp: u32) -> Rewriter {
        Rewriter {
            target: None,
            span: None,
            thinning: Thinning::default(),
            spatial: SpatialLimit::default(),
            epoch: 0,
            epoch_spatial: ALL_SPATIAL,
            size: None,
            size_seq: 0,
            next_seq: FIRST_SEQ,
            last_timestamp: timestamp,
            last_arrival: None,
            last_picture_id: 0,
            last_tl0: 0,
            last_frame: 0,
            forwarded: VecDeque::with_capacity(MAX_FRAMES),
        }
    }

    /// Sets the source to switch to at its next key frame. `None` ends forwarding at once.
    pub(crate) fn set_target(&mut self, target: Option<Source>) {
        self.target = target;
        let other_track =
            target.is_none_or(|t| self.span.as_ref().is_some_and(|s| s.source.track != t.track));
        if other_track {
            self.span = None;
        }
    }

    /// Sets the highest temporal layer that is forwarded, where the publisher sends several; `None`: all are.
    pub(crate) fn set_max_temporal(&mut self, layer: Option<u8>) {
        self.thinning.set_max(layer);
    }

    /// Sets the highest spatial layer that is forwarded, where the publisher sends several; `None`: all are.
    pub(crate) fn set_max_spatial(&mut self, layer: Option<u8>) {
        self.spatial.set_max(layer);
    }

    /// Whether the stream comes in spatial layers.
    pub(crate) fn has_spatial(&self) -> bool {
        self.spatial.count() > 1
    }

    /// The highest spatial layer that is forwarded now; above all of them: all are.
    pub(crate) fn max_spatial(&self) -> u8 {
        self.spatial.current()
    }

    /// The source that is forwarded.
    pub(crate) fn current(&self) -> Option<Source> {
        self.span.as_ref().map(|s| s.source)
    }

    /// The source whose key frame is being waited for.
    pub(crate) fn waits_for(&self) -> Option<Source> {
        self.target.filter(|&t| self.current() != Some(t))
    }

    /// The source whose key frame is needed: that which is waited for, or the current one if layers that were left out
    /// find no other place to come back.
    pub(crate) fn needs_key_frame_of(&self) -> Option<Source> {
        let needs = self.thinning.needs_key_frame() || self.spatial.needs_key_frame();
        let current = self.current().filter(|_| needs);
        self.waits_for().or(current)
    }

    /// Whether packets of this source are for this subscriber now.
    pub(crate) fn concerns(&self, source: Source) -> bool {
        Some(source) == self.target || Some(source) == self.current()
    }

    /// The subscriber's epoch, and the size of its frames where known.
    pub(crate) fn epoch(&self) -> (u16, Option<Size>) {
        (self.epoch, self.size)
    }

    /// The place of a publisher's frame in the subscriber's timeline: timestamp and epoch. `None` when that frame
    /// was not forwarded, or a newer epoch has begun since.
    pub(crate) fn locate(&self, source: Source, timestamp: u32) -> Option<(u32, u16)> {
        let frame =
            self.forwarded.iter().rev().find(|f| f.source == source && f.publisher == timestamp)?;
        (frame.epoch == self.epoch).then_some((frame.subscriber, frame.epoch))
    }

    /// Places a packet as [`Rewriter::renumber`] does, and rewrites its payload.
    #[cfg(test)]
    pub(crate) fn push(
        &mut self,
        source: Source,
        packet: PacketIn,
        payload: &mut [u8],
    ) -> Result<PacketOut, Dropped> {
        let (out, rewrite) = self.renumber(source, packet, payload)?;
        if let Some(rewrite) = rewrite {
            rewrite.apply(payload);
        }
        Ok(out)
    }

    /// Places a packet in the subscriber's timeline. Returns its numbers and the changes of its payload descriptor, or
    /// why it is dropped.
    pub(crate) fn renumber(
        &mut self,
        source: Source,
        packet: PacketIn,
        payload: &[u8],
    ) -> Result<(PacketOut, Option<Rewrite>), Dropped> {
        if !self.concerns(source) {
            return Err(Dropped::OtherSource);
        }
        let descriptor = codec::parse(packet.codec, packet.frame, payload);
        let descriptor = descriptor.map_err(|_| Dropped::Malformed)?;
        let is_key = descriptor.starts_key();
        let switched = self.waits_for() == Some(source) && is_key && !packet.stale;
        if switched {
            self.switch(source, packet, &descriptor);
        }
        let Some(span) = self.span.as_mut().filter(|s| s.source == source) else {
            return Err(Dropped::OtherSource);
        };
        if packet.seq < span.first_seq {
            return Err(Dropped::BeforeSwitch);
        }
        let before = self.thinning.before(packet.seq);
        let before = before.ok_or(Dropped::HigherLayer { reserved: None })?;
        let seq = packet.seq.checked_add_signed(span.seq).and_then(|seq| seq.checked_sub(before));
        let seq = seq.ok_or(Dropped::BeforeSwitch)?;
        let timestamp = packet.timestamp.wrapping_add(span.timestamp);
        let known = self
            .forwarded
            .iter()
            .rposition(|f| f.source == source && f.publisher == packet.timestamp);
        // A publisher may add layers without a key frame.
        let recounted = (is_key || descriptor.layers.is_some()) && {
            let layers = descriptor.layers.unwrap_or(SpatialLayers::ONE);
            span.sizes = layers.sizes;
            self.spatial.set_count(layers.count)
        };
        let begins = known.is_none() && self.thinning.is_newest(packet.seq);
        // Where nothing is missing before it, the picture has no smallest layer.
        let lacks_base = known.is_none() && self.thinning.follows(packet.seq);
        let max_spatial = match known {
            Some(i) => self.forwarded[i].max_spatial,
            None if begins => self.spatial.begin_picture(is_key),
            None => self.spatial.current(),
        };
        if descriptor.spatial > max_spatial {
            let number =
                self.thinning.leave_out_part(packet.seq, packet.timestamp, known.is_none());
            return Err(self.left_out(number, seq, timestamp));
        }
        let frame = match known {
            Some(i) => Some(self.forwarded[i].frame),
            None => self
                .thinning
                .admit(&descriptor, packet.seq, packet.timestamp)
                .and_then(|by| span.number(&descriptor, self.last_frame, by, &self.forwarded)),
        };
        let Some(frame) = frame else {
            let layer = descriptor.temporal;
            let number = self.thinning.leave_out(packet.seq, packet.timestamp, layer);
            return Err(self.left_out(number, seq, timestamp));
        };
        self.thinning.number(packet.seq);
        let rewrite = span.rewrite(descriptor);
        let other_layers = recounted || begins && max_spatial != self.epoch_spatial;
        if other_layers {
            self.size = span.size(max_spatial).or(self.size);
        }
        let other_size = is_key && {
            let size = codec::size(packet.codec, &descriptor, payload);
            size.is_some_and(|size| self.take_size(packet.seq, size, max_spatial))
        };
        let new_epoch = switched || other_layers || other_size;
        if new_epoch {
            self.begin_epoch(max_spatial);
        }
        let place = Forwarded {
            source,
            publisher: packet.timestamp,
            subscriber: timestamp,
            epoch: self.epoch,
            picture_id: descriptor.picture_id.map(|id| id.value),
            frame,
            max_spatial,
        };
        self.remember(known, new_epoch, place);
        self.last_frame = self.last_frame.max(frame);
        if seq >= self.next_seq {
            self.advance(seq, timestamp, packet.arrival, &rewrite);
        }
        let marker = packet.marker || descriptor.end && descriptor.spatial == max_spatial;
        let out = PacketOut {
            seq,
            timestamp,
            frame: frame as u16,
            key: !descriptor.inter,
            begin: descriptor.begin && (descriptor.spatial == 0 || lacks_base),
            end: descriptor.end && marker,
            marker,
            new_epoch,
            switched,
        };
        Ok((out, rewrite.changed()))
    }

    /// Begins an epoch: anchors of the former one do not fit its pictures, of spatial layers up to this one.
    fn begin_epoch(&mut self, max_spatial: u8) {
        self.epoch = self.epoch.wrapping_add(1);
        self.epoch_spatial = max_spatial;
    }

    /// Keeps what the next packet continues: this one is the newest that the subscriber gets.
    fn advance(&mut self, seq: u64, timestamp: u32, arrival: Instant, rewrite: &Rewrite) {
        self.next_seq = seq + 1;
        self.last_timestamp = timestamp;
        self.last_arrival = Some(arrival);
        self.last_picture_id = rewrite.picture_id;
        self.last_tl0 = rewrite.tl0;
    }

    /// Takes the size of a key frame's smallest spatial layer. Returns whether pictures have another size from it on.
    fn take_size(&mut self, seq: u64, smallest: Size, max_spatial: u8) -> bool {
        // A key frame that came after a newer one does not have the current size.
        let Some(span) = self.span.as_mut().filter(|_| seq >= self.size_seq) else { return false };
        // What is said outside of the frame may be older.
        span.sizes[0] = Some(smallest);
        let size = span.size(max_spatial);
        self.size_seq = seq;
        std::mem::replace(&mut self.size, size) != size
    }

    /// Remembers a frame that is forwarded; `known`: its place among those that are remembered already.
    fn remember(&mut self, known: Option<usize>, new_epoch: bool, place: Forwarded) {
        match known {
            Some(i) if new_epoch => self.forwarded[i] = place,
            Some(_) => {}
            None => {
                if self.forwarded.len() == MAX_FRAMES {
                    self.forwarded.pop_front();
                }
                self.forwarded.push_back(place);
            }
        }
    }

    /// Why a packet that is left out is dropped. `seq` and `timestamp`: its place, were it forwarded.
    fn left_out(&mut self, number: Number, seq: u64, timestamp: u32) -> Dropped {
        let reserved = (number == Number::Reserved).then_some((seq, timestamp));
        if reserved.is_some() {
            self.next_seq = self.next_seq.max(seq + 1);
        }
        Dropped::HigherLayer { reserved }
    }

    /// Places a packet without payload (padding).
    pub(crate) fn push_empty(&mut self, source: Source, packet: PacketIn) -> Option<(u64, u32)> {
        let span =
            self.span.as_ref().filter(|s| s.source == source && packet.seq >= s.first_seq)?;
        let before = self.thinning.before(packet.seq)?;
        let seq = packet.seq.checked_add_signed(span.seq)?.checked_sub(before)?;
        self.thinning.number(packet.seq);
        self.next_seq = self.next_seq.max(seq + 1);
        Some((seq, packet.timestamp.wrapping_add(span.timestamp)))
    }

    fn switch(&mut self, source: Source, packet: PacketIn, descriptor: &Descriptor) {
        let elapsed = self.last_arrival.map_or(0, |last| {
            let ticks = packet.arrival.saturating_duration_since(last).as_micros() as u64
                * CLOCK_PER_MS
                / 1000;
            ticks.max(1)
        });
        let timestamp = self.last_timestamp.wrapping_add(elapsed as u32);
        // A new stream keeps the publisher's picture ids, so that subscribers share its payloads.
        let begins = self.last_arrival.is_none();
        let after = |last: u16, first: u16| last.wrapping_add(1).wrapping_sub(first);
        let (picture_id, tl0) = (descriptor.picture_id.map_or(0, |p| p.value), descriptor.tl0);
        if begins {
            self.last_frame = i64::from(picture_id) - 1;
        }
        (self.size, self.size_seq) = (None, 0);
        self.thinning.begin(packet.seq);
        self.spatial.begin(descriptor.layers.unwrap_or(SpatialLayers::ONE).count);
        // Earlier frames of this source have other numbers.
        self.forwarded.retain(|f| f.source != source);
        self.span = Some(Span {
            source,
            first_seq: packet.seq,
            seq: self.next_seq as i64 - packet.seq as i64,
            timestamp: timestamp.wrapping_sub(packet.timestamp),
            picture_id: if begins { 0 } else { after(self.last_picture_id, picture_id) },
            tl0: if begins {
                0
            } else {
                after(self.last_tl0.into(), tl0.map_or(0, |t| t.0.into())) as u8
            },
            newest: None,
            sizes: [None; MAX_SPATIAL],
        });
    }
}

impl Span {
    /// The values of a packet's payload descriptor in the subscriber's timeline.
    fn rewrite(&self, descriptor: Descriptor) -> Rewrite {
        let id = descriptor.picture_id;
        let picture_id = id.map_or(0, |id| id.value.wrapping_add(self.picture_id) & id.mask());
        let tl0 = descriptor.tl0.map_or(0, |(value, _)| value.wrapping_add(self.tl0));
        Rewrite { descriptor, picture_id, tl0 }
    }

    /// Size of pictures up to a spatial layer, as the last key frame says.
    fn size(&self, max_spatial: u8) -> Option<Size> {
        let sizes = self.sizes.iter().take(usize::from(max_spatial) + 1);
        sizes.rev().copied().flatten().next()
    }

    /// The number of a frame that was not seen before; `None` where none is left for it. Picture ids count the frames
    /// that are missing too. Where frames were left out, only missing frames of the base temporal layer count, and a
    /// late frame has the number after the frame before it.
    fn number(
        &mut self,
        descriptor: &Descriptor,
        last_frame: i64,
        numbering: Numbering,
        forwarded: &VecDeque<Forwarded>,
    ) -> Option<i64> {
        let Some(id) = descriptor.picture_id else { return Some(last_frame + 1) };
        let tl0 = descriptor.tl0.map(|(tl0, _)| tl0);
        let Some(newest) = self.newest else {
            let frame = last_frame + 1;
            self.newest = Some(Newest { picture_id: id.value, tl0, frame });
            return Some(frame);
        };
        let ahead = id.value.wrapping_sub(newest.picture_id) & id.mask();
        let back = newest.picture_id.wrapping_sub(id.value) & id.mask();
        let is_newest = ahead <= back;
        let frame = match (numbering, is_newest) {
            (Numbering::ByPicture, true) => newest.frame + i64::from(ahead),
            (Numbering::ByPicture, false) => newest.frame - i64::from(back),
            (Numbering::Closed { missing }, true) => {
                let bases = tl0.zip(newest.tl0).map(|(tl0, newest)| tl0.wrapping_sub(newest) as i8);
                let above = i64::from(!descriptor.is_base());
                newest.frame
                    + bases.map_or(1 + i64::from(missing), |n| (i64::from(n) + above).max(1))
            }
            (Numbering::Closed { .. }, false) => {
                let own = |f: &&Forwarded| f.source == self.source;
                let before = forwarded.iter().filter(own).filter_map(|f| {
                    let distance = id.value.wrapping_sub(f.picture_id?) & id.mask();
                    (1..=id.mask() / 2).contains(&distance).then_some((distance, f.frame))
                });
                let frame = before.min()?.1 + 1;
                if forwarded.iter().filter(own).any(|f| f.frame == frame) {
                    return None;
                }
                frame
            }
        };
        if is_newest && ahead > 0 {
            self.newest = Some(Newest { picture_id: id.value, tl0, frame });
        }
        Some(frame)
    }
}

#[cfg(test)]
#[path = "rewriter_tests.rs"]
mod tests;
