//! A CUDA stream with memory of its own: one launch at a time. A GPU has several streams, so that one copies while
//! another computes.
//!
//! The memory is that of the largest launch so far, and stays. The launches for some size and number of pictures are
//! captured once and then submitted as a whole. Copies are not captured, because their host memory differs each time.

use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::Arc;

use super::CudaError;
use super::driver::{Device, DeviceBuffer, Graph, HostBuffer, Stream};
use super::loaded::{Loaded, Weights};
use super::plan::GroupPlan;
use super::resident::ResidentMemory;
use crate::{Input, Kind, Luma};

/// Fixed-point value of one grey level in a residual.
pub(super) const ONE: f32 = 64.0;
/// Maximum pictures of a launch.
pub(super) const MAX_PICTURES: usize = 16;
/// Maximum low samples of a launch of several pictures. A single picture may have more.
const MAX_SAMPLES: usize = 4 << 20;
/// Maximum captured graphs; beyond, all of them are forgotten.
const MAX_GRAPHS: usize = 128;

/// Arguments of the kernels in `network.cu`, which declares the same structure.
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

/// Network and size that the pictures of one launch share.
#[derive(Clone)]
pub(super) struct Shape {
    pub network: Arc<Loaded>,
    /// Width and height of the LR pictures, in samples.
    pub width: usize,
    pub height: usize,
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        let size = |of: &Shape| (of.width, of.height);
        Arc::ptr_eq(&self.network, &other.network) && size(self) == size(other)
    }
}

impl Shape {
    /// Maximum pictures of a launch of this shape.
    pub(super) fn max_pictures(&self) -> usize {
        (MAX_SAMPLES / self.low().max(1)).clamp(1, MAX_PICTURES)
    }

    /// Low samples per picture.
    pub(super) fn low(&self) -> usize {
        self.width * self.height
    }

    /// High samples per picture.
    pub(super) fn high(&self) -> usize {
        self.network.architecture.scale * self.network.architecture.scale * self.low()
    }

    /// Samples of the twin's picture; 0 for networks that do not take it.
    pub(super) fn twin(&self) -> usize {
        if self.network.architecture.has_twin() { self.high() } else { 0 }
    }
}

/// A picture's samples in memory that the GPU copies from and to by itself.
pub(super) struct Staging {
    pub low: HostBuffer,
    pub twin: HostBuffer,
    /// The residual, in 1/64 grey level, 16 bits a sample.
    pub residual: HostBuffer,
}

impl Staging {
    pub(super) fn new(device: &Arc<Device>, shape: &Shape) -> Result<Self, CudaError> {
        Ok(Staging {
            low: HostBuffer::new(device, shape.low())?,
            twin: HostBuffer::new(device, shape.twin())?,
            residual: HostBuffer::new(device, 2 * shape.high())?,
        })
    }

    /// Copies in a picture's samples, without the gaps between their rows. There must be room.
    pub(super) fn take(&mut self, input: &Input<'_>) {
        copy(&input.low, self.low.bytes_mut());
        if let Some(twin) = &input.twin {
            copy(twin, self.twin.bytes_mut());
        }
    }

    /// Whether the buffers have room for a picture of `shape`.
    pub(super) fn holds(&self, shape: &Shape) -> bool {
        self.low.len() >= shape.low()
            && self.twin.len() >= shape.twin()
            && self.residual.len() >= 2 * shape.high()
    }
}

/// A picture to be super-resolved. Its residual is written to `staging`.
pub(super) struct Picture<'a> {
    pub staging: &'a mut Staging,
    pub weights: &'a Weights,
    /// Memory on the GPU in which the residual stays instead.
    pub keep: Option<&'a ResidentMemory>,
}

/// Key of captured work: address of the network, low width and height, and number of pictures.
type Key = (usize, usize, usize, usize);

/// Captured work, with the network whose address is in its key.
struct Launches {
    graph: Graph,
    _network: Arc<Loaded>,
}

/// A CUDA stream with memory of its own, which runs one launch at a time.
pub(super) struct GpuStream {
    // In the order of dropping: the stream waits for its work.
    stream: Stream,
    graphs: HashMap<Key, Launches>,
    memory: Memory,
    /// Whether no room is made for the largest launches, because the GPU has none or they do not come.
    modest: bool,
    /// Addresses of each picture's weights.
    table: DeviceBuffer,
    host_table: HostBuffer,
    device: Arc<Device>,
}

