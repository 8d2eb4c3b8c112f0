//! Rules of the service for the exchange with other servers, which the caller does.

use std::collections::HashSet;

use crate::Signaling;
use crate::rights::{AppliedRule, BadRule, OutgoingRule, unix_now_ms};

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
