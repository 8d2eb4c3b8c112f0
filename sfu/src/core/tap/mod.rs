//! A tap: the server's copy of one layer, as complete VP9 frames in decoding order, for the enhancer.
//!
//! Packets are reordered within a small window, so that retransmissions fit in. A packet that does not come within
//! [`MAX_WAIT`] or [`MAX_WAITING`] packets is a gap: the decoder then needs a key frame, and so does the tap.
//!
//! A tap that needs a key frame again and again (a decoder that cannot read the stream, a full queue of the enhancer)
//! requests them less and less often ([`TapKeys`]).

pub(super) mod alignment;
pub(super) mod capture;
pub(super) mod epochs;
pub(super) mod key_requests;
pub(super) mod tapped_layers;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_types::key_frame::key_frame_size;
use windlass_types::{AnchorPolicy, Epoch, Layer, Owner, Size, StreamId, TapFrame, TapInput};

use self::epochs::TapEpochs;
use self::key_requests::TapKeys;
use crate::core::codec::descriptor::Descriptor;
use crate::core::codec::vp9;
use crate::core::subscriber::rewriter::PacketIn;

/// Time to wait for a missing packet: a retransmission over a usual round trip.
pub(crate) const MAX_WAIT: Duration = Duration::from_millis(100);
/// Maximum number of packets that wait behind a missing one.
pub(crate) const MAX_WAITING: usize = 64;
/// Minimum time between two requests for a key anchor. Requests that are closer together mean the same anchor.
const MIN_KEY_ANCHOR_INTERVAL: Duration = Duration::from_millis(200);

struct Waiting {
    packet: PacketIn,
    /// The packet's payload descriptor; `None` for padding, which has a sequence number and no payload.
    descriptor: Option<Descriptor>,
    payload: Arc<[u8]>,
}

impl Waiting {
    fn starts_key(&self) -> bool {
        self.descriptor.is_some_and(|d| d.starts_key())
    }
}

/// A frame whose last packets are missing.
#[derive(Default)]
struct Partial {
    data: Vec<u8>,
    key: bool,
    arrival: Option<Instant>,
}

/// Terms of a tap, which each allocation sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TapTerms {
    /// Maximum scale of the stream's anchors.
    pub(crate) max_scale: u16,
    /// Policy by which the stream's anchors are chosen.
    pub(crate) policy: AnchorPolicy,
    /// Room and publisher of the stream, for fair shares of the enhancer.
    pub(crate) owner: Owner,
    /// Maximum pixels of a frame; larger frames are not passed on.
    pub(crate) max_pixels: u32,
}

/// The tap of one layer.
pub(crate) struct Tap {
    stream: StreamId,
    layer: Layer,
    max_frame_bytes: usize,
    waiting: BTreeMap<u64, Waiting>,
    /// Sequence number of the next packet; `None` while waiting for a key frame.
    next: Option<u64>,
    partial: Option<Partial>,
    /// Whether a gap must be signalled before the next frame.
    gap_due: bool,
    terms: TapTerms,
    /// Whether the last key frame was larger than the terms allow.
    too_large: bool,
    size: Option<Size>,
    epochs: TapEpochs,
    out: VecDeque<TapInput>,
    keys: TapKeys,
    /// When a key anchor was requested last.
    last_key_anchor_request: Option<Instant>,
    /// Gaps that are not counted yet.
    pub gaps: u64,
}

impl Tap {
    /// A tap of `layer`. `first_epoch` must be greater than the epochs of earlier taps of the stream.
    pub(crate) fn new(
        stream: StreamId,
        layer: Layer,
        first_epoch: u16,
        max_frame_bytes: usize,
    ) -> Tap {
        Tap {
            stream,
            layer,
            max_frame_bytes,
            waiting: BTreeMap::new(),
            next: None,
            partial: None,
            gap_due: false,
            terms: TapTerms {
                max_scale: layer.max_scale(),
                policy: AnchorPolicy::default(),
                owner: Owner::alone(stream),
                max_pixels: u32::MAX,
            },
            too_large: false,
            size: None,
            epochs: TapEpochs::new(first_epoch),
            out: VecDeque::new(),
            keys: TapKeys::default(),
            last_key_anchor_request: None,
            gaps: 0,
        }
    }

    /// The current terms.
    pub(crate) fn terms(&self) -> TapTerms {
        self.terms
    }

    /// Sets other terms.
    pub(crate) fn set_terms(&mut self, terms: TapTerms) {
        self.terms = terms;
    }

    /// Whether to pass a request for a key anchor to the enhancer; at most one in [`MIN_KEY_ANCHOR_INTERVAL`].
    pub(crate) fn admit_key_anchor_request(&mut self, now: Instant) -> bool {
        let admitted = self
            .last_key_anchor_request
            .is_none_or(|then| now.saturating_duration_since(then) >= MIN_KEY_ANCHOR_INTERVAL);
        if admitted {
            self.last_key_anchor_request = Some(now);
        }
        admitted
    }

