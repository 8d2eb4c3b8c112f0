//! Requests about an open session, which WHIP and WHEP have in common.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::error::WhipWhepError;
use super::open::Key;
use super::protocol::Protocol;
use super::session;
use crate::admin::bearer;
use crate::shared::Shared;

/// The path of a session.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct SessionPath {
    /// The room's name
    room: String,
    /// The session
    session: String,
}

/// A request about a session.
pub(crate) struct SessionRequest {
    shared: Arc<Shared>,
    path: SessionPath,
    headers: HeaderMap,
}

impl FromRequestParts<Arc<Shared>> for SessionRequest {
    type Rejection = PathRejection;

    async fn from_request_parts(
        parts: &mut Parts,
        shared: &Arc<Shared>,
    ) -> Result<Self, PathRejection> {
        let Path(path) = Path::from_request_parts(parts, shared).await?;
        Ok(SessionRequest { shared: shared.clone(), path, headers: parts.headers.clone() })
    }
}

impl SessionRequest {
    /// Takes candidates, or restarts ICE.
    pub(super) async fn patch(
        self,
        protocol: Protocol,
        body: Body,
    ) -> Result<Response, WhipWhepError> {
        let SessionRequest { shared, path, headers } = self;
        session::patch(&shared, &path.key(protocol), bearer(&headers), &headers, body).await
    }

    /// Ends the session.
    pub(super) fn end(self, protocol: Protocol) -> Result<StatusCode, WhipWhepError> {
        let SessionRequest { shared, path, headers } = self;
        session::end(&shared, &path.key(protocol), bearer(&headers))
    }
}

impl SessionPath {
    fn key(self, protocol: Protocol) -> Key {
        Key { protocol, room: self.room, id: self.session }
    }
}
