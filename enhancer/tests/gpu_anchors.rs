//! Anchors coded on the GPU in the pipeline, on machines without one (see `tests/cuda/`): the same payloads as the
//! CPU's, in its place where the GPU fails. It needs a C++ compiler and, for the pipeline, an `ffmpeg` with libvpx;
//! without them the tests say so and pass.

#![cfg(target_os = "linux")]

mod common;
#[path = "cuda/emulated.rs"]
mod emulated;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::coded;
use emulated::on_emulated_device;
use windlass_enhancer::engine::cuda::ResidentPicture;
use windlass_enhancer::engine::cuda::coder::{AnchorError, CudaCoder, Encoding, SharedCoder};
use windlass_enhancer::engine::{
    Architecture, CpuEngine, CudaEngine, CudaError, Engine, InferError, Input, Luma, Model,
    Residual, SwapError, embedded_model,
};
use windlass_enhancer::pipeline::Network;
use windlass_enhancer::{Enhancer, EnhancerConfig};
use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec::{AnchorCodecError, Htj2k};
use windlass_hybrid::anchor::payload;
use windlass_hybrid::anchor::prior::Prior;
use windlass_types::tiles::TileMap;
use windlass_types::{AnchorPolicy, EnhancerOutput, Epoch, Owner, StreamId, TapFrame, TapInput};
use windlass_vp9::Plane;
use windlass_vp9::simd::Isa;

/// Detail as super-resolution makes it, more or less.
fn detail(width: usize, height: usize, seed: usize) -> Detail {
    let sample = |i: usize| {
        let (x, y) = ((i % width + seed) as f64, (i / width) as f64);
        let busy = (x * 0.05).sin() * (y * 0.08).cos() > 0.2;
        let noise = ((i * 7_919 + seed * 104_729) % 257) as f64 - 128.0;
        ((x * 0.7).sin() * (y * 0.9).cos() * 120.0 + if busy { noise } else { 0.0 }) as i16
    };
    Detail::from_samples(width, height, (0..width * height).map(sample).collect()).expect("a count")
}

fn coding(quality: u8, max_bytes: usize) -> Encoding {
    Encoding { quality, max_bytes }
}

/// What the CPU makes of the same.
fn on_processor(detail: &Detail, quality: u8, max: usize) -> Result<Vec<u8>, AnchorCodecError> {
    let coded = Htj2k::encode(detail, quality)?;
    if coded.len() <= max { Ok(coded) } else { Htj2k::fill(detail, None, max) }
}

#[test]
fn workers_share_a_coder_that_keeps_quality_and_budget() {
    on_emulated_device("workers_share_a_coder_that_keeps_quality_and_budget", &[], || {
        let coder = SharedCoder::of_process().expect("a coder");
        let wanted = [(95, usize::MAX), (85, 600), (40, 40), (75, 1_500)];
        std::thread::scope(|scope| {
            for worker in 0..6 {
                let coder = &coder;
                scope.spawn(move || {
                    for (n, (quality, max)) in wanted.into_iter().enumerate() {
                        let side = if worker % 2 == 0 { (96, 70) } else { (66, 40) };
                        let detail = Arc::new(detail(side.0, side.1, 10 * worker + n));
                        let ours = coder.code(&detail, coding(quality, max));
                        let theirs = on_processor(&detail, quality, max);
                        assert_eq!(ours, theirs.map_err(AnchorError::Codec), "{worker}, {n}");
                    }
                });
            }
        });
        let (pictures, batches) = coder.coded();
        assert!(pictures == 24 && batches <= pictures, "{pictures} in {batches}");
        // Too large to be an anchor, on the CPU or elsewhere.
        let wide = Arc::new(Detail::zero(9_000, 1));
        assert!(matches!(coder.code(&wide, coding(50, 1_000)), Err(AnchorError::Codec(_))));
        assert!(coder.code(&Arc::new(detail(8, 8, 1)), coding(50, 1_000)).is_ok());
    });
}

/// A low picture of three tiles by three, the last of which are cut off, and a residual in 1/64 grey level.
fn on_the_card(
    coder: &mut CudaCoder,
    scale: usize,
    seed: usize,
) -> (ResidentPicture, Plane, Vec<i16>) {
    let mut low = Plane::filled(150, 140, 0);
    for (i, sample) in low.samples_mut().iter_mut().enumerate() {
        let (x, y) = (i % 150, i / 150 + seed);
        *sample = ((x * 3 + y * 5) % 190 + if (x / 9 + y / 4) % 3 == 0 { 60 } else { 0 }) as u8;
    }
    let samples = detail(150 * scale, 140 * scale, seed);
    let residual: Vec<i16> = samples.samples().iter().map(|sample| 3 * sample).collect();
    (coder.hold_picture(&residual, &low, scale).expect("there is room"), low, residual)
}

