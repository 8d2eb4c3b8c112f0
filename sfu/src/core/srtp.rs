//! Where RTCP can be looked at before the stack does what it says: between SRTP and what comes out of it.
//!
//! The ciphers of the stack's own cryptography are wrapped ([`provider`]). They are not told what they decrypt, nor for whom; so
//! whoever hands a datagram to a connection says it meanwhile ([`watched`]). One that may not be taken in fails as though
//! it could not be decrypted: it is as lost.

use std::cell::{Cell, RefCell};
use std::sync::LazyLock;
use std::time::Instant;

use str0m::crypto::{
    AeadAes128GcmCipher, AeadAes256GcmCipher, Aes128CmSha1_80Cipher, CryptoError, SrtpProvider,
    SupportedAeadAes128Gcm, SupportedAeadAes256Gcm, SupportedAes128CmSha1_80, from_feature_flags,
};

use super::rtcp::{self, Reports};
use super::toll;

/// Bytes at the front of a datagram of RTCP that are sent in the clear (RFC 3711 §3.4),
const CLEAR: usize = 8;
/// and behind it, with AES-CM: the tag, and before it whether there is a cipher at all, and the index.
const TAIL_CM: usize = 14;

thread_local! {
    static INSIDE: RefCell<Option<Inside>> = const { RefCell::new(None) };
    /// Whether the connection that was asked for its output just now has got AES-CM.
    static CM: Cell<bool> = const { Cell::new(false) };
}

/// What is known of the datagram of RTCP that a connection is being handed.
struct Inside {
    now: Instant,
    clear: [u8; CLEAR],
    reports: Reports,
    refused: bool,
}

/// A connection's end of RTCP.
#[derive(Debug, Default)]
pub struct Control {
    reports: Reports,
    cm: bool,
    refused: u64,
}

impl Control {
    /// Has a connection take a datagram in, if it may.
    pub fn watched<T>(
        &mut self,
        now: Instant,
        datagram: &[u8],
        take: impl FnOnce() -> T,
    ) -> Option<T> {
        let Some(&clear) = datagram.first_chunk().filter(|_| rtcp::is_rtcp(datagram)) else {
            return Some(take());
        };
        // With AES-CM what is not encrypted meets no cipher; nobody sends such (RFC 8827 §6.5).
        let bare = datagram.len().checked_sub(TAIL_CM).is_some_and(|at| datagram[at] & 0x80 == 0);
        if self.cm && bare {
            self.refused += 1;
            return None;
        }
        INSIDE.set(Some(Inside { now, clear, reports: self.reports, refused: false }));
        let taken = take();
        if let Some(inside) = INSIDE.take() {
            self.reports = inside.reports;
            self.refused += u64::from(inside.refused);
        }
        Some(taken)
    }

    /// Learns what the connection has agreed on, when it was asked for its output.
    pub fn settle(&mut self) {
        self.cm |= CM.take();
    }

    /// How many datagrams were refused since this was asked last.
    pub fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }
}

/// Whether what was decrypted may be taken in, if anybody is to be asked.
fn admit(plain: &[u8], encrypted: bool) -> Result<(), CryptoError> {
    toll::prove();
    INSIDE.with_borrow_mut(|inside| {
        let Some(inside) = inside else { return Ok(()) };
        let all = [&inside.clear, plain].concat();
        if encrypted && inside.reports.admit(inside.now, &all) {
            return Ok(());
        }
        inside.refused = true;
        Err(CryptoError::Other("more than a client may ask for".to_owned()))
    })
}

