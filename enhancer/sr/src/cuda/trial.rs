//! Tests a network's kernels before their pictures are used.
//!
//! Kernels are compiled on the machine, perhaps by a compiler and for a device that we never tested. So each network
//! first runs on a picture of two by two tiles (and two strips), with weights of its own. The result is compared with
//! the definition in f64, and kernels with a wrong result are not used.

use std::sync::Arc;

use super::CudaError;
use super::loaded::Loaded;
use super::stream::ONE;
use super::stream::{GpuStream, Picture, Shape, Staging};
use super::strips::COLUMNS;
use crate::conformance::{Pictures, reference};
use crate::{InferError, Model};
use windlass_types::Size;

/// Maximum absolute error, in grey levels (RMS): two thirds of the residual's step, of which rounding makes 0.29.
const STEP: f64 = 0.01;
/// Maximum relative error, as a share of the residual (RMS), for half precision; a fault in a kernel gives far more.
const MAX_ERROR: f64 = 0.01;

/// Runs a picture on the network's device.
pub(super) fn trial(network: &Arc<Loaded>) -> Result<(), CudaError> {
    let (architecture, plan) = (network.architecture, &network.plan);
    let own = |side: usize| {
        let margin = plan.groups.iter().map(|group| group.margin).max().unwrap_or(0);
        side.saturating_sub(2 * margin)
    };
    let rows = plan.groups.iter().map(|group| group.rows).max().unwrap_or(0);
    let (mut width, mut height) = (own(plan.pitch) + 3, own(rows) + 2);
    if let Some(strips) = &plan.strips {
        // Two strips, and more than the shortest segment of one.
        (width, height) = (width.max(COLUMNS + 3), height.max(2 * strips.convs + 7));
    }
    let refused = |error: InferError| CudaError::Driver(error.to_string());
    let pictures = Pictures::new(&architecture, Size::saturating(width, height), 5);
    let input = pictures.input().map_err(refused)?;
    let model = Arc::new(Model::random(architecture, 7).map_err(|_| CudaError::NoPlan)?);
    let shape = Shape { network: network.clone(), width, height };
    let (weights, mut staging) = (network.weights(&model)?, Staging::new(&network.device, &shape)?);
    staging.take(&input);
    let mut stream = GpuStream::of_one(&network.device)?;
    stream.run(&shape, &mut [Picture { staging: &mut staging, weights: &weights, keep: None }])?;
    let expected = reference(&model, &input);
    let samples = &staging.residual.samples()[..shape.high()];
    let differences = samples.iter().zip(&expected);
    let difference =
        rms(differences.map(|(got, wanted)| f64::from(*got) / f64::from(ONE) - wanted));
    let all = rms(expected.iter().copied());
    tracing::debug!(%architecture, variant = %plan.variant, difference, of = all, "a trial on the GPU, in grey levels");
    if difference <= STEP + MAX_ERROR * all {
        return Ok(());
    }
    tracing::warn!(%architecture, variant = %plan.variant, difference, of = all, "kernel variant disabled: its result differs from the reference (in grey levels); the GPU uses another that passes, or the CPU takes over");
    Err(CudaError::Wrong)
}

/// Root mean square of the values.
fn rms(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    (values.map(|value| value * value).sum::<f64>() / count).sqrt()
}
