//! DTLS 1.2 for clients of any maker, whose certificate may be by RSA, as GStreamer's are. The stack's own DTLS takes
//! ECDSA alone.
//!
//! `rtc-dtls` performs the handshake. The time in which it joins a message's fragments grows with the square of their
//! number, and it keeps what a client sends before the handshake ends without a sufficient bound. So
//! [`HandshakeBudget`] checks each datagram first. And a ClientHello that comes again stops the timer by which the
//! answer is sent again, so it is dropped once it is answered.

use std::collections::VecDeque;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rtc_dtls::config::{ClientAuthType, ConfigBuilder, HandshakeConfig};
use rtc_dtls::crypto::Certificate;
use rtc_dtls::crypto_provider::providers::AwsLcRsProvider;
use rtc_dtls::crypto_provider::{RTCCryptoProvider, SignatureScheme};
use rtc_dtls::endpoint::{Endpoint, EndpointEvent};
use rtc_dtls::extension::extension_use_srtp::SrtpProtectionProfile;
use rtc_shared::TransportProtocol;
use rtc_shared::error::Error;
use str0m::crypto::CryptoError;
use str0m::crypto::dtls::{
    DtlsCert, DtlsImplError, DtlsInstance, DtlsOutput, KeyingMaterial, ProtocolVersion, SrtpProfile,
};

/// Bytes of handshake that a client may send in all. A handshake with a chain of RSA certificates has 6,000; flights
/// that are lost come again.
const MAX_HANDSHAKE_BYTES: usize = 24_000;
/// Bytes as which a datagram counts at least, as each costs work whatever its size.
const MIN_COUNTED: usize = 200;
/// Bytes of a record's header (RFC 6347 §4.1).
const RECORD_HEADER: usize = 13;
/// Content type of handshake records (RFC 5246 §6.2.1).
const HANDSHAKE: u8 = 22;
/// Bytes before the type of a record's first handshake message.
const MESSAGE_TYPE: usize = RECORD_HEADER;
/// Handshake type ClientHello (RFC 5246 §7.4).
const CLIENT_HELLO: u8 = 1;
/// Handshake type ServerHello (RFC 5246 §7.4).
const SERVER_HELLO: u8 = 2;
/// Label by which SRTP's keys are exported (RFC 5764 §4.2).
const SRTP_LABEL: &str = "EXTRACTOR-dtls_srtp";
/// When a connection that waits for nothing wishes to be asked again.
const NOTHING_TO_DO: Duration = Duration::from_secs(3600);
/// The endpoint tells its connections by address; this one has one connection, and no socket.
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

/// The profiles of SRTP that the stack has, in order of preference.
const PROFILES: [(SrtpProtectionProfile, SrtpProfile); 3] = [
    (SrtpProtectionProfile::Srtp_Aead_Aes_256_Gcm, SrtpProfile::AEAD_AES_256_GCM),
    (SrtpProtectionProfile::Srtp_Aead_Aes_128_Gcm, SrtpProfile::AEAD_AES_128_GCM),
    (SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_80, SrtpProfile::AES128_CM_SHA1_80),
];

/// One connection's DTLS.
pub(super) struct RsaDtls {
    certificate: Certificate,
    mtu: Option<usize>,
    /// Never locked: the stack's trait wants what threads could share, and the endpoint is not.
    endpoint: Mutex<Endpoint>,
    budget: HandshakeBudget,
    /// Whether it is the client of the handshake.
    active: bool,
    outputs: VecDeque<Pending>,
    /// Whether a ServerHello was sent.
    answered: bool,
    connected: bool,
    closed: bool,
    now: Instant,
}

/// Output that waits to be polled.
enum Pending {
    Connected,
    PeerCert(Vec<u8>),
    Keys(Vec<u8>, SrtpProfile),
    Data(Vec<u8>),
    CloseNotify,
}

impl RsaDtls {
    /// A connection with the server's certificate.
    ///
    /// # Errors
    ///
    /// Fails if the certificate's key is not by ECDSA with P-256.
    pub(super) fn new(
        cert: &DtlsCert,
        now: Instant,
        mtu: Option<usize>,
    ) -> Result<RsaDtls, CryptoError> {
        let key = AwsLcRsProvider::new()
            .crypto()
            .import_signing_key(SignatureScheme::EcdsaP256Sha256, &cert.private_key)
            .map_err(|error| CryptoError::Other(error.to_string()))?;
        let chain = vec![cert.certificate.clone().into()];
        Ok(RsaDtls {
            certificate: Certificate::from_signing_key(chain, key),
            mtu,
            endpoint: Mutex::new(Endpoint::new(PEER, TransportProtocol::UDP, None)),
            budget: HandshakeBudget::default(),
            active: false,
            outputs: VecDeque::new(),
            answered: false,
            connected: false,
            closed: false,
            now,
        })
    }

