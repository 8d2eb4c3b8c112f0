//! Messages of participants to each other. Servers carry them and do not read them.

use bytes::Bytes;

/// Maximum length of a message's topic, in bytes.
pub const MAX_TOPIC: usize = 64;
/// Maximum length of a message's content, in bytes.
pub const MAX_CONTENT: usize = 16 * 1024;
/// Maximum number of participants that a message names.
pub const MAX_RECEIVERS: usize = 100;

/// A message of a participant to others in its room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataMessage {
    /// What the message is about, by which receivers tell messages apart: letters, digits, `-`, `_` and `.`.
    pub topic: String,
    /// The message itself.
    pub content: DataContent,
    /// Whether the message may not be dropped.
    pub reliable: bool,
    /// The sender's own number for the message, by which receivers know a message that was sent again.
    pub number: Option<u32>,
}

/// The content of a [`DataMessage`], at most [`MAX_CONTENT`] bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataContent {
    /// Text.
    Text(String),
    /// Any bytes.
    Bytes(Bytes),
}

impl DataContent {
    /// The content's length, in bytes.
    pub fn len(&self) -> usize {
        match self {
            DataContent::Text(text) => text.len(),
            DataContent::Bytes(bytes) => bytes.len(),
        }
    }

    /// The content's length as receivers get it, in bytes: in JSON a text with its escapes, bytes in Base64.
    pub fn sent_len(&self) -> usize {
        match self {
            DataContent::Text(text) => json_len(text),
            DataContent::Bytes(bytes) => bytes.len().div_ceil(3) * 4,
        }
    }

    /// Whether the content has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl DataMessage {
    /// Whether topic and content are within their bounds.
    pub fn is_valid(&self) -> bool {
        is_key(&self.topic, MAX_TOPIC) && self.content.len() <= MAX_CONTENT
    }
}

/// Length of a text in JSON without its quotes, in bytes.
pub fn json_len(text: &str) -> usize {
    let escaped = |b: u8| match b {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0x00..=0x1f => 6,
        _ => 1,
    };
    text.bytes().map(escaped).sum()
}

/// Whether a text has 1 to `max` letters, digits, `-`, `_` and `.` of ASCII.
pub(crate) fn is_key(text: &str, max: usize) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    (1..=max).contains(&text.len()) && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_has_escapes_and_base64() {
        assert_eq!(json_len("a\u{e9}\"\\\n\u{8}\u{1f}\u{7f}"), 3 + 4 * 2 + 6 + 1);
        assert_eq!(DataContent::Text("\0".repeat(1024)).sent_len(), 6 * 1024);
        let bytes = |count| DataContent::Bytes(vec![0; count].into()).sent_len();
        assert_eq!((bytes(0), bytes(1), bytes(3), bytes(4)), (0, 4, 4, 8));
    }

    #[test]
    fn topic_and_content_are_bounded() {
        let message = |topic: &str, bytes: usize| DataMessage {
            topic: topic.to_owned(),
            content: DataContent::Bytes(vec![0; bytes].into()),
            reliable: true,
            number: None,
        };
        assert!(message("chat", 0).is_valid() && message("a", MAX_CONTENT).is_valid());
        assert!(message(&"t".repeat(MAX_TOPIC), 1).is_valid());
        for (topic, bytes) in [("", 1), ("a b", 1), ("é", 1), ("chat", MAX_CONTENT + 1)] {
            assert!(!message(topic, bytes).is_valid(), "{topic}");
        }
        assert!(!message(&"t".repeat(MAX_TOPIC + 1), 1).is_valid());
    }
}
