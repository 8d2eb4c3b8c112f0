//! Decode, schedule, super-resolve and encode anchors for every tapped publisher.
//!
//! The server's half of enhancement (`docs/design.md`). Data flows one way:
//! [`TapInput`](windlass_media::TapInput) → decode → [`schedule`] → infer ([`engine`]) → encode →
//! [`EnhancerOutput`](windlass_media::EnhancerOutput). [`offline`] makes the same choices without
//! threads and clocks.

pub mod engine;
pub mod offline;
pub mod schedule;
