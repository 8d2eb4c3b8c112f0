//! Who offers: let in at the door, known by a token, and only then read.
//!
//! A body is foreign text that comes as slowly as its sender likes, so nobody's is read who may not enter.

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use windlass_protocol::{ErrorCode, limits};

use super::SDP;
use super::error::WishError;
use super::session::Way;
use crate::Shared;
use crate::access::Admission;
use crate::admin::bearer;
use crate::client::ClientAddr;
use crate::convert;
use crate::door::Permit;
use crate::entry;

/// Somebody who may enter a room, and what it offers.
pub(super) struct Caller<'a> {
    pub way: Way,
    pub room: &'a str,
    pub admission: Admission,
    /// Its place, held for as long as its session lasts.
    pub permit: Permit,
    /// The offer.
    pub sdp: String,
}

impl<'a> Caller<'a> {
    /// Lets somebody in who may enter the room, and reads the offer.
    pub async fn let_in(
        shared: &Shared,
        (way, room): (Way, &'a str),
        ClientAddr(client): ClientAddr,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Self, WishError> {
        limits::check_room(room)?;
        let permit = entry::at_door(shared, client)?;
        entry::count_join(shared, &permit)?;
        let admission = entry::admit(shared, room, bearer(headers), &[way.grant()])
            .map_err(convert::enter_error)?;
        let sdp = read(headers, SDP, body).await?;
        Ok(Caller { way, room, admission, permit, sdp })
    }
}

/// A request's body, where it is of the type that is wanted and no longer than a session description may be.
pub(super) async fn read(
    headers: &HeaderMap,
    wanted: &'static str,
    body: Body,
) -> Result<String, WishError> {
    let said = headers.get(CONTENT_TYPE).and_then(|said| said.to_str().ok());
    let bare = said.and_then(|said| said.split(';').next()).map(str::trim);
    if !bare.is_some_and(|bare| bare.eq_ignore_ascii_case(wanted)) {
        return Err(WishError::wrong_type(wanted));
    }
    // Also where the connection ends before the body does: then nobody hears the answer.
    let bytes = axum::body::to_bytes(body, limits::SDP_BYTES).await.map_err(|_| {
        let message = format!("the body is longer than {} bytes", limits::SDP_BYTES);
        WishError::new(ErrorCode::TooLarge, message)
    })?;
    String::from_utf8(bytes.into())
        .map_err(|_| WishError::new(ErrorCode::BadSdp, "the body is not UTF-8"))
}
