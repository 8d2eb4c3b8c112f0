//! Limits of what clients may ask of the stack by RTCP.
//!
//! The stack serves every request in a datagram, and the cost of some requests does not depend on their size. 28 bytes
//! can report on 32,764 packets, and a NACK of four bytes requests 17 retransmissions. So `srtp` checks each decrypted
//! datagram first ([`RtcpLimits`]). Each limit is many times what browsers send.

use std::time::{Duration, Instant};

use crate::core::gcra::Gcra;

/// RTCP packet type of transport-layer feedback (RFC 4585 §6.1).
const RTPFB: u8 = 205;
/// Feedback message type of a generic NACK (RFC 4585 §6.2.1).
const NACK: u8 = 1;
/// Feedback message type of transport-wide congestion control (draft-holmer-rmcat-transport-wide-cc-extensions-01).
const TWCC: u8 = 15;
/// Bytes of an RTCP packet's header.
const HEADER: usize = 4;
/// Bytes of a feedback packet's header, with the SSRCs of sender and media source.
const FEEDBACK_HEADER: usize = 12;
/// Maximum number of NACK entries of one packet that the stack reads.
const MAX_NACKS: usize = 31;
/// Bytes of a packet that count as one more packet: the stack searches a list for each report block.
const PACKET_BYTES: usize = 64;

/// Rate of RTCP packets. Fifty subscriptions send about 300 a second.
const PACKETS: Rate = Rate { per_second: 2000, burst: 4000 };
/// Rate of transport-wide feedback packets. Browsers send up to 20 a second.
const TWCC_PACKETS: Rate = Rate { per_second: 100, burst: 200 };
/// Rate of RTP packets whose status transport-wide feedback reports: each sent packet once, and more after an outage.
const TWCC_STATUSES: Rate = Rate { per_second: 20_000, burst: 65_536 };
/// Rate of retransmissions that NACKs request. The stack keeps 1024 packets of a stream.
const RETRANSMISSIONS: Rate = Rate { per_second: 1000, burst: 4096 };

/// A mean rate and a burst.
struct Rate {
    per_second: u32,
    burst: u32,
}

impl Rate {
    /// Adds `more` to what is used; `None` if that is over the limit.
    fn with(&self, mut used: Gcra, now: Instant, more: usize) -> Option<Gcra> {
        let time = |n: usize| Duration::from_secs(n as u64) / self.per_second;
        used.add(now, time(more));
        used.conforms(now, time(self.burst as usize)).then_some(used)
    }
}

/// The limits of one connection.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct RtcpLimits {
    packets: Gcra,
    twcc_packets: Gcra,
    twcc_statuses: Gcra,
    retransmissions: Gcra,
}

impl RtcpLimits {
    /// Whether the stack may process a datagram. A refused datagram uses nothing.
    pub(crate) fn admit(&mut self, now: Instant, datagram: &[u8]) -> bool {
        let cost = RtcpCost::of(datagram);
        let used = || {
            Some(RtcpLimits {
                packets: PACKETS.with(self.packets, now, cost.packets)?,
                twcc_packets: TWCC_PACKETS.with(self.twcc_packets, now, cost.twcc_packets)?,
                twcc_statuses: TWCC_STATUSES.with(self.twcc_statuses, now, cost.twcc_statuses)?,
                retransmissions: RETRANSMISSIONS.with(
                    self.retransmissions,
                    now,
                    cost.retransmissions,
                )?,
            })
        };
        let used = used();
        *self = used.unwrap_or(*self);
        used.is_some()
    }
}

/// Work that a datagram asks of the stack.
#[derive(Debug, Default, PartialEq, Eq)]
struct RtcpCost {
    packets: usize,
    twcc_packets: usize,
    twcc_statuses: usize,
    retransmissions: usize,
}

