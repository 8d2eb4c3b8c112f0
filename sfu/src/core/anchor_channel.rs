//! The data channel by which a subscriber receives anchors.

use std::time::{Duration, Instant};

use str0m::Rtc;
use str0m::channel::{ChannelConfig, ChannelId, Reliability};
use windlass_types::Bitrate;

use super::anchors::{AnchorPacer, Released};
use super::peer::Peer;
use crate::stats::Counters;

/// Label of the data channel.
pub(super) const CHANNEL: &str = "windlass-anchors";

/// The anchor channel of one subscriber.
pub(super) struct AnchorChannel {
    /// Whether the client can decode anchors.
    decodes: bool,
    /// Whether an offer of the client had an `m=application` section.
    negotiated: bool,
    /// The channel that the server has opened.
    pub(super) id: Option<ChannelId>,
    /// Whether the channel is open.
    pub(super) open: bool,
    /// Schedules the messages.
    pub pacer: AnchorPacer,
    /// Mean rate of anchors that the allocation leaves.
    pub rate: Bitrate,
}

impl AnchorChannel {
    /// The state before the client has opened its channel.
    pub(super) fn new(decodes: bool, now: Instant) -> AnchorChannel {
        AnchorChannel {
            decodes,
            negotiated: false,
            id: None,
            open: false,
            pacer: AnchorPacer::new(now),
            rate: Bitrate::ZERO,
        }
    }

    /// Takes whether an offer of the client has an `m=application` section.
    pub(super) fn on_offer(&mut self, has_application: bool) {
        self.negotiated |= has_application;
    }
}

impl Peer {
    /// Whether the client can decode anchors, and may receive them.
    pub(super) fn may_receive_anchors(&self) -> bool {
        self.anchors.decodes && self.permissions.enhance
    }

    /// Whether anchors can be sent to the client now.
    pub(super) fn can_receive_anchors(&self) -> bool {
        self.anchors.open && self.may_receive_anchors()
    }

    /// Opens the anchor channel if it can be opened and is not open. Messages older than `budget` are not retransmitted.
    pub(super) fn open_anchor_channel(&mut self, budget: Duration) {
        if !self.connected
            || !self.anchors.negotiated
            || !self.may_receive_anchors()
            || self.anchors.id.is_some()
        {
            return;
        }
        let lifetime = u16::try_from(budget.as_millis()).unwrap_or(u16::MAX);
        let config = ChannelConfig {
            label: CHANNEL.into(),
            ordered: false,
            reliability: Reliability::MaxPacketLifetime { lifetime },
            ..ChannelConfig::default()
        };
        let open = |rtc: &mut Rtc| rtc.direct_api().create_data_channel(config);
        self.anchors.id = self.stack.call(&mut self.wake, open);
        self.wake.touch();
    }

    /// Bytes that the anchor channel still holds.
    pub(super) fn anchor_bytes_buffered(&mut self) -> usize {
        let Some(id) = self.anchors.id else { return 0 };
        let buffered = |rtc: &mut Rtc| rtc.channel(id).map(|mut c| c.buffered_amount());
        self.stack.call(&mut self.wake, buffered).flatten().unwrap_or_default()
    }

    /// Sends the anchor messages that are due.
    pub(super) fn release_anchors(&mut self, now: Instant, counters: &mut Counters) {
        while let Some(released) = self.anchors.pacer.release(now) {
            self.wake.touch();
            let (mid, sent) = match released {
                Released::Stale(mid) => (mid, None),
                Released::Message(message, end) => {
                    let taken = self.anchors.id.is_some_and(|id| {
                        let write = |rtc: &mut Rtc| rtc.channel(id)?.write(true, &message).ok();
                        self.stack.call(&mut self.wake, write).flatten().unwrap_or(false)
                    });
                    counters.anchor_messages_refused += u64::from(!taken);
                    let Some(end) = end else { continue };
                    (end.slot, taken.then_some(end))
                }
            };
            let mut slot = self.slots.iter_mut().find(|s| s.mid == mid);
            if let Some(slot) = &mut slot {
                // Also for a stale anchor: a part of it may have been sent.
                slot.sent.report_quota.on_sent();
            }
            if let Some(end) = sent {
                counters.anchors_out += 1;
                counters.anchors_out_age_ms += end.age.as_millis() as u64;
                if let Some(slot) = slot {
                    slot.on_anchor_sent(end.bytes);
                }
            } else {
                counters.anchors_dropped_late += 1;
                if let Some(slot) = slot {
                    slot.sent.anchors_dropped += 1;
                }
            }
        }
    }
}
