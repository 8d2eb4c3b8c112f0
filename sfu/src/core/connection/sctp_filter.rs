//! Filters decrypted SCTP packets before the stack processes them.
//!
//! The stack accepts data on any of 65,536 streams, polls all of them each time, and reports none without an open
//! channel. It also keeps fragments and data ahead of a gap without a sufficient bound. So each connection's DTLS is
//! wrapped ([`provider`]), and [`SctpFilter`] checks what it decrypts.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use str0m::crypto::dtls::{
    DtlsCert, DtlsImplError, DtlsInstance, DtlsOutput, DtlsProvider, DtlsVersion, ProtocolVersion,
};
use str0m::crypto::{CryptoError, CryptoProvider, from_feature_flags};

use super::cpu_limit;
use super::rsa_dtls::RsaDtls;
use super::srtp;

/// Maximum number of streams on which a client may send: those of the channels that it may open, and of the anchor
/// channel.
const MAX_STREAMS: usize = super::channels::MAX_CHANNELS + 1;
/// Size in bytes below which a fragment is small. The stack bounds waiting fragments by bytes alone, needs 150 bytes
/// for each, and searches all of them. A fragmented message has one or two small ones.
const SMALL_BYTES: usize = 200;
/// Maximum number of small fragments that may wait in the stack.
const MAX_SMALL: usize = 2048;
/// Maximum number by which a TSN may be ahead of the cumulative TSN. The stack keeps all data ahead of a gap.
const MAX_AHEAD: u32 = 4096;
/// Bytes before the first chunk of a packet (RFC 9260 §3.1).
const COMMON_HEADER: usize = 12;
/// Chunk type DATA (RFC 9260 §3.2).
const DATA: u8 = 0;
/// Chunk type INIT (RFC 9260 §3.2).
const INIT: u8 = 1;
/// Chunk type INIT ACK (RFC 9260 §3.2).
const INIT_ACK: u8 = 2;
/// Chunk type SACK (RFC 9260 §3.2).
const SACK: u8 = 3;
/// Chunk type HEARTBEAT (RFC 9260 §3.2).
const HEARTBEAT: u8 = 4;
/// Chunk type COOKIE ECHO (RFC 9260 §3.2).
const COOKIE_ECHO: u8 = 10;
/// Chunk type RE-CONFIG (RFC 6525 §3.1).
const RECONFIG: u8 = 130;
/// Chunk type FORWARD TSN (RFC 3758 §3.2).
const FORWARD_TSN: u8 = 192;
/// Parameter type Heartbeat Info (RFC 9260 §3.3.5), without the high byte, which is 0.
const HEARTBEAT_INFO: u8 = 1;
/// Parameter type Outgoing SSN Reset Request (RFC 6525 §4), without the high byte, which is 0.
const OUTGOING_RESET: u8 = 13;
/// Parameter type Re-configuration Response (RFC 6525 §4), without the high byte, which is 0.
const RECONFIG_RESPONSE: u8 = 16;
/// Bytes of a DATA chunk's header (RFC 9260 §3.3.1).
const DATA_HEADER: usize = 16;

thread_local! {
    /// Whether the connection whose output was just polled is over a limit.
    static OVER_LIMIT: Cell<bool> = const { Cell::new(false) };
}

/// Whether the connection whose output was just polled is over a limit. The call resets the answer to `false`.
pub(crate) fn take_over_limit() -> bool {
    OVER_LIMIT.take()
}

/// The stack's cryptography with DTLS and SRTP (`srtp`) wrapped, or with the DTLS of `rsa_dtls`.
pub(crate) fn provider(rsa: bool) -> Arc<CryptoProvider> {
    // Certificates of the SDK's clients are of elliptic curves, those of WHIP and WHEP may be RSA.
    static STACKS: Provider = Provider { rsa: false };
    static RSA: Provider = Provider { rsa: true };
    static PROVIDERS: LazyLock<[Arc<CryptoProvider>; 2]> = LazyLock::new(|| {
        [&STACKS, &RSA].map(|dtls_provider| {
            Arc::new(CryptoProvider {
                dtls_provider,
                srtp_provider: srtp::provider(),
                ..from_feature_flags()
            })
        })
    });
    PROVIDERS[usize::from(rsa)].clone()
}

