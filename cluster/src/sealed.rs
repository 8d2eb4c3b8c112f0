//! Authenticated entries of NATS buckets. Others may be able to write to NATS too, so only entries with a valid seal
//! count.
//!
//! A seal is a MAC (HMAC-SHA-256, key derived from the cluster's token) over bucket, key, time and content. Replays are
//! refused in two ways. The sealed time must be close to the time at which NATS stored the entry. And an entry must not
//! be older than the newest known one of its key. So a foreign writer can delete or delay entries, but not forge them.
//!
//! [`SealKey`] seals and opens single messages. [`Seals`] seals and opens the entries of one bucket, and keeps their
//! newest times. [`crate::nats`] seals and opens everything that it writes and reads.
//!
//! Pure: every time is an argument. Source: decision 025.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::{hmac, pbkdf2};
use parking_lot::Mutex;
use thiserror::Error;

use crate::token::ClusterToken;

/// Maximum difference between the sealed time and the time at which NATS stored the entry: transport, and clock
/// differences of NATS servers.
pub const TOLERANCE: Duration = Duration::from_secs(10);

/// First byte of sealed data: version of the format.
const FORMAT: u8 = 1;
/// Bytes of the authentication code: HMAC-SHA-256.
const MAC_BYTES: usize = 32;
/// Bytes before the content: format, time (8) and authentication code.
const HEAD_BYTES: usize = 1 + 8 + MAC_BYTES;
/// PBKDF2 rounds that derive the key. They slow down guesses of a token that is not random.
const ROUNDS: NonZeroU32 = NonZeroU32::new(100_000).unwrap();
/// Maximum number of keys whose newest time is known; beyond it, times older than [`TOLERANCE`] are forgotten.
const MAX_KEYS: usize = 400_000;

/// A time by the clock of NATS, in milliseconds since 1970. All servers share this clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BusTime(pub u64);

impl BusTime {
    fn is_near(self, other: BusTime) -> bool {
        u128::from(self.0.abs_diff(other.0)) <= TOLERANCE.as_millis()
    }
}

/// The clock of NATS, as one process knows it. The process's own wall clock is not used: it may be wrong.
#[derive(Debug, Clone, Copy, Default)]
pub struct BusClock {
    synced: Option<(BusTime, Instant)>,
    /// The last time that was used for a seal.
    last: Option<BusTime>,
}

impl BusClock {
    /// Sets the time that NATS has just reported.
    pub fn sync(&mut self, time: BusTime, now: Instant) {
        self.synced = Some((time, now));
    }

    /// The time now; `None` before the first [`BusClock::sync`].
    pub fn now(self, now: Instant) -> Option<BusTime> {
        let (time, synced) = self.synced?;
        let passed = now.saturating_duration_since(synced).as_millis();
        Some(BusTime(time.0.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))))
    }

    /// The time for the next seal: later than that of any before, even if two syncs differ by some milliseconds.
    /// Follows a clock that is set back.
    pub fn next(&mut self, now: Instant) -> Option<BusTime> {
        let time = self.now(now)?;
        let last = self.last.filter(|last| last.is_near(time));
        let next = last.map_or(time, |last| time.max(BusTime(last.0 + 1)));
        self.last = Some(next);
        Some(next)
    }

    /// Time since the last sync.
    pub fn age(self, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.synced?.1))
    }
}

/// Why sealed data is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum SealError {
    /// The data has no seal.
    #[error(
        "the entry has no seal: it was not written by a server of this version with a cluster-token"
    )]
    Unsealed,
    /// The seal is made with another token, or for another bucket, key, time or content.
    #[error("the seal is invalid: made with another token, or for another entry")]
    Forged,
    /// The data was stored at another time than it was sealed, or newer data is known.
    #[error("the entry is a replay of an older one")]
    Replayed,
}

impl SealError {
    pub(crate) const ALL: [SealError; 3] =
        [SealError::Unsealed, SealError::Forged, SealError::Replayed];

    /// Name of the reason in metrics.
    pub fn name(self) -> &'static str {
        match self {
            SealError::Unsealed => "unsealed",
            SealError::Forged => "forged",
            SealError::Replayed => "replayed",
        }
    }
}

/// The key that a cluster's token gives. Deriving it takes some hundredths of a second.
#[derive(Clone)]
pub struct SealKey(Arc<hmac::Key>);

/// Scope in which a seal is valid.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// Name of a bucket, or of another use of seals.
    pub bucket: &'a str,
    /// Key in the bucket.
    pub key: &'a str,
}

/// Time and revision that NATS gave a stored entry.
#[derive(Debug, Clone, Copy)]
pub struct Stored {
    /// When NATS stored the entry, by NATS's clock.
    pub at: BusTime,
    /// The entry's revision in its bucket.
    pub revision: u64,
}

