//! RTCP that has the stack work by what it claims: reports on 32,764 packets in 28 bytes, and requests for 17 packets
//! in four.

use std::time::{Duration, Instant};

use crate::honest::Scene;
use crate::viewer::{Viewer, a_room};

const SPAN: Duration = Duration::from_secs(3);
const ROUND: Duration = Duration::from_millis(5);
/// Datagrams a round: 2000 a second.
const AT_ONCE: u16 = 10;

/// Feedback of a kind that the transport layer has.
fn feedback(kind: u8, about: u32, content: &[u8]) -> Vec<u8> {
    let words = (2 + content.len() / 4) as u16;
    let head = [[0x80 | kind, 205].as_slice(), &words.to_be_bytes(), &1u32.to_be_bytes()].concat();
    [&head, about.to_be_bytes().as_slice(), content].concat()
}

/// All of 32,764 packets were lost.
fn all_lost(base: u16) -> Vec<u8> {
    let head = [base.to_be_bytes(), 32_764u16.to_be_bytes(), [0, 0], [1, base as u8]].concat();
    feedback(15, 2, &[head, 8191u16.to_be_bytes().repeat(4)].concat())
}

/// 527 packets shall be sent again.
fn all_again(stream: u32, last: u16) -> Vec<u8> {
    let entry = |n: u16| [last.wrapping_sub(17 * n).to_be_bytes(), [0xff; 2]].concat();
    feedback(1, stream, &(1..32).flat_map(entry).collect::<Vec<u8>>())
}

async fn attack(datagram: impl Fn(u32, u16) -> Vec<u8>) {
    let scene = Scene::open(&[]);
    let mut viewer = Viewer::join(&scene.server, &a_room(&scene.server)).await;
    // Its own first report has to be on its way.
    viewer.watch(Duration::from_secs(2));
    let stream = viewer.streams()[0];
    let (end, mut sent, mut number) = (Instant::now() + SPAN, 0, 0u16);
    while Instant::now() < end {
        for _ in 0..AT_ONCE {
            number = number.wrapping_add(1601);
            sent += u32::from(viewer.say(&datagram(stream, number)));
        }
        viewer.watch(ROUND);
    }
    let refused = scene.server.metric("windlass_sfu_rtcp_refused_total");
    eprintln!("{refused} of {sent} datagrams refused");
    assert!(sent > 1000 && refused > 0.9 * f64::from(sent), "{refused} of {sent}");
    drop(viewer);
    scene.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_and_requests_for_all_that_ever_was_hold_up_no_media() {
    attack(|stream, number| match number % 2 {
        0 => all_lost(number).repeat(41),
        _ => all_again(stream, number).repeat(8),
    })
    .await;
}
