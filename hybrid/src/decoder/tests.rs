//! Behaviour of whole decoders, on streams of the fixtures and anchors made here.

use proptest::prelude::*;

use super::early::MAX_LEAD;
use super::*;
use crate::anchor::codec::Htj2k;
use crate::anchor::payload::{self, Packed};
use crate::anchor::prior::Prior;
use crate::detail::Detail;
use crate::reconstruct::carry::searches::Searches;
pub(crate) use windlass_files::ivf::frames;
use windlass_types::message::AnchorHeader;
use windlass_types::message::HTJ2K;
use windlass_types::tiles::{TILE, TileMap};
use windlass_types::{AnchorSource, Size};
use windlass_vp9::Samples;

pub(crate) const REALTIME: &[u8] = include_bytes!("../../vp9/tests/fixtures/realtime.ivf");
pub(super) const ALTREF: &[u8] = include_bytes!("../../vp9/tests/fixtures/altref.ivf");

/// A timeline that wraps around at its sixth frame.
pub(super) fn at(frame: usize) -> u32 {
    (frame as u32).wrapping_mul(3000).wrapping_sub(15_000)
}

fn detail(width: u16, height: u16) -> Detail {
    let (w, h) = (usize::from(width), usize::from(height));
    let samples = (0..w * h).map(|i| ((i % w * 7 + i / w * 3) % 41) as i16 * 12 - 240);
    Detail::from_samples(w, h, samples.collect()).expect("the count is right")
}

pub(super) fn anchor(frame: usize, width: u16, height: u16) -> ReassembledAnchor {
    let payload = Htj2k::encode(&detail(width, height), 70).expect("a legal size");
    packed(frame, width, height, payload, false)
}

/// The anchor of only some tiles, given as (column, row).
fn tiles(frame: usize, size: Size, scale: usize, chosen: &[(usize, usize)]) -> ReassembledAnchor {
    let mut map = TileMap::empty(Size::new(size.width / scale as u16, size.height / scale as u16));
    for &(column, row) in chosen {
        map.set(column, row);
    }
    let Size { width, height } = size;
    let image = payload::image(detail(width, height), &map, scale);
    let coded = Htj2k::encode(&image, 70).expect("a legal size");
    let Packed { payload, tiled } = payload::pack(&map, coded);
    packed(frame, width, height, payload, tiled)
}

fn packed(
    frame: usize,
    width: u16,
    height: u16,
    payload: Vec<u8>,
    tiled: bool,
) -> ReassembledAnchor {
    ReassembledAnchor {
        header: AnchorHeader {
            tiled,
            stream: 1,
            ..AnchorHeader::new(HTJ2K, AnchorSource::Enhanced, at(frame), Size::new(width, height))
        },
        payload,
    }
}

/// A chunk that shows what a slot holds.
fn show_existing(slot: u8) -> [u8; 1] {
    [0x88 | slot]
}

/// The frames of a superframe (specification annex B), or the one frame of a chunk.
fn parts(chunk: &[u8]) -> Vec<&[u8]> {
    let marker = chunk[chunk.len() - 1];
    if marker & 0xe0 != 0xc0 {
        return vec![chunk];
    }
    let (count, bytes) = (usize::from(marker & 7) + 1, usize::from(marker >> 3 & 3) + 1);
    let (mut data, index) = chunk.split_at(chunk.len() - 2 - count * bytes);
    index[1..]
        .chunks_exact(bytes)
        .take(count)
        .map(|size| {
            let size = size.iter().rev().fold(0, |v, &b| v << 8 | usize::from(b));
            let (frame, rest) = data.split_at(size);
            data = rest;
            frame
        })
        .collect()
}

/// Frames joined to a superframe.
fn joined(frames: &[&[u8]]) -> Vec<u8> {
    let marker = 0xc8 | (frames.len() as u8 - 1);
    let mut chunk = frames.concat();
    chunk.push(marker);
    for frame in frames {
        chunk.extend((frame.len() as u16).to_le_bytes());
    }
    chunk.push(marker);
    chunk
}

/// Gives an anchor and looks at once.
fn give(d: &mut HybridDecoder, anchor: &ReassembledAnchor) -> AnchorOutcome {
    let outcome = d.push_anchor(anchor);
    let applied = matches!(outcome, AnchorOutcome::Applied { .. });
    assert_eq!(d.refresh(), applied && d.displayed, "{outcome:?}");
    assert!(!d.refresh(), "there is nothing new");
    outcome
}

