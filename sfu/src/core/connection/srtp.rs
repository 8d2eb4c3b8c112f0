//! Checks decrypted RTCP against its limits before the stack processes it.
//!
//! The ciphers of the stack's SRTP are wrapped ([`provider`]). They do not know the connection whose datagram they
//! decrypt, so [`RtcpGuard::guard`] stores it for the thread meanwhile. A refused datagram fails as if it could not be
//! decrypted: it counts as lost.

use std::cell::{Cell, RefCell};
use std::sync::LazyLock;
use std::time::Instant;

use str0m::crypto::{
    AeadAes128GcmCipher, AeadAes256GcmCipher, Aes128CmSha1_80Cipher, CryptoError, SrtpProvider,
    SupportedAeadAes128Gcm, SupportedAeadAes256Gcm, SupportedAes128CmSha1_80, from_feature_flags,
};

use super::cpu_limit;
use super::rtcp::{self, RtcpLimits};

/// Bytes at the start of an SRTCP packet that are not encrypted (RFC 3711 §3.4).
const CLEAR: usize = 8;
/// Bytes at the end of an SRTCP packet with AES-CM: E flag and index (4), authentication tag (10).
const TAIL_CM: usize = 14;

thread_local! {
    /// The RTCP datagram that this thread is processing, if any.
    static PENDING: RefCell<Option<Pending>> = const { RefCell::new(None) };
    /// Whether a connection on this thread has created an AES-CM cipher since the last [`RtcpGuard::on_output`].
    static CREATED_CM: Cell<bool> = const { Cell::new(false) };
}

/// The RTCP datagram that a connection is processing on this thread.
struct Pending {
    now: Instant,
    clear: [u8; CLEAR],
    limits: RtcpLimits,
    refused: bool,
}

/// The RTCP check of one connection.
#[derive(Debug, Default)]
pub(crate) struct RtcpGuard {
    limits: RtcpLimits,
    /// Whether the connection uses AES-CM.
    cm: bool,
    refused: u64,
}

impl RtcpGuard {
    /// Runs `process`, by which the connection decrypts and processes a datagram, with the check. Returns `None` if the
    /// datagram is refused at once.
    pub(crate) fn guard<T>(
        &mut self,
        now: Instant,
        datagram: &[u8],
        process: impl FnOnce() -> T,
    ) -> Option<T> {
        let Some(&clear) = datagram.first_chunk().filter(|_| rtcp::is_rtcp(datagram)) else {
            return Some(process());
        };
        // With AES-CM an unencrypted packet meets no cipher, and so no check. WebRTC forbids it (RFC 8827 §6.5).
        let bare = datagram.len().checked_sub(TAIL_CM).is_some_and(|at| datagram[at] & 0x80 == 0);
        if self.cm && bare {
            self.refused += 1;
            return None;
        }
        PENDING.set(Some(Pending { now, clear, limits: self.limits, refused: false }));
        let done = process();
        if let Some(pending) = PENDING.take() {
            self.limits = pending.limits;
            self.refused += u64::from(pending.refused);
        }
        Some(done)
    }

    /// Notes which cipher the connection has negotiated. To be called after the connection's output was polled.
    pub(crate) fn on_output(&mut self) {
        self.cm |= CREATED_CM.take();
    }

    /// Takes the number of datagrams that were refused.
    pub(crate) fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }
}

/// Checks a decrypted packet, if it is RTCP.
fn admit(plain: &[u8], encrypted: bool) -> Result<(), CryptoError> {
    cpu_limit::set_authenticated();
    PENDING.with_borrow_mut(|pending| {
        let Some(pending) = pending else { return Ok(()) };
        let all = [&pending.clear, plain].concat();
        if encrypted && pending.limits.admit(pending.now, &all) {
            return Ok(());
        }
        pending.refused = true;
        Err(CryptoError::Other("RTCP over its limits".to_owned()))
    })
}

/// The stack's SRTP with wrapped ciphers.
pub(crate) fn provider() -> &'static dyn SrtpProvider {
    &Wrapped
}

