//! A renderer and what it is given, in real threads.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use windlass_types::recording::{RecordedFrame, RecordedTime};
use windlass_types::{Layer, Size, VideoCodec};

use super::queue::Next;
use super::*;

const TRACK: TrackId = TrackId(3);
const RENDITION: TrackId = TrackId(4);
/// Pictures of 161 × 91 samples, each with a time of its own.
const IVF: &[u8] = include_bytes!("../../../hybrid/vp9/tests/fixtures/realtime.ivf");

/// The frames of the clip.
fn frames() -> Vec<RecordedFrame> {
    let (mut frames, mut left) = (Vec::new(), &IVF[32..]);
    while let Some((head, rest)) = left.split_at_checked(12) {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let (data, rest) = rest.split_at(length);
        let number = frames.len() as u32;
        let time = RecordedTime { rtp: number * 3000, arrival: Instant::now(), report: None };
        frames.push(RecordedFrame {
            track: TRACK,
            layer: Layer::Q,
            time,
            key: number == 0,
            size: Size::new(161, 91),
            data: Bytes::copy_from_slice(data),
        });
        left = rest;
    }
    frames
}

fn started() -> (Renderer, Sink, Receiver<RendererAnswer>) {
    let renderer = Renderer::new(Load::of_cores(2), 2);
    let (sender, receiver) = channel();
    renderer.start(Box::new(move |rendered| sender.send(rendered).is_ok()));
    let sink = renderer.sink();
    assert!(sink(RendererInput::Begin { track: TRACK, rendition: RENDITION }));
    (renderer, sink, receiver)
}

fn next(answers: &Receiver<RendererAnswer>) -> RendererAnswer {
    answers.recv_timeout(Duration::from_secs(60)).expect("an answer")
}

/// Sends frames of the clip: some that are never late, or some that are.
fn send(sink: &Sink, numbers: std::ops::Range<usize>, late: bool) {
    let (now, long) = (Instant::now(), Duration::from_secs(1000));
    for mut frame in frames().drain(numbers) {
        frame.time.arrival = if late { now.checked_sub(long).expect("a time") } else { now + long };
        assert!(sink(RendererInput::Media(RecordInput::Video(frame))));
    }
}

/// The next picture: the number of its frame, and whether it is a key frame.
fn picture(answers: &Receiver<RendererAnswer>) -> (u32, bool) {
    let mut packets = Vec::new();
    loop {
        let RendererAnswer::Packet(packet) = next(answers) else { panic!("no packet") };
        let marker = packet.marker;
        packets.push(packet);
        if marker {
            break;
        }
    }
    for packet in &packets {
        assert_eq!((packet.codec, packet.layer), (VideoCodec::Av1, Some(Layer::F)));
        assert_eq!(packet.timestamp, packets[0].timestamp);
    }
    // The bit of a new coded video sequence, in the first packet.
    (packets[0].timestamp / 3000, packets[0].payload[0] & 8 != 0)
}

#[test]
fn frames_become_pictures_of_av1_until_the_track_ends() {
    let (renderer, sink, answers) = started();
    send(&sink, 0..5, false);
    let pictures: Vec<_> = (0..5).map(|_| picture(&answers).0).collect();
    assert_eq!((pictures, renderer.counts().renditions), (vec![0, 1, 2, 3, 4], 1));
    assert!(sink(RendererInput::Media(RecordInput::End(TRACK))));
    assert_eq!(renderer.counts().renditions, 0);
    drop((renderer, sink));
    let over = loop {
        if let Err(over) = answers.recv_timeout(Duration::from_secs(60)) {
            break over;
        }
    };
    assert_eq!(over, RecvTimeoutError::Disconnected, "its thread has ended");
}

#[test]
fn a_player_that_needs_a_key_frame_gets_one_and_others_are_not() {
    let (_renderer, sink, answers) = started();
    send(&sink, 0..1, false);
    // What the encoder holds back comes though no frame follows.
    let mut keys = vec![picture(&answers)];
    assert!(sink(RendererInput::KeyFrame(TRACK)));
    send(&sink, 1..7, false);
    keys.extend((0..6).map(|_| picture(&answers)));
    let keys: Vec<u32> = keys.into_iter().filter_map(|(at, key)| key.then_some(at)).collect();
    assert_eq!(keys, [0, 1]);
}

#[test]
fn a_frame_that_cannot_be_decoded_is_counted_and_a_key_frame_is_asked_for() {
    let (renderer, sink, answers) = started();
    let mut frames = frames().into_iter();
    let mut frame = frames.next().expect("a frame");
    frame.data = Bytes::from_static(&[0xff; 40]);
    assert!(sink(RendererInput::Media(RecordInput::Video(frame))));
    let RendererAnswer::KeyFrame(RENDITION) = next(&answers) else { panic!("not asked") };
    assert_eq!(renderer.counts().failed, 1);
    // What comes before the key frame is of no use, and is not asked for again.
    assert!(sink(RendererInput::Media(RecordInput::Video(frames.next().expect("a frame")))));
    assert!(answers.recv_timeout(Duration::from_millis(200)).is_err());
}

#[test]
fn late_frames_are_decoded_and_not_encoded() {
    let (renderer, sink, answers) = started();
    send(&sink, 0..2, false);
    send(&sink, 2..3, true);
    send(&sink, 3..5, false);
    let pictures: Vec<_> = (0..4).map(|_| picture(&answers).0).collect();
    assert_eq!(pictures, [0, 1, 3, 4]);
    assert_eq!((renderer.counts().late, renderer.counts().failed), (1, 0));
}

#[test]
fn what_the_queue_has_no_room_for_is_dropped() {
    let queue = Queue::default();
    let frame = frames().into_iter().next().expect("a frame");
    let taken = (0..100).filter(|_| queue.push(RecordInput::Video(frame.clone()))).count();
    assert!((20..100).contains(&taken), "{taken}");
    queue.request_key_frame();
    assert!(matches!(queue.take(None), Next::Step { key_frame: true, .. }));
    assert!(matches!(queue.take(None), Next::Step { key_frame: false, .. }));
    queue.close();
    assert!(matches!(queue.take(None), Next::Ended));
}