/// A decoder without what depends on the order in which anchors arrive.
fn unlearning() -> HybridDecoder {
    HybridDecoder::new(HybridConfig { learning: false, ..HybridConfig::default() })
}

/// The picture on display as one who sees it first would make it.
fn made_anew(d: &HybridDecoder) -> Picture {
    let current = d.history.current().expect("something is shown");
    let mut picture = Picture::default();
    let (sources, mut searches) = (&d.reconstruction.sources, Searches::default());
    let mut rebuilder = Rebuilder::new(Isa::SCALAR, d.config.scale);
    rebuilder.rebuild(current.id(), &current.low, sources, &mut searches, &mut picture);
    picture
}

#[test]
fn without_anchors_and_prior_the_picture_is_the_upsampled_low_layer() {
    let config = HybridConfig { prior: false, ..HybridConfig::default() };
    let mut d = HybridDecoder::new(config);
    for (i, data) in frames(REALTIME).into_iter().enumerate() {
        let outcome = d.push_frame(at(i), data).expect("a sound stream");
        assert!(outcome.shown && !outcome.enhanced);
        let low = d.lr().expect("shown");
        assert_eq!((low.width(), low.height()), (161, 91));
        assert_eq!(d.hr(), Some(&crate::resample::upsample(&low.to_picture())));
    }
}

#[test]
fn a_late_anchor_ends_where_a_timely_one_would_have() {
    for (stream, (w, h)) in [(REALTIME, (322, 182)), (ALTREF, (320, 192))] {
        let all = frames(stream);
        let mut timely = HybridDecoder::new(HybridConfig::default());
        let mut late = HybridDecoder::new(HybridConfig::default());
        for (i, data) in all.iter().enumerate().take(20) {
            timely.push_frame(at(i), data).expect("sound");
            late.push_frame(at(i), data).expect("sound");
            if i == 4 || i == 9 {
                let outcome = give(&mut timely, &anchor(i, w, h));
                assert_eq!(outcome, AnchorOutcome::Applied { frames_late: 0 });
            }
            if i == 8 || i == 15 {
                let of = if i == 8 { 4 } else { 9 };
                let outcome = give(&mut late, &anchor(of, w, h));
                assert!(matches!(outcome, AnchorOutcome::Applied { frames_late: 4.. }));
            }
            if i == 8 || i >= 15 {
                assert_eq!(timely.hr(), late.hr(), "at frame {i}");
            }
        }
        assert_eq!(late.stats().late, 2);
        assert!(timely.stats().enhanced > 10);
    }
}

#[test]
fn an_early_anchor_waits_for_its_frame_across_the_wrap() {
    let all = frames(REALTIME);
    let mut early = HybridDecoder::new(HybridConfig::default());
    let mut timely = HybridDecoder::new(HybridConfig::default());
    for (i, data) in all.iter().enumerate().take(8) {
        if i == 4 {
            assert_eq!(give(&mut early, &anchor(6, 322, 182)), AnchorOutcome::Early);
        }
        early.push_frame(at(i), data).expect("sound");
        timely.push_frame(at(i), data).expect("sound");
    }
    give(&mut timely, &anchor(6, 322, 182));
    assert_eq!(early.hr(), timely.hr());
    assert_eq!(early.stats().applied, 1);
}

#[test]
fn one_early_anchor_too_many_drops_the_first() {
    let mut d = HybridDecoder::new(HybridConfig::default());
    d.push_frame(at(0), frames(REALTIME)[0]).expect("sound");
    for i in 1..=MAX_EARLY + 1 {
        assert_eq!(give(&mut d, &anchor(i, 322, 182)), AnchorOutcome::Early);
    }
    assert_eq!(d.early.len(), MAX_EARLY);
    assert_eq!(d.stats().too_old, 1);
}

#[test]
fn anchors_beyond_the_history_are_too_old() {
    let mut d = HybridDecoder::new(HybridConfig { history: 4, ..HybridConfig::default() });
    for (i, data) in frames(REALTIME).into_iter().enumerate().take(9) {
        d.push_frame(at(i), data).expect("sound");
    }
    assert_eq!(give(&mut d, &anchor(4, 322, 182)), AnchorOutcome::TooOld);
    let applied = give(&mut d, &anchor(5, 322, 182));
    assert_eq!(applied, AnchorOutcome::Applied { frames_late: 3 });
}

