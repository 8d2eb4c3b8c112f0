//! Choice of tiles: of a chosen frame for its anchor, and of a publisher's next frame to ask for.
//!
//! Pure: time is an argument.

mod ledger;
mod regions;
mod subjects;

pub use ledger::{TileConfig, TileEnergy, TileLedger};
pub use regions::{RegionConfig, RegionLedger, Request, stakes};
pub use subjects::Subjects;
