//! A network on a GPU: its kernels and its resident weights. Every picture of a launch may have weights of its own.
//!
//! Switching to the weights of another stream changes an address; weights that are not on the GPU yet are uploaded
//! first.
//! Source: NeuroScaler §6.2 (models in the accelerator's memory, refit).

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::CudaError;
use super::compile;
use super::driver::{Device, DeviceBuffer, HostBuffer, Kernel, Module, Stream};
use super::pack::{pack, packed_len};
use super::plan::Plan;
use super::variant::Variant;
use crate::{Architecture, Model};

/// Maximum sets of weights of one network on a GPU: those of 64 streams, of 307 KB each for blocks 8×32 ×3.
const MAX_RESIDENT: usize = 64;

/// A network on a GPU: its kernels, and the sets of weights that are resident.
pub(super) struct Loaded {
    pub architecture: Architecture,
    pub plan: Plan,
    /// One kernel for each group of the plan.
    pub kernels: Vec<Kernel>,
    resident: Mutex<Resident>,
    // After all that needs it.
    _module: Module,
    pub device: Arc<Device>,
}

/// Weights on a GPU.
pub(super) struct Weights(DeviceBuffer);

impl Weights {
    pub(super) fn address(&self) -> u64 {
        self.0.address()
    }
}

struct Resident {
    stream: Stream,
    host: HostBuffer,
    /// Resident weights, the last asked for at the end.
    sets: Vec<(Weak<Model>, Arc<Weights>)>,
}

impl Loaded {
    /// Compiles the network's kernels for the GPU, or finds them compiled.
    pub(super) fn new(
        device: &Arc<Device>,
        architecture: Architecture,
        variant: Variant,
    ) -> Result<Self, CudaError> {
        let plan = Plan::new(&architecture, variant, device.shared).ok_or(CudaError::NoPlan)?;
        let options = compile::options(&architecture, &plan);
        let image =
            compile::image(compile::NETWORK, &options, device.arch, &device.name, device.driver)?;
        let module = Module::load(device, &image)?;
        let kernels = plan.groups.iter().map(|group| module.kernel(group.kernel(), group.shared));
        let kernels = kernels.collect::<Result<_, _>>()?;
        let host = HostBuffer::new(device, packed_len(&architecture, variant))?;
        let resident = Resident { stream: Stream::new(device)?, host, sets: Vec::new() };
        Ok(Loaded {
            architecture,
            plan,
            kernels,
            resident: Mutex::new(resident),
            _module: module,
            device: device.clone(),
        })
    }

    /// Returns the resident weights of a model of this architecture; uploads them if they are not on the GPU.
    /// Beyond [`MAX_RESIDENT`], the least recently used ones make room.
    pub(super) fn weights(&self, model: &Arc<Model>) -> Result<Arc<Weights>, CudaError> {
        let mut resident = self.resident.lock();
        let Resident { stream, host, sets } = &mut *resident;
        let known = sets.iter().position(|(of, _)| of.as_ptr() == Arc::as_ptr(model));
        if let Some(at) = known {
            let set = sets.remove(at);
            let weights = set.1.clone();
            sets.push(set);
            return Ok(weights);
        }
        // Memory of weights that nobody has any more is used again, before that of others.
        let unused = |(_, weights): &(Weak<Model>, Arc<Weights>)| Arc::strong_count(weights) == 1;
        let gone = sets.iter().position(|set| set.0.strong_count() == 0 && unused(set));
        let oldest = || (sets.len() >= MAX_RESIDENT).then(|| sets.iter().position(unused))?;
        let weights = if let Some(at) = gone.or_else(oldest) {
            sets.remove(at).1
        } else {
            let bytes = packed_len(&self.architecture, self.plan.variant);
            Arc::new(Weights(DeviceBuffer::new(&self.device, bytes)?))
        };
        let bytes = host.len();
        let variant = self.plan.variant;
        let packed = model.fragments(variant as usize, |model| pack(model, variant));
        host.bytes_mut().copy_from_slice(packed);
        self.device.enter()?;
        stream.upload(host, &weights.0, 0, bytes)?;
        stream.wait()?;
        sets.push((Arc::downgrade(model), weights.clone()));
        Ok(weights)
    }

    /// Number of sets of weights that are on the GPU.
    pub(super) fn resident(&self) -> usize {
        self.resident.lock().sets.len()
    }
}
