//! What servers of a cluster write where others could write too: content under a seal that only who has the cluster's token can make.
//!
//! A seal is a MAC (HMAC-SHA-256) over what it is for (a bucket and a key), a time, and the content. Whoever reads it compares the time with that at which the
//! bus says it was written, so that nothing can be written a second time later, whatever anybody's own clock says; and of one key takes nothing that is
//! older than what it knows. So a stranger who can write to the bus can remove or hold up, but say nothing in another's name.
//!
//! [`SealKey`] seals and opens one thing; [`Seals`] those of a bucket, with its memory. The buckets themselves are [`crate::nats`]'s, which seals and opens
//! everything that it writes and reads: a new bucket needs no more than a [`crate::nats::Bucket`].
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

/// What a seal may be off the time at which it was written: what a message takes, and what NATS servers of one cluster differ.
pub const TOLERANCE: Duration = Duration::from_secs(10);

/// What every sealed thing begins with: another form has another number.
const FORM: u8 = 1;
const MAC_BYTES: usize = 32;
const HEAD_BYTES: usize = 1 + 8 + MAC_BYTES;
/// Tokens are to be random; where one is not, guessing it from what lies on the bus takes this much longer.
const ROUNDS: NonZeroU32 = NonZeroU32::new(100_000).unwrap();
/// Keys of which the newest time is known: those of the latest seconds. Beyond so many, those that are known longest give way.
const MOST_KEYS: usize = 400_000;

/// A time by the clock of the bus, which all servers share: milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BusTime(pub u64);

impl BusTime {
    fn is_near(self, other: BusTime) -> bool {
        u128::from(self.0.abs_diff(other.0)) <= TOLERANCE.as_millis()
    }
}

/// The clock of the bus, as one process knows it: never its own clock, which may be wrong by days.
#[derive(Debug, Clone, Copy, Default)]
pub struct BusClock {
    heard: Option<(BusTime, Instant)>,
    /// The last that something was sealed with.
    last: Option<BusTime>,
}

impl BusClock {
    /// The bus has just said what time it is.
    pub fn heard(&mut self, time: BusTime, now: Instant) {
        self.heard = Some((time, now));
    }

    /// What time it is there; `None` before it was ever heard.
    pub fn now(self, now: Instant) -> Option<BusTime> {
        let (time, heard) = self.heard?;
        let passed = now.saturating_duration_since(heard).as_millis();
        Some(BusTime(time.0.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))))
    }

    /// The same for a seal: later than for any before, though what is heard may be some milliseconds off each time. Should the bus's clock go back, so does this.
    pub fn next(&mut self, now: Instant) -> Option<BusTime> {
        let time = self.now(now)?;
        let last = self.last.filter(|last| last.is_near(time));
        let next = last.map_or(time, |last| time.max(BusTime(last.0 + 1)));
        self.last = Some(next);
        Some(next)
    }

    /// How long ago it was heard last.
    pub fn age(self, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.heard?.1))
    }
}

/// Why something is not taken for the cluster's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Rogue {
    /// It has no seal.
    #[error("it has no seal")]
    Unsealed,
    /// Its seal is made with another token, or for another bucket, key, time or content.
    #[error("its seal is another's, or for something else")]
    Forged,
    /// It was written at another time than it was sealed, or something newer is known: somebody says again what was said once.
    #[error("it was said before")]
    Replayed,
}

impl Rogue {
    pub(crate) const ALL: [Rogue; 3] = [Rogue::Unsealed, Rogue::Forged, Rogue::Replayed];

    /// As metrics name it.
    pub fn name(self) -> &'static str {
        match self {
            Rogue::Unsealed => "unsealed",
            Rogue::Forged => "forged",
            Rogue::Replayed => "replayed",
        }
    }
}

/// What seals and opens, by a cluster's token. Made once: that takes some hundredths of a second.
#[derive(Clone)]
pub struct SealKey(Arc<hmac::Key>);

