//! Messages of the anchor channel: what parses is written back the same, and the reassembler keeps
//! its bounds.

#![no_main]
#![allow(missing_docs)]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use windlass_types::message::{AnchorHeader, HEADER_BYTES, MAX_ANCHOR, Reassembler};
use windlass_vp9_fuzz::{container, mutate};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed, fuzzer_mutate)
});

fuzz_target!(|data: &[u8]| {
    let mut reassembler = Reassembler::new();
    let (mut pushed, mut finished) = (0u64, 0u64);
    for message in container::split(data).1 {
        let parsed = AnchorHeader::parse(message);
        if let Ok((header, payload)) = parsed {
            assert_eq!(header.to_bytes(), message[..HEADER_BYTES]);
            assert_eq!(payload, &message[HEADER_BYTES..]);
        }
        pushed += 1;
        match reassembler.push(message) {
            Ok(Some(anchor)) => {
                assert!(parsed.is_ok() && anchor.payload.len() <= MAX_ANCHOR);
                finished += 1;
            }
            Ok(None) => assert!(parsed.is_ok()),
            Err(_) => {}
        }
    }
    let stats = reassembler.stats();
    assert_eq!(stats.completed, finished);
    assert!(stats.completed + stats.malformed + stats.duplicates <= pushed);
});