/// The stack's SRTP without the check.
static INNER: LazyLock<&'static dyn SrtpProvider> =
    LazyLock::new(|| from_feature_flags().srtp_provider);

#[derive(Debug)]
struct Wrapped;

impl SrtpProvider for Wrapped {
    fn aes_128_cm_sha1_80(&self) -> &'static dyn SupportedAes128CmSha1_80 {
        &Wrapped
    }

    fn aead_aes_128_gcm(&self) -> &'static dyn SupportedAeadAes128Gcm {
        &Wrapped
    }

    fn aead_aes_256_gcm(&self) -> &'static dyn SupportedAeadAes256Gcm {
        &Wrapped
    }

    fn srtp_aes_128_ecb_round(&self, key: &[u8], input: &[u8], output: &mut [u8]) {
        INNER.srtp_aes_128_ecb_round(key, input, output);
    }

    fn srtp_aes_256_ecb_round(&self, key: &[u8], input: &[u8], output: &mut [u8]) {
        INNER.srtp_aes_256_ecb_round(key, input, output);
    }
}

impl SupportedAes128CmSha1_80 for Wrapped {
    fn create_cipher(&self, key: [u8; 16], encrypt: bool) -> Box<dyn Aes128CmSha1_80Cipher> {
        CREATED_CM.set(true);
        Box::new(Cipher(INNER.aes_128_cm_sha1_80().create_cipher(key, encrypt)))
    }
}

impl SupportedAeadAes128Gcm for Wrapped {
    fn create_cipher(&self, key: [u8; 16], encrypt: bool) -> Box<dyn AeadAes128GcmCipher> {
        Box::new(Cipher(INNER.aead_aes_128_gcm().create_cipher(key, encrypt)))
    }
}

impl SupportedAeadAes256Gcm for Wrapped {
    fn create_cipher(&self, key: [u8; 32], encrypt: bool) -> Box<dyn AeadAes256GcmCipher> {
        Box::new(Cipher(INNER.aead_aes_256_gcm().create_cipher(key, encrypt)))
    }
}

#[derive(Debug)]
struct Cipher<C: ?Sized>(Box<C>);

