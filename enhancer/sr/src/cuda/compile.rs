//! Kernels from their source: compiled by NVRTC for the machine's device, cached for the next engine, and on disk for
//! the next start.
//!
//! The cache is keyed by a hash of source, options, device and driver. A file holds that key, its own length and the
//! image; any other file is replaced. Without NVRTC there are no kernels; nothing else of the CUDA toolkit is
//! needed.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::ffi::{CString, c_char};
use std::hash::{Hash, Hasher};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudarc::nvrtc::{result, sys};
use parking_lot::Mutex;

use super::CudaError;
use super::driver::{Device, text};
use super::plan::Plan;
use crate::{Architecture, Kind};

/// Source of the networks' kernels.
pub(super) static NETWORK: &str =
    concat!(include_str!("prelude.cu"), include_str!("wgmma.cu"), include_str!("network.cu"));
/// Source of the kernels of [`super::peaks`].
pub(super) static PEAKS: &str = include_str!("peaks.cu");

/// First bytes of a file that holds a compiled image.
const MAGIC: &[u8; 8] = b"windkern";

/// Compiler options for a network's kernels.
pub(super) fn options(architecture: &Architecture, plan: &Plan) -> Vec<String> {
    let define = |(name, value): (&str, usize)| format!("-D{name}={value}");
    let needs = |kernel| usize::from(plan.groups.iter().any(|group| group.kernel() == kernel));
    let defines = [
        ("CHANNELS", plan.shape.channels),
        ("HEAD_CHANNELS", plan.shape.head_channels),
        ("OUT_TILES", plan.shape.out_tiles),
        ("SCALE", architecture.scale),
        ("TWIN", usize::from(architecture.has_twin())),
        ("BLOCKS", usize::from(architecture.kind == Kind::Blocks)),
        ("PITCH", plan.pitch),
        ("WARPS", plan.warps),
        ("RESIDENT", plan.resident),
        ("FIRST_GROUP", needs("first_group")),
        ("MIDDLE_GROUP", needs("middle_group")),
        ("LAST_GROUP", needs("last_group")),
        ("ONLY_GROUP", needs("only_group")),
        ("BODY_GROUP", plan.strips.map_or(0, |strips| strips.convs)),
    ];
    let body = plan.strips.map(|strips| ("BODY_WARPS", 4 * strips.warpgroups));
    defines.into_iter().chain(body).map(define).collect()
}

/// Returns the compiled kernels, from the cache if they are there.
pub(super) fn image(
    source: &'static str,
    options: &[String],
    arch: i32,
    device: &str,
    driver: i32,
) -> Result<Arc<[u8]>, CudaError> {
    // Whoever comes second waits for the first instead of compiling the same.
    static MADE: Mutex<BTreeMap<u64, Arc<[u8]>>> = Mutex::new(BTreeMap::new());
    let mut hasher = DefaultHasher::new();
    (source, options, arch, device, driver).hash(&mut hasher);
    let key = hasher.finish();
    let mut made = MADE.lock();
    if let Some(image) = made.get(&key) {
        return Ok(image.clone());
    }
    let image: Arc<[u8]> = kept_or_compiled(source, options, arch, key)?.into();
    made.insert(key, image.clone());
    Ok(image)
}

fn kept_or_compiled(
    source: &'static str,
    options: &[String],
    arch: i32,
    key: u64,
) -> Result<Vec<u8>, CudaError> {
    let file = cache_folder().map(|folder| folder.join(format!("{key:016x}")));
    if let Some(image) = file.as_deref().and_then(|file| read(file, key)) {
        return Ok(image);
    }
    let image = compile(source, options, arch)?;
    if let Some(file) = file
        && let Err(error) = write(&file, key, &image)
    {
        tracing::debug!(%error, "compiled kernels could not be kept");
    }
    Ok(image)
}

/// Record on disk, beside the kernels, of the quickest plan for a network on a device.
pub(super) struct Kept {
    file: Option<PathBuf>,
    key: u64,
}