    fn endpoint(&mut self) -> &mut Endpoint {
        self.endpoint.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn config(&self) -> Result<Arc<HandshakeConfig>, Error> {
        let mut builder = ConfigBuilder::default()
            .with_crypto_provider(Arc::new(AwsLcRsProvider::new()))
            .with_certificates(vec![self.certificate.clone()])
            .with_srtp_protection_profiles(PROFILES.map(|(offered, _)| offered).to_vec())
            // Certificates are checked by the fingerprint in the session description; there is no authority.
            .with_client_auth(ClientAuthType::RequireAnyClientCert)
            .with_insecure_skip_verify(true);
        if let Some(mtu) = self.mtu {
            builder = builder.with_mtu(mtu);
        }
        builder.build(self.active, None).map(Arc::new)
    }

    fn on_event(&mut self, event: EndpointEvent) -> Result<(), Error> {
        match event {
            EndpointEvent::HandshakeComplete => {
                let Some(state) = self.endpoint().get_connection_state(PEER) else { return Ok(()) };
                let chosen = state.srtp_protection_profile();
                let Some(&(_, profile)) = PROFILES.iter().find(|(offered, _)| *offered == chosen)
                else {
                    return Err(Error::Other("the client has no profile of SRTP".into()));
                };
                let certificate = state.peer_certificates.first().cloned().unwrap_or_default();
                let length = profile.keying_material_len();
                let keys = state.export_keying_material(SRTP_LABEL, &[], length)?.into_bytes();
                self.connected = true;
                // In the order of the stack's own: a certificate is checked before its keys are used.
                self.outputs.extend([
                    Pending::Connected,
                    Pending::PeerCert(certificate),
                    Pending::Keys(keys, profile),
                ]);
            }
            EndpointEvent::ApplicationData(data) => {
                self.outputs.push_back(Pending::Data(data.to_vec()));
            }
            EndpointEvent::PeerClosed => {
                self.closed = true;
                self.outputs.push_back(Pending::CloseNotify);
            }
            _ => {}
        }
        Ok(())
    }

    fn read(&mut self, packet: &[u8]) -> Result<(), Error> {
        let now = self.now;
        for event in self.endpoint().read(now, PEER, None, packet.into())? {
            self.on_event(event)?;
        }
        Ok(())
    }
}

impl fmt::Debug for RsaDtls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RsaDtls").field("connected", &self.connected).finish_non_exhaustive()
    }
}

/// The error in the stack's type, which has none for another implementation's.
fn refused(error: &Error) -> DtlsImplError {
    tracing::debug!(%error, "a datagram of a DTLS connection was refused");
    DtlsImplError::ConnectionClosed
}

impl DtlsInstance for RsaDtls {
    fn set_active(&mut self, active: bool) {
        self.active = active;
        let now = self.now;
        let begun = self.config().and_then(|config| {
            if active {
                return self.endpoint().connect(now, PEER, config, None);
            }
            self.endpoint().set_server_config(Some(config));
            Ok(())
        });
        // Without a configuration there is no handshake, and the connection ends by its deadline.
        if let Err(error) = begun {
            tracing::error!(%error, "DTLS cannot begin");
        }
    }

    fn handle_packet(&mut self, packet: &[u8]) -> Result<(), DtlsImplError> {
        if self.closed || !self.budget.admit(packet, self.connected) {
            return Ok(());
        }
        if self.answered && begins_with(packet, CLIENT_HELLO) {
            return Ok(());
        }
        self.read(packet).map_err(|error| refused(&error))
    }

