//! The product's own decisions, in simulated time: the scheduler on made-up frames ([`streams`]), and many servers
//! with their rooms ([`servers`]).

mod mean;
pub(crate) mod servers;
pub(crate) mod streams;
