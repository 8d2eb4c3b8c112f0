//! Settings of the whole server: the enhancer, and the policy of rooms without their own.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_types::AnchorPolicy;

use super::error::{AdminError, AdminErrorCode};
use super::operator::Operator;
use crate::redact::pseudonym;
use crate::shared::Shared;

/// Whether the enhancer runs.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Enhancer {
    /// In requests: whether to run the enhancer. In answers: whether it runs.
    enabled: bool,
}

/// Stop the enhancer, while calls go on with plain video, or start it again.
#[utoipa::path(post, path = "/admin/enhancer", tag = "server", request_body = Enhancer,
    responses((status = 200, description = "Whether it runs now", body = Enhancer), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn switch_enhancer(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    wanted: Result<Json<Enhancer>, JsonRejection>,
) -> Result<Json<Enhancer>, AdminError> {
    let Json(wanted) = wanted?;
    let switch = shared.services.enhancer_switch.clone();
    // Stopping waits for the enhancer's threads.
    let switched = tokio::task::spawn_blocking(move || switch(wanted.enabled)).await;
    let enabled = switched
        .map_err(|_| AdminError::new(AdminErrorCode::Internal, "the enhancer did not answer"))?;
    tracing::info!(enabled, "enhancer switched");
    Ok(Json(Enhancer { enabled }))
}

/// Draining of a server before it ends.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Draining {
    /// Maximum time in seconds that rooms have to end; 0: the server ends at once.
    seconds: u64,
}

/// End this server when its rooms have ended, or gone to other servers, as SIGTERM does. Needs a token for `*`.
#[utoipa::path(post, path = "/admin/drain", tag = "server",
    responses((status = 200, description = "It takes no new rooms", body = Draining), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn drain(_: Operator, State(shared): State<Arc<Shared>>) -> Json<Draining> {
    tracing::info!("drain ordered by operator");
    Json(Draining { seconds: (shared.services.drain)().as_secs() })
}

/// The policy by which anchors are chosen.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoomPolicy {
    /// The room; by default all rooms without a policy of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    room: Option<String>,
    /// The policy, such as `latency-sensitive`. `null` for a room: the policy of all rooms. `null` for all rooms: the
    /// policy of the configuration.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(value_type = Option<String>, required = true)]
    policy: Option<AnchorPolicy>,
}

/// Set the policy by which anchors are chosen, of a room, or of all rooms without their own.
#[utoipa::path(post, path = "/admin/policy", tag = "server", request_body = RoomPolicy,
    responses((status = 200, description = "What holds now", body = RoomPolicy), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn set_policy(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    wanted: Result<Json<RoomPolicy>, JsonRejection>,
) -> Result<Json<RoomPolicy>, AdminError> {
    let Json(wanted) = wanted?;
    let RoomPolicy { room, policy } = wanted.clone();
    if !shared.services.sfu.set_policy(room, policy).await? {
        let message = "too many rooms have policies of their own";
        return Err(AdminError::new(AdminErrorCode::TooManyRooms, message));
    }
    tracing::info!(room = ?wanted.room.as_deref().map(pseudonym), policy = ?wanted.policy, "policy set");
    Ok(Json(wanted))
}
