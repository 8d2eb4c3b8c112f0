//! The data channels' transport, below DTLS: packets with right checksums and any content, into an association that is
//! up. A participant can send these.

#![no_main]
#![allow(missing_docs)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes as Data;
use libfuzzer_sys::fuzz_target;
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Payload,
    ServerConfig,
};
use windlass_sfu_fuzz::Bytes;

/// Checksum of SCTP packets: CRC32c (RFC 9260, appendix A).
const CHECKSUM: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);

struct End {
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    said: Vec<Data>,
}

impl End {
    fn new(server: bool) -> End {
        let server = server.then(|| Arc::new(ServerConfig::default()));
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), server);
        End { endpoint, association: None, said: Vec::new() }
    }

    fn take(&mut self, now: Instant, from: SocketAddr, packet: Data) {
        match self.endpoint.handle(now, from, None, None, packet) {
            Some((handle, DatagramEvent::NewAssociation(association))) => {
                self.association = Some((handle, association));
            }
            Some((_, DatagramEvent::AssociationEvent(event))) => {
                if let Some((_, association)) = &mut self.association {
                    association.handle_event(event);
                }
            }
            _ => {}
        }
        self.speak(now);
    }

    fn speak(&mut self, now: Instant) {
        let mut keep = |payload| {
            if let Payload::RawEncode(packets) = payload {
                self.said.extend(packets);
            }
        };
        while let Some(transmit) = self.endpoint.poll_transmit() {
            keep(transmit.payload);
        }
        let Some((handle, association)) = &mut self.association else { return };
        while let Some(transmit) = association.poll_transmit(now) {
            keep(transmit.payload);
        }
        while let Some(event) = association.poll_endpoint_event() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                association.handle_event(event);
            }
        }
        while association.poll().is_some() {}
        while let Some(mut stream) = association.accept_stream() {
            while let Ok(Some(_)) = stream.read() {}
        }
        for id in association.stream_ids() {
            let Ok(mut stream) = association.stream(id) else { continue };
            while let Ok(Some(_)) = stream.read() {}
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let address = SocketAddr::from(([192, 0, 2, 1], 5000));
    let mut now = Instant::now();
    let (mut client, mut server) = (End::new(false), End::new(true));
    let config = ClientConfig::default();
    client.association = client.endpoint.connect(config, address).ok();
    client.speak(now);
    let mut last = Vec::new();
    for _ in 0..8 {
        for packet in std::mem::take(&mut client.said) {
            last = packet.to_vec();
            server.take(now, address, packet);
        }
        for packet in std::mem::take(&mut server.said) {
            client.take(now, address, packet);
        }
    }
    // The client's ports and verification tag: packets without them are dropped unread.
    let Some(head) = last.get(..8) else { return };
    let head = head.to_vec();
    while let (Some(wait), Some(chunks)) = (bytes.byte(), bytes.piece()) {
        let mut packet = head.clone();
        if wait & 0x80 != 0 {
            packet[4..8].fill(0);
        }
        packet.extend([0; 4]);
        packet.extend(chunks);
        let sum = CHECKSUM.checksum(&packet);
        packet[8..12].copy_from_slice(&sum.to_le_bytes());
        now += Duration::from_millis(u64::from(wait & 0x7f));
        server.take(now, address, packet.into());
        if let Some((_, association)) = &mut server.association {
            association.handle_timeout(now);
        }
        server.speak(now);
        assert!(server.said.len() < 10_000, "one packet, thousands of answers");
        server.said.clear();
    }
});
