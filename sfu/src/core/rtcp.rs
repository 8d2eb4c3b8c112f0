//! What clients may ask of the stack by RTCP. It does all that a datagram says, however often it says the same, and some of it
//! costs by what is claimed, not by what is sent: 28 bytes that claim to report on 32,764 packets have it take as many steps, and
//! four bytes have it send 17 packets again.
//!
//! So what is decrypted is looked at first ([`Reports`]), by `srtp`. Each bound is many times what browsers send.

use std::time::{Duration, Instant};

use super::used::Used;

/// Kinds of packets in a datagram of RTCP, and what transport feedback (RFC 4585 §6.2) is about.
const TRANSPORT_FEEDBACK: u8 = 205;
const NACK: u8 = 1;
const CONGESTION: u8 = 15;
/// Bytes of a packet's header, and of feedback's with whose and about whom it is.
const HEADER: usize = 4;
const FEEDBACK_HEADER: usize = 12;
/// Requests of one packet that the stack reads.
const REQUESTS: usize = 31;
/// Bytes of a packet that count as one more: reports of others' clocks are looked up in a list, one by one.
const PART: usize = 64;

/// Packets in all datagrams. Fifty subscriptions have about 300 a second.
const PARTS: Rate = Rate { per_second: 2000, burst: 4000 };
/// Reports on congestion: browsers send up to 20 a second.
const CONGESTIONS: Rate = Rate { per_second: 100, burst: 200 };
/// Packets that they say something of: one for each that was sent, and as many as were lost while a network was away.
const STATUSES: Rate = Rate { per_second: 20_000, burst: 65_536 };
/// Packets that are to be sent again. The stack keeps 1024 of a stream.
const RESENDS: Rate = Rate { per_second: 1000, burst: 4096 };

/// What may come in the mean, and at once.
struct Rate {
    per_second: u32,
    burst: u32,
}

impl Rate {
    /// What is used with so many more; `None`: these are too many.
    fn with(&self, mut used: Used, now: Instant, more: usize) -> Option<Used> {
        let time = |n: usize| Duration::from_secs(n as u64) / self.per_second;
        used.add(now, time(more));
        used.is_within(now, time(self.burst as usize)).then_some(used)
    }
}

/// What a connection has said lately.
#[derive(Debug, Default, Clone, Copy)]
pub struct Reports {
    parts: Used,
    congestions: Used,
    statuses: Used,
    resends: Used,
}

impl Reports {
    /// Whether a datagram may be taken in. One that may not takes nothing from what may come next.
    pub fn admit(&mut self, now: Instant, datagram: &[u8]) -> bool {
        let asks = Asks::of(datagram);
        let all = || {
            Some(Reports {
                parts: PARTS.with(self.parts, now, asks.parts)?,
                congestions: CONGESTIONS.with(self.congestions, now, asks.congestions)?,
                statuses: STATUSES.with(self.statuses, now, asks.statuses)?,
                resends: RESENDS.with(self.resends, now, asks.resends)?,
            })
        };
        let with = all();
        *self = with.unwrap_or(*self);
        with.is_some()
    }
}

/// What a datagram would have the stack do.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asks {
    parts: usize,
    congestions: usize,
    statuses: usize,
    resends: usize,
}

impl Asks {
    /// Reads as far as the stack does, or further.
    fn of(mut rest: &[u8]) -> Asks {
        // A datagram without any packet has been decrypted all the same.
        let mut asks = Asks { parts: 1, ..Asks::default() };
        while let Some(&[first, kind, high, low]) = rest.first_chunk() {
            let length = HEADER * (1 + usize::from(u16::from_be_bytes([high, low])));
            let Some((packet, next)) = rest.split_at_checked(length) else { break };
            asks.parts += 1 + length / PART;
            match (kind, first & 0x1f) {
                (TRANSPORT_FEEDBACK, CONGESTION) => {
                    asks.congestions += 1;
                    if let Some(&[high, low]) = packet.get(FEEDBACK_HEADER + 2..FEEDBACK_HEADER + 4)
                    {
                        asks.statuses += usize::from(u16::from_be_bytes([high, low]));
                    }
                }
                (TRANSPORT_FEEDBACK, NACK) => {
                    let requests = packet.get(FEEDBACK_HEADER..).unwrap_or_default();
                    let of = |request: &[u8]| {
                        1 + request[2..].iter().map(|b| b.count_ones()).sum::<u32>()
                    };
                    asks.resends +=
                        requests.chunks_exact(4).take(REQUESTS).map(of).sum::<u32>() as usize;
                }
                _ => {}
            }
            rest = next;
        }
        asks
    }
}

