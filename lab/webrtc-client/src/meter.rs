//! An interceptor at the wire: counts what the stack repairs and reports, and passes on requests for key frames.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use rtc::interceptor::{Interceptor, Packet, StreamInfo, TaggedPacket};
use rtc::rtcp::payload_feedbacks::full_intra_request::FullIntraRequest;
use rtc::rtcp::payload_feedbacks::picture_loss_indication::PictureLossIndication;
use rtc::rtcp::transport_feedbacks::transport_layer_cc::TransportLayerCc;
use rtc::rtcp::transport_feedbacks::transport_layer_nack::TransportLayerNack;
use rtc::sansio::Protocol;
use rtc::shared::error::Error;

use crate::codecs::RTX;
use crate::counters::{Counters, Counting};
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

/// What a packet shows of repairs and reports, whichever way it goes.
#[derive(Default)]
struct Shown {
    /// Whether it is a retransmission.
    rtx: bool,
    /// Packets that it asks for again.
    again: u64,
    /// Transport-wide reports in it.
    reports: u64,
    /// Requests for key frames in it.
    key_requests: u64,
}

impl Shown {
    fn of(packet: &Packet) -> Shown {
        match packet {
            // One that carries nothing is a probe for bandwidth.
            Packet::Rtp(rtp) => Shown {
                rtx: rtp.header.payload_type == RTX && rtp.payload.len() > NUMBER_BYTES,
                ..Shown::default()
            },
            Packet::Rtcp(all) => {
                let all = || all.iter().map(|one| one.as_any());
                let is_request = |one: &&dyn std::any::Any| {
                    one.is::<PictureLossIndication>() || one.is::<FullIntraRequest>()
                };
                Shown {
                    rtx: false,
                    again: all().filter_map(|one| one.downcast_ref()).map(named).sum(),
                    reports: all().filter(|one| one.is::<TransportLayerCc>()).count() as u64,
                    key_requests: all().filter(is_request).count() as u64,
                }
            }
            _ => Shown::default(),
        }
    }
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for Meter {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = Error;
    type Time = Instant;

    fn handle_read(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        let shown = Shown::of(&packet.message.packet);
        self.counting.add(Counters {
            rtx_received: shown.rtx.into(),
            wanted_again: shown.again,
            reports_received: shown.reports,
            key_requests: shown.key_requests,
            ..Counters::default()
        });
        (0..shown.key_requests).for_each(|_| self.events.say(Event::KeyFrameWanted));
        self.inward.push_back(packet);
        Ok(())
    }

    fn poll_read(&mut self) -> Option<TaggedPacket> {
        self.inward.pop_front()
    }

    fn handle_write(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        let shown = Shown::of(&packet.message.packet);
        self.counting.add(Counters {
            rtx_sent: shown.rtx.into(),
            asked_again: shown.again,
            reports_sent: shown.reports,
            ..Counters::default()
        });
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
