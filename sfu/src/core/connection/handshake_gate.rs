//! What of a client's datagrams `rtc-dtls` may read.
//!
//! Records of a handshake are in the clear, so anybody who can forge the client's address can send them. `rtc-dtls`
//! believes more of them than it should: it ends a connection for an alert or a malformed ChangeCipherSpec that
//! nobody authenticates, changes its keys' epoch for ChangeCipherSpec records at any time, and joins fragments in a
//! time that grows faster than their number. So a datagram passes whole or not at all: with records that DTLS 1.2
//! without renegotiation has (RFC 6347 §4.1), and within a budget for handshakes.

/// Bytes of handshake that may be read of one client. A handshake with a chain of RSA certificates has 6,000; flights
/// that are lost come again. Before the handshake ends, other records count too, as they wait for its end.
const MAX_BYTES: usize = 24_000;
/// Bytes as which a record or a message counts at least, as each costs work whatever its size.
const MIN_COUNTED: usize = 200;
/// Bytes of the longest handshake message.
const MAX_MESSAGE: usize = 16_000;
/// Bytes of a record's header (RFC 6347 §4.1).
const RECORD_HEADER: usize = 13;
/// Bytes of a handshake message's header (RFC 6347 §4.2.2).
const MESSAGE_HEADER: usize = 12;
/// Content type of ChangeCipherSpec records (RFC 5246 §6.2.1).
const CHANGE_CIPHER_SPEC: u8 = 20;
/// Content type of alerts (RFC 5246 §6.2.1).
const ALERT: u8 = 21;
/// Content type of handshake records (RFC 5246 §6.2.1).
const HANDSHAKE: u8 = 22;
/// Content type of application data (RFC 5246 §6.2.1).
const APPLICATION_DATA: u8 = 23;
/// Handshake type ClientHello (RFC 5246 §7.4).
pub(super) const CLIENT_HELLO: u8 = 1;
/// Handshake type ServerHello (RFC 5246 §7.4).
pub(super) const SERVER_HELLO: u8 = 2;

/// The gate of one connection.
#[derive(Debug, Default)]
pub(super) struct HandshakeGate {
    spent: usize,
}

impl HandshakeGate {
    /// Whether a datagram may be read. `connected`: the handshake has ended.
    pub(super) fn admit(&mut self, datagram: &[u8], connected: bool) -> bool {
        let Some(cost) = cost(datagram, connected) else { return false };
        self.spent = self.spent.saturating_add(cost);
        cost == 0 || self.spent <= MAX_BYTES
    }
}

/// What a datagram takes of the budget; `None` if it is not to be read.
fn cost(mut datagram: &[u8], connected: bool) -> Option<usize> {
    let mut cost = 0;
    while !datagram.is_empty() {
        let (Record { kind, epoch, body }, rest) = record(datagram)?;
        cost += match (kind, epoch) {
            (HANDSHAKE, 0) => messages(body)?,
            (CHANGE_CIPHER_SPEC, 0) if body == [1] => MIN_COUNTED,
            (ALERT | APPLICATION_DATA, 1) if connected => 0,
            (HANDSHAKE | ALERT | APPLICATION_DATA, 1) => body.len().max(MIN_COUNTED),
            _ => return None,
        };
        datagram = rest;
    }
    Some(cost)
}

/// A record of DTLS 1.2 (RFC 6347 §4.1).
struct Record<'a> {
    /// Content type.
    kind: u8,
    epoch: u16,
    body: &'a [u8],
}

/// The first record, and what follows it.
fn record(datagram: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (header, rest) = datagram.split_at_checked(RECORD_HEADER)?;
    let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (body, rest) = rest.split_at_checked(number(11).into())?;
    Some((Record { kind: header[0], epoch: number(3), body }, rest))
}

/// What a record's messages take of the budget; `None` if they are malformed. A fragment is the last of its record,
/// as `rtc-dtls` takes what follows it for more of it.
fn messages(mut body: &[u8]) -> Option<usize> {
    let mut cost = 0;
    if body.is_empty() {
        return None;
    }
    while !body.is_empty() {
        let (header, rest) = body.split_at_checked(MESSAGE_HEADER)?;
        let number = |at: usize| {
            u32::from_be_bytes([0, header[at], header[at + 1], header[at + 2]]) as usize
        };
        let (length, offset, fragment) = (number(1), number(6), number(9));
        let (_, rest) = rest.split_at_checked(fragment)?;
        let whole = fragment == length;
        if length > MAX_MESSAGE || offset + fragment > length {
            return None;
        }
        if !whole && (fragment == 0 || !rest.is_empty()) {
            return None;
        }
        cost += (MESSAGE_HEADER + fragment).max(MIN_COUNTED);
        body = rest;
    }
    Some(cost)
}

/// Whether one of a datagram's records begins with a handshake message of this type, in the clear.
pub(super) fn has_message(mut datagram: &[u8], message: u8) -> bool {
    while let Some((Record { kind, epoch, body }, rest)) = record(datagram) {
        if (kind, epoch, body.first()) == (HANDSHAKE, 0, Some(&message)) {
            return true;
        }
        datagram = rest;
    }
    false
}

