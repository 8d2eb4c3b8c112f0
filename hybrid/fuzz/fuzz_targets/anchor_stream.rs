//! Payloads of an anchor stream, one after the other, as detail, as pictures and as regions: no panic, pictures of the
//! stream's size, and a key anchor always mends it.

#![no_main]
#![allow(missing_docs)]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use windlass_hybrid::anchor::pictures::{PictureDecoder, RegionDecoder};
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
    let mut pictures = PictureDecoder::new(SIZE.0, SIZE.1);
    let mut regions = RegionDecoder::default();
    let size = (usize::from(SIZE.0), usize::from(SIZE.1));
    for payload in container::split(data).1.into_iter().take(MOST_CHUNKS) {
        if let Some((header, frame)) = StreamHeader::parse(payload) {
            assert_eq!(header.to_bytes(), payload[..HEADER_BYTES]);
            assert_eq!(frame, &payload[HEADER_BYTES..]);
        }
        let started = !pictures.needs_key();
        let key = StreamHeader::parse(payload).map(|(h, _)| h.prediction) == Some(Prediction::Key);
        if let Ok(coded) = pictures.decode(payload) {
            assert_eq!(coded.size(), size);
            assert!(coded.step(0, 0) > 0 && coded.step(size.0 - 1, size.1 - 1) > 0);
            assert!(key || started, "it began without a key frame");
        }
        if let Ok(coded) = regions.decode(payload, size) {
            assert!(key && coded.size() == size);
        }
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
