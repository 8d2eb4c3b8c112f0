//! Decodes chunks by the scalar and the fastest kernels side by side: nothing panics, and pictures,
//! infos and errors are the same.

#![no_main]
#![allow(missing_docs)]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use windlass_vp9::simd::Isa;
use windlass_vp9::{DecodeError, DecodedFrame, Decoder};
use windlass_vp9_fuzz::check::{self, Listener};
use windlass_vp9_fuzz::{LIMIT, MAX_CHUNKS, MAX_SAMPLES, container, mutate};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed, fuzzer_mutate)
});

fuzz_target!(|data: &[u8]| {
    let (options, chunks) = container::split(data);
    let mut scalar = Decoder::with_isa(Isa::SCALAR).limited(LIMIT);
    let mut simd = Decoder::with_isa(Isa::detect()).limited(LIMIT);
    let mut listeners = [Listener::default(), Listener::default()];
    let mut held = Vec::new();
    let mut samples = 0;
    for chunk in chunks.into_iter().take(MAX_CHUNKS) {
        let [first, second] = &mut listeners;
        let expected = decode(&mut scalar, chunk, options.scalar_visits().then_some(first));
        let got = decode(&mut simd, chunk, options.simd_visits().then_some(second));
        match (expected, got) {
            (Ok(expected), Ok(got)) => {
                assert_eq!(expected.len(), got.len());
                for (a, b) in expected.iter().zip(got) {
                    check::info(&a.info);
                    check::same(a, b);
                    samples += u64::from(a.info.width) * u64::from(a.info.height);
                }
                if options.holds_pictures() {
                    held.extend_from_slice(got);
                }
            }
            (expected, got) => assert_eq!(expected.err(), got.err()),
        }
        assert_eq!(scalar.needs_key_frame(), simd.needs_key_frame());
        if samples > MAX_SAMPLES {
            break;
        }
    }
    if options.scalar_visits() && options.simd_visits() {
        assert_eq!(listeners[0].hash, listeners[1].hash, "residuals differ");
    }
});

fn decode<'a>(
    decoder: &'a mut Decoder,
    chunk: &[u8],
    listener: Option<&mut Listener>,
) -> Result<&'a [DecodedFrame], DecodeError> {
    match listener {
        Some(listener) => decoder.decode_with(chunk, Some(1), listener),
        None => decoder.decode_with(chunk, Some(1), &mut ()),
    }
}
