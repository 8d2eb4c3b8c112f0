//! The parser tells of every frame what the decoder tells, or the same error.

#![no_main]
#![allow(missing_docs)]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use windlass_hybrid::vp9::{Decoder, Parser};
use windlass_hybrid_fuzz::{LIMIT, MOST_CHUNKS, MOST_SAMPLES, container, mutate};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed, fuzzer_mutate)
});

fuzz_target!(|data: &[u8]| {
    let (mut decoder, mut parser) = (Decoder::with_limit(LIMIT), Parser::with_limit(LIMIT));
    let mut samples = 0;
    for chunk in container::split(data).1.into_iter().take(MOST_CHUNKS) {
        match (decoder.decode(chunk), parser.parse(chunk)) {
            (Ok(frames), Ok(infos)) => {
                assert!(frames.iter().map(|f| &f.info).eq(infos), "infos differ");
                samples +=
                    infos.iter().map(|i| u64::from(i.width) * u64::from(i.height)).sum::<u64>();
            }
            (decoded, parsed) => assert_eq!(decoded.err(), parsed.err()),
        }
        if samples > MOST_SAMPLES {
            break;
        }
    }
});
