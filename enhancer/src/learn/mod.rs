//! Online fine-tuning of networks in a running call: the rules, without threads, queues and clocks.
//!
//! Source: NeuroScaler §2 and LiveNAS, by the regression of [`LastLayer`](windlass_sr::LastLayer). A [`Trainer`] learns
//! one network's last layer for one stream and size, and says when its weights may be used. [`Progress`] is where the
//! stream finds them. [`own_weights`] does the same for a network that viewers run. [`TimeBudget`] and [`Waiting`] keep
//! the time and the memory of all of it within bounds. The thread is `pipeline::learn`.
//!
//! Worth: +0.04 to +0.26 dB PSNR-Y on faces and +0.08 to +1.74 dB on text over the generic network, after 8 to 28 s;
//! never worse in the evaluation (`lab/notes/networks.md`, *Learning the last layer from the call*).

mod budget;
pub mod own_weights;
mod progress;
#[cfg(test)]
mod tests;
mod trainer;
mod truth;
mod waiting;

pub(crate) use budget::TimeBudget;
pub(crate) use progress::{Of, Progress};
pub(crate) use trainer::{Report, Trainer};
pub(crate) use truth::truth_of;
pub(crate) use waiting::Waiting;
