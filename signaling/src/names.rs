//! The names that participants gave themselves. The SFU knows identities only.

use std::collections::HashMap;

use parking_lot::Mutex;
use windlass_sfu::ParticipantId;

/// Who is called what. Holds one entry for each joined socket.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Mutex<HashMap<ParticipantId, String>>,
}

impl Names {
    pub(crate) fn set(&self, id: ParticipantId, name: String) {
        self.names.lock().insert(id, name);
    }

    pub(crate) fn forget(&self, id: ParticipantId) {
        self.names.lock().remove(&id);
    }

    /// The participant's name; one who has just gone is "Someone".
    pub(crate) fn get(&self, id: ParticipantId) -> String {
        self.names.lock().get(&id).cloned().unwrap_or_else(|| "Someone".to_owned())
    }
}
