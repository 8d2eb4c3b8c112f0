//! The server's own copy of one layer: complete VP9 frames in decoding order, for the enhancer.
//!
//! Packets are put in order within a small window, so that what NACK recovers still fits in. What does not come
//! within [`PATIENCE`] or [`WINDOW`] packets is a gap: the decoder then waits for a key frame, and so does the tap.
//!
//! Each key frame costs everybody's video bits, so a tap that needs one again and again (a decoder that cannot read
//! the stream, an enhancer that takes nothing) asks ever more rarely.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_types::{AnchorPolicy, Epoch, Layer, Owner, StreamId, TapFrame, TapInput};

use super::keyframes;
use super::rewriter::PacketIn;
use super::vp9::{Descriptor, key_frame_size};

/// How long a missing packet is waited for.
pub const PATIENCE: Duration = Duration::from_millis(100);
/// How many packets may wait behind a missing one.
pub const WINDOW: usize = 64;
/// How many former epochs keep their layer, for anchors under way.
const EPOCHS: usize = 8;
/// Frames without an interruption for this long make former requests for key frames forgotten.
const STEADY: Duration = Duration::from_secs(2);
/// Requests for whole anchors that come within this time are one.
const WHOLE_INTERVAL: Duration = Duration::from_millis(200);
/// How often the time between two requests doubles at most.
const DOUBLINGS: u32 = 5;

struct Waiting {
    packet: PacketIn,
    /// `None` for padding, which only takes up a number.
    descriptor: Option<Descriptor>,
    payload: Arc<[u8]>,
}

impl Waiting {
    fn starts_key(&self) -> bool {
        self.descriptor.is_some_and(|d| d.starts_key())
    }
}

/// The frame that is being put together.
#[derive(Default)]
struct Partial {
    data: Vec<u8>,
    key: bool,
    arrival: Option<Instant>,
}

/// See the module.
pub struct Tap {
    stream: StreamId,
    layer: Layer,
    frame_bytes: usize,
    waiting: BTreeMap<u64, Waiting>,
    /// The packet that must come next; `None` while a key frame is awaited.
    next: Option<u64>,
    partial: Option<Partial>,
    /// Whether the enhancer must hear of a gap before the next frame.
    gap_due: bool,
    /// By how much its pictures may be enlarged.
    pub most_scale: u16,
    /// How the stream's anchors are chosen.
    pub policy: AnchorPolicy,
    /// Of which room and publisher the stream is.
    pub owner: Owner,
    /// Most pixels of a picture; nothing comes out of larger ones. Without bound unless it is said.
    pub most_pixels: u32,
    /// The last key frame was larger.
    too_large: bool,
    size: Option<(u16, u16)>,
    epochs: VecDeque<(Epoch, Layer)>,
    next_epoch: u16,
    out: VecDeque<TapInput>,
    /// Key frames asked for since frames last came steadily, and when the next request may be made.
    asked: u32,
    ask_at: Option<Instant>,
    /// When the key frame came that all frames since follow.
    steady_since: Option<Instant>,
    /// When a request for a whole anchor was passed on.
    whole: Option<Instant>,
    /// Gaps so far.
    pub gaps: u64,
}

impl Tap {
    /// A tap of `layer`; `first_epoch` is greater than those of any former tap of the stream.
    pub fn new(stream: StreamId, layer: Layer, first_epoch: u16, frame_bytes: usize) -> Tap {
        Tap {
            stream,
            layer,
            frame_bytes,
            waiting: BTreeMap::new(),
            next: None,
            partial: None,
            gap_due: false,
            most_scale: layer.most_scale(),
            policy: AnchorPolicy::default(),
            owner: Owner::alone(stream),
            most_pixels: u32::MAX,
            too_large: false,
            size: None,
            epochs: VecDeque::new(),
            next_epoch: first_epoch,
            out: VecDeque::new(),
            asked: 0,
            ask_at: None,
            steady_since: None,
            whole: None,
            gaps: 0,
        }
    }

    /// Whether a subscriber's request for a whole anchor is to be passed on now: those that follow one closely mean the
    /// same anchor, and however many they are, they must not crowd out frames.
    pub fn passes_whole(&mut self, now: Instant) -> bool {
        let rested =
            self.whole.is_none_or(|then| now.saturating_duration_since(then) >= WHOLE_INTERVAL);
        if rested {
            self.whole = Some(now);
        }
        rested
    }

    /// Whose layer it is.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Width and height of its pictures, as the last key frame said.
    pub fn size(&self) -> Option<(u16, u16)> {
        self.size
    }

    /// Whether nothing comes out because pictures are too large.
    pub fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// The layer that is copied.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// Copies another layer from its next key frame on.
    pub fn set_layer(&mut self, layer: Layer) {
        if layer != self.layer {
            self.layer = layer;
            self.most_scale = layer.most_scale();
            self.size = None;
            self.too_large = false;
            self.await_key();
            self.waiting.clear();
        }
    }

    /// Whether to ask for a key frame now: nothing can come out before one, and it is not too soon to ask.
    pub fn asks_for_key(&mut self, now: Instant) -> bool {
        // Another key frame of that size would be of no use.
        if self.next.is_some() || self.too_large || self.ask_at.is_some_and(|at| now < at) {
            return false;
        }
        self.ask_at = Some(now + keyframes::PACE * (1 << self.asked.min(DOUBLINGS)));
        self.asked += 1;
        true
    }

    /// Which layer an epoch was made of; `None` for those long gone.
    pub fn layer_of(&self, epoch: Epoch) -> Option<Layer> {
        self.epochs.iter().find(|e| e.0 == epoch).map(|e| e.1)
    }

