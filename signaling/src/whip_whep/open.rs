//! The open sessions, by path.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::oneshot;
use windlass_sfu::{Offer, ParticipantId};

use super::protocol::Protocol;
use crate::rate::TokenBucket;

/// A session's path: protocol, room and a random id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub protocol: Protocol,
    pub room: String,
    pub id: String,
}

/// All sessions by path.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub(super) open: Mutex<HashMap<Key, Open>>,
}

/// An open session. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) participant: ParticipantId,
    /// Identity that began the session, and may change it. `None`: everybody who knows its path may.
    pub(super) owner: Option<String>,
    pub(super) agreed: Arc<AsyncMutex<Agreed>>,
    _end: oneshot::Sender<()>,
}

impl Open {
    /// A session of a participant, which ends with `end`.
    pub(super) fn new(
        participant: ParticipantId,
        owner: Option<String>,
        agreed: Arc<AsyncMutex<Agreed>>,
        end: oneshot::Sender<()>,
    ) -> Open {
        Open { participant, owner, agreed, _end: end }
    }
}

/// The last negotiation, which a restart of ICE repeats.
#[derive(Debug)]
pub(super) struct Agreed {
    pub(super) offer: Offer,
    /// Number of the ICE session, from 1.
    pub(super) ice_session: u32,
    pub(super) restarts: TokenBucket,
}

impl Agreed {
    /// Value of the `ETag` header for the ICE session.
    pub(super) fn tag(&self) -> String {
        format!("\"{}\"", self.ice_session)
    }
}

impl Sessions {
    /// Waits until all sessions have ended.
    pub(crate) async fn closed(&self) {
        while !self.open.lock().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