#[test]
fn wrong_and_malformed_anchors_change_nothing() {
    let mut d = HybridDecoder::new(HybridConfig::default());
    d.push_frame(at(0), frames(REALTIME)[0]).expect("sound");
    let before = d.hr().cloned();
    assert_eq!(give(&mut d, &anchor(0, 320, 182)), AnchorOutcome::WrongSize);
    let mut lying = anchor(0, 320, 182);
    lying.header.size.width = 322;
    assert_eq!(give(&mut d, &lying), AnchorOutcome::WrongSize);
    let mut broken = anchor(0, 322, 182);
    broken.payload.truncate(40);
    assert_eq!(give(&mut d, &broken), AnchorOutcome::Malformed);
    broken.header.codec = 77;
    assert_eq!(give(&mut d, &broken), AnchorOutcome::Malformed);
    assert_eq!((d.hr().cloned(), d.stats().malformed), (before, 4));
}

#[test]
fn a_key_frame_of_another_size_begins_without_detail() {
    let mut d = HybridDecoder::new(HybridConfig::default());
    d.push_frame(at(0), frames(REALTIME)[0]).expect("sound");
    give(&mut d, &anchor(0, 322, 182));
    let outcome = d.push_frame(at(1), frames(ALTREF)[0]).expect("a key frame");
    assert!(outcome.key && !outcome.enhanced);
    assert_eq!(d.hr().map(Picture::width), Some(320));
    // The former frame's anchor still has its place, but must not touch the new picture.
    let shown = d.hr().cloned();
    give(&mut d, &anchor(0, 322, 182));
    assert_eq!(d.hr().cloned(), shown);
}

#[test]
fn after_a_reset_or_an_error_only_a_key_frame_goes_on() {
    let all = frames(REALTIME);
    let mut d = HybridDecoder::new(HybridConfig::default());
    d.push_frame(at(0), all[0]).expect("sound");
    d.reset();
    assert_eq!(d.push_frame(at(1), all[1]), Err(DecodeError::NeedKeyFrame));
    assert!(d.hr().is_some());
    assert!(d.push_frame(at(2), all[0]).expect("a key frame").key);
    assert_eq!(give(&mut d, &anchor(0, 322, 182)), AnchorOutcome::TooOld);
}

#[test]
fn early_anchors_are_bounded_in_bytes() {
    let mut d = HybridDecoder::new(HybridConfig::default());
    d.push_frame(at(0), frames(REALTIME)[0]).expect("sound");
    for i in 1..=4 {
        let large = packed(i, 322, 182, vec![0; MAX_EARLY_BYTES / 3], false);
        assert_eq!(give(&mut d, &large), AnchorOutcome::Early);
    }
    assert_eq!((d.early.len(), d.stats().too_old), (3, 1));
    give(&mut d, &packed(5, 322, 182, vec![0; MAX_EARLY_BYTES + 1], false));
    assert_eq!(d.early.len(), 0);
}

#[test]
fn every_outcome_is_counted_once() {
    let all = frames(REALTIME);
    let mut d = HybridDecoder::new(HybridConfig { history: 3, ..HybridConfig::default() });
    for (i, data) in all.iter().enumerate().take(6) {
        d.push_frame(at(i), data).expect("sound");
    }
    let of_epoch = |epoch: u16, anchor: ReassembledAnchor| ReassembledAnchor {
        header: AnchorHeader { epoch, ..anchor.header },
        ..anchor
    };
    let whole = |frame| of_epoch(0, anchor(frame, 322, 182));
    let mut astray = whole(0);
    // Between two frames, and years ahead.
    astray.header.rtp_timestamp = at(4).wrapping_add(1);
    assert_eq!(give(&mut d, &astray), AnchorOutcome::TooOld);
    astray.header.rtp_timestamp = at(5).wrapping_add(MAX_LEAD + 1);
    assert_eq!(give(&mut d, &astray), AnchorOutcome::TooOld);
    assert_eq!(give(&mut d, &whole(2)), AnchorOutcome::TooOld);
    assert_eq!(give(&mut d, &whole(7)), AnchorOutcome::Early);
    assert_eq!(give(&mut d, &whole(5)), AnchorOutcome::Applied { frames_late: 0 });
    assert_eq!(give(&mut d, &whole(5)), AnchorOutcome::Duplicate);
    // Older after newer.
    assert_eq!(give(&mut d, &whole(3)), AnchorOutcome::Applied { frames_late: 2 });
    assert_eq!(
        give(&mut d, &of_epoch(u16::MAX, whole(4))),
        AnchorOutcome::FormerEpoch,
        "epochs wrap"
    );
    assert_eq!(give(&mut d, &anchor(4, 320, 182)), AnchorOutcome::WrongSize);
    let mut broken = whole(4);
    broken.payload.truncate(30);
    assert_eq!(give(&mut d, &broken), AnchorOutcome::Malformed);
    let mut unknown = whole(4);
    unknown.header.codec = 200;
    assert_eq!(give(&mut d, &unknown), AnchorOutcome::Malformed);
    assert_eq!(give(&mut d, &of_epoch(1, whole(4))), AnchorOutcome::Applied { frames_late: 1 });
    // The one that waits is of the former epoch now.
    d.push_frame(at(6), all[6]).expect("sound");
    d.push_frame(at(7), all[7]).expect("sound");
    let stats = d.stats();
    let counted = (stats.applied, stats.late, stats.last_frames_late, stats.too_old, stats.early);
    assert_eq!(counted, (3, 2, 1, 3, 1));
    assert_eq!((stats.duplicate, stats.former_epoch, stats.malformed), (1, 2, 3));
    assert_eq!((stats.frames, stats.errors, stats.enhanced), (8, 0, 2));
}

