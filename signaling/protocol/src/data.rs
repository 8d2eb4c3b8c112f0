//! Messages of participants to each other, and their attributes.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use windlass_types::Attributes;
use windlass_types::attributes::MAX_ATTRIBUTES;
use windlass_types::data::MAX_RECEIVERS;

use crate::error::{ErrorCode, ProtocolError};
use crate::limits;

/// Bytes; in JSON Base64 (RFC 4648 §4, with padding).
#[derive(Clone, PartialEq, Eq)]
pub struct Base64(pub Vec<u8>);

impl fmt::Debug for Base64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Base64({} bytes)", self.0.len())
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Base64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes in Base64 with padding")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Base64, E> {
                STANDARD.decode(text).map(Base64).map_err(|_| E::custom("not Base64 with padding"))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

/// A message to others in the room, with either `text` or `bytes`. Needs the grant `data`.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendData {
    /// Topic of the message: 1 to 64 letters, digits, `-`, `_` and `.`.
    pub topic: String,
    /// Content as text: at most 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub text: Option<String>,
    /// Content as bytes, in Base64: at most 16 KiB before encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<String>", optional))]
    pub bytes: Option<Base64>,
    /// Ids of the participants that get the message. Ids that are not in the room are ignored. Absent: all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub to: Option<Vec<String>>,
    /// Whether each receiver gets the message. If not, it is dropped for receivers for which too much waits already.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<bool>", optional))]
    pub reliable: bool,
    /// Number that the client gives the message; receivers get it too. A client that lost its connection before `done`
    /// may send the message again with the same number. Receivers that have it already drop it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub number: Option<u32>,
}

fn yes() -> bool {
    true
}

impl SendData {
    pub(crate) fn check(&self) -> Result<(), ProtocolError> {
        limits::check_topic(&self.topic)?;
        match (&self.text, &self.bytes) {
            (Some(text), None) => limits::check_content(text.len())?,
            (None, Some(bytes)) => limits::check_content(bytes.0.len())?,
            _ => {
                let message = "`send` needs `text` or `bytes`, one of them";
                return Err(ProtocolError::new(ErrorCode::Malformed, message));
            }
        }
        let to = self.to.as_deref().unwrap_or_default();
        limits::check_count("to", to.len(), MAX_RECEIVERS)?;
        to.iter().try_for_each(|id| limits::check_participant("to", id))
    }
}

/// Change the attributes and the name that the others see of this participant. Needs the grant `data`.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAttributes {
    /// New values by key; `null` removes a key. Keys that are not listed keep their values.
    #[serde(default)]
    pub set: BTreeMap<String, Option<String>>,
    /// New name, if the access token sets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub name: Option<String>,
}

impl SetAttributes {
    pub(crate) fn check(&self) -> Result<(), ProtocolError> {
        // The change may remove as many attributes as it sets.
        limits::check_count("set", self.set.len(), 2 * MAX_ATTRIBUTES)?;
        for (key, value) in &self.set {
            limits::check_attribute(key, value.as_deref().unwrap_or_default())?;
        }
        self.name.as_deref().map_or(Ok(()), limits::check_name)
    }

    /// The attributes after this change of the `former` ones.
    ///
    /// # Errors
    ///
    /// Fails if there would be more than [`limits`] allow.
    pub fn apply(&self, former: &Attributes) -> Result<Attributes, ProtocolError> {
        let mut attributes = former.clone();
        for (key, value) in &self.set {
            match value {
                Some(value) => attributes.insert(key.clone(), value.clone()),
                None => attributes.remove(key),
            };
        }
        limits::check_attributes(&attributes)?;
        Ok(attributes)
    }
}
