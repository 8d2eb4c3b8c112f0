//! A client of the admin API: commands for operators, without curl.
//!
//! An [`Action`] is what an operator asks for; [`AdminCommand`] is its command line. [`perform`] sends it through a
//! [`Client`] and returns a [`Report`], as JSON and as text. `/openapi.json` describes the API. A server of a cluster
//! answers for all of them. [`token`] makes access tokens.

mod action;
mod client;
mod command;
mod find;
mod report;
pub mod token;

pub use action::{Action, perform};
pub use client::{AdminError, Client, Request};
pub use command::AdminCommand;
pub use report::Report;