#[test]
fn a_frame_shown_again_is_shown_though_it_has_left_the_memory() {
    let all = frames(REALTIME);
    let config = HybridConfig { history: 4, prior: false, ..HybridConfig::default() };
    let mut d = HybridDecoder::new(config);
    d.push_frame(at(0), all[0]).expect("sound");
    let first = d.hr().cloned();
    for (i, data) in all.iter().enumerate().take(12).skip(1) {
        d.push_frame(at(i), data).expect("sound");
    }
    assert_ne!(d.hr().cloned(), first);
    // Real-time streams leave the last slot to the key frame.
    assert!(d.push_frame(at(12), &show_existing(7)).expect("the slot is taken").shown);
    assert_eq!(d.hr().cloned(), first);
    assert_eq!(d.hr(), d.lr().map(|low| crate::resample::upsample(&low.to_picture())).as_ref());
    // It can have anchors, and those after it are shown as ever.
    assert_eq!(give(&mut d, &anchor(12, 322, 182)), AnchorOutcome::Applied { frames_late: 0 });
    assert_ne!(d.hr().cloned(), first);
    d.push_frame(at(13), all[12]).expect("sound");
    assert_eq!(d.hr(), Some(&made_anew(&d)));
}

#[test]
fn a_frame_shown_again_after_errors_that_keep_the_references_is_shown() {
    let all = frames(REALTIME);
    let mut d = HybridDecoder::new(HybridConfig::default());
    d.push_frame(at(0), all[0]).expect("sound");
    let first = d.hr().cloned();
    d.push_frame(at(1), all[1]).expect("sound");
    // As after an error by which the VP9 decoder loses nothing.
    d.forget();
    assert!(d.push_frame(at(2), &show_existing(7)).expect("the slot is taken").shown);
    assert_eq!(d.hr().cloned(), first);
}

#[test]
fn anchors_find_a_frame_by_each_time_that_it_was_shown() {
    let mut d = HybridDecoder::new(HybridConfig::default());
    d.push_frame(at(0), frames(REALTIME)[0]).expect("sound");
    d.push_frame(at(1), &show_existing(7)).expect("the slot is taken");
    let applied = give(&mut d, &tiles(0, Size::new(322, 182), 2, &[(0, 0)]));
    assert_eq!(applied, AnchorOutcome::Applied { frames_late: 0 });
    let applied = give(&mut d, &anchor(1, 322, 182));
    assert_eq!(applied, AnchorOutcome::Applied { frames_late: 0 });
    assert_eq!(give(&mut d, &anchor(0, 322, 182)), AnchorOutcome::Duplicate);
}

#[test]
fn a_chunk_without_frames_changes_nothing() {
    let all = frames(REALTIME);
    let (mut d, mut plain) =
        (HybridDecoder::new(HybridConfig::default()), HybridDecoder::new(HybridConfig::default()));
    for (i, data) in all.iter().enumerate().take(6) {
        d.push_frame(at(i), data).expect("sound");
        plain.push_frame(at(i), data).expect("sound");
        if i == 2 {
            give(&mut d, &anchor(i, 322, 182));
            give(&mut plain, &anchor(i, 322, 182));
            // A superframe whose only frame is empty.
            assert!(!d.push_frame(at(i), &[0xc0, 0, 0xc0]).expect("allowed").shown);
        }
        assert_eq!(d.hr(), plain.hr(), "at frame {i}");
    }
}

