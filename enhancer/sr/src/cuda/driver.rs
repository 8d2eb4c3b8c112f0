//! What the engine needs of the CUDA driver, each thing freed when it is dropped.
//!
//! `unsafe` here follows three invariants. The driver's functions are only called after [`Device::open`] has found the
//! library, its version and a device. Every handle is made here, belongs to one value, and is given back by its `drop`
//! alone; the context outlives all of them, because each holds the [`Device`]. Memory that a stream's work reads or
//! writes outlives that work: [`super::engine`] waits for its streams before it lets go of any.

use std::ffi::{CStr, CString, c_void};
use std::fmt::Write;
use std::panic::catch_unwind;
use std::sync::Arc;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use super::CudaError;
use super::devices::profile;
use super::plan::SharedMemory;

/// Oldest driver that is accepted, as CUDA numbers it: 11.8, the first that knows Hopper.
const OLDEST_DRIVER: i32 = 11_080;
/// Minimum compute capability (10 × major + minor): the first with the tensor-core instructions that the kernels use.
const OLDEST_ARCH: i32 = 75;

impl From<DriverError> for CudaError {
    fn from(error: DriverError) -> Self {
        match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => return CudaError::NoMemory,
            sys::CUresult::CUDA_ERROR_STUB_LIBRARY => return CudaError::Stub,
            _ => {}
        }
        let text = error.error_string().map(|text| text.to_string_lossy().into_owned());
        CudaError::Driver(text.unwrap_or_else(|_| format!("error {:?}", error.0)))
    }
}

/// A GPU with its context.
#[derive(Debug)]
pub(crate) struct Device {
    handle: sys::CUdevice,
    context: sys::CUcontext,
    /// Index of the device among those that the driver shows.
    pub ordinal: usize,
    /// Name of the device, as the driver has it.
    pub name: String,
    /// `GPU-…`, or `MIG-…` of a slice; empty where the driver does not say.
    pub uuid: String,
    /// Address of the device on the machine's bus (`0000:3b:00.0`); empty if the driver does not say.
    pub bus: String,
    /// Compute capability: 10 × major + minor.
    pub arch: i32,
    /// The driver's version: 1000 × major + 10 × minor.
    pub driver: i32,
    pub shared: SharedMemory,
    /// Memory of the device in bytes.
    pub memory: usize,
    pub multiprocessors: i32,
}

// SAFETY: a context may be used by any thread that makes it current, and by several at once.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// All GPUs that the driver shows and that give a context, which stays as long as the process. The error says in
    /// plain words why there are none. `CUDA_VISIBLE_DEVICES` says which ones the driver shows ([`super::devices`]): of
    /// a GPU cut into slices (MIG), one slice for each process.
    pub(crate) fn all() -> Result<Vec<Arc<Device>>, CudaError> {
        if !is_there() {
            return Err(CudaError::NoDriver);
        }
        // A library without the functions that we know makes the bindings panic.
        catch_unwind(Device::all_found).unwrap_or(Err(CudaError::OldDriver(0)))
    }

    fn all_found() -> Result<Vec<Arc<Device>>, CudaError> {
        result::init()?;
        let mut driver = 0;
        // SAFETY: the library is there, and the address is that of a variable.
        unsafe { sys::cuDriverGetVersion(&raw mut driver) }.result()?;
        if driver < OLDEST_DRIVER {
            return Err(CudaError::OldDriver(driver));
        }
        let (mut found, mut refused) = (Vec::new(), CudaError::NoDevice);
        for ordinal in 0..result::device::get_count()? {
            match Device::open(ordinal, driver) {
                Ok(device) => found.push(Arc::new(device)),
                Err(why) => {
                    tracing::debug!(ordinal, %why, "a GPU is left out");
                    refused = why;
                }
            }
        }
        if found.is_empty() { Err(refused) } else { Ok(found) }
    }

    fn open(ordinal: i32, driver: i32) -> Result<Device, CudaError> {
        use sys::CUdevice_attribute as Attribute;
        let device = result::device::get(ordinal)?;
        // SAFETY: the device is one that the driver named.
        let attribute = |attribute| unsafe { result::device::get_attribute(device, attribute) };
        let arch = 10 * attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?
            + attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        if arch < OLDEST_ARCH {
            return Err(CudaError::OldDevice(arch));
        }
        let bytes = |number: i32| usize::try_from(number).unwrap_or(0);
        let block = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let all = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?;
        let name = result::device::get_name(device)?;
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        // SAFETY: the device is one that the driver named.
        let memory = unsafe { result::device::total_mem(device) }?;
        // Whoever waits for the device sleeps: its time is that of decoders. A driver that does not take it spins.
        let sleeps = sys::CUctx_flags_enum::CU_CTX_SCHED_BLOCKING_SYNC as u32;
        // SAFETY: as above.
        let _ = unsafe { sys::cuDevicePrimaryCtxSetFlags_v2(device, sleeps) };
        // SAFETY: as above; `drop` releases what is retained here.
        let context = unsafe { result::primary_ctx::retain(device) }?;
        let device = Device {
            handle: device,
            context,
            ordinal: usize::try_from(ordinal).unwrap_or(0),
            uuid: uuid_of(device, &name),
            name,
            bus: bus_of(device),
            arch,
            driver,
            shared: SharedMemory { block: bytes(block), multiprocessor: bytes(all) },
            memory,
            multiprocessors,
        };
        device.enter()?;
        Ok(device)
    }

    /// Makes the device's context current in the calling thread.
    pub(crate) fn enter(&self) -> Result<(), CudaError> {
        // SAFETY: the context is retained.
        Ok(unsafe { result::ctx::set_current(self.context) }?)
    }
}

