//! How many SCTP streams a client may use. The stack takes any of the 65,536, tells nobody of those on which no channel was
//! opened, and asks all of them at each look: what a client says on them must not reach it. Nor may what would have it keep
//! pieces of messages without bound.
//!
//! So each connection's DTLS is wrapped ([`provider`]), and what comes out of it is looked at first.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use str0m::crypto::dtls::{
    DtlsCert, DtlsImplError, DtlsInstance, DtlsOutput, DtlsProvider, DtlsVersion, ProtocolVersion,
};
use str0m::crypto::{CryptoError, CryptoProvider, from_feature_flags};

use super::{srtp, toll};

/// Streams that a client may send on: those of the channels that it may open, and our own channel's.
const STREAMS: usize = super::peer::CHANNELS + 1;
/// Pieces of messages with fewer bytes than these are small: the stack's work for each goes with how many wait, what waits is
/// bounded by bytes alone, and one byte takes it 150 of its own. A message that is cut has one or two small ones.
const SMALL: usize = 200;
const SMALL_MAX: usize = 2048;
/// How far data may be ahead of what is missing. The stack keeps all that is, read or not.
const AHEAD_MAX: u32 = 4096;
/// Bytes before the first chunk of a packet (RFC 9260 §3).
const COMMON_HEADER: usize = 12;
/// Kinds of chunks.
const DATA: u8 = 0;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const SACK: u8 = 3;
const HEARTBEAT: u8 = 4;
const COOKIE_ECHO: u8 = 10;
const RECONFIG: u8 = 130;
const FORWARD_TSN: u8 = 192;
/// Parameters of the chunks above.
const HEARTBEAT_INFO: u8 = 1;
const OUTGOING_RESET: u8 = 13;
const RECONFIG_RESPONSE: u8 = 16;
/// The shortest chunk of data.
const DATA_MIN: usize = 16;

thread_local! {
    static TOO_MANY: Cell<bool> = const { Cell::new(false) };
}

/// Whether the connection that was asked for its output just now has sent on too many; told once.
pub fn too_many() -> bool {
    TOO_MANY.take()
}

/// The stack's own cryptography, with DTLS wrapped, and SRTP (`srtp`).
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
        static OURS: LazyLock<Provider> =
            LazyLock::new(|| Provider(from_feature_flags().dtls_provider));
        Arc::new(CryptoProvider {
            dtls_provider: &*OURS,
            srtp_provider: srtp::provider(),
            ..from_feature_flags()
        })
    });
    PROVIDER.clone()
}

#[derive(Debug)]
struct Provider(&'static dyn DtlsProvider);

impl DtlsProvider for Provider {
    fn generate_certificate(&self) -> Option<DtlsCert> {
        self.0.generate_certificate()
    }

    fn new_dtls(
        &self,
        cert: &DtlsCert,
        now: Instant,
        version: DtlsVersion,
        mtu: Option<usize>,
    ) -> Result<Box<dyn DtlsInstance>, CryptoError> {
        let dtls = self.0.new_dtls(cert, now, version, mtu)?;
        Ok(Box::new(Wrapped { dtls, streams: Streams::default() }))
    }
}

#[derive(Debug)]
struct Wrapped {
    dtls: Box<dyn DtlsInstance>,
    streams: Streams,
}

impl DtlsInstance for Wrapped {
    fn set_active(&mut self, active: bool) {
        self.dtls.set_active(active);
    }

    fn handle_packet(&mut self, packet: &[u8]) -> Result<(), DtlsImplError> {
        self.dtls.handle_packet(packet)
    }

    fn poll_output<'a>(&mut self, buf: &'a mut [u8]) -> DtlsOutput<'a> {
        match self.dtls.poll_output(buf) {
            DtlsOutput::ApplicationData(packet) => {
                toll::prove();
                match self.streams.admit(packet) {
                    Verdict::Passes => DtlsOutput::ApplicationData(packet),
                    Verdict::Lost => DtlsOutput::ApplicationData(&[]),
                    Verdict::TooMany => {
                        TOO_MANY.set(true);
                        DtlsOutput::ApplicationData(&[])
                    }
                }
            }
            output => output,
        }
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsImplError> {
        self.dtls.handle_timeout(now)
    }

    fn send_application_data(&mut self, data: &[u8]) -> Result<usize, DtlsImplError> {
        self.streams.answer(data);
        self.dtls.send_application_data(data)
    }

    fn is_active(&self) -> bool {
        self.dtls.is_active()
    }

    fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.dtls.protocol_version()
    }

    fn is_closing(&self) -> bool {
        self.dtls.is_closing()
    }

    fn is_closed(&self) -> bool {
        self.dtls.is_closed()
    }

    fn close(&mut self) -> Result<(), DtlsImplError> {
        self.dtls.close()
    }
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passes,
    /// As though it had been lost: the client sends it again if it still wants to.
    Lost,
    TooMany,
}