impl SealKey {
    /// That of a token.
    pub fn of(token: &ClusterToken) -> SealKey {
        let mut key = [0; 32];
        let salt = b"windlass seals of a cluster";
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, salt, token.secret(), &mut key);
        SealKey(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// Seals content for a key of a bucket, or whatever else two words say.
    pub fn seal(&self, (bucket, key): (&str, &str), at: BusTime, content: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(HEAD_BYTES + content.len());
        sealed.push(FORM);
        sealed.extend(at.0.to_be_bytes());
        sealed.extend(hmac::sign(&self.0, &covered(bucket, key, at, content)).as_ref());
        sealed.extend(content);
        sealed
    }

    /// What was sealed for that, and when.
    pub fn open<'a>(
        &self,
        (bucket, key): (&str, &str),
        sealed: &'a [u8],
    ) -> Result<(BusTime, &'a [u8]), Rogue> {
        let (head, content) = sealed.split_at_checked(HEAD_BYTES).ok_or(Rogue::Unsealed)?;
        let (form, head) = head.split_first().ok_or(Rogue::Unsealed)?;
        let (time, mac) = head.split_first_chunk().ok_or(Rogue::Unsealed)?;
        if *form != FORM {
            return Err(Rogue::Unsealed);
        }
        let at = BusTime(u64::from_be_bytes(*time));
        let covered = covered(bucket, key, at, content);
        hmac::verify(&self.0, &covered, mac).map_err(|_| Rogue::Forged)?;
        Ok((at, content))
    }
}

/// What a seal covers: nothing of it can be taken for another part.
fn covered(bucket: &str, key: &str, at: BusTime, content: &[u8]) -> Vec<u8> {
    let mut all = vec![FORM];
    for part in [bucket.as_bytes(), key.as_bytes(), &at.0.to_be_bytes(), content] {
        all.extend((part.len() as u64).to_be_bytes());
        all.extend(part);
    }
    all
}

/// The seals of one bucket, as one process makes and reads them.
pub struct Seals {
    key: SealKey,
    bucket: &'static str,
    /// The newest that was read of each key, by time and revision.
    newest: Mutex<HashMap<String, (BusTime, u64)>>,
}

impl Seals {
    /// Those of a bucket of which nothing has been read.
    pub fn new(key: SealKey, bucket: &'static str) -> Seals {
        Seals { key, bucket, newest: Mutex::default() }
    }

    /// Seals what is to be written to a key now: as newer than anything that was read of it.
    pub fn seal(&self, key: &str, content: &[u8], now: BusTime) -> Vec<u8> {
        let known = self.newest.lock().get(key).map(|(time, _)| *time);
        // One that is far ahead is from before the bus's clock went back.
        let known = known.filter(|known| known.is_near(now));
        let at = known.map_or(now, |known| now.max(BusTime(known.0 + 1)));
        self.key.seal((self.bucket, key), at, content)
    }

    /// What is in a key, which the bus says was written then, with that revision.
    pub fn open<'a>(
        &self,
        key: &str,
        sealed: &'a [u8],
        (written, revision): (BusTime, u64),
    ) -> Result<&'a [u8], Rogue> {
        let (at, content) = self.key.open((self.bucket, key), sealed)?;
        if !at.is_near(written) {
            return Err(Rogue::Replayed);
        }
        let newest = &mut *self.newest.lock();
        if let Some(&(known, of)) = newest.get(key)
            && known.is_near(written)
            && (at < known || (at == known && of != revision))
        {
            return Err(Rogue::Replayed);
        }
        if newest.len() >= MOST_KEYS && !newest.contains_key(key) {
            // What is older would be refused for its time alone.
            newest.retain(|_, (known, _)| known.is_near(written));
        }
        if newest.len() < MOST_KEYS || newest.contains_key(key) {
            newest.insert(key.to_owned(), (at, revision));
        }
        Ok(content)
    }
}

#[cfg(test)]
#[path = "sealed_tests.rs"]
mod tests;