/// Buffers of a launch on the GPU.
struct Memory {
    low: DeviceBuffer,
    twin: DeviceBuffer,
    /// Features that a launch reads, features that it writes, and the first convolution's output.
    features: [DeviceBuffer; 3],
    residual: DeviceBuffer,
}

impl Memory {
    /// Allocates buffers of the given sizes in bytes.
    fn new(
        device: &Arc<Device>,
        [low, twin, feature, skip, residual]: [usize; 5],
    ) -> Result<Self, CudaError> {
        let buffer = |bytes| DeviceBuffer::new(device, bytes);
        Ok(Memory {
            low: buffer(low)?,
            twin: buffer(twin)?,
            features: [buffer(feature)?, buffer(feature)?, buffer(skip)?],
            residual: buffer(residual)?,
        })
    }

    fn bytes(&self) -> [usize; 5] {
        let Memory { low, twin, features, residual } = self;
        [low, twin, &features[0], &features[2], residual].map(DeviceBuffer::len)
    }
}

impl GpuStream {
    pub(super) fn new(device: &Arc<Device>) -> Result<Self, CudaError> {
        Ok(GpuStream {
            stream: Stream::new(device)?,
            graphs: HashMap::new(),
            memory: Memory::new(device, [0; 5])?,
            modest: false,
            table: DeviceBuffer::new(device, 8 * MAX_PICTURES)?,
            host_table: HostBuffer::new(device, 8 * MAX_PICTURES)?,
            device: device.clone(),
        })
    }

    /// Creates a stream that makes room only for the pictures that it is given.
    pub(super) fn of_one(device: &Arc<Device>) -> Result<Self, CudaError> {
        Ok(GpuStream { modest: true, ..GpuStream::new(device)? })
    }

