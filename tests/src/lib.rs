//! Tests that cross crates.

pub mod vp9;
