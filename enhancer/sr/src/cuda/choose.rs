//! Chooses which of a network's variants runs on a GPU.
//!
//! Each variant that the device can run is compiled and put on [trial](super::trial). If more than one passes, each
//! runs pictures, and the fastest is chosen. The choice is stored beside the compiled kernels, so that the next start
//! measures nothing.

use std::sync::Arc;

use super::CudaError;
use super::compile::Kept;
use super::driver::Device;
use super::loaded::Loaded;
use super::pace::pace;
use super::plan::Plan;
use super::trial::trial;
use super::variant::Variant;
use crate::Architecture;

/// Brings a network to a GPU in the given variant, or in the quickest. The variant `before`, in which this process has
/// run the network, needs no further trial.
pub(super) fn choose(
    device: &Arc<Device>,
    architecture: Architecture,
    only: Option<Variant>,
    before: Option<Variant>,
) -> Result<Arc<Loaded>, CudaError> {
    let passed = |variant| {
        let network = Arc::new(Loaded::new(device, architecture, variant)?);
        if before != Some(variant) {
            trial(&network)?;
        }
        Ok(network)
    };
    if let Some(variant) = only {
        if !variant.runs_on(device.arch) {
            return Err(CudaError::OldDevice(device.arch));
        }
        return passed(variant);
    }
    let runs = |variant: &Variant| variant.runs_on(device.arch);
    let plan = |variant| Plan::new(&architecture, variant, device.shared);
    let plans: Vec<Plan> = Variant::ALL.into_iter().filter(runs).filter_map(plan).collect();
    let kept = Kept::new(&architecture, &plans, device);
    if let Some(variant) = kept.read().and_then(|name| name.parse().ok()).or(before)
        && plans.iter().any(|plan| plan.variant == variant)
        && let Ok(network) = passed(variant)
    {
        return Ok(network);
    }
    let (mut networks, mut failure) = (Vec::<Arc<Loaded>>::new(), CudaError::NoPlan);
    let (mut has_room, mut is_barred) = (true, false);
    for plan in &plans {
        // Should one take the GPU with it, a later start does not try it again.
        if !networks.is_empty() && !kept.tries() {
            tracing::warn!(%architecture, variant = %plan.variant, file = kept.trying().as_deref().map(tracing::field::debug), "kernel variant disabled: earlier processes ended while they tried it; remove this file to try it again");
            is_barred = true;
            break;
        }
        match passed(plan.variant) {
            Ok(network) => networks.push(network),
            Err(CudaError::NoMemory) => {
                (failure, has_room) = (CudaError::NoMemory, false);
                break;
            }
            // A lost GPU runs no other variant.
            Err(why @ CudaError::Driver(_)) => return Err(why),
            Err(why) => {
                if plans.len() > 1 {
                    tracing::warn!(%architecture, variant = %plan.variant, %why, "kernel variant disabled: its trial failed; the GPU uses another that passes, and nothing needs doing");
                }
                failure = why;
            }
        }
    }
    let times = if networks.len() < 2 || !has_room { None } else { Some(pace(&networks)) };
    if !is_barred {
        kept.tried();
    }
    let times = match times {
        Some(Err(CudaError::NoMemory)) | None => {
            // The first that passed; there may be room to choose at another time.
            return if networks.is_empty() { Err(failure) } else { Ok(networks.swap_remove(0)) };
        }
        Some(times) => times?,
    };
    let timed: Vec<String> = networks
        .iter()
        .zip(&times)
        .map(|(network, time)| format!("{} {time:.0?}", network.plan.variant))
        .collect();
    let quickest = times.iter().zip(networks).min_by_key(|(time, _)| **time);
    let (_, network) = quickest.ok_or(failure)?;
    let variant = network.plan.variant;
    tracing::info!(%architecture, times = timed.join(", "), taken = %variant, "kernel variant chosen");
    kept.write(variant.name());
    Ok(network)
}