impl Kept {
    pub(super) fn new(architecture: &Architecture, plans: &[Plan], device: &Device) -> Kept {
        let mut hasher = DefaultHasher::new();
        let all: Vec<_> = plans.iter().map(|plan| options(architecture, plan)).collect();
        (NETWORK, all, device.arch, &device.name, device.driver).hash(&mut hasher);
        let key = hasher.finish();
        let file = cache_folder().map(|folder| folder.join(format!("{key:016x}.quickest")));
        Kept { file, key }
    }

    /// Name of the recorded variant; `None` if there is none.
    pub(super) fn read(&self) -> Option<String> {
        String::from_utf8(read(self.file.as_deref()?, self.key)?).ok()
    }

    pub(super) fn write(&self, name: &str) {
        if let Some(file) = &self.file
            && let Err(error) = write(file, self.key, name.as_bytes())
        {
            tracing::debug!(%error, "the quickest variant could not be kept");
        }
    }

    /// File that exists while variants other than the safest are tested.
    pub(super) fn trying(&self) -> Option<PathBuf> {
        self.file.as_ref().map(|file| file.with_extension("trying"))
    }

    /// Notes that variants are being tried; returns whether they may be. They may not after [`MAX_ENDED`] processes
    /// ended during the trial.
    pub(super) fn tries(&self) -> bool {
        let Some(file) = self.trying() else { return true };
        // The process that noted it last, and how many had ended before.
        let noted = std::fs::read_to_string(&file).ok();
        let noted = noted.as_deref().and_then(|noted| noted.split_once(' '));
        let noted = noted.and_then(|(who, ended)| Some((who, ended.parse::<u32>().ok()?)));
        let ended = noted.map_or(0, |(who, ended)| ended + u32::from(!runs(who)));
        if ended >= MAX_ENDED {
            return false;
        }
        if let Err(error) = std::fs::write(&file, format!("{} {ended}", std::process::id())) {
            tracing::debug!(%error, "it could not be noted what is tried");
        }
        true
    }