/// What has come of data, and what of that waits in the stack.
#[derive(Debug, Default)]
struct Streams {
    known: Vec<u16>,
    /// Whether there was data without any, which nobody may send (RFC 9260 §3.3.1) and no window counts.
    empty: bool,
    /// The number up to which the stack has told the client that it has all.
    have: Option<u32>,
    /// What the stack lets wait in all, and the most of small pieces that do.
    window: u32,
    small: usize,
}

impl Streams {
    /// Whether a packet may pass: it has data of no more streams than there may be, in pieces of which the stack does not have
    /// too many already, and not far ahead of what is missing.
    fn admit(&mut self, packet: &[u8]) -> Verdict {
        let mut ahead = false;
        let mut at = COMMON_HEADER;
        while let Some(&[kind, _, high, low]) = packet.get(at..at + 4) {
            let length = usize::from(u16::from_be_bytes([high, low])).max(4);
            let end = (at + length).min(packet.len());
            match kind {
                DATA => ahead |= self.data(packet, at),
                SACK | COOKIE_ECHO => {}
                _ if is_whole(kind, packet.get(at + 4..at + length)) => {}
                FORWARD_TSN if length % 4 == 0 => {}
                // The stack takes others for as long as their parts are, which may be less than their length says: the
                // next chunk could begin anywhere in them.
                _ => {
                    let hidden = |&at: &usize| may_be_data(packet, at);
                    if let Some(first) = (at + 4..end).step_by(4).find(hidden) {
                        let all = (first..packet.len()).step_by(4).filter(hidden);
                        ahead |= all.fold(false, |ahead, at| ahead | self.data(packet, at));
                        break;
                    }
                }
            }
            at += length.next_multiple_of(4);
        }
        if self.known.len() > STREAMS || self.small > SMALL_MAX || self.empty {
            return Verdict::TooMany;
        }
        if ahead { Verdict::Lost } else { Verdict::Passes }
    }

    /// Takes from what the stack says to the client what it has, and how many bytes of that wait: at least one for each piece.
    fn answer(&mut self, packet: &[u8]) {
        let word = |at: usize| Some(u32::from_be_bytes(packet.get(at..at + 4)?.try_into().ok()?));
        let mut at = COMMON_HEADER;
        while let Some(&[kind, _, high, low]) = packet.get(at..at + 4) {
            if let (INIT | INIT_ACK | SACK, Some(first), Some(window)) =
                (kind, word(at + 4), word(at + 8))
            {
                self.window = self.window.max(window);
                if kind == SACK {
                    self.have = Some(first);
                    self.small = self.small.min((self.window - window) as usize);
                }
            }
            at += usize::from(u16::from_be_bytes([high, low])).max(4).next_multiple_of(4);
        }
    }

