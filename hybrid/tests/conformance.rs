//! Anchors in OpenJPEG: their detail, whole or of some tiles, and the colour behind it.

#[path = "../htj2k/tests/peers/openjpeg.rs"]
mod openjpeg;

use proptest::prelude::*;
use windlass_htj2k::Picture;
use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec::Htj2k;
use windlass_hybrid::anchor::{colour, mosaic};
use windlass_types::Size;
use windlass_types::message::HTJ2K;
use windlass_types::tiles::TileMap;
use windlass_vp9::{FrameBuffer, Plane};

/// Detail of a grey level or so, with an edge; in the right half, as much as can be.
fn detail(width: usize, height: usize, seed: u32) -> Detail {
    let mut state = seed;
    let sample = |i: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let strength = if 2 * (i % width) < width { 40 } else { 4080 };
        let sign = if (i % width / 5).is_multiple_of(2) { 1 } else { -1 };
        (sign * (strength / 2 + (state >> 16) as i32 % (strength / 2))) as i16
    };
    let samples = (0..width * height).map(sample).collect();
    Detail::from_samples(width, height, samples).expect("the count is right")
}

/// The HR chroma of a picture.
fn chroma(width: usize, height: usize, seed: u32) -> Plane {
    let mut state = seed;
    let sample = |i: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (100 + (i % width / 7 * 13 + i / width) % 40) as u8 + (state >> 28) as u8
    };
    let samples = (0..width * height).map(sample).collect();
    Plane::from_samples(width, height, samples).expect("the count is right")
}

/// Has OpenJPEG decode the code of an image as we do.
fn assert_same(code: &[u8], image: &Detail) {
    let (width, height) = (image.width(), image.height());
    let ours = Htj2k::decode(code, Size::saturating(width, height)).expect("our own code");
    let Picture { format, samples } = openjpeg::decode(code).expect("OpenJPEG decodes it");
    assert_eq!(format, Htj2k::format(image).expect("a legal size"));
    for (a, b) in ours.samples().iter().zip(&samples) {
        assert!((i32::from(*a) - i32::from(*b)).abs() <= 1, "{a} and {b}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn openjpeg_decodes_anchors(
        (width, height) in (1usize..200, 1usize..150), scale in 2usize..=4, chosen: u64,
        quality in 1u8..=100, seed: u32,
    ) {
        let mut tiles = TileMap::empty(Size::saturating(width, height));
        tiles.set(0, 0);
        for i in (0..tiles.columns() * tiles.rows()).filter(|i| chosen >> i & 1 == 1) {
            tiles.set(i % tiles.columns(), i / tiles.columns());
        }
        let whole = detail(width * scale, height * scale, seed);
        let luma = if tiles.is_full() { whole } else { mosaic::gather(&tiles, &whole, scale) };
        assert_same(&Htj2k::encode(&luma, quality).expect("a legal size"), &luma);

        let low = FrameBuffer::grey(width, height);
        let size = low.size().scaled(scale).chroma();
        let high = [1, 2].map(|n| chroma(size.width, size.height, seed ^ n));
        let high = [(&high[0]).into(), (&high[1]).into()];
        let tint = colour::image(high, low.samples(), &tiles, scale);
        let both = Htj2k::encode_in_colour(&luma, &tint, quality).expect("legal sizes");
        let (first, second) = colour::split(HTJ2K, &both);
        assert_same(first, &luma);
        assert_same(second.expect("colour"), &tint);
    }
}

#[test]
fn openjpeg_decodes_anchors_of_nothing() {
    for (width, height) in [(1, 1), (130, 64), (641, 359)] {
        let nothing = Detail::zero(width, height);
        for quality in [1, 85, 100] {
            assert_same(&Htj2k::encode(&nothing, quality).expect("a legal size"), &nothing);
        }
    }
}
