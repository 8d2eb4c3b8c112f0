//! Messages of the weights channel: what parses is written back the same, and what is taken is run.

#![no_main]
#![allow(missing_docs)]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use windlass_hybrid::{HybridConfig, HybridDecoder, WeightsOutcome};
use windlass_network::Tier;
use windlass_types::weights::WeightsMessage;
use windlass_vp9_fuzz::{container, mutate};

/// The first frame of an IVF file, behind its two headers.
const IVF: &[u8] = include_bytes!("../../vp9/tests/fixtures/realtime.ivf");
const FRAME: usize = 44;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed, fuzzer_mutate)
});

fuzz_target!(|data: &[u8]| {
    let network = Some(Tier::Xs);
    let mut decoder = HybridDecoder::new(HybridConfig { network, ..HybridConfig::default() });
    let length = u32::from_le_bytes(IVF[32..36].try_into().expect("four bytes")) as usize;
    let frame = &IVF[FRAME..FRAME + length];
    decoder.push_frame(0, frame).expect("a key frame");
    let (mut taken, mut refused) = (0, 0);
    for message in container::split(data).1 {
        let parsed = WeightsMessage::parse(message);
        if let Ok(parsed) = &parsed {
            assert_eq!(parsed.to_bytes(), message);
        }
        match decoder.push_weights(message) {
            WeightsOutcome::Taken => taken += 1,
            WeightsOutcome::Refused(_) => refused += 1,
            WeightsOutcome::TakenBack | WeightsOutcome::FormerEpoch => assert!(parsed.is_ok()),
        }
        decoder.push_frame(0, frame).expect("a key frame");
    }
    let stats = decoder.stats();
    assert_eq!((stats.weights_taken, stats.weights_refused), (taken, refused));
});
