//! Networks and the coder of anchors on the GPU, in the pipeline, on machines without one (see `sr/tests/cuda/`): the
//! same payloads as the CPU's, in its place where the GPU fails. It needs a C++ compiler and an `ffmpeg` with libvpx;
//! without them the tests say so and pass.

#![cfg(target_os = "linux")]

mod common;
#[path = "../sr/tests/cuda/emulated.rs"]
mod emulated;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::coded;
use emulated::on_emulated_device;
use windlass_enhancer::pipeline::Network;
use windlass_enhancer::{Enhancer, EnhancerConfig};
use windlass_sr::cuda::{ResidentPicture, gpus, set_timeout};
use windlass_sr::{
    Architecture, CpuEngine, CudaEngine, Engine, EngineChoice, InferError, Input, Luma, Model,
    Residual, SwapError, embedded_model,
};
use windlass_types::{AnchorPolicy, EnhancerOutput, Epoch, Owner, StreamId, TapFrame, TapInput};

/// An emulated device is as slow as the machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// What becomes of a picture on the GPU.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Leaves,
    Stays,
    /// Another one stays.
    IsWrong,
}

/// An engine, as if it ran where it is said, and as fast as a real GPU, so that the emulated device's time is nobody's.
struct Elsewhere<E> {
    inner: E,
    on_cpu: bool,
    then: Arc<Mutex<Then>>,
}

impl<E: Engine> Engine for Elsewhere<E> {
    fn backend(&self) -> &'static str {
        self.inner.backend()
    }

    fn on_cpu(&self) -> bool {
        self.on_cpu
    }

    fn accelerators(&self) -> Option<usize> {
        (!self.on_cpu).then_some(1)
    }

    fn take_time(&mut self) -> Option<Duration> {
        (!self.on_cpu).then_some(Duration::from_millis(1))
    }

    fn architecture(&self) -> Architecture {
        self.inner.architecture()
    }

    fn infer_batch(
        &mut self,
        inputs: &[Input<'_>],
        out: &mut [Residual],
    ) -> Result<(), InferError> {
        self.inner.infer_batch(inputs, out)
    }

    fn hold(&mut self, input: Input<'_>) -> Result<Option<ResidentPicture>, InferError> {
        let then = *self.then.lock().expect("no panic");
        if then == Then::Leaves {
            return Ok(None);
        }
        if then == Then::Stays {
            return self.inner.hold(input);
        }
        let rows = (0..input.low.height() - 1).flat_map(|y| input.low.row(y).to_vec());
        let (width, less) = (input.low.width(), rows.collect::<Vec<u8>>());
        let low = Luma::packed(&less, width, input.low.height() - 1)?;
        self.inner.hold(Input { low, ..input })
    }

    fn swap(&mut self, model: &Arc<Model>) -> Result<(), SwapError> {
        self.inner.swap(model)
    }
}

fn start(on_cpu: bool) -> Enhancer {
    start_with(move || {
        let inner = CpuEngine::new(embedded_model().expect("built in"));
        let then = Arc::new(Mutex::new(Then::Leaves));
        Box::new(Elsewhere { inner, on_cpu, then })
    })
}

/// Generous in time: the emulated device is slow.
fn start_with(engine: impl Fn() -> Box<dyn Engine> + Send + Sync + 'static) -> Enhancer {
    let network = Network { name: "test".into(), engines: Arc::new(engine), model: None };
    let config = EnhancerConfig {
        budget: Duration::from_secs(20),
        threads: 2,
        anchor_fraction: 1.0,
        interval: Duration::from_millis(20),
        ..EnhancerConfig::default()
    };
    Enhancer::start_with(config, &[network]).expect("it starts")
}

/// The GPU's engine with a small network.
fn gpu_picture(then: Arc<Mutex<Then>>) -> Box<dyn Engine> {
    let model = Model::random(Architecture::chain(2, 8, 2), 1).expect("it runs");
    let inner = CudaEngine::new(&Arc::new(model)).expect("an engine");
    Box::new(Elsewhere { inner, on_cpu: false, then })
}

