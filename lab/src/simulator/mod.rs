//! What decides in the product, in simulated time: the scheduler on made-up frames ([`streams`]), and many servers with their
//! rooms ([`servers`]).

pub mod servers;
pub mod streams;