#[test]
fn pictures_that_stay_on_the_card_are_coded_as_if_they_had_come_back() {
    let name = "pictures_that_stay_on_the_card_are_coded_as_if_they_had_come_back";
    on_emulated_device(name, &[], || {
        let mut own = CudaCoder::new().expect("a coder");
        let coder = SharedCoder::of_process().expect("a coder");
        for (scale, bits) in [(2, 0b1_1111_1111), (3, 0b1_0100_1001), (2, 0b10), (4, 0b1_1000_0000)]
        {
            let (resident, low, residual) = on_the_card(&mut own, scale, bits);
            let mut tiles = TileMap::empty(150, 140);
            (0..9).filter(|n| bits >> n & 1 == 1).for_each(|n| tiles.set(n % 3, n / 3));
            let quarter = |v: i16| (f32::from(v) / 4.0).round().clamp(-4080.0, 4080.0) as i16;
            let samples = residual.into_iter().map(quarter).collect();
            let (width, height) = resident.size();
            let mut rest = Detail::from_samples(width, height, samples).expect("the count");
            Prior::new(Isa::detect(), scale).take_out((&low).into(), &mut rest);
            let image = payload::image(rest, &tiles, scale);
            for (quality, max) in [(80, usize::MAX), (95, 3_000)] {
                let coded =
                    coder.code_resident(&resident, &tiles, coding(quality, max), max == 3_000);
                let wanted = on_processor(&image, quality, max).expect("it can be coded");
                let back = (max == 3_000).then(|| image.clone());
                assert!(coded == Ok((wanted, back)), "scale {scale}, tiles {bits:b}, {max}");
            }
        }
        // Several of one size together, each with its own.
        let three: Vec<_> = (0..3).map(|seed| on_the_card(&mut own, 2, seed).0).collect();
        let full = TileMap::full(150, 140);
        let code = |resident: &ResidentPicture| {
            coder.code_resident(resident, &full, coding(60, usize::MAX), true)
        };
        let alone: Vec<_> = three.iter().map(code).collect();
        let together: Vec<_> = std::thread::scope(|scope| {
            let running: Vec<_> =
                three.iter().map(|resident| scope.spawn(|| code(resident))).collect();
            running.into_iter().map(|one| one.join().expect("a code")).collect()
        });
        assert!(alone == together && alone.iter().all(Result::is_ok));
        assert!(alone[0] != alone[1] && alone[1] != alone[2]);
    });
}

#[test]
fn a_full_card_refuses_what_has_no_room_and_codes_the_rest() {
    let little = [("EMULATED_MEMORY", "1000000")];
    on_emulated_device("a_full_card_refuses_what_has_no_room_and_codes_the_rest", &little, || {
        let coder = SharedCoder::of_process().expect("a coder");
        let (small, large) = (Arc::new(detail(40, 30, 1)), Arc::new(detail(500, 400, 2)));
        let full = Err(AnchorError::Device(CudaError::NoMemory));
        assert_eq!(coder.code(&large, coding(80, usize::MAX)), full);
        let wanted = on_processor(&small, 80, usize::MAX).map_err(AnchorError::Codec);
        assert_eq!(coder.code(&small, coding(80, usize::MAX)), wanted);
    });
}

#[test]
fn the_other_card_codes_once_one_is_lost() {
    let two = [("EMULATED_DEVICES", "2")];
    on_emulated_device("the_other_card_codes_once_one_is_lost", &two, || {
        let coder = SharedCoder::of_process().expect("a coder");
        let detail = Arc::new(detail(40, 30, 1));
        let wanted = on_processor(&detail, 80, usize::MAX).map_err(AnchorError::Codec);
        let mut first = std::env::var_os("EMULATED_LOST").expect("its name");
        first.push("0");
        std::fs::write(first, "").expect("a file");
        // Each of the lost GPU's threads notices it once.
        let failed =
            (0..40).filter(|_| coder.code(&detail, coding(80, usize::MAX)) != wanted).count();
        assert!(failed <= 2, "{failed} of 40 were not coded");
        assert_eq!(coder.code(&detail, coding(80, usize::MAX)), wanted);
    });
}

#[test]
fn a_card_that_hangs_is_given_up() {
    on_emulated_device("a_card_that_hangs_is_given_up", &[], || {
        let coder = SharedCoder::of_process().expect("a coder");
        std::fs::write(std::env::var_os("EMULATED_HANG").expect("its name"), "").expect("a file");
        let detail = Arc::new(detail(40, 30, 1));
        let silent = coder.code(&detail, coding(80, usize::MAX));
        assert!(matches!(silent, Err(AnchorError::Device(CudaError::Silent(_)))), "{silent:?}");
        let asked = Instant::now();
        assert_eq!(coder.code(&detail, coding(80, usize::MAX)), silent);
        assert!(asked.elapsed() < Duration::from_secs(1), "nobody waits for it again");
        assert!(SharedCoder::of_process().is_err());
    });
}

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
    on_processor: bool,
    then: Arc<Mutex<Then>>,
}

impl<E: Engine> Engine for Elsewhere<E> {
    fn backend(&self) -> &'static str {
        self.inner.backend()
    }

    fn on_processor(&self) -> bool {
        self.on_processor
    }

    fn accelerators(&self) -> Option<usize> {
        (!self.on_processor).then_some(1)
    }

    fn take_time(&mut self) -> Option<Duration> {
        (!self.on_processor).then_some(Duration::from_millis(1))
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

fn start(on_processor: bool) -> Enhancer {
    start_with(move || {
        let inner = CpuEngine::new(embedded_model().expect("built in"));
        let then = Arc::new(Mutex::new(Then::Leaves));
        Box::new(Elsewhere { inner, on_processor, then })
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
    Box::new(Elsewhere { inner, on_processor: false, then })
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
            most_scale: 4,
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
fn anchors_of_a_call_are_coded_on_the_gpu_and_by_the_processor_once_it_is_lost() {
    let name = "anchors_of_a_call_are_coded_on_the_gpu_and_by_the_processor_once_it_is_lost";
    on_emulated_device(name, &[], || {
        let Some(frames) = frames() else { return };
        let coding_slots = |enhancer: &Enhancer| {
            let slots = enhancer.stats().slots;
            slots.stages.iter().find(|s| s.stage == "encode").map_or(0, |s| s.wait.count)
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
fn anchors_are_the_same_whether_their_pictures_leave_the_card_or_not() {
    let name = "anchors_are_the_same_whether_their_pictures_leave_the_card_or_not";
    on_emulated_device(name, &[], || {
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
