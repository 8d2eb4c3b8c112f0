//! Where a client wants to be sent to: from where its last nomination came.
//!
//! A client of a server that makes no checks of its own names the pair that it has chosen by USE-CANDIDATE in each of its
//! own (RFC 8445 §8.1.1), every few seconds. The stack stays with a pair of equal or higher priority until nothing has come
//! by that for 15 s: when a NAT gives the client another address, or UDP ends and TCP goes on, it sends into the void for
//! as long. So what is not STUN follows the nominations.
//!
//! One request says little: its sender's address may be somebody else's, who would be flooded. So an address is sent [`TRUST`] bytes
//! at most before more than that one request has come from it, and it is left again when for [`SILENCE`] the client has been heard
//! from other addresses alone. A client that has really moved says something at once: its checks, reports and media go on.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::remote::Remote;
use super::ufrag::attribute;

/// USE-CANDIDATE.
const USE_CANDIDATE: u16 = 0x0025;
/// Transactions that are remembered: a request that comes again was seen on its way by somebody who wants to be sent to.
const TRANSACTIONS: usize = 64;
/// What is sent to addresses of which no more is known than a nomination, until one of them says more.
const TRUST: usize = 50_000;
/// How long an address may be silent while others are not.
const SILENCE: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug, Default)]
pub struct Nomination {
    /// Where the client is by more than one datagram, and when it was heard there last.
    chosen: Option<(Remote, Instant)>,
    /// Where it says that it is now.
    claimed: Option<Remote>,
    /// What was sent on mere claims.
    spent: usize,
    seen: VecDeque<[u8; 12]>,
}

impl Nomination {
    /// A datagram came that is the client's: STUN by its integrity, all else by its address. Whether it is now sent to somewhere else.
    pub fn heard(&mut self, now: Instant, from: Remote, datagram: &[u8]) -> bool {
        let Some(fresh) = self.is_fresh(datagram) else { return false };
        if fresh && attribute(datagram, USE_CANDIDATE).is_some() {
            return self.nominated(now, from);
        }
        if self.claimed == Some(from) {
            self.settle(now, from);
            return false;
        }
        match &mut self.chosen {
            Some((chosen, heard)) if *chosen == from => *heard = now,
            Some((_, heard)) if now.saturating_duration_since(*heard) >= SILENCE => {
                self.settle(now, from);
                return true;
            }
            _ => {}
        }
        false
    }

    fn nominated(&mut self, now: Instant, from: Remote) -> bool {
        let before = self.claimed.or(self.chosen.map(|(chosen, _)| chosen));
        if before == Some(from) || self.chosen.is_some_and(|(chosen, _)| chosen == from) {
            self.settle(now, from);
        } else {
            self.claimed = Some(from);
        }
        before.is_some_and(|before| before != from)
    }

    fn settle(&mut self, now: Instant, at: Remote) {
        if self.claimed == Some(at) {
            self.spent = 0;
        }
        (self.chosen, self.claimed) = (Some((at, now)), None);
    }

    /// Whether a datagram is a request that has not come before; `None` where it is one that has, or an answer, and says nothing.
    fn is_fresh(&mut self, datagram: &[u8]) -> Option<bool> {
        if !is_stun(datagram) {
            return Some(false);
        }
        let transaction = datagram.get(8..20)?.try_into().ok()?;
        if !datagram.starts_with(&[0, 1]) || self.seen.contains(&transaction) {
            return None;
        }
        if self.seen.len() == TRANSACTIONS {
            self.seen.pop_front();
        }
        self.seen.push_back(transaction);
        Some(true)
    }

    /// Where a datagram goes that the stack would send to `to`.
    pub fn redirect(&mut self, to: Remote, datagram: &[u8]) -> Remote {
        if is_stun(datagram) {
            return to;
        }
        if let Some(claimed) = self.claimed
            && self.spent + datagram.len() <= TRUST
        {
            self.spent += datagram.len();
            return claimed;
        }
        self.chosen.map_or(to, |(chosen, _)| chosen)
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

    fn remote(port: u16) -> Remote {
        std::net::SocketAddr::from(([192, 0, 2, 1], port)).into()
    }

    const MEDIA: [u8; 1000] = [0x80; 1000];

    /// Settled at port 1.
    fn settled() -> (Nomination, Instant) {
        let (mut nomination, now) = (Nomination::default(), Instant::now());
        assert!(!nomination.heard(now, remote(1), &check(1, true)), "the first is no move");
        assert!(!nomination.heard(now, remote(1), &check(2, true)));
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
        assert!(!nomination.heard(now, remote(2), &check(3, false)));
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(1));
        let tcp = Remote::tcp(remote(3).address);
        assert!(nomination.heard(now, tcp, &check(4, true)));
        assert_eq!(nomination.redirect(remote(9), &MEDIA), tcp);
        assert_eq!(nomination.redirect(remote(9), &[1; 20]), remote(9));
    }

    #[test]
    fn an_address_that_says_no_more_than_one_request_is_sent_little_and_left() {
        let (mut nomination, now) = settled();
        assert!(nomination.heard(now, remote(2), &check(3, true)));
        // The same again is no more.
        assert!(!nomination.heard(now, remote(2), &check(3, true)));
        let to = |nomination: &mut Nomination| {
            (0..200).filter(|_| nomination.redirect(remote(9), &MEDIA) == remote(2)).count()
        };
        assert_eq!(to(&mut nomination), TRUST / MEDIA.len());
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(1));
        // Nor are others sent as much again.
        assert!(nomination.heard(now, remote(3), &check(4, true)));
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(1));
    }

    #[test]
    fn an_address_that_says_more_is_where_the_client_is() {
        for more in [check(9, true), check(9, false), vec![22; 40], vec![0x81; 40]] {
            let (mut nomination, now) = settled();
            assert!(nomination.heard(now, remote(2), &check(3, true)));
            nomination.heard(now, remote(2), &more);
            let all = (0..200).all(|_| nomination.redirect(remote(9), &MEDIA) == remote(2));
            assert!(all, "{more:?}");
        }
    }

    #[test]
    fn it_is_left_when_only_others_are_heard_for_five_seconds() {
        let (mut nomination, now) = settled();
        assert!(nomination.heard(now, remote(2), &check(3, true)));
        nomination.heard(now, remote(2), &MEDIA);
        assert!(!nomination.heard(now + seconds(4), remote(1), &MEDIA));
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(2));
        assert!(nomination.heard(now + seconds(5), remote(1), &MEDIA));
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(1));
    }

    #[test]
    fn who_says_nothing_for_long_is_still_where_it_was() {
        let (mut nomination, now) = settled();
        assert!(!nomination.heard(now + seconds(60), remote(1), &MEDIA));
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(1));
    }

    #[test]
    fn a_request_that_is_sent_again_by_somebody_else_moves_nothing() {
        let (mut nomination, now) = (Nomination::default(), Instant::now());
        for n in 0..TRANSACTIONS as u8 {
            nomination.heard(now, remote(1), &check(n, true));
        }
        assert!(!nomination.heard(now, remote(2), &check(5, true)));
        assert_eq!(nomination.redirect(remote(9), &MEDIA), remote(1));
        nomination.heard(now, remote(1), &check(200, true));
        assert_eq!(nomination.seen.len(), TRANSACTIONS);
    }
}
