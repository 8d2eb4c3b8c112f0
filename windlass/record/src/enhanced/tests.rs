//! Enhanced recordings by a recorder with a real folder.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Instant, SystemTime};

use windlass_types::message::HTJ2K;
use windlass_types::recording::{
    RecordInput, RecordedAnchor, RecordedFrame, RecordedTime, RecordedTrack, SenderReport,
};
use windlass_types::{
    Anchor, AnchorSource, Epoch, Layer, ParticipantId, Size, StageTimes, StreamId, TrackId,
    TrackKind,
};
use windlass_vp9::Picture;
use windlass_vpx::{Encoder, EncoderConfig};

use super::*;
use crate::EndReason;
use crate::order::{Event, Hooks, Order};
use crate::recorder::Recorder;
use crate::recording::seconds;

const CAMERA: TrackId = TrackId(1);
const PATIENCE: Duration = Duration::from_secs(60);

fn start(root: &Path) -> (Recorder, Receiver<Event>) {
    let (recorder, (events, heard)) = (Recorder::new(root).unwrap(), channel());
    let event = Box::new(move |event| _ = events.send(event));
    let hooks = Hooks { who: Box::new(|_| None), key_frame: Box::new(|_| {}), event };
    recorder.start(hooks).unwrap();
    (recorder, heard)
}

/// Records so many grey pictures, with an anchor of the first one if `anchored`.
fn record(recorder: &Recorder, recording: &str, frames: u32, anchored: bool) -> PathBuf {
    let folder = recorder.begin(Order {
        recording: recording.to_owned(),
        room: "tea".to_owned(),
        participant: None,
        enhanced: true,
        started: seconds(SystemTime::now()),
        part: "a1".to_owned(),
    });
    let (sink, now, room) = (recorder.sink(), Instant::now(), "tea".into());
    let (participant, name) = (ParticipantId(7), "camera".to_owned());
    let track = RecordedTrack { track: CAMERA, room, participant, kind: TrackKind::Video, name };
    assert!(sink(RecordInput::Begin(track)));
    let (width, height, fps) = (160, 96, 30.0);
    let config = EncoderConfig { width, height, fps, kbps: 100, screen: false, cpu_used: None };
    let mut encoder = Encoder::new(config).unwrap();
    for n in 0..frames {
        let arrival = now + Duration::from_millis(33) * n;
        let report = Some(SenderReport { time: SystemTime::now(), rtp: 0 });
        let time = RecordedTime { rtp: n * 3000, arrival, report };
        assert!(sink(RecordInput::Video(RecordedFrame {
            track: CAMERA,
            layer: Layer::Q,
            time,
            key: n == 0,
            size: Size::new(160, 96),
            data: encoder.encode(&Picture::grey(width, height)).unwrap().into(),
        })));
    }
    let anchor = Anchor {
        stream: StreamId(1),
        epoch: Epoch(0),
        rtp_timestamp: 0,
        arrival: now,
        source: AnchorSource::Enhanced,
        codec: HTJ2K,
        tiled: true,
        size: Size::new(320, 192),
        beyond_prior: true,
        payload: vec![7; 99].into(),
        times: StageTimes::default(),
    };
    if anchored {
        let anchor = RecordedAnchor { track: CAMERA, layer: Layer::Q, anchor };
        assert!(sink(RecordInput::Anchor(anchor)));
    }
    recorder.end("tea", EndReason::Stopped);
    folder.unwrap()
}

fn ended(events: &Receiver<Event>) -> Enhanced {
    match events.recv_timeout(PATIENCE).unwrap() {
        Event::Ended { manifest, .. } => manifest.files[0].enhanced.clone().unwrap(),
        other => panic!("{other:?}"),
    }
}

fn enhanced(events: &Receiver<Event>) -> Enhanced {
    match events.recv_timeout(PATIENCE).unwrap() {
        Event::Enhanced { manifest, folder } => {
            assert_eq!(Manifest::find(&folder).unwrap().0, *manifest);
            manifest.files[0].enhanced.clone().unwrap()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_enhanced_recording_has_another_file_when_it_has_ended() {
    let root = tempfile::tempdir().unwrap();
    let (recorder, events) = start(root.path());
    let folder = record(&recorder, "rec_1", 30, true);
    assert_eq!(ended(&events).state, EnhancedState::Waiting);
    let made = enhanced(&events);
    assert_eq!((made.state, made.frames, made.width), (EnhancedState::Made, 30, Some(320)));
    let file = folder.join(made.file.unwrap());
    assert_eq!(std::fs::metadata(file).unwrap().len(), made.bytes);
    assert!(folder.join("p7-1.webm").exists());
    assert_eq!(recorder.counts().enhanced_failures, 0);
    recorder.stop();
}

#[test]
fn a_recording_without_anchors_says_that_there_is_nothing_to_enhance() {
    let root = tempfile::tempdir().unwrap();
    let (recorder, events) = start(root.path());
    record(&recorder, "rec_1", 10, false);
    ended(&events);
    assert_eq!(enhanced(&events).state, EnhancedState::NoAnchors);
    recorder.stop();
}

#[test]
fn what_was_not_made_before_the_server_stopped_is_made_at_the_next_start() {
    let root = tempfile::tempdir().unwrap();
    let (first, events) = start(root.path());
    let folder = record(&first, "rec_1", 30, true);
    ended(&events);
    first.stop();
    // As a killed server leaves it.
    std::fs::write(folder.join("p7-1.enhanced.webm.part"), [1; 99]).unwrap();
    let (second, events) = start(root.path());
    assert_eq!(enhanced(&events).state, EnhancedState::Made);
    // The anchors go when the manifest says that they are not needed any more, and before another file is made.
    record(&second, "rec_2", 10, false);
    ended(&events);
    assert_eq!(enhanced(&events).state, EnhancedState::NoAnchors);
    let left = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(left, 3, "two files and the manifest");
    second.stop();
}