/// Records and messages as clients write them.
#[cfg(test)]
pub(super) mod written {
    /// A record in the clear, or as if it were encrypted.
    pub(crate) fn record(kind: u8, epoch: u8, sequence: u16, body: &[u8]) -> Vec<u8> {
        let [sequence, length] = [sequence, body.len() as u16].map(u16::to_be_bytes);
        let head = [kind, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0];
        [&head[..], &sequence, &length, body].concat()
    }

    /// A fragment of the handshake message with this number.
    pub(crate) fn message(
        kind: u8,
        number: u8,
        length: u32,
        offset: u32,
        fragment: &[u8],
    ) -> Vec<u8> {
        let [length, offset, size] =
            [length, offset, fragment.len() as u32].map(|n| n.to_be_bytes()[1..].to_vec());
        [vec![kind], length, vec![0, number], offset, size, fragment.to_vec()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, epoch: u8, body: &[u8]) -> Vec<u8> {
        written::record(kind, epoch, 9, body)
    }

    fn message(kind: u8, length: u32, offset: u32, fragment: &[u8]) -> Vec<u8> {
        written::message(kind, 3, length, offset, fragment)
    }

    fn admitted(datagram: &[u8], connected: bool) -> bool {
        HandshakeGate::default().admit(datagram, connected)
    }

    #[test]
    fn the_records_of_a_handshake_pass() {
        let certificate = record(HANDSHAKE, 0, &message(11, 800, 0, &[7; 800]));
        let spec = record(CHANGE_CIPHER_SPEC, 0, &[1]);
        let finished = record(HANDSHAKE, 1, &[7; 48]);
        for connected in [false, true] {
            assert!(admitted(
                &[certificate.clone(), spec.clone(), finished.clone()].concat(),
                connected
            ));
            assert!(admitted(&record(HANDSHAKE, 0, &message(11, 800, 100, &[7; 300])), connected));
            assert!(admitted(&record(ALERT, 1, &[7; 18]), connected));
            assert!(admitted(&record(APPLICATION_DATA, 1, &[7; 500]), connected));
        }
        // Two whole messages may share a record. A ServerHelloDone is empty.
        let two = [message(2, 70, 0, &[7; 70]), message(14, 0, 0, &[])].concat();
        assert!(admitted(&record(HANDSHAKE, 0, &two), false));
    }

    #[test]
    fn what_nobody_authenticates_and_ends_connections_does_not_pass() {
        for connected in [false, true] {
            assert!(!admitted(&record(ALERT, 0, &[1, 0]), connected), "close_notify in the clear");
            assert!(!admitted(&record(CHANGE_CIPHER_SPEC, 0, &[2]), connected));
            assert!(!admitted(&record(CHANGE_CIPHER_SPEC, 0, &[1, 1]), connected));
            assert!(!admitted(&record(CHANGE_CIPHER_SPEC, 1, &[1]), connected));
            assert!(!admitted(&record(APPLICATION_DATA, 0, &[7; 50]), connected));
            assert!(!admitted(&record(APPLICATION_DATA, 2, &[7; 50]), connected));
            assert!(!admitted(&record(HANDSHAKE, 2, &[7; 50]), connected));
            assert!(!admitted(&record(99, 1, &[7; 50]), connected));
            // Nor what comes with it.
            let both = [record(APPLICATION_DATA, 1, &[7; 9]), record(ALERT, 0, &[1, 0])].concat();
            assert!(!admitted(&both, connected));
        }
    }

    #[test]
    fn malformed_records_and_messages_do_not_pass() {
        let hello = record(HANDSHAKE, 0, &message(CLIENT_HELLO, 90, 0, &[7; 90]));
        assert!(admitted(&hello, false));
        for length in 1..hello.len() {
            assert!(!admitted(&hello[..length], false), "{length} bytes");
        }
        for wrong in [
            vec![],
            message(11, 800, 0, &[]),
            message(11, 100, 50, &[7; 51]),
            message(11, 0xff_ffff, 0, &[7; 50]),
            [message(11, 800, 0, &[7; 50]), message(11, 800, 50, &[7; 50])].concat(),
        ] {
            assert!(!admitted(&record(HANDSHAKE, 0, &wrong), false), "{wrong:?}");
        }
    }

    #[test]
    fn a_handshake_has_a_budget_and_data_has_none() {
        let tiny = record(HANDSHAKE, 0, &message(11, 800, 5, &[7]));
        let mut gate = HandshakeGate::default();
        let passed = (0..1000).filter(|_| gate.admit(&tiny, false)).count();
        assert_eq!(passed, MAX_BYTES / MIN_COUNTED);
        assert!(!gate.admit(&tiny, true));
        assert!(gate.admit(&record(APPLICATION_DATA, 1, &[7; 500]), true));
    }

    #[test]
    fn a_message_is_found_in_any_record() {
        let hello = record(HANDSHAKE, 0, &message(CLIENT_HELLO, 90, 0, &[7; 90]));
        let spec = record(CHANGE_CIPHER_SPEC, 0, &[1]);
        assert!(has_message(&[spec.clone(), hello.clone()].concat(), CLIENT_HELLO));
        assert!(!has_message(&hello, SERVER_HELLO));
        assert!(!has_message(&spec, CLIENT_HELLO));
    }
}
