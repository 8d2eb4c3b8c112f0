//! The address of an S3-compatible store, as options and the environment name it.

use std::fmt;
use std::str::FromStr;

use rusty_s3::{Bucket, Credentials, UrlStyle};

/// Region where none is named.
const REGION: &str = "us-east-1";

/// A place in an S3-compatible store: `s3://BUCKET/PREFIX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name of the bucket.
    pub bucket: String,
    /// What the names of objects begin with, without a slash at its end; may be empty.
    pub prefix: String,
}

/// Error of a text that names no place in a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no bucket: write s3://BUCKET or s3://BUCKET/PREFIX, with no empty, `.` or `..` part"
)]
pub struct PlaceError(String);

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Place, PlaceError> {
        let error = || PlaceError(text.to_owned());
        let rest = text.strip_prefix("s3://").ok_or_else(error)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let named = !bucket.is_empty() && bucket.chars().all(letters);
        // Such parts are resolved as in paths, and would lead elsewhere.
        let sound = |part: &str| !matches!(part, "" | "." | "..");
        if !named || !sound(bucket) || !(prefix.is_empty() || prefix.split('/').all(sound)) {
            return Err(error());
        }
        Ok(Place { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}", self.bucket)?;
        if !self.prefix.is_empty() {
            write!(f, "/{}", self.prefix)?;
        }
        Ok(())
    }
}

/// Error of an environment that does not say how to reach the store.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// No credentials are set.
    #[error("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")]
    Credentials,
    /// The store's address is not a URL, or the bucket's name does not fit into it.
    #[error(
        "the address of the store is wrong ({0}): write AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL as https://HOST or \
         https://HOST:PORT, or check AWS_REGION"
    )]
    Endpoint(String),
}

/// A bucket and the credentials for it.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub bucket: Bucket,
    pub credentials: Credentials,
}

impl Account {
    /// The account that the environment names, by `variable`. Empty variables count as unset.
    pub(super) fn of(
        place: &Place,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Account, EnvironmentError> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let (Some(key), Some(secret)) = (set("AWS_ACCESS_KEY_ID"), set("AWS_SECRET_ACCESS_KEY"))
        else {
            return Err(EnvironmentError::Credentials);
        };
        let credentials = match set("AWS_SESSION_TOKEN") {
            Some(token) => Credentials::new_with_token(key, secret, token),
            None => Credentials::new(key, secret),
        };
        let region = set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION"));
        let region = region.unwrap_or_else(|| REGION.to_owned());
        let named = set("AWS_ENDPOINT_URL_S3").or_else(|| set("AWS_ENDPOINT_URL"));
        // Names with dots fit no certificate of Amazon's, and other stores may know no names of hosts.
        let style = match &named {
            None if !place.bucket.contains('.') => UrlStyle::VirtualHost,
            _ => UrlStyle::Path,
        };
        let url = named.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        let failed =
            |error: &dyn fmt::Display| EnvironmentError::Endpoint(format!("{url}: {error}"));
        let parsed = url.parse().map_err(|error| failed(&error))?;
        let bucket = Bucket::new(parsed, style, place.bucket.clone(), region);
        Ok(Account { bucket: bucket.map_err(|error| failed(&error))?, credentials })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_bucket_and_perhaps_a_prefix() {
        let place = |text: &str| text.parse::<Place>().map(|p| (p.bucket, p.prefix));
        let whole = |bucket: &str, prefix: &str| Ok((bucket.to_owned(), prefix.to_owned()));
        assert_eq!(place("s3://calls"), whole("calls", ""));
        assert_eq!(place("s3://calls/"), whole("calls", ""));
        assert_eq!(place("s3://calls/a/b/"), whole("calls", "a/b"));
        for wrong in
            ["calls", "s3://", "s3:///a", "s3://calls//a", "s3://calls/../b", "s3://a b", "s3://.."]
        {
            assert_eq!(place(wrong), Err(PlaceError(wrong.to_owned())));
        }
        assert_eq!("s3://calls/a".parse::<Place>().unwrap().to_string(), "s3://calls/a");
    }

    #[test]
    fn the_environment_names_store_region_and_credentials() {
        let of = |set: &[(&str, &str)], place: &str| {
            let set: Vec<_> = set.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
            Account::of(&place.parse().unwrap(), move |name| {
                set.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
            })
        };
        let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
        let url = |more: &[(&str, &str)], place: &str| {
            of(&[&keys[..], more].concat(), place).unwrap().bucket.base_url().to_string()
        };
        assert_eq!(url(&[], "s3://calls"), "https://calls.s3.us-east-1.amazonaws.com/");
        assert_eq!(
            url(&[("AWS_REGION", "eu-north-1")], "s3://my.calls"),
            "https://s3.eu-north-1.amazonaws.com/my.calls/"
        );
        let own = [("AWS_ENDPOINT_URL", "http://store:9000")];
        assert_eq!(url(&own, "s3://calls"), "http://store:9000/calls/");
        let error = of(&[], "s3://calls").unwrap_err().to_string();
        assert!(error.contains("AWS_ACCESS_KEY_ID"), "{error}");
        let empty = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", " ")];
        assert!(matches!(of(&empty, "s3://calls"), Err(EnvironmentError::Credentials)));
        let wrong = [&keys[..], &[("AWS_ENDPOINT_URL", "store:9000")]].concat();
        assert!(matches!(of(&wrong, "s3://calls"), Err(EnvironmentError::Endpoint(_))));
    }
}
