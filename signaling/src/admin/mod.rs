//! The admin API: rooms, participants and tracks seen and steered by an operator (`/admin/…`).
//!
//! JSON both ways; a refusal is an [`error::AdminError`]. Who may ask is decided before anything of a request but its
//! head is read ([`operator`]). What is known of rooms comes from the directory; what must happen in the SFU goes there.

pub(crate) mod error;
mod operator;
mod rights;
mod room;
mod switches;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::operator::bearer;
use crate::Shared;

/// The routes, with their description.
pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(room::list))
        .routes(routes!(room::show, room::configure, room::close))
        .routes(routes!(room::remove))
        .routes(routes!(room::mute))
        .routes(routes!(rights::door))
        .routes(routes!(rights::set_grants, rights::reset_grants))
        .routes(routes!(rights::bans))
        .routes(routes!(rights::ban, rights::unban))
        .routes(routes!(rights::waiting))
        .routes(routes!(rights::answer))
        .routes(routes!(rights::revoke, rights::reinstate))
        .routes(routes!(switches::set_policy))
        .routes(routes!(switches::switch_enhancer))
}
