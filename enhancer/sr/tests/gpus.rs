//! GPUs that engines share, on machines without one: see `cuda.rs`.

#![cfg(target_os = "linux")]

#[path = "cuda/emulated.rs"]
mod emulated;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{scope, sleep};
use std::time::Duration;

use emulated::on_emulated_device;
use windlass_sr::cuda::coder::SharedCoder;
use windlass_sr::cuda::{GpuStats, gpus};
use windlass_sr::{
    Architecture, CudaEngine, CudaError, Engine, EngineChoice, InferError, Input, Luma, Model,
    Residual,
};
use windlass_vp9::PlaneSize;

/// A file by which the emulated driver is told something.
fn told(variable: &str, of: &str) -> PathBuf {
    let mut name = std::env::var_os(variable).expect("the file's name");
    name.push(of);
    name.into()
}

fn model(seed: u64) -> Arc<Model> {
    Arc::new(Model::random(Architecture::chain(2, 8, 2), seed).expect("it runs"))
}

/// Infers a picture that is like no other: of 6×5, the first three 6×4.
fn infer(engine: &mut dyn Engine, n: u8) -> Result<Residual, InferError> {
    let height = if n < 3 { 4 } else { 5 };
    let low: Vec<u8> = (0..6 * height).map(|i| i * 3 + n * 7).collect();
    let mut out = Residual::default();
    engine.infer(Luma::packed(&low, 6, height.into()).expect("a plane"), &mut out)?;
    Ok(out)
}

/// Waits until the first GPU is as wanted.
fn until(what: &str, is_so: impl Fn(&GpuStats) -> bool) {
    for _ in 0..2_000 {
        if gpus().first().is_some_and(&is_so) {
            return;
        }
        sleep(Duration::from_millis(5));
    }
    panic!("never {what}: {:?}", gpus());
}

#[test]
fn pictures_of_many_engines_and_weights_go_in_one_launch() {
    on_emulated_device("pictures_of_many_engines_and_weights_go_in_one_launch", &[], || {
        let models: Vec<Arc<Model>> = (0..5).map(model).collect();
        let engines = (0..12).map(|n| CudaEngine::new(&models[n % 5]).expect("an engine"));
        let mut engines: Vec<CudaEngine> = engines.collect();
        assert_eq!((gpus()[0].engines, gpus()[0].launches), (12, 0));
        let hang = told("EMULATED_HANG", "");
        fs::write(&hang, "").expect("a file");
        let together: Vec<Residual> = scope(|scope| {
            let mut running = Vec::new();
            for (n, engine) in (0..).zip(&mut engines) {
                running.push(scope.spawn(move || infer(engine, n).expect("a residual")));
                // The GPU has three launches under way, of a picture each; the others, which are of another size, wait.
                let (under_way, waiting) = (usize::from(n.min(2)) + 1, usize::from(n.max(2)) - 2);
                until("there", |gpu| (gpu.under_way, gpu.waiting) == (under_way, waiting));
            }
            fs::remove_file(&hang).expect("it was there");
            running.into_iter().map(|one| one.join().expect("a residual")).collect()
        });
        // Three of one picture, and the nine others at once: of a size that was not seen before, nobody knows that it
        // takes long.
        let gpu = &gpus()[0];
        assert_eq!((gpu.resident, gpu.pictures, gpu.launches), (5, 12, 4));
        assert!(gpu.busy > Duration::ZERO);
        let alone =
            (0..).zip(&mut engines).map(|(n, engine)| infer(engine, n).expect("a residual"));
        assert_eq!(together, alone.collect::<Vec<_>>());
        assert_eq!((gpus()[0].pictures, gpus()[0].launches), (24, 16));
        drop(engines);
        assert_eq!(gpus()[0].engines, 0);
    });
}

#[test]
fn weights_stay_on_the_card_up_to_a_bound() {
    on_emulated_device("weights_stay_on_the_card_up_to_a_bound", &[], || {
        let models: Vec<Arc<Model>> = (0..100).map(model).collect();
        let mut engine = CudaEngine::new(&models[0]).expect("an engine");
        let first = infer(&mut engine, 1).expect("a residual");
        for other in &models[1..] {
            engine.swap(other).expect("weights");
            assert_ne!(infer(&mut engine, 1).expect("a residual"), first);
        }
        assert_eq!(gpus()[0].resident, 64);
        engine.swap(&models[0]).expect("weights, uploaded again");
        assert_eq!(infer(&mut engine, 1).expect("a residual"), first);
        // Those that nobody has any more make room before those that somebody has.
        let last = models[99].clone();
        drop(models);
        for seed in 200..260 {
            engine.swap(&model(seed)).expect("weights");
        }
        engine.swap(&last).expect("weights");
        assert_eq!(gpus()[0].resident, 64);
    });
}

#[test]
fn where_there_is_no_room_for_many_pictures_fewer_go_at_once() {
    // A launch of 16 pictures of 64×64 takes 64 KiB of low samples and 512 KiB of residual.
    let little = [("EMULATED_MEMORY", "300000")];
    let name = "where_there_is_no_room_for_many_pictures_fewer_go_at_once";
    on_emulated_device(name, &little, || {
        let mut engine = CudaEngine::new(&model(1)).expect("an engine");
        let low: Vec<u8> = (0..64 * 64).map(|i| (i % 251) as u8).collect();
        let input = Input { low: Luma::packed(&low, 64, 64).expect("a plane"), twin: None };
        let mut out = vec![Residual::default(); 16];
        engine.infer_batch(&[input; 16], &mut out).expect("residuals");
        assert!(out.iter().all(|one| *one == out[0]) && out[0].data.iter().any(|v| *v != 0.0));
        let gpu = &gpus()[0];
        assert!(gpu.full > 0 && gpu.launches > 1 && gpu.failed.is_none(), "{gpu:?}");
    });
}

