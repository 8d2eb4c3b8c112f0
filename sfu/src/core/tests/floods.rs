//! A participant whose connection asks the stack for too much, beside others.

use std::cell::Cell;
use std::sync::Arc;

use str0m::crypto::{
    AeadAes256GcmCipher, CryptoError, CryptoProvider, SrtpProvider, SupportedAeadAes128Gcm,
    SupportedAeadAes256Gcm, SupportedAes128CmSha1_80, from_feature_flags,
};

use super::harness::*;
use crate::api::JoinOptions;
use crate::core::connection::rtcp::tests::congestion;
use crate::core::*;

const SECOND: Duration = Duration::from_secs(1);

thread_local! {
    static LIES: Cell<bool> = const { Cell::new(false) };
    static TOLD: Cell<usize> = const { Cell::new(0) };
    static CLOCK: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Cryptography of a client that puts reports on packets far back in the place of what it has to say.
#[derive(Debug)]
struct Liar;

#[derive(Debug)]
struct LiarsCipher(Box<dyn AeadAes256GcmCipher>);

fn liar() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider { srtp_provider: &Liar, ..from_feature_flags() })
}

impl SrtpProvider for Liar {
    fn aes_128_cm_sha1_80(&self) -> &'static dyn SupportedAes128CmSha1_80 {
        from_feature_flags().srtp_provider.aes_128_cm_sha1_80()
    }

    fn aead_aes_128_gcm(&self) -> &'static dyn SupportedAeadAes128Gcm {
        from_feature_flags().srtp_provider.aead_aes_128_gcm()
    }

    fn aead_aes_256_gcm(&self) -> &'static dyn SupportedAeadAes256Gcm {
        &Liar
    }

    fn srtp_aes_128_ecb_round(&self, key: &[u8], input: &[u8], output: &mut [u8]) {
        from_feature_flags().srtp_provider.srtp_aes_128_ecb_round(key, input, output);
    }

    fn srtp_aes_256_ecb_round(&self, key: &[u8], input: &[u8], output: &mut [u8]) {
        from_feature_flags().srtp_provider.srtp_aes_256_ecb_round(key, input, output);
    }
}

impl SupportedAeadAes256Gcm for Liar {
    fn create_cipher(&self, key: [u8; 32], encrypt: bool) -> Box<dyn AeadAes256GcmCipher> {
        let inner = from_feature_flags().srtp_provider.aead_aes_256_gcm();
        Box::new(LiarsCipher(inner.create_cipher(key, encrypt)))
    }
}

impl AeadAes256GcmCipher for LiarsCipher {
    fn encrypt(
        &mut self,
        iv: &[u8; 12],
        aad: &[u8],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CryptoError> {
        let mut said = input.to_vec();
        if LIES.get() && connection::rtcp::is_rtcp(aad) {
            // The first packet's header is sent in the clear: the lies begin behind that packet.
            let first = 4 * (1 + usize::from(u16::from_be_bytes([aad[2], aad[3]])));
            for place in said[first.saturating_sub(8)..].chunks_exact_mut(28) {
                place.copy_from_slice(&congestion(5, 32_764));
                TOLD.set(TOLD.get() + 1);
            }
        }
        self.0.encrypt(iv, aad, &said, output)
    }

    fn decrypt(
        &mut self,
        iv: &[u8; 12],
        aads: &[&[u8]],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<usize, CryptoError> {
        self.0.decrypt(iv, aads, input, output)
    }
}

/// Two milliseconds later each time that it is asked.
fn slow_clock() -> Duration {
    CLOCK.set(CLOCK.get() + Duration::from_millis(2));
    CLOCK.get()
}

fn publisher_and_subscriber(crypto: Option<Arc<CryptoProvider>>) -> (Harness, usize) {
    let mut harness = Harness::new(SfuConfig::default());
    harness.crypto = crypto;
    harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = harness.publish();
    harness.crypto = None;
    harness.run(2 * SECOND);
    harness.core.join(harness.now, "room", SUBSCRIBER, JoinOptions::default()).expect("joined");
    let at = harness.subscribe(SUBSCRIBER, track);
    harness.run(3 * SECOND);
    (harness, at)
}

#[test]
fn nothing_that_honest_clients_report_is_refused() {
    let (mut harness, at) = publisher_and_subscriber(None);
    harness.clients[at].loss = 7;
    harness.run(20 * SECOND);
    assert!(
        harness.core.counters.keyframe_requests_in > 0 || harness.clients[at].received.len() > 500
    );
    assert_eq!(harness.core.counters.rtcp_refused, 0);
}

#[test]
fn reports_on_packets_far_back_do_not_reach_the_stack_and_media_goes_on() {
    let (mut harness, at) = publisher_and_subscriber(Some(liar()));
    LIES.set(true);
    harness.clients[at].received.clear();
    harness.run(10 * SECOND);
    LIES.set(false);
    let refused = harness.core.counters.rtcp_refused;
    // The stack bears 20,000 packets a second, after those that may be told of at once.
    let borne = (65_536 + 10 * 20_000) / 32_764;
    assert!(TOLD.get() > 4 * borne, "{} reports", TOLD.get());
    assert!(refused > 0);
    assert_eq!(harness.core.stats().connected, 2);
    assert!(harness.clients[at].received.len() > 500, "{}", harness.clients[at].received.len());
    harness.run(5 * SECOND);
    assert_eq!(harness.core.counters.rtcp_refused, refused, "what is honest again is taken");
}

#[test]
fn who_takes_the_thread_is_held_up_and_removed_and_nobody_else_is() {
    let (mut harness, _) = publisher_and_subscriber(None);
    harness.core.limit_cpu_time(slow_clock);
    // 170 packets a second.
    harness.run(8 * SECOND);
    let told = harness.events[&PUBLISHER].last();
    assert_eq!(told, Some(&SfuEvent::Disconnected(DisconnectReason::Flood)));
    let counters = harness.core.counters;
    assert_eq!((counters.peers_costly, harness.core.stats().participants), (1, 1));
    assert!(counters.datagrams_costly > 300, "{}", counters.datagrams_costly);
}

#[test]
fn nobody_pays_for_what_others_send_in_its_name() {
    let (mut harness, _) = publisher_and_subscriber(None);
    harness.camera.mid = None;
    harness.run(SECOND);
    harness.core.limit_cpu_time(slow_clock);
    let address = harness.clients[0].address;
    for _ in 0..100 {
        for kind in [96, 200] {
            let mut forged = [7; 100];
            [forged[0], forged[1]] = [0x80, kind];
            for _ in 0..10 {
                harness.core.datagram(harness.now, address, &forged);
            }
        }
        harness.run(SECOND / 10);
    }
    assert_eq!(harness.core.counters.datagrams_costly, 0);
    assert_eq!(harness.core.stats().connected, 2);
}
