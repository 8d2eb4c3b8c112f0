//! How many SCTP streams a client may use. The stack takes any of the 65,536, tells nobody of those on which no channel was
//! opened, and asks all of them at each look: what a client says on them must not reach it.
//!
//! So each connection's DTLS is wrapped ([`provider`]), and what comes out of it is looked at first.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use str0m::crypto::dtls::{
    DtlsCert, DtlsImplError, DtlsInstance, DtlsOutput, DtlsProvider, DtlsVersion, ProtocolVersion,
};
use str0m::crypto::{CryptoError, CryptoProvider, from_feature_flags};

/// Streams that a client may send on: those of the channels that it may open, and our own channel's.
const STREAMS: usize = super::peer::CHANNELS + 1;
/// Bytes before the first chunk of a packet (RFC 9260 §3).
const COMMON_HEADER: usize = 12;
/// Kinds of chunks.
const DATA: u8 = 0;
const SACK: u8 = 3;
const COOKIE_ECHO: u8 = 10;
const FORWARD_TSN: u8 = 192;
/// The shortest chunk of data.
const DATA_MIN: usize = 16;

thread_local! {
    static TOO_MANY: Cell<bool> = const { Cell::new(false) };
}

/// Whether the connection that was asked for its output just now has sent on too many; told once.
pub fn too_many() -> bool {
    TOO_MANY.take()
}

/// The stack's own cryptography, with DTLS wrapped.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
        static OURS: LazyLock<Provider> =
            LazyLock::new(|| Provider(from_feature_flags().dtls_provider));
        Arc::new(CryptoProvider { dtls_provider: &*OURS, ..from_feature_flags() })
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
            DtlsOutput::ApplicationData(packet) if !self.streams.admit(packet) => {
                TOO_MANY.set(true);
                DtlsOutput::ApplicationData(&[])
            }
            output => output,
        }
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsImplError> {
        self.dtls.handle_timeout(now)
    }

    fn send_application_data(&mut self, data: &[u8]) -> Result<usize, DtlsImplError> {
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

/// The streams on which data has come.
#[derive(Debug, Default)]
struct Streams {
    known: Vec<u16>,
}

impl Streams {
    /// Whether a packet may pass: it has data of no more streams than there may be.
    fn admit(&mut self, packet: &[u8]) -> bool {
        let mut at = COMMON_HEADER;
        while let Some(&[kind, _, high, low]) = packet.get(at..at + 4) {
            let length = usize::from(u16::from_be_bytes([high, low])).max(4);
            let end = (at + length).min(packet.len());
            match kind {
                DATA => self.data(packet, at),
                SACK | COOKIE_ECHO => {}
                FORWARD_TSN if length % 4 == 0 => {}
                // The stack takes others for as long as their parts are, which may be less than their length says: the
                // next chunk could begin anywhere in them.
                _ => {
                    let hidden = |&at: &usize| may_be_data(packet, at);
                    if let Some(first) = (at + 4..end).step_by(4).find(hidden) {
                        let all = (first..packet.len()).step_by(4).filter(hidden);
                        all.for_each(|at| self.data(packet, at));
                        break;
                    }
                }
            }
            at += length.next_multiple_of(4);
        }
        self.known.len() <= STREAMS
    }

    fn data(&mut self, packet: &[u8], at: usize) {
        let Some(&[high, low]) = packet.get(at + 8..at + 10) else { return };
        let stream = u16::from_be_bytes([high, low]);
        if self.known.len() <= STREAMS && !self.known.contains(&stream) {
            self.known.push(stream);
        }
    }
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
        let mut value = vec![0, 0, 0, 1];
        value.extend(stream.to_be_bytes());
        value.extend([0, 0, 0, 0, 0, 53, 7]);
        chunk(DATA, &value)
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
                assert!(streams.admit(&packet(&[data(stream)])), "{round} {stream}");
            }
        }
        assert!(streams.admit(&packet(&[chunk(SACK, &[0; 12]), data(3), data(4)])));
    }

    #[test]
    fn one_stream_more_and_nothing_passes_any_more() {
        let mut streams = Streams::default();
        let all: Vec<_> = (0..=STREAMS as u16).map(data).collect();
        assert!(!streams.admit(&packet(&all)));
        assert!(!streams.admit(&packet(&[data(0)])));
    }

    #[test]
    fn data_that_hides_in_another_chunk_is_found() {
        // A heartbeat is as long as its only parameter, to the stack.
        let mut value = vec![0, 1, 0, 8, 1, 2, 3, 4];
        value.extend((0..=STREAMS as u16).flat_map(data));
        assert!(!Streams::default().admit(&packet(&[chunk(4, &value)])));
        // And where the first that hides reaches beyond it, what follows is not where it seems to be.
        let mut value = vec![0, 1, 0, 8, 1, 2, 3, 4];
        value.extend([0, 3, 0, 60]);
        let rest: Vec<u8> = (0..=STREAMS as u16).flat_map(data).collect();
        let cover = [vec![0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 53], rest].concat();
        assert!(!Streams::default().admit(&packet(&[chunk(4, &value), chunk(DATA, &cover)])));
    }

    #[test]
    fn what_is_no_packet_passes_to_be_refused_by_the_stack() {
        let mut streams = Streams::default();
        for length in 0..40 {
            assert!(streams.admit(&vec![0xff; length]));
            assert!(streams.admit(&vec![0; length]));
        }
        assert!(streams.known.len() <= 1);
    }
}
