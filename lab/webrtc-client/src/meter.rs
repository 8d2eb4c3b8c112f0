//! An interceptor at the wire: counts what the stack repairs and reports, and passes on requests for key frames.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rtc::interceptor::{Interceptor, Packet, StreamInfo, TaggedPacket};
use rtc::rtcp::payload_feedbacks::full_intra_request::FullIntraRequest;
use rtc::rtcp::payload_feedbacks::picture_loss_indication::PictureLossIndication;
use rtc::rtcp::transport_feedbacks::transport_layer_cc::TransportLayerCc;
use rtc::rtcp::transport_feedbacks::transport_layer_nack::TransportLayerNack;
use rtc::sansio::Protocol;
use rtc::shared::error::Error;

use crate::codecs::RTX;
use crate::counters::Counting;
use crate::receive::{Event, Events};

/// A retransmission begins with the number of the packet that it repairs.
const NUMBER_BYTES: usize = 2;

/// The interceptor.
pub(crate) struct Meter {
    counting: Arc<Counting>,
    events: Events,
    inward: VecDeque<TaggedPacket>,
    outward: VecDeque<TaggedPacket>,
}

impl Meter {
    pub(crate) fn new(counting: Arc<Counting>, events: Events) -> Meter {
        Meter { counting, events, inward: VecDeque::new(), outward: VecDeque::new() }
    }
}

/// Number of packets that a request names.
fn named(request: &TransportLayerNack) -> u64 {
    request.nacks.iter().map(|pair| 1 + u64::from(pair.lost_packets.count_ones())).sum()
}

/// Adds to a counter.
fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// Counts a retransmission, packets asked for again, and reports. Returns the number of requests for key frames.
fn count(packet: &Packet, [rtx, again, reports]: [&AtomicU64; 3]) -> u64 {
    match packet {
        Packet::Rtp(rtp) => {
            // One that carries nothing is a probe for bandwidth.
            let repairs = rtp.header.payload_type == RTX && rtp.payload.len() > NUMBER_BYTES;
            add(rtx, u64::from(repairs));
            0
        }
        Packet::Rtcp(all) => {
            let all = || all.iter().map(|one| one.as_any());
            add(again, all().filter_map(|one| one.downcast_ref()).map(named).sum());
            add(reports, all().filter(|one| one.is::<TransportLayerCc>()).count() as u64);
            let is_request = |one: &&dyn std::any::Any| {
                one.is::<PictureLossIndication>() || one.is::<FullIntraRequest>()
            };
            all().filter(is_request).count() as u64
        }
        _ => 0,
    }
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for Meter {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = Error;
    type Time = Instant;

    fn handle_read(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        let counting = &self.counting;
        let of = [&counting.rtx_received, &counting.wanted_again, &counting.reports_received];
        let requests = count(&packet.message.packet, of);
        add(&counting.key_requests, requests);
        (0..requests).for_each(|_| self.events.say(Event::KeyFrameWanted));
        self.inward.push_back(packet);
        Ok(())
    }

    fn poll_read(&mut self) -> Option<TaggedPacket> {
        self.inward.pop_front()
    }

    fn handle_write(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        let counting = &self.counting;
        count(
            &packet.message.packet,
            [&counting.rtx_sent, &counting.asked_again, &counting.reports_sent],
        );
        self.outward.push_back(packet);
        Ok(())
    }

    fn poll_write(&mut self) -> Option<TaggedPacket> {
        self.outward.pop_front()
    }
}

impl Interceptor for Meter {
    fn bind_local_stream(&mut self, _: &StreamInfo) {}
    fn unbind_local_stream(&mut self, _: &StreamInfo) {}
    fn bind_remote_stream(&mut self, _: &StreamInfo) {}
    fn unbind_remote_stream(&mut self, _: &StreamInfo) {}
}
