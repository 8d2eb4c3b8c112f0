//! Publishers who take enhancement away from others: with large pictures for few bits, with much to decode, and by
//! coming first.

use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use str0m::media::Mid;
use str0m::rtp::RtpWrite;
use windlass_testkit::Video;
use windlass_vp9::Picture;
use windlass_vpx::{Encoder, FrameUse, SequenceConfig};

use crate::connection::{Connection, vp9};
use crate::honest::{Scene, alone, memory};
use crate::server::{Client, Server, eventually, lab};

const MIB: f64 = 1_048_576.0;
/// Most bytes of a frame in a packet.
const PAYLOAD: usize = 1_100;

/// Frames of pictures by their number, the first a key frame.
fn coded(
    (width, height): (usize, usize),
    count: usize,
    luma: fn(usize, usize, usize) -> u8,
) -> Vec<Vec<u8>> {
    let config = SequenceConfig { width, height, cpu_used: 9 };
    let mut encoder = Encoder::sequence(config).expect("an encoder");
    encoder.set_quantiser(48).expect("a quantiser");
    let frames = (0..count).map(|n| {
        let mut picture = Picture::grey(width, height);
        for (at, sample) in picture.y.samples_mut().iter_mut().enumerate() {
            *sample = luma(at % width, at / width, n);
        }
        let used = if n == 0 { FrameUse::Key } else { FrameUse::FromLast };
        encoder.encode_as(&picture, used).expect("a frame")
    });
    frames.collect()
}

/// A grey picture that stands still: some hundred bytes a frame, whatever its size.
fn still(size: (usize, usize)) -> Vec<Vec<u8>> {
    coded(size, 6, |_, _, _| 128)
}

/// One that changes everywhere: much to decode.
fn busy(size: (usize, usize)) -> Vec<Vec<u8>> {
    coded(size, 24, |x, y, n| (90 + ((x + 3 * n) * y / 64) % 80) as u8)
}

/// Somebody in a room of their own who publishes and watches that.
struct Publisher {
    connection: Connection,
    video: Mid,
    // The participant goes with its socket.
    _signal: Client,
}

impl Publisher {
    async fn enter(server: &Server) -> Publisher {
        let mut signal = Client::open(server).await;
        let join = json!({"type": "join", "version": 1, "room": "own", "name": "Mallory", "loopback": true, "anchor_codecs": ["htj2k"]});
        signal.say(&join).await;
        let welcome = signal.hear(&["welcome", "error"]).await;
        assert_eq!(welcome["type"], "welcome", "{welcome}");
        let mut connection = Connection::new(vp9());
        let offered = connection.client.offer(&[Video::Send], &["ctl"]);
        let video = offered.mids[0];
        let publish = [json!({"mid": video.to_string(), "kind": "video", "name": "camera"})];
        let answer = connection.negotiate(&mut signal, offered, &publish, &[]).await;
        assert_eq!(answer["type"], "answer", "{answer}");
        let offered = connection.client.offer(&[Video::Receive], &[]);
        let mid = offered.mids[0].to_string();
        let subscribe = [json!({"mid": mid, "track": answer["tracks"][0]["track"]})];
        let answer = connection.negotiate(&mut signal, offered, &publish, &subscribe).await;
        assert_eq!(answer["type"], "answer", "{answer}");
        Publisher { connection, video, _signal: signal }
    }

    /// Sends these frames round and round until told to stop, so many a second.
    fn publish(mut self, frames: &[Vec<u8>], fps: f64, stop: &AtomicBool) {
        let (mut seq, mut sent, mut begun) = (1u64, 0u32, None);
        while !stop.load(Ordering::Relaxed) {
            self.connection.talk();
            if self.connection.client.connected {
                let begun = *begun.get_or_insert_with(Instant::now);
                while begun.elapsed().as_secs_f64() * fps >= f64::from(sent) {
                    self.send(&frames[sent as usize % frames.len()], &mut seq, sent, fps);
                    sent += 1;
                }
            }
            std::thread::sleep(Duration::from_millis(4));
        }
        assert!(self.connection.client.connected, "never inside");
    }

    fn send(&mut self, frame: &[u8], seq: &mut u64, number: u32, fps: f64) {
        let key = windlass_types::key_frame::key_frame_size(frame).is_some();
        let ticks = (f64::from(number) * 90_000.0 / fps) as u32;
        let parts = frame.chunks(PAYLOAD).count();
        for (n, part) in frame.chunks(PAYLOAD).enumerate() {
            let (first, last) = (n == 0, n + 1 == parts);
            let inter = if key { 0 } else { 0x40 };
            let flags = 0x80 | inter | u8::from(first) << 3 | u8::from(last) << 2;
            let mut payload = vec![flags, 0x80 | (number >> 8) as u8, number as u8];
            payload.extend_from_slice(part);
            let written = self.connection.client.write(self.video, None, |pt| {
                RtpWrite::new(pt, (*seq).into(), ticks, Instant::now(), payload).marker(last)
            });
            if !written {
                return;
            }
            *seq += 1;
            self.connection.flush();
        }
    }
}

