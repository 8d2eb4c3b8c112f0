//! Decodes payloads of anchors: four bytes of width and height (u16, big endian), then the encoded picture.

#![no_main]
#![allow(missing_docs)]

use libfuzzer_sys::fuzz_target;
use windlass_hybrid::anchor::codec::Htj2k;
use windlass_types::Size;

/// Maximum side of a picture in samples, so that runs are fast.
const SIDE: u16 = 512;

fuzz_target!(|data: &[u8]| {
    let Some((head, payload)) = data.split_first_chunk::<4>() else { return };
    let width = u16::from_be_bytes([head[0], head[1]]) % (SIDE + 1);
    let height = u16::from_be_bytes([head[2], head[3]]) % (SIDE + 1);
    if let Ok(detail) = Htj2k::decode(payload, Size::new(width, height)) {
        assert_eq!((detail.width(), detail.height()), (width.into(), height.into()));
        assert_eq!(detail.samples().len(), usize::from(width) * usize::from(height));
    }
});
