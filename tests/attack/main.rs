//! Attacks on the real server: each finding of a hostile review is a test here, beside an honest call that must not
//! notice.
//!
//! One attack in a file, named after what is attacked. A test opens a [`Scene`](honest::Scene), does its harm, says
//! what must be true of the server, and closes the scene, which says what must be true of everybody else.

mod closed;
#[path = "../../windlass/tests/cluster/mod.rs"]
mod cluster;
mod connection;
mod consent;
mod datagrams;
mod fair;
mod faults;
mod flood;
mod forger;
mod front;
mod guest;
mod honest;
mod keyframes;
mod mallory;
mod offers;
mod office;
mod reports;
mod rights;
mod rogue;
#[path = "../../windlass/tests/server/mod.rs"]
mod server;
mod sockets;
mod viewer;
