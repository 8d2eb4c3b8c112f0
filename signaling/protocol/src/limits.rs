//! Limits of the fields of client messages. What exceeds them is refused, never cut.

use windlass_types::Attributes;
use windlass_types::attributes::{MAX_ATTRIBUTES, MAX_BYTES, MAX_KEY, MAX_VALUE, size};
use windlass_types::data::{MAX_CONTENT, MAX_TOPIC};

use crate::error::{ErrorCode, ProtocolError};
use crate::grant::AccessToken;
use crate::names::hides_text;

/// Maximum size of a message, in bytes of UTF-8: an offer with its lists, and JSON's escapes of line ends.
pub const MESSAGE_BYTES: usize = 224 * 1024;
/// Maximum size of a session description, in bytes: 64 sections of Chromium's, which have 2.4 kB each for video.
pub const SDP_BYTES: usize = 192 * 1024;
/// Maximum length of a room's name, in characters.
pub const ROOM_CHARS: usize = 64;
/// Maximum length of the display name of a participant or a track, in characters.
pub const NAME_CHARS: usize = 64;
/// Maximum size of a display name, in bytes of UTF-8.
pub const NAME_BYTES: usize = 128;
/// Maximum size of an access token's identity, in bytes of UTF-8.
pub const IDENTITY_BYTES: usize = 128;
/// Maximum size of an access token, in bytes.
pub const TOKEN_BYTES: usize = 4096;
/// Maximum length of a track id, in characters.
pub const TRACK_CHARS: usize = 64;
/// Maximum length of a seat token, in characters.
pub const SEAT_CHARS: usize = 256;
/// Maximum length of a participant id, in characters.
pub const PARTICIPANT_CHARS: usize = 64;
/// Maximum length of a ticket of `moved`, in characters.
pub const TICKET_CHARS: usize = 256;
/// Maximum length of a media id (`a=mid`), in characters.
pub const MID_CHARS: usize = 16;
/// Maximum number of anchor codecs that a client may name.
pub const ANCHOR_CODECS: usize = 16;
/// Maximum length of an anchor codec's name, in characters.
pub const CODEC_CHARS: usize = 16;
/// Maximum number of tracks that one offer may publish.
pub const PUBLISHED_TRACKS: usize = 16;
/// Maximum number of tracks that one offer may subscribe to.
pub const SUBSCRIBED_TRACKS: usize = 256;

/// Checks the name of a room, which is part of a link: 1 to [`ROOM_CHARS`] of `A–Z a–z 0–9 - _ .`.
///
/// # Errors
///
/// Fails if the name is empty, is too long, or has another character.
pub fn check_room(room: &str) -> Result<(), ProtocolError> {
    check_token("room", room, ROOM_CHARS)
}

/// Checks a track id: 1 to [`TRACK_CHARS`] letters, digits, `-`, `_` or `.`.
pub(crate) fn check_track(track: &str) -> Result<(), ProtocolError> {
    check_token("track", track, TRACK_CHARS)
}

/// Checks a participant id: 1 to [`PARTICIPANT_CHARS`] letters, digits, `-`, `_` or `.`.
pub(crate) fn check_participant(field: &str, id: &str) -> Result<(), ProtocolError> {
    check_token(field, id, PARTICIPANT_CHARS)
}

/// Checks an identity: 1 to [`IDENTITY_BYTES`] bytes.
pub(crate) fn check_identity(identity: &str) -> Result<(), ProtocolError> {
    if identity.is_empty() || identity.len() > IDENTITY_BYTES {
        return Err(malformed(format!("`identity` must have 1 to {IDENTITY_BYTES} bytes")));
    }
    Ok(())
}

/// Checks a seat token: 1 to [`SEAT_CHARS`] letters, digits, `-`, `_` or `.`.
pub(crate) fn check_seat(seat: &str) -> Result<(), ProtocolError> {
    check_token("seat", seat, SEAT_CHARS)
}

/// Checks a ticket: 1 to [`TICKET_CHARS`] letters, digits, `-`, `_` or `.`.
pub(crate) fn check_ticket(ticket: &str) -> Result<(), ProtocolError> {
    check_token("ticket", ticket, TICKET_CHARS)
}

/// Checks the topic of a message: 1 to [`MAX_TOPIC`] letters, digits, `-`, `_` or `.`.
pub(crate) fn check_topic(topic: &str) -> Result<(), ProtocolError> {
    check_token("topic", topic, MAX_TOPIC)
}

/// Checks the size of a message's content: at most [`MAX_CONTENT`] bytes.
pub(crate) fn check_content(bytes: usize) -> Result<(), ProtocolError> {
    if bytes > MAX_CONTENT {
        let message = format!("the content has {bytes} bytes; {MAX_CONTENT} are allowed");
        return Err(ProtocolError::new(ErrorCode::TooLarge, message));
    }
    Ok(())
}