/// Whether the stack takes a datagram for RTCP (RFC 5761 §4, RFC 7983).
pub fn is_rtcp(datagram: &[u8]) -> bool {
    matches!(datagram, [128..192, kind, _, ..] if (64..96).contains(&(kind & 0x7f)))
}

#[cfg(test)]
pub mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn feedback(about: u8, content: &[u8]) -> Vec<u8> {
        let words = 2 + content.len().div_ceil(4);
        let mut packet = vec![0x80 | about, TRANSPORT_FEEDBACK, 0, words as u8];
        packet.extend([0, 0, 0, 1, 0, 0, 0, 2]);
        packet.extend(content);
        packet.resize(4 + 4 * words, 0);
        packet
    }

    /// A report on so many packets, in runs of lost ones.
    pub fn congestion(base: u16, statuses: u16) -> Vec<u8> {
        let mut content = [base.to_be_bytes(), statuses.to_be_bytes()].concat();
        content.extend([0, 0, 1, 7]);
        for run in (0..statuses).step_by(0x1fff) {
            content.extend((statuses - run).min(0x1fff).to_be_bytes());
        }
        feedback(CONGESTION, &content)
    }

    fn nack(entries: &[(u16, u16)]) -> Vec<u8> {
        let bytes = |&(pid, blp): &(u16, u16)| [pid.to_be_bytes(), blp.to_be_bytes()].concat();
        feedback(NACK, &entries.iter().flat_map(bytes).collect::<Vec<u8>>())
    }

    /// How many of these are taken at `rate` a second, in so many seconds.
    fn taken(datagram: &[u8], rate: u32, seconds: u32) -> usize {
        let mut reports = Reports::default();
        let began = Instant::now();
        (0..rate * seconds).filter(|&n| reports.admit(began + SECOND * n / rate, datagram)).count()
    }

    #[test]
    fn a_datagram_of_reports_on_packets_far_back_is_refused() {
        let report = congestion(5, 32_764);
        assert_eq!(report.len(), 28);
        let datagram = report.repeat(41);
        assert_eq!(Asks::of(&datagram).statuses, 41 * 32_764);
        assert_eq!(taken(&datagram, 400, 10), 0);
        // And one by one as many get through as the stack bears: 20,000 packets a second, after those that may come at once.
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
        assert_eq!(Asks::of(&datagram).resends, 8 * 31 * 17);
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
        let mut reports = Reports::default();
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
        let mut reports = Reports::default();
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
            let asks = Asks::of(&bytes);
            prop_assert!(asks.parts <= 1 + bytes.len() / 4 + bytes.len() / PART);
            prop_assert!(asks.statuses <= 65_535 * asks.congestions);
            prop_assert!(asks.resends <= 17 * bytes.len() / 4);
            let mut reports = Reports::default();
            let now = Instant::now();
            for _ in 0..3 {
                reports.admit(now, &bytes);
            }
        }

        #[test]
        fn what_is_taken_stays_below_the_bound(
            datagrams in proptest::collection::vec((0u16..=32_767, 0usize..40, 0u64..50), 1..300)
        ) {
            let mut reports = Reports::default();
            let began = Instant::now();
            let (mut now, mut statuses) = (began, 0.0);
            for (each, repeated, pause) in datagrams {
                now += Duration::from_millis(pause);
                if reports.admit(now, &congestion(3, each).repeat(repeated)) {
                    statuses += f64::from(each) * repeated as f64;
                }
                let most = 65_537.0 + 20_000.0 * (now - began).as_secs_f64();
                prop_assert!(statuses <= most, "{statuses} of {most}");
            }
        }
    }
}
