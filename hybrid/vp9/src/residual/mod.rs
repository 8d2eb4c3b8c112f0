//! Coefficients of a transform block: scans, tokens, quantiser (specification §6.4.23 – §6.4.26, §8.6).

pub(crate) mod quantiser;
pub(crate) mod scan;
mod tokens;

pub(crate) use tokens::{Coefficients, TokenReader};
