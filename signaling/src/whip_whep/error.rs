//! Why a WHIP or WHEP request is refused.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use windlass_protocol::{ErrorCode, ProtocolError};
use windlass_sfu::RenditionError;

use crate::admission::Refused;

/// The error of a refused request: a status, with code and message as in signalling.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WhipWhepError {
    /// The code that signalling has for this error.
    code: ErrorCode,
    /// Description of the error for people.
    message: String,
    /// Advice for people on what to do next.
    hint: &'static str,
    #[serde(skip)]
    status: u16,
}

impl WhipWhepError {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        use ErrorCode as C;
        let status = match code {
            C::Unauthorized | C::TokenExpired => 401,
            C::Forbidden | C::Banned | C::Revoked | C::Locked => 403,
            C::TooLarge => 413,
            C::NoCodec => 422,
            C::RateLimited => 429,
            C::RoomFull | C::ServerFull | C::ShuttingDown => 503,
            C::Internal => 500,
            _ => 400,
        };
        let hint = match code {
            // The other hints are for pages with the SDK.
            C::NoCodec => {
                "Configure the client for Opus, and for VP9 (profile 0), VP8, H.264 (baseline, packetization mode 1) or AV1."
            }
            C::BadSdp => {
                "Post the offer as the WebRTC library writes it, with `a=mid` in each section."
            }
            C::RateLimited => "Try again later, and less often.",
            _ => code.hint(),
        };
        WhipWhepError { code, message: message.into(), hint, status }
    }

    fn with(status: u16, code: ErrorCode, message: &str, hint: &'static str) -> Self {
        WhipWhepError { hint, status, ..Self::new(code, message) }
    }

    pub(super) fn wrong_type(content_type: &str) -> Self {
        let message = format!("the body must be {content_type}");
        WhipWhepError { status: 415, ..Self::new(ErrorCode::Malformed, message) }
    }

    pub(super) fn no_session() -> Self {
        let hint = "It has ended; post another offer.";
        Self::with(404, ErrorCode::NotJoined, "there is no such session", hint)
    }

    pub(super) fn not_yours() -> Self {
        let hint = "Ask with an access token of the identity that began the session.";
        Self::with(403, ErrorCode::Forbidden, "the session belongs to another identity", hint)
    }

    pub(super) fn no_credentials() -> Self {
        let hint = "Send `a=ice-ufrag` and `a=ice-pwd`; candidates alone go with the `ETag`.";
        let message = "`If-Match: *` restarts ICE, but the body has no new credentials";
        Self::with(400, ErrorCode::Malformed, message, hint)
    }

    pub(super) fn no_tag() -> Self {
        let hint = "Send the `ETag` that came with the answer.";
        Self::with(428, ErrorCode::Malformed, "`If-Match` is missing", hint)
    }

    pub(super) fn other_tag() -> Self {
        let hint = "Send the `ETag` that came with the answer.";
        Self::with(412, ErrorCode::Malformed, "`If-Match` is not the session's `ETag`", hint)
    }

    pub(super) fn enhanced_without_av1() -> Self {
        let hint =
            "Offer AV1, or ask without `enhanced` and get the picture as its publisher sends it.";
        let message = "enhanced pictures are AV1, which the offer does not have";
        Self::with(422, ErrorCode::NoCodec, message, hint)
    }

    pub(super) fn nothing_to_watch() -> Self {
        let hint = "Try again when a participant publishes.";
        Self::with(409, ErrorCode::UnknownTrack, "no participant publishes in this room", hint)
    }
}

impl From<RenditionError> for WhipWhepError {
    fn from(error: RenditionError) -> Self {
        let hint = "Ask without `enhanced`, and get the picture as its publisher sends it.";
        let (status, code) = match error {
            RenditionError::Off | RenditionError::Plain => (501, ErrorCode::UnknownTrack),
            RenditionError::NotAllowed => (403, ErrorCode::Forbidden),
            RenditionError::Full => (503, ErrorCode::ServerFull),
            RenditionError::NotJoined => (409, ErrorCode::NotJoined),
            RenditionError::Closed => (503, ErrorCode::ShuttingDown),
        };
        Self::with(status, code, &error.to_string(), hint)
    }
}

impl From<ProtocolError> for WhipWhepError {
    fn from(error: ProtocolError) -> Self {
        WhipWhepError::new(error.code, error.message)
    }
}

impl From<Refused> for WhipWhepError {
    fn from(refused: Refused) -> Self {
        let code = match refused {
            Refused::Full => ErrorCode::ServerFull,
            Refused::Sockets | Refused::Joins | Refused::Share(_) => ErrorCode::RateLimited,
        };
        WhipWhepError::new(code, refused.to_string())
    }
}

impl IntoResponse for WhipWhepError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        match self.status {
            401 => (status, [(WWW_AUTHENTICATE, "Bearer")], Json(self)).into_response(),
            429 => (status, [(RETRY_AFTER, "60")], Json(self)).into_response(),
            409 | 503 => (status, [(RETRY_AFTER, "2")], Json(self)).into_response(),
            _ => (status, Json(self)).into_response(),
        }
    }
}
