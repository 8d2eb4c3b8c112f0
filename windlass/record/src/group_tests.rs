use std::time::{Instant, SystemTime, UNIX_EPOCH};

use windlass_types::recording::SenderReport;

use super::*;

const CAMERA: TrackId = TrackId(1);
const MICROPHONE: TrackId = TrackId(2);

/// A sender whose clock says 1000 s when the recorder's says 0.
fn made(us: i64, ticks_per_ms: i64, reported: bool) -> RecordedTime {
    let rtp = |us: i64| (us * ticks_per_ms / 1000) as u32;
    let at = |us: i64| -> SystemTime {
        UNIX_EPOCH + Duration::from_micros((1_000_000_000 + us).unsigned_abs())
    };
    let second = us / 1_000_000 * 1_000_000;
    let report = reported.then(|| SenderReport { time: at(second), rtp: rtp(second) });
    RecordedTime { rtp: rtp(us), arrival: Instant::now(), report }
}

fn picture(us: i64, key: bool, reported: bool) -> Media {
    let time = made(us, 90, reported);
    let size = Some(Size::new(640, 360));
    let data = Bytes::from_static(&[1; 10]);
    Media { slot: Slot::Video, layer: Some(Layer::F), time, key, size, data }
}

fn sound(us: i64, reported: bool) -> Media {
    let time = made(us, 48, reported);
    let data = Bytes::from_static(&[2; 3]);
    Media { slot: Slot::Audio, layer: None, time, key: true, size: None, data }
}

fn both() -> Group {
    let mut group = Group::default();
    group.begin(Slot::Video, CAMERA);
    group.begin(Slot::Audio, MICROPHONE);
    group
}

/// Slot and time in ms of all frames that are written.
fn written(steps: &[Step]) -> Vec<(Slot, u128)> {
    let write = |step: &Step| match step {
        Step::Write { slot, at, .. } => Some((*slot, at.as_millis())),
        _ => None,
    };
    steps.iter().filter_map(write).collect()
}

fn opened(steps: &[Step]) -> Vec<Shape> {
    let open = |step: &Step| match step {
        Step::Open { shape, .. } => Some(*shape),
        _ => None,
    };
    steps.iter().filter_map(open).collect()
}

#[test]
fn sound_and_picture_are_in_one_file_in_the_order_in_which_they_were_made() {
    let mut group = both();
    // Pictures arrive 90 ms after they were made, sound 10 ms.
    let mut arrivals: Vec<(i64, Media)> = (0..5)
        .flat_map(|n| {
            let us = n * 40_000;
            [(us + 90_000, picture(us, n == 0, true)), (us + 10_000, sound(us, true))]
        })
        .collect();
    arrivals.sort_by_key(|(at, _)| *at);
    let mut steps: Vec<Step> = arrivals.into_iter().flat_map(|(at, m)| group.push(m, at)).collect();
    assert_eq!(opened(&steps), [Shape { video: Some(Size::new(640, 360)), audio: true }]);
    steps.extend(group.finish());
    let at = |slot| {
        let of = written(&steps).into_iter().filter(move |(s, _)| *s == slot);
        of.map(|(_, ms)| ms).collect::<Vec<_>>()
    };
    assert_eq!(at(Slot::Video), [0, 40, 80, 120, 160]);
    assert_eq!(at(Slot::Audio), [0, 40, 80, 120, 160]);
    assert_eq!(steps.last(), Some(&Step::Close));
}

#[test]
fn a_file_waits_for_reports_and_not_for_ever() {
    let mut group = both();
    assert!(opened(&group.push(picture(0, true, true), 0)).is_empty());
    assert!(opened(&group.push(sound(0, false), 10_000)).is_empty(), "sound has no report yet");
    let late = group.push(sound(1_000_000, true), 1_010_000);
    assert_eq!(opened(&late).len(), 1);
    let mut silent = both();
    silent.push(picture(0, true, false), 0);
    assert!(opened(&silent.advance(REPORT_WAIT - 1)).is_empty());
    assert_eq!(opened(&silent.advance(REPORT_WAIT)).len(), 1);
}

#[test]
fn a_muted_microphone_has_its_place_in_the_file() {
    let mut group = both();
    group.push(picture(0, true, true), 0);
    let shapes = opened(&group.advance(TRACK_WAIT));
    assert_eq!(shapes, [Shape { video: Some(Size::new(640, 360)), audio: true }]);
    assert!(opened(&group.push(sound(2_000_000, true), 2_000_000)).is_empty());
}

#[test]
fn a_camera_that_comes_later_begins_another_file_with_a_key_frame() {
    let mut group = Group::default();
    group.begin(Slot::Audio, MICROPHONE);
    assert_eq!(opened(&group.push(sound(0, true), 0)), [Shape { video: None, audio: true }]);
    group.begin(Slot::Video, CAMERA);
    let steps = group.push(picture(3_000_000, false, true), 3_000_000);
    assert!(steps.contains(&Step::KeyFrame(CAMERA)), "{steps:?}");
    let steps = group.push(picture(3_100_000, false, true), 3_100_000);
    assert!(!steps.contains(&Step::KeyFrame(CAMERA)), "not with each frame");
    group.push(sound(3_000_000, true), 3_110_000);
    let mut steps = group.push(picture(3_200_000, true, true), 3_200_000);
    steps.extend(group.push(sound(3_210_000, true), 3_210_000));
    assert!(steps.contains(&Step::Close));
    assert_eq!(opened(&steps), [Shape { video: Some(Size::new(640, 360)), audio: true }]);
}

#[test]
fn a_repeated_packet_is_written_once_and_a_late_one_in_its_place() {
    let mut group = Group::default();
    group.begin(Slot::Audio, MICROPHONE);
    let mut steps = group.push(sound(0, true), 0);
    for (us, arrival) in [(40_000, 40_000), (20_000, 45_000), (40_000, 60_000), (60_000, 61_000)] {
        steps.extend(group.push(sound(us, true), arrival));
    }
    steps.extend(group.finish());
    let at: Vec<_> = written(&steps).into_iter().map(|(_, ms)| ms).collect();
    assert_eq!(at, [0, 20, 40, 60]);
    assert_eq!(group.late, 0);
}

#[test]
fn what_comes_after_those_behind_it_were_written_is_counted() {
    let mut group = Group::default();
    group.begin(Slot::Audio, MICROPHONE);
    for us in [0, 20_000, 900_000] {
        group.push(sound(us, true), us);
    }
    group.advance(2_000_000);
    group.push(sound(40_000, true), 1_000_000);
    assert_eq!(group.late, 1);
}
