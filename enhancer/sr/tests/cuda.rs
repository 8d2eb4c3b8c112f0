//! The engine on a GPU, on machines without one: `tests/cuda/` has a CUDA driver that runs the kernels' own source on
//! the CPU, thread by thread. It needs a C++ compiler; without one these tests say so and pass. A test runs itself
//! again with the driver where the dynamic linker finds it.

#![cfg(target_os = "linux")]

#[path = "cuda/emulated.rs"]
mod emulated;

use std::sync::Arc;

use emulated::on_emulated_device;
use windlass_sr::conformance::{self, Case};
use windlass_sr::cuda::peaks::{self, Peaks};
use windlass_sr::{
    Architecture, CpuEngine, CudaEngine, CudaError, Engine, EngineChoice, InferError, Input, Luma,
    Model, Residual, Simd, embedded_model,
};
use windlass_types::Size;

/// Error of half precision relative to the residual, 2⁻¹¹ in each of some layers, and of steps of 1/64 grey level.
const TOLERANCE: f64 = 6e-3;

/// Checks networks against their definition.
fn conform(cases: impl IntoIterator<Item = Case>) {
    for case in cases {
        let mut engine = CudaEngine::new(&Arc::new(case.model())).expect("an engine");
        let error = conformance::check(&mut engine, &case).expect("the contract is kept");
        println!("{case}: {error:.1e}, {}", engine.device().plan);
        assert!(error < TOLERANCE, "{case}: {error}");
    }
}

/// Networks of up to so many channels, or of more, with one size.
fn cases(max: usize, more: bool) -> impl Iterator<Item = Case> {
    let cases = Case::all().into_iter();
    let cases = cases.filter(move |case| (case.architecture.channels > max) == more);
    cases.map(|case| Case { sizes: vec![Size::new(13, 5)], ..case })
}

/// Little shared memory makes tiles hardly larger than the pictures: the emulated device takes a second for some ten
/// million products.
#[test]
fn narrow_networks_conform() {
    let small = [("EMULATED_SHARED", "65536"), ("EMULATED_SHARED_SM", "65536")];
    on_emulated_device("narrow_networks_conform", &small, || conform(cases(32, false)));
}

#[test]
fn wide_networks_conform() {
    let small = [("EMULATED_SHARED", "84000"), ("EMULATED_SHARED_SM", "86000")];
    on_emulated_device("wide_networks_conform", &small, || conform(cases(32, true)));
}

/// As on a Hopper GPU: large tiles, and the whole of a small network in one launch.
#[test]
fn large_tiles_conform() {
    on_emulated_device("large_tiles_conform", &[], || {
        let case = |architecture| Case { architecture, sizes: vec![Size::new(50, 11)] };
        conform([
            case(Architecture::blocks(3, 32, 2)),
            case(Architecture::chain(2, 16, 5)),
            Case {
                architecture: Architecture::chain(2, 8, 2).with_twin(),
                sizes: vec![Size::new(1, 1), Size::new(7, 2)],
            },
        ]);
    });
}

/// Little shared memory makes small tiles: many blocks, and edges between them.
#[test]
fn pictures_of_many_tiles_conform() {
    let small = [
        ("EMULATED_SHARED", "40000"),
        ("EMULATED_SHARED_SM", "65536"),
        ("EMULATED_ARCH", "75"),
        ("EMULATED_BACKWARDS", "1"),
    ];
    on_emulated_device("pictures_of_many_tiles_conform", &small, || {
        let case = |architecture, width, height| Case {
            architecture,
            sizes: vec![Size::new(width, height)],
        };
        conform([
            case(Architecture::chain(2, 16, 5), 75, 50),
            case(Architecture::chain(3, 16, 4).with_twin(), 53, 37),
            case(Architecture::blocks(2, 16, 2), 61, 45),
        ]);
    });
}

#[test]
fn trained_networks_differ_from_the_cpu_by_nothing_to_be_seen() {
    on_emulated_device("trained_networks_differ_from_the_cpu_by_nothing_to_be_seen", &[], || {
        let (width, height) = (64, 48);
        for name in ["xs-x2", "xs-x3", "fused-xs-x2", "fused-m-x2"] {
            let file = format!("../../models/{name}.safetensors");
            let bytes = std::fs::read(file).expect("the weights");
            let model = Arc::new(Model::from_safetensors(&bytes).expect("a network"));
            let scale = model.architecture().scale;
            let picture = |width: usize, height: usize| -> Vec<u8> {
                let ramp = |i: usize| (i % width * 3 + i / width * 2 + i * 7919 % 23) % 256;
                (0..width * height).map(|i| ramp(i) as u8).collect()
            };
            let (low, twin) = (picture(width, height), picture(scale * width, scale * height));
            let twin = Luma::packed(&twin, scale * width, scale * height).expect("a plane");
            let input = Input {
                low: Luma::packed(&low, width, height).expect("a plane"),
                twin: model.architecture().has_twin().then_some(twin),
            };
            let (mut on_cpu, mut on_gpu) = ([Residual::default()], [Residual::default()]);
            let cpu = CpuEngine::with_simd(model.clone(), Simd::single());
            let (mut cpu, mut gpu) =
                (cpu.expect("an engine"), CudaEngine::new(&model).expect("an engine"));
            cpu.infer_batch(&[input], &mut on_cpu).expect("a residual");
            gpu.infer_batch(&[input], &mut on_gpu).expect("a residual");
            let pairs = on_cpu[0].data.iter().zip(&on_gpu[0].data);
            let sum: f64 = pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum();
            let psnr = 10.0 * (255.0 * 255.0 / (sum / on_cpu[0].data.len() as f64)).log10();
            println!("{name}, {}: PSNR between the two: {psnr:.1} dB", model.architecture());
            // A picture at 40 dB loses 0.004 dB to what is 70 dB away.
            assert!(psnr > 70.0, "{name}: {psnr}");
        }
    });
}

