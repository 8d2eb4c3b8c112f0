//! Clients that offer. Admission control and the access token are checked first; the body is read after that.
//!
//! A body may arrive slowly, so the bodies of clients that may not enter are not read.

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use windlass_protocol::{ErrorCode, limits};

use super::error::WhipWhepError;
use super::protocol::{Protocol, SDP};
use crate::access::Admission;
use crate::admin::bearer;
use crate::admission::Permit;
use crate::client::ClientAddr;
use crate::convert;
use crate::entry;
use crate::shared::Shared;

/// A client that may enter a room, and its offer.
pub(super) struct Caller<'a> {
    pub protocol: Protocol,
    pub room: &'a str,
    pub admission: Admission,
    /// Slot of admission control, held for as long as the client's session lasts.
    pub permit: Permit,
    /// The offer.
    pub sdp: String,
}

impl<'a> Caller<'a> {
    /// Admits a client that may enter the room, and reads the offer.
    pub(super) async fn admit(
        shared: &Shared,
        protocol: Protocol,
        room: &'a str,
        ClientAddr(client): ClientAddr,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Self, WhipWhepError> {
        limits::check_room(room)?;
        let permit = entry::socket(shared, client)?;
        entry::count_join(shared, &permit)?;
        let admission = entry::admit(shared, room, bearer(headers), &[protocol.grant()])
            .map_err(convert::enter_error)?;
        let sdp = read(headers, SDP, body).await?;
        Ok(Caller { protocol, room, admission, permit, sdp })
    }
}

/// The body of a request, if it has the expected content type and is no longer than a session description may be.
pub(super) async fn read(
    headers: &HeaderMap,
    content_type: &'static str,
    body: Body,
) -> Result<String, WhipWhepError> {
    let actual = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let bare = actual.and_then(|value| value.split(';').next()).map(str::trim);
    if !bare.is_some_and(|bare| bare.eq_ignore_ascii_case(content_type)) {
        return Err(WhipWhepError::wrong_type(content_type));
    }
    // Also where the connection ends before the body; then the answer does not matter.
    let bytes = axum::body::to_bytes(body, limits::SDP_BYTES).await.map_err(|_| {
        let message = format!("the body is longer than {} bytes", limits::SDP_BYTES);
        WhipWhepError::new(ErrorCode::TooLarge, message)
    })?;
    String::from_utf8(bytes.into())
        .map_err(|_| WhipWhepError::new(ErrorCode::BadSdp, "the body is not UTF-8"))
}