/// Whether the driver's library is installed.
pub(super) fn is_there() -> bool {
    // SAFETY: this only tries to load libraries of the driver's names.
    unsafe { sys::is_culib_present() }
}

/// The device's UUID in NVML's form (`GPU-…` or `MIG-…`); empty where the driver does not say.
fn uuid_of(device: sys::CUdevice, name: &str) -> String {
    let Ok(uuid) = result::device::get_uuid(device) else { return String::new() };
    let mut text = String::from(if profile(name).is_some() { "MIG" } else { "GPU" });
    for (n, byte) in uuid.bytes.iter().enumerate() {
        let dash = if [0, 4, 6, 8, 10].contains(&n) { "-" } else { "" };
        // Writing to a string does not fail.
        let _ = write!(text, "{dash}{byte:02x}");
    }
    text
}

fn bus_of(device: sys::CUdevice) -> String {
    let mut name = [0u8; 32];
    let len = i32::try_from(name.len()).unwrap_or(0);
    // SAFETY: the device is one that the driver named, and the address is that of so many bytes.
    let named = unsafe { sys::cuDeviceGetPCIBusId(name.as_mut_ptr().cast(), len, device) };
    if named.result().is_ok() { text(&name).to_ascii_lowercase() } else { String::new() }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: retained once, in `open`; nothing that needs it is left. A device that is lost answers with an
        // error, of which there is nothing to be made.
        let _ = unsafe { result::primary_ctx::release(self.handle) };
    }
}

/// A buffer in memory of the device.
#[derive(Debug)]
pub(super) struct DeviceBuffer {
    device: Arc<Device>,
    address: sys::CUdeviceptr,
    len: usize,
}

impl DeviceBuffer {
    /// Allocates `len` bytes of undefined content. An empty buffer has no address.
    pub(super) fn new(device: &Arc<Device>, len: usize) -> Result<Self, CudaError> {
        device.enter()?;
        // SAFETY: `drop` frees it.
        let address = if len == 0 { 0 } else { unsafe { result::malloc_sync(len) }? };
        Ok(DeviceBuffer { device: device.clone(), address, len })
    }

