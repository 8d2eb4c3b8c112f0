//! Rules as the cluster's servers tell them each other. How, is the cluster's business: here are keys and bytes.

use std::collections::HashSet;

use super::book::Put;
use super::rule::{About, BadRule, Told};
use super::{Rights, unix_now_ms};
use crate::Signaling;

/// A rule that other servers are to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldRule {
    /// Of what it is about: a later rule with this key takes its place.
    pub key: String,
    /// The rule.
    pub bytes: Vec<u8>,
}

/// What was heard of another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardRule {
    /// Of what it is about.
    pub key: String,
    /// Until when it holds, in seconds since 1970.
    pub until: u64,
}

impl Signaling {
    /// Rules that others have not been told, as soon as there are some.
    pub async fn rules_to_tell(&self) -> Vec<ToldRule> {
        let rights = &self.shared.rights;
        loop {
            let told = rights.take_untold();
            if !told.is_empty() {
                return told;
            }
            rights.spread.notified().await;
        }
    }

    /// Another server has told a rule. If there is a later one here, that is to be told again.
    pub fn rule_heard(&self, bytes: &[u8]) -> Result<HeardRule, BadRule> {
        self.shared.rights.heard(bytes, unix_now_ms())
    }

    /// Whatever holds and is not among these keys is to be told again; `None`: everything.
    pub fn tell_rules_again(&self, but: &HashSet<String>) {
        self.shared.rights.tell_again(|key| !but.contains(key));
    }

    /// The rule of a key is to be told again, if one holds.
    pub fn tell_rule_again(&self, key: &str) {
        self.shared.rights.tell_again(|of| of == key);
    }
}

impl Rights {
    pub(super) fn take_untold(&self) -> Vec<ToldRule> {
        let mut inner = self.inner.lock();
        let Some(untold) = inner.untold.as_mut().map(std::mem::take) else { return Vec::new() };
        let told = untold.into_iter().filter_map(|(room, about)| {
            let rule = inner.book.get(&room, &about)?.clone();
            let key = Told::key(&room, &about);
            Some(ToldRule { key, bytes: Told { room, about, rule }.write() })
        });
        told.collect()
    }

    pub(super) fn heard(&self, bytes: &[u8], now_ms: u64) -> Result<HeardRule, BadRule> {
        let told = Told::read(bytes, now_ms)?;
        let key = Told::key(&told.room, &told.about);
        let heard = HeardRule { key, until: told.rule.until };
        if told.rule.until <= now_ms / 1000 {
            return Ok(heard);
        }
        let (room, about) = (told.room.clone(), told.about.clone());
        let mut inner = self.inner.lock();
        match inner.book.put(told) {
            Put::News => {
                inner.dirty.insert(room.clone());
                // Of an older one that waits to be told nobody needs to hear.
                if let Some(untold) = &mut inner.untold {
                    untold.remove(&(room, about));
                }
                self.changed.notify_one();
            }
            Put::Older => {
                if let Some(untold) = &mut inner.untold {
                    untold.insert((room, about));
                }
                self.spread.notify_one();
            }
            Put::Full => {
                self.full.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            Put::Known => {}
        }
        Ok(heard)
    }

    pub(super) fn tell_again(&self, whether: impl Fn(&str) -> bool) {
        let mut inner = self.inner.lock();
        let again: Vec<(String, About)> = inner
            .book
            .all()
            .filter(|(room, about, _)| whether(&Told::key(room, about)))
            .map(|(room, about, _)| (room.to_owned(), about.clone()))
            .collect();
        if !again.is_empty()
            && let Some(untold) = &mut inner.untold
        {
            untold.extend(again);
            self.spread.notify_one();
        }
    }
}