    /// Notes that the trial is over and the process lives.
    pub(super) fn tried(&self) {
        if let Some(file) = self.trying() {
            // Another process may have been there first.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Maximum number of processes that may end during a trial. One may have been stopped by an operator.
const MAX_ENDED: u32 = 2;

/// Whether a process with this number runs, as far as the system shows it.
fn runs(process: &str) -> bool {
    !cfg!(target_os = "linux") || Path::new("/proc").join(process).exists()
}

fn read(file: &Path, key: u64) -> Option<Vec<u8>> {
    let bytes = std::fs::read(file).ok()?;
    let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(&key.to_le_bytes())?;
    let (length, image) = rest.split_first_chunk::<8>()?;
    (u64::from_le_bytes(*length) == image.len() as u64).then(|| image.to_vec())
}

/// Writes a compiled image into the cache: under another name first, so that nobody reads half a file.
fn write(file: &Path, key: u64, image: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let length = (image.len() as u64).to_le_bytes();
    let unfinished = file.with_extension(std::process::id().to_string());
    std::fs::write(&unfinished, [&MAGIC[..], &key.to_le_bytes(), &length, image].concat())?;
    std::fs::rename(unfinished, file)
}

/// Compiles kernels for a compute capability (10 × major + minor). The image ends with a zero byte.
pub(super) fn compile(
    source: &'static str,
    options: &[String],
    arch: i32,
) -> Result<Vec<u8>, CudaError> {
    compile_with_log(source, options, arch).map(|(image, _)| image)
}

/// Compiles kernels as [`compile`] does. Returns the image, and what the compiler says.
pub(super) fn compile_with_log(
    source: &'static str,
    options: &[String],
    arch: i32,
) -> Result<(Vec<u8>, String), CudaError> {
    // SAFETY: this only tries to load libraries of NVRTC's names.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoCompiler);
    }
    let options = options.to_vec();
    // A library without the functions that we know makes the bindings panic.
    let compiled = catch_unwind(move || compile_found(source, &options, arch));
    compiled.unwrap_or_else(|_| Err(CudaError::Compile("NVRTC is too old".to_owned())))
}

fn compile_found(
    source: &str,
    options: &[String],
    arch: i32,
) -> Result<(Vec<u8>, String), CudaError> {
    let failed = |error: result::NvrtcError| CudaError::Compile(error.to_string());
    let known = supported().map_err(failed)?;
    // What only this very architecture has.
    let own = options.iter().any(|option| option.starts_with("-DBODY_WARPS="));
    let target = match known.iter().filter(|&&known| known <= arch).max() {
        Some(&best) if best == arch && own => format!("--gpu-architecture=sm_{arch}a"),
        _ if own => return Err(CudaError::OldDevice(arch)),
        Some(&best) if best == arch => format!("--gpu-architecture=sm_{arch}"),
        // A device that is newer than NVRTC: the driver compiles the rest.
        Some(best) => format!("--gpu-architecture=compute_{best}"),
        None => return Err(CudaError::OldDevice(arch)),
    };
    let machine_code = target.contains("sm_");
    let mut all = vec![target, "--std=c++17".to_owned()];
    all.extend_from_slice(options);
    let source = CString::new(source).unwrap_or_default();
    let program = Program(result::create_program(&source, Some(c"network.cu")).map_err(failed)?);
    // SAFETY: the program is alive until it is dropped.
    let compiled = unsafe { result::compile_program(program.0, &all) };
    // SAFETY: as above.
    let log = unsafe { result::get_program_log(program.0) }.unwrap_or_default();
    let log = text(&log.into_iter().map(|c| c as u8).collect::<Vec<u8>>());
    if let Err(error) = compiled {
        return Err(CudaError::Compile(format!("{error}: {log}")));
    }
    let mut image = program.image(machine_code).map_err(failed)?;
    if image.last().is_none_or(|&last| last != 0) {
        image.push(0);
    }
    Ok((image, log))
}

/// Compute capabilities for which NVRTC makes code.
fn supported() -> Result<Vec<i32>, result::NvrtcError> {
    let mut count = 0;
    // SAFETY: the addresses are those of a variable and of as many numbers as NVRTC said.
    unsafe {
        sys::nvrtcGetNumSupportedArchs(&raw mut count).result()?;
        let mut archs = vec![0; usize::try_from(count).unwrap_or(0)];
        sys::nvrtcGetSupportedArchs(archs.as_mut_ptr()).result()?;
        Ok(archs)
    }
}

/// A program that NVRTC holds.
struct Program(sys::nvrtcProgram);

impl Program {
    fn image(&self, machine_code: bool) -> Result<Vec<u8>, result::NvrtcError> {
        let mut size = 0;
        // SAFETY: the program is alive and was compiled; the address is that of a variable.
        unsafe {
            let status = if machine_code {
                sys::nvrtcGetCUBINSize(self.0, &raw mut size)
            } else {
                sys::nvrtcGetPTXSize(self.0, &raw mut size)
            };
            status.result()?;
        }
        let mut image = vec![0u8; size];
        let to = image.as_mut_ptr().cast::<c_char>();
        // SAFETY: there are as many bytes as NVRTC said.
        unsafe {
            let status = if machine_code {
                sys::nvrtcGetCUBIN(self.0, to)
            } else {
                sys::nvrtcGetPTX(self.0, to)
            };
            status.result()?;
        }
        Ok(image)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: made by `create_program`, and dropped once.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

/// Cache folder of the kernels: `$XDG_CACHE_HOME/windlass/kernels`, or below `~/.cache`.
fn cache_folder() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    Some(base.join("windlass").join("kernels"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_processes_have_not_survived_is_not_tried_again() {
        let name = format!("windlass-kept-{}.quickest", std::process::id());
        let kept = Kept { file: Some(std::env::temp_dir().join(name)), key: 1 };
        let note = kept.trying().expect("a place");
        let noted = || std::fs::read_to_string(&note).expect("a note");
        let own = std::process::id();
        assert!(kept.tries());
        assert_eq!(noted(), format!("{own} 0"));
        assert!(kept.tries(), "another of this machine is at it");
        // No process has that number.
        std::fs::write(&note, "4294967295 0").expect("a note");
        assert!(kept.tries());
        assert_eq!(noted(), format!("{own} 1"));
        std::fs::write(&note, "4294967295 1").expect("a note");
        assert!(!cfg!(target_os = "linux") || !kept.tries());
        kept.tried();
        assert!(!note.exists() && kept.tries());
        std::fs::write(&note, "neither nor").expect("a note");
        assert!(kept.tries());
        kept.tried();
    }
}
