//! A seeded emulator of access links, without I/O or clocks: datagrams and time go in, datagrams come out when they
//! would arrive.
//!
//! A [`Link`] is one direction of a bottleneck: a queue with a bound in front of a transmitter of some rate, then
//! delay, jitter and loss. What it is like at a time says its [`Course`]; [`Profile`] names courses that are like real
//! access networks (`3g`, `lte`, …). The same course and seed give the same fate to the same datagrams, in a simulated
//! hour as on real sockets.

mod course;
mod link;
mod profile;

pub use course::{Conditions, Course};
pub use link::{Fate, Link, LinkStats};
pub use profile::{Profile, UnknownProfile};
