//! Kernels by products of warpgroups, on a Hopper GPU that the CPU stands in for: see `tests/cuda.rs`, and
//! `tests/cuda/emulate_wgmma.h` for what it checks.

#![cfg(target_os = "linux")]

#[path = "cuda/emulated.rs"]
mod emulated;

use std::sync::Arc;

use emulated::on_emulated_device;
use windlass_sr::conformance::{self, Case};
use windlass_sr::cuda::Variant;
use windlass_sr::{Architecture, CudaEngine, CudaError, Engine, Luma, Residual};
use windlass_types::Size;

const HOPPER: (&str, &str) = ("EMULATED_ARCH", "90");
const BACKWARDS: (&str, &str) = ("EMULATED_BACKWARDS", "1");

/// Checks networks against their definition.
fn conform(variant: Variant, tolerance: f64, cases: impl IntoIterator<Item = Case>) {
    for case in cases {
        let model = Arc::new(case.model());
        let mut engine = CudaEngine::with_variant(&model, variant).expect("an engine");
        let error = conformance::check(&mut engine, &case).expect("the contract is kept");
        println!("{case}: {error:.1e}, {}", engine.device().plan);
        assert!(error < tolerance, "{case}: {error}");
    }
}

fn case(architecture: Architecture, sizes: &[Size]) -> Case {
    Case { architecture, sizes: sizes.to_vec() }
}

#[test]
fn networks_conform_in_half_precision() {
    on_emulated_device("networks_conform_in_half_precision", &[HOPPER], || {
        conform(
            Variant::Wgmma,
            6e-3,
            [
                // More than a strip across, and than a segment down.
                case(Architecture::blocks(2, 32, 1), &[Size::new(67, 23)]),
                case(Architecture::blocks(3, 24, 3), &[Size::new(1, 1), Size::new(13, 5)]),
                case(Architecture::chain(2, 32, 5), &[Size::new(3, 2), Size::new(65, 9)]),
            ],
        );
    });
}

#[test]
fn wide_networks_and_those_with_twins_conform_in_half_precision() {
    let name = "wide_networks_and_those_with_twins_conform_in_half_precision";
    on_emulated_device(name, &[HOPPER, BACKWARDS], || {
        conform(
            Variant::Wgmma,
            6e-3,
            [
                case(Architecture::blocks(2, 32, 2).with_twin(), &[Size::new(13, 5)]),
                case(Architecture::blocks(4, 48, 1), &[Size::new(1, 1), Size::new(13, 5)]),
                case(Architecture::chain(2, 64, 3), &[Size::new(13, 5)]),
            ],
        );
    });
}

fn refused(architecture: Architecture, variant: Variant) -> Option<CudaError> {
    CudaEngine::with_variant(&Arc::new(case(architecture, &[]).model()), variant).err()
}

#[test]
fn other_devices_have_no_such_variant() {
    on_emulated_device("other_devices_have_no_such_variant", &[], || {
        let wide = Architecture::blocks(2, 32, 1);
        assert_eq!(refused(wide, Variant::Wgmma), Some(CudaError::OldDevice(80)));
    });
}

#[test]
fn other_networks_have_no_such_variant() {
    on_emulated_device("other_networks_have_no_such_variant", &[HOPPER], || {
        let narrow = Architecture::chain(2, 16, 5);
        assert_eq!(refused(narrow, Variant::Wgmma), Some(CudaError::NoPlan));
    });
}

#[test]
fn the_quickest_variant_is_taken_and_kept() {
    on_emulated_device("the_quickest_variant_is_taken_and_kept", &[HOPPER], || {
        let model = Arc::new(case(Architecture::chain(2, 32, 3), &[]).model());
        let quickest = || {
            let folder = std::env::var_os("XDG_CACHE_HOME").expect("a folder");
            let all = std::fs::read_dir(std::path::Path::new(&folder).join("windlass/kernels"));
            let all = all.expect("the kernels").flatten().map(|file| file.path());
            all.filter(|file| file.extension().is_some_and(|e| e == "quickest")).collect::<Vec<_>>()
        };
        let taken = CudaEngine::new(&model).expect("an engine").device().variant;
        assert!(matches!(taken, Variant::Mma | Variant::Wgmma));
        let [kept] = &quickest()[..] else { panic!("one choice is kept") };
        let bytes = std::fs::read(kept).expect("the choice");
        assert!(bytes.ends_with(taken.name().as_bytes()));
        // What is kept is believed.
        let (other, length) = if taken == Variant::Mma { ("wgmma", 5_u64) } else { ("mma", 3) };
        let changed = [&bytes[..16], &length.to_le_bytes()[..], other.as_bytes()].concat();
        std::fs::write(kept, changed).expect("another choice");
        let engine = CudaEngine::new(&model).expect("an engine");
        assert_eq!(engine.device().variant.name(), other);
        assert_eq!(quickest().len(), 1);
    });
}

#[test]
fn an_engine_of_a_variant_is_beside_those_of_others() {
    on_emulated_device("an_engine_of_a_variant_is_beside_those_of_others", &[HOPPER], || {
        let model = Arc::new(case(Architecture::blocks(2, 32, 1), &[]).model());
        let low: Vec<u8> = (0..20 * 8).map(|n| (n * 37 % 256) as u8).collect();
        let run = |variant| {
            let mut engine = CudaEngine::with_variant(&model, variant).expect("an engine");
            assert_eq!(engine.device().variant, variant);
            let mut out = Residual::default();
            engine.infer(Luma::packed(&low, 20, 8).expect("a plane"), &mut out).expect("it runs");
            (engine, out.data)
        };
        let [mma, wgmma] = Variant::ALL.map(run);
        let rms = |a: &[f32], b: &[f32]| {
            let sum: f32 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
            (sum / a.len() as f32).sqrt()
        };
        let size = rms(&mma.1, &vec![0.0; mma.1.len()]);
        assert!(rms(&mma.1, &wgmma.1) < 2e-3 * size.max(10.0));
    });
}