    /// The tapped stream.
    pub(crate) fn stream(&self) -> StreamId {
        self.stream
    }

    /// Width and height of the last key frame.
    pub(crate) fn size(&self) -> Option<Size> {
        self.size
    }

    /// Whether frames are not passed on because they are too large.
    pub(crate) fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// The tapped layer.
    pub(crate) fn layer(&self) -> Layer {
        self.layer
    }

    /// Taps another layer from its next key frame on.
    pub(crate) fn set_layer(&mut self, layer: Layer) {
        if layer != self.layer {
            self.layer = layer;
            self.terms.max_scale = layer.max_scale();
            self.size = None;
            self.too_large = false;
            self.await_key();
            self.waiting.clear();
        }
    }

    /// Whether to request a key frame now.
    pub(crate) fn take_key_request(&mut self, now: Instant) -> bool {
        // Another key frame of a size that is too large would be of no use.
        self.next.is_none() && !self.too_large && self.keys.take(now)
    }

    /// The layer of an epoch; `None` for old epochs.
    pub(crate) fn layer_of(&self, epoch: Epoch) -> Option<Layer> {
        self.epochs.layer_of(epoch)
    }

    /// The next epoch number.
    pub(crate) fn next_epoch(&self) -> u16 {
        self.epochs.next()
    }

    /// The enhancer's queue was full, so an input is lost.
    pub(crate) fn on_overflow(&mut self) {
        self.await_key();
        self.gap_due = true;
    }

    /// The next input for the enhancer.
    pub(crate) fn poll(&mut self) -> Option<TapInput> {
        self.out.pop_front()
    }

    /// When [`Tap::advance`] is due; `None` if no packet is missing.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        let next = self.next?;
        let (&first, oldest) = self.waiting.first_key_value()?;
        (first != next).then(|| oldest.packet.arrival + MAX_WAIT)
    }

    /// Treats packets that are missing for too long as a gap.
    pub(crate) fn advance(&mut self, now: Instant) {
        while self.timeout().is_some_and(|t| t <= now) {
            self.gap();
        }
    }

    /// Takes a packet of the layer. Malformed ones are ignored; the caller counts them.
    pub(crate) fn push(&mut self, packet: PacketIn, payload: &Arc<[u8]>) {
        let descriptor = match vp9::parse(payload) {
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
            // The first packet of a key frame may come after later ones; older packets are useless.
            while self.waiting.len() > MAX_WAITING {
                self.waiting.pop_first();
            }
            return;
        }
        self.assemble();
        while self.waiting.len() > MAX_WAITING {
            self.gap();
        }
        self.advance(packet.arrival);
    }

    fn begin_at(&mut self, seq: u64) {
        self.waiting = self.waiting.split_off(&seq);
        self.next = Some(seq);
        self.partial = None;
    }

    /// Drops frames until the next key frame, as the decoder cannot continue.
    pub(crate) fn await_key(&mut self) {
        self.next = None;
        self.partial = None;
        self.keys.on_gap();
    }

    /// Continues after a gap at a key frame that has arrived, or waits for one.
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
            // Of spatial layers the smallest is taken: the pictures of the others need all below them.
            let base = descriptor.spatial == 0;
            if descriptor.begin && base {
                self.partial = Some(Partial { key: !descriptor.inter, ..Partial::default() });
            }
            let Some(partial) = self.partial.as_mut() else { continue };
            if base {
                partial.data.extend_from_slice(&payload[descriptor.len..]);
            }
            partial.arrival = partial.arrival.max(Some(packet.arrival));
            if partial.data.len() > self.max_frame_bytes {
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
                // Another profile, or not VP9: nothing can be decoded before another key frame.
                self.await_key();
                return;
            };
            self.too_large = size.pixels() > self.terms.max_pixels;
            if self.too_large {
                self.size = Some(size);
                self.await_key();
                self.gap_due = true;
                return;
            }
            let same_layer = self.epochs.current().is_some_and(|e| e.1 == self.layer);
            if self.size != Some(size) || !same_layer {
                self.size = Some(size);
                self.epochs.begin(self.layer);
            }
        }
        let Some((epoch, _)) = self.epochs.current() else { return };
        self.keys.on_frame(packet.arrival);
        if std::mem::take(&mut self.gap_due) {
            self.out.push_back(TapInput::Gap { stream: self.stream });
        }
        self.out.push_back(TapInput::Frame(TapFrame {
            stream: self.stream,
            owner: self.terms.owner,
            epoch,
            rtp_timestamp: packet.timestamp,
            arrival: partial.arrival.unwrap_or(packet.arrival),
            key: partial.key,
            max_scale: self.terms.max_scale,
            policy: self.terms.policy,
            data: partial.data.into(),
        }));
    }
}

#[cfg(test)]
mod tests;
