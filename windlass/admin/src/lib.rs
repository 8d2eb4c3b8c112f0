//! A client of the admin API: what an operator asks of a server, without curl.
//!
//! [`Order`] is what is asked for, [`AdminCommand`] the command line that says it. [`perform`] sends it by a [`Client`]
//! and gives a [`Report`], as JSON and as text for people. The API is that of `/openapi.json`; a server of a cluster
//! answers for all of them. [`token`] makes access tokens.

mod client;
mod command;
mod find;
mod order;
mod report;
pub mod token;

pub use client::{AdminError, Client, Request};
pub use command::AdminCommand;
pub use order::{Order, perform};
pub use report::Report;