#[derive(Debug)]
struct Provider {
    /// Whether clients may have RSA certificates.
    rsa: bool,
}

impl DtlsProvider for Provider {
    fn generate_certificate(&self) -> Option<DtlsCert> {
        from_feature_flags().dtls_provider.generate_certificate()
    }

    fn new_dtls(
        &self,
        cert: &DtlsCert,
        now: Instant,
        version: DtlsVersion,
        mtu: Option<usize>,
    ) -> Result<Box<dyn DtlsInstance>, CryptoError> {
        let dtls: Box<dyn DtlsInstance> = if self.rsa {
            Box::new(RsaDtls::new(cert, now, mtu)?)
        } else {
            from_feature_flags().dtls_provider.new_dtls(cert, now, version, mtu)?
        };
        Ok(Box::new(Wrapped { dtls, filter: SctpFilter::default() }))
    }
}

#[derive(Debug)]
struct Wrapped {
    dtls: Box<dyn DtlsInstance>,
    filter: SctpFilter,
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
                cpu_limit::set_authenticated();
                match self.filter.admit(packet) {
                    Verdict::Pass => DtlsOutput::ApplicationData(packet),
                    Verdict::Drop => DtlsOutput::ApplicationData(&[]),
                    Verdict::OverLimit => {
                        OVER_LIMIT.set(true);
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
        self.filter.on_sent(data);
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

/// Decision about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    /// Drop it, as if it was lost: the client retransmits it.
    Drop,
    /// Drop it and end the connection.
    OverLimit,
}

/// State of the filter of one connection: what the client has sent, and what of it waits in the stack.
#[derive(Debug, Default)]
struct SctpFilter {
    /// Ids of the streams with data.
    streams: Vec<u16>,
    /// Whether an empty DATA chunk came, which is forbidden (RFC 9260 §3.3.1) and no receive window counts.
    empty: bool,
    /// The cumulative TSN of the stack's last SACK.
    cumulative_tsn: Option<u32>,
    /// The largest receive window that the stack has advertised, in bytes.
    window: u32,
    /// Upper bound of the number of small fragments that wait in the stack.
    small: usize,
}

impl SctpFilter {
    /// Checks a packet of the client against the limits of streams, small fragments and data ahead of a gap.
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
                // The stack may parse another chunk as shorter than its length: the next chunk could begin anywhere in
                // it.
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
        if self.streams.len() > MAX_STREAMS || self.small > MAX_SMALL || self.empty {
            return Verdict::OverLimit;
        }
        if ahead { Verdict::Drop } else { Verdict::Pass }
    }

    /// Reads the stack's SACKs: the cumulative TSN, and the bytes that still wait, at least one for each fragment.
    fn on_sent(&mut self, packet: &[u8]) {
        let word = |at: usize| Some(u32::from_be_bytes(packet.get(at..at + 4)?.try_into().ok()?));
        let mut at = COMMON_HEADER;
        while let Some(&[kind, _, high, low]) = packet.get(at..at + 4) {
            if let (INIT | INIT_ACK | SACK, Some(first), Some(window)) =
                (kind, word(at + 4), word(at + 8))
            {
                self.window = self.window.max(window);
                if kind == SACK {
                    self.cumulative_tsn = Some(first);
                    self.small = self.small.min((self.window - window) as usize);
                }
            }
            at += usize::from(u16::from_be_bytes([high, low])).max(4).next_multiple_of(4);
        }
    }

    /// Counts a DATA chunk; returns whether it is too far ahead.
    fn data(&mut self, packet: &[u8], at: usize) -> bool {
        let Some(&[_, _, high, low, n0, n1, n2, n3, s0, s1]) = packet.get(at..at + 10) else {
            return false;
        };
        let stream = u16::from_be_bytes([s0, s1]);
        if self.streams.len() <= MAX_STREAMS && !self.streams.contains(&stream) {
            self.streams.push(stream);
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        self.empty |= length == DATA_HEADER;
        if length < DATA_HEADER + SMALL_BYTES {
            self.small += 1;
        }
        let number = u32::from_be_bytes([n0, n1, n2, n3]);
        let ahead = |tsn| number.wrapping_sub(tsn);
        self.cumulative_tsn.is_some_and(|tsn| (MAX_AHEAD..=1 << 31).contains(&ahead(tsn)))
    }
}

/// Whether the stack parses a chunk exactly as long as its length says. HEARTBEAT and RECONFIG chunks of real clients
/// are; their content may look like DATA.
fn is_whole(kind: u8, value: Option<&[u8]>) -> bool {
    let (Some(mut value), Some(max_parameters)) = (
        value,
        match kind {
            HEARTBEAT => Some(1),
            RECONFIG => Some(2),
            _ => None,
        },
    ) else {
        return false;
    };
    for _ in 0..max_parameters {
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

/// Whether a DATA chunk can begin here.
fn may_be_data(packet: &[u8], at: usize) -> bool {
    packet.get(at..at + 4).is_some_and(|head| {
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        head[0] == DATA && (DATA_HEADER..=packet.len() - at).contains(&length)
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

    fn passes(filter: &mut SctpFilter, chunks: &[Vec<u8>]) -> bool {
        filter.admit(&packet(chunks)) == Verdict::Pass
    }

    fn packet(chunks: &[Vec<u8>]) -> Vec<u8> {
        let mut packet = vec![0; COMMON_HEADER];
        packet.extend(chunks.iter().flatten());
        packet
    }

    #[test]
    fn a_client_may_send_on_its_channels_and_on_ours() {
        let mut filter = SctpFilter::default();
        for round in 0..3 {
            for stream in 0..MAX_STREAMS as u16 {
                assert!(passes(&mut filter, &[data(stream)]), "{round} {stream}");
            }
        }
        assert!(passes(&mut filter, &[chunk(SACK, &[0; 12]), data(3), data(4)]));
    }

    #[test]
    fn a_stream_over_the_limit_blocks_the_association() {
        let mut filter = SctpFilter::default();
        let all: Vec<_> = (0..=MAX_STREAMS as u16).map(data).collect();
        assert!(!passes(&mut filter, &all));
        assert!(!passes(&mut filter, &[data(0)]));
    }

    #[test]
    fn data_that_hides_in_another_chunk_is_found() {
        // A heartbeat is as long as its only parameter, to the stack.
        let mut value = vec![0, 1, 0, 8, 1, 2, 3, 4];
        value.extend((0..=MAX_STREAMS as u16).flat_map(data));
        assert!(!passes(&mut SctpFilter::default(), &[chunk(4, &value)]));
        // And where the first that hides reaches beyond it, what follows is not where it seems to be.
        let mut value = vec![0, 1, 0, 8, 1, 2, 3, 4];
        value.extend([0, 3, 0, 60]);
        let rest: Vec<u8> = (0..=MAX_STREAMS as u16).flat_map(data).collect();
        let cover = [vec![0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 53], rest].concat();
        let chunks = [chunk(4, &value), chunk(DATA, &cover)];
        assert!(!passes(&mut SctpFilter::default(), &chunks));
    }

    #[test]
    fn other_chunks_are_not_taken_for_data() {
        // A heartbeat as usrsctp sends it; the time in it goes on.
        let heartbeat = |time: u16| {
            let mut info = vec![0, 1, 0, 44, 0, 0, 9, 9];
            info.extend(time.to_be_bytes());
            info.resize(44, 7);
            chunk(HEARTBEAT, &info)
        };
        // Streams closed, alone and with the answer to the other side's request.
        let reset = |request: u16| {
            let mut value = vec![0, 13, 0, 18, 0, 0, 0, 1];
            value.extend(request.to_be_bytes());
            value.extend([0, 1, 0, 0, 0, 1, 0, 3]);
            value
        };
        let answer = [0, 16, 0, 12, 0, 17, 0, 17, 0, 0, 0, 1];
        let mut filter = SctpFilter::default();
        for at in 0..100 {
            assert!(passes(&mut filter, &[heartbeat(at), data(0)]), "heartbeat {at}");
            assert!(passes(&mut filter, &[chunk(RECONFIG, &reset(at))]), "reset {at}");
            let both = [answer.to_vec(), reset(at)].concat();
            assert!(passes(&mut filter, &[chunk(RECONFIG, &both)]), "both {at}");
        }
        assert_eq!(filter.streams, [0]);
    }

    #[test]
    fn an_empty_data_chunk_does_not_pass() {
        let mut filter = SctpFilter::default();
        assert!(passes(&mut filter, &[piece(1, 0, 1)]));
        assert_eq!(filter.admit(&packet(&[piece(2, 0, 0)])), Verdict::OverLimit);
        assert_eq!(filter.admit(&packet(&[piece(3, 0, 1)])), Verdict::OverLimit);
    }

    #[test]
    fn waiting_small_fragments_are_limited() {
        let mut filter = SctpFilter::default();
        filter.on_sent(&init_ack(1 << 20));
        for number in 0..MAX_SMALL as u32 {
            assert!(passes(&mut filter, &[piece(number, 0, 1)]), "{number}");
            filter.on_sent(&sack(number, (1 << 20) - number - 1));
        }
        let last = piece(MAX_SMALL as u32, 0, 1);
        assert_eq!(filter.admit(&packet(&[last])), Verdict::OverLimit);
    }

    #[test]
    fn fragments_that_do_not_wait_are_not_limited() {
        let mut filter = SctpFilter::default();
        filter.on_sent(&init_ack(1 << 20));
        for number in 0..10 * MAX_SMALL as u32 {
            assert!(passes(&mut filter, &[piece(number, 0, 1), piece(number, 0, SMALL_BYTES)]));
            if number % 2 == 1 {
                filter.on_sent(&sack(number, (1 << 20) - 2 * (1 + SMALL_BYTES as u32)));
            }
        }
    }

    #[test]
    fn data_far_ahead_of_what_is_missing_is_lost() {
        let start = u32::MAX - 5;
        let mut filter = SctpFilter::default();
        filter.on_sent(&sack(start, 1 << 20));
        let verdict = |filter: &mut SctpFilter, ahead| {
            filter.admit(&packet(&[piece(start.wrapping_add(ahead), 0, SMALL_BYTES)]))
        };
        assert_eq!(verdict(&mut filter, MAX_AHEAD - 1), Verdict::Pass);
        assert_eq!(verdict(&mut filter, MAX_AHEAD), Verdict::Drop);
        assert_eq!(verdict(&mut filter, 1 << 31), Verdict::Drop);
        assert_eq!(verdict(&mut filter, 0), Verdict::Pass);
        assert_eq!(verdict(&mut filter, 0u32.wrapping_sub(9)), Verdict::Pass);
        filter.on_sent(&sack(start.wrapping_add(1), 1 << 20));
        assert_eq!(verdict(&mut filter, MAX_AHEAD), Verdict::Pass);
    }

    #[test]
    fn what_is_no_packet_passes_to_be_refused_by_the_stack() {
        let mut filter = SctpFilter::default();
        for length in 0..40 {
            assert_eq!(filter.admit(&vec![0xff; length]), Verdict::Pass);
            assert_eq!(filter.admit(&vec![0; length]), Verdict::Pass);
        }
        assert!(filter.streams.len() <= 1);
    }
}