impl RtcpCost {
    /// The cost of a datagram. The function reads at least as far as the stack does.
    fn of(mut rest: &[u8]) -> RtcpCost {
        // A datagram without a packet costs its decryption.
        let mut cost = RtcpCost { packets: 1, ..RtcpCost::default() };
        while let Some(&[first, kind, high, low]) = rest.first_chunk() {
            let length = HEADER * (1 + usize::from(u16::from_be_bytes([high, low])));
            let Some((packet, next)) = rest.split_at_checked(length) else { break };
            cost.packets += 1 + length / PACKET_BYTES;
            match (kind, first & 0x1f) {
                (RTPFB, TWCC) => {
                    cost.twcc_packets += 1;
                    if let Some(&[high, low]) = packet.get(FEEDBACK_HEADER + 2..FEEDBACK_HEADER + 4)
                    {
                        cost.twcc_statuses += usize::from(u16::from_be_bytes([high, low]));
                    }
                }
                (RTPFB, NACK) => {
                    let requests = packet.get(FEEDBACK_HEADER..).unwrap_or_default();
                    let of = |request: &[u8]| {
                        1 + request[2..].iter().map(|b| b.count_ones()).sum::<u32>()
                    };
                    cost.retransmissions +=
                        requests.chunks_exact(4).take(MAX_NACKS).map(of).sum::<u32>() as usize;
                }
                _ => {}
            }
            rest = next;
        }
        cost
    }
}

