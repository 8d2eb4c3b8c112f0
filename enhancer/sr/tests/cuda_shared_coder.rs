//! The coder of anchors that workers share, on machines without a GPU (see `tests/cuda/`): payloads within a quality
//! and a budget as the CPU's, for pictures that stay on the GPU too. It needs a C++ compiler; without one these tests
//! say so and pass.

#![cfg(target_os = "linux")]

#[path = "cuda/emulated.rs"]
mod emulated;

use std::sync::Arc;
use std::time::Duration;

use emulated::on_emulated_device;
use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec::{AnchorCodecError, Htj2k};
use windlass_hybrid::anchor::payload;
use windlass_hybrid::anchor::prior::Prior;
use windlass_sr::CudaError;
use windlass_sr::cuda::coder::{AnchorError, CoderWork, CudaCoder, Encoding, SharedCoder};
use windlass_sr::cuda::{ResidentPicture, set_timeout};
use windlass_types::Size;
use windlass_types::tiles::TileMap;
use windlass_vp9::Plane;
use windlass_vp9::simd::Isa;

/// An emulated device is as slow as the machine.
const PATIENCE: Duration = Duration::from_secs(300);

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
fn on_cpu(detail: &Detail, quality: u8, max: usize) -> Result<Vec<u8>, AnchorCodecError> {
    let coded = Htj2k::encode(detail, quality)?;
    if coded.len() <= max { Ok(coded) } else { Htj2k::fill(detail, None, max) }
}

#[test]
fn workers_share_a_coder_that_keeps_quality_and_budget() {
    on_emulated_device("workers_share_a_coder_that_keeps_quality_and_budget", &[], || {
        set_timeout(PATIENCE);
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
                        let theirs = on_cpu(&detail, quality, max);
                        assert_eq!(ours, theirs.map_err(AnchorError::Codec), "{worker}, {n}");
                    }
                });
            }
        });
        let CoderWork { pictures, batches } = coder.done();
        assert!(pictures == 24 && batches <= pictures, "{pictures} in {batches}");
        // Too large to be an anchor, on the CPU or elsewhere.
        let wide = Arc::new(Detail::zero(9_000, 1));
        assert!(matches!(coder.code(&wide, coding(50, 1_000)), Err(AnchorError::Codec(_))));
        assert!(coder.code(&Arc::new(detail(8, 8, 1)), coding(50, 1_000)).is_ok());
    });
}

/// A low picture of three tiles by three, the last of which are cut off, and a residual in 1/64 grey level.
fn on_the_gpu(
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
        set_timeout(PATIENCE);
        let mut own = CudaCoder::new().expect("a coder");
        let coder = SharedCoder::of_process().expect("a coder");
        for (scale, bits) in [(2, 0b1_1111_1111), (3, 0b1_0100_1001), (2, 0b10), (4, 0b1_1000_0000)]
        {
            let (resident, low, residual) = on_the_gpu(&mut own, scale, bits);
            let mut tiles = TileMap::empty(Size::new(150, 140));
            (0..9).filter(|n| bits >> n & 1 == 1).for_each(|n| tiles.set(n % 3, n / 3));
            let quarter = |v: i16| (f32::from(v) / 4.0).round().clamp(-4080.0, 4080.0) as i16;
            let samples = residual.into_iter().map(quarter).collect();
            let size = resident.size();
            let mut rest =
                Detail::from_samples(size.width, size.height, samples).expect("the count");
            Prior::new(Isa::detect(), scale).take_out((&low).into(), &mut rest);
            let image = payload::image(rest, &tiles, scale);
            for (quality, max) in [(80, usize::MAX), (95, 3_000)] {
                let coded =
                    coder.code_resident(&resident, &tiles, coding(quality, max), max == 3_000);
                let wanted = on_cpu(&image, quality, max).expect("it can be coded");
                let back = (max == 3_000).then(|| image.clone());
                let what = format!("scale {scale}, tiles {bits:b}, {max}");
                let coded = coded.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(coded == (wanted, back), "{what}");
            }
        }
        // Several of one size together, each with its own.
        let three: Vec<_> = (0..3).map(|seed| on_the_gpu(&mut own, 2, seed).0).collect();
        let full = TileMap::full(Size::new(150, 140));
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
fn a_full_gpu_refuses_what_has_no_room_and_codes_the_rest() {
    let little = [("EMULATED_MEMORY", "1000000")];
    on_emulated_device("a_full_gpu_refuses_what_has_no_room_and_codes_the_rest", &little, || {
        set_timeout(PATIENCE);
        let coder = SharedCoder::of_process().expect("a coder");
        let (small, large) = (Arc::new(detail(40, 30, 1)), Arc::new(detail(500, 400, 2)));
        let full = Err(AnchorError::Device(CudaError::NoMemory));
        assert_eq!(coder.code(&large, coding(80, usize::MAX)), full);
        let wanted = on_cpu(&small, 80, usize::MAX).map_err(AnchorError::Codec);
        assert_eq!(coder.code(&small, coding(80, usize::MAX)), wanted);
    });
}

#[test]
fn the_other_gpu_codes_once_one_is_lost() {
    let two = [("EMULATED_DEVICES", "2")];
    on_emulated_device("the_other_gpu_codes_once_one_is_lost", &two, || {
        set_timeout(PATIENCE);
        let coder = SharedCoder::of_process().expect("a coder");
        let detail = Arc::new(detail(40, 30, 1));
        let wanted = on_cpu(&detail, 80, usize::MAX).map_err(AnchorError::Codec);
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
fn a_gpu_that_hangs_is_given_up() {
    on_emulated_device("a_gpu_that_hangs_is_given_up", &[], || {
        let coder = SharedCoder::of_process().expect("a coder");
        std::fs::write(std::env::var_os("EMULATED_HANG").expect("its name"), "").expect("a file");
        let detail = Arc::new(detail(40, 30, 1));
        let silent = coder.code(&detail, coding(80, usize::MAX));
        assert!(matches!(silent, Err(AnchorError::Device(CudaError::Silent(_)))), "{silent:?}");
        // Nobody waits for it again: that would take as long as this.
        set_timeout(PATIENCE);
        assert_eq!(coder.code(&detail, coding(80, usize::MAX)), silent);
        assert!(SharedCoder::of_process().is_err());
    });
}
