//! `windlass-lab eval`: the product's pipeline offline, against the original.
//!
//! Source: `lab/reports.md`. Decode a clip ([`clip`]) → scale it down, encode as Chromium does, decode ([`low_layer`])
//! → choose frames ([`select`]), make their anchors ([`anchors`], encoded by [`coding`]; [`captured`] ones as
//! publishers send them) → make HR pictures by every [`method`] ([`methods`] alone from the low layer, [`rebuild`] by
//! the codec, [`nemo_style`] as the papers do) with the delay that anchors have → [`score`] → [`row`]s, their means,
//! and in a [`sweep`] [`bd`]-rates and plots → [`report`]. [`clip_run`] is where they come together. [`display`]
//! compares at the size shown, [`controller`] and [`adapt`] other things in the same way; [`networks`] is what
//! `bench engine --quality` takes of it. Everything but the `…_ms` columns repeats exactly.

mod adapt;
mod anchors;
pub(crate) mod args;
mod bd;
mod captured;
pub(crate) mod clip;
mod clip_run;
mod codec_trace;
mod coding;
mod controller;
pub(crate) mod cpu_clock;
mod decay;
mod display;
#[cfg(test)]
mod face;
pub(crate) mod fed;
pub(crate) mod ffmpeg;
mod frame_worth;
pub(crate) mod frames;
mod gains;
pub(crate) mod low_layer;
mod messages;
mod method;
mod methods;
mod nemo_style;
pub(crate) mod networks;
pub(crate) mod pictures;
mod rebuild;
pub(crate) mod report;
pub(crate) mod row;
mod run;
mod rungs;
pub(crate) mod scale;
mod score;
mod select;
mod sharpen;
pub(crate) mod sr;
pub(crate) mod stats;
mod sweep;
#[cfg(test)]
pub(crate) mod synthetic;
mod table;
mod variants;
mod vmaf;

pub(crate) use args::{EvalArgs, name};
pub(crate) use run::run;
