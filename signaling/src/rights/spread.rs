//! Rules as keys and bytes, for the exchange with other servers of the cluster, which [`crate::cluster`]'s implementation does.

use std::collections::HashSet;

use super::book::Update;
use super::record::{BadRule, RuleRecord, Subject};
use super::{Rights, unix_now_ms};
use crate::Signaling;

/// A rule that other servers must get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingRule {
    /// What the rule is about: a later rule with the same key replaces it.
    pub key: String,
    /// The rule.
    pub value: Vec<u8>,
}

/// A rule of another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedRule {
    /// What the rule is about.
    pub key: String,
    /// Time until which the rule holds, in seconds since 1970.
    pub until: u64,
}

impl Signaling {
    /// Rules that other servers have not got. Waits until there are some.
    pub async fn next_rules(&self) -> Vec<OutgoingRule> {
        let rights = &self.shared.rights;
        loop {
            let rules = rights.take_unsent();
            if !rules.is_empty() {
                return rules;
            }
            rights.spread.notified().await;
        }
    }

    /// Takes a rule of another server. If a later one is known, that must be sent again.
    ///
    /// # Errors
    ///
    /// The rule is malformed.
    pub fn on_rule(&self, bytes: &[u8]) -> Result<AppliedRule, BadRule> {
        self.shared.rights.heard(bytes, unix_now_ms())
    }

    /// All rules that hold must be sent again, except those with these keys.
    pub fn resend_rules_except(&self, keys: &HashSet<String>) {
        self.shared.rights.resend(|key| !keys.contains(key));
    }

    /// The rule with that key must be sent again, if it holds.
    pub fn resend_rule(&self, key: &str) {
        self.shared.rights.resend(|of| of == key);
    }
}

impl Rights {
    pub(super) fn take_unsent(&self) -> Vec<OutgoingRule> {
        let mut inner = self.inner.lock();
        let Some(unsent) = inner.unsent.as_mut().map(std::mem::take) else { return Vec::new() };
        let rules = unsent.into_iter().filter_map(|(room, about)| {
            let rule = inner.book.get(&room, &about)?.clone();
            let key = RuleRecord::key(&room, &about);
            Some(OutgoingRule { key, value: RuleRecord { room, about, rule }.write() })
        });
        rules.collect()
    }

    pub(super) fn heard(&self, bytes: &[u8], now_ms: u64) -> Result<AppliedRule, BadRule> {
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

    pub(super) fn resend(&self, whether: impl Fn(&str) -> bool) {
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
