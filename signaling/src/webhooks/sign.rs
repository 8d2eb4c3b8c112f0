//! Signatures, with which receivers check the origin and age of webhooks.
//!
//! HMAC-SHA256 over `id.timestamp.body` (Standard Webhooks): in the headers `webhook-id`, `webhook-timestamp` (of the
//! attempt) and `webhook-signature` (`v1,` and Base64, one for each secret with spaces between).

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;

use crate::at_file;

/// Valid lengths of a secret, in bytes.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A secret that receivers share: `whsec_` and 24 to 64 bytes in Base64, or `@FILE`. Its `Debug` form hides it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct WebhookSecret(Vec<u8>);

/// Why a secret cannot be used. The error does not contain the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// The text has not the form of a secret.
    #[error("a webhook secret must be `whsec_` and 24 to 64 bytes in Base64, or @FILE")]
    Form,
    /// The secret's file cannot be read.
    #[error("cannot read the file of the webhook secret: {0}")]
    File(String),
}

impl FromStr for WebhookSecret {
    type Err = BadSecret;

    fn from_str(text: &str) -> Result<Self, BadSecret> {
        let text = at_file::text(text).map_err(|e| BadSecret::File(e.to_string()))?;
        let coded = text.trim().strip_prefix("whsec_").ok_or(BadSecret::Form)?;
        let secret = BASE64.decode(coded).map_err(|_| BadSecret::Form)?;
        if SECRET_BYTES.contains(&secret.len()) {
            Ok(WebhookSecret(secret))
        } else {
            Err(BadSecret::Form)
        }
    }
}

impl TryFrom<String> for WebhookSecret {
    type Error = BadSecret;

    fn try_from(text: String) -> Result<Self, BadSecret> {
        text.parse()
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

/// The header `webhook-signature` of an attempt at `timestamp` (seconds since 1970).
pub(super) fn signatures(
    secrets: &[WebhookSecret],
    id: &str,
    timestamp: u64,
    body: &str,
) -> String {
    let signed = format!("{id}.{timestamp}.{body}");
    let one = |WebhookSecret(secret): &WebhookSecret| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        format!("v1,{}", BASE64.encode(hmac::sign(&key, signed.as_bytes())))
    };
    secrets.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification_is_signed_as_it_says() {
        // From the reference libraries' tests.
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let header = signatures(
            &[secret],
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(header, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn while_secrets_are_changed_each_signs() {
        let [old, new] = [7, 8].map(|n| WebhookSecret(vec![n; 24]));
        let one = |secret: &WebhookSecret| signatures(std::slice::from_ref(secret), "m", 1, "{}");
        let both = signatures(&[new.clone(), old.clone()], "m", 1, "{}");
        assert_eq!(both, format!("{} {}", one(&new), one(&old)));
    }

    #[test]
    fn weak_or_misspelt_secrets_are_refused_and_none_is_shown() {
        for wrong in ["", "whsec_", "whsec_c2hvcnQ=", "whsec_!!!", "secret-secret-secret-secret"] {
            assert_eq!(wrong.parse::<WebhookSecret>().unwrap_err(), BadSecret::Form, "{wrong}");
        }
        assert!(matches!("@/no/such".parse::<WebhookSecret>(), Err(BadSecret::File(_))));
        let secret: WebhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        assert_eq!(format!("{secret:?}"), "WebhookSecret(…)");
    }
}