    fn poll_output<'a>(&mut self, buf: &'a mut [u8]) -> DtlsOutput<'a> {
        if let Some(transmit) = self.endpoint().poll_transmit() {
            self.answered |= begins_with(&transmit.message, SERVER_HELLO);
            return match copied(buf, &transmit.message) {
                Some(packet) => DtlsOutput::Packet(packet),
                None => DtlsOutput::Timeout(self.now),
            };
        }
        match self.outputs.pop_front() {
            Some(Pending::Connected) => DtlsOutput::Connected,
            Some(Pending::PeerCert(der)) => {
                // What does not fit has no fingerprint that a client can have named.
                DtlsOutput::PeerCert(copied(buf, &der).unwrap_or_default())
            }
            Some(Pending::Keys(keys, profile)) => {
                DtlsOutput::KeyingMaterial(KeyingMaterial::new(&keys), profile)
            }
            Some(Pending::Data(data)) => {
                DtlsOutput::ApplicationData(copied(buf, &data).unwrap_or_default())
            }
            Some(Pending::CloseNotify) => DtlsOutput::CloseNotify,
            None => {
                let next = self.endpoint().poll_timeout(&PEER);
                DtlsOutput::Timeout(next.unwrap_or(self.now + NOTHING_TO_DO))
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsImplError> {
        self.now = now;
        if self.endpoint().poll_timeout(&PEER).is_none_or(|at| at > now) {
            return Ok(());
        }
        self.endpoint().handle_timeout(PEER, now).map_err(|error| refused(&error))
    }

    fn send_application_data(&mut self, data: &[u8]) -> Result<usize, DtlsImplError> {
        if self.closed {
            return Err(DtlsImplError::ConnectionClosed);
        }
        if !self.connected {
            return Ok(0);
        }
        let now = self.now;
        self.endpoint().write(now, PEER, data).map_err(|error| refused(&error))?;
        Ok(data.len())
    }

    fn is_active(&self) -> bool {
        self.active
    }

    fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.connected.then_some(ProtocolVersion::DTLS1_2)
    }

    fn is_closing(&self) -> bool {
        self.closed
    }

    fn is_closed(&self) -> bool {
        self.closed && self.outputs.is_empty()
    }

    fn close(&mut self) -> Result<(), DtlsImplError> {
        self.closed = true;
        let now = self.now;
        self.endpoint().stop(now, PEER);
        Ok(())
    }
}

/// Whether a datagram begins with a handshake message of this type, in the clear.
fn begins_with(packet: &[u8], message: u8) -> bool {
    matches!(packet, [HANDSHAKE, _, _, 0, 0, ..]) && packet.get(MESSAGE_TYPE) == Some(&message)
}

/// The bytes in the buffer; `None` if they do not fit.
fn copied<'a>(buf: &'a mut [u8], bytes: &[u8]) -> Option<&'a [u8]> {
    let buf = buf.get_mut(..bytes.len())?;
    buf.copy_from_slice(bytes);
    Some(buf)
}

/// Limits what a client sends of handshakes.
#[derive(Debug, Default)]
struct HandshakeBudget {
    spent: usize,
}

impl HandshakeBudget {
    /// Whether a datagram may be read: it is within the budget, or belongs to an established connection and has no
    /// handshake in it.
    fn admit(&mut self, packet: &[u8], connected: bool) -> bool {
        if connected && !has_handshake(packet) {
            return true;
        }
        self.spent = self.spent.saturating_add(packet.len().max(MIN_COUNTED));
        self.spent <= MAX_HANDSHAKE_BYTES
    }
}