    pub(super) fn address(&self) -> u64 {
        self.address
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.len > 0 && self.device.enter().is_ok() {
            // SAFETY: allocated in `new`, and no work is left that uses it.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}

/// A buffer in pinned memory of the host, which the device copies from and to by itself.
#[derive(Debug)]
pub(super) struct HostBuffer {
    device: Arc<Device>,
    at: *mut c_void,
    len: usize,
}

// SAFETY: it is memory like any other, and belongs to this value alone.
unsafe impl Send for HostBuffer {}

impl HostBuffer {
    /// A buffer of `len` bytes, all zero.
    pub(super) fn new(device: &Arc<Device>, len: usize) -> Result<Self, CudaError> {
        device.enter()?;
        // SAFETY: `drop` frees it.
        let at = unsafe { result::malloc_host(len.max(1), 0) }?;
        // SAFETY: so many bytes were just allocated.
        unsafe { at.cast::<u8>().write_bytes(0, len) };
        Ok(HostBuffer { device: device.clone(), at, len })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes that belong to `self`; the engine reads them after it has waited for the work
        // that writes them.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.len) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; no work that reads them is under way.
        unsafe { std::slice::from_raw_parts_mut(self.at.cast(), self.len) }
    }

    /// The buffer's bytes as signed numbers of 16 bits.
    pub(super) fn samples(&self) -> &[i16] {
        // SAFETY: as for `bytes`; the allocation is aligned for far wider types.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.len / 2) }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: allocated in `new`, and no work is left that uses it.
            let _ = unsafe { result::free_host(self.at) };
        }
    }
}

/// A loaded module of compiled kernels.
#[derive(Debug)]
pub(super) struct Module {
    device: Arc<Device>,
    module: sys::CUmodule,
}

// SAFETY: modules belong to the context, which any thread may use.
unsafe impl Send for Module {}
// SAFETY: as above; nothing changes a module after it is loaded.
unsafe impl Sync for Module {}

impl Module {
    /// Loads a module from a cubin, or from PTX that ends with a zero.
    pub(super) fn load(device: &Arc<Device>, image: &[u8]) -> Result<Self, CudaError> {
        device.enter()?;
        if image.last().is_none_or(|&last| last != 0) {
            return Err(CudaError::Compile("the compiled kernels are cut off".to_owned()));
        }
        // SAFETY: the image is what NVRTC made; the cache checks that it is whole.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) }?;
        Ok(Module { device: device.clone(), module })
    }

    /// Returns a kernel that may use `shared` bytes of shared memory.
    pub(super) fn kernel(&self, name: &str, shared: usize) -> Result<Kernel, CudaError> {
        use sys::CUfunction_attribute_enum as Attribute;
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the module is loaded.
        let kernel = unsafe { result::module::get_function(self.module, name) }?;
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let shared = i32::try_from(shared).unwrap_or(i32::MAX);
        // SAFETY: the kernel is of a loaded module.
        unsafe { result::function::set_function_attribute(kernel, attribute, shared) }?;
        Ok(Kernel(kernel))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: loaded in `load`; no work is left that runs its kernels.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

/// A kernel of a [`Module`]; whoever holds the kernel must keep the module.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernel(sys::CUfunction);

// SAFETY: as for modules.
unsafe impl Send for Kernel {}
// SAFETY: as for modules.
unsafe impl Sync for Kernel {}

/// A CUDA stream: work that the device does in order.
#[derive(Debug)]
pub(super) struct Stream {
    device: Arc<Device>,
    stream: sys::CUstream,
}

// SAFETY: streams may be used by any thread; this value is used by one at a time.
unsafe impl Send for Stream {}

impl Stream {
    pub(super) fn new(device: &Arc<Device>) -> Result<Self, CudaError> {
        device.enter()?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        Ok(Stream { device: device.clone(), stream })
    }

    /// Waits for all work of the stream.
    pub(super) fn wait(&self) -> Result<(), CudaError> {
        self.device.enter()?;
        // SAFETY: the stream is alive.
        Ok(unsafe { result::stream::synchronize(self.stream) }?)
    }

    /// Copies the first `len` bytes to the device, at `at` bytes from the buffer's beginning.
    pub(super) fn upload(
        &self,
        from: &HostBuffer,
        to: &DeviceBuffer,
        at: usize,
        len: usize,
    ) -> Result<(), CudaError> {
        debug_assert!(at + len <= to.len && len <= from.len);
        let from = &from.bytes()[..len.min(to.len.saturating_sub(at))];
        // SAFETY: both sides hold so many bytes and live until the stream has been waited for.
        Ok(unsafe { result::memcpy_htod_async(to.address + at as u64, from, self.stream) }?)
    }

    /// Copies `len` bytes from `at` bytes after the buffer's beginning to the host.
    pub(super) fn download(
        &self,
        from: &DeviceBuffer,
        at: usize,
        to: &mut HostBuffer,
        len: usize,
    ) -> Result<(), CudaError> {
        debug_assert!(at + len <= from.len && len <= to.len);
        let len = len.min(from.len.saturating_sub(at));
        let to = &mut to.bytes_mut()[..len];
        // SAFETY: as for `upload`.
        Ok(unsafe { result::memcpy_dtoh_async(to, from.address + at as u64, self.stream) }?)
    }

    /// Copies `len` bytes from `at` bytes after the buffer's beginning within the device.
    pub(super) fn copy(
        &self,
        from: &DeviceBuffer,
        at: usize,
        to: &DeviceBuffer,
        len: usize,
    ) -> Result<(), CudaError> {
        debug_assert!(at + len <= from.len && len <= to.len);
        let len = len.min(from.len.saturating_sub(at)).min(to.len);
        let from = from.address + at as u64;
        // SAFETY: as for `upload`.
        Ok(unsafe { result::memcpy_dtod_async(to.address, from, len, self.stream) }?)
    }

    /// Launches a kernel.
    ///
    /// # Safety
    ///
    /// The kernel takes one parameter of type `T`, and all addresses in it are of memory that is as large as the
    /// kernel takes it to be and outlives the work.
    pub(super) unsafe fn launch<T>(
        &self,
        kernel: Kernel,
        grid: (u32, u32, u32),
        threads: u32,
        shared: u32,
        parameter: &T,
    ) -> Result<(), CudaError> {
        let mut parameters = [std::ptr::from_ref(parameter).cast_mut().cast::<c_void>()];
        let block = (threads, 1, 1);
        // SAFETY: the driver copies the parameter before it returns; the rest is the caller's promise.
        Ok(unsafe {
            result::launch_kernel(kernel.0, grid, block, shared, self.stream, &mut parameters)
        }?)
    }

    /// Captures what `work` submits to the stream, to be submitted again later at once.
    pub(super) fn capture(
        &self,
        work: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<Graph, CudaError> {
        use sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED as RELAXED;
        // SAFETY: the stream is alive and captures nothing yet; capturing ends below in any case.
        unsafe { result::stream::begin_capture(self.stream, RELAXED) }?;
        let worked = work();
        // SAFETY: as above.
        let graph = unsafe { result::stream::end_capture(self.stream) };
        worked?;
        let graph = graph?;
        // SAFETY: the graph was just made, and is not needed once it is instantiated.
        let (made, _) = unsafe {
            let made = result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0));
            (made, result::graph::destroy(graph))
        };
        Ok(Graph { device: self.device.clone(), graph: made? })
    }

    /// Submits captured work.
    pub(super) fn run(&self, graph: &Graph) -> Result<(), CudaError> {
        self.device.enter()?;
        // SAFETY: both are alive; the memory that the graph names is kept by whoever keeps the graph.
        Ok(unsafe { result::graph::launch(graph.graph, self.stream) }?)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.wait();
        // SAFETY: made in `new`, and its work has ended.
        let _ = unsafe { result::stream::destroy(self.stream) };
    }
}

/// Captured work of a stream.
#[derive(Debug)]
pub(super) struct Graph {
    device: Arc<Device>,
    graph: sys::CUgraphExec,
}

// SAFETY: graphs may be launched by any thread; this value is used by one at a time.
unsafe impl Send for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: instantiated in `capture`; its work has ended.
            let _ = unsafe { result::graph::exec_destroy(self.graph) };
        }
    }
}

/// The driver's text for logs, without the terminating zero.
pub(super) fn text(bytes: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(bytes).map(CStr::to_string_lossy);
    text.map_or_else(|_| String::from_utf8_lossy(bytes).into_owned(), std::borrow::Cow::into_owned)
}
