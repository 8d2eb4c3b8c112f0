//! Pseudonyms of names in logs. A name has one pseudonym for as long as the server runs, and nobody can reverse it.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// Random key of the pseudonyms, so that guessed names cannot be compared.
static KEY: OnceLock<RandomState> = OnceLock::new();

/// The pseudonym of a room's or participant's name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pseudonym(u64);

/// The pseudonym of a name.
pub fn pseudonym(name: &str) -> Pseudonym {
    Pseudonym(KEY.get_or_init(RandomState::new).hash_one(name))
}

impl fmt::Display for Pseudonym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:08x}", self.0 as u32)
    }
}

impl fmt::Debug for Pseudonym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_pseudonym_and_is_not_in_it() {
        assert_eq!(pseudonym("tea"), pseudonym("tea"));
        assert_ne!(pseudonym("tea"), pseudonym("coffee"));
        let shown = pseudonym("tea").to_string();
        assert!(shown.starts_with('#') && shown.len() == 9 && !shown.contains("tea"));
    }
}