/// Whether one of a datagram's records is of a handshake, or cannot be told.
fn has_handshake(mut packet: &[u8]) -> bool {
    while let [kind, ..] = *packet {
        let Some(&[high, low]) = packet.get(RECORD_HEADER - 2..RECORD_HEADER) else { return true };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let Some(rest) = packet.get(RECORD_HEADER + length..) else { return true };
        if kind == HANDSHAKE {
            return true;
        }
        packet = rest;
    }
    false
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256, RsaKeySize};
    use str0m::crypto::dtls::DtlsVersion;
    use str0m::crypto::from_feature_flags;

    use super::*;

    fn server_at(now: Instant) -> RsaDtls {
        let cert = from_feature_flags().dtls_provider.generate_certificate().expect("certificate");
        let mut server = RsaDtls::new(&cert, now, None).expect("server");
        server.set_active(false);
        server
    }

    /// A client with an RSA certificate.
    fn client_at(now: Instant) -> RsaDtls {
        static CERTIFICATE: LazyLock<Certificate> = LazyLock::new(|| {
            let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).expect("key");
            let cert = CertificateParams::default().self_signed(&key).expect("certificate");
            let key = AwsLcRsProvider::new()
                .crypto()
                .import_signing_key(SignatureScheme::RsaPkcs1Sha256, &key.serialize_der())
                .expect("imported");
            Certificate::from_signing_key(vec![cert.der().clone()], key)
        });
        let mut client = RsaDtls { certificate: CERTIFICATE.clone(), ..server_at(now) };
        client.set_active(true);
        client
    }

    /// What came of a connection.
    #[derive(Default)]
    struct Seen {
        connected: bool,
        certificate: Vec<u8>,
        keys: Vec<u8>,
        data: Vec<Vec<u8>>,
        packets: Vec<Vec<u8>>,
    }

    fn poll(dtls: &mut dyn DtlsInstance, seen: &mut Seen) {
        let mut buf = [0; 2000];
        loop {
            match dtls.poll_output(&mut buf) {
                DtlsOutput::Packet(packet) => seen.packets.push(packet.to_vec()),
                DtlsOutput::Connected => seen.connected = true,
                DtlsOutput::PeerCert(der) => seen.certificate = der.to_vec(),
                DtlsOutput::KeyingMaterial(keys, _) => seen.keys = keys.to_vec(),
                DtlsOutput::ApplicationData(data) => seen.data.push(data.to_vec()),
                DtlsOutput::Timeout(_) => return,
                _ => {}
            }
        }
    }

    /// Passes what each has to send to the other some times, whatever they say of it.
    fn exchange(client: &mut RsaDtls, server: &mut RsaDtls) {
        for _ in 0..5 {
            for packet in sent_by(client) {
                let _ = server.handle_packet(&packet);
            }
            for packet in sent_by(server) {
                let _ = client.handle_packet(&packet);
            }
        }
    }

    fn sent_by(dtls: &mut RsaDtls) -> Vec<Vec<u8>> {
        let mut seen = Seen::default();
        poll(dtls, &mut seen);
        seen.packets
    }

    /// Lets the two talk for some seconds on a link that loses the packets whose numbers `lost` names.
    fn talk(
        client: &mut (dyn DtlsInstance + 'static),
        server: &mut (dyn DtlsInstance + 'static),
        mut now: Instant,
        lost: impl Fn(usize) -> bool,
    ) -> [Seen; 2] {
        let mut seen = [Seen::default(), Seen::default()];
        let mut sent = 0;
        for _ in 0..100 {
            now += Duration::from_millis(50);
            for at in [0, 1] {
                let (from, to) = if at == 0 {
                    (&mut *client, &mut *server)
                } else {
                    (&mut *server, &mut *client)
                };
                from.handle_timeout(now).expect("timeout");
                poll(from, &mut seen[at]);
                for packet in seen[at].packets.drain(..) {
                    sent += 1;
                    if !lost(sent) {
                        to.handle_packet(&packet).expect("packet");
                    }
                }
            }
        }
        seen
    }

    #[test]
    fn a_client_with_an_rsa_certificate_connects() {
        let now = Instant::now();
        let (mut client, mut server) = (client_at(now), server_at(now));
        let [at_client, at_server] = talk(&mut client, &mut server, now, |_| false);
        assert!(at_client.connected && at_server.connected);
        assert!(!at_server.keys.is_empty() && at_server.keys == at_client.keys);
        assert_eq!(at_server.certificate, client.certificate.certificate[0].to_vec());
        assert_eq!(at_client.certificate, server.certificate.certificate[0].to_vec());
        assert_eq!(client.send_application_data(b"to the server"), Ok(13));
        assert_eq!(server.send_application_data(b"to the client"), Ok(13));
        let [at_client, at_server] = talk(&mut client, &mut server, now, |_| false);
        assert_eq!(
            (at_client.data, at_server.data),
            (vec![b"to the client".into()], vec![b"to the server".into()])
        );
    }

    /// A client of the stack's own implementation, and its certificate.
    fn other_client_at(now: Instant) -> (Box<dyn DtlsInstance>, Vec<u8>) {
        let provider = from_feature_flags().dtls_provider;
        let cert = provider.generate_certificate().expect("certificate");
        let mut client = provider.new_dtls(&cert, now, DtlsVersion::Dtls12, None).expect("client");
        client.set_active(true);
        (client, cert.certificate)
    }

    #[test]
    fn a_client_of_the_other_implementation_connects() {
        let now = Instant::now();
        let (mut client, certificate) = other_client_at(now);
        let mut server = server_at(now);
        let [at_client, at_server] = talk(&mut *client, &mut server, now, |_| false);
        assert!(at_client.connected && at_server.connected);
        assert_eq!(at_server.keys, at_client.keys);
        assert_eq!(at_server.certificate, certificate);
    }

    #[test]
    fn lost_packets_come_again() {
        for lost in 1..12 {
            let now = Instant::now();
            let ((mut client, _), mut server) = (other_client_at(now), server_at(now));
            let [at_client, at_server] = talk(&mut *client, &mut server, now, |sent| sent == lost);
            assert!(at_client.connected && at_server.connected, "without packet {lost}");
        }
    }

    #[test]
    fn a_client_without_a_certificate_does_not_connect() {
        let now = Instant::now();
        let (mut client, mut server) = (client_at(now), server_at(now));
        client.certificate.certificate.clear();
        client.endpoint = Mutex::new(Endpoint::new(PEER, TransportProtocol::UDP, None));
        client.set_active(true);
        exchange(&mut client, &mut server);
        assert!(!server.connected);
    }

    #[test]
    fn closing_is_told_to_the_other_side() {
        let now = Instant::now();
        let (mut client, mut server) = (client_at(now), server_at(now));
        talk(&mut client, &mut server, now, |_| false);
        client.close().expect("closed");
        for packet in sent_by(&mut client) {
            let _ = server.handle_packet(&packet);
        }
        let mut buf = [0; 2000];
        assert!(matches!(server.poll_output(&mut buf), DtlsOutput::Packet(_)));
        assert!(matches!(server.poll_output(&mut buf), DtlsOutput::CloseNotify));
        assert!(server.is_closed());
    }

    /// A record of handshake with a fragment of one byte of the message with this number.
    fn fragment(sequence: u64, message: u16, length: u32, offset: u32) -> Vec<u8> {
        let mut record = vec![HANDSHAKE, 0xfe, 0xfd, 0, 0];
        record.extend(&sequence.to_be_bytes()[2..]);
        record.extend([0, 13, 1]);
        record.extend(&length.to_be_bytes()[1..]);
        record.extend(message.to_be_bytes());
        record.extend(&offset.to_be_bytes()[1..]);
        record.extend([0, 0, 1, 7]);
        record
    }

    #[test]
    fn tiny_fragments_are_read_within_the_budget_alone() {
        // Without a limit, they take minutes.
        let mut server = server_at(Instant::now());
        let mut sequence = 0;
        for datagram in (0..100_000_u32).collect::<Vec<_>>().chunks(50) {
            let packet: Vec<u8> = datagram
                .iter()
                .flat_map(|&offset| {
                    sequence += 1;
                    fragment(sequence, 0, 100_000, offset)
                })
                .collect();
            let _ = server.handle_packet(&packet);
        }
        assert!(server.budget.spent > MAX_HANDSHAKE_BYTES);
    }

    #[test]
    fn an_established_connection_reads_data_past_the_budget_and_no_handshake() {
        let now = Instant::now();
        let (mut client, mut server) = (client_at(now), server_at(now));
        talk(&mut client, &mut server, now, |_| false);
        for sequence in 1000..2000 {
            let _ = server.handle_packet(&fragment(sequence, 9, 1000, 0));
        }
        assert!(server.budget.spent > MAX_HANDSHAKE_BYTES);
        client.send_application_data(&[5; 1000]).expect("sent");
        let [_, at_server] = talk(&mut client, &mut server, now, |_| false);
        assert_eq!(at_server.data, [vec![5; 1000]]);
    }

    proptest! {
        #[test]
        fn foreign_bytes_do_not_panic(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..20),
            change in (0_usize..8, 0_usize..400, any::<u8>()),
        ) {
            let now = Instant::now();
            let mut server = server_at(now);
            for packet in &packets {
                let _ = server.handle_packet(packet);
            }
            // A real handshake with one byte changed.
            let (mut client, mut server) = (client_at(now), server_at(now));
            let mut sent = 0;
            for _ in 0..4 {
                for mut packet in sent_by(&mut client) {
                    let at = change.1 % packet.len();
                    if sent == change.0 {
                        packet[at] ^= change.2;
                    }
                    sent += 1;
                    let _ = server.handle_packet(&packet);
                }
                for packet in sent_by(&mut server) {
                    let _ = client.handle_packet(&packet);
                }
            }
        }
    }
}
