//! Carries out what follows from rules for those who are here.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::{Deed, unix_now_ms};
use crate::Shared;

/// Rules end, and are told again, by the second.
const TICK: Duration = Duration::from_secs(1);

/// Runs for as long as the service does.
pub(crate) async fn obey(shared: Weak<Shared>) {
    let Some(rights) = shared.upgrade().map(|shared| shared.rights.clone()) else { return };
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let tick = tokio::select! {
            _ = ticks.tick() => true,
            () = rights.changed.notified() => false,
        };
        let Some(shared) = shared.upgrade() else { return };
        for deed in rights.judge(unix_now_ms(), tick) {
            carry_out(&shared, deed).await;
        }
    }
}

async fn carry_out(shared: &Arc<Shared>, deed: Deed) {
    // An SFU that has stopped has nobody left.
    match deed {
        Deed::End(id) => {
            tracing::info!(participant = %id, "put out");
            let _ = shared.services.sfu.leave(id).await;
        }
        Deed::Restrict(id, may) => {
            tracing::info!(participant = %id, ?may, "its grants have changed");
            let _ = shared.services.sfu.set_permissions(id, may).await;
        }
    }
}