impl Aes128CmSha1_80Cipher for Cipher<dyn Aes128CmSha1_80Cipher> {
    fn encrypt(
        &mut self,
        iv: &[u8; 16],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CryptoError> {
        self.0.encrypt(iv, input, output)
    }

    /// Decrypts a packet, and checks it if it is RTCP. The stack has checked the authentication tag before.
    fn decrypt(
        &mut self,
        iv: &[u8; 16],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CryptoError> {
        self.0.decrypt(iv, input, output)?;
        admit(output.get(..input.len()).unwrap_or(output), true)
    }
}

macro_rules! aead {
    ($cipher:ident) => {
        impl $cipher for Cipher<dyn $cipher> {
            fn encrypt(
                &mut self,
                iv: &[u8; 12],
                aad: &[u8],
                input: &[u8],
                output: &mut [u8],
            ) -> Result<(), CryptoError> {
                self.0.encrypt(iv, aad, input, output)
            }

            /// Decrypts a packet, and checks it if it is RTCP. The content of an unencrypted packet comes in a second
            /// `aad`, and nothing is decrypted.
            fn decrypt(
                &mut self,
                iv: &[u8; 12],
                aads: &[&[u8]],
                input: &[u8],
                output: &mut [u8],
            ) -> Result<usize, CryptoError> {
                let length = self.0.decrypt(iv, aads, input, output)?;
                let encrypted = aads.iter().skip(1).all(|aad| aad.is_empty());
                admit(output.get(..length).unwrap_or(output), encrypted)?;
                Ok(length)
            }
        }
    };
}
aead!(AeadAes128GcmCipher);
aead!(AeadAes256GcmCipher);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::connection::rtcp::tests::congestion;

    /// 41 reports, each on 32,764 packets; the index says that they are encrypted, or not.
    fn hostile(encrypted: bool) -> Vec<u8> {
        let mut datagram = congestion(5, 32_764).repeat(41);
        datagram.extend([if encrypted { 0x80 } else { 0 }, 0, 0, 1]);
        datagram.extend([7; 10]);
        datagram
    }

    fn admit_plain(guard: &mut RtcpGuard, packets: &[u8], encrypted: bool) -> bool {
        let take = || admit(&packets[CLEAR..], encrypted);
        guard.guard(Instant::now(), packets, take).is_some_and(|taken| taken.is_ok())
    }

    #[test]
    fn what_any_cipher_gives_out_is_looked_at() {
        let plain = congestion(5, 32_764).repeat(41);
        let (short, body) = (congestion(5, 100), &plain[CLEAR..]);
        let now = Instant::now();
        let mut guard = RtcpGuard::default();
        let mut cipher = provider().aes_128_cm_sha1_80().create_cipher([1; 16], false);
        let mut output = vec![0; body.len() + 16];
        // A stream cipher: what it makes of what it has made is what there was.
        let mut twice = |input: &[u8], guarded: &[u8]| {
            let mut sealed = vec![0; input.len() + 16];
            INNER
                .aes_128_cm_sha1_80()
                .create_cipher([1; 16], true)
                .encrypt(&[2; 16], input, &mut sealed)
                .expect("encrypted");
            let take = || cipher.decrypt(&[2; 16], &sealed[..input.len()], &mut output);
            guard.guard(now, guarded, take).expect("asked").is_ok()
        };
        assert!(twice(&short[CLEAR..], &short));
        assert!(!twice(body, &plain));
        assert!(twice(body, &[0x80, 96, 0, 1, 0, 0, 0, 0]), "a packet of RTP is not looked at");
        assert_eq!(guard.take_refused(), 1);

        let mut sealed = vec![0; body.len() + 16];
        let aad = [9; 12];
        let mut sealer = provider().aead_aes_256_gcm().create_cipher([1; 32], true);
        sealer.encrypt(&[2; 12], &aad, body, &mut sealed).expect("encrypted");
        let mut opener = provider().aead_aes_256_gcm().create_cipher([1; 32], false);
        let open = || opener.decrypt(&[2; 12], &[&aad, &[]], &sealed, &mut output);
        assert!(guard.guard(now, &plain, open).expect("asked").is_err());
        let mut opener = provider().aead_aes_128_gcm().create_cipher([1; 16], false);
        // What is not its client's own is not counted.
        let open = || opener.decrypt(&[2; 12], &[&aad, &[]], &sealed, &mut output);
        assert!(guard.guard(now, &plain, open).expect("asked").is_err());
        assert_eq!(guard.take_refused(), 1);
    }

    #[test]
    fn what_is_not_encrypted_is_refused() {
        let mut guard = RtcpGuard::default();
        assert!(guard.guard(Instant::now(), &hostile(false), || ()).is_some(), "not known yet");
        drop(provider().aes_128_cm_sha1_80().create_cipher([1; 16], false));
        guard.on_output();
        assert_eq!(guard.guard(Instant::now(), &hostile(false), || ()), None);
        assert_eq!(guard.guard(Instant::now(), &hostile(true), || ()), Some(()));
        assert_eq!(guard.take_refused(), 1);
        // The other ciphers are asked all the same, to check the tag.
        let mut guard = RtcpGuard::default();
        assert!(!admit_plain(&mut guard, &congestion(5, 1), false));
        assert!(admit_plain(&mut guard, &congestion(5, 1), true));
        assert_eq!(guard.take_refused(), 1);
    }

    #[test]
    fn nothing_is_looked_at_that_nobody_takes_in() {
        assert!(admit(&hostile(true), true).is_ok());
        let mut guard = RtcpGuard::default();
        assert_eq!(guard.guard(Instant::now(), &[0x80, 200, 0], || 3), Some(3));
        assert!(admit(&hostile(true), true).is_ok());
    }
}
