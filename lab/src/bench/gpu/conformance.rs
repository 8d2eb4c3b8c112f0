//! Checks that this GPU gives what the networks' definition says: every kind of network, at odd and tiny sizes.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde::Serialize;
use windlass_sr::conformance::{self, Case};
use windlass_sr::cuda::Variant;

use super::variant::engine;

/// Maximum error relative to the residual: half precision has 2⁻¹¹ in each of some layers, and the result has steps
/// of 1/64 grey level.
const TOLERANCE: f64 = 6e-3;

/// A network whose results on the GPU conform.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Conforms {
    /// The network.
    pub model: String,
    /// Greatest error relative to the residual.
    pub error: f64,
}

/// Checks all kinds of networks, by each variant that they have. The error names all that do not conform.
pub(super) fn check(variants: &[Option<Variant>]) -> Result<Vec<Conforms>> {
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for case in Case::all() {
        for &variant in variants {
            match check_case(&case, variant) {
                Ok(conforms) => all.extend(conforms),
                Err(why) => {
                    eprintln!("{case}: {why:#}");
                    failures.push(format!("{case}: {why:#}"));
                }
            }
        }
    }
    ensure!(
        failures.is_empty(),
        "{} of {} do not conform: {}",
        failures.len(),
        all.len() + failures.len(),
        failures.join("; ")
    );
    Ok(all)
}

fn check_case(case: &Case, variant: Option<Variant>) -> Result<Option<Conforms>> {
    let Some(mut engine) = engine(&Arc::new(case.model()), variant)? else { return Ok(None) };
    let error = conformance::check(&mut engine, case)?;
    let device = engine.device();
    let model = format!("{case}, {}", device.variant);
    eprintln!("{model}: error {error:.1e}, {}", device.plan);
    ensure!(error < TOLERANCE, "an error of {error:.1e}, {TOLERANCE:.1e} is allowed");
    Ok(Some(Conforms { model, error }))
}
