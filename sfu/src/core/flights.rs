//! When the packets that are on their way through a connection had come, by the numbers that they leave with: what forwarding
//! latency is measured with. Bounded: of what waits behind 128 others nothing is known any more.

use std::time::Instant;

/// Packets that are remembered.
const REMEMBERED: usize = 128;

/// See the module.
#[derive(Debug)]
pub struct Flights {
    epoch: Instant,
    /// Number and microseconds since `epoch`, where a number divided by the length leaves its place.
    packets: Box<[Option<(u16, u32)>; REMEMBERED]>,
}

impl Flights {
    /// None on their way.
    pub fn new(now: Instant) -> Flights {
        Flights { epoch: now, packets: Box::new([None; REMEMBERED]) }
    }

    /// A packet that came at `arrival` will leave with this number.
    pub fn begin(&mut self, number: u16, arrival: Instant) {
        let us = arrival.saturating_duration_since(self.epoch).as_micros() as u32;
        self.packets[usize::from(number) % REMEMBERED] = Some((number, us));
    }

    /// The packet with this number leaves: when it had come. `None` where it did before.
    pub fn end(&mut self, number: u16, now: Instant) -> Option<Instant> {
        let packet = &mut self.packets[usize::from(number) % REMEMBERED];
        let (_, us) = packet.take_if(|(begun, _)| *begun == number)?;
        // Microseconds of the hour, so to speak: the counter goes round every 71 minutes.
        let elapsed = now.saturating_duration_since(self.epoch).as_micros() as u32;
        now.checked_sub(std::time::Duration::from_micros(elapsed.wrapping_sub(us).into()))
    }
}

/// The stream and the number of an RTP packet that has been encrypted; `None` for RTCP, STUN and DTLS (RFC 5761 §4).
pub fn numbers(datagram: &[u8]) -> Option<(u32, u16)> {
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
        let mut flights = Flights::new(epoch);
        // Long after, when the counter of microseconds has gone round.
        let came = epoch + Duration::from_secs(4294);
        let leaves = came + Duration::from_secs(3);
        flights.begin(65_535, came);
        assert_eq!(flights.end(65_534, leaves), None);
        let found = flights.end(65_535, leaves).expect("it was there");
        assert!(found.max(came) - found.min(came) < Duration::from_micros(2));
        assert_eq!(flights.end(65_535, leaves), None);
    }

    #[test]
    fn what_waits_behind_many_is_forgotten() {
        let now = Instant::now();
        let mut flights = Flights::new(now);
        (0..=REMEMBERED as u16).for_each(|n| flights.begin(n, now));
        assert_eq!(flights.end(0, now), None);
        assert!(flights.end(1, now).is_some() && flights.end(REMEMBERED as u16, now).is_some());
    }

    #[test]
    fn only_rtp_has_a_stream_and_a_number() {
        let rtp = [0x90, 0x62, 1, 2, 0, 0, 0, 0, 0, 0, 0, 9, 7];
        assert_eq!(numbers(&rtp), Some((9, 0x102)));
        assert_eq!(numbers(&rtp[..11]), None);
        for (first, second) in [(0x80, 200), (0x00, 1), (0x16, 0xfe)] {
            let mut other = rtp;
            (other[0], other[1]) = (first, second);
            assert_eq!(numbers(&other), None);
        }
    }
}