    /// The first epoch number that has not been used.
    pub fn next_epoch(&self) -> u16 {
        self.next_epoch
    }

    /// What did not fit into the enhancer's queue is lost to it.
    pub fn refused(&mut self) {
        self.await_key();
        self.gap_due = true;
    }

    /// The decoder cannot go on.
    pub fn need_key(&mut self) {
        self.await_key();
    }

    /// What has been put together.
    pub fn poll(&mut self) -> Option<TapInput> {
        self.out.pop_front()
    }

    /// When [`Tap::advance`] is due, while a packet is missing.
    pub fn timeout(&self) -> Option<Instant> {
        let next = self.next?;
        let (&first, oldest) = self.waiting.first_key_value()?;
        (first != next).then(|| oldest.packet.arrival + PATIENCE)
    }

    /// Gives up on what has been missing for too long.
    pub fn advance(&mut self, now: Instant) {
        while self.timeout().is_some_and(|t| t <= now) {
            self.gap();
        }
    }

    /// Takes a packet of the layer. Malformed ones are left out; the caller has counted them.
    pub fn push(&mut self, packet: PacketIn, payload: &Arc<[u8]>) {
        let descriptor = match Descriptor::parse(payload) {
            Ok(descriptor) => Some(descriptor),
            Err(_) if payload.is_empty() => None,
            Err(_) => return,
        };
        if self.next.is_some_and(|next| packet.seq < next) {
            return;
        }
        let waiting = Waiting { packet, descriptor, payload: payload.clone() };
        let starts_key = waiting.starts_key();
        self.waiting.insert(packet.seq, waiting);
        if self.next.is_none() && starts_key {
            self.begin_at(packet.seq);
        }
        if self.next.is_none() {
            // Later packets of a key frame may come before its first one; older ones are of no use.
            while self.waiting.len() > WINDOW {
                self.waiting.pop_first();
            }
            return;
        }
        self.assemble();
        while self.waiting.len() > WINDOW {
            self.gap();
        }
        self.advance(packet.arrival);
    }

    fn begin_at(&mut self, seq: u64) {
        self.waiting = self.waiting.split_off(&seq);
        self.next = Some(seq);
        self.partial = None;
    }

    fn await_key(&mut self) {
        self.next = None;
        self.partial = None;
        self.steady_since = None;
    }

    /// Frames are missing: goes on at a key frame that is here already, or waits for one.
    fn gap(&mut self) {
        self.gaps += 1;
        self.gap_due = true;
        self.await_key();
        let key = self.waiting.iter().find(|(_, w)| w.starts_key()).map(|(&seq, _)| seq);
        match key {
            Some(seq) => {
                self.begin_at(seq);
                self.assemble();
            }
            None => self.waiting.clear(),
        }
        if self.next.is_none() && self.gap_due {
            self.gap_due = false;
            self.out.push_back(TapInput::Gap { stream: self.stream });
        }
    }

    fn assemble(&mut self) {
        while let Some(next) = self.next {
            let Some(waiting) = self.waiting.remove(&next) else { return };
            self.next = Some(next + 1);
            let Waiting { packet, descriptor, payload } = waiting;
            let Some(descriptor) = descriptor else { continue };
            if descriptor.begin {
                self.partial = Some(Partial { key: !descriptor.inter, ..Partial::default() });
            }
            let Some(partial) = self.partial.as_mut() else { continue };
            partial.data.extend_from_slice(&payload[descriptor.len..]);
            partial.arrival = partial.arrival.max(Some(packet.arrival));
            if partial.data.len() > self.frame_bytes {
                self.gap();
                return;
            }
            if descriptor.end && packet.marker {
                let partial = self.partial.take().unwrap_or_default();
                self.finish(partial, packet);
            }
        }
    }

    fn finish(&mut self, partial: Partial, packet: PacketIn) {
        if partial.key {
            let Some(size) = key_frame_size(&partial.data) else {
                // Another profile, or not VP9: nothing that can be decoded until a better key frame comes.
                self.await_key();
                return;
            };
            self.too_large = exceeds(size, self.most_pixels);
            if self.too_large {
                self.size = Some(size);
                self.await_key();
                self.gap_due = true;
                return;
            }
            if self.size != Some(size) || self.epochs.back().is_none_or(|e| e.1 != self.layer) {
                self.size = Some(size);
                if self.epochs.len() == EPOCHS {
                    self.epochs.pop_front();
                }
                self.epochs.push_back((Epoch(self.next_epoch), self.layer));
                self.next_epoch = self.next_epoch.wrapping_add(1);
            }
        }
        let Some(&(epoch, _)) = self.epochs.back() else { return };
        let since = *self.steady_since.get_or_insert(packet.arrival);
        if packet.arrival.saturating_duration_since(since) >= STEADY {
            (self.asked, self.ask_at) = (0, None);
        }
        if std::mem::take(&mut self.gap_due) {
            self.out.push_back(TapInput::Gap { stream: self.stream });
        }
        self.out.push_back(TapInput::Frame(TapFrame {
            stream: self.stream,
            owner: self.owner,
            epoch,
            rtp_timestamp: packet.timestamp,
            arrival: partial.arrival.unwrap_or(packet.arrival),
            key: partial.key,
            most_scale: self.most_scale,
            policy: self.policy,
            data: partial.data.into(),
        }));
    }
}

/// Whether a picture has more than so many pixels.
pub fn exceeds((width, height): (u16, u16), most_pixels: u32) -> bool {
    u32::from(width) * u32::from(height) > most_pixels
}

#[cfg(test)]
#[path = "tap_tests.rs"]
mod tests;
