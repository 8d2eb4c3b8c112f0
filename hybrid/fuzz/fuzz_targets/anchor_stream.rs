//! Payloads of an anchor stream, one after the other: no panic, pictures of the stream's size, and a key anchor always
//! mends it.

#![no_main]
#![allow(missing_docs)]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use windlass_hybrid::anchor::stream::{HEADER_BYTES, Prediction, StreamDecoder, StreamHeader};
use windlass_hybrid_fuzz::{MOST_CHUNKS, container, mutate};

/// Key and inter anchors of ours.
const ANCHORS: &[u8] = include_bytes!("../../tests/fixtures/anchor_stream.bin");
/// Their size.
const SIZE: (u16, u16) = (96, 64);

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed, fuzzer_mutate)
});

fuzz_target!(|data: &[u8]| {
    let mut decoder = StreamDecoder::new(SIZE.0, SIZE.1);
    for payload in container::split(data).1.into_iter().take(MOST_CHUNKS) {
        if let Some((header, frame)) = StreamHeader::parse(payload) {
            assert_eq!(header.to_bytes(), payload[..HEADER_BYTES]);
            assert_eq!(frame, &payload[HEADER_BYTES..]);
        }
        let key = StreamHeader::parse(payload).map(|(h, _)| h.prediction) == Some(Prediction::Key);
        let was_empty = decoder.needs_key();
        if let Ok(detail) = decoder.decode(payload) {
            assert_eq!((detail.width(), detail.height()), (SIZE.0.into(), SIZE.1.into()));
            assert!(key || !was_empty, "it began without a key anchor");
        }
    }
    if decoder.needs_key() {
        let size = usize::from(u16::from_be_bytes([ANCHORS[0], ANCHORS[1]]));
        assert!(decoder.decode(&ANCHORS[2..2 + size]).is_ok());
    }
});
