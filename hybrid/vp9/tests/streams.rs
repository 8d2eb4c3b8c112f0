//! Whole streams against libvpx (recorded MD5s) and `vp9dec`, and against damage.

mod common;

use common::{ALTREF, REALTIME, ivf};
use proptest::prelude::*;
use windlass_vp9::{Block, DecodeError, DecodedFrame, Decoder, FrameKind, Picture, Plane};

/// Every frame of a sound stream, hidden ones too.
fn decoded(stream: &[u8]) -> Vec<DecodedFrame> {
    let mut decoder = Decoder::new();
    ivf(stream).into_iter().flat_map(|c| decoder.decode(c).expect("sound").to_vec()).collect()
}

/// The pictures a player would display.
fn shown(stream: &[u8]) -> Vec<Picture> {
    let mut decoder = Decoder::new();
    ivf(stream)
        .into_iter()
        .filter_map(|chunk| {
            let frames = decoder.decode(chunk).expect("a sound stream");
            frames.iter().rev().find(|f| f.info.shown).map(|f| f.picture.to_picture())
        })
        .collect()
}

fn bytes(picture: &Picture) -> Vec<u8> {
    picture.planes().map(Plane::samples).concat()
}

/// A key frame and three more of 34×18: little enough for an interpreter.
#[test]
fn a_tiny_stream_has_the_pictures_of_libvpx() {
    let all: Vec<u8> = shown(include_bytes!("fixtures/tiny.ivf")).iter().flat_map(bytes).collect();
    let expected = include_str!("fixtures/tiny.md5").trim();
    assert_eq!(format!("{:x}", md5::compute(all)), expected);
}

#[test]
fn pictures_equal_those_of_libvpx() {
    for (stream, md5) in [
        (REALTIME, include_str!("fixtures/realtime.md5")),
        (ALTREF, include_str!("fixtures/altref.md5")),
    ] {
        let all: Vec<u8> = shown(stream).iter().flat_map(bytes).collect();
        assert_eq!(format!("{:x}", md5::compute(all)), md5.trim());
    }
}

#[test]
fn pictures_equal_those_of_vp9dec() {
    for stream in [REALTIME, ALTREF] {
        let mut other = vp9dec::Decoder::new();
        let expected = ivf(stream).into_iter().filter_map(|chunk| {
            let frames = other.decode_frame(chunk).expect("a sound stream");
            frames.into_iter().filter_map(|f| f.frame).next_back()
        });
        for (ours, theirs) in shown(stream).iter().zip(expected) {
            assert_eq!(ours.y.samples(), theirs.y.as_u8());
            assert_eq!(ours.u.samples(), theirs.u.as_u8());
            assert_eq!(ours.v.samples(), theirs.v.as_u8());
        }
    }
}

#[test]
fn blocks_cover_every_frame_once() {
    for stream in [REALTIME, ALTREF] {
        for frame in decoded(stream) {
            let (w, h) = (frame.picture.width(), frame.picture.height());
            let mut covered = vec![0u8; w * h];
            for block in &frame.info.blocks {
                for y in
                    usize::from(block.y)..(usize::from(block.y) + usize::from(block.height)).min(h)
                {
                    for x in usize::from(block.x)
                        ..(usize::from(block.x) + usize::from(block.width)).min(w)
                    {
                        covered[y * w + x] += 1;
                    }
                }
                assert_eq!(block.is_intra(), block.predictions(0) == [None; 2]);
            }
            let expected = u8::from(!matches!(frame.info.kind, FrameKind::ShowExisting { .. }));
            assert!(covered.iter().all(|&n| n == expected));
        }
    }
}

