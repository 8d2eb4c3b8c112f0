//! The data channel by which a subscriber receives anchors.

use std::time::{Duration, Instant};

use str0m::Rtc;
use str0m::channel::{ChannelConfig, ChannelId, Reliability};
use windlass_types::{Anchor, AnchorSource, Bitrate, CAPTURED_WITHIN, Layer};

use super::anchor_pacer::{AnchorPacer, Released, Verdict, messages};
use super::rewriter::Source;
use super::slot::Slot;
use crate::api::Permissions;
use crate::core::connection::link::Link;
use crate::stats::Counters;

/// Label of the data channel.
pub(crate) const CHANNEL: &str = "windlass-anchors";

/// An anchor for subscribers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutgoingAnchor<'a> {
    pub(crate) anchor: &'a Anchor,
    /// Track and layer of the anchor's frame. The frame's RTP timestamp places the anchor.
    pub(crate) source: Source,
    /// The layer that is tapped now.
    pub(crate) tapped: Layer,
}

/// The parts of a subscriber's connection by which anchors are sent.
pub(crate) struct Path<'a> {
    pub(crate) link: &'a mut Link,
    pub(crate) slots: &'a mut [Slot],
    pub(crate) permissions: Permissions,
}

/// The anchor channel of one subscriber.
pub(crate) struct AnchorChannel {
    /// Whether the client can decode anchors.
    decodes: bool,
    /// Whether an offer of the client had an `m=application` section.
    negotiated: bool,
    /// The channel that the server has opened.
    pub(crate) id: Option<ChannelId>,
    /// Whether the channel is open.
    pub(crate) open: bool,
    /// Schedules the messages.
    pub pacer: AnchorPacer,
    /// Mean rate of anchors that the allocation leaves.
    pub rate: Bitrate,
}

impl AnchorChannel {
    /// The state before the client has opened its channel.
    pub(crate) fn new(decodes: bool, now: Instant) -> AnchorChannel {
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
    pub(crate) fn on_offer(&mut self, has_application: bool) {
        self.negotiated |= has_application;
    }

    /// Whether the client can decode anchors, and may receive them.
    fn may_receive(&self, permissions: Permissions) -> bool {
        self.decodes && permissions.enhance
    }

    /// Whether anchors can be sent to the client now.
    pub(crate) fn can_receive(&self, permissions: Permissions) -> bool {
        self.open && self.may_receive(permissions)
    }

    /// Opens the channel of a connection that is up, if it can be opened and is not open. Messages older than `budget`
    /// are not retransmitted.
    pub(crate) fn begin(&mut self, permissions: Permissions, budget: Duration, link: &mut Link) {
        if !self.negotiated || !self.may_receive(permissions) || self.id.is_some() {
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
        self.id = link.call(open);
        link.wake.touch();
    }

    /// Bytes that the channel still holds.
    fn buffered(&self, link: &mut Link) -> usize {
        let Some(id) = self.id else { return 0 };
        let buffered = |rtc: &mut Rtc| rtc.channel(id).map(|mut c| c.buffered_amount());
        link.call(buffered).flatten().unwrap_or_default()
    }

    /// Sends an anchor on a slot, if the slot holds an enhanced rung of the tapped layer.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        slot: usize,
        outgoing: OutgoingAnchor<'_>,
        budget: Duration,
        mut path: Path<'_>,
        counters: &mut Counters,
    ) {
        let OutgoingAnchor { anchor, source, tapped } = outgoing;
        let Some(to) = path.slots.get_mut(slot) else { return };
        let held = to.effective_rung(Some(tapped), self.can_receive(path.permissions));
        if !held.is_some_and(|(id, rung)| id == source.track && rung.enhanced()) {
            return;
        }
        counters.anchors_due += 1;
        let Some((timestamp, epoch)) = to.video.locate(source, anchor.rtp_timestamp) else {
            counters.anchors_dropped_unmapped += 1;
            to.subscription.sent.anchors_dropped += 1;
            return;
        };
        let age = now.saturating_duration_since(anchor.arrival);
        let budget = match anchor.source {
            AnchorSource::Captured => budget.max(CAPTURED_WITHIN),
            AnchorSource::Enhanced => budget,
        };
        let buffered = self.buffered(path.link);
        let AnchorChannel { pacer, rate, .. } = self;
        let verdict = pacer.admit(now, *rate, buffered, anchor.payload.len(), age, budget);
        let Verdict::Send(send_time) = verdict else {
            let late = verdict == Verdict::Late;
            counters.anchors_dropped_late += u64::from(late);
            counters.anchors_dropped_full += u64::from(!late);
            to.subscription.sent.anchors_dropped += 1;
            return;
        };
        let arrival_age = age + send_time;
        let messages = messages(anchor, timestamp, epoch, arrival_age, pacer.max_message());
        let Some(messages) = messages else {
            counters.anchors_dropped_malformed += 1;
            return;
        };
        pacer.push(now, to.mid, messages, age, budget);
        path.link.wake.touch();
        self.release(now, &mut path, counters);
    }

    /// Sends the anchor messages that are due.
    pub(crate) fn release(&mut self, now: Instant, path: &mut Path<'_>, counters: &mut Counters) {
        while let Some(released) = self.pacer.release(now) {
            path.link.wake.touch();
            let (mid, sent) = match released {
                Released::Stale(mid) => (mid, None),
                Released::Message(message, end) => {
                    let taken = self.id.is_some_and(|id| {
                        let write = |rtc: &mut Rtc| rtc.channel(id)?.write(true, &message).ok();
                        path.link.call(write).flatten().unwrap_or(false)
                    });
                    counters.anchor_messages_refused += u64::from(!taken);
                    let Some(end) = end else { continue };
                    (end.slot, taken.then_some(end))
                }
            };
            let mut slot = path.slots.iter_mut().find(|s| s.mid == mid);
            if let Some(slot) = &mut slot {
                // Counted for a stale anchor too: a part of it may have been sent.
                slot.subscription.sent.report_quota.on_sent();
            }
            if let Some(end) = sent {
                counters.anchors_out += 1;
                counters.anchor_ages.record(end.age);
                if let Some(slot) = slot {
                    slot.subscription.sent.on_anchor(end.bytes);
                }
            } else {
                counters.anchors_dropped_late += 1;
                if let Some(slot) = slot {
                    slot.subscription.sent.anchors_dropped += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ParticipantId;

    #[test]
    fn anchors_can_be_received_by_who_decodes_them_and_may_have_them() {
        let (all, now) = (Permissions::default(), Instant::now());
        let plain = Permissions { enhance: false, ..all };
        let mut channel = AnchorChannel::new(true, now);
        assert!(!channel.can_receive(all), "it is not open yet");
        channel.open = true;
        assert!(channel.can_receive(all) && !channel.can_receive(plain));
        let other = AnchorChannel { open: true, ..AnchorChannel::new(false, now) };
        assert!(!other.can_receive(all));
    }

    #[test]
    fn without_a_connection_no_channel_is_opened() {
        let now = Instant::now();
        let wakes = crate::core::wakes::Wakes::default();
        let mut link = Link::new(ParticipantId(1), "tea", wakes, now, now);
        let mut channel = AnchorChannel::new(true, now);
        channel.begin(Permissions::default(), Duration::ZERO, &mut link);
        assert!(!link.wake.is_touched(), "no offer had a section for it");
        channel.on_offer(true);
        channel.begin(Permissions::default(), Duration::ZERO, &mut link);
        assert!(channel.id.is_none() && link.wake.is_touched());
    }
}
