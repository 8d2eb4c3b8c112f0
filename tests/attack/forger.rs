//! RTCP that no WebRTC stack would write, sealed with the keys of a connection that is up.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use str0m::crypto::{
    AeadAes256Gcm, AeadAes256GcmCipher, CryptoError, CryptoProvider, SrtpProvider,
    SupportedAeadAes128Gcm, SupportedAeadAes256Gcm, SupportedAes128CmSha1_80, from_feature_flags,
};

/// Bytes that are sent in the clear, and those of the index behind what is sealed (RFC 7714 §9).
const CLEAR: usize = 8;
const ENCRYPTED: u32 = 0x8000_0000;
/// Far beyond what the client counts up to by itself.
const FIRST_INDEX: u32 = 1 << 24;

/// What it takes to seal: the cipher, and the salt that is in its nonces.
struct Keys {
    cipher: Box<dyn AeadAes256GcmCipher>,
    salt: Option<[u8; 12]>,
    index: u32,
}

type Shared = Arc<Mutex<Keys>>;

/// Remembers the keys of the one connection that it encrypts for.
#[derive(Clone)]
pub(crate) struct Forger(&'static Spy);

/// The stack's cryptography, which lets what it makes be used by others too.
#[derive(Default)]
struct Spy {
    // What makes ciphers must live for ever, and is asked for by another trait: the same spy once more.
    itself: OnceLock<&'static Spy>,
    made: Mutex<Vec<Shared>>,
}

impl fmt::Debug for Spy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spy")
    }
}

impl Forger {
    /// For one connection.
    pub(crate) fn new() -> Forger {
        let spy: &'static Spy = Box::leak(Box::default());
        let _ = spy.itself.set(spy);
        Forger(spy)
    }

    /// What the connection is to encrypt with.
    pub(crate) fn provider(&self) -> Arc<CryptoProvider> {
        Arc::new(CryptoProvider { srtp_provider: self.0, ..from_feature_flags() })
    }

    /// A datagram of these packets; `None` before the client has sent RTCP of its own.
    pub(crate) fn seal(&self, packets: &[u8]) -> Option<Vec<u8>> {
        let made = self.0.made.lock().expect("no test has failed");
        made.iter().find_map(|keys| keys.lock().expect("no test has failed").seal(packets))
    }
}

impl Keys {
    fn seal(&mut self, packets: &[u8]) -> Option<Vec<u8>> {
        let salt = self.salt?;
        self.index += 1;
        let (clear, rest) = packets.split_at(CLEAR);
        let word = (ENCRYPTED | self.index).to_be_bytes();
        let nonce = AeadAes256Gcm::rtcp_iv(salt, sender(clear), self.index);
        let mut sealed = vec![0; rest.len() + AeadAes256Gcm::TAG_LEN];
        self.cipher.encrypt(&nonce, &[clear, &word].concat(), rest, &mut sealed).ok()?;
        Some([clear, &sealed, &word].concat())
    }
}

/// SSRC of the sender of a packet.
fn sender(clear: &[u8]) -> u32 {
    u32::from_be_bytes([clear[4], clear[5], clear[6], clear[7]])
}

impl SrtpProvider for Spy {
    fn aes_128_cm_sha1_80(&self) -> &'static dyn SupportedAes128CmSha1_80 {
        from_feature_flags().srtp_provider.aes_128_cm_sha1_80()
    }

    fn aead_aes_128_gcm(&self) -> &'static dyn SupportedAeadAes128Gcm {
        from_feature_flags().srtp_provider.aead_aes_128_gcm()
    }

    fn aead_aes_256_gcm(&self) -> &'static dyn SupportedAeadAes256Gcm {
        *self.itself.get().expect("made by `Forger::new`")
    }

    fn srtp_aes_128_ecb_round(&self, key: &[u8], input: &[u8], output: &mut [u8]) {
        from_feature_flags().srtp_provider.srtp_aes_128_ecb_round(key, input, output);
    }

    fn srtp_aes_256_ecb_round(&self, key: &[u8], input: &[u8], output: &mut [u8]) {
        from_feature_flags().srtp_provider.srtp_aes_256_ecb_round(key, input, output);
    }
}

impl SupportedAeadAes256Gcm for Spy {
    fn create_cipher(&self, key: [u8; 32], encrypt: bool) -> Box<dyn AeadAes256GcmCipher> {
        let factory = from_feature_flags().srtp_provider.aead_aes_256_gcm();
        let cipher = factory.create_cipher(key, encrypt);
        let keys = Arc::new(Mutex::new(Keys { cipher, salt: None, index: FIRST_INDEX }));
        self.made.lock().expect("no test has failed").push(keys.clone());
        Box::new(Shown(keys))
    }
}

/// A cipher of which somebody else has the keys.
struct Shown(Shared);

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown")
    }
}

impl AeadAes256GcmCipher for Shown {
    fn encrypt(
        &mut self,
        iv: &[u8; 12],
        aad: &[u8],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CryptoError> {
        let mut keys = self.0.lock().expect("no test has failed");
        // RTCP: kinds from 192 to 223, and the index behind the clear bytes. What the nonce is beside whose it is and
        // the index is the salt.
        if aad.len() == CLEAR + 4 && (192..224).contains(&aad[1]) {
            let index = u32::from_be_bytes([aad[8], aad[9], aad[10], aad[11]]) & !ENCRYPTED;
            keys.salt = Some(AeadAes256Gcm::rtcp_iv(*iv, sender(aad), index));
        }
        keys.cipher.encrypt(iv, aad, input, output)
    }

    fn decrypt(
        &mut self,
        iv: &[u8; 12],
        aads: &[&[u8]],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<usize, CryptoError> {
        self.0.lock().expect("no test has failed").cipher.decrypt(iv, aads, input, output)
    }
}
