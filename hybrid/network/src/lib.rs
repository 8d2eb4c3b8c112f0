//! Frame networks: small networks that a viewer runs on every frame, after the picture is rebuilt.
//!
//! A frame network sees the low luma `Y` and the luma `T` of the picture that the decoder has rebuilt from it, `scale`
//! times as large, by filters and carried anchors. It answers with a residual `r`, and the viewer is shown
//! `clamp(T + r)`. Nothing that it makes is used for later pictures, so an error of it lasts one frame.
//!
//! - [`Tier`] has the networks that are built in.
//! - [`Network`] is one in integers; [`packed`] has its bytes.
//! - `Weights`, with the feature `file`, reads what training writes, and [`Network`] is made of it.
//! - [`Runner`] runs it over pictures, and over those parts alone that have changed.
//! - [`LastLayer`] is what a stream may have of its own in place of a built-in network's; [`difference`] has its bytes.
//! - [`Scene`] says what pictures it was learned from.
//!
//! The result is in integers and the same on every machine, bit for bit.
//!
//! ```
//! use windlass_network::{Changed, Runner, Tier};
//! use windlass_vp9::{Plane, simd::Isa};
//!
//! let network = &Tier::Xs.networks()[0];
//! let scale = network.scale();
//! let (low, high) = (Plane::filled(64, 48, 90), Plane::filled(64 * scale, 48 * scale, 90));
//! let mut shown = Plane::filled(64 * scale, 48 * scale, 0);
//! let mut runner = Runner::new(Isa::detect());
//! runner.run(network, (&low).into(), (&high).into(), Changed::All, &mut shown);
//! assert!(shown.row(50)[64].abs_diff(90) < 4);
//! ```

// `by_isa!` gives kernels two vector types; some need one.
#![allow(clippy::extra_unused_type_parameters)]

pub mod built_in;
pub mod difference;
#[cfg(feature = "file")]
pub mod file;
mod integers;
mod kernel;
mod last_layer;
pub mod packed;
mod ring;
#[cfg(feature = "file")]
mod rounding;
mod runner;
mod scene;
mod size;
mod spans;

pub use built_in::Tier;
#[cfg(feature = "file")]
pub use file::{FileError, Weights};
pub use integers::Network;
pub use last_layer::{LastLayer, LastLayerError};
pub use packed::PackedError;
#[cfg(feature = "file")]
pub use rounding::RoundingError;
pub use runner::{Changed, Features, Runner};
pub use scene::{SCENE_BYTES, Scene};
