//! Where a client receives: at the address from which it last nominated a candidate pair.
//!
//! A client of an ICE-lite server names the pair that it has chosen by USE-CANDIDATE in each of its connectivity checks
//! (RFC 8445 §8.1.1), every few seconds. The stack keeps a pair of equal or higher priority for 15 s after its last
//! packet. When a NAT rebinds, or the client changes from UDP to TCP, the stack would send to a dead address for that
//! time. So all but STUN follows the nominations.
//!
//! One request proves little: its source address may be forged, to flood a third party. So an address is *unverified*
//! until more than that one request has come from it, and is sent [`MAX_UNVERIFIED_BYTES`] at most. A *verified*
//! address is left for another one that sends a check, after [`SILENCE`] without a packet. A client that has really
//! moved sends at once: checks, reports and media.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::addresses::RemoteAddr;
use super::ufrag::attribute;

/// STUN attribute USE-CANDIDATE.
const USE_CANDIDATE: u16 = 0x0025;
/// Number of STUN transactions that are remembered, to ignore replayed requests.
const MAX_TRANSACTIONS: usize = 64;
/// Maximum bytes that are sent to unverified addresses until one of them is verified: about a second of video at 400
/// kbit/s.
const MAX_UNVERIFIED_BYTES: usize = 50_000;
/// Time without a packet after which a verified address is left for another one that sends a check. Chromium nominates
/// another pair only when it has given the former one up, which takes it four to seven seconds. It checks a stable pair
/// every 2.5 s.
const SILENCE: Duration = Duration::from_secs(3);
/// Silence of an address that a client leaves from which on what was sent there counts as lost.
const LOSES: Duration = Duration::from_millis(300);

/// How a client has moved to another address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    /// From an address at which it was heard until now.
    Seamless,
    /// From an address at which it was not heard for a while: packets are lost.
    Lossy,
}

/// The addresses of one client.
#[derive(Debug, Default)]
pub(crate) struct Nomination {
    /// The verified address, and when its last datagram came.
    verified: Option<(RemoteAddr, Instant)>,
    /// The address of a newer nomination.
    unverified: Option<RemoteAddr>,
    /// Bytes sent to unverified addresses.
    unverified_bytes: usize,
    transactions: VecDeque<[u8; 12]>,
}

impl Nomination {
    /// Takes a datagram that the connection accepts: STUN by its integrity, others by their address. Returns how the
    /// client has moved, if it now receives at another address.
    pub(crate) fn on_datagram(
        &mut self,
        now: Instant,
        from: RemoteAddr,
        datagram: &[u8],
    ) -> Option<Move> {
        let fresh = self.is_fresh(datagram)?;
        let silence = self.verified.map(|(_, last)| now.saturating_duration_since(last));
        let moved = if silence.is_some_and(|silence| silence >= LOSES) {
            Move::Lossy
        } else {
            Move::Seamless
        };
        if fresh && attribute(datagram, USE_CANDIDATE).is_some() {
            return self.on_nomination(now, from).then_some(moved);
        }
        if self.unverified == Some(from) {
            self.verify(now, from);
            return None;
        }
        match &mut self.verified {
            Some((address, last)) if *address == from => *last = now,
            // Only for a check: other datagrams prove nothing of who sends them.
            Some(_) if fresh && silence.is_some_and(|silence| silence >= SILENCE) => {
                self.verify(now, from);
                return Some(moved);
            }
            _ => {}
        }
        None
    }

    fn on_nomination(&mut self, now: Instant, from: RemoteAddr) -> bool {
        let before = self.unverified.or(self.verified.map(|(address, _)| address));
        if before == Some(from) || self.verified.is_some_and(|(address, _)| address == from) {
            self.verify(now, from);
        } else {
            self.unverified = Some(from);
        }
        before.is_some_and(|before| before != from)
    }

    fn verify(&mut self, now: Instant, at: RemoteAddr) {
        if self.unverified == Some(at) {
            self.unverified_bytes = 0;
        }
        (self.verified, self.unverified) = (Some((at, now)), None);
    }

    /// Whether a datagram is a STUN request; `None` for a replayed request and for a response, which prove nothing.
    fn is_fresh(&mut self, datagram: &[u8]) -> Option<bool> {
        if !is_stun(datagram) {
            return Some(false);
        }
        let transaction = datagram.get(8..20)?.try_into().ok()?;
        if !datagram.starts_with(&[0, 1]) || self.transactions.contains(&transaction) {
            return None;
        }
        if self.transactions.len() == MAX_TRANSACTIONS {
            self.transactions.pop_front();
        }
        self.transactions.push_back(transaction);
        Some(true)
    }

    /// The address for a datagram that the stack sends to `to`.
    pub(crate) fn redirect(&mut self, to: RemoteAddr, datagram: &[u8]) -> RemoteAddr {
        if is_stun(datagram) {
            return to;
        }
        if let Some(address) = self.unverified
            && self.unverified_bytes + datagram.len() <= MAX_UNVERIFIED_BYTES
        {
            self.unverified_bytes += datagram.len();
            return address;
        }
        self.verified.map_or(to, |(address, _)| address)
    }
}

