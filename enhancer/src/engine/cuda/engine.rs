//! The engine: buffers, captured work for every size of picture, two batches under way at a time.
//!
//! While one batch is computed, the next is copied to the device and the one before back from it, each on a stream of
//! its own. The work of a size (copies in, launches, copies out) is captured once and then submitted as a whole. Buffers
//! grow to the largest size so far; nothing is allocated after that. New weights are copied over the old ones: a copy of
//! a third of a megabyte, so that there is no need to keep many networks resident.

use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::Arc;

use super::CudaError;
use super::compile;
use super::driver::{Device, DeviceBuffer, Graph, HostBuffer, Kernel, Module, Stream};
use super::pack::{pack, packed_len};
use super::plan::{GroupPlan, Plan};
use crate::engine::{
    Architecture, Engine, InferError, Input, Luma, Model, Residual, SwapError, check,
};

/// Most pictures of a launch.
const MOST_PICTURES: usize = 16;
/// Most low samples of a launch, where it is of several pictures.
const MOST_SAMPLES: usize = 4 << 20;
/// Batches under way at a time.
const SLOTS: usize = 2;
/// Sizes whose work is kept; beyond, all of them are forgotten.
const MOST_GRAPHS: usize = 64;
/// The residual's fixed point: one grey level.
const ONE: f32 = 64.0;

/// What `network.cu` is given; the same there.
#[repr(C)]
struct Group {
    low: u64,
    twin: u64,
    features_in: u64,
    skip: u64,
    head_out: u64,
    features_out: u64,
    residual: u64,
    weights: u64,
    width: i32,
    height: i32,
    rows: i32,
    margin: i32,
    first: i32,
    count: i32,
}

const _: () = assert!(offset_of!(Group, width) == 64 && size_of::<Group>() == 88);

/// The size of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Size {
    width: usize,
    height: usize,
    pictures: usize,
}

impl Size {
    fn samples(&self) -> usize {
        self.width * self.height * self.pictures
    }
}

/// What the engine runs on.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceInfo {
    /// As the driver names it.
    pub name: String,
    /// Compute capability: 10 × major + minor.
    pub arch: i32,
    /// The driver's version: 1000 × major + 10 × minor.
    pub driver: i32,
    /// Memory in bytes.
    pub memory: usize,
    /// Number of multiprocessors.
    pub multiprocessors: i32,
    /// How the network is run, in words.
    pub plan: String,
    /// Multiplications that are done for a low sample, with padding and what is recomputed.
    pub macs: f64,
    /// Bytes of the device's memory that are read and written for a low sample.
    pub moved_bytes: f64,
}

/// Buffers and stream of one batch under way.
struct Slot {
    // In the order of dropping: the stream waits for its work.
    stream: Stream,
    graphs: HashMap<Size, Graph>,
    low: DeviceBuffer,
    twin: DeviceBuffer,
    /// What a launch reads, what it writes, and the first convolution's output.
    features: [DeviceBuffer; 3],
    residual: DeviceBuffer,
    host_low: HostBuffer,
    host_twin: HostBuffer,
    host_residual: HostBuffer,
    /// Low samples that the buffers hold.
    room: usize,
    /// The batch under way, and its first picture.
    under_way: Option<(Size, usize)>,
}

/// A network on the GPU.
pub struct CudaEngine {
    slots: Vec<Slot>,
    weights: DeviceBuffer,
    host_weights: HostBuffer,
    kernels: Vec<Kernel>,
    plan: Plan,
    architecture: Architecture,
    /// Most pictures of a launch.
    most_pictures: usize,
    // Last, since all above needs them.
    _module: Module,
    device: Arc<Device>,
}

impl CudaEngine {
    /// Compiles the network's kernels for the first GPU, or finds them compiled, and uploads its weights.
    pub fn new(model: &Arc<Model>) -> Result<Self, CudaError> {
        let device = Device::open()?;
        let architecture = model.architecture();
        if device.arch < 75 {
            return Err(CudaError::OldDevice(device.arch));
        }
        let plan = Plan::new(&architecture, device.shared).ok_or(CudaError::NoPlan)?;
        let options = compile::options(&architecture, &plan);
        let image =
            compile::image(compile::NETWORK, &options, device.arch, &device.name, device.driver)?;
        let module = Module::load(&device, &image)?;
        let kernels = plan.groups.iter().map(|group| module.kernel(group.kernel(), group.shared));
        let kernels = kernels.collect::<Result<_, _>>()?;
        let bytes = packed_len(&architecture);
        let weights = DeviceBuffer::new(&device, bytes)?;
        let host_weights = HostBuffer::new(&device, bytes)?;
        let slots = (0..SLOTS).map(|_| Slot::new(&device)).collect::<Result<_, _>>()?;
        let mut engine = CudaEngine {
            slots,
            weights,
            host_weights,
            kernels,
            plan,
            architecture,
            most_pictures: MOST_PICTURES,
            _module: module,
            device,
        };
        engine.upload(model)?;
        Ok(engine)
    }

