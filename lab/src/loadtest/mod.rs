//! `windlass-lab loadtest`: many calls at once on a running server, and what came of them.
//!
//! A recording ([`media`]: files, a clip coded here, or the drawn [`scene`]) → [`publisher`]s play it ([`recording`],
//! [`packets`]) over WebRTC ([`link`], [`signal`]) → the server → [`subscriber`]s take video ([`arrivals`]) and anchors
//! ([`watching`]) and count ([`tally`]), here or in processes of their own ([`children`]). The server may be another one
//! ([`janus`], [`signalling`]). Clients may be behind emulated links ([`access`], [`downlinks`]); without anchors packets carry the time at which they were sent ([`stamp`]). [`run`] brings them together with the server's own figures ([`scrape`],
//! [`process`]); [`report`] and [`table`] say what came out, [`trace`] when.

mod access;
mod args;
mod arrivals;
mod balance;
mod children;
mod downlinks;
mod janus;
mod latencies;
mod link;
mod media;
mod packets;
mod process;
mod publisher;
mod recording;
mod report;
mod run;
pub mod scene;
mod scrape;
mod signal;
mod signalling;
mod stamp;
mod subscriber;
mod table;
mod tally;
mod trace;
mod visits;
mod watching;

pub use args::LoadtestArgs;
pub use link::any_for;
pub use run::run;
