//! Arrival times of packets that wait in a connection's pacer, by their outgoing sequence numbers, to measure
//! forwarding latency. Bounded: the arrival of a packet with [`MAX_PACKETS`] newer ones before it is forgotten.

use std::time::Instant;

/// Number of packets of one stream whose arrival is kept.
const MAX_PACKETS: usize = 128;

/// The packets of one stream.
#[derive(Debug)]
pub(crate) struct InFlight {
    epoch: Instant,
    /// Sequence number and microseconds since `epoch`, at the number modulo the length.
    packets: Box<[Option<(u16, u32)>; MAX_PACKETS]>,
}

impl InFlight {
    /// A stream without packets.
    pub(crate) fn new(now: Instant) -> InFlight {
        InFlight { epoch: now, packets: Box::new([None; MAX_PACKETS]) }
    }

    /// Adds a packet by its outgoing sequence number.
    pub(crate) fn begin(&mut self, number: u16, arrival: Instant) {
        let us = arrival.saturating_duration_since(self.epoch).as_micros() as u32;
        self.packets[usize::from(number) % MAX_PACKETS] = Some((number, us));
    }

    /// Removes a packet that is sent now; returns its arrival, `None` for a retransmission.
    pub(crate) fn end(&mut self, number: u16, now: Instant) -> Option<Instant> {
        let packet = &mut self.packets[usize::from(number) % MAX_PACKETS];
        let (_, us) = packet.take_if(|(begun, _)| *begun == number)?;
        // The counter of microseconds wraps every 71 minutes.
        let elapsed = now.saturating_duration_since(self.epoch).as_micros() as u32;
        now.checked_sub(std::time::Duration::from_micros(elapsed.wrapping_sub(us).into()))
    }
}

/// SSRC and sequence number of an encrypted RTP packet; `None` for RTCP, STUN and DTLS (RFC 5761 §4).
pub(crate) fn rtp_numbers(datagram: &[u8]) -> Option<(u32, u16)> {
    let head: &[u8; 12] = datagram.first_chunk()?;
    let is_rtp = head[0] >> 6 == 2 && !(192..=223).contains(&head[1]);
    let number = u16::from_be_bytes([head[2], head[3]]);
    is_rtp.then(|| (u32::from_be_bytes([head[8], head[9], head[10], head[11]]), number))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_packet_that_leaves_says_when_it_came_once() {
        let epoch = Instant::now();
        let mut packets = InFlight::new(epoch);
        // Long after, when the counter of microseconds has gone round.
        let came = epoch + Duration::from_secs(4294);
        let leaves = came + Duration::from_secs(3);
        packets.begin(65_535, came);
        assert_eq!(packets.end(65_534, leaves), None);
        let found = packets.end(65_535, leaves).expect("it was there");
        assert!(found.max(came) - found.min(came) < Duration::from_micros(2));
        assert_eq!(packets.end(65_535, leaves), None);
    }

    #[test]
    fn what_waits_behind_many_is_forgotten() {
        let now = Instant::now();
        let mut packets = InFlight::new(now);
        (0..=MAX_PACKETS as u16).for_each(|n| packets.begin(n, now));
        assert_eq!(packets.end(0, now), None);
        assert!(packets.end(1, now).is_some() && packets.end(MAX_PACKETS as u16, now).is_some());
    }

    #[test]
    fn only_rtp_has_a_stream_and_a_number() {
        let rtp = [0x90, 0x62, 1, 2, 0, 0, 0, 0, 0, 0, 0, 9, 7];
        assert_eq!(rtp_numbers(&rtp), Some((9, 0x102)));
        assert_eq!(rtp_numbers(&rtp[..11]), None);
        for (first, second) in [(0x80, 200), (0x00, 1), (0x16, 0xfe)] {
            let mut other = rtp;
            (other[0], other[1]) = (first, second);
            assert_eq!(rtp_numbers(&other), None);
        }
    }
}