/// Checks an attribute. Its key has 1 to [`MAX_KEY`] letters, digits, `-`, `_` or `.`. Its value has at most
/// [`MAX_VALUE`] bytes.
pub(crate) fn check_attribute(key: &str, value: &str) -> Result<(), ProtocolError> {
    check_token("key", key, MAX_KEY)?;
    if value.len() > MAX_VALUE {
        let message = format!("the value of `{key}` is longer than {MAX_VALUE} bytes");
        return Err(ProtocolError::new(ErrorCode::TooLarge, message));
    }
    Ok(())
}

/// Checks all attributes of a participant: at most [`MAX_ATTRIBUTES`], and at most [`MAX_BYTES`] bytes together.
pub(crate) fn check_attributes(attributes: &Attributes) -> Result<(), ProtocolError> {
    check_count("attributes", attributes.len(), MAX_ATTRIBUTES)?;
    attributes.iter().try_for_each(|(key, value)| check_attribute(key, value))?;
    let bytes = size(attributes);
    if bytes > MAX_BYTES {
        let message = format!("the attributes have {bytes} bytes; {MAX_BYTES} are allowed");
        return Err(ProtocolError::new(ErrorCode::TooLarge, message));
    }
    Ok(())
}

/// Checks the size of an access token: at most [`TOKEN_BYTES`].
pub(crate) fn check_access_token(token: &AccessToken) -> Result<(), ProtocolError> {
    if token.reveal().len() > TOKEN_BYTES {
        let message = format!("`token` is longer than {TOKEN_BYTES} bytes");
        return Err(ProtocolError::new(ErrorCode::TooLarge, message));
    }
    Ok(())
}

/// Checks a media id: 1 to [`MID_CHARS`] letters, digits, `-`, `_` or `.`.
pub(crate) fn check_mid(mid: &str) -> Result<(), ProtocolError> {
    check_token("mid", mid, MID_CHARS)
}

/// Checks the names of anchor codecs: at most [`ANCHOR_CODECS`], each with 1 to [`CODEC_CHARS`] letters, digits, `-`,
/// `_` or `.`.
pub(crate) fn check_codecs(names: &[String]) -> Result<(), ProtocolError> {
    check_count("anchor_codecs", names.len(), ANCHOR_CODECS)?;
    names.iter().try_for_each(|name| check_token("anchor_codecs", name, CODEC_CHARS))
}

/// Checks a display name. It has 1 to [`NAME_CHARS`] characters in at most [`NAME_BYTES`] bytes, which show as they
/// are.
///
/// # Errors
///
/// Fails if the name is too long, is blank, or has characters that are not shown as they are.
pub fn check_name(name: &str) -> Result<(), ProtocolError> {
    if name.len() > NAME_BYTES || name.chars().count() > NAME_CHARS {
        return Err(too_long("name", NAME_CHARS));
    }
    if name.trim().is_empty() {
        return Err(malformed("`name` must not be empty".to_owned()));
    }
    if hides_text(name) {
        let message =
            "`name` must not have invisible characters, marks of direction or stacks of accents";
        return Err(malformed(message.to_owned()));
    }
    Ok(())
}

/// Whether a text may be an identity: 1 to [`IDENTITY_BYTES`] bytes, which show as they are.
pub fn is_identity(text: &str) -> bool {
    (1..=IDENTITY_BYTES).contains(&text.len()) && !hides_text(text)
}

/// Checks the size of a session description: at most [`SDP_BYTES`].
pub(crate) fn check_sdp(sdp: &str) -> Result<(), ProtocolError> {
    if sdp.len() > SDP_BYTES {
        return Err(ProtocolError::new(
            ErrorCode::TooLarge,
            format!("the session description has {} bytes; {SDP_BYTES} are allowed", sdp.len()),
        ));
    }
    Ok(())
}

/// Checks that a list field has at most `max` entries.
pub(crate) fn check_count(field: &str, count: usize, max: usize) -> Result<(), ProtocolError> {
    if count > max {
        return Err(ProtocolError::new(
            ErrorCode::TooLarge,
            format!("`{field}` has {count} entries; {max} are allowed"),
        ));
    }
    Ok(())
}

fn check_token(field: &str, text: &str, max: usize) -> Result<(), ProtocolError> {
    if text.chars().count() > max {
        return Err(too_long(field, max));
    }
    if text.is_empty() || !text.chars().all(is_token_char) {
        return Err(malformed(format!(
            "`{field}` must be 1 to {max} letters, digits, `-`, `_` or `.`"
        )));
    }
    Ok(())
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn too_long(field: &str, max: usize) -> ProtocolError {
    ProtocolError::new(ErrorCode::TooLarge, format!("`{field}` is longer than {max} characters"))
}

fn malformed(message: String) -> ProtocolError {
    ProtocolError::new(ErrorCode::Malformed, message)
}