#[test]
fn many_pictures_come_back_in_order() {
    on_emulated_device("many_pictures_come_back_in_order", &[], || {
        let model = Arc::new(Model::random(Architecture::chain(2, 8, 2), 1).expect("it runs"));
        let mut engine = CudaEngine::new(&model).expect("an engine");
        let pictures: Vec<Vec<u8>> = (0..40).map(|n| vec![6 * n; 20]).collect();
        let luma = |samples| Luma::packed(samples, 5, 4).expect("a plane");
        let inputs: Vec<_> =
            pictures.iter().map(|samples| Input { low: luma(samples), twin: None }).collect();
        let mut out = vec![Residual::default(); 40];
        engine.infer_batch(&inputs, &mut out).expect("residuals");
        let mut alone = Residual::default();
        for (input, out) in inputs.iter().zip(&out) {
            engine.infer(input.low, &mut alone).expect("a residual");
            assert_eq!(*out, alone);
        }
        assert_ne!(out[0], out[39]);
    });
}

#[test]
fn a_device_that_is_lost_says_so() {
    on_emulated_device("a_device_that_is_lost_says_so", &[], || {
        let model = embedded_model().expect("built in");
        let mut engine = CudaEngine::new(&model).expect("an engine");
        let low = [90; 64];
        let luma = Luma::packed(&low, 8, 8).expect("a plane");
        let mut out = Residual::default();
        engine.infer(luma, &mut out).expect("a residual");
        std::fs::write(std::env::var_os("EMULATED_LOST").expect("its name"), "").expect("a file");
        let lost = engine.infer(luma, &mut out);
        assert!(
            matches!(&lost, Err(InferError::Device(why)) if why.contains("illegal")),
            "{lost:?}"
        );
        assert!(engine.swap(&model).is_err());
        assert!(CudaEngine::new(&model).is_err());
    });
}

#[test]
fn a_call_goes_on_when_the_device_is_lost() {
    on_emulated_device("a_call_goes_on_when_the_device_is_lost", &[], || {
        let mut engine = EngineChoice::Auto.engine(embedded_model().expect("built in"));
        assert_eq!(engine.backend(), "cuda");
        let low = [90; 64];
        let luma = Luma::packed(&low, 8, 8).expect("a plane");
        let (mut before, mut after) = (Residual::default(), Residual::default());
        engine.infer(luma, &mut before).expect("a residual");
        std::fs::write(std::env::var_os("EMULATED_LOST").expect("its name"), "").expect("a file");
        engine.infer(luma, &mut after).expect("a residual by the processor");
        assert!(engine.backend().starts_with("cpu"));
        let max =
            before.data.iter().zip(&after.data).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(max < 0.05, "{max}");
    });
}

#[test]
fn a_device_without_memory_says_so() {
    let little = [("EMULATED_MEMORY", "60000")];
    on_emulated_device("a_device_without_memory_says_so", &little, || {
        let model = embedded_model().expect("built in");
        let mut engine = CudaEngine::new(&model).expect("the weights fit");
        let low = vec![90; 200 * 200];
        let mut out = Residual::default();
        let refused = engine.infer(Luma::packed(&low, 200, 200).expect("a plane"), &mut out);
        assert!(
            matches!(&refused, Err(InferError::DeviceFull(why)) if why.contains("memory")),
            "{refused:?}"
        );
        // A smaller picture still has room.
        engine.infer(Luma::packed(&low, 20, 20).expect("a plane"), &mut out).expect("a residual");
    });
}

#[test]
fn the_devices_rates_are_measured() {
    on_emulated_device("the_devices_rates_are_measured", &[], || {
        let Peaks { tensor_tflops, memory_gbps, upload_gbps, download_gbps } =
            peaks::measure(2, 1 << 20).expect("rates");
        for rate in [tensor_tflops, memory_gbps, upload_gbps, download_gbps] {
            assert!(rate.is_finite() && rate > 0.0, "{rate}");
        }
    });
}

#[test]
fn an_old_driver_and_an_old_device_are_refused() {
    let old = [("EMULATED_DRIVER", "11040")];
    on_emulated_device("an_old_driver_and_an_old_device_are_refused", &old, || {
        let refused = CudaEngine::new(&embedded_model().expect("built in")).err();
        assert_eq!(refused, Some(CudaError::OldDriver(11_040)));
        assert!(CudaError::OldDriver(11_040).to_string().contains("CUDA 11.4"));
    });
}

#[test]
fn the_toolkits_stub_is_no_driver() {
    on_emulated_device("the_toolkits_stub_is_no_driver", &[("EMULATED_STUB", "1")], || {
        let refused = CudaEngine::new(&embedded_model().expect("built in")).err();
        assert_eq!(refused, Some(CudaError::Stub));
    });
}
