//! `windlass-lab loadtest`: many calls at once on a running server, and what came of them.
//!
//! A recording ([`media`]: files, a clip encoded here, or the drawn [`scene`]) → [`publisher`]s play it ([`recording`],
//! [`packets`]) over WebRTC, on either of two stacks ([`link`], [`signal`]) → the server → [`subscriber`]s receive
//! video ([`arrivals`]) and anchors ([`watching`]) and count ([`tally`]), in this process or in child processes
//! ([`children`]). [`janus`] and [`signalling`] speak to other servers. [`access`] and [`downlinks`] put clients behind
//! emulated links. Without anchors, packets carry the time at which they were sent ([`stamp`]). [`fn@run`] drives the
//! clients and samples the server's metrics ([`scrape`], [`process`]) into a [`measurement`] with its [`course`].
//! [`report`] computes the results, [`table`] and [`trace`] print them.

mod access;
mod args;
mod arrivals;
mod balance;
mod children;
mod coded;
mod course;
mod downlinks;
mod given_up;
mod janus;
mod link;
mod measurement;
mod media;
mod packets;
mod process;
mod publisher;
mod recording;
mod report;
mod run;
pub(crate) mod scene;
mod scrape;
mod signal;
mod signalling;
mod stalls;
mod stamp;
mod subscriber;
mod table;
mod taken;
mod tally;
mod trace;
mod visits;
mod watching;

pub(crate) use args::LoadtestArgs;
pub(crate) use link::any_for;
pub(crate) use media::scene_frames;
pub(crate) use run::{play, run};
pub(crate) use taken::Taken;
