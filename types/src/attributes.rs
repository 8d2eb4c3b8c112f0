//! Attributes: a small map of texts by which a participant describes itself to all others.

use std::collections::BTreeMap;

use crate::data::{is_key, json_len};

/// Attributes of a participant, by key.
pub type Attributes = BTreeMap<String, String>;

/// Maximum number of attributes.
pub const MAX_ATTRIBUTES: usize = 16;
/// Maximum length of a key, in bytes.
pub const MAX_KEY: usize = 64;
/// Maximum length of a value, in bytes of UTF-8.
pub const MAX_VALUE: usize = 256;
/// Maximum sum of all keys and values, in bytes.
pub const MAX_BYTES: usize = 4096;

/// Whether attributes are within their bounds. Keys are letters, digits, `-`, `_` and `.`.
pub fn are_valid(attributes: &Attributes) -> bool {
    attributes.len() <= MAX_ATTRIBUTES
        && attributes.iter().all(|(key, value)| is_key(key, MAX_KEY) && value.len() <= MAX_VALUE)
        && size(attributes) <= MAX_BYTES
}

/// The sum of all keys and values, in bytes.
pub fn size(attributes: &Attributes) -> usize {
    attributes.iter().map(|(key, value)| key.len() + value.len()).sum()
}

/// Length in JSON, in bytes.
pub fn sent_len(attributes: &Attributes) -> usize {
    // Each has quotes around both, a colon and a comma.
    attributes.iter().map(|(key, value)| key.len() + json_len(value) + 6).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(count: usize, key: usize, value: usize) -> Attributes {
        (0..count).map(|n| (format!("{n:0>key$}"), "v".repeat(value))).collect()
    }

    #[test]
    fn number_keys_values_and_their_sum_are_bounded() {
        assert!(are_valid(&Attributes::new()) && are_valid(&with(MAX_ATTRIBUTES, 2, 10)));
        assert!(are_valid(&with(1, MAX_KEY, MAX_VALUE)) && are_valid(&with(1, 1, 0)));
        for wrong in [
            with(MAX_ATTRIBUTES + 1, 2, 1),
            with(1, MAX_KEY + 1, 1),
            with(1, 1, MAX_VALUE + 1),
            with(MAX_ATTRIBUTES, MAX_KEY, MAX_VALUE),
            [(String::new(), String::new())].into(),
            [("a b".to_owned(), String::new())].into(),
        ] {
            assert!(!are_valid(&wrong), "{wrong:?}");
        }
    }
}
