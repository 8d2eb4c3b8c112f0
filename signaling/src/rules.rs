//! Exchange of rules with other servers: the caller carries them, this module gives and takes them.

use std::collections::HashSet;

use crate::Signaling;
use crate::rights::{AppliedRule, BadRule, OutgoingRule, unix_now_ms};

impl Signaling {
    /// Rules that other servers have not got yet. Waits until there are some.
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

    /// Takes a rule of another server. If a later one is known, that one must be sent again.
    ///
    /// # Errors
    ///
    /// The rule is malformed.
    pub fn on_rule(&self, bytes: &[u8]) -> Result<AppliedRule, BadRule> {
        self.shared.rights.heard(bytes, unix_now_ms())
    }

    /// Marks all rules that hold to be sent again, except those with these keys.
    pub fn resend_rules_except(&self, keys: &HashSet<String>) {
        self.shared.rights.resend(|key| !keys.contains(key));
    }

    /// Marks the rule with that key to be sent again, if it holds.
    pub fn resend_rule(&self, key: &str) {
        self.shared.rights.resend(|of| of == key);
    }
}
