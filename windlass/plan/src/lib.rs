//! `windlass plan`: computes what a server of many publishers takes, and what its enhancement gives.
//!
//! [`Constants`] are measured costs of parts on a named machine: shipped with the program, or written by `windlass-lab
//! calibrate` on the operator's own. [`Demand`] is what an operator asks, and [`Answer`] the result: sums of constants,
//! and nothing else. [`Gains`] are what `windlass-lab eval` measured on clips. [`PlanArgs`] is the command.

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
pub use gains::{Content, DetailSource, Gain, Gains, Spread};
pub use model::{Answer, Cores, Demand, HEADER_BYTES, Kbps};