    /// What it runs on.
    pub fn device(&self) -> DeviceInfo {
        let Plan { pitch, warps, resident, groups, .. } = &self.plan;
        let tiles: Vec<String> =
            groups.iter().map(|g| format!("{}+{}", g.rows - 2 * g.margin, 2 * g.margin)).collect();
        DeviceInfo {
            macs: self.plan.macs(),
            moved_bytes: self.plan.bytes(),
            name: self.device.name.clone(),
            arch: self.device.arch,
            driver: self.device.driver,
            memory: self.device.memory,
            multiprocessors: self.device.multiprocessors,
            plan: format!(
                "{} launches on tiles of {pitch} columns by {} rows, {resident} blocks of {warps} warps",
                groups.len(),
                tiles.join(", ")
            ),
        }
    }

    /// Lets a launch be of so many pictures at most; fewer come back sooner.
    pub fn limit_batch(&mut self, pictures: usize) {
        self.most_pictures = pictures.clamp(1, MOST_PICTURES);
    }

    /// [`Engine::infer_batch`] without its copy to single precision: calls `done` with the number of each picture, in
    /// order, and its residual in 1/64 grey level.
    pub fn infer_each(
        &mut self,
        inputs: &[Input<'_>],
        done: impl FnMut(usize, &[i16]),
    ) -> Result<(), CudaError> {
        let inferred = self.infer_chunks(inputs, done);
        if inferred.is_err() {
            // What is still under way must have ended before its buffers are written again.
            for slot in &mut self.slots {
                slot.under_way = None;
                let _ = slot.stream.wait();
            }
        }
        inferred
    }

    fn infer_chunks(
        &mut self,
        inputs: &[Input<'_>],
        mut done: impl FnMut(usize, &[i16]),
    ) -> Result<(), CudaError> {
        let Some(first) = inputs.first() else { return Ok(()) };
        let (width, height) = (first.low.width(), first.low.height());
        let most = (MOST_SAMPLES / (width * height)).clamp(1, self.most_pictures);
        self.device.enter()?;
        let mut slot = 0;
        for (n, batch) in inputs.chunks(most).enumerate() {
            self.collect(slot, &mut done)?;
            let size = Size { width, height, pictures: batch.len() };
            self.submit(slot, size, batch, n * most)?;
            slot = (slot + 1) % SLOTS;
        }
        for _ in 0..SLOTS {
            self.collect(slot, &mut done)?;
            slot = (slot + 1) % SLOTS;
        }
        Ok(())
    }

    /// [`Engine::swap`] with the device's own words.
    fn upload(&mut self, model: &Model) -> Result<(), CudaError> {
        self.host_weights.bytes_mut().copy_from_slice(model.fragments(pack));
        // Nothing else is under way: batches are waited for.
        let stream = &self.slots[0].stream;
        self.device.enter()?;
        stream.upload(&self.host_weights, &self.weights, self.weights.len())?;
        stream.wait()
    }

    /// Begins a batch.
    fn submit(
        &mut self,
        slot: usize,
        size: Size,
        batch: &[Input<'_>],
        first: usize,
    ) -> Result<(), CudaError> {
        let (architecture, slots) = (&self.architecture, &mut self.slots);
        slots[slot].grow(&self.device, architecture, &self.plan, size.samples())?;
        let low = batch.iter().map(|input| &input.low);
        copy_planes(low, slots[slot].host_low.bytes_mut());
        let twin = batch.iter().filter_map(|input| input.twin.as_ref());
        copy_planes(twin, slots[slot].host_twin.bytes_mut());
        if !slots[slot].graphs.contains_key(&size) {
            let graph = self.capture(slot, size)?;
            let graphs = &mut self.slots[slot].graphs;
            if graphs.len() >= MOST_GRAPHS {
                graphs.clear();
            }
            graphs.insert(size, graph);
        }
        let slot = &mut self.slots[slot];
        slot.stream.run(&slot.graphs[&size])?;
        slot.under_way = Some((size, first));
        Ok(())
    }

    /// Waits for the batch of a slot, if there is one, and hands it out.
    fn collect(
        &mut self,
        slot: usize,
        done: &mut impl FnMut(usize, &[i16]),
    ) -> Result<(), CudaError> {
        let slot = &mut self.slots[slot];
        let Some((size, first)) = slot.under_way.take() else { return Ok(()) };
        slot.stream.wait()?;
        let samples = self.architecture.scale * self.architecture.scale * size.width * size.height;
        let pictures = slot.host_residual.samples().chunks_exact(samples).take(size.pictures);
        pictures.enumerate().for_each(|(n, picture)| done(first + n, picture));
        Ok(())
    }

    /// The work of a batch.
    fn capture(&mut self, slot: usize, size: Size) -> Result<Graph, CudaError> {
        let scale = self.architecture.scale;
        let high = scale * scale * size.samples();
        let has_twin = self.architecture.has_twin();
        let Slot {
            stream, low, twin, features, residual, host_low, host_twin, host_residual, ..
        } = &mut self.slots[slot];
        let (plan, kernels, weights) = (&self.plan, &self.kernels, &self.weights);
        let side = |v: usize| i32::try_from(v).unwrap_or(i32::MAX);
        let dimension = |v: usize| u32::try_from(v).unwrap_or(u32::MAX);
        let blocks = plan.groups.len() > 1 && self.architecture.kind == crate::engine::Kind::Blocks;
        stream.capture(|| {
            stream.upload(host_low, low, size.samples())?;
            if has_twin {
                stream.upload(host_twin, twin, high)?;
            }
            for (n, (group, kernel)) in plan.groups.iter().zip(kernels).enumerate() {
                let GroupPlan { head, tail, first, count, rows, margin, shared } = *group;
                let tiles = group.tiles(plan.pitch, size.width, size.height);
                let parameter = Group {
                    low: low.address(),
                    twin: twin.address(),
                    features_in: features[n % 2].address(),
                    skip: if blocks && tail { features[2].address() } else { 0 },
                    head_out: if blocks && head { features[2].address() } else { 0 },
                    features_out: features[(n + 1) % 2].address(),
                    residual: residual.address(),
                    weights: weights.address(),
                    width: side(size.width),
                    height: side(size.height),
                    rows: side(rows),
                    margin: side(margin),
                    first: side(first),
                    count: side(count),
                };
                let grid = (dimension(tiles.0), dimension(tiles.1), dimension(size.pictures));
                let threads = dimension(32 * plan.warps);
                // SAFETY: `Group` is what the kernels take. Their planes have `size.samples()` low samples, and as many
                // times scale² high ones; `Slot::grow` made the buffers for as many, and they live as long as the graph.
                unsafe { stream.launch(*kernel, grid, threads, dimension(shared), &parameter) }?;
            }
            stream.download(residual, host_residual, 2 * high)
        })
    }
}

impl Slot {
    fn new(device: &Arc<Device>) -> Result<Self, CudaError> {
        let none = || DeviceBuffer::new(device, 0);
        let host = || HostBuffer::new(device, 0);
        Ok(Slot {
            stream: Stream::new(device)?,
            graphs: HashMap::new(),
            low: none()?,
            twin: none()?,
            features: [none()?, none()?, none()?],
            residual: none()?,
            host_low: host()?,
            host_twin: host()?,
            host_residual: host()?,
            room: 0,
            under_way: None,
        })
    }

    /// Makes room for so many low samples; captured work is of the old buffers, and forgotten.
    fn grow(
        &mut self,
        device: &Arc<Device>,
        architecture: &Architecture,
        plan: &Plan,
        samples: usize,
    ) -> Result<(), CudaError> {
        if samples <= self.room {
            return Ok(());
        }
        self.stream.wait()?;
        // The old ones go before the new ones come.
        *self = Slot::new(device)?;
        let high = architecture.scale * architecture.scale * samples;
        let twin = if architecture.has_twin() { high } else { 0 };
        let several = plan.groups.len() > 1;
        let between = if several { 2 * plan.shape.channels * samples } else { 0 };
        let skip = if architecture.kind == crate::engine::Kind::Blocks { between } else { 0 };
        self.low = DeviceBuffer::new(device, samples)?;
        self.twin = DeviceBuffer::new(device, twin)?;
        let feature = |len| DeviceBuffer::new(device, len);
        self.features = [feature(between)?, feature(between)?, feature(skip)?];
        self.residual = DeviceBuffer::new(device, 2 * high)?;
        self.host_low = HostBuffer::new(device, samples)?;
        self.host_twin = HostBuffer::new(device, twin)?;
        self.host_residual = HostBuffer::new(device, 2 * high)?;
        self.room = samples;
        Ok(())
    }
}

/// Copies planes one after the other.
fn copy_planes<'a>(planes: impl Iterator<Item = &'a Luma<'a>>, mut to: &mut [u8]) {
    for plane in planes {
        for y in 0..plane.height() {
            let (row, rest) = to.split_at_mut(plane.width());
            row.copy_from_slice(plane.row(y));
            to = rest;
        }
    }
}

impl Engine for CudaEngine {
    fn backend(&self) -> &'static str {
        "cuda"
    }

    fn on_processor(&self) -> bool {
        false
    }

    fn architecture(&self) -> Architecture {
        self.architecture
    }

    fn infer_batch(
        &mut self,
        inputs: &[Input<'_>],
        out: &mut [Residual],
    ) -> Result<(), InferError> {
        check(&self.architecture, inputs, out)?;
        let scale = self.architecture.scale;
        for (input, out) in inputs.iter().zip(&mut *out) {
            out.resize(scale * input.low.width(), scale * input.low.height());
        }
        let inferred = self.infer_each(inputs, |n, samples| {
            for (value, sample) in out[n].data.iter_mut().zip(samples) {
                *value = f32::from(*sample) * (1.0 / ONE);
            }
        });
        inferred.map_err(|error| InferError::Device(error.to_string()))
    }

    fn swap(&mut self, model: &Arc<Model>) -> Result<(), SwapError> {
        SwapError::check(self.architecture, model)?;
        self.upload(model).map_err(|error| SwapError::Device(error.to_string()))
    }
}
