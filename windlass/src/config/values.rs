//! Values of options that are parsed from text, in the file as on the command line.

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, IntoDeserializer, SeqAccess, Visitor};

/// A value that is parsed from text in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parsed<T>(pub T);

impl<T: FromStr> FromStr for Parsed<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.parse().map(Parsed)
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text)?.parse().map_err(D::Error::custom)
    }
}

/// Reads an option's text as people write it in YAML: a text, a list of texts, a number, or `off`, which YAML 1.1 reads
/// as `false`.
struct Text;

impl<'de> Visitor<'de> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or a list of texts")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<String, E> {
        Ok(if on { "on" } else { "off" }.to_owned())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<String, A::Error> {
        let mut texts = Vec::new();
        while let Some(Element(text)) = list.next_element()? {
            texts.push(text);
        }
        Ok(texts.join(","))
    }
}

/// One value of a list of texts.
struct Element(String);

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text).map(Element)
    }
}

/// Reads a list from the file: of texts, or as one text, whose elements stand between commas as on the command line.
pub(super) fn list<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(List(PhantomData))
}

/// Reads a list of `T`; nothing is no value.
struct List<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
    type Value = Option<Vec<T>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Text.expecting(f)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let element = |part: &str| T::deserialize(part.to_owned().into_deserializer());
        parts(text).map(element).collect::<Result<_, E>>().map(Some)
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<Self::Value, E> {
        self.visit_str(&Text.visit_bool::<E>(on)?)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        self.visit_str(&Text.visit_u64::<E>(number)?)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element()? {
            elements.push(element);
        }
        Ok(Some(elements))
    }
}

/// Parts of a text between commas, without the spaces around them.
pub(super) fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

impl<T: fmt::Display> fmt::Display for Parsed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Source of the HTTP server's certificate: `CERT,KEY`, `acme[:URL]` or `self-signed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TlsChoice {
    /// A certificate for development that the server makes.
    SelfSigned,
    /// An ACME server, given by its directory.
    Acme(String),
    /// PEM files: the certificate with its chain, and its private key.
    Files(PathBuf, PathBuf),
}

impl FromStr for TlsChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (files(text), text.split_once(':')) {
            (Some([certificate, key]), _) => Ok(TlsChoice::Files(certificate, key)),
            _ if text == "self-signed" => Ok(TlsChoice::SelfSigned),
            _ if text == "acme" => Ok(TlsChoice::Acme(windlass_public::LETS_ENCRYPT.to_owned())),
            (_, Some(("acme", url))) if url.starts_with("https://") => {
                Ok(TlsChoice::Acme(url.to_owned()))
            }
            _ => Err(format!(
                "`{text}` is neither CERT,KEY nor acme, acme:https://… or self-signed: CERT,KEY are the files of certificate and private key"
            )),
        }
    }
}

/// Reads the names of `N` files, separated by commas.
pub(super) fn files<const N: usize>(text: &str) -> Option<[PathBuf; N]> {
    let files: Vec<PathBuf> = parts(text).map(PathBuf::from).collect();
    let named = files.iter().all(|file| !file.as_os_str().is_empty());
    files.try_into().ok().filter(|_| named)
}
