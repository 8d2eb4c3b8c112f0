//! Which participant a datagram is of, and where participants receive.

pub(super) mod addresses;
pub(super) mod nomination;
pub(super) mod paths;
pub(super) mod routes;
pub(super) mod ufrag;
pub(super) mod unauthenticated;
