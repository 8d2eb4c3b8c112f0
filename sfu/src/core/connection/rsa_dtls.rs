//! DTLS 1.2 for clients of any maker, whose certificate may be by RSA, as GStreamer's are. The stack's own DTLS takes
//! ECDSA alone.
//!
//! `rtc-dtls` performs the handshake, behind [`HandshakeGate`]. Any handshake record that comes stops the timer by
//! which it sends its last flight again. So a ClientHello that comes again is dropped once it is answered.

use std::collections::VecDeque;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rtc_dtls::cipher_suite::CipherSuiteId;
use rtc_dtls::config::{ClientAuthType, ConfigBuilder, ExtendedMasterSecretType, HandshakeConfig};
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

use super::handshake_gate::{CLIENT_HELLO, HandshakeGate, SERVER_HELLO, has_message};

/// Label by which SRTP's keys are exported (RFC 5764 §4.2).
const SRTP_LABEL: &str = "EXTRACTOR-dtls_srtp";
/// When a connection that waits for nothing wishes to be asked again.
const NOTHING_TO_DO: Duration = Duration::from_secs(3600);
/// The endpoint tells its connections by address; this one has one connection, and no socket.
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

/// The cipher suites that are offered: those that authenticate what they encrypt. Where the server is the client of
/// the handshake, its peer's certificate may be by RSA.
const CIPHER_SUITES: [CipherSuiteId; 4] = [
    CipherSuiteId::Tls_Ecdhe_Ecdsa_With_Aes_128_Gcm_Sha256,
    CipherSuiteId::Tls_Ecdhe_Ecdsa_With_ChaCha20_Poly1305_Sha256,
    CipherSuiteId::Tls_Ecdhe_Rsa_With_Aes_128_Gcm_Sha256,
    CipherSuiteId::Tls_Ecdhe_Rsa_With_ChaCha20_Poly1305_Sha256,
];
/// The profiles of SRTP that the stack has.
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
    gate: HandshakeGate,
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
            gate: HandshakeGate::default(),
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
            .with_cipher_suites(CIPHER_SUITES.to_vec())
            .with_extended_master_secret(ExtendedMasterSecretType::Require)
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
                    // Nothing is read of it any more: its certificate has not been checked.
                    self.closed = true;
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
            EndpointEvent::ApplicationData(data) if self.connected => {
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
fn failed(error: &Error) -> DtlsImplError {
    tracing::debug!(%error, "DTLS of a WHIP or WHEP session failed");
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
        if self.closed || self.answered && has_message(packet, CLIENT_HELLO) {
            return Ok(());
        }
        if !self.gate.admit(packet, self.connected) {
            // Before there is a connection, it may be why there never is one.
            return if self.connected { Ok(()) } else { Err(DtlsImplError::ConnectionClosed) };
        }
        self.read(packet).map_err(|error| failed(&error))
    }

    fn poll_output<'a>(&mut self, buf: &'a mut [u8]) -> DtlsOutput<'a> {
        if let Some(transmit) = self.endpoint().poll_transmit() {
            self.answered = self.answered || has_message(&transmit.message, SERVER_HELLO);
            return match copied(buf, &transmit.message) {
                Some(packet) => DtlsOutput::Packet(packet),
                None => DtlsOutput::Timeout(self.now),
            };
        }
        match self.outputs.pop_front() {
            Some(Pending::Connected) => DtlsOutput::Connected,
            Some(Pending::PeerCert(der)) => match copied(buf, &der) {
                Some(der) => DtlsOutput::PeerCert(der),
                // The stack ends the connection.
                None => DtlsOutput::BufferTooSmall { needed: der.len() },
            },
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
        self.endpoint().handle_timeout(PEER, now).map_err(|error| failed(&error))
    }

    fn send_application_data(&mut self, data: &[u8]) -> Result<usize, DtlsImplError> {
        if self.closed {
            return Err(DtlsImplError::ConnectionClosed);
        }
        if !self.connected {
            return Ok(0);
        }
        let now = self.now;
        self.endpoint().write(now, PEER, data).map_err(|error| failed(&error))?;
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

/// The bytes in the buffer; `None` if they do not fit.
fn copied<'a>(buf: &'a mut [u8], bytes: &[u8]) -> Option<&'a [u8]> {
    let buf = buf.get_mut(..bytes.len())?;
    buf.copy_from_slice(bytes);
    Some(buf)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256, RsaKeySize};
    use str0m::crypto::dtls::DtlsVersion;
    use str0m::crypto::from_feature_flags;

    use super::super::handshake_gate::written::{message, record};
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

    #[test]
    fn forged_records_end_no_connection() {
        let now = Instant::now();
        let (mut client, mut server) = (client_at(now), server_at(now));
        for packet in sent_by(&mut client) {
            server.handle_packet(&packet).expect("hello");
        }
        server.handle_packet(&record(21, 0, 900, &[1, 0])).expect_err("close_notify in the clear");
        let [at_client, at_server] = talk(&mut client, &mut server, now, |_| false);
        assert!(at_client.connected && at_server.connected);
        let before = sent_by(&mut server);
        for (sequence, epoch) in [(5000, 0), (5001, 1), (5002, 2)] {
            for (kind, body) in [(20, &[2][..]), (20, &[1]), (21, &[2, 50]), (23, &[9; 40])] {
                server.handle_packet(&record(kind, epoch, sequence, body)).expect("dropped");
            }
        }
        assert_eq!((before, sent_by(&mut server)), (vec![], vec![]), "nothing is answered");
        client.send_application_data(&[5; 1000]).expect("sent");
        let [_, at_server] = talk(&mut client, &mut server, now, |_| false);
        assert_eq!(at_server.data, [vec![5; 1000]]);
        assert!(!server.is_closed());
    }

    #[test]
    fn an_established_connection_reads_data_past_the_budget_for_handshakes() {
        let now = Instant::now();
        let (mut client, mut server) = (client_at(now), server_at(now));
        talk(&mut client, &mut server, now, |_| false);
        for sequence in 1000..2000 {
            let _ = server.handle_packet(&record(22, 1, sequence, &[7; 48]));
        }
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
            for (sequence, packet) in (0..).zip(&packets) {
                let _ = server.handle_packet(packet);
                // As a message that the gate lets through.
                let kind = packet.first().copied().unwrap_or_default() % 24;
                let body = message(kind, sequence as u8, packet.len() as u32, 0, packet);
                let _ = server.handle_packet(&record(22, 0, sequence, &body));
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
