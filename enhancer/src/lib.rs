//! Decode, schedule, super-resolve and encode anchors for every tapped publisher.
//!
//! The server's half of enhancement (`docs/design.md`). Data flows one way:
//! [`TapInput`](windlass_types::TapInput) → decode → [schedule](windlass_scheduler) → [infer](windlass_sr) → encode →
//! [`EnhancerOutput`](windlass_types::EnhancerOutput), on threads that [`pipeline::Enhancer`] runs.
//! [`offline`] makes the same choices without threads and clocks.

pub mod control;
mod learn;
mod machine_memory;
pub mod offline;
pub mod pipeline;
mod stats;
pub mod tiles;
pub mod twin;

pub use machine_memory::allowed_mib;
pub use pipeline::{Enhancer, EnhancerConfig, EnhancerInput, StartError, Tuning};
pub use stats::{
    EnhancerStats, NetworkStats, PipelineCounters, QueueLengths, SlotStats, StageLatencies,
    StageSlots,
};

/// The README of this crate, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