/// Key frames, each of which is whole; `None` to skip the test.
fn frames() -> Option<Vec<Bytes>> {
    let mut command = Command::new("ffmpeg");
    let arguments = "-v error -nostdin -f lavfi -i testsrc2=size=96x64:rate=5 -frames:v 8 -pix_fmt yuv420p \
                     -c:v libvpx-vp9 -deadline realtime -cpu-used 7 -b:v 150k -g 1 -lag-in-frames 0 -f ivf pipe:1";
    command.args(arguments.split_whitespace());
    coded(&mut command)
}

/// Hands each frame in as a stream of its own; the anchors' payloads by stream.
fn anchors(enhancer: &Enhancer, frames: &[Bytes], first: u32) -> BTreeMap<u32, Bytes> {
    let input = enhancer.input();
    for (stream, data) in (first..).zip(frames) {
        input.push(TapInput::Frame(TapFrame {
            stream: StreamId(stream),
            owner: Owner::alone(StreamId(stream)),
            epoch: Epoch(0),
            rtp_timestamp: 3_000 * stream,
            arrival: Instant::now(),
            key: true,
            max_scale: 4,
            policy: AnchorPolicy::default(),
            data: data.clone(),
        }));
    }
    let mut payloads = BTreeMap::new();
    let until = Instant::now() + Duration::from_secs(20);
    while payloads.len() < frames.len() && Instant::now() < until {
        if let Ok(EnhancerOutput::Anchor(anchor)) =
            enhancer.output().recv_timeout(Duration::from_millis(100))
        {
            assert!(!anchor.tiled);
            payloads.insert(anchor.stream.0 - first, anchor.payload);
        }
    }
    payloads
}

#[test]
fn anchors_of_a_call_are_coded_on_the_gpu_and_by_the_cpu_once_it_is_lost() {
    let name = "anchors_of_a_call_are_coded_on_the_gpu_and_by_the_cpu_once_it_is_lost";
    on_emulated_device(name, &[], || {
        set_timeout(PATIENCE);
        let Some(frames) = frames() else { return };
        let coding_slots = |enhancer: &Enhancer| {
            let slots = enhancer.stats().slots;
            slots.stages.iter().find(|s| s.stage == "encode").map_or(0, |s| s.wait.count())
        };
        let processor = start(true);
        let wanted = anchors(&processor, &frames, 0);
        assert_eq!(wanted.len(), frames.len());
        let counters = processor.stats().counters;
        assert_eq!((counters.gpu_coded, counters.gpu_not_coded), (0, 0));
        drop(processor);

        let gpu = start(false);
        assert!(anchors(&gpu, &frames, 0) == wanted);
        let counters = gpu.stats().counters;
        assert_eq!((counters.gpu_coded, counters.gpu_not_coded), (frames.len() as u64, 0));
        assert_eq!(coding_slots(&gpu), 0, "the processor coded something");

        std::fs::write(std::env::var_os("EMULATED_LOST").expect("its name"), "").expect("a file");
        assert!(anchors(&gpu, &frames, 100) == wanted);
        let counters = gpu.stats().counters;
        let all = frames.len() as u64;
        assert_eq!((counters.gpu_coded, counters.gpu_not_coded), (all, all));
        assert_eq!(coding_slots(&gpu), all, "it takes the processor's slots for that");
        // The next call begins without it.
        drop(gpu);
        let after = start(false);
        assert!(anchors(&after, &frames, 0) == wanted);
        assert_eq!(after.stats().counters.gpu_coded, 0);
    });
}

