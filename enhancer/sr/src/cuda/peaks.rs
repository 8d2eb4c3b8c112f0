//! Measures what the device can do: the upper limits with which `windlass-lab bench gpu` compares the engine.

use std::sync::Arc;
use std::time::Instant;

use super::driver::{Device, DeviceBuffer, HostBuffer, Module, Stream};
use super::gpu::Gpu;
use super::{CudaError, compile};

/// Measured peak rates of the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peaks {
    /// Rate of the tensor cores with `mma.sync` in half precision, sums in single, in 10¹² operations a second. A
    /// multiply-add is two operations.
    pub tensor_tflops: f64,
    /// Rate of the device's memory, in 10⁹ bytes a second. A copy's bytes count twice.
    pub memory_gbps: f64,
    /// Rate of copies from pinned memory of the host to the device, in 10⁹ bytes a second.
    pub upload_gbps: f64,
    /// Rate of copies from the device to pinned memory of the host, in 10⁹ bytes a second.
    pub download_gbps: f64,
}

/// Arguments of the kernels in `peaks.cu`, which declares the same structure.
#[repr(C)]
struct Work {
    out: u64,
    rounds: i32,
}

/// Threads of a block of the measuring kernel.
const THREADS: u32 = 256;
/// Operations of a warp per round: 8 matrix products of 16×16 by 16×8.
const ROUND: f64 = 8.0 * 2.0 * 2_048.0;
/// Repetitions of each measurement; the best counts.
const TAKES: usize = 5;

/// Measures the first GPU by `rounds` of matrix products (20,000 take some milliseconds) and by copies of `bytes`
/// bytes.
///
/// # Errors
///
/// Fails if there is no GPU that can be used, it has no memory for the copies, or it fails.
pub fn measure(rounds: u16, bytes: usize) -> Result<Peaks, CudaError> {
    let device = Gpu::freest()?.device.clone();
    let stream = Stream::new(&device)?;
    let tensor_tflops = tensor(&device, &stream, rounds)?;
    let (from, to) = (DeviceBuffer::new(&device, bytes)?, DeviceBuffer::new(&device, bytes)?);
    let mut host = HostBuffer::new(&device, bytes)?;
    for (n, byte) in host.bytes_mut().iter_mut().enumerate() {
        *byte = (n * 31 % 251) as u8;
    }
    let rate = |seconds: f64| bytes as f64 / seconds * 1e-9;
    let upload_gbps = rate(best(&stream, || stream.upload(&host, &from, 0, bytes))?);
    let memory_gbps = 2.0 * rate(best(&stream, || stream.copy(&from, 0, &to, bytes))?);
    let download_gbps = rate(best(&stream, || stream.download(&to, 0, &mut host, bytes))?);
    Ok(Peaks { tensor_tflops, memory_gbps, upload_gbps, download_gbps })
}

fn tensor(device: &Arc<Device>, stream: &Stream, rounds: u16) -> Result<f64, CudaError> {
    let source = compile::PEAKS;
    let image = compile::image(source, &[], device.arch, &device.name, device.driver)?;
    let module = Module::load(device, &image)?;
    let kernel = module.kernel("multiply_only", 0)?;
    // Eight blocks of eight warps fill a multiprocessor.
    let blocks = 8 * u32::try_from(device.multiprocessors).unwrap_or(1);
    let out = DeviceBuffer::new(device, 4 * (blocks * THREADS) as usize)?;
    let work = Work { out: out.address(), rounds: i32::from(rounds) };
    // SAFETY: `Work` is what the kernel takes, and the buffer has a number for each thread.
    let launch = || unsafe { stream.launch(kernel, (blocks, 1, 1), THREADS, 0, &work) };
    let seconds = best(stream, launch)?;
    Ok(f64::from(blocks * THREADS / 32) * f64::from(rounds) * ROUND / seconds * 1e-12)
}

/// Minimum time of some work, in seconds, after it was done once.
fn best(
    stream: &Stream,
    mut work: impl FnMut() -> Result<(), CudaError>,
) -> Result<f64, CudaError> {
    let mut min = f64::INFINITY;
    for take in 0..=TAKES {
        stream.wait()?;
        let began = Instant::now();
        work()?;
        stream.wait()?;
        if take > 0 {
            min = min.min(began.elapsed().as_secs_f64());
        }
    }
    Ok(min)
}
