//! The admin API (`/admin/…`), by which an operator inspects and controls rooms, participants and tracks.
//!
//! Requests and answers are JSON; errors are [`error::AdminError`]s. Authorization needs the head of a request only
//! ([`operator`]), so bodies of other requests are not read. The state of rooms comes from the directory.

pub(crate) mod error;
pub(crate) mod everywhere;
mod operator;
mod recording;
mod rights;
mod room;
mod switches;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::operator::bearer;
use crate::shared::Shared;

/// The routes, with their OpenAPI description.
pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(room::list))
        .routes(routes!(room::show, room::configure, room::close))
        .routes(routes!(room::remove))
        .routes(routes!(room::mute))
        .routes(routes!(recording::record, recording::recording, recording::end_recording))
        .routes(routes!(rights::entry))
        .routes(routes!(rights::set_grants, rights::reset_grants))
        .routes(routes!(rights::bans))
        .routes(routes!(rights::ban, rights::unban))
        .routes(routes!(rights::waiting))
        .routes(routes!(rights::answer))
        .routes(routes!(rights::revoke, rights::reinstate))
        .routes(routes!(switches::set_policy))
        .routes(routes!(switches::switch_enhancer))
        .routes(routes!(switches::drain))
}
