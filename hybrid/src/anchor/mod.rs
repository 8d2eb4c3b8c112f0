//! Anchors: the HR detail of frames or [tiles](windlass_types::tiles), encoded ([`codec`]).
//! [Messages](windlass_types::message) carry them.

pub mod codec;
pub mod colour;
#[cfg(test)]
pub(crate) mod fixture;
pub mod mosaic;
pub mod payload;
pub mod prior;
