//! What a publisher sends, and what it is asked for: layers, key frames, bitrates, stills and backups.

pub(super) mod backup;
pub(super) mod backup_requests;
pub(super) mod dynacast;
pub(super) mod key_frames;
pub(super) mod layers;
mod narrow;
pub(super) mod params;
pub(super) mod requests;
pub(super) mod stills;