fn is_stun(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|&first| first < 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(transaction: u8, nominates: bool) -> Vec<u8> {
        let mut message = vec![0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42];
        message.extend([transaction; 12]);
        message.extend([0, 6, 0, 3, b'a', b':', b'b', 0]);
        if nominates {
            message.extend([0, 0x25, 0, 0]);
        }
        message
    }

    fn remote(port: u16) -> RemoteAddr {
        std::net::SocketAddr::from(([192, 0, 2, 1], port)).into()
    }

    const MEDIA: [u8; 1000] = [0x80; 1000];

    /// Settled at port 1.
    fn settled() -> (Nomination, Instant) {
        let (mut nomination, now) = (Nomination::default(), Instant::now());
        assert_eq!(nomination.on_datagram(now, remote(1), &check(1, true)), None, "it is no move");
        assert_eq!(nomination.on_datagram(now, remote(1), &check(2, true)), None);
        (nomination, now)
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn media_follows_nominations_and_answers_go_back_to_where_requests_came_from() {
        let mut nomination = Nomination::default();
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(9));
        let (mut nomination, now) = settled();
        assert_eq!(nomination.on_datagram(now, remote(2), &check(3, false)), None);
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(1));
        let tcp = RemoteAddr::tcp(remote(3).address);
        assert!(nomination.on_datagram(now, tcp, &check(4, true)).is_some());
        assert_eq!(nomination.redirect(remote(9), &MEDIA), tcp);
        assert_eq!(nomination.redirect(remote(9), &[1; 20]), remote(9));
    }

    #[test]
    fn an_address_that_says_no_more_than_one_request_is_sent_little_and_left() {
        let (mut nomination, now) = settled();
        assert!(nomination.on_datagram(now, remote(2), &check(3, true)).is_some());
        // The same again is no more.
        assert_eq!(nomination.on_datagram(now, remote(2), &check(3, true)), None);
        let to = |nomination: &mut Nomination| {
            (0..200).filter(|_| nomination.redirect(remote(9), &MEDIA) == remote(2)).count()
        };
        assert_eq!(to(&mut nomination), MAX_UNVERIFIED_BYTES / MEDIA.len());
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(1));
        // Nor are others sent as much again.
        assert!(nomination.on_datagram(now, remote(3), &check(4, true)).is_some());
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(1));
    }

    #[test]
    fn an_address_that_says_more_is_where_the_client_is() {
        for more in [check(9, true), check(9, false), vec![22; 40], vec![0x81; 40]] {
            let (mut nomination, now) = settled();
            assert!(nomination.on_datagram(now, remote(2), &check(3, true)).is_some());
            nomination.on_datagram(now, remote(2), &more);
            let all = (0..200).all(|_| nomination.redirect(remote(9), &MEDIA) == remote(2));
            assert!(all, "{more:?}");
        }
    }

    #[test]
    fn an_address_is_left_for_one_that_sends_a_check_after_three_seconds() {
        let (mut nomination, now) = settled();
        assert!(nomination.on_datagram(now, remote(2), &check(3, true)).is_some());
        nomination.on_datagram(now, remote(2), &MEDIA);
        assert_eq!(nomination.on_datagram(now + seconds(2), remote(1), &check(4, false)), None);
        // Anybody can send other datagrams, and old checks, from an address that the client once had.
        assert_eq!(nomination.on_datagram(now + seconds(3), remote(1), &MEDIA), None);
        assert_eq!(nomination.on_datagram(now + seconds(3), remote(1), &check(4, false)), None);
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(2));
        let moved = nomination.on_datagram(now + seconds(3), remote(1), &check(5, false));
        assert_eq!(moved, Some(Move::Lossy));
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(1));
    }

    #[test]
    fn a_move_loses_packets_if_the_former_address_was_silent() {
        for (after, moved) in [(0, Move::Seamless), (299, Move::Seamless), (300, Move::Lossy)] {
            let (mut nomination, now) = settled();
            let then = now + Duration::from_millis(after);
            assert_eq!(nomination.on_datagram(then, remote(2), &check(3, true)), Some(moved));
        }
    }

    #[test]
    fn a_silent_client_stays_at_its_address() {
        let (mut nomination, now) = settled();
        assert_eq!(nomination.on_datagram(now + seconds(60), remote(1), &MEDIA), None);
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(1));
    }

    #[test]
    fn a_request_that_is_sent_again_by_somebody_else_moves_nothing() {
        let (mut nomination, now) = (Nomination::default(), Instant::now());
        for n in 0..MAX_TRANSACTIONS as u8 {
            nomination.on_datagram(now, remote(1), &check(n, true));
        }
        assert_eq!(nomination.on_datagram(now, remote(2), &check(5, true)), None);
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(1));
        nomination.on_datagram(now, remote(1), &check(200, true));
        assert_eq!(nomination.transactions.len(), MAX_TRANSACTIONS);
    }
}
