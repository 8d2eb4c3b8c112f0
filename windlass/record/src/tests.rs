//! A recorder with a real folder.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use windlass_types::recording::{
    RecordInput, RecordedFrame, RecordedPacket, RecordedTime, RecordedTrack, SenderReport,
};
use windlass_types::{Layer, ParticipantId, Size, TrackId, TrackKind};

use super::queue::MAX_QUEUED_BYTES;
use super::*;

const CAMERA: TrackId = TrackId(1);
const MICROPHONE: TrackId = TrackId(2);
const TIMEOUT: Duration = Duration::from_secs(20);

fn order() -> Order {
    Order {
        recording: "rec_1".to_owned(),
        room: "tea".to_owned(),
        participant: None,
        enhanced: false,
        started: recording::seconds(SystemTime::now()),
        part: "a1".to_owned(),
    }
}

fn hooks() -> (Hooks, Receiver<Event>) {
    let (events, heard) = channel();
    let person = Person { identity: Some("ana".to_owned()), name: "Ana".to_owned() };
    let hooks = Hooks {
        who: Box::new(move |_| Some(person.clone())),
        key_frame: Box::new(|_| {}),
        event: Box::new(move |event| _ = events.send(event)),
    };
    (hooks, heard)
}

fn begin(recorder: &Recorder) {
    let sink = recorder.sink();
    for (track, kind, name) in
        [(CAMERA, TrackKind::Video, "camera"), (MICROPHONE, TrackKind::Audio, "microphone")]
    {
        let (room, participant, name) = ("tea".into(), ParticipantId(7), name.to_owned());
        assert!(sink(RecordInput::Begin(RecordedTrack { track, room, participant, kind, name })));
    }
}

/// Gives so many pictures, with a packet of sound each.
fn give(recorder: &Recorder, count: u32) {
    let (sink, now, wall) = (recorder.sink(), Instant::now(), SystemTime::now());
    for n in 0..count {
        let arrival = now + Duration::from_millis(20) * n;
        let report = Some(SenderReport { time: wall, rtp: 0 });
        let time = |rate: u32| RecordedTime { rtp: n * rate / 50, arrival, report };
        assert!(sink(RecordInput::Video(RecordedFrame {
            track: CAMERA,
            layer: Layer::Q,
            time: time(90_000),
            key: n == 0,
            size: Size::new(320, 180),
            data: Bytes::from_static(&[0x82, 0x49, 0x83, 0x42, 0, 0, 0, 0]),
        })));
        assert!(sink(RecordInput::Audio(RecordedPacket {
            track: MICROPHONE,
            time: time(48_000),
            data: Bytes::from_static(&[0xf8, 0xff, 0xfe]),
        })));
    }
}

fn ended(events: &Receiver<Event>) -> Manifest {
    let event = events.recv_timeout(TIMEOUT).unwrap();
    let Event::Ended { manifest, .. } = event else { panic!("{event:?}") };
    *manifest
}

#[test]
fn a_recording_leaves_its_files_and_a_manifest_that_places_them() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(folder.path()).unwrap();
    let (hooks, events) = hooks();
    recorder.start(hooks).unwrap();
    let made = recorder.begin(order()).unwrap();
    begin(&recorder);
    give(&recorder, 100);
    recorder.end("tea", EndReason::Stopped);
    let manifest = ended(&events);
    assert_eq!((manifest.reason, manifest.files.len()), (Some(EndReason::Stopped), 1));
    let file = &manifest.files[0];
    assert!(file.complete && (file.duration - 1.98).abs() < 0.01, "{file:?}");
    assert_eq!(file.tracks.iter().map(|track| track.frames).collect::<Vec<_>>(), [100, 100]);
    assert_eq!((file.identity.as_deref(), file.tracks[0].width), (Some("ana"), Some(320)));
    assert!(file.offset.abs() < 2.0, "{file:?}");
    let written = std::fs::metadata(made.join(&file.file)).unwrap();
    assert_eq!(written.len(), file.bytes);
    assert!(recorder.unfinished().is_empty());
    assert_eq!(recorder.counts(), Counts { bytes: recorder.counts().bytes, ..Counts::default() });
}

