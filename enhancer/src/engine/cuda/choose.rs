//! Which of a network's variants runs on a card.
//!
//! What the device can run is compiled and put on [trial](super::trial); where more than one passes, each runs pictures and
//! the quickest is taken. That is kept beside the compiled kernels, so that the next start measures nothing. Variants in
//! e4m3 run only where they are asked for.

use std::sync::Arc;

use super::CudaError;
use super::compile::Kept;
use super::driver::Device;
use super::loaded::Loaded;
use super::pace::pace;
use super::plan::Plan;
use super::trial::trial;
use super::variant::Variant;
use crate::engine::Architecture;

/// Those that may be taken for a network that says nothing, the surest first.
const EXACT: [Variant; 2] = [Variant::Mma, Variant::Wgmma];

/// Brings a network to a card in the given variant, or in the quickest.
pub fn choose(
    device: &Arc<Device>,
    architecture: Architecture,
    only: Option<Variant>,
) -> Result<Arc<Loaded>, CudaError> {
    if let Some(variant) = only {
        if !variant.runs_on(device.arch) {
            return Err(CudaError::OldDevice(device.arch));
        }
        return passed(device, architecture, variant);
    }
    let runs = |variant: &Variant| variant.runs_on(device.arch);
    let plan = |variant| Plan::new(&architecture, variant, device.shared);
    let plans: Vec<Plan> = EXACT.into_iter().filter(runs).filter_map(plan).collect();
    let kept = Kept::new(&architecture, &plans, device);
    if let Some(name) = kept.read()
        && let Some(plan) = plans.iter().find(|plan| plan.variant.name() == name)
        && let Ok(network) = passed(device, architecture, plan.variant)
    {
        return Ok(network);
    }
    let (mut networks, mut failure) = (Vec::<Arc<Loaded>>::new(), CudaError::NoPlan);
    for plan in &plans {
        if let Some(first) = networks.first() {
            // Should the next one take the card with it, the next start does not try it again.
            kept.write(first.plan.variant.name());
        }
        match passed(device, architecture, plan.variant) {
            Ok(network) => networks.push(network),
            // A lost card runs no other variant.
            Err(why @ (CudaError::Driver(_) | CudaError::NoMemory)) => return Err(why),
            Err(why) => {
                if plans.len() > 1 {
                    tracing::warn!(%architecture, variant = %plan.variant, %why, "a variant is not used");
                }
                failure = why;
            }
        }
    }
    if networks.len() < 2 {
        return networks.pop().ok_or(failure);
    }
    let times = pace(&networks)?;
    let timed: Vec<String> = networks
        .iter()
        .zip(&times)
        .map(|(network, time)| format!("{} {time:.0?}", network.plan.variant))
        .collect();
    let quickest = times.iter().zip(networks).min_by_key(|(time, _)| **time);
    let (_, network) = quickest.ok_or(failure)?;
    let variant = network.plan.variant;
    tracing::info!(%architecture, times = timed.join(", "), taken = %variant, "variants of a network on the GPU");
    kept.write(variant.name());
    Ok(network)
}

/// The variant, if it passes its trial.
fn passed(
    device: &Arc<Device>,
    architecture: Architecture,
    variant: Variant,
) -> Result<Arc<Loaded>, CudaError> {
    let network = Arc::new(Loaded::new(device, architecture, variant)?);
    trial(&network)?;
    Ok(network)
}