#[test]
fn anchors_are_the_same_whether_their_pictures_leave_the_gpu_or_not() {
    let name = "anchors_are_the_same_whether_their_pictures_leave_the_gpu_or_not";
    on_emulated_device(name, &[], || {
        set_timeout(PATIENCE);
        let Some(frames) = frames() else { return };
        let then = Arc::new(Mutex::new(Then::Leaves));
        let enhancer = {
            let then = then.clone();
            start_with(move || gpu_picture(then.clone()))
        };
        let counts = || {
            let counters = enhancer.stats().counters;
            assert_eq!((counters.panics, counters.infer_errors), (0, 0));
            (counters.gpu_coded, counters.gpu_held, counters.gpu_not_coded)
        };
        // The emulated device takes seconds for each.
        let frames = &frames[..3];
        let wanted = anchors(&enhancer, frames, 0);
        assert_eq!((wanted.len(), counts()), (3, (3, 0, 0)));
        *then.lock().expect("no panic") = Then::Stays;
        assert!(anchors(&enhancer, frames, 100) == wanted);
        assert_eq!(counts(), (6, 3, 0));
        // Where it cannot be coded there, it leaves.
        *then.lock().expect("no panic") = Then::IsWrong;
        assert!(anchors(&enhancer, frames, 200) == wanted);
        assert_eq!(counts(), (9, 3, 0));
    });
}

/// Frames of a stream of 64×36, the first a key frame; `None` to skip the test.
fn stream() -> Option<Vec<Bytes>> {
    let mut command = Command::new("ffmpeg");
    let arguments = "-v error -nostdin -f lavfi -i testsrc2=size=64x36:rate=10 -frames:v 300 -pix_fmt yuv420p \
                     -c:v libvpx-vp9 -deadline realtime -cpu-used 7 -b:v 60k -g 9999 -lag-in-frames 0 \
                     -error-resilient 1 -auto-alt-ref 0 -f ivf pipe:1";
    command.args(arguments.split_whitespace());
    coded(&mut command)
}

#[test]
fn a_stream_has_anchors_from_the_gpu_and_after_its_loss_from_the_cpu() {
    let name = "a_stream_has_anchors_from_the_gpu_and_after_its_loss_from_the_cpu";
    on_emulated_device(name, &[], || {
        set_timeout(PATIENCE);
        let Some(frames) = stream() else { return };
        let model = Arc::new(Model::random(Architecture::chain(2, 8, 2), 1).expect("it runs"));
        let engines = {
            let model = model.clone();
            Arc::new(move || EngineChoice::Cuda.engine(model.clone()))
        };
        let network = Network { name: "tiny".into(), engines, model: Some(model) };
        // The emulated device takes a fifth of a second for what a real one does in microseconds.
        let config = EnhancerConfig {
            threads: 1,
            budget: Duration::from_secs(20),
            anchor_fraction: 0.3,
            nice: 0,
            learn: false,
            ..EnhancerConfig::default()
        };
        let enhancer = Enhancer::start_with(config, &[network]).expect("it starts");
        assert_eq!(enhancer.stats().backend, "cuda");
        // One GPU counts as one, however many workers wait for it.
        assert!((enhancer.stats().compute_capacity - 1.0).abs() < 1e-9);
        let (output, mut made, mut lost_at) = (enhancer.output(), 0, None);
        for (n, data) in frames.iter().enumerate() {
            enhancer.input().push(TapInput::Frame(TapFrame {
                stream: StreamId(5),
                owner: Owner::alone(StreamId(5)),
                epoch: Epoch(0),
                rtp_timestamp: n as u32 * 9_000,
                arrival: Instant::now(),
                key: n == 0,
                max_scale: 2,
                policy: AnchorPolicy::default(),
                data: data.clone(),
            }));
            sleep(Duration::from_millis(100));
            made +=
                output.try_iter().filter(|out| matches!(out, EnhancerOutput::Anchor(_))).count();
            if made >= 3 && lost_at.is_none() {
                lost_at = Some((made, gpus()[0].pictures));
                std::fs::write(std::env::var_os("EMULATED_LOST").expect("its name"), "")
                    .expect("a file");
            }
            if lost_at.is_some_and(|(before, _)| made > before + 2) {
                break;
            }
        }
        let (before, pictures) = lost_at.expect("anchors from the card");
        assert!(pictures >= 3 && made > before + 2, "{made} anchors, {before} from the card");
        let stats = enhancer.stats();
        assert_eq!(stats.counters.infer_errors + stats.counters.panics, 0, "{stats:?}");
        assert!(stats.counters.gpu_held >= 3, "{stats:?}");
        assert!(gpus()[0].failed.is_some());
    });
}
