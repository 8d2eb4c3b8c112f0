//! `windlass plan`: what a server of so many publishers takes, and what its enhancement gives.
//!
//! [`Constants`] are what parts were measured to take, on a machine that they name: shipped with the program, or
//! written by `windlass-lab calibrate` on the operator's own. [`Demand`] is what an operator asks, [`Answer`] what
//! follows: sums of constants, and nothing else. [`Gains`] are what `windlass-lab eval` measured on clips. [`PlanArgs`]
//! is the command.

mod command;
mod constants;
mod gains;
mod model;
mod report;

pub use command::{PlanArgs, PlanError};
pub use constants::{
    BudgetCost, Constants, ConstantsError, Forwarding, LayerCost, Machine, Memory, NetworkCost,
    Resting,
};
pub use gains::{Content, Gain, Gains, Spread, Way};
pub use model::{Answer, Cores, Demand, HEADER_BYTES, Kbps, PictureSize};
