//! Prediction of blocks (specification §8.5): from their own frame, or from others.

mod inter;
mod intra;

pub(crate) use inter::{InterBlock, ReferenceFrame, Scratch, predict_inter};
pub(crate) use intra::{IntraEdges, predict};