/// Publishers at work, each on a thread of its own.
struct Gang {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Gang {
    async fn of(server: &Server, count: usize, frames: Vec<Vec<u8>>, fps: f64) -> Gang {
        let (stop, frames) = (Arc::new(AtomicBool::new(false)), Arc::new(frames));
        let mut threads = Vec::new();
        for _ in 0..count {
            let publisher = Publisher::enter(server).await;
            let (stop, frames) = (stop.clone(), frames.clone());
            threads.push(std::thread::spawn(move || publisher.publish(&frames, fps, &stop)));
        }
        Gang { stop, threads }
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("a publisher"));
    }
}

/// An honest publisher and a viewer who come now, for some seconds.
fn latecomers(server: &Server) -> Child {
    lab()
        .args(["loadtest", "--server", &format!("http://{}", server.addr), "--json"])
        .args(["--publishers", "1", "--ramp", "0.1", "--seconds", "10", "--clip-seconds", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a call")
}

fn row(call: Child) -> Value {
    let output = call.wait_with_output().expect("the call's end");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    report["rows"][0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_publishers_of_large_pictures_take_neither_memory_nor_anchors() {
    let frames = still((4096, 2304));
    let scene = Scene::open_enhanced(&[]);
    let before = memory(&scene.server);
    let anchors = scene.server.metric("windlass_enhancer_anchors_total");
    let gang = Gang::of(&scene.server, 6, frames, 1.0).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let grown = memory(&scene.server) - before;
    let streams = scene.server.metric("windlass_enhancer_streams");
    // The gang is at work all the while: no anchors are made of its pictures, so these are of the honest calls.
    let more = || scene.server.metric("windlass_enhancer_anchors_total") - anchors > 3.5;
    eventually(&scene.server, "four anchors for the honest calls", more);
    gang.end();
    eprintln!("six of 4096x2304: {:.1} MiB more, {streams} streams", grown / MIB);
    assert!(grown < 32.0 * MIB, "{:.1} MiB more", grown / MIB);
    assert!(streams < 2.5, "{streams} streams are decoded");
    scene.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_whose_pictures_grow_under_way_are_no_longer_enhanced() {
    // One encoding that begins small and goes on large, again and again.
    let frames = [still((320, 180)), still((4096, 2304))].concat();
    let scene = Scene::open_enhanced(&[]);
    let before = memory(&scene.server);
    let gang = Gang::of(&scene.server, 3, frames, 4.0).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let grown = memory(&scene.server) - before;
    gang.end();
    eprintln!("three that grow to 4096x2304: {:.1} MiB more", grown / MIB);
    assert!(grown < 64.0 * MIB, "{:.1} MiB more", grown / MIB);
    scene.close();
}

#[test]
fn publishers_who_came_first_and_take_much_give_way_to_one_who_takes_little() {
    let _alone = alone();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let frames = busy((848, 480));
    let server = Server::start_enhanced_with(&["--network", "xs", "--enhancer-threads", "1"], &[]);
    let gang = runtime.block_on(Gang::of(&server, 4, frames, 60.0));
    std::thread::sleep(Duration::from_millis(2_500));
    let streams = server.metric("windlass_enhancer_streams");
    assert!(streams > 0.5, "they are enhanced while nobody else is there");
    let row = row(latecomers(&server));
    let excluded = server.metric("windlass_enhancer_excluded_streams");
    gang.end();
    eprintln!("beside four of 848x480: {} anchors, {excluded} refused", row["anchors"]);
    assert!(row["anchors"].as_f64() > Some(1.5), "{row}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_of_enhancement_is_bounded_and_comes_back() {
    let frames = still((848, 480));
    let scene = Scene::open_enhanced(&["--enhancer-memory-mb", "64"]);
    let gang = Gang::of(&scene.server, 8, frames, 4.0).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let counted = scene.server.metric("windlass_enhancer_memory_counted_bytes");
    let refused = scene.server.metric("windlass_enhancer_excluded_streams");
    gang.end();
    eprintln!("eight of 848x480 in 64 MiB: {:.1} MiB counted, {refused} refused", counted / MIB);
    assert!(counted <= 64.0 * MIB && refused > 0.5, "{counted} bytes, {refused} refused");
    let row = scene.close();
    assert!(row["anchors"].as_f64() > Some(3.5), "{row}");
}
