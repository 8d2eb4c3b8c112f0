//! Pictures of anchored frames, carried to those after them.
//!
//! An anchored frame is a [`Reference`](reference::Reference): its low picture and its HR luma. Dense flow leads from
//! each cell of the present frame straight to its place in a reference ([`searches`]). The low pictures show how far
//! the reference can be believed there ([`plan`]). That share of it is blended over what the filters make of the
//! present low picture ([`warp`]).

pub(crate) mod cells;
pub(crate) mod colour;
pub(crate) mod effort;
pub(crate) mod picture;
pub(crate) mod plan;
pub(crate) mod reference;
pub(crate) mod searches;
pub(crate) mod warp;