#[test]
fn a_hidden_frame_behind_the_shown_one_does_not_take_its_place() {
    let all = frames(ALTREF);
    let config = HybridConfig { history: 1, ..HybridConfig::default() };
    let (mut one, mut other) = (HybridDecoder::new(config), HybridDecoder::new(config));
    let mut found = 0;
    let mut held: Option<&[u8]> = None;
    for (i, chunk) in all.iter().enumerate() {
        let split = parts(chunk);
        for part in &split {
            other.push_frame(at(i), part).expect("sound");
        }
        // The last shown frame goes with the hidden one after it.
        let (hidden, shown) = split.split_at(split.len() - 1);
        let first: Vec<&[u8]> = held.iter().copied().chain(hidden.iter().copied()).collect();
        if hidden.is_empty() {
            if let Some(held) = held {
                one.push_frame(at(i - 1), held).expect("sound");
            }
        } else if held.is_some() {
            let before = one.hr().cloned();
            let outcome = one.push_frame(at(i - 1), &joined(&first)).expect("sound");
            assert!(outcome.shown && one.lr().is_some());
            assert_eq!(one.hr(), Some(&made_anew(&one)));
            assert_ne!(one.hr().cloned(), before);
            found += 1;
        }
        held = Some(shown[0]);
    }
    assert!(found > 0, "there are hidden frames");
    one.push_frame(at(all.len()), held.expect("there are frames")).expect("sound");
    assert_eq!(one.hr(), other.hr());
}

#[test]
fn early_anchors_wait_until_their_frame_is_shown() {
    let all = frames(ALTREF);
    let config = HybridConfig::default();
    let (mut early, mut timely) = (HybridDecoder::new(config), HybridDecoder::new(config));
    let of = (1..all.len()).find(|&i| parts(all[i]).len() > 1).expect("there is a hidden frame");
    for (i, chunk) in all.iter().enumerate().take(of + 1) {
        if i == of {
            // All parts of a picture, more than anchors of other pictures might be.
            for tile in [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)] {
                let part = tiles(of, Size::new(320, 192), 2, &[tile]);
                assert_eq!(give(&mut early, &part), AnchorOutcome::Early);
            }
        }
        // Hidden frames may come in chunks of their own.
        for part in parts(chunk) {
            early.push_frame(at(i), part).expect("sound");
        }
        timely.push_frame(at(i), chunk).expect("sound");
    }
    for tile in [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)] {
        give(&mut timely, &tiles(of, Size::new(320, 192), 2, &[tile]));
    }
    assert_eq!(early.stats().applied, 6);
    assert_eq!(early.hr(), timely.hr());
}

#[test]
fn parts_share_one_reference_and_a_lost_one_costs_its_tiles_alone() {
    let all = frames(REALTIME);
    let size = Size::new(322, 182);
    let tile = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)];
    let (mut whole, mut lossy) = (unlearning(), unlearning());
    for d in [&mut whole, &mut lossy] {
        for (i, data) in all.iter().enumerate().take(3) {
            d.push_frame(at(i), data).expect("sound");
        }
    }
    let before = lossy.hr().cloned().expect("shown");
    for (n, &tile) in tile.iter().enumerate() {
        let part = tiles(2, size, 2, &[tile]);
        assert_eq!(give(&mut whole, &part), AnchorOutcome::Applied { frames_late: 0 });
        assert_eq!(give(&mut whole, &part), AnchorOutcome::Duplicate);
        if n != 4 {
            give(&mut lossy, &part);
        }
    }
    let references = &whole.reconstruction.sources.references;
    assert!(
        references.next_after(0).is_some_and(|first| {
            references.next_after(first.id).is_none() && first.is_settled(false)
        }),
        "parts make one reference"
    );
    let (lost, got) = (lossy.hr().expect("shown"), whole.hr().expect("shown"));
    for y in 0..182 {
        let columns = |p: &Picture| p.y.row(y)[128..256].to_vec();
        let expected = if y >= 128 { &before } else { got };
        assert_eq!(columns(lost), columns(expected), "row {y}");
        assert_eq!(lost.y.row(y)[..128], got.y.row(y)[..128]);
    }
    // The lost part comes late after all, two frames on.
    for d in [&mut whole, &mut lossy] {
        d.push_frame(at(3), all[3]).expect("sound");
        d.push_frame(at(4), all[4]).expect("sound");
    }
    let outcome = give(&mut lossy, &tiles(2, size, 2, &[tile[4]]));
    assert_eq!(outcome, AnchorOutcome::Applied { frames_late: 2 });
    assert_eq!(lossy.hr(), whole.hr());
}

