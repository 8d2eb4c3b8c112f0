#![doc = include_str!("../README.md")]

pub mod admission;
mod cadence;
mod candidate;
mod compute;
mod config;
mod cost;
mod counters;
mod frames;
mod gain;
pub mod job_time;
mod lateness;
mod margin;
pub mod memory;
mod networks;
mod planned;
pub mod policy;
pub mod promise;
pub mod queue;
mod quota;
mod rank;
mod scheduler;
mod select;
pub mod shares;
pub mod slots;
mod stream;
mod streams;
pub mod worth;

pub use candidate::{Candidate, Captured, Chosen, Tier};
pub use config::SchedulerConfig;
pub use cost::CostModel;
pub use counters::SchedulerCounters;
pub use gain::GainEstimator;
pub use networks::NetworkCost;
pub use policy::{Policy, Selection};
pub use promise::Terms;
pub use scheduler::{Scheduler, devices_for};

#[cfg(test)]
mod planned_tests;
#[cfg(test)]
mod policy_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod worth_tests;
