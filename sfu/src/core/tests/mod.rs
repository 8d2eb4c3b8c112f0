//! Tests through the whole core.

mod audio;
mod backup;
pub(super) mod calls;
mod captured;
mod connection;
mod faults;
mod floods;
mod forward;
pub(super) mod harness;
mod mutator;
pub(super) mod offers;
mod reach;
mod recording;
mod relay;
mod rendition;
mod scale;
mod spatial;
mod ways;