/// An anchor of the publisher's own pixels.
pub(super) fn captured(anchor: ReassembledAnchor) -> ReassembledAnchor {
    let header = AnchorHeader { source: AnchorSource::Captured, ..anchor.header };
    ReassembledAnchor { header, ..anchor }
}

/// Mean difference of luma in the first tile of two pictures, in grey levels.
fn apart(a: &Picture, b: &Picture) -> f64 {
    let rows =
        (0..2 * TILE).flat_map(|y| a.y.row(y)[..2 * TILE].iter().zip(&b.y.row(y)[..2 * TILE]));
    rows.map(|(&a, &b)| f64::from(a.abs_diff(b))).sum::<f64>() / (4 * TILE * TILE) as f64
}

#[test]
fn what_an_anchor_teaches_does_not_change_the_tiles_that_it_does_not_give() {
    let size = Size::new(322, 182);
    let mut d = HybridDecoder::new(HybridConfig::default());
    d.push_frame(at(0), frames(REALTIME)[0]).expect("sound");
    give(&mut d, &captured(tiles(0, size, 2, &[(0, 0)])));
    let before = d.hr().expect("shown").clone();
    // A part of the same frame, and then an anchor of the next one, which shows the same.
    give(&mut d, &captured(tiles(0, size, 2, &[(1, 0)])));
    assert!(apart(&before, d.hr().expect("shown")) < 0.5);
    for n in 1..3 {
        d.push_frame(at(n), &show_existing(0)).expect("there");
    }
    assert!(apart(&before, d.hr().expect("shown")) < 0.5);
}

#[test]
fn detail_beyond_the_prior_shows_what_all_of_it_would() {
    let (width, height) = (322, 182);
    let all = anchor(0, width, height);
    let shown = |beyond: bool| {
        let mut d = unlearning();
        d.push_frame(at(0), frames(REALTIME)[0]).expect("sound");
        let mut anchor = all.clone();
        if beyond {
            let mut rest = detail(width, height);
            let low = d.lr().expect("shown");
            let luma = Samples::from(&low.planes()[0]);
            Prior::new(Isa::detect(), 2).take_out(luma, &mut rest);
            anchor.header.beyond_prior = true;
            anchor.payload = Htj2k::encode(&rest, 100).expect("a legal size");
        } else {
            anchor.payload = Htj2k::encode(&detail(width, height), 100).expect("a legal size");
        }
        give(&mut d, &anchor);
        d.hr().expect("shown").clone()
    };
    let apart = apart(&shown(true), &shown(false));
    assert!(apart < 0.6, "{apart}");
}

#[test]
fn an_older_anchor_reaches_past_newer_ones_of_some_tiles() {
    for (stream, size) in [(REALTIME, Size::new(322, 182)), (ALTREF, Size::new(320, 192))] {
        let all = frames(stream);
        let (mut timely, mut late) = (unlearning(), unlearning());
        for (i, data) in all.iter().enumerate().take(16) {
            for d in [&mut timely, &mut late] {
                d.push_frame(at(i), data).expect("sound");
            }
            let tiled = |of: usize| tiles(of, size, 2, &[(of % 3, 0)]);
            if i == 3 {
                give(&mut timely, &anchor(3, size.width, size.height));
            }
            if i == 5 || i == 8 {
                give(&mut timely, &tiled(i));
                give(&mut late, &tiled(i));
            }
            if i == 10 {
                let outcome = give(&mut late, &anchor(3, size.width, size.height));
                assert_eq!(outcome, AnchorOutcome::Applied { frames_late: 7 });
            }
            if i >= 10 {
                assert_eq!(timely.hr(), late.hr(), "at frame {i}");
            }
        }
    }
}