/// The stack's own SRTP, with its ciphers wrapped.
pub fn provider() -> &'static dyn SrtpProvider {
    &Wrapped
}

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
        CM.set(true);
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

    /// The stack has checked the tag.
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

            /// What is only signed comes in two pieces, of which nothing is decrypted.
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
    use super::super::rtcp::tests::congestion;
    use super::*;

    /// 41 reports, each on 32,764 packets; the index says that they are encrypted, or not.
    fn hostile(encrypted: bool) -> Vec<u8> {
        let mut datagram = congestion(5, 32_764).repeat(41);
        datagram.extend([if encrypted { 0x80 } else { 0 }, 0, 0, 1]);
        datagram.extend([7; 10]);
        datagram
    }

    fn admit_plain(control: &mut Control, packets: &[u8], encrypted: bool) -> bool {
        let take = || admit(&packets[CLEAR..], encrypted);
        control.watched(Instant::now(), packets, take).is_some_and(|taken| taken.is_ok())
    }

    #[test]
    fn what_any_cipher_gives_out_is_looked_at() {
        let plain = congestion(5, 32_764).repeat(41);
        let (short, body) = (congestion(5, 100), &plain[CLEAR..]);
        let now = Instant::now();
        let mut control = Control::default();
        let mut cipher = provider().aes_128_cm_sha1_80().create_cipher([1; 16], false);
        let mut output = vec![0; body.len() + 16];
        // A stream cipher: what it makes of what it has made is what there was.
        let mut twice = |input: &[u8], watched: &[u8]| {
            let mut sealed = vec![0; input.len() + 16];
            INNER
                .aes_128_cm_sha1_80()
                .create_cipher([1; 16], true)
                .encrypt(&[2; 16], input, &mut sealed)
                .expect("encrypted");
            let take = || cipher.decrypt(&[2; 16], &sealed[..input.len()], &mut output);
            control.watched(now, watched, take).expect("asked").is_ok()
        };
        assert!(twice(&short[CLEAR..], &short));
        assert!(!twice(body, &plain));
        assert!(twice(body, &[0x80, 96, 0, 1, 0, 0, 0, 0]), "a packet of RTP is not looked at");
        assert_eq!(control.take_refused(), 1);

        let mut sealed = vec![0; body.len() + 16];
        let aad = [9; 12];
        let mut sealer = provider().aead_aes_256_gcm().create_cipher([1; 32], true);
        sealer.encrypt(&[2; 12], &aad, body, &mut sealed).expect("encrypted");
        let mut opener = provider().aead_aes_256_gcm().create_cipher([1; 32], false);
        let open = || opener.decrypt(&[2; 12], &[&aad, &[]], &sealed, &mut output);
        assert!(control.watched(now, &plain, open).expect("asked").is_err());
        let mut opener = provider().aead_aes_128_gcm().create_cipher([1; 16], false);
        // What is not its client's own is not counted.
        let open = || opener.decrypt(&[2; 12], &[&aad, &[]], &sealed, &mut output);
        assert!(control.watched(now, &plain, open).expect("asked").is_err());
        assert_eq!(control.take_refused(), 1);
    }

    #[test]
    fn what_is_not_encrypted_is_refused() {
        let mut control = Control::default();
        assert!(control.watched(Instant::now(), &hostile(false), || ()).is_some(), "not known yet");
        drop(provider().aes_128_cm_sha1_80().create_cipher([1; 16], false));
        control.settle();
        assert_eq!(control.watched(Instant::now(), &hostile(false), || ()), None);
        assert_eq!(control.watched(Instant::now(), &hostile(true), || ()), Some(()));
        assert_eq!(control.take_refused(), 1);
        // The other ciphers are asked all the same, to check the tag.
        let mut control = Control::default();
        assert!(!admit_plain(&mut control, &congestion(5, 1), false));
        assert!(admit_plain(&mut control, &congestion(5, 1), true));
        assert_eq!(control.take_refused(), 1);
    }

    #[test]
    fn nothing_is_looked_at_that_nobody_takes_in() {
        assert!(admit(&hostile(true), true).is_ok());
        let mut control = Control::default();
        assert_eq!(control.watched(Instant::now(), &[0x80, 200, 0], || 3), Some(3));
        assert!(admit(&hostile(true), true).is_ok());
    }
}
