//! The public name of a server.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A DNS name of several labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicName(String);

impl FromStr for PublicName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.trim_end_matches('.').to_ascii_lowercase();
        let is_label = |label: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
            (1..=63).contains(&label.len())
                && label.chars().all(fits)
                && !(label.starts_with('-') || label.ends_with('-'))
        };
        let is_name = name.len() <= 253 && name.contains('.') && name.split('.').all(is_label);
        if is_name && name.parse::<IpAddr>().is_err() {
            return Ok(PublicName(name));
        }
        Err(format!(
            "`{text}` is no DNS name such as calls.example, without https:// and without a port"
        ))
    }
}

impl fmt::Display for PublicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_dns_are_public() {
        for wrong in [
            "https://calls.example",
            "calls.example:443",
            "203.0.113.5",
            "calls",
            "a..b",
            "-a.example",
            "calls_1.example",
            "",
        ] {
            assert!(wrong.parse::<PublicName>().is_err(), "{wrong}");
        }
    }
}