#[test]
fn vectors_of_skipped_whole_sample_blocks_point_at_their_pixels() {
    // Without a residual, and before the loop filter softens edges, a block moved by whole
    // samples is a copy: inner samples of large blocks must agree nearly everywhere.
    let mut slots: [Option<Picture>; 8] = std::array::from_fn(|_| None);
    let (mut same, mut all) = (0u32, 0u32);
    for frame in decoded(ALTREF) {
        let picture = frame.picture.to_picture();
        for block in frame.info.blocks.iter().filter(|b| b.skip && b.width >= 16 && b.height >= 16)
        {
            let [Some((reference, v)), None] = block.predictions(0) else { continue };
            let slot = frame.info.reference_slots[reference.index()];
            let Some(from) = &slots[usize::from(slot)] else { continue };
            if (v.x | v.y) & 7 != 0 {
                continue;
            }
            let (x, y) = (i32::from(block.x) + 8, i32::from(block.y) + 8);
            let (fx, fy) = (x + i32::from(v.x >> 3), y + i32::from(v.y >> 3));
            let (w, h) = (from.width() as i32, from.height() as i32);
            if x < w && y < h && (0..w).contains(&fx) && (0..h).contains(&fy) {
                let a = picture.y.row(y as usize)[x as usize];
                let b = from.y.row(fy as usize)[fx as usize];
                same += u32::from(a.abs_diff(b) <= 1);
                all += 1;
            }
        }
        for (i, slot) in slots.iter_mut().enumerate() {
            if frame.info.refresh_mask >> i & 1 == 1 {
                *slot = Some(picture.clone());
            }
        }
    }
    assert!(all > 50 && same * 10 >= all * 9, "{same} of {all}");
}

#[test]
fn hidden_frames_and_compound_blocks_are_reported() {
    let frames = decoded(ALTREF);
    assert!(frames.iter().any(|f| !f.info.shown));
    assert!(frames.iter().flat_map(|f| &f.info.blocks).any(Block::is_compound));
    assert_eq!(frames[0].info.kind, FrameKind::Key);
}

#[test]
fn an_inter_frame_first_and_after_an_error_waits_for_a_key_frame() {
    let frames = ivf(REALTIME);
    let mut decoder = Decoder::new();
    assert_eq!(decoder.decode(frames[1]).err(), Some(DecodeError::NeedKeyFrame));
    assert!(decoder.decode(frames[0]).is_ok());
    assert_eq!(decoder.decode(&[]).err(), Some(DecodeError::Empty));
    assert!(decoder.decode(&frames[1][..20]).is_err());
    assert!(decoder.needs_key_frame());
    assert_eq!(decoder.decode(frames[2]).err(), Some(DecodeError::NeedKeyFrame));
    assert!(decoder.decode(frames[0]).is_ok());
}

#[test]
fn other_profiles_and_absurd_sizes_are_refused() {
    let mut key = ivf(REALTIME)[0].to_vec();
    for (bits, profile) in [(0x20, 1), (0x10, 2), (0x30, 3)] {
        let mut other = key.clone();
        other[0] |= bits;
        assert_eq!(Decoder::new().decode(&other).err(), Some(DecodeError::Profile(profile)));
    }
    // Marker, sync code, then colour space (3 bits) and range (1 bit), then 16 bits of width.
    key[4] |= 0x0f;
    key[5] = 0xff;
    key[6] |= 0xf0;
    let mut decoder = Decoder::new();
    let refused = decoder.decode(&key);
    assert!(matches!(refused, Err(DecodeError::Size { width: 65_536, .. })), "{refused:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn damaged_streams_fail_with_an_error_and_recover(
        altref: bool,
        victim in 0usize..30,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let stream = ivf(if altref { ALTREF } else { REALTIME });
        let mut decoder = Decoder::new();
        for (i, chunk) in stream.iter().take(victim + 3).enumerate() {
            let mut chunk = chunk.to_vec();
            if i == victim {
                for (at, value) in &edits {
                    *at.get_mut(&mut chunk) = *value;
                }
                if let Some(cut) = cut {
                    chunk.truncate(cut.index(chunk.len()));
                }
            }
            if decoder.decode(&chunk).is_err() {
                prop_assert!(decoder.needs_key_frame() || chunk.is_empty());
            }
        }
        prop_assert!(decoder.decode(stream[0]).is_ok());
    }

    #[test]
    fn random_bytes_behind_a_sound_start_never_panic_outward(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut decoder = Decoder::new();
        prop_assert!(decoder.decode(ivf(REALTIME)[0]).is_ok());
        let mut frame = vec![0x86];
        frame.extend(bytes);
        let _ = decoder.decode(&frame);
    }
}
