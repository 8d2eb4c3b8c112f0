//! Whether this GPU gives what the networks' definition says: every kind of network, at odd and tiny sizes.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use windlass_enhancer::engine::CudaEngine;
use windlass_enhancer::engine::conformance::{self, Case};

/// Half precision, 2⁻¹¹ relative to the residual in each of some layers, and steps of 1/64 grey level.
const TOLERANCE: f64 = 6e-3;

/// A network that conforms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conforms {
    /// The network.
    pub model: String,
    /// Greatest error relative to the residual.
    pub error: f64,
}

/// Checks all of them.
pub fn check() -> Result<Vec<Conforms>> {
    let check = |case: Case| {
        let model = case.to_string();
        let mut engine = CudaEngine::new(&Arc::new(case.model())).context(model.clone())?;
        let error = conformance::check(&mut engine, &case).context(model.clone())?;
        eprintln!("{model}: error {error:.1e}, {}", engine.device().plan);
        ensure!(error < TOLERANCE, "{model}: an error of {error:.1e}, {TOLERANCE:.1e} is allowed");
        Ok(Conforms { model, error })
    };
    Case::all().into_iter().map(check).collect()
}