#[test]
fn anchors_of_a_former_size_take_no_place() {
    let mut d = HybridDecoder::new(HybridConfig::default());
    let (large, small) = (frames(REALTIME), frames(ALTREF));
    for (i, data) in large.iter().enumerate().take(5) {
        d.push_frame(at(i), data).expect("sound");
    }
    d.push_frame(at(5), small[0]).expect("a key frame");
    give(&mut d, &anchor(5, 320, 192));
    let shown = d.hr().cloned();
    for i in 0..5 {
        assert_eq!(give(&mut d, &anchor(i, 322, 182)), AnchorOutcome::TooOld);
    }
    assert_eq!(d.hr().cloned(), shown);
    assert_eq!(d.hr(), Some(&made_anew(&d)));
}

#[test]
fn a_late_anchor_costs_no_quality_from_then_on() {
    for (stream, (w, h)) in [(REALTIME, (322, 182)), (ALTREF, (320, 192))] {
        let all = frames(stream);
        for k in 1..=8 {
            let config = HybridConfig::default();
            let (mut timely, mut late) = (HybridDecoder::new(config), HybridDecoder::new(config));
            for (i, data) in all.iter().enumerate().take(24) {
                timely.push_frame(at(i), data).expect("sound");
                late.push_frame(at(i), data).expect("sound");
                if i % 9 == 1 {
                    give(&mut timely, &anchor(i, w, h));
                }
                if i >= k && (i - k) % 9 == 1 {
                    let outcome = give(&mut late, &anchor(i - k, w, h));
                    let frames_late = k as u32;
                    assert_eq!(outcome, AnchorOutcome::Applied { frames_late });
                }
                // Between the arrivals of one and the same anchor they differ.
                if i > k && (i - 1) % 9 >= k {
                    assert_eq!(timely.hr(), late.hr(), "{k} late, at frame {i}");
                }
            }
        }
    }
}

#[test]
fn an_anchor_is_seen_with_the_next_frame_or_when_asked_for() {
    for (stream, (w, h)) in [(REALTIME, (322, 182)), (ALTREF, (320, 192))] {
        let all = frames(stream);
        let config = HybridConfig::default();
        let (mut timely, mut late) = (HybridDecoder::new(config), HybridDecoder::new(config));
        for (i, data) in all.iter().enumerate().take(24) {
            timely.push_frame(at(i), data).expect("sound");
            late.push_frame(at(i), data).expect("sound");
            assert!(!late.refresh(), "a frame leaves nothing to be done");
            if i % 6 == 0 {
                give(&mut timely, &anchor(i, w, h));
            }
            if i % 6 == 3 {
                assert_ne!(timely.hr(), late.hr(), "at frame {i}");
                let shown = late.hr().cloned();
                late.push_anchor(&anchor(i - 3, w, h));
                assert!(late.is_stale() && late.hr().cloned() == shown);
                // Every second time, by itself.
                if i % 12 == 3 {
                    assert!(late.refresh() && !late.is_stale());
                    assert_eq!(timely.hr(), late.hr(), "at frame {i}");
                }
            } else if i % 6 > 3 {
                assert_eq!(timely.hr(), late.hr(), "at frame {i}");
            }
        }
        assert_eq!(late.stats().late, 4);
    }
}

#[test]
fn nothing_is_refreshed_before_the_first_picture_or_after_a_reset() {
    let mut d = HybridDecoder::new(HybridConfig::default());
    assert!(!d.refresh());
    d.push_frame(at(0), frames(REALTIME)[0]).expect("sound");
    d.push_anchor(&anchor(0, 322, 182));
    d.reset();
    assert!(!d.refresh() && d.hr().is_some());
}

/// Something that happens to a decoder.
#[derive(Debug, Clone)]
enum Event {
    Frame,
    Again(u8),
    /// For a frame so many back, of some tiles or all; whether to look at once.
    Anchor(usize, Option<u8>, bool),
    Stray,
    Reset,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        12 => Just(Event::Frame),
        1 => (0u8..8).prop_map(Event::Again),
        4 => (0usize..12, proptest::option::of(1u8..64), any::<bool>())
            .prop_map(|(n, tiles, look)| Event::Anchor(n, tiles, look)),
        1 => Just(Event::Stray),
    ];
    let event = prop_oneof![60 => event, 1 => Just(Event::Reset)];
    proptest::collection::vec(event, 1..60)
}

