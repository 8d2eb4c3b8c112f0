//! `windlass eval`: the product's pipeline offline, against the original.
//!
//! Source: `docs/design.md`, *Reports*. Decode a clip ([`clip`]) → halve, encode as Chromium does,
//! decode ([`low_layer`]) → choose, super-resolve and code anchors ([`anchors`]) → rebuild HR with
//! the delay that anchors have ([`methods`]) → score ([`score`]) → report ([`report`]).
//! Everything but the `…_ms` columns repeats exactly.

mod anchors;
pub mod args;
mod clip;
mod cpu_clock;
pub mod ffmpeg;
pub mod frames;
mod low_layer;
mod methods;
mod metrics;
mod pictures;
pub mod report;
mod run;
mod score;
mod sr;
mod vmaf;
pub mod vpx;

pub use args::EvalArgs;
pub use run::run;