    /// Counts a chunk of data; whether it is too far ahead.
    fn data(&mut self, packet: &[u8], at: usize) -> bool {
        let Some(&[_, _, high, low, n0, n1, n2, n3, s0, s1]) = packet.get(at..at + 10) else {
            return false;
        };
        let stream = u16::from_be_bytes([s0, s1]);
        if self.known.len() <= STREAMS && !self.known.contains(&stream) {
            self.known.push(stream);
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        self.empty |= length == DATA_MIN;
        if length < DATA_MIN + SMALL {
            self.small += 1;
        }
        let number = u32::from_be_bytes([n0, n1, n2, n3]);
        let before = |have| number.wrapping_sub(have);
        self.have.is_some_and(|have| (AHEAD_MAX..=1 << 31).contains(&before(have)))
    }
}

/// Whether a chunk is one that honest clients send, which the stack takes for just as long as its length says. In a heartbeat
/// there may be anything, such as what looks like data.
fn is_whole(kind: u8, value: Option<&[u8]>) -> bool {
    let (Some(mut value), Some(most)) = (
        value,
        match kind {
            HEARTBEAT => Some(1),
            RECONFIG => Some(2),
            _ => None,
        },
    ) else {
        return false;
    };
    for _ in 0..most {
        let Some(&[0, parameter, high, low]) = value.get(..4) else { return false };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let known = match (kind, parameter) {
            (HEARTBEAT, HEARTBEAT_INFO) => length >= 4,
            (RECONFIG, OUTGOING_RESET) => length >= 16 && length % 2 == 0,
            (RECONFIG, RECONFIG_RESPONSE) => length == 12,
            _ => false,
        };
        if !known || length >= value.len() {
            return known && length == value.len();
        }
        let Some(rest) = value.get(length.next_multiple_of(4)..) else { return false };
        value = rest;
    }
    false
}

/// Whether a chunk of data can begin here.
fn may_be_data(packet: &[u8], at: usize) -> bool {
    packet.get(at..at + 4).is_some_and(|head| {
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        head[0] == DATA && (DATA_MIN..=packet.len() - at).contains(&length)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: u8, value: &[u8]) -> Vec<u8> {
        let length = (4 + value.len()) as u16;
        let mut chunk = vec![kind, 3];
        chunk.extend(length.to_be_bytes());
        chunk.extend(value);
        chunk.resize(chunk.len().next_multiple_of(4), 0);
        chunk
    }

    fn data(stream: u16) -> Vec<u8> {
        piece(1, stream, 1)
    }

    fn piece(number: u32, stream: u16, bytes: usize) -> Vec<u8> {
        let mut value = number.to_be_bytes().to_vec();
        value.extend(stream.to_be_bytes());
        value.extend([0, 0, 0, 0, 0, 53]);
        value.resize(12 + bytes, 7);
        chunk(DATA, &value)
    }

    /// What the stack says: that it has all up to a number, and how much may come.
    fn sack(number: u32, window: u32) -> Vec<u8> {
        let value = [number.to_be_bytes(), window.to_be_bytes(), [0; 4]].concat();
        packet(&[chunk(COOKIE_ECHO, &[0; 5]), chunk(SACK, &value)])
    }

    fn init_ack(window: u32) -> Vec<u8> {
        let value = [[9; 4], window.to_be_bytes(), [0; 4], [0; 4]].concat();
        packet(&[chunk(INIT_ACK, &value)])
    }

    fn passes(streams: &mut Streams, chunks: &[Vec<u8>]) -> bool {
        streams.admit(&packet(chunks)) == Verdict::Passes
    }

    fn packet(chunks: &[Vec<u8>]) -> Vec<u8> {
        let mut packet = vec![0; COMMON_HEADER];
        packet.extend(chunks.iter().flatten());
        packet
    }

    #[test]
    fn a_client_may_send_on_its_channels_and_on_ours() {
        let mut streams = Streams::default();
        for round in 0..3 {
            for stream in 0..STREAMS as u16 {
                assert!(passes(&mut streams, &[data(stream)]), "{round} {stream}");
            }
        }
        assert!(passes(&mut streams, &[chunk(SACK, &[0; 12]), data(3), data(4)]));
    }

    #[test]
    fn one_stream_more_and_nothing_passes_any_more() {
        let mut streams = Streams::default();
        let all: Vec<_> = (0..=STREAMS as u16).map(data).collect();
        assert!(!passes(&mut streams, &all));
        assert!(!passes(&mut streams, &[data(0)]));
    }

    #[test]
    fn data_that_hides_in_another_chunk_is_found() {
        // A heartbeat is as long as its only parameter, to the stack.
        let mut value = vec![0, 1, 0, 8, 1, 2, 3, 4];
        value.extend((0..=STREAMS as u16).flat_map(data));
        assert!(!passes(&mut Streams::default(), &[chunk(4, &value)]));
        // And where the first that hides reaches beyond it, what follows is not where it seems to be.
        let mut value = vec![0, 1, 0, 8, 1, 2, 3, 4];
        value.extend([0, 3, 0, 60]);
        let rest: Vec<u8> = (0..=STREAMS as u16).flat_map(data).collect();
        let cover = [vec![0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 53], rest].concat();
        let chunks = [chunk(4, &value), chunk(DATA, &cover)];
        assert!(!passes(&mut Streams::default(), &chunks));
    }

    #[test]
    fn what_others_say_beside_data_is_not_taken_for_data() {
        // A heartbeat as usrsctp sends it; the time in it goes on.
        let heartbeat = |time: u16| {
            let mut info = vec![0, 1, 0, 44, 0, 0, 9, 9];
            info.extend(time.to_be_bytes());
            info.resize(44, 7);
            chunk(HEARTBEAT, &info)
        };
        // Streams closed, alone and with the answer to the other side's wish.
        let reset = |wish: u16| {
            let mut value = vec![0, 13, 0, 18, 0, 0, 0, 1];
            value.extend(wish.to_be_bytes());
            value.extend([0, 1, 0, 0, 0, 1, 0, 3]);
            value
        };
        let answer = [0, 16, 0, 12, 0, 17, 0, 17, 0, 0, 0, 1];
        let mut streams = Streams::default();
        for at in 0..100 {
            assert!(passes(&mut streams, &[heartbeat(at), data(0)]), "heartbeat {at}");
            assert!(passes(&mut streams, &[chunk(RECONFIG, &reset(at))]), "reset {at}");
            let both = [answer.to_vec(), reset(at)].concat();
            assert!(passes(&mut streams, &[chunk(RECONFIG, &both)]), "both {at}");
        }
        assert_eq!(streams.known, [0]);
    }

    #[test]
    fn data_without_any_does_not_pass() {
        let mut streams = Streams::default();
        assert!(passes(&mut streams, &[piece(1, 0, 1)]));
        assert_eq!(streams.admit(&packet(&[piece(2, 0, 0)])), Verdict::TooMany);
        assert_eq!(streams.admit(&packet(&[piece(3, 0, 1)])), Verdict::TooMany);
    }

    #[test]
    fn few_small_pieces_may_wait() {
        let mut streams = Streams::default();
        streams.answer(&init_ack(1 << 20));
        for number in 0..SMALL_MAX as u32 {
            assert!(passes(&mut streams, &[piece(number, 0, 1)]), "{number}");
            streams.answer(&sack(number, (1 << 20) - number - 1));
        }
        let last = piece(SMALL_MAX as u32, 0, 1);
        assert_eq!(streams.admit(&packet(&[last])), Verdict::TooMany);
    }

    #[test]
    fn any_number_may_come_that_does_not_wait() {
        let mut streams = Streams::default();
        streams.answer(&init_ack(1 << 20));
        for number in 0..10 * SMALL_MAX as u32 {
            assert!(passes(&mut streams, &[piece(number, 0, 1), piece(number, 0, SMALL)]));
            if number % 2 == 1 {
                streams.answer(&sack(number, (1 << 20) - 2 * (1 + SMALL as u32)));
            }
        }
    }

    #[test]
    fn data_far_ahead_of_what_is_missing_is_lost() {
        let start = u32::MAX - 5;
        let mut streams = Streams::default();
        streams.answer(&sack(start, 1 << 20));
        let verdict = |streams: &mut Streams, ahead| {
            streams.admit(&packet(&[piece(start.wrapping_add(ahead), 0, SMALL)]))
        };
        assert_eq!(verdict(&mut streams, AHEAD_MAX - 1), Verdict::Passes);
        assert_eq!(verdict(&mut streams, AHEAD_MAX), Verdict::Lost);
        assert_eq!(verdict(&mut streams, 1 << 31), Verdict::Lost);
        assert_eq!(verdict(&mut streams, 0), Verdict::Passes);
        assert_eq!(verdict(&mut streams, 0u32.wrapping_sub(9)), Verdict::Passes);
        streams.answer(&sack(start.wrapping_add(1), 1 << 20));
        assert_eq!(verdict(&mut streams, AHEAD_MAX), Verdict::Passes);
    }

    #[test]
    fn what_is_no_packet_passes_to_be_refused_by_the_stack() {
        let mut streams = Streams::default();
        for length in 0..40 {
            assert_eq!(streams.admit(&vec![0xff; length]), Verdict::Passes);
            assert_eq!(streams.admit(&vec![0; length]), Verdict::Passes);
        }
        assert!(streams.known.len() <= 1);
    }
}