#[test]
fn nothing_is_allocated_once_the_sizes_are_known() {
    on_emulated_device("nothing_is_allocated_once_the_sizes_are_known", &[], || {
        let mut engine = CudaEngine::new(&model(1)).expect("an engine");
        let low: Vec<u8> = (0..8 * 8).collect();
        let large = Input { low: Luma::packed(&low, 8, 8).expect("a plane"), twin: None };
        let small = Input { low: Luma::packed(&low, 6, 5).expect("a plane"), twin: None };
        let mut out = vec![Residual::default(); 48];
        // Often enough that each of the GPU's launches has had its turn.
        for _ in 0..10 {
            engine.infer_batch(&[large; 48], &mut out).expect("residuals");
        }
        let full = told("EMULATED_FULL", "");
        fs::write(&full, "").expect("a file");
        for _ in 0..5 {
            engine.infer_batch(&[large; 48], &mut out).expect("residuals");
            engine.infer_batch(&[small; 48], &mut out).expect("residuals");
        }
        // Nor to hold a picture again, as long as nobody keeps the one before.
        assert!(matches!(engine.hold(large), Err(InferError::DeviceFull(_))));
        fs::remove_file(&full).expect("it was there");
        let resident = engine.hold(large).expect("a picture").expect("it stays");
        fs::write(&full, "").expect("a file");
        assert!(matches!(engine.hold(small), Err(InferError::DeviceFull(_))));
        drop(resident);
        fs::remove_file(&full).expect("it was there");
        engine.hold(large).expect("a picture");
        fs::write(&full, "").expect("a file");
        let resident = engine.hold(small).expect("a picture").expect("it stays");
        assert_eq!(resident.size(), PlaneSize::new(12, 10));
        // What is larger says so, and no more.
        let low = vec![9; 900];
        let mut one = Residual::default();
        let refused = engine.infer(Luma::packed(&low, 30, 30).expect("a plane"), &mut one);
        assert!(matches!(refused, Err(InferError::DeviceFull(_))), "{refused:?}");
        fs::remove_file(&full).expect("it was there");
        engine.infer(Luma::packed(&low, 30, 30).expect("a plane"), &mut one).expect("a residual");
    });
}

#[test]
fn engines_are_spread_over_the_gpus_and_move_when_one_is_lost() {
    let two = [("EMULATED_DEVICES", "2")];
    on_emulated_device("engines_are_spread_over_the_gpus_and_move_when_one_is_lost", &two, || {
        let model = model(1);
        let mut engines: Vec<_> =
            (0..6).map(|_| EngineChoice::Auto.engine(model.clone())).collect();
        let counts = || gpus().iter().map(|gpu| gpu.engines).collect::<Vec<_>>();
        assert_eq!(counts(), [3, 3]);
        assert_eq!(engines[0].accelerators(), Some(2));
        let before: Vec<_> = engines.iter_mut().map(|e| infer(e.as_mut(), 3)).collect();
        fs::write(told("EMULATED_LOST", "0"), "").expect("a file");
        let after: Vec<_> = engines.iter_mut().map(|e| infer(e.as_mut(), 3)).collect();
        assert!(before == after, "another answer once the first GPU is lost");
        assert_eq!(counts(), [0, 6]);
        assert!(engines.iter().all(|engine| engine.backend() == "cuda"));
        assert_eq!(engines[0].accelerators(), Some(1));
        assert!(gpus()[0].failed.as_ref().is_some_and(|why| why.contains("illegal")));
        assert_eq!(gpus()[1].failed, None);
        fs::write(told("EMULATED_LOST", "1"), "").expect("a file");
        infer(engines[0].as_mut(), 3).expect("the processor's");
        assert!(engines[0].backend().starts_with("cpu") && engines[0].accelerators().is_none());
    });
}

#[test]
fn a_gpu_that_does_not_answer_is_given_up() {
    on_emulated_device("a_gpu_that_does_not_answer_is_given_up", &[], || {
        let mut engine = CudaEngine::new(&model(1)).expect("an engine");
        engine.set_timeout(Duration::from_millis(200));
        let before = infer(&mut engine, 1).expect("a residual");
        let hang = told("EMULATED_HANG", "");
        fs::write(&hang, "").expect("a file");
        let silent = infer(&mut engine, 1);
        assert!(
            matches!(&silent, Err(InferError::Device(why)) if why.contains("not answered")),
            "{silent:?}"
        );
        assert!(infer(&mut engine, 1).is_err() && CudaEngine::new(&model(1)).is_err());
        assert!(before.data.iter().any(|v| *v != 0.0));
        fs::remove_file(&hang).expect("it was there");
    });
}

#[test]
fn a_gpu_that_computes_wrongly_is_not_used() {
    // Kernels of other tests are right, and would be found in their cache.
    let wrong = [("EMULATED_WRONG", "1"), ("XDG_CACHE_HOME", "/dev/null")];
    on_emulated_device("a_gpu_that_computes_wrongly_is_not_used", &wrong, || {
        let made = CudaEngine::new(&model(1)).map(|_| ());
        assert_eq!(made, Err(CudaError::Wrong));
        assert_eq!(SharedCoder::of_process().map(|_| ()), Err(CudaError::Wrong));
        let mut engine = EngineChoice::Cuda.engine(model(1));
        infer(engine.as_mut(), 1).expect("the processor's");
        assert!(engine.backend().starts_with("cpu"), "{}", engine.backend());
    });
}
