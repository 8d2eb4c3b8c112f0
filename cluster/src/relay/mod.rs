//! The relay between SFUs that share rooms: [`links`] carry [`messages`]. Source: decision 014.

pub mod links;
pub mod messages;
