//! Attacks on the real server: each finding of a hostile review is a test here, beside an honest call that must not notice.
//!
//! One attack in a file, named after what is attacked. A test opens a [`Scene`](honest::Scene), does its harm, says what must
//! be true of the server, and closes the scene, which says what must be true of everybody else.

#[path = "../../windlass/tests/cluster/mod.rs"]
mod cluster;
mod datagrams;
mod faults;
mod flood;
mod guest;
mod honest;
mod mallory;
mod office;
mod rogue;
#[path = "../../windlass/tests/server/mod.rs"]
mod server;
mod sockets;