impl SealKey {
    /// The seal key of a cluster's token.
    pub fn of(token: &ClusterToken) -> SealKey {
        let mut key = [0; 32];
        let salt = b"windlass seals of a cluster";
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, salt, token.secret(), &mut key);
        SealKey(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// Seals content for a scope.
    pub fn seal(&self, scope: Scope<'_>, at: BusTime, content: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(HEAD_BYTES + content.len());
        sealed.push(FORMAT);
        sealed.extend(at.0.to_be_bytes());
        sealed.extend(hmac::sign(&self.0, &covered(scope, at, content)).as_ref());
        sealed.extend(content);
        sealed
    }

    /// A key for another purpose, which all servers of the cluster have in common.
    pub fn derive(&self, purpose: &str) -> Vec<u8> {
        self.seal(Scope { bucket: purpose, key: "key" }, BusTime(0), &[])
    }

    /// Checks the seal of data for a scope. Returns the sealed time and the content.
    ///
    /// # Errors
    ///
    /// The data has no seal, or one that is not valid for this key and scope.
    pub fn open<'a>(
        &self,
        scope: Scope<'_>,
        sealed: &'a [u8],
    ) -> Result<(BusTime, &'a [u8]), SealError> {
        let (head, content) = sealed.split_at_checked(HEAD_BYTES).ok_or(SealError::Unsealed)?;
        let (format, head) = head.split_first().ok_or(SealError::Unsealed)?;
        let (time, mac) = head.split_first_chunk().ok_or(SealError::Unsealed)?;
        if *format != FORMAT {
            return Err(SealError::Unsealed);
        }
        let at = BusTime(u64::from_be_bytes(*time));
        let covered = covered(scope, at, content);
        hmac::verify(&self.0, &covered, mac).map_err(|_| SealError::Forged)?;
        Ok((at, content))
    }
}

/// The bytes that the MAC covers. Lengths are included, so that no part can be taken for another.
fn covered(Scope { bucket, key }: Scope<'_>, at: BusTime, content: &[u8]) -> Vec<u8> {
    let mut all = vec![FORMAT];
    for part in [bucket.as_bytes(), key.as_bytes(), &at.0.to_be_bytes(), content] {
        all.extend((part.len() as u64).to_be_bytes());
        all.extend(part);
    }
    all
}

/// Seals and opens the entries of one bucket.
pub struct Seals {
    key: SealKey,
    bucket: &'static str,
    /// Sealed time and revision of the newest entry of each key.
    newest: Mutex<HashMap<String, (BusTime, u64)>>,
}

impl Seals {
    /// The seals of a bucket from which no entry has been read yet.
    pub fn new(key: SealKey, bucket: &'static str) -> Seals {
        Seals { key, bucket, newest: Mutex::default() }
    }

    /// Seals content for a key with a time later than that of any known entry of the key.
    pub fn seal(&self, key: &str, content: &[u8], now: BusTime) -> Vec<u8> {
        let known = self.newest.lock().get(key).map(|(time, _)| *time);
        // A time far ahead is from before the clock of NATS was set back.
        let known = known.filter(|known| known.is_near(now));
        let at = known.map_or(now, |known| now.max(BusTime(known.0 + 1)));
        self.key.seal(self.scope(key), at, content)
    }

    fn scope<'a>(&self, key: &'a str) -> Scope<'a> {
        Scope { bucket: self.bucket, key }
    }

    /// Opens an entry.
    ///
    /// # Errors
    ///
    /// The entry has no valid seal, or is a replay.
    pub fn open<'a>(
        &self,
        key: &str,
        sealed: &'a [u8],
        stored: Stored,
    ) -> Result<&'a [u8], SealError> {
        let (at, content) = self.key.open(self.scope(key), sealed)?;
        if !at.is_near(stored.at) {
            return Err(SealError::Replayed);
        }
        let newest = &mut *self.newest.lock();
        if let Some(&(known, revision)) = newest.get(key)
            && known.is_near(stored.at)
            && (at < known || (at == known && revision != stored.revision))
        {
            return Err(SealError::Replayed);
        }
        if newest.len() >= MAX_KEYS && !newest.contains_key(key) {
            // Replays of older entries are refused by their time alone.
            newest.retain(|_, (known, _)| known.is_near(stored.at));
        }
        if newest.len() < MAX_KEYS || newest.contains_key(key) {
            newest.insert(key.to_owned(), (at, stored.revision));
        }
        Ok(content)
    }
}

#[cfg(test)]
#[path = "sealed_tests.rs"]
mod tests;
