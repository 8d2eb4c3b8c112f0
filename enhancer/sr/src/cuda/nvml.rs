//! What the driver's management library (NVML, `libnvidia-ml.so.1`) says of the machine: its GPUs, and the slices that
//! they are cut into (MIG). CUDA itself shows a process one slice at the most, and GPUs in an order of its own.
//!
//! `unsafe` here follows three invariants. Functions are looked up by the names of `nvml.h`, have its types, and are
//! called only while [`Library`] is alive, whose drop gives the library's own state back before it unloads it. Handles
//! do not leave this module. Addresses are those of variables and buffers on the stack, of the lengths that are passed
//! along.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use libloading::Library as Loaded;

use super::devices::{Device, DevicesError, Kind};
use super::driver::{self, text};

/// File name of the driver's management library.
const NAME: &str = "libnvidia-ml.so.1";
/// `NVML_ERROR_DRIVER_NOT_LOADED` of `nvml.h`.
const NOT_LOADED: c_int = 9;
/// Length of names and UUIDs, in bytes (`NVML_DEVICE_NAME_V2_BUFFER_SIZE`).
const TEXT: usize = 96;
/// Maximum number of GPUs that are read, or of slices of one GPU.
const MAX_DEVICES: c_uint = 256;

type Handle = *mut c_void;
type Named = unsafe extern "C" fn(Handle, *mut c_char, c_uint) -> c_int;

/// Structure `nvmlMemory_t` of `nvml.h`; sizes in bytes.
#[repr(C)]
#[derive(Default)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// Structure `nvmlPciInfo_t` of `nvml.h`.
#[repr(C)]
#[derive(Default)]
struct Pci {
    bus_legacy: [u8; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    id: c_uint,
    subsystem: c_uint,
    bus_id: [u8; 32],
}

/// Functions that only drivers with support for slices have (450 and later).
#[derive(Clone, Copy)]
struct Slices {
    mode: unsafe extern "C" fn(Handle, *mut c_uint, *mut c_uint) -> c_int,
    max: unsafe extern "C" fn(Handle, *mut c_uint) -> c_int,
    by_index: unsafe extern "C" fn(Handle, c_uint, *mut Handle) -> c_int,
}

impl Slices {
    /// # Safety
    ///
    /// The caller must meet the same conditions as for [`find`].
    unsafe fn of(loaded: &Loaded) -> Result<Slices, DevicesError> {
        // SAFETY: these are functions of `nvml.h` by their names, with its types.
        unsafe {
            Ok(Slices {
                mode: find(loaded, c"nvmlDeviceGetMigMode")?,
                max: find(loaded, c"nvmlDeviceGetMaxMigDeviceCount")?,
                by_index: find(loaded, c"nvmlDeviceGetMigDeviceHandleByIndex")?,
            })
        }
    }
}

/// Looks up a function of the library by name.
///
/// # Safety
///
/// `T` is the type of the function of that name, and is not called after the library is gone.
unsafe fn find<T: Copy>(loaded: &Loaded, name: &CStr) -> Result<T, DevicesError> {
    // SAFETY: the caller's promise.
    unsafe { loaded.get(name) }.map(|found| *found).map_err(|_| DevicesError::OldNvml)
}

/// NVML, loaded and ready.
struct Library {
    error: unsafe extern "C" fn(c_int) -> *const c_char,
    shutdown: unsafe extern "C" fn() -> c_int,
    driver: unsafe extern "C" fn(*mut c_char, c_uint) -> c_int,
    count: unsafe extern "C" fn(*mut c_uint) -> c_int,
    by_index: unsafe extern "C" fn(c_uint, *mut Handle) -> c_int,
    name: Named,
    uuid: Named,
    memory: unsafe extern "C" fn(Handle, *mut Memory) -> c_int,
    pci: unsafe extern "C" fn(Handle, *mut Pci) -> c_int,
    slices: Option<Slices>,
    /// The loaded library. It is the last field, so that it is unloaded when nothing of it is used any more.
    _loaded: Loaded,
}

impl Library {
    fn load() -> Result<Library, DevicesError> {
        // SAFETY: this loads the driver's library by its name; what that does at its loading is the driver's to answer
        // for.
        let loaded = unsafe { Loaded::new(NAME) }.map_err(|_| {
            if driver::is_there() { DevicesError::NoNvml } else { DevicesError::NoDriver }
        })?;
        // SAFETY: these are functions of `nvml.h` by their names, with its types.
        let (init, library) = unsafe {
            let init: unsafe extern "C" fn() -> c_int = find(&loaded, c"nvmlInit_v2")?;
            let library = Library {
                error: find(&loaded, c"nvmlErrorString")?,
                shutdown: find(&loaded, c"nvmlShutdown")?,
                driver: find(&loaded, c"nvmlSystemGetDriverVersion")?,
                count: find(&loaded, c"nvmlDeviceGetCount_v2")?,
                by_index: find(&loaded, c"nvmlDeviceGetHandleByIndex_v2")?,
                name: find(&loaded, c"nvmlDeviceGetName")?,
                uuid: find(&loaded, c"nvmlDeviceGetUUID")?,
                memory: find(&loaded, c"nvmlDeviceGetMemoryInfo")?,
                pci: find(&loaded, c"nvmlDeviceGetPciInfo_v3")?,
                slices: Slices::of(&loaded).ok(),
                _loaded: loaded,
            };
            (init, library)
        };
        // SAFETY: it takes nothing. Where it fails, `drop` shuts down what never began, which is an error without
        // effect.
        match unsafe { init() } {
            NOT_LOADED => Err(DevicesError::NotLoaded),
            code => library.fine(code).map(|()| library),
        }
    }

