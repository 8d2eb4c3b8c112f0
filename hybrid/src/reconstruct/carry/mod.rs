//! Pictures of anchored frames, carried to those after them.
//!
//! An anchored frame is a [`Reference`](reference::Reference): its low picture and its HR luma. Dense flow leads from
//! each cell of the frame of now straight to its place in a reference ([`searches`]); how far what is there can be
//! believed is measured in the low pictures ([`plan`]), and so much of it is blended over what the filters make of the
//! low picture of now ([`warp`]).

pub(crate) mod cells;
pub(crate) mod colour;
pub(crate) mod effort;
pub(crate) mod picture;
pub(crate) mod plan;
pub(crate) mod reference;
pub(crate) mod searches;
pub(crate) mod warp;
