//! Where a client wants to be sent to: from where its last nomination came.
//!
//! A client of a server that makes no checks of its own names the pair that it has chosen by USE-CANDIDATE in each of its
//! own (RFC 8445 §8.1.1), every few seconds. The stack stays with a pair of equal or higher priority until nothing has come
//! by that for 15 s: when a NAT gives the client another address, or UDP ends and TCP goes on, it sends into the void for
//! as long. So what is not STUN follows the nominations.

use std::collections::VecDeque;

use super::remote::Remote;
use super::ufrag::attribute;

/// USE-CANDIDATE.
const USE_CANDIDATE: u16 = 0x0025;
/// Transactions that are remembered: a request that comes again was seen on its way by somebody who wants to be sent to.
const TRANSACTIONS: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub struct Nomination {
    chosen: Option<Remote>,
    seen: VecDeque<[u8; 12]>,
}

impl Nomination {
    /// A STUN message came that is the client's by its integrity. Whether it is now sent to somewhere else.
    pub fn heard(&mut self, from: Remote, message: &[u8]) -> bool {
        let request = message.starts_with(&[0, 1]);
        let Some(transaction) = message.get(8..20).and_then(|t| t.try_into().ok()) else {
            return false;
        };
        if !request
            || attribute(message, USE_CANDIDATE).is_none()
            || self.seen.contains(&transaction)
        {
            return false;
        }
        if self.seen.len() == TRANSACTIONS {
            self.seen.pop_front();
        }
        self.seen.push_back(transaction);
        let moved = self.chosen.is_some_and(|chosen| chosen != from);
        self.chosen = Some(from);
        moved
    }

    /// Where a datagram goes that the stack would send to `to`.
    pub fn redirect(&self, to: Remote, datagram: &[u8]) -> Remote {
        let is_stun = datagram.first().is_some_and(|&first| first < 4);
        self.chosen.filter(|_| !is_stun).unwrap_or(to)
    }
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

    fn remote(port: u16) -> Remote {
        std::net::SocketAddr::from(([192, 0, 2, 1], port)).into()
    }

    #[test]
    fn media_follows_nominations_and_answers_go_back_to_where_requests_came_from() {
        let (mut nomination, media, answer) = (Nomination::default(), [0x80; 20], [1; 20]);
        assert_eq!(nomination.redirect(remote(9), &media), remote(9));
        assert!(!nomination.heard(remote(1), &check(1, true)), "the first is no move");
        assert!(!nomination.heard(remote(2), &check(2, false)));
        assert_eq!(nomination.redirect(remote(9), &media), remote(1));
        assert!(nomination.heard(Remote::tcp(remote(3).address), &check(3, true)));
        assert_eq!(nomination.redirect(remote(9), &media), Remote::tcp(remote(3).address));
        assert_eq!(nomination.redirect(remote(9), &answer), remote(9));
    }

    #[test]
    fn a_request_that_is_sent_again_by_somebody_else_moves_nothing() {
        let mut nomination = Nomination::default();
        for n in 0..TRANSACTIONS as u8 {
            nomination.heard(remote(1), &check(n, true));
        }
        assert!(!nomination.heard(remote(2), &check(5, true)));
        assert_eq!(nomination.redirect(remote(9), &[0x80]), remote(1));
        nomination.heard(remote(1), &check(200, true));
        assert_eq!(nomination.seen.len(), TRANSACTIONS);
    }
}
