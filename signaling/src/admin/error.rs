//! Errors of the admin API.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::http::StatusCode;
use axum::http::header::WWW_AUTHENTICATE;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_protocol::{ErrorCode, described};
use windlass_sfu::SfuClosed;

use crate::access::AccessError;
use crate::rights::ModerationError;

described! {
    /// Error codes, for programs. Stable.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum AdminErrorCode {
        /// The access token is missing or invalid.
        Unauthorized,
        /// The access token has expired.
        TokenExpired,
        /// The access token does not grant this. Or the server has no token keys, and does not allow requests, or only
        /// those of its own machine.
        Forbidden,
        /// The body or path is invalid. The status is 415 where the body is not JSON, and 422 where it does not fit.
        Malformed,
        /// There is no such room.
        UnknownRoom,
        /// There is no such participant in the room.
        UnknownParticipant,
        /// There is no such track in the room.
        UnknownTrack,
        /// The participant has no identity.
        NoIdentity,
        /// The server has no recorder.
        NoRecorder,
        /// The room is not recorded.
        NotRecorded,
        /// The recording cannot be written.
        NotWritable,
        /// Too many rooms have settings.
        TooManyRooms,
        /// There are too many bans and other rules.
        TooManyRules,
        /// The server is shutting down.
        ShuttingDown,
        /// Internal error.
        Internal,
    }
}

/// An error of the admin API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct AdminError {
    /// The reason, for programs.
    pub code: AdminErrorCode,
    /// Description of the error for people.
    pub message: String,
    /// Advice for people on what to do next.
    pub hint: String,
    #[serde(skip)]
    status: u16,
}

impl AdminErrorCode {
    /// The usual HTTP status of the code.
    pub(crate) fn status(self) -> u16 {
        use AdminErrorCode as C;
        match self {
            C::Malformed => 400,
            C::Unauthorized | C::TokenExpired => 401,
            C::Forbidden => 403,
            C::UnknownRoom | C::UnknownParticipant | C::UnknownTrack | C::NotRecorded => 404,
            C::NoIdentity | C::NoRecorder | C::TooManyRules | C::TooManyRooms => 409,
            C::NotWritable | C::Internal => 500,
            C::ShuttingDown => 503,
        }
    }

    /// What people can do next.
    pub(crate) fn hint(self) -> &'static str {
        use AdminErrorCode as C;
        match self {
            C::Unauthorized => {
                "Send a token with the grant `admin`: `Authorization: Bearer TOKEN`."
            }
            C::TokenExpired => "Make a new token (`windlass token`).",
            C::Forbidden => "Use a token with the grant `admin` for this room, or for `*`.",
            C::Malformed => "See /openapi.json.",
            C::UnknownRoom => {
                "See /admin/rooms: a room exists while it has participants, or has been configured."
            }
            C::UnknownParticipant | C::UnknownTrack => {
                "See /admin/rooms/{room}: it may have just gone."
            }
            C::NoIdentity => "Lock the room: only access tokens have identities.",
            C::NoRecorder => "Set `record-to` to a folder, and start the server again.",
            C::NotRecorded => "Record it: POST /admin/rooms/{room}/recording.",
            C::NotWritable => "See the folder of `record-to`: its space, owner and permissions.",
            C::TooManyRules => "End bans that are not needed, or wait until some end.",
            C::TooManyRooms => "Delete the settings of rooms that need none.",
            C::ShuttingDown => "Try again in a few seconds.",
            C::Internal => "Look into the server's log.",
        }
    }
}

impl AdminError {
    pub(crate) fn new(code: AdminErrorCode, message: impl Into<String>) -> Self {
        let hint = code.hint().to_owned();
        AdminError { code, message: message.into(), hint, status: code.status() }
    }

    /// The refusal of every request while the server has no token keys.
    pub(crate) fn no_keys() -> Self {
        let message = "this server has no token keys, with which requests could be authorized";
        let hint = "Configure a token key (`windlass key`), or `admin-local` for programs of the server's own machine.";
        AdminError { hint: hint.to_owned(), ..Self::new(AdminErrorCode::Forbidden, message) }
    }

    /// The refusal of requests from other machines, with `admin-local`.
    pub(crate) fn not_local() -> Self {
        let message = "without token keys, only a program on the server's own machine may do this";
        let hint =
            "Ask there, at localhost, directly and not from a page, or configure token keys.";
        AdminError { hint: hint.to_owned(), ..Self::new(AdminErrorCode::Forbidden, message) }
    }
}

impl From<AccessError> for AdminError {
    fn from(error: AccessError) -> Self {
        let code = match error.code() {
            ErrorCode::TokenExpired => AdminErrorCode::TokenExpired,
            ErrorCode::Forbidden => AdminErrorCode::Forbidden,
            _ => AdminErrorCode::Unauthorized,
        };
        AdminError::new(code, error.to_string())
    }
}

impl From<ModerationError> for AdminError {
    fn from(error: ModerationError) -> Self {
        let code = match error {
            ModerationError::UnknownParticipant => AdminErrorCode::UnknownParticipant,
            ModerationError::UnknownTrack => AdminErrorCode::UnknownTrack,
            ModerationError::NoIdentity => AdminErrorCode::NoIdentity,
            ModerationError::OtherGrant => AdminErrorCode::Malformed,
            ModerationError::Full(_) => AdminErrorCode::TooManyRules,
        };
        AdminError::new(code, error.to_string())
    }
}

impl From<SfuClosed> for AdminError {
    fn from(_: SfuClosed) -> Self {
        AdminError::new(AdminErrorCode::ShuttingDown, "the server is shutting down")
    }
}

impl From<JsonRejection> for AdminError {
    fn from(rejection: JsonRejection) -> Self {
        let status = rejection.status().as_u16();
        AdminError { status, ..AdminError::new(AdminErrorCode::Malformed, rejection.body_text()) }
    }
}

impl From<PathRejection> for AdminError {
    fn from(rejection: PathRejection) -> Self {
        AdminError::new(AdminErrorCode::Malformed, rejection.body_text())
    }
}

impl IntoResponse for AdminError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let challenge =
            (status == StatusCode::UNAUTHORIZED).then_some([(WWW_AUTHENTICATE, "Bearer")]);
        match challenge {
            Some(challenge) => (status, challenge, Json(self)).into_response(),
            None => (status, Json(self)).into_response(),
        }
    }
}