    /// Super-resolves at most [`MAX_PICTURES`] pictures of a shape, and waits for them.
    pub(super) fn run(
        &mut self,
        shape: &Shape,
        pictures: &mut [Picture<'_>],
    ) -> Result<(), CudaError> {
        self.device.enter()?;
        let done = self.submit(shape, pictures).and_then(|()| self.stream.wait());
        if done.is_err() {
            // What is still under way must have ended before anybody writes where it reads.
            let _ = self.stream.wait();
        }
        done
    }

    fn submit(&mut self, shape: &Shape, pictures: &mut [Picture<'_>]) -> Result<(), CudaError> {
        // For the largest launch at once, so that later ones find what they need.
        if !self.modest && self.grow(shape, shape.max_pictures()) == Err(CudaError::NoMemory) {
            self.modest = true;
        }
        self.grow(shape, pictures.len())?;
        let (low, twin, high) = (shape.low(), shape.twin(), shape.high());
        let slots = self.host_table.bytes_mut().as_chunks_mut::<8>().0;
        for (slot, picture) in slots.iter_mut().zip(&*pictures) {
            *slot = picture.weights.address().to_ne_bytes();
        }
        let key = (Arc::as_ptr(&shape.network) as usize, shape.width, shape.height, pictures.len());
        if !self.graphs.contains_key(&key) {
            let graph = self.capture(shape, pictures.len())?;
            if self.graphs.len() >= MAX_GRAPHS {
                self.graphs.clear();
            }
            self.graphs.insert(key, Launches { graph, _network: shape.network.clone() });
        }
        let GpuStream { stream, memory, table, host_table, .. } = self;
        stream.upload(host_table, table, 0, 8 * pictures.len())?;
        for (n, picture) in pictures.iter().enumerate() {
            stream.upload(&picture.staging.low, &memory.low, n * low, low)?;
            if twin > 0 {
                stream.upload(&picture.staging.twin, &memory.twin, n * twin, twin)?;
            }
        }
        if let Some(launches) = self.graphs.get(&key) {
            self.stream.run(&launches.graph)?;
        }
        let GpuStream { stream, memory, .. } = self;
        for (n, picture) in pictures.iter_mut().enumerate() {
            if let Some(keep) = picture.keep {
                stream.copy(&memory.low, n * low, &keep.low, low)?;
                stream.copy(&memory.residual, n * 2 * high, &keep.residual, 2 * high)?;
            } else {
                let to = &mut picture.staging.residual;
                stream.download(&memory.residual, n * 2 * high, to, 2 * high)?;
            }
        }
        Ok(())
    }

    /// Makes room for a launch. Captured work refers to the old memory, and is dropped.
    fn grow(&mut self, shape: &Shape, pictures: usize) -> Result<(), CudaError> {
        let network = &shape.network;
        let several = network.plan.groups.len() > 1;
        let feature = if several { 2 * network.plan.shape.channels * shape.low() } else { 0 };
        let skip = if network.architecture.kind == Kind::Blocks { feature } else { 0 };
        let needed = [shape.low(), shape.twin(), feature, skip, 2 * shape.high()];
        let (mut bytes, mut grows) = (self.memory.bytes(), false);
        for (bytes, needed) in bytes.iter_mut().zip(needed) {
            grows |= *bytes < pictures * needed;
            *bytes = (*bytes).max(pictures * needed);
        }
        if grows {
            self.stream.wait()?;
            self.graphs.clear();
            // The old ones go before the new ones come: there may be no room for both.
            self.memory = Memory::new(&self.device, [0; 5])?;
            self.memory = Memory::new(&self.device, bytes)?;
        }
        Ok(())
    }

    /// Frees the memory that the stream has grown to.
    pub(super) fn shrink(&mut self) -> Result<(), CudaError> {
        self.stream.wait()?;
        self.graphs.clear();
        self.memory = Memory::new(&self.device, [0; 5])?;
        Ok(())
    }

    /// Captures the launches for `pictures` pictures.
    fn capture(&self, shape: &Shape, pictures: usize) -> Result<Graph, CudaError> {
        let Loaded { plan, kernels, architecture, .. } = &*shape.network;
        let Memory { low, twin, features, residual } = &self.memory;
        let side = |v: usize| i32::try_from(v).unwrap_or(i32::MAX);
        let dimension = |v: usize| u32::try_from(v).unwrap_or(u32::MAX);
        let skips = plan.groups.len() > 1 && architecture.kind == Kind::Blocks;
        // Strips begin with what the first convolution has left for the skip.
        let shared_skip = skips && plan.strips.is_some();
        let skip = |there: bool| if skips && there { features[2].address() } else { 0 };
        let input = |n: usize| features[if shared_skip && n == 1 { 2 } else { n % 2 }].address();
        let output =
            |n: usize| features[if shared_skip && n == 0 { 2 } else { (n + 1) % 2 }].address();
        let multiprocessors = usize::try_from(self.device.multiprocessors).unwrap_or(1);
        self.stream.capture(|| {
            for (n, (group, kernel)) in plan.groups.iter().zip(kernels).enumerate() {
                let GroupPlan { head, tail, first, count, rows, margin, shared, .. } = *group;
                let (rows, blocks, warps) = match plan.strips.filter(|_| group.strips) {
                    Some(strips) => {
                        let (width, height) = (shape.width, shape.height);
                        let cut = strips.cut(width, height, pictures, multiprocessors);
                        (cut.rows, cut.blocks, 4 * strips.warpgroups)
                    }
                    None => (rows, group.tiles(plan.pitch, shape.width, shape.height), plan.warps),
                };
                let parameter = Group {
                    low: low.address(),
                    twin: twin.address(),
                    features_in: input(n),
                    skip: skip(tail),
                    head_out: skip(head && !shared_skip),
                    features_out: output(n),
                    residual: residual.address(),
                    weights: self.table.address(),
                    width: side(shape.width),
                    height: side(shape.height),
                    rows: side(rows),
                    margin: side(margin),
                    first: side(first),
                    count: side(count),
                };
                let grid = (dimension(blocks.across), dimension(blocks.down), dimension(pictures));
                let threads = dimension(32 * warps);
                // SAFETY: `Group` is what the kernels take. Their planes have the low samples of `pictures` pictures,
                // and as many times scale² high ones: `grow` made the buffers for as many, and they live as long as the
                // graph. The table has the address of each picture's weights, which its holder keeps until the launch
                // is done.
                unsafe {
                    self.stream.launch(*kernel, grid, threads, dimension(shared), &parameter)
                }?;
            }
            Ok(())
        })
    }
}

/// Copies a plane without the gaps between its rows.
fn copy(plane: &Luma<'_>, to: &mut [u8]) {
    for (y, row) in to.chunks_exact_mut(plane.width()).take(plane.height()).enumerate() {
        row.copy_from_slice(plane.row(y));
    }
}