    fn fine(&self, code: c_int) -> Result<(), DevicesError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: it gives a text that is never freed, for every number.
        let message = unsafe { (self.error)(code) };
        if message.is_null() {
            return Err(DevicesError::Nvml(format!("error {code}")));
        }
        // SAFETY: it is not null, and ends with a zero.
        let message = unsafe { CStr::from_ptr(message) };
        Err(DevicesError::Nvml(message.to_string_lossy().into_owned()))
    }

    fn driver(&self) -> Result<String, DevicesError> {
        let mut buffer = [0; TEXT];
        // SAFETY: the buffer has so many bytes.
        self.fine(unsafe { (self.driver)(buffer.as_mut_ptr().cast(), TEXT as c_uint) })?;
        Ok(text(&buffer))
    }

    fn read_text(&self, of: Handle, what: Named) -> Result<String, DevicesError> {
        let mut buffer = [0; TEXT];
        // SAFETY: the handle is of this library, and the buffer has so many bytes.
        self.fine(unsafe { what(of, buffer.as_mut_ptr().cast(), TEXT as c_uint) })?;
        Ok(text(&buffer))
    }

    fn device(&self, of: Handle, ordinal: String, kind: Kind) -> Result<Device, DevicesError> {
        let mut memory = Memory::default();
        // SAFETY: the handle is of this library, the address that of a variable.
        let known = self.fine(unsafe { (self.memory)(of, &raw mut memory) });
        let (name, uuid) = (self.read_text(of, self.name)?, self.read_text(of, self.uuid)?);
        let memory_bytes = known.is_ok().then_some(memory.total);
        Ok(Device { ordinal, kind, name, uuid, memory_bytes, bus: String::new(), numa_node: None })
    }

    /// Appends a GPU and its slices to `all`.
    fn gpu(&self, n: c_uint, all: &mut Vec<Device>) -> Result<(), DevicesError> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        self.fine(unsafe { (self.by_index)(n, &raw mut handle) })?;
        let mut pci = Pci::default();
        // SAFETY: the handle was just given, the address is that of a variable.
        let placed = self.fine(unsafe { (self.pci)(handle, &raw mut pci) });
        let bus = placed.map_or_else(|_| String::new(), |()| text(&pci.bus_id));
        let slices = self.slices.filter(|slices| {
            let (mut now, mut next) = (0, 0);
            // SAFETY: as above. GPUs without slices answer with an error.
            let code = unsafe { (slices.mode)(handle, &raw mut now, &raw mut next) };
            code == 0 && now == 1
        });
        let kind = if slices.is_some() { Kind::Cut } else { Kind::Gpu };
        all.push(self.device(handle, n.to_string(), kind)?.at(&bus));
        let Some(slices) = slices else { return Ok(()) };
        let mut max = 0;
        // SAFETY: as above.
        self.fine(unsafe { (slices.max)(handle, &raw mut max) })?;
        for i in 0..max.min(MAX_DEVICES) {
            let mut slice = std::ptr::null_mut();
            // SAFETY: as above. Places without a slice answer with an error.
            if unsafe { (slices.by_index)(handle, i, &raw mut slice) } == 0 {
                all.push(self.device(slice, format!("{n}:{i}"), Kind::Slice)?.at(&bus));
            }
        }
        Ok(())
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: no handle is left. Of an error there is nothing to be made.
        let _ = unsafe { (self.shutdown)() };
    }
}

/// The driver's version and every device, each GPU before its slices.
pub(super) fn devices() -> Result<(String, Vec<Device>), DevicesError> {
    let library = Library::load()?;
    let mut count = 0;
    // SAFETY: the address is that of a variable.
    library.fine(unsafe { (library.count)(&raw mut count) })?;
    let mut all = Vec::new();
    for n in 0..count.min(MAX_DEVICES) {
        // A GPU that is lost does not hide the others.
        if let Err(why) = library.gpu(n, &mut all) {
            tracing::warn!(gpu = n, %why, "GPU ignored: NVML gave no information; check the driver with `nvidia-smi`");
        }
    }
    Ok((library.driver()?, all))
}
