//! Values that are read from text, in the file as on the command line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};

/// A value that the file has as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed<T>(pub T);

impl<T: FromStr> FromStr for Parsed<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.parse().map(Parsed)
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl<T: fmt::Display> fmt::Display for Parsed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where the certificate of the HTTP server comes from: `CERT,KEY` or `self-signed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsChoice {
    /// A certificate for development, which the server makes.
    SelfSigned,
    /// PEM files: the certificate with its chain, and its private key.
    Files(PathBuf, PathBuf),
}

impl FromStr for TlsChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match files(text) {
            Some([certificate, key]) => Ok(TlsChoice::Files(certificate, key)),
            None if text == "self-signed" => Ok(TlsChoice::SelfSigned),
            None => Err(format!(
                "`{text}` is neither CERT,KEY nor self-signed: name the certificate's and the private key's file"
            )),
        }
    }
}

/// So many files, separated by commas.
pub(super) fn files<const N: usize>(text: &str) -> Option<[PathBuf; N]> {
    let files: Vec<PathBuf> = text.split(',').map(PathBuf::from).collect();
    let named = files.iter().all(|file| !file.as_os_str().is_empty());
    files.try_into().ok().filter(|_| named)
}