/// Whether the stack takes a datagram for RTCP (RFC 5761 §4, RFC 7983).
pub(crate) fn is_rtcp(datagram: &[u8]) -> bool {
    matches!(datagram, [128..192, kind, _, ..] if (64..96).contains(&(kind & 0x7f)))
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn feedback(about: u8, content: &[u8]) -> Vec<u8> {
        let words = 2 + content.len().div_ceil(4);
        let mut packet = vec![0x80 | about, RTPFB, 0, words as u8];
        packet.extend([0, 0, 0, 1, 0, 0, 0, 2]);
        packet.extend(content);
        packet.resize(4 + 4 * words, 0);
        packet
    }

    /// TWCC feedback on `twcc_statuses` packets, as run-length chunks of lost packets.
    pub(crate) fn congestion(base: u16, twcc_statuses: u16) -> Vec<u8> {
        let mut content = [base.to_be_bytes(), twcc_statuses.to_be_bytes()].concat();
        content.extend([0, 0, 1, 7]);
        for run in (0..twcc_statuses).step_by(0x1fff) {
            content.extend((twcc_statuses - run).min(0x1fff).to_be_bytes());
        }
        feedback(TWCC, &content)
    }

    fn nack(entries: &[(u16, u16)]) -> Vec<u8> {
        let bytes = |&(pid, blp): &(u16, u16)| [pid.to_be_bytes(), blp.to_be_bytes()].concat();
        feedback(NACK, &entries.iter().flat_map(bytes).collect::<Vec<u8>>())
    }

    /// Number of datagrams that are accepted of `rate` per second, over `seconds`.
    fn taken(datagram: &[u8], rate: u32, seconds: u32) -> usize {
        let mut reports = RtcpLimits::default();
        let began = Instant::now();
        (0..rate * seconds).filter(|&n| reports.admit(began + SECOND * n / rate, datagram)).count()
    }

    #[test]
    fn a_datagram_of_reports_on_packets_far_back_is_refused() {
        let report = congestion(5, 32_764);
        assert_eq!(report.len(), 28);
        let datagram = report.repeat(41);
        assert_eq!(RtcpCost::of(&datagram).twcc_statuses, 41 * 32_764);
        assert_eq!(taken(&datagram, 400, 10), 0);
        // And one by one as many get through as the stack bears: 20,000 packets a second, after those that may come at
        // once.
        assert!(taken(&report, 400, 10) <= 2 + 20_000 * 10 / 32_764 + 1);
    }

    #[test]
    fn reports_again_and_again_on_what_was_lost_are_refused() {
        assert!(taken(&congestion(5, 1000).repeat(41), 400, 10) <= 6);
        assert!(taken(&congestion(5, 1).repeat(49), 400, 10) <= 4 + 100 * 10 / 49);
    }

    #[test]
    fn requests_to_send_all_again_are_refused() {
        let all: Vec<_> = (0..31).map(|n| (17 * n, 0xffff)).collect();
        let datagram = nack(&all).repeat(8);
        assert_eq!(RtcpCost::of(&datagram).retransmissions, 8 * 31 * 17);
        assert_eq!(taken(&datagram, 400, 10), 0);
        assert!(taken(&nack(&all), 400, 10) <= 7 + 1000 * 10 / 527 + 1);
    }

    #[test]
    fn empty_packets_are_counted_too() {
        let datagram = [0x80, 201, 0, 0].repeat(290);
        assert!(taken(&datagram, 1000, 10) <= (4000 + 2000 * 10) / 290);
        assert!(taken(&[0x80, 201, 0, 1, 0, 0, 0, 9], 10_000, 10) <= 12_000);
    }

    #[test]
    fn what_browsers_send_is_taken() {
        // 20 Mbit/s to fifty tracks, a tenth of it lost, and asked for three times.
        let mut reports = RtcpLimits::default();
        let began = Instant::now();
        for step in 0..20 * 60 {
            let now = began + SECOND / 20 * step;
            assert!(reports.admit(now, &congestion(step as u16, 110)), "{step}");
            for _ in 0..5 {
                assert!(reports.admit(now, &nack(&[(7, 3)])), "{step}");
            }
            for _ in 0..3 {
                let report = [[0x81, 201, 0, 7].as_slice(), &[1; 28]].concat();
                assert!(reports.admit(now, &report.repeat(2)), "{step}");
            }
        }
        // A network that was away: all that was sent meanwhile is lost, and what the decoders still want is asked for.
        let now = began + 61 * SECOND;
        assert!(reports.admit(now, &congestion(9, 30_000)));
        let gap: Vec<_> = (0..30).map(|n| (17 * n, 0xffff)).collect();
        for _ in 0..4 {
            assert!(reports.admit(now, &nack(&gap)));
        }
    }

    #[test]
    fn who_asked_for_too_much_is_heard_again() {
        let mut reports = RtcpLimits::default();
        let now = Instant::now();
        assert!(!reports.admit(now, &congestion(0, 0x7fff).repeat(3)));
        assert!(reports.admit(now, &congestion(0, 0x7fff).repeat(2)));
        assert!(!reports.admit(now, &congestion(0, 0x7fff)));
        assert!(reports.admit(now + 2 * SECOND, &congestion(0, 0x7fff)));
    }

    #[test]
    fn rtcp_is_what_the_stack_takes_for_it() {
        assert!(is_rtcp(&[0x80, 200, 0]) && is_rtcp(&[0xbf, 72, 0]) && is_rtcp(&[0x8f, 223, 0]));
        assert!(!is_rtcp(&[0x80, 200]) && !is_rtcp(&[0x80, 96, 0]) && !is_rtcp(&[0, 200, 0]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_counted_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1500)) {
            let cost = RtcpCost::of(&bytes);
            prop_assert!(cost.packets <= 1 + bytes.len() / 4 + bytes.len() / PACKET_BYTES);
            prop_assert!(cost.twcc_statuses <= 65_535 * cost.twcc_packets);
            prop_assert!(cost.retransmissions <= 17 * bytes.len() / 4);
            let mut reports = RtcpLimits::default();
            let now = Instant::now();
            for _ in 0..3 {
                reports.admit(now, &bytes);
            }
        }

        #[test]
        fn what_is_taken_stays_below_the_bound(
            datagrams in proptest::collection::vec((0u16..=32_767, 0usize..40, 0u64..50), 1..300)
        ) {
            let mut reports = RtcpLimits::default();
            let began = Instant::now();
            let (mut now, mut twcc_statuses) = (began, 0.0);
            for (each, repeated, pause) in datagrams {
                now += Duration::from_millis(pause);
                if reports.admit(now, &congestion(3, each).repeat(repeated)) {
                    twcc_statuses += f64::from(each) * repeated as f64;
                }
                let max = 65_537.0 + 20_000.0 * (now - began).as_secs_f64();
                prop_assert!(twcc_statuses <= max, "{twcc_statuses} of {max}");
            }
        }
    }
}