#[test]
fn a_recording_goes_on_after_a_restart_in_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let first = Recorder::new(folder.path()).unwrap();
    first.start(hooks().0).unwrap();
    first.begin(order()).unwrap();
    begin(&first);
    give(&first, 20);
    first.stop();
    let second = Recorder::new(folder.path()).unwrap();
    let open = second.unfinished();
    assert_eq!(open.len(), 1);
    let (hooks, events) = hooks();
    second.start(hooks).unwrap();
    second.begin(open[0].clone()).unwrap();
    begin(&second);
    give(&second, 20);
    second.end("tea", EndReason::RoomEmpty);
    let manifest = ended(&events);
    assert_eq!(manifest.files.len(), 2);
    assert!(manifest.files.iter().all(|file| file.complete));
    assert_ne!(manifest.files[0].file, manifest.files[1].file);
}

#[test]
fn what_a_killed_server_left_is_cut_behind_its_last_whole_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let (mut webm, mut bytes) = webm::Webm::new(
        webm::Shape { video: Some(Size::new(320, 180)), audio: false },
        webm::VideoCodec::Vp9,
        SystemTime::now(),
    );
    for n in 0..300 {
        let at = Duration::from_millis(n * 20);
        bytes.extend(webm.push(webm::Slot::Video, at, n == 0, &[1; 50]).unwrap_or_default());
    }
    let whole = bytes.len() as u64;
    bytes.extend_from_slice(&[0x1f, 0x43, 0xb6, 0x75, 0x44, 0x00, 1, 2, 3]);
    let made = folder.path().join("rec_1");
    std::fs::create_dir(&made).unwrap();
    std::fs::write(made.join("p7-1.webm.part"), &bytes).unwrap();
    let mut manifest = order().manifest();
    manifest.files.push(MediaFile {
        file: "p7-1.webm".to_owned(),
        participant: "p7".to_owned(),
        identity: None,
        name: String::new(),
        offset: 0.0,
        duration: 0.0,
        bytes: 0,
        tracks: Vec::new(),
        complete: false,
        enhanced: None,
    });
    manifest.save(&made).unwrap();
    let recorder = Recorder::new(folder.path()).unwrap();
    let (hooks, events) = hooks();
    recorder.start(hooks).unwrap();
    recorder.begin(recorder.unfinished()[0].clone()).unwrap();
    recorder.end("tea", EndReason::RoomEmpty);
    let manifest = ended(&events);
    assert_eq!(manifest.files[0].bytes, whole);
    assert!((manifest.files[0].duration - 2.0).abs() < 1e-9, "{:?}", manifest.files[0]);
    assert_eq!(std::fs::metadata(made.join("p7-1.webm")).unwrap().len(), whole);
}

#[test]
fn a_recording_that_cannot_be_written_ends_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(folder.path()).unwrap();
    let (hooks, events) = hooks();
    recorder.start(hooks).unwrap();
    let made = recorder.begin(order()).unwrap();
    // Nothing can be made in it any more.
    std::fs::remove_dir_all(&made).unwrap();
    begin(&recorder);
    give(&recorder, 50);
    // Frames wait half a second for those before them.
    let manifest = ended(&events);
    assert_eq!(manifest.reason, Some(EndReason::WriteFailed));
    assert!(manifest.error.unwrap().contains("rec_1"));
    assert_eq!((recorder.counts().failed, recorder.counts().recordings), (1, 0));
}

#[test]
fn what_the_disk_does_not_take_is_dropped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    // Its thread is not started: nobody takes anything.
    let recorder = Recorder::new(folder.path()).unwrap();
    let sink = recorder.sink();
    let time = RecordedTime { rtp: 0, arrival: Instant::now(), report: None };
    let packet = RecordedPacket { track: MICROPHONE, time, data: Bytes::from(vec![0; 1 << 20]) };
    let taken = (0..100).filter(|_| sink(RecordInput::Audio(packet.clone()))).count();
    assert_eq!(taken, MAX_QUEUED_BYTES >> 20);
    assert_eq!(recorder.counts().dropped, 100 - taken as u64);
    assert!(sink(RecordInput::End(MICROPHONE)), "what has no media is not lost");
}

#[test]
fn a_folder_that_cannot_be_made_is_told_with_its_name() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Recorder::new(&file.path().join("recordings")).err().unwrap().to_string();
    assert!(error.contains("recordings"), "{error}");
}

#[cfg(unix)]
#[test]
fn others_of_the_machine_cannot_read_a_recording() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(folder.path()).unwrap();
    recorder.start(hooks().0).unwrap();
    let made = recorder.begin(order()).unwrap();
    let mode = std::fs::metadata(made).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
