//! Applies the effects of rules to participants and recordings on this server.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::record;
use crate::rights::{Effect, unix_now_ms};
use crate::shared::Shared;

/// Interval at which rules end and are renewed.
const TICK: Duration = Duration::from_secs(1);

/// Applies effects for as long as the service exists.
pub(crate) async fn run_effects(shared: Weak<Shared>) {
    let Some(service) = shared.upgrade() else { return };
    record::resume(&service).await;
    let rights = service.rights.clone();
    drop(service);
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let tick = tokio::select! {
            _ = ticks.tick() => true,
            () = rights.changed.notified() => false,
        };
        let Some(shared) = shared.upgrade() else { return };
        for effect in rights.evaluate(unix_now_ms(), tick) {
            apply(&shared, effect).await;
        }
        record::follow(&shared).await;
    }
}

async fn apply(shared: &Arc<Shared>, effect: Effect) {
    // A stopped SFU has no participants: its errors are ignored.
    match effect {
        Effect::End(id) => {
            tracing::info!(participant = %id, "removed by a rule");
            let _ = shared.services.sfu.leave(id).await;
        }
        Effect::Restrict(id, may) => {
            tracing::info!(participant = %id, ?may, "grants changed by a rule");
            let _ = shared.services.sfu.set_permissions(id, may).await;
        }
    }
}
