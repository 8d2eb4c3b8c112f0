//! Rules as keys and bytes, for the exchange with other servers of the cluster by the implementation of
//! [`crate::cluster`].

use super::Rights;
use super::book::Update;
use super::record::{BadRule, RuleRecord, Subject};

/// A rule that other servers must get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingRule {
    /// Subject of the rule as a key: a later rule with the same key replaces it.
    pub key: String,
    /// The rule.
    pub value: Vec<u8>,
}

/// A rule of another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedRule {
    /// Subject of the rule as a key.
    pub key: String,
    /// Time until which the rule holds, in seconds since 1970.
    pub until: u64,
}

impl Rights {
    pub(crate) fn take_unsent(&self) -> Vec<OutgoingRule> {
        let mut inner = self.inner.lock();
        let Some(unsent) = inner.unsent.as_mut().map(std::mem::take) else { return Vec::new() };
        let rules = unsent.into_iter().filter_map(|(room, about)| {
            let rule = inner.book.get(&room, &about)?.clone();
            let key = RuleRecord::key(&room, &about);
            Some(OutgoingRule { key, value: RuleRecord { room, about, rule }.write() })
        });
        rules.collect()
    }

    pub(crate) fn heard(&self, bytes: &[u8], now_ms: u64) -> Result<AppliedRule, BadRule> {
        let record = RuleRecord::read(bytes, now_ms)?;
        let key = RuleRecord::key(&record.room, &record.about);
        let rule = AppliedRule { key, until: record.rule.until };
        if record.rule.until <= now_ms / 1000 {
            return Ok(rule);
        }
        let (room, about) = (record.room.clone(), record.about.clone());
        let mut inner = self.inner.lock();
        match inner.book.put(record) {
            Update::Applied => {
                inner.dirty.insert(room.clone());
                // Other servers do not need the older rule.
                if let Some(unsent) = &mut inner.unsent {
                    unsent.remove(&(room, about));
                }
                self.changed.notify_one();
            }
            Update::Outdated => {
                if let Some(unsent) = &mut inner.unsent {
                    unsent.insert((room, about));
                }
                self.spread.notify_one();
            }
            Update::Full => {
                self.full.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            Update::Unchanged => {}
        }
        Ok(rule)
    }

    pub(crate) fn resend(&self, whether: impl Fn(&str) -> bool) {
        let mut inner = self.inner.lock();
        let again: Vec<(String, Subject)> = inner
            .book
            .subjects()
            .filter(|of| whether(&RuleRecord::key(of.room, of.about)))
            .map(|of| (of.room.to_owned(), of.about.clone()))
            .collect();
        if !again.is_empty()
            && let Some(unsent) = &mut inner.unsent
        {
            unsent.extend(again);
            self.spread.notify_one();
        }
    }
}
