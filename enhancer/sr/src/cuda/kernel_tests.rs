//! The networks' kernels by NVIDIA's compiler, without a GPU. It is NVRTC (`LD_LIBRARY_PATH` to `libnvrtc.so.12` or
//! `.13`, which is in the Python package `nvidia-cuda-nvrtc`); where it is not found, these tests say so and pass.

use super::plan::{Plan, SharedMemory};
use super::{CudaError, Variant, compile};
use crate::Architecture;
use crate::conformance::Case;

/// A network's kernels for a device of that architecture with so much shared memory.
fn compiled(
    architecture: &Architecture,
    arch: i32,
    memory: SharedMemory,
) -> Result<Vec<u8>, CudaError> {
    let plan = Plan::new(architecture, Variant::Mma, memory).ok_or(CudaError::NoPlan)?;
    compile::compile(compile::NETWORK, &compile::options(architecture, &plan), arch)
}

/// What the assembler says of the kernels of a variant for a Hopper GPU: registers, spills, and products that it has to
/// put one after the other.
fn assembler_log(architecture: &Architecture, variant: Variant) -> Result<String, CudaError> {
    let memory = SharedMemory { block: 232_448, multiprocessor: 233_472 };
    let plan = Plan::new(architecture, variant, memory).ok_or(CudaError::NoPlan)?;
    let mut options = compile::options(architecture, &plan);
    options.push("--ptxas-options=-v".to_owned());
    compile::compile_with_log(compile::NETWORK, &options, 90).map(|(_, log)| log)
}

#[test]
fn the_kernels_compile_for_every_architecture() {
    let mut networks: Vec<Architecture> =
        Case::all().iter().map(|case| case.architecture).collect();
    // The network of the GPUs, and the largest that runs.
    networks.extend([Architecture::blocks(3, 32, 8), Architecture::blocks(4, 64, 19).with_twin()]);
    if std::env::var_os("WINDLASS_TEST_ALL_KERNELS").is_none() {
        networks.truncate(2);
        networks.push(Architecture::blocks(3, 32, 8));
    }
    for architecture in networks {
        for (arch, block, multiprocessor) in [
            (75, 65_536, 65_536),
            (80, 166_912, 167_936),
            (90, 232_448, 233_472),
            (100, 232_448, 233_472),
        ] {
            match compiled(&architecture, arch, SharedMemory { block, multiprocessor }) {
                Err(CudaError::NoCompiler) => {
                    windlass_skips::skip(
                        "libnvrtc is not found (LD_LIBRARY_PATH; `cargo xtask gpu` fetches it)",
                    );
                    return;
                }
                // The largest networks do not fit the oldest devices.
                Err(CudaError::NoPlan) if arch == 75 && architecture.channels >= 48 => {}
                Err(CudaError::OldDevice(_)) => {
                    windlass_skips::skip(format!("this NVRTC makes no code for {arch}"));
                }
                made => assert!(made.expect("kernels").len() > 1_000, "{architecture} for {arch}"),
            }
        }
    }
}

/// What no GPU is needed for: products under way together, registers and no spills.
#[test]
fn the_kernels_compile_for_hopper_and_their_products_are_asynchronous() {
    let architectures = [
        Architecture::blocks(3, 32, 8),
        Architecture::blocks(2, 32, 8).with_twin(),
        Architecture::chain(2, 32, 5),
        Architecture::blocks(4, 48, 2),
        Architecture::chain(2, 48, 5),
        Architecture::chain(2, 64, 6),
        Architecture::blocks(2, 64, 2),
    ];
    for architecture in architectures {
        let variant = Variant::Wgmma;
        let log = match assembler_log(&architecture, variant) {
            Ok(log) => log,
            Err(CudaError::NoPlan) => continue,
            Err(CudaError::NoCompiler) => {
                windlass_skips::skip(
                    "libnvrtc is not found (LD_LIBRARY_PATH; `cargo xtask gpu` fetches it)",
                );
                return;
            }
            Err(why) => panic!("{architecture}, {variant}: {why}"),
        };
        assert!(!log.contains("serialized"), "{architecture}, {variant}: {log}");
        let body = log.split("entry function").find(|part| part.contains("body_group"));
        let body = body.expect("what is said of the kernel");
        let spilled = body
            .split_once(" bytes spill stores")
            .and_then(|(before, _)| before.rsplit(' ').next()?.parse::<u32>().ok());
        assert_eq!(spilled, Some(0), "{architecture}, {variant}: {body}");
        let registers = body.lines().find_map(|line| line.split_once("Used "));
        let registers = registers.map_or("", |(_, rest)| rest);
        println!("{architecture}, {variant}: {registers}");
    }
}
