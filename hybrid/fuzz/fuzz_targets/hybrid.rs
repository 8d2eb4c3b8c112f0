//! Frames and anchors, interleaved, into a whole decoder: nothing panics, and the scalar kernels, which
//! make every picture anew, give the pictures of the fastest ones, which leave alone what has not changed.

#![no_main]
#![allow(missing_docs)]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use windlass_hybrid::{HybridConfig, HybridDecoder};
use windlass_hybrid_fuzz::{RESET, is_message, scale};
use windlass_network::Tier;
use windlass_types::message::{HEADER_BYTES, Reassembler};
use windlass_vp9::simd::Isa;
use windlass_vp9_fuzz::{LIMIT, container, mutate};

/// Maximum number of frames and messages of one input.
const MAX_CHUNKS: usize = 40;
/// Number of luma samples of all HR pictures after which the rest of an input is left out.
const MAX_SAMPLES: u64 = 48 * LIMIT.area;
/// Number of luma samples that an anchor counts for: filters are fitted to it.
const ANCHOR: u64 = 4 * LIMIT.area;
/// Number of samples that a sample counts for if a network runs on it.
const NETWORK: u64 = 8;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed, fuzzer_mutate)
});

fuzz_target!(|data: &[u8]| {
    let options = data.first().copied().unwrap_or(0);
    let config = HybridConfig {
        scale: scale(options),
        history: 1 + usize::from(options >> 2 & 7),
        prior: options >> 5 & 1 == 0,
        learning: options >> 6 & 1 == 0,
        network: (options >> 7 == 1).then_some(Tier::Xxs),
        isa: Isa::SCALAR,
    };
    let mut scalar = HybridDecoder::new(config).limited(LIMIT).making_all_anew();
    let simd = HybridConfig { isa: Isa::detect(), ..config };
    let mut simd = HybridDecoder::new(simd).limited(LIMIT);
    let mut reassembler = Reassembler::new();
    let (mut samples, mut pushed) = (0, 0);
    for (n, chunk) in container::split(data).1.into_iter().take(MAX_CHUNKS).enumerate() {
        if chunk == RESET {
            scalar.reset();
            simd.reset();
        } else if is_message(chunk) && chunk.len() > HEADER_BYTES {
            let Ok(Some(anchor)) = reassembler.push(chunk) else { continue };
            assert_eq!(scalar.push_anchor(&anchor), simd.push_anchor(&anchor));
            if n % 2 == 0 {
                assert_eq!(scalar.refresh(), simd.refresh());
            }
            pushed += 1;
            samples += ANCHOR;
        } else {
            // Frames come every 3000 ticks, across the wrap of the timeline.
            let timestamp = (n as u32 * 3000).wrapping_sub(6000);
            assert_eq!(scalar.push_frame(timestamp, chunk), simd.push_frame(timestamp, chunk));
        }
        assert!(scalar.hr() == simd.hr(), "pictures differ");
        let stats = simd.stats();
        assert_eq!(scalar.stats(), stats);
        let counted = stats.applied + stats.too_old + stats.duplicate + stats.former_epoch;
        assert!(counted + stats.malformed <= pushed && stats.late <= stats.applied);
        let each = if config.network.is_some() { NETWORK } else { 1 };
        samples += each * simd.hr().map_or(0, |p| (p.width() * p.height()) as u64);
        if samples > MAX_SAMPLES {
            break;
        }
    }
});