proptest! {
    // A part of `PROPTEST_CASES`: 16 of its default, 125 in the soak.
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) {
        1
    } else {
        ProptestConfig::default().cases / 16
    }))]
    #[test]
    fn leaving_alone_what_has_not_changed_gives_the_picture_made_anew(
        events in events(), scale in 2usize..=4, history in 1usize..12, altref: bool,
    ) {
        let all = frames(if altref { ALTREF } else { REALTIME });
        let low = if altref { Size::new(160, 96) } else { Size::new(161, 91) };
        let size = low.scaled(scale as u16);
        let config = HybridConfig { scale, history, ..HybridConfig::default() };
        let mut d = HybridDecoder::new(config);
        let mut scalar =
            HybridDecoder::new(HybridConfig { isa: Isa::SCALAR, ..config }).making_all_anew();
        let (mut next, mut time) = (0, 0);
        for event in events {
            match event {
                Event::Frame => {
                    let chunk = all[next % all.len()];
                    prop_assert_eq!(d.push_frame(at(time), chunk), scalar.push_frame(at(time), chunk));
                    next += 1;
                    time += 1;
                }
                Event::Again(slot) => {
                    let chunk = show_existing(slot);
                    let outcome = d.push_frame(at(time), &chunk);
                    prop_assert_eq!(outcome, scalar.push_frame(at(time), &chunk));
                    time += 1;
                    if outcome.is_err() {
                        next = 0;
                    }
                }
                Event::Anchor(back, some, look) => {
                    let of = (time + 1usize).saturating_sub(back);
                    let anchor = match some {
                        None => anchor(of, size.width, size.height),
                        Some(bits) => {
                            let chosen: Vec<_> = (0..6usize)
                                .filter(|i| bits >> i & 1 == 1)
                                .map(|i| (i % 3, i / 3))
                                .collect();
                            tiles(of, size, scale, &chosen)
                        }
                    };
                    prop_assert_eq!(d.push_anchor(&anchor), scalar.push_anchor(&anchor));
                    if look {
                        prop_assert_eq!(d.refresh(), scalar.refresh());
                    }
                }
                Event::Stray => {
                    let outcome = d.push_anchor(&packed(time.saturating_sub(1), size.width, size.height, vec![9; 60], true));
                    let applied = matches!(outcome, AnchorOutcome::Applied { .. });
                    prop_assert!(!applied);
                }
                Event::Reset => {
                    d.reset();
                    scalar.reset();
                    next = 0;
                }
            }
            if d.history.current().is_some() {
                prop_assert!(d.is_stale() || d.hr() == Some(&made_anew(&d)));
                prop_assert_eq!(d.hr(), scalar.hr());
            }
        }
    }
}

/// The low picture that a decoder holds, packed.
fn packed_low(decoder: &HybridDecoder) -> (usize, usize, Vec<u8>) {
    let low = decoder.lr().expect("a picture");
    let rows = low.planes().iter().flat_map(|plane| (0..plane.height()).map(|y| plane.row(y)));
    (low.width(), low.height(), rows.collect::<Vec<_>>().concat())
}

#[test]
fn pictures_of_another_decoder_are_rebuilt_as_ones_own() {
    let mut own = HybridDecoder::new(HybridConfig::default());
    let mut others = HybridDecoder::new(HybridConfig::default());
    for (n, frame) in frames(REALTIME).into_iter().enumerate().take(12) {
        let outcome = own.push_frame(at(n), frame).expect("sound");
        let (width, height, data) = packed_low(&own);
        let low = FrameBuffer::from_i420(width, height, &data).expect("its length is right");
        let other = others.push_picture(at(n), &low.into()).expect("within the limit");
        assert_eq!(other, FrameOutcome { key: false, ..outcome }, "frame {n}");
        if n == 4 {
            let anchor = anchor(n, 2 * width as u16, 2 * height as u16);
            assert_eq!(own.push_anchor(&anchor), others.push_anchor(&anchor));
        }
        assert_eq!(own.hr(), others.hr(), "frame {n}");
    }
    assert!(own.stats().enhanced > 0);
}

#[test]
fn a_picture_beyond_the_limit_is_refused_and_the_next_one_is_not() {
    let limit = SizeLimit { area: 64 * 64, ..SizeLimit::default() };
    let mut decoder = HybridDecoder::new(HybridConfig::default()).limited(limit);
    let [large, fits] = [80, 64].map(|side| Arc::new(FrameBuffer::grey(side, 64)));
    let refused = decoder.push_picture(0, &large);
    assert_eq!(refused, Err(DecodeError::Size { width: 80, height: 64 }));
    assert!(decoder.hr().is_none());
    assert!(decoder.push_picture(3000, &fits).is_ok_and(|outcome| outcome.shown));
}
